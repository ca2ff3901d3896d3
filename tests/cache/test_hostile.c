/* SPDX-License-Identifier: MIT
 * Group F of the behaviours: malformed and hostile packets, tokens and options through the C ABI. */
#include "kit.h"

#include <errno.h>
#include <stdlib.h>

#include "token.h"
#include "wire/bytes.h"
#include "wire/dns.h"

static const struct ask plain = {"a.example", 1, .rd = true};

/* The question of `plain` and bytes behind it, with these counts. */
static int look_with(const void *tail, size_t len, uint8_t an, uint8_t ar)
{
        /* On the heap and exactly as long as it is, so that a sanitizer sees a byte too far. */
        uint8_t packet[1024];
        size_t at = ask_packet(&plain, packet);
        uint8_t *exact = malloc(at + len);
        packet[7] = an;
        packet[11] = ar;
        memcpy(exact, packet, at);
        if (len)
                memcpy(exact + at, tail, len);
        int outcome = look_packet(&kit, exact, at + len, &plain)->outcome;
        free(exact);
        return outcome;
}

static void b58_crafted_opts_bypass(void **state)
{
        (void)state;
        fill(&kit, plain, REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        static const uint16_t lengths[] = {5, 6, 7, 8, 0xffff};
        uint8_t opt[19] = {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 8, 0, 8};
        for (size_t i = 0; i < 5; i++) {
                put_be16(opt + 13, lengths[i]);
                assert_int_equal(look_with(opt, 19, 0, 1), SARDINE_BYPASS);
        }
        put_be16(opt + 9, 200); /* RDLENGTH beyond the packet */
        assert_int_equal(look_with(opt, 19, 0, 1), SARDINE_BYPASS);
        static const uint8_t two[22] = {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0, 0, 0, 41, 4, 208};
        assert_int_equal(look_with(two, 22, 0, 2), SARDINE_BYPASS);
        static const uint8_t owned[13] = {1, 'x', 0, 0, 41, 4, 208};
        assert_int_equal(look_with(owned, 13, 0, 1), SARDINE_BYPASS);
        assert_int_equal(look_with(two, 11, 1, 0), SARDINE_BYPASS); /* OPT among the answers */
        assert_int_equal(look_with(two, 11, 0, 1), SARDINE_HIT);
}

static void b60_what_one_side_ignores_bypasses(void **state)
{
        (void)state;
        fill(&kit, plain, REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        assert_int_equal(look_with("", 0, 0, 0), SARDINE_HIT);
        assert_int_equal(look_with("\0", 1, 0, 0), SARDINE_BYPASS);
        static const uint8_t a[16] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4};
        assert_int_equal(look_with(a, 16, 1, 0), SARDINE_BYPASS);
        assert_int_equal(look_with(a, 16, 0, 1), SARDINE_BYPASS);
        assert_int_equal(look_with("", 0, 0, 1), SARDINE_BYPASS);
        struct sardine_stats stats = kit_stats(&kit);
        assert_int_equal(stats.bypass, 4);
        assert_int_equal(stats.reasons[SARDINE_BYPASS_TRAILING], 1);
        assert_int_equal(stats.reasons[SARDINE_BYPASS_RECORDS], 2);
        assert_int_equal(stats.reasons[SARDINE_BYPASS_MALFORMED], 1);
}

static int stop_never(void *ctx, const struct sardine_entry_view *entry)
{
        (void)entry;
        ++*(unsigned *)ctx;
        return 0;
}

static void b59_bad_rdata_is_never_stored(void **state)
{
        (void)state;
        static const struct {
                uint16_t type;
                uint16_t rdlen;
                const char *rdata;
        } bad[] = {
            {DNS_A, 3, "abc"},
            {DNS_A, 5, "abcde"},
            {DNS_A, 400, "abcd"},
            {DNS_AAAA, 15, "abcdefghijklmno"},
            {DNS_CNAME, 2, "\xc0\x2b"},            /* points at itself */
            {DNS_CNAME, 2, "\xc0\xff"},            /* forward, beyond the end */
            {DNS_CNAME, 2, "\xc0\x00"},            /* into the header */
            {DNS_CNAME, 4, "\1x\0\0"},             /* a byte behind the name */
            {DNS_MX, 2, "\0\1"},                   /* no name */
            {DNS_SOA, 6, "\0\0\0\0\0\0"},          /* too short */
            {DNS_TXT, 3, "\5ab"},                  /* string beyond the rdata */
            {DNS_TXT, 0, ""},                      /* no string at all */
            {DNS_RRSIG, 18, "0123456789abcdefgh"}, /* no signer */
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                uint8_t packet[128] = {0, 0, DNS_QR, 0, 0, 1, 0, 1};
                static const uint8_t question[] = "\1a\7example\0\0\1\0\1";
                size_t at = 12 + sizeof question - 1;
                memcpy(packet + 12, question, sizeof question - 1);
                put_be16(packet + at, 0xc00c);
                put_be16(packet + at + 2, bad[i].type);
                put_be16(packet + at + 4, 1);
                put_be32(packet + at + 6, 300);
                put_be16(packet + at + 10, bad[i].rdlen);
                size_t len = bad[i].rdlen < 100 ? bad[i].rdlen : 4;
                memcpy(packet + at + 12, bad[i].rdata, len);
                assert_int_equal(look(&kit, plain)->outcome, SARDINE_MISS);
                unsigned reason;
                uint8_t *exact = malloc(at + 12 + len);
                memcpy(exact, packet, at + 12 + len);
                if (put_packet(&kit, exact, at + 12 + len, &reason) != SARDINE_REFUSED ||
                    reason != SARDINE_REFUSED_MALFORMED)
                        fail_msg("case %zu: %s", i, sardine_reason_name(reason));
                free(exact);
        }
        unsigned calls = 0;
        assert_int_equal(sardine_walk(kit.cache, NULL, stop_never, &calls), 0);
}

static void b62_other_names_records_answer_nothing(void **state)
{
        (void)state;
        fill(&kit, plain,
             REPLY("a.example", 1,
                   .records = "a.example 300 IN CNAME c.example\nc.example 300 IN A 192.0.2.1\n"
                              "-- authority\nexample 300 IN NS www.bank.example\n"
                              "-- additional\nwww.bank.example 300 IN A 203.0.113.66"));
        assert_int_equal(look(&kit, plain)->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("www.bank.example", 1, .rd = true))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("c.example", 1, .rd = true))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("example", DNS_NS, .rd = true))->outcome, SARDINE_MISS);
}

