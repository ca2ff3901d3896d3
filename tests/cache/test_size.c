/* SPDX-License-Identifier: MIT
 * Groups C (in part), D and E of the behaviours: size, truncation, OPT. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/bytes.h"
#include "wire/dns.h"

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.udp_payload_size = 4096;
        kit_open(&kit);
        return 0;
}

/* `count` TXT records with `size` bytes of text each (at most 255). */
static char *txt_records(const char *name, unsigned count, unsigned size)
{
        size_t room = count * (strlen(name) + size + 40) + 1;
        char *text = malloc(room), *p = text;
        for (unsigned i = 0; i < count; i++) {
                p += sprintf(p, "%s 300 IN TXT \"%05u", name, i);
                memset(p, 'x', size - 5);
                p += size - 5;
                p += sprintf(p, "\"\n");
        }
        return text;
}

static void fill_txt(const char *name, unsigned count, unsigned size)
{
        char *records = txt_records(name, count, size);
        fill(&kit, ASK(name, DNS_TXT, .transport = SARDINE_TCP), REPLY(name, DNS_TXT, .records = records));
        free(records);
}

static void check_limit(const struct got *got, size_t limit, bool truncated, unsigned count)
{
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(got->answer.len <= limit);
        assert_int_equal(!!(got->buf[2] & DNS_TC), truncated);
        assert_int_equal(answers(got), count);
}

static void b14_size_is_not_identity(void **state)
{
        (void)state;
        fill_txt("t.example", 6, 200); /* about 1300 bytes */
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = 1232)), 1232, true, 0);
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = 1400)), 1400, false, 6);
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = 4096)), 4096, false, 6);
        fill_txt("s.example", 1, 250);
        check_limit(look(&kit, ASK("s.example", DNS_TXT, .size = 100)), 512, false, 1);
        assert_int_equal(kit_stats(&kit).misses, 2);
}

static void b15_b49_streams_get_the_whole(void **state)
{
        (void)state;
        fill_txt("t.example", 28, 180); /* 5 KB and more */
        static const uint16_t sizes[] = {0, 512, 1232, 4096};
        for (size_t i = 0; i < 4; i++) {
                size_t limit = sizes[i] ? sizes[i] : 512;
                struct got *got = look(&kit, ASK("t.example", DNS_TXT, .size = sizes[i]));
                check_limit(got, limit, true, 0);
                unsigned opts;
                find_opt(got, &opts);
                assert_int_equal(opts, sizes[i] ? 1 : 0);
        }
        for (uint32_t t = SARDINE_TCP; t <= SARDINE_DOQ; t++)
                check_limit(look(&kit, ASK("t.example", DNS_TXT, .transport = t, .size = 512)), 65535, false,
                            28);
}

static void b49_exact_boundary(void **state)
{
        (void)state;
        fill_txt("t.example", 5, 200);
        struct got *got = look(&kit, ASK("t.example", DNS_TXT, .size = 4096));
        uint16_t exact = (uint16_t)got->answer.len;
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = exact)), exact, false, 5);
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = exact - 1)), exact - 1u, true, 0);
}

static void b49_server_limit_applies_too(void **state)
{
        (void)state;
        kit_close(&kit);
        kit_init(&kit);
        kit_open(&kit); /* 1232 by default */
        fill_txt("t.example", 7, 200);
        check_limit(look(&kit, ASK("t.example", DNS_TXT, .size = 4096)), 1232, true, 0);
}

static void b49_additional_goes_first_and_without_tc(void **state)
{
        (void)state;
        char records[8192], *p = records;
        p += sprintf(p, "m.example 300 IN MX 10 a.m.example.\n-- additional\n");
        for (int i = 0; i < 60; i++)
                p += sprintf(p, "a.m.example 300 IN A 192.0.2.%d\n", i + 1);
        fill(&kit, ASK("m.example", DNS_MX), REPLY("m.example", DNS_MX, .records = records));
        struct got *got = look(&kit, ASK("m.example", DNS_MX));
        check_limit(got, 512, false, 1);
        assert_int_equal(ldns_pkt_arcount(got->pkt), 0);
        got = look(&kit, ASK("m.example", DNS_MX, .size = 4096));
        assert_int_equal(count_type(got, DNS_A), 60);
}

