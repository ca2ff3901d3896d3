/* SPDX-License-Identifier: MIT */
#include "message.h"

static struct wire_response response = {.flags2 = DNS_RD | DNS_AA, .flags3 = DNS_RA | DNS_AD};
static struct encode_params params = {.expiry = TEST_NOW + 60, .life = 60, .dnssec_ok = true};
static _Alignas(4) uint8_t entry[4096];

static void init(struct entry_key *key, uint16_t type, const char *extra)
{
        uint8_t name[255];
        size_t len = name_wire("wWw.Example.com", name);
        entry_key_init(key, name, len, type, true, false, (const uint8_t *)extra, strlen(extra));
}

static void check_name(const struct entry_view *view)
{
        uint8_t expected[255], name[255];
        size_t len = name_wire("www.example.com", expected);
        assert_int_equal(entry_view_qname(view, name), len);
        assert_memory_equal(name, expected, len);
}

static void a_plain_entry(void **state)
{
        (void)state;
        struct entry_key key;
        struct entry_view view;
        init(&key, DNS_A, "");
        size_t size = entry_encode(&key, &response, &params, entry, sizeof entry);
        entry_view_init(&view, entry);
        check_name(&view);
        assert_int_equal(view.size, size);
        assert_int_equal(view.qtype, DNS_A);
        assert_int_equal(view.rcode, 0);
        assert_int_equal(view.flags, ENTRY_RD | ENTRY_DO | ENTRY_AA | ENTRY_RA | ENTRY_AD);
        assert_int_equal(view.ext, 0);
        assert_null(view.extra);
        assert_null(view.scopes);
        assert_null(view.ede);
        assert_null(view.page);
        assert_false(view.no_answer);
        assert_non_null(view.body);
        assert_int_equal(entry_expiry(entry), TEST_NOW + 60);
}

static void b48_everything_that_an_entry_can_have(void **state)
{
        (void)state;
        struct entry_key key;
        struct entry_view view;
        static const struct entry_scope scopes[] = {{24, 1}, {16, 300}, {64 + 48, 2}};
        char text[700];
        memset(text, 't', sizeof text);
        init(&key, 65280, "\3tag");

        struct wire_response full = response;
        struct encode_params with = params;
        full.rcode = DNS_NXDOMAIN;
        full.ede_count = 2;
        full.ede[0] = (struct wire_ede){(const uint8_t *)text, 6, sizeof text};
        full.ede[1] = (struct wire_ede){NULL, 22, 0};
        with.scopes = scopes;
        with.scopes_count = sizeof scopes / sizeof *scopes;
        with.ageless = true;
        with.truncated = true;
        size_t size = entry_encode(&key, &full, &with, entry, sizeof entry);
        entry_view_init(&view, entry);
        check_name(&view);
        assert_int_equal(view.size, size);
        assert_int_equal(view.qtype, 65280);
        assert_int_equal(view.rcode, DNS_NXDOMAIN);
        assert_int_equal(view.ext,
                         EXT_RCODE | EXT_EXTRA | EXT_SCOPES | EXT_EDE | EXT_TRUNCATED | EXT_AGELESS);
        assert_int_equal(view.extra_len, 4);
        assert_memory_equal(view.extra, "\3tag", 4);
        assert_int_equal(view.scopes_count, 3);
        assert_memory_equal(view.scopes, "\x18\0\1\x10\1\x2c\x70\0\2", 9);
        assert_int_equal(view.ede_count, 2);
        assert_memory_equal(view.ede + 2 + 2, text, sizeof text);
        /* No runs. */
        assert_int_equal(*view.body, 0);
        assert_true(entry_key_match(&key, entry));
}

static void a_large_entry_has_its_size_in_four_bytes(void **state)
{
        (void)state;
        struct entry_key key;
        struct entry_view view;
        char text[2000];
        memset(text, 't', sizeof text);
        init(&key, DNS_A, "");
        struct wire_response large = response;
        large.ede_count = 1;
        bool seen_byte = false, seen_word = false;
        for (uint16_t len = 980; len < 1030; len++) {
                large.ede[0] = (struct wire_ede){(const uint8_t *)text, 6, len};
                size_t size = entry_encode(&key, &large, &params, entry, sizeof entry);
                assert_int_equal(entry_size(entry), size);
                seen_byte |= entry[ENTRY_AT_SIZE] != 0;
                seen_word |= entry[ENTRY_AT_SIZE] == 0;
                assert_int_equal(entry[ENTRY_AT_SIZE] != 0, size <= ENTRY_SIZE_BYTE_MAX);
                entry_view_init(&view, entry);
                check_name(&view);
                assert_int_equal(view.size, size);
                assert_true(view.body < entry + size && view.body + 1 + ENTRY_ALIGN > entry + size);
        }
        assert_true(seen_byte && seen_word);
}

static void a_list_of_scopes_alone(void **state)
{
        (void)state;
        struct entry_key key;
        struct entry_view view;
        static const struct entry_scope scopes[] = {{24, 1}, {64 + 56, 2}};
        struct encode_params with = params;
        with.scopes = scopes;
        with.scopes_count = sizeof scopes / sizeof *scopes;
        init(&key, DNS_A, "");
        size_t size = entry_encode_scopes(&key, &with, entry, sizeof entry);
        assert_int_not_equal(size, 0);
        entry_view_init(&view, entry);
        check_name(&view);
        assert_int_equal(view.size, size);
        assert_true(view.no_answer);
        assert_null(view.body);
        assert_int_equal(view.scopes_count, 2);
        assert_memory_equal(view.scopes, "\x18\0\1\x78\0\2", 6);
        assert_true(entry_key_match(&key, entry));
}

static void a_life_is_kept_to_within_a_sixteenth(void **state)
{
        (void)state;
        for (uint32_t life = 1; life < 200000; life++) {
                uint32_t kept = life_decode(life_encode(life));
                assert_true(kept <= life && life - kept <= life / 16);
        }
        assert_true(life_decode(life_encode(0x7fffffff)) > 86400);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_plain_entry),
            cmocka_unit_test(b48_everything_that_an_entry_can_have),
            cmocka_unit_test(a_large_entry_has_its_size_in_four_bytes),
            cmocka_unit_test(a_list_of_scopes_alone),
            cmocka_unit_test(a_life_is_kept_to_within_a_sixteenth),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