static void b64_pointer_chains_are_bounded(void **state)
{
        (void)state;
        /* Owners that each point at the previous owner, one label longer, until names are at their longest;
         * then thousands of records that point at the longest. The first answers the question, so that
         * nothing but their cost speaks against them: cheap enough to be proven, or refused as too complex.
         */
        uint8_t *packet = calloc(1, 65535);
        packet[2] = DNS_QR;
        packet[5] = 1;
        memcpy(packet + 12, "\1a\7example\0\0\1\0\1", 15);
        size_t at = 27;
        unsigned count = 1, longest = 12;
        static const uint8_t first[] = "\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1";
        memcpy(packet + at, first, sizeof first - 1);
        at += sizeof first - 1;
        for (; at + 20 < 65535; count++) {
                if (count < 110) {
                        size_t start = at;
                        packet[at++] = 1;
                        packet[at++] = 'x';
                        put_be16(packet + at, (uint16_t)(0xc000 | longest));
                        longest = (unsigned)start;
                } else {
                        put_be16(packet + at, (uint16_t)(0xc000 | longest));
                }
                at += 2;
                memcpy(packet + at, "\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1", 14);
                at += 14;
        }
        put_be16(packet + 6, (uint16_t)count);
        assert_int_equal(look(&kit, plain)->outcome, SARDINE_MISS);
        unsigned reason;
        if (put_packet(&kit, packet, at, &reason) == SARDINE_REFUSED) {
                assert_int_equal(reason, SARDINE_REFUSED_COMPLEX);
        } else {
                struct got *got = look(&kit, ASK("a.example", 1, .rd = true, .transport = SARDINE_TCP));
                assert_int_equal(got->outcome, SARDINE_HIT);
        }
        free(packet);
}

static void hostile_tokens_are_refused(void **state)
{
        (void)state;
        struct sardine_token good = look(&kit, plain)->token;
        size_t len;
        struct reply reply = REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1");
        uint8_t *packet = reply_packet(&reply, &len);
        for (uint32_t size = 0; size < 700; size++) {
                struct sardine_token cut = good;
                if (size == good.len)
                        continue;
                cut.len = (uint16_t)size;
                assert_int_equal(sardine_insert(kit.cache, &cut, packet, len, NULL, NULL), SARDINE_ERR_TOKEN);
        }
        /* Any byte changed: an error or an ordinary outcome, never harm. */
        for (uint16_t i = 0; i < good.len; i++)
                for (unsigned value = 0; value < 256; value++) {
                        struct sardine_token bad = good;
                        bad.bytes[i] = (uint8_t)value;
                        int outcome = sardine_insert(kit.cache, &bad, packet, len, NULL, NULL);
                        assert_true(outcome == SARDINE_ERR_TOKEN || outcome >= 0);
                }
        free(packet);
        /* The library's own view of the token: what was written is read. */
        struct token token;
        assert_true(token_read(&good, &token));
        struct sardine_token again;
        token_write(&again, &token);
        assert_int_equal(again.len, good.len);
        assert_memory_equal(again.bytes, good.bytes, good.len);
}