static void b50_bare_truncation_is_for_udp_and_off_by_default(void **state)
{
        (void)state;
        unsigned reason;
        struct reply tc = REPLY("t.example", DNS_TXT, .tc = true);
        assert_int_equal(look(&kit, ASK("t.example", DNS_TXT))->outcome, SARDINE_MISS);
        assert_int_equal(put(&kit, tc, &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_TRUNCATED);
        kit_close(&kit);
        kit.options.truncated_ttl = 5;
        kit_open(&kit);
        fill(&kit, ASK("t.example", DNS_TXT), tc);
        struct got *got = look(&kit, ASK("t.example", DNS_TXT));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(got->buf[2] & DNS_TC);
        assert_int_equal(look(&kit, ASK("t.example", DNS_TXT, .transport = SARDINE_TCP))->outcome,
                         SARDINE_MISS);
        char *records = txt_records("t.example", 28, 180);
        assert_int_equal(put(&kit, REPLY("t.example", DNS_TXT, .records = records), NULL), SARDINE_REPLACED);
        free(records);
        kit_wait(&kit, 6);
        got = look(&kit, ASK("t.example", DNS_TXT));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(got->buf[2] & DNS_TC);
        assert_int_equal(answers(look(&kit, ASK("t.example", DNS_TXT, .transport = SARDINE_TCP))), 28);
}

static void b51_partial_answers_are_not_kept(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.truncated_ttl = 5;
        kit_open(&kit);
        assert_int_equal(look(&kit, ASK("t.example", DNS_TXT))->outcome, SARDINE_MISS);
        char *records = txt_records("t.example", 10, 50);
        unsigned reason;
        assert_int_equal(put(&kit, REPLY("t.example", DNS_TXT, .tc = true, .records = records), &reason),
                         SARDINE_REFUSED);
        free(records);
        assert_int_equal(reason, SARDINE_REFUSED_TRUNCATED);
        assert_int_equal(look(&kit, ASK("t.example", DNS_TXT, .transport = SARDINE_TCP))->outcome,
                         SARDINE_MISS);
}

/* A response of exactly `want` bytes: TXT records with root owner by pointer. */
static uint8_t *sized_response(size_t want, const char *label)
{
        uint8_t *p = calloc(1, want);
        size_t at = 12, name = strlen(label);
        unsigned count = 0;
        p[2] = DNS_QR;
        p[5] = 1;
        p[at++] = (uint8_t)name;
        memcpy(p + at, label, name);
        at += name + 1;
        p[at + 1] = DNS_TXT;
        p[at + 3] = 1;
        at += 4;
        while (at < want) {
                /* A record: 12 bytes and one or more character-strings. */
                size_t left = want - at;
                size_t rdlen = left > 1012 + 13 ? 1000 : left - 12;
                put_be16(p + at, 0xc00c);
                put_be16(p + at + 2, DNS_TXT);
                put_be16(p + at + 4, DNS_IN);
                put_be32(p + at + 6, 300);
                put_be16(p + at + 10, (uint16_t)rdlen);
                at += 12;
                for (size_t end = at + rdlen; at < end;) {
                        size_t text = end - at - 1 > 255 ? 255 : end - at - 1;
                        p[at] = (uint8_t)text;
                        memset(p + at + 1, 'a' + (int)(count % 26), text);
                        at += text + 1;
                }
                count++;
        }
        put_be16(p + 6, (uint16_t)count);
        return p;
}

static void b52_no_cliffs(void **state)
{
        (void)state;
        static const size_t sizes[] = {511, 512, 1500, 4096, 4097, 16384, 65535};
        kit_close(&kit);
        kit.options.max_bytes = 64 << 20;
        for (int round = 0; round < 2; round++) {
                kit.options.max_entry_size = round ? 4096 : 65535;
                kit_open(&kit);
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                        char label[16];
                        snprintf(label, sizeof label, "s%zu", sizes[i]);
                        struct ask ask = ASK(label, DNS_TXT, .transport = SARDINE_TCP);
                        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
                        uint8_t *packet = sized_response(sizes[i], label);
                        unsigned reason;
                        int outcome = put_packet(&kit, packet, sizes[i], &reason);
                        if (sizes[i] > kit.options.max_entry_size) {
                                assert_int_equal(outcome, SARDINE_REFUSED);
                                assert_int_equal(reason, SARDINE_REFUSED_TOO_LARGE);
                                assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
                        } else {
                                assert_int_equal(outcome, SARDINE_STORED);
                                struct got *got = look(&kit, ask);
                                assert_int_equal(got->outcome, SARDINE_HIT);
                                assert_int_equal(got->answer.len, sizes[i]);
                        }
                        free(packet);
                }
                assert_int_equal(kit_stats(&kit).reasons[SARDINE_REFUSED_TOO_LARGE], round ? 3 : 0);
                kit_close(&kit);
        }
        kit_open(&kit);
}

