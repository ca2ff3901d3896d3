/* SPDX-License-Identifier: MIT */
#include "kit.h"

#include <stdlib.h>

#include "entry/encode.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/response.h"

static uint64_t kit_clock(void *ctx)
{
        return ((struct kit *)ctx)->clock_ms;
}

void kit_init(struct kit *kit)
{
        memset(kit, 0, sizeof *kit);
        kit->clock_ms = 1000000;
        sardine_options_init(&kit->options, sizeof kit->options);
        kit->options.max_entries = 1000;
        kit->options.clock = kit_clock;
        kit->options.clock_ctx = kit;
}

void kit_open(struct kit *kit)
{
        assert_int_equal(sardine_create(&kit->options, &kit->cache), 0);
}

void kit_open_colliding(struct kit *kit)
{
        kit_open(kit);
        const struct store_options store = {
            .max_entries = kit->options.max_entries,
            .max_bytes = 1 << 20,
            .hash = cache_entry_hash,
            .ctx = kit->cache,
            .hash_bits = 1,
        };
        store_destroy(kit->cache->store);
        assert_int_equal(store_create(&store, &kit->cache->store), 0);
}

static struct got last;

void kit_close(struct kit *kit)
{
        sardine_destroy(kit->cache);
        kit->cache = NULL;
        ldns_pkt_free(last.pkt);
        last.pkt = NULL;
}

struct kit kit;

int kit_setup(void **state)
{
        (void)state;
        kit_init(&kit);
        return 0;
}

int kit_setup_open(void **state)
{
        kit_setup(state);
        kit_open(&kit);
        return 0;
}

int kit_teardown(void **state)
{
        (void)state;
        kit_close(&kit);
        return 0;
}

void kit_wait(struct kit *kit, uint32_t seconds)
{
        kit->clock_ms += seconds * 1000ull;
}

/* ldns lower-cases nothing, so the case of the text reaches the wire. */
static size_t put_name(uint8_t *out, const char *text)
{
        ldns_rdf *name = ldns_dname_new_frm_str(text);
        assert_non_null(name);
        size_t len = ldns_rdf_size(name);
        memcpy(out, ldns_rdf_data(name), len);
        ldns_rdf_deep_free(name);
        return len;
}

static size_t put_opt(uint8_t *out, uint16_t size, uint8_t ext_rcode, uint8_t version, bool dnssec_ok,
                      const uint8_t *options, size_t len)
{
        memset(out, 0, DNS_OPT_FIXED);
        put_be16(out + 1, DNS_OPT);
        put_be16(out + 3, size);
        out[5] = ext_rcode;
        out[6] = version;
        out[7] = dnssec_ok ? 0x80 : 0;
        put_be16(out + 9, (uint16_t)len);
        if (len)
                memcpy(out + DNS_OPT_FIXED, options, len);
        return DNS_OPT_FIXED + len;
}

size_t ask_packet(const struct ask *ask, uint8_t out[1024])
{
        static _Atomic uint16_t id;
        memset(out, 0, DNS_HEADER);
        put_be16(out, ++id);
        out[2] = (uint8_t)(ask->opcode << 3 | (ask->rd ? DNS_RD : 0));
        out[3] = (uint8_t)((ask->ad ? DNS_AD : 0) | (ask->cd ? DNS_CD : 0));
        put_be16(out + 4, 1);
        size_t at = DNS_HEADER + put_name(out + DNS_HEADER, ask->name);
        put_be16(out + at, ask->type);
        put_be16(out + at + 2, DNS_IN);
        at += 4;
        if (ask->edns || ask->dnssec_ok || ask->size || ask->options || ask->edns_version) {
                put_be16(out + 10, 1);
                at += put_opt(out + at, ask->size ? ask->size : 1232, 0, ask->edns_version, ask->dnssec_ok,
                              ask->options, ask->options_len);
        }
        return at;
}

