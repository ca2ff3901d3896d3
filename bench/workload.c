/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include <stdio.h>
#include <string.h>

enum { TYPE_A = 1, TYPE_SOA = 6, TYPE_TXT = 16, TYPE_AAAA = 28, TYPE_OPT = 41 };

#define HEADER_LEN 12
#define OPT_LEN    11

/* The words are part of the definition: how well names pack depends on them. */
static const char *const hosts[] = {"www",   "api",  "cdn", "mail",   "img",   "static", "app", "edge",
                                    "login", "data", "m",   "assets", "video", "shop",   "news"};
static const char *const suffixes[] = {"com",   "net",    "org", "io", "de",
                                       "co.uk", "com.br", "jp",  "fr", "info"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

uint64_t workload_mix(uint64_t x)
{
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
}

static uint64_t next(uint64_t *state)
{
        return workload_mix(*state += 0x9e3779b97f4a7c15u);
}

static unsigned below(uint64_t *state, unsigned n)
{
        return (unsigned)(((next(state) >> 32) * n) >> 32);
}

static unsigned question(uint64_t seed, uint64_t i, char name[WORKLOAD_QUERY_MAX])
{
        uint64_t state = workload_mix(seed + 1) ^ workload_mix(~i);
        unsigned percent = below(&state, 100);
        char letters[13];
        unsigned n = 4 + below(&state, 9);
        for (unsigned k = 0; k < n; k++)
                letters[k] = (char)('a' + below(&state, 26));
        letters[n] = 0;
        const char *host = hosts[below(&state, COUNT(hosts))];
        const char *suffix = suffixes[below(&state, COUNT(suffixes))];
        snprintf(name, WORKLOAD_QUERY_MAX, "%s.%s%llx.%s", host, letters, (unsigned long long)i, suffix);
        return percent < 56 ? TYPE_A : percent < 81 ? TYPE_AAAA : TYPE_TXT;
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
        at[0] = (uint8_t)(value >> 8);
        at[1] = (uint8_t)value;
        return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
        return put16(put16(at, value >> 16), value & 0xffff);
}

static uint8_t *put_opt(uint8_t *at, unsigned flags)
{
        *at++ = 0;
        at = put16(at, TYPE_OPT);
        at = put16(at, WORKLOAD_UDP_SIZE);
        at = put32(at, flags);
        return put16(at, 0);
}

size_t workload_query(uint64_t seed, uint64_t i, uint8_t query[WORKLOAD_QUERY_MAX])
{
        char name[WORKLOAD_QUERY_MAX];
        unsigned type = question(seed, i, name);
        static const uint8_t rest[] = {0x01, 0, 0, 1, 0,
                                       0,    0, 0, 0, 1}; /* RD, one question, one additional */
        uint8_t *at = put16(query, i & 0xffff);
        memcpy(at, rest, sizeof rest);
        at += sizeof rest;
        for (const char *label = name; label;) {
                const char *dot = strchr(label, '.');
                size_t n = dot ? (size_t)(dot - label) : strlen(label);
                *at++ = (uint8_t)n;
                memcpy(at, label, n);
                at += n;
                label = dot ? dot + 1 : NULL;
        }
        *at++ = 0;
        at = put16(put16(at, type), 1);
        return (size_t)(put_opt(at, 0) - query);
}

void workload_text(uint64_t seed, uint64_t i, char text[WORKLOAD_QUERY_MAX])
{
        unsigned type = question(seed, i, text);
        strcat(text, type == TYPE_A ? " A" : type == TYPE_AAAA ? " AAAA" : " TXT");
}

size_t workload_question_end(const uint8_t *message, size_t len)
{
        size_t at = HEADER_LEN;
        if (len < HEADER_LEN || message[4] || message[5] != 1)
                return 0;
        while (at < len && message[at]) {
                if (message[at] > 63)
                        return 0;
                at += 1u + message[at];
        }
        at += 5; /* root, type, class */
        return at <= len && at <= HEADER_LEN + 255 + 4 ? at : 0;
}

uint64_t workload_question_hash(const uint8_t *message, size_t end)
{
        uint64_t hash = 0;
        for (size_t at = HEADER_LEN; at < end; at++) {
                uint8_t c = message[at];
                hash = (hash ^ (c >= 'A' && c <= 'Z' ? c | 0x20u : c)) * 0x100000001b3u;
        }
        return workload_mix(hash);
}

static uint8_t *put_rdata(uint8_t *at, unsigned type, uint64_t *state)
{
        if (type != TYPE_TXT) {
                unsigned n = type == TYPE_A ? 4 : 16;
                at = put16(at, n);
                for (unsigned k = 0; k < n; k += 4)
                        at = put32(at, (uint32_t)next(state));
                return at;
        }
        unsigned n = 64 + below(state, 161);
        at = put16(at, n + 1);
        *at++ = (uint8_t)n;
        uint64_t r = next(state);
        for (unsigned k = 0; k < n; k++)
                *at++ = (uint8_t)('a' + ((r >> (k % 32)) + k) % 26);
        return at;
}

size_t workload_response(const uint8_t *query, size_t len, uint32_t ttl, bool stream,
                         uint8_t response[WORKLOAD_RESPONSE_MAX])
{
        size_t end = workload_question_end(query, len);
        if (!end || query[2] & 0x80)
                return 0;
        unsigned type = query[end - 4] << 8 | query[end - 3];
        const uint8_t *opt = query + end;
        bool edns = query[11] && len >= end + OPT_LEN && !opt[0] && !opt[1] && opt[2] == TYPE_OPT;
        size_t limit = edns ? opt[3] << 8 | opt[4] : 512;
        if (limit < 512)
                limit = 512;

        memcpy(response, query, end);
        response[2] = 0x84 | (query[2] & 0x01); /* QR, AA, RD */
        response[3] = 0x80;                     /* RA */
        memset(response + 6, 0, 6);
        uint8_t *at = response + end;
        if (type == TYPE_A || type == TYPE_AAAA || type == TYPE_TXT) {
                uint64_t state = workload_question_hash(query, end);
                unsigned n = 1 + below(&state, 4);
                response[7] = (uint8_t)n;
                while (n--) {
                        at = put16(put16(at, 0xc000 | HEADER_LEN), type);
                        at = put32(put16(at, 1), ttl);
                        at = put_rdata(at, type, &state);
                }
        } else {
                response[9] = 1;
                *at++ = 0;
                at = put32(put16(put16(at, TYPE_SOA), 1), ttl);
                at = put16(at, 22);
                at = put16(at, 0); /* both names are the root */
                at = put32(put32(put32(at, 1), 3600), 600);
                at = put32(put32(at, 86400), ttl);
        }
        if (!stream && (size_t)(at - response) + (edns ? OPT_LEN : 0) > limit) {
                response[2] |= 0x02;
                response[7] = response[9] = 0;
                at = response + end;
        }
        if (edns) {
                response[11] = 1;
                at = put_opt(at, opt[7] << 8 & 0x8000);
        }
        return (size_t)(at - response);
}
