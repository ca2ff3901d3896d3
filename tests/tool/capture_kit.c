/* SPDX-License-Identifier: MIT
 * For the tests of sardinectl predict:
 *   capture_kit make FILE N     writes a capture of N different questions and their answers
 *   capture_kit fit FILE BYTES  fills a cache of that size with them: entries, evictions, bytes of answers */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sardine.h>

#include "tool/capture.h"
#include "wire/bytes.h"
#include "workload.h"

enum {
        TTL = 3600,
        IP_AND_UDP = 28,
        PORT = 53,
        CLIENT = 40000,
};

static void put_packet(FILE *file, uint32_t second, unsigned from, unsigned to, const uint8_t *bytes,
                       size_t len)
{
        uint8_t packet[IP_AND_UDP + WORKLOAD_RESPONSE_MAX] = {0x45, [8] = 64, [9] = 17};
        const uint32_t size = (uint32_t)(IP_AND_UDP + len), record[4] = {second, 0, size, size};
        put_be16(packet + 2, (uint16_t)size);
        put_be16(packet + 20, (uint16_t)from);
        put_be16(packet + 22, (uint16_t)to);
        put_be16(packet + 24, (uint16_t)(len + 8));
        memcpy(packet + IP_AND_UDP, bytes, len);
        if (fwrite(record, sizeof record, 1, file) != 1 || fwrite(packet, size, 1, file) != 1)
                exit(1);
}

static int make(const char *path, unsigned n)
{
        static const uint32_t header[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 101};
        uint8_t query[WORKLOAD_QUERY_MAX], response[WORKLOAD_RESPONSE_MAX];
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(header, sizeof header, 1, file) != 1)
                return 1;
        for (unsigned i = 0; i < n; i++) {
                size_t len = workload_query(1, i, query);
                put_packet(file, 1000 + i / 1000, CLIENT, PORT, query, len);
                len = workload_response(query, len, TTL, false, response);
                put_packet(file, 1000 + i / 1000, PORT, CLIENT, response, len);
        }
        return fclose(file) != 0;
}

static int fit(const char *path, uint64_t bytes)
{
        struct sardine_options options;
        struct sardine_stats stats = {.sz = sizeof stats};
        struct sardine_token token = {0};
        struct capture capture;
        struct capture_message message;
        sardine_cache *cache;
        sardine_options_init(&options, sizeof options);
        options.max_bytes = bytes;
        if (sardine_create(&options, &cache) != 0 || !capture_open(&capture, path))
                return 1;
        while (capture_next(&capture, &message)) {
                const struct sardine_query q = {.sz = sizeof q, .packet = message.bytes, .len = message.len};
                if (message.to == PORT ? sardine_token_init(cache, &q, &token) != 0
                                       : sardine_insert(cache, &token, message.bytes, message.len, NULL,
                                                        NULL) == SARDINE_REFUSED)
                        return 1;
        }
        sardine_stats_get(cache, &stats);
        printf("%llu %llu %llu\n", (unsigned long long)stats.entries, (unsigned long long)stats.evicted,
               (unsigned long long)stats.entry_bytes);
        capture_close(&capture);
        sardine_destroy(cache);
        return 0;
}

int main(int argc, char **argv)
{
        if (argc == 4 && strcmp(argv[1], "make") == 0)
                return make(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
        if (argc == 4 && strcmp(argv[1], "fit") == 0)
                return fit(argv[2], strtoull(argv[3], NULL, 10));
        return 2;
}