static void b52_small_buffer_is_told_the_size(void **state)
{
        (void)state;
        fill_txt("t.example", 3, 200);
        struct ask ask = ASK("t.example", DNS_TXT, .size = 4096);
        uint8_t packet[1024], small[300];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_answer answer = {.sz = sizeof answer, .buf = small, .cap = sizeof small};
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_lookup(kit.cache, &q, &answer), -EMSGSIZE);
        size_t need = answer.len;
        assert_int_equal(need, look(&kit, ask)->answer.len);
}

static void b53_b63_lying_packets_are_refused(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                const char *packet;
                size_t len;
                unsigned reason;
        } bad[] = {
#define P(what, text, reason) {what, text, sizeof text - 1, reason}
            P("cut in the record",
              "\0\0\x80\0\0\1\0\1\0\0\0\0\1a\7example\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0",
              SARDINE_REFUSED_MALFORMED),
            P("one record more than there is",
              "\0\0\x80\0\0\1\0\2\0\0\0\0\1a\7example\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1",
              SARDINE_REFUSED_MALFORMED),
            P("trailing byte",
              "\0\0\x80\0\0\1\0\1\0\0\0\0\1a\7example\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1\0",
              SARDINE_REFUSED_MALFORMED),
            P("other name", "\0\0\x80\0\0\1\0\0\0\0\0\0\1b\7example\0\0\1\0\1", SARDINE_REFUSED_MISMATCH),
            P("other type", "\0\0\x80\0\0\1\0\0\0\0\0\0\1a\7example\0\0\x1c\0\1", SARDINE_REFUSED_MISMATCH),
            P("other class", "\0\0\x80\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\3", SARDINE_REFUSED_MISMATCH),
            P("a query", "\0\0\0\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1", SARDINE_REFUSED_MISMATCH),
            P("two questions", "\0\0\x80\0\0\2\0\0\0\0\0\0\1a\7example\0\0\1\0\1\1a\7example\0\0\1\0\1",
              SARDINE_REFUSED_MISMATCH),
#undef P
        };
        assert_int_equal(look(&kit, ASK("a.example", 1))->outcome, SARDINE_MISS);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                unsigned reason;
                int outcome = put_packet(&kit, (const uint8_t *)bad[i].packet, bad[i].len, &reason);
                if (outcome != SARDINE_REFUSED || reason != bad[i].reason)
                        fail_msg("%s: %d, %s", bad[i].what, outcome, sardine_reason_name(reason));
        }
        struct sardine_stats stats = kit_stats(&kit);
        assert_int_equal(stats.refused, sizeof bad / sizeof *bad);
        assert_int_equal(stats.reasons[SARDINE_REFUSED_MISMATCH], 5);
        assert_int_equal(stats.entries, 0);
}