uint8_t *reply_packet(const struct reply *reply, size_t *len)
{
        ldns_pkt *pkt = ldns_pkt_new();
        ldns_pkt_set_qr(pkt, true);
        ldns_pkt_set_aa(pkt, reply->aa);
        ldns_pkt_set_ra(pkt, reply->ra);
        ldns_pkt_set_ad(pkt, reply->ad);
        ldns_pkt_set_tc(pkt, reply->tc);
        ldns_pkt_set_rd(pkt, reply->rd);
        ldns_pkt_set_cd(pkt, reply->cd);
        ldns_pkt_set_rcode(pkt, reply->rcode);
        if (!reply->no_question) {
                ldns_rr *question = ldns_rr_new();
                ldns_rr_set_question(question, true);
                ldns_rr_set_owner(question, ldns_dname_new_frm_str(reply->name));
                ldns_rr_set_type(question, reply->type);
                ldns_rr_set_class(question, LDNS_RR_CLASS_IN);
                ldns_pkt_push_rr(pkt, LDNS_SECTION_QUESTION, question);
        }
        char *text = reply->records ? strdup(reply->records) : NULL, *rest = text, *line;
        ldns_pkt_section section = LDNS_SECTION_ANSWER;
        while (rest && (line = strsep(&rest, "\n"))) {
                if (!*line)
                        continue;
                if (strcmp(line, "-- authority") == 0) {
                        section = LDNS_SECTION_AUTHORITY;
                } else if (strcmp(line, "-- additional") == 0) {
                        section = LDNS_SECTION_ADDITIONAL;
                } else {
                        ldns_rr *rr = NULL;
                        ldns_status status = ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL);
                        if (status != LDNS_STATUS_OK)
                                fail_msg("%s: %s", line, ldns_get_errorstr_by_id(status));
                        ldns_pkt_push_rr(pkt, section, rr);
                }
        }
        free(text);
        uint8_t *wire = NULL;
        assert_int_equal(ldns_pkt2wire(&wire, pkt, len), LDNS_STATUS_OK);
        ldns_pkt_free(pkt);
        uint8_t *out = calloc(1, 65535 + 512);
        memcpy(out, wire, *len);
        free(wire);
        if (reply->edns || reply->dnssec_ok || reply->opt || reply->ext_rcode) {
                *len += put_opt(out + *len, 4096, reply->ext_rcode, 0, reply->dnssec_ok, reply->opt,
                                reply->opt_len);
                put_be16(out + 10, (uint16_t)(get_be16(out + 10) + 1));
        }
        return out;
}

struct got *look_packet(struct kit *kit, const uint8_t *packet, size_t len, const struct ask *how)
{
        ldns_pkt_free(last.pkt);
        memset(&last, 0, sizeof last);
        struct sardine_query q = {.sz = sizeof q,
                                  .packet = packet,
                                  .len = len,
                                  .transport = how->transport,
                                  .flags = how->flags,
                                  .tag = how->tag,
                                  .tag_len = how->tag ? (uint32_t)strlen(how->tag) : 0,
                                  .client = how->client,
                                  .client_len = how->client ? 4 : 0};
        last.answer = (struct sardine_answer){
            .sz = sizeof last.answer, .buf = last.buf, .cap = sizeof last.buf, .token = &last.token};
        last.outcome = sardine_lookup(kit->cache, &q, &last.answer);
        if (last.outcome == SARDINE_HIT || last.outcome == SARDINE_STALE || last.outcome == SARDINE_REFRESH) {
                ldns_status status = ldns_wire2pkt(&last.pkt, last.buf, last.answer.len);
                if (status != LDNS_STATUS_OK)
                        fail_msg("reply does not parse: %s", ldns_get_errorstr_by_id(status));
                /* What every reply owes its query: id, question to the letter, RD, CD, QR. */
                size_t question = 12;
                while (packet[question])
                        question += 1u + packet[question];
                question += 5;
                assert_memory_equal(last.buf, packet, 2);
                assert_int_equal(last.buf[2] & (DNS_QR | DNS_OPCODE_MASK | DNS_RD),
                                 DNS_QR | (packet[2] & DNS_RD));
                assert_int_equal(last.buf[3] & DNS_CD, packet[3] & DNS_CD);
                assert_memory_equal(last.buf + 4, packet + 4, 2);
                assert_memory_equal(last.buf + 12, packet + 12, question - 12);
        }
        return &last;
}

