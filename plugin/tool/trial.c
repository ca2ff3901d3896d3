/* SPDX-License-Identifier: MIT */
#include "tool/trial.h"

#include <errno.h>
#include <string.h>

#include "sardine.h"
#include "tool/capture.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/response.h"

enum {
        QUERY_MAX = DNS_HEADER + 255 + 4 + DNS_OPT_FIXED + 24,
};

static uint64_t capture_clock(void *ctx)
{
        return *(const uint64_t *)ctx;
}

/* The query that was answered: what shapes a key is in the response, too. 0: no telling. */
static size_t write_query(const struct wire_response *response, uint8_t out[QUERY_MAX])
{
        if (!response->qname)
                return 0;
        size_t at = DNS_HEADER + response->qname_len;
        memset(out, 0, DNS_HEADER);
        memcpy(out, response->packet, 2);
        out[2] = response->flags2 & DNS_RD;
        out[3] = response->flags3 & DNS_CD;
        out[5] = 1;
        memcpy(out + DNS_HEADER, response->qname, response->qname_len);
        put_be16(out + at, response->qtype);
        put_be16(out + at + 2, response->qclass);
        at += 4;
        if (!response->edns)
                return at;
        out[11] = 1;
        uint8_t *opt = out + at;
        memset(opt, 0, DNS_OPT_FIXED);
        opt[2] = DNS_OPT;
        put_be16(opt + 3, 1232);
        opt[7] = response->dnssec_ok ? 0x80 : 0;
        if (response->ecs.family) {
                struct wire_ecs ecs = response->ecs;
                ecs.scope = 0;
                put_be16(opt + 9, (uint16_t)wire_ecs_write(&ecs, opt + DNS_OPT_FIXED));
        }
        return at + DNS_OPT_FIXED + get_be16(opt + 9);
}

static void keep(struct trial *trial, sardine_cache *cache, const struct capture_message *message)
{
        static struct wire_rr rrs[WIRE_RRS_MAX];
        static uint8_t query[QUERY_MAX];
        struct wire_response response;
        struct sardine_token token;
        trial->responses++;
        unsigned reason = wire_response_parse(message->bytes, message->len, rrs, WIRE_RRS_MAX, &response);
        if (reason) {
                trial->refused[reason]++;
                return;
        }
        const struct sardine_query q = {
            .sz = sizeof q, .packet = query, .len = write_query(&response, query)};
        if (q.len == 0 || sardine_token_init(cache, &q, &token) != 0) {
                trial->bypassed++;
                return;
        }
        struct sardine_insert_result result = {.sz = sizeof result};
        if (sardine_insert(cache, &token, message->bytes, message->len, NULL, &result) == SARDINE_REFUSED)
                trial->refused[result.reason]++;
}

static int count(void *ctx, const struct sardine_entry_view *entry)
{
        struct trial *trial = ctx;
        trial->answers++;
        trial->fresh += entry->ttl > 0;
        return 0;
}

int trial_run(struct trial *trial, const char *path, uint16_t port)
{
        struct sardine_options options;
        struct sardine_stats stats = {.sz = sizeof stats};
        struct capture capture;
        struct capture_message message;
        uint64_t now = 0, base = 0;
        sardine_cache *cache;
        *trial = (struct trial){0};
        sardine_options_init(&options, sizeof options);
        options.max_bytes = UINT64_C(16) << 30; /* in a larger store, entries are rounded up more */
        options.clock = capture_clock;
        options.clock_ctx = &now;
        int err = sardine_create(&options, &cache);
        if (err)
                return err;
        bool opened = capture_open(&capture, path);
        while (opened && capture_next(&capture, &message)) {
                trial->messages++;
                if (message.from != port || message.len < DNS_HEADER || !(message.bytes[2] & DNS_QR))
                        continue;
                if (base == 0)
                        base = message.ms;
                /* A clock must not go back; captures of several interfaces may. */
                if (message.ms > base + now)
                        now = message.ms - base;
                keep(trial, cache, &message);
        }
        trial->packets = capture.packets;
        trial->span_ms = now;
        trial->error = capture.error;
        capture_close(&capture);
        sardine_stats_get(cache, &stats);
        trial->bytes = stats.entry_bytes;
        sardine_walk(cache, NULL, count, trial);
        sardine_destroy(cache);
        return opened ? 0 : -EINVAL;
}