static void b54_b55_opt_for_those_who_have_one(void **state)
{
        (void)state;
        static const uint8_t theirs[] = "\0\3\0\4nsid\0\x0a\0\x10"
                                        "CLIENT-1SERVER-1\0\x0c\0\2\0";
        fill(&kit, ASK("a.example", 1, .edns = true),
             REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1", .opt = theirs,
                   .opt_len = sizeof theirs));
        fill(&kit, ASK("f.example", 1), REPLY("f.example", 1, .rcode = DNS_SERVFAIL));
        fill(&kit, ASK("n.example", 1),
             REPLY("n.example", 1, .rcode = DNS_NXDOMAIN,
                   .records = "-- authority\nexample 60 IN SOA ns. host. 1 2 3 4 60"));
        static const char *const names[] = {"a.example", "f.example", "n.example"};
        for (size_t i = 0; i < 3; i++) {
                unsigned opts;
                struct got *got = look(&kit, ASK(names[i], 1));
                find_opt(got, &opts);
                assert_int_equal(opts, 0);
                got = look(&kit, ASK(names[i], 1, .size = 1232));
                const uint8_t *opt = find_opt(got, &opts);
                assert_int_equal(opts, 1);
                assert_int_equal(opt[0], 0);
                assert_int_equal(get_be16(opt + 3), 4096); /* our size */
                assert_int_equal(get_be32(opt + 5), 0);
                assert_int_equal(get_be16(opt + 9), 0); /* no option of the upstream's */
        }
}

static void b56_versions_and_extended_rcodes(void **state)
{
        (void)state;
        fill(&kit, ASK("a.example", 1, .edns = true),
             REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        struct got *got = look(&kit, ASK("a.example", 1, .edns_version = 1));
        assert_int_equal(got->outcome, SARDINE_BYPASS);
        assert_int_equal(got->answer.reason, SARDINE_BYPASS_EDNS_VERSION);
        assert_int_equal(look(&kit, ASK("b.example", 1, .edns = true))->outcome, SARDINE_MISS);
        unsigned reason;
        assert_int_equal(put(&kit, REPLY("b.example", 1, .ext_rcode = 1), &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_RCODE);
}

static void b48_b57_extended_errors(void **state)
{
        (void)state;
        static const uint8_t ede[] = "\0\x0f\0\x0a\0\7expired!";
        fill(&kit, ASK("a.example", 1, .edns = true),
             REPLY("a.example", 1, .rcode = DNS_SERVFAIL, .opt = ede, .opt_len = sizeof ede - 1));
        struct got *got = look(&kit, ASK("a.example", 1, .edns = true));
        assert_non_null(memmem(got->buf, got->answer.len, "expired!", 8));
        got = look(&kit, ASK("a.example", 1));
        assert_null(memmem(got->buf, got->answer.len, "expired!", 8));
        kit_close(&kit);
        kit.options.stale_window = 100;
        kit_open(&kit);
        fill(&kit, ASK("b.example", 1), REPLY("b.example", 1, .records = "b.example 5 IN A 192.0.2.1"));
        fill(&kit, ASK("n.example", 1),
             REPLY("n.example", 1, .rcode = DNS_NXDOMAIN,
                   .records = "-- authority\nexample 5 IN SOA ns. host. 1 2 3 4 60"));
        kit_wait(&kit, 10);
        got = look(&kit, ASK("b.example", 1, .edns = true, .flags = SARDINE_ALLOW_STALE));
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_non_null(memmem(got->buf, got->answer.len, "\0\x0f\0\2\0\3", 6));
        got = look(&kit, ASK("n.example", 1, .edns = true, .flags = SARDINE_ALLOW_STALE));
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_non_null(memmem(got->buf, got->answer.len, "\0\x0f\0\2\0\x13", 6));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b14_size_is_not_identity),
            T(b15_b49_streams_get_the_whole),
            T(b49_exact_boundary),
            T(b49_server_limit_applies_too),
            T(b49_additional_goes_first_and_without_tc),
            T(b50_bare_truncation_is_for_udp_and_off_by_default),
            T(b51_partial_answers_are_not_kept),
            T(b52_no_cliffs),
            T(b52_small_buffer_is_told_the_size),
            T(b53_b63_lying_packets_are_refused),
            T(b54_b55_opt_for_those_who_have_one),
            T(b56_versions_and_extended_rcodes),
            T(b48_b57_extended_errors),
        };
        return cmocka_run_group_tests_name("cache/size", tests, NULL, NULL);
}