struct got *look(struct kit *kit, struct ask ask)
{
        uint8_t packet[1024];
        size_t len = ask_packet(&ask, packet);
        return look_packet(kit, packet, len, &ask);
}

static int put_raw(struct kit *kit, const struct sardine_token *token, const uint8_t *packet, size_t len,
                   unsigned *reason)
{
        struct sardine_insert_result result = {.sz = sizeof result};
        int outcome = sardine_insert(kit->cache, token, packet, len, NULL, &result);
        if (reason)
                *reason = result.reason;
        return outcome;
}

int put_packet(struct kit *kit, const uint8_t *packet, size_t len, unsigned *reason)
{
        return put_raw(kit, &last.token, packet, len, reason);
}

int put_token(struct kit *kit, const struct sardine_token *token, struct reply reply, unsigned *reason)
{
        size_t len;
        uint8_t *packet = reply_packet(&reply, &len);
        int outcome = put_raw(kit, token, packet, len, reason);
        free(packet);
        return outcome;
}

int put(struct kit *kit, struct reply reply, unsigned *reason)
{
        return put_token(kit, &last.token, reply, reason);
}

void fill(struct kit *kit, struct ask ask, struct reply reply)
{
        unsigned reason;
        assert_int_equal(look(kit, ask)->outcome, SARDINE_MISS);
        int outcome = put(kit, reply, &reason);
        if (outcome == SARDINE_REFUSED)
                fail_msg("refused: %s", sardine_reason_name(reason));
}

struct sardine_stats kit_stats(struct kit *kit)
{
        struct sardine_stats stats = {.sz = sizeof stats};
        assert_int_equal(sardine_stats_get(kit->cache, &stats), 0);
        return stats;
}

uint32_t first_ttl(const struct got *got)
{
        assert_non_null(got->pkt);
        ldns_rr_list *list = ldns_pkt_answer(got->pkt);
        if (ldns_rr_list_rr_count(list) == 0)
                list = ldns_pkt_authority(got->pkt);
        assert_true(ldns_rr_list_rr_count(list) > 0);
        return ldns_rr_ttl(ldns_rr_list_rr(list, 0));
}

unsigned answers(const struct got *got)
{
        assert_non_null(got->pkt);
        return ldns_pkt_ancount(got->pkt);
}

bool has_text(const struct got *got, const char *text)
{
        assert_non_null(got->pkt);
        char *all = ldns_pkt2str(got->pkt);
        bool found = strstr(all, text);
        free(all);
        return found;
}

unsigned count_type(const struct got *got, uint16_t type)
{
        assert_non_null(got->pkt);
        ldns_rr_list *all = ldns_pkt_get_section_clone(got->pkt, LDNS_SECTION_ANY_NOQUESTION);
        unsigned count = 0;
        for (size_t i = 0; i < ldns_rr_list_rr_count(all); i++)
                count += ldns_rr_get_type(ldns_rr_list_rr(all, i)) == (ldns_rr_type)type;
        ldns_rr_list_deep_free(all);
        return count;
}

const uint8_t *find_opt(const struct got *got, unsigned *count)
{
        const uint8_t *p = got->buf, *opt = NULL;
        size_t len = got->answer.len, at = 12;
        unsigned records = get_be16(p + 6) + get_be16(p + 8) + get_be16(p + 10);
        *count = 0;
        while (p[at])
                at += 1u + p[at];
        at += 5;
        for (unsigned i = 0; i < records; i++) {
                size_t start = at;
                while (p[at] && p[at] < 0xc0)
                        at += 1u + p[at];
                at += p[at] ? 2 : 1;
                if (get_be16(p + at) == DNS_OPT) {
                        (*count)++;
                        opt = opt ? opt : p + start;
                }
                at += 10u + get_be16(p + at + 8);
        }
        assert_int_equal(at, len);
        return opt;
}