static void b61_odd_options_are_refused_or_work(void **state)
{
        (void)state;
        static const uint64_t entries[] = {0, 1, 2, UINT64_MAX};
        static const uint64_t bytes[] = {0, 1, 4096, 1 << 20};
        for (size_t i = 0; i < 4; i++)
                for (size_t j = 0; j < 4; j++) {
                        struct kit odd;
                        kit_init(&odd);
                        odd.options.max_entries = entries[i];
                        odd.options.max_bytes = bytes[j];
                        int err = sardine_create(&odd.options, &odd.cache);
                        if (err) {
                                assert_true(err == SARDINE_ERR_OPTION || err == -ENOMEM);
                                continue;
                        }
                        fill(&odd, plain, REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
                        assert_int_equal(look(&odd, plain)->outcome, SARDINE_HIT);
                        sardine_destroy(odd.cache);
                }
        sardine_cache *cache;
        struct sardine_options o;
#define REFUSED(change)                                                                                      \
        do {                                                                                                 \
                sardine_options_init(&o, sizeof o);                                                          \
                change;                                                                                      \
                assert_int_equal(sardine_create(&o, &cache), SARDINE_ERR_OPTION);                            \
        } while (0)
        REFUSED(o.max_ttl = 0);
        REFUSED(o.max_ttl = 0x80000000);
        REFUSED(o.stale_ttl = 0);
        REFUSED(o.max_bytes = 1);
        REFUSED(o.min_ttl = 86401);
        REFUSED(o.failure_ttl = 301);
        REFUSED(o.max_entry_size = 511);
        REFUSED(o.max_entry_size = 65536);
        REFUSED(o.udp_payload_size = 511);
        REFUSED(o.dont_age = 2);
        REFUSED(o.refresh_percent = 51);
        REFUSED(o.segment_size = 5000);
        REFUSED(o.n_split_options = 1);
        REFUSED(o.n_split_options = 17);
        REFUSED(o.max_bytes = UINT64_MAX);
#undef REFUSED
}

static void null_and_size_mistakes_are_errors(void **state)
{
        (void)state;
        struct sardine_options o;
        sardine_options_init(&o, sizeof o);
        sardine_cache *cache;
        assert_int_equal(sardine_create(NULL, &cache), -EINVAL);
        assert_int_equal(sardine_create(&o, NULL), -EINVAL);
        o.sz = 8;
        assert_int_equal(sardine_create(&o, &cache), -EINVAL);
        struct {
                struct sardine_options options;
                uint64_t newer;
        } future = {.newer = 0};
        sardine_options_init(&future.options, sizeof future);
        assert_int_equal(future.options.sz, sizeof future);
        assert_int_equal(sardine_create(&future.options, &cache), 0);
        sardine_destroy(cache);
        future.newer = 1;
        assert_int_equal(sardine_create(&future.options, &cache), -E2BIG);
        sardine_destroy(NULL);

        uint8_t buf[64], packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf};
        q.len = ask_packet(&plain, packet);
        assert_int_equal(sardine_lookup(NULL, &q, &a), -EINVAL);
        assert_int_equal(sardine_lookup(kit.cache, NULL, &a), -EINVAL);
        assert_int_equal(sardine_lookup(kit.cache, &q, NULL), -EINVAL);
        q.tag_len = 1;
        assert_int_equal(sardine_lookup(kit.cache, &q, &a), -EINVAL);
        q.tag_len = 0;
        assert_int_equal(sardine_lookup(kit.cache, &q, &a), SARDINE_MISS); /* no token wanted: fine */
        struct sardine_stats stats = {.sz = 8};
        assert_int_equal(sardine_stats_get(kit.cache, &stats), -EINVAL);
        assert_int_equal(sardine_stats_get(NULL, &stats), -EINVAL);
        assert_int_equal(sardine_expunge(NULL, NULL), -EINVAL);
        assert_int_equal(sardine_expunge_to(NULL, 0), -EINVAL);
        assert_int_equal(sardine_purge_expired(NULL, 0), -EINVAL);
        assert_int_equal(sardine_walk(NULL, NULL, stop_never, NULL), -EINVAL);
        assert_int_equal(sardine_insert(NULL, NULL, NULL, 0, NULL, NULL), -EINVAL);
        struct sardine_selector sel = {.sz = sizeof sel, .name = (const uint8_t *)"\3ab", .name_len = 3};
        assert_int_equal(sardine_expunge(kit.cache, &sel), SARDINE_ERR_NAME);
        const struct sardine_selector some[2] = {{.sz = sizeof *some}, sel};
        assert_int_equal(sardine_expunge_many(kit.cache, 2, some), SARDINE_ERR_NAME);
        assert_int_equal(sardine_expunge_many(kit.cache, 1, NULL), -EINVAL);
        assert_int_equal(sardine_expunge_many(NULL, 1, some), -EINVAL);
        assert_int_equal(sardine_expunge_many(kit.cache, SIZE_MAX, some), -ENOMEM);
        assert_int_equal(sardine_expunge_many(kit.cache, 0, NULL), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup_open, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b58_crafted_opts_bypass),
            T(b59_bad_rdata_is_never_stored),
            T(b60_what_one_side_ignores_bypasses),
            T(b61_odd_options_are_refused_or_work),
            T(b62_other_names_records_answer_nothing),
            T(b64_pointer_chains_are_bounded),
            T(hostile_tokens_are_refused),
            T(null_and_size_mistakes_are_errors),
        };
        return cmocka_run_group_tests_name("cache/hostile", tests, NULL, NULL);
}
