/* SPDX-License-Identifier: MIT */
#include "message.h"
#include "sardine.h"

static const uint8_t secret[192] = "a secret that is no secret, for these tests";

static void init(struct entry_key *key, const char *text, uint16_t type, bool rd, bool cd, const char *extra)
{
        uint8_t name[255];
        size_t len = name_wire(text, name);
        memset(key, 0xee, sizeof *key);
        entry_key_init(key, name, len, type, rd, cd, (const uint8_t *)extra, strlen(extra));
}

/* An empty answer under this key. */
static void make_entry(const struct entry_key *key, uint8_t entry[1024])
{
        static const struct wire_response response = {.flags2 = DNS_RD, .rcode = DNS_SERVFAIL};
        static const struct encode_params params = {.expiry = TEST_NOW, .life = 60};
        assert_int_not_equal(entry_encode(key, &response, &params, entry, 1024), 0);
}

/* Keys that differ from each other in one thing each. */
static size_t make_keys(struct entry_key keys[32])
{
        size_t n = 0;
        init(&keys[n++], "www.example.com", DNS_A, true, false, "");
        init(&keys[n++], "www.example.com", DNS_A, false, false, "");
        init(&keys[n++], "www.example.com", DNS_A, true, true, "");
        init(&keys[n++], "www.example.com", DNS_AAAA, true, false, "");
        init(&keys[n++], "www.example.com", 257, true, false, "");
        init(&keys[n++], "www.example.com", 258, true, false, "");
        init(&keys[n++], "www.example.com", DNS_A << 8, true, false, "");
        init(&keys[n++], "www.example.com", DNS_A, true, false, "\1x");
        init(&keys[n++], "www.example.com", DNS_A, true, false, "\1y");
        init(&keys[n++], "www.example.com", DNS_A, true, false, "\2xy");
        init(&keys[n++], "www.example.net", DNS_A, true, false, "");
        init(&keys[n++], "www.examplf.com", DNS_A, true, false, "");
        init(&keys[n++], "www.examplecom", DNS_A, true, false, "");
        init(&keys[n++], "api.example.com", DNS_A, true, false, "");
        init(&keys[n++], "example.com", DNS_A, true, false, "");
        init(&keys[n++], "com", DNS_A, true, false, "");
        init(&keys[n++], ".", DNS_A, true, false, "");
        init(&keys[n++], "www", DNS_A, true, false, "");
        init(&keys[n++], "www.com", DNS_A, true, false, "");
        init(&keys[n++], "www.example.com.example", DNS_A, true, false, "");
        init(&keys[n], "www.example.com", DNS_A, true, false, "");
        entry_key_set_page(&keys[n++], network_code(ECS_IPV4, 24), 0);
        init(&keys[n], "www.example.com", DNS_A, true, false, "");
        entry_key_set_page(&keys[n++], network_code(ECS_IPV4, 24), 1);
        init(&keys[n], "www.example.com", DNS_A, true, false, "");
        entry_key_set_page(&keys[n++], network_code(ECS_IPV4, 0), 0);
        init(&keys[n], "www.example.com", DNS_A, true, false, "");
        entry_key_set_page(&keys[n++], network_code(ECS_IPV6, 56), 0);
        init(&keys[n], "www.example.com", DNS_A, true, false, "\1x");
        entry_key_set_page(&keys[n++], network_code(ECS_IPV4, 24), 0);
        return n;
}

static void b01_every_part_of_the_key_is_compared(void **state)
{
        (void)state;
        struct entry_key keys[32];
        size_t n = make_keys(keys);
        for (size_t i = 0; i < n; i++) {
                _Alignas(4) uint8_t entry[1024];
                make_entry(&keys[i], entry);
                for (size_t j = 0; j < n; j++)
                        assert_int_equal(entry_key_match(&keys[j], entry), i == j);
        }
}

static void b02_the_hash_depends_on_every_part_and_on_the_secret(void **state)
{
        (void)state;
        struct entry_key keys[32];
        size_t n = make_keys(keys);
        for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < i; j++)
                        assert_true(entry_key_hash(&keys[i], secret, sizeof secret) !=
                                    entry_key_hash(&keys[j], secret, sizeof secret));
        }
        uint8_t other[192];
        memcpy(other, secret, sizeof other);
        other[100] ^= 1;
        struct entry_key *key = &keys[0];
        assert_true(entry_key_hash(key, secret, sizeof secret) == entry_key_hash(key, secret, sizeof secret));
        /* A short key is hashed with part of the secret only: change all of it. */
        for (size_t i = 0; i < sizeof other; i++)
                other[i] ^= 0x5a;
        assert_true(entry_key_hash(key, secret, sizeof secret) != entry_key_hash(key, other, sizeof other));
}

static void b26_case_does_not_matter_but_only_of_letters(void **state)
{
        (void)state;
        struct entry_key a, b;
        init(&a, "wWw.ExAmPlE.Com", DNS_A, true, false, "");
        init(&b, "www.example.com", DNS_A, true, false, "");
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.bytes, b.bytes, a.len);
        assert_true(entry_key_hash(&a, secret, sizeof secret) == entry_key_hash(&b, secret, sizeof secret));
        init(&a, "a[b]c^d_e@f", DNS_A, true, false, "");
        init(&b,
             "a{b}c~d\x7f"
             "e`f",
             DNS_A, true, false, "");
        assert_int_equal(a.len, b.len);
        assert_memory_not_equal(a.bytes, b.bytes, a.len);
}

static void the_page_can_be_set_again_and_cleared(void **state)
{
        (void)state;
        struct entry_key plain, key;
        init(&plain, "www.example.com", DNS_A, true, false, "tag");
        key = plain;
        entry_key_set_page(&key, network_code(ECS_IPV6, 57), 0x1234);
        assert_int_equal(key.len, plain.len + 2);
        assert_memory_equal(key.bytes + plain.len, "\x12\x34", 2);
        entry_key_set_page(&key, network_code(ECS_IPV4, 20), 7);
        assert_int_equal(key.len, plain.len + 2);
        assert_memory_equal(key.bytes + plain.len, "\0\7", 2);
        assert_int_equal(key.bytes[KEY_AT_PAGE], 20);
        entry_key_clear_page(&key);
        assert_int_equal(key.len, plain.len);
        assert_memory_equal(key.bytes, plain.bytes, plain.len);
}

static void b24_a_tag_made_ready_is_the_same_tag(void **state)
{
        (void)state;
        char text[SARDINE_TAG_MAX];
        memset(text, 't', sizeof text);
        for (size_t len = 0; len <= sizeof text; len++) {
                struct entry_key added, set, plain;
                struct entry_tag tag;
                init(&plain, "www.example.com", DNS_A, true, false, "");
                added = set = plain;
                entry_tag_init(&tag, text, len);
                entry_tag_hash(&tag, secret, sizeof secret);
                entry_key_set_tag(&set, &tag);
                assert_true(len == 0 || entry_key_add_tag(&added, text, len));
                assert_int_equal(set.len, added.len);
                assert_memory_equal(set.bytes, added.bytes, set.len);
                assert_true(entry_key_hash(&set, secret, sizeof secret) ==
                            (entry_key_hash_question(&plain, secret, sizeof secret) ^ tag.hash));
                assert_int_equal(entry_key_hash(&set, secret, sizeof secret) ==
                                     entry_key_hash(&plain, secret, sizeof secret),
                                 len == 0);
        }
        /* Not the same as one of the host's. */
        struct entry_key own, hosts;
        struct entry_tag tag;
        init(&own, "www.example.com", DNS_A, true, false, "");
        init(&hosts, "www.example.com", DNS_A, true, false, "\1t");
        entry_tag_init(&tag, "t", 1);
        entry_key_set_tag(&own, &tag);
        _Alignas(4) uint8_t entry[1024];
        make_entry(&own, entry);
        assert_true(entry_key_match(&own, entry));
        assert_false(entry_key_match(&hosts, entry));
}

static void keys_pass_the_check_and_damaged_ones_do_not(void **state)
{
        (void)state;
        struct entry_key keys[32];
        size_t n = make_keys(keys);
        for (size_t i = 0; i < n; i++) {
                bool plain = keys[i].bytes[KEY_AT_PAGE] == KEY_NO_PAGE;
                assert_int_equal(entry_key_check(keys[i].bytes, keys[i].len), plain);
                for (size_t len = 0; len < keys[i].len; len++)
                        assert_false(entry_key_check(keys[i].bytes, len));
                assert_false(entry_key_check(keys[i].bytes, keys[i].len + 1u));
        }
        struct entry_key key;
        init(&key, "www.example.com", DNS_A, true, false, "");
        key.bytes[KEY_AT_NAME + 1] = 'W';
        assert_false(entry_key_check(key.bytes, key.len));
        init(&key, "www.example.com", DNS_A, true, false, "");
        key.bytes[KEY_AT_FLAGS] |= ENTRY_AD;
        assert_false(entry_key_check(key.bytes, key.len));
        init(&key, "www.example.com", DNS_A, true, false, "");
        key.bytes[KEY_AT_NAME] = 0xc0;
        assert_false(entry_key_check(key.bytes, key.len));
        /* What is extra is a tag within it, then whole options. */
        static const struct {
                const char *extra;
                size_t len;
                bool good;
        } extras[] = {
            {"\1x", 2, true},        {"\0", 1, false},
            {"\2x", 2, false},       {"\310x", 2, false},
            {"\0\0\12\1c", 5, true}, {"\0\0\12\2c", 5, false},
            {"\1x\0\12\0", 5, true}, {"\1x\0\12", 4, false},
            {"\1x\0", 3, false},     {"\0\0\12\0\0\14", 6, false},
        };
        for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
                entry_key_init(&key, (const uint8_t *)"", 1, DNS_A, true, false,
                               (const uint8_t *)extras[i].extra, extras[i].len);
                assert_int_equal(entry_key_check(key.bytes, key.len), extras[i].good);
        }
}

static void the_longest_key_fits(void **state)
{
        (void)state;
        struct entry_key key;
        uint8_t name[255] = {0};
        for (unsigned at = 0; at < 254; at += 2)
                name[at] = 1, name[at + 1] = 'Z';
        uint8_t extra[255];
        memset(extra, 'e', sizeof extra);
        extra[0] = SARDINE_TAG_MAX;
        extra[1 + SARDINE_TAG_MAX + 2] = 255 - 1 - SARDINE_TAG_MAX - 3; /* an option's length */
        entry_key_init(&key, name, 255, 65535, true, true, extra, 255);
        assert_true(entry_key_check(key.bytes, key.len));
        entry_key_set_page(&key, network_code(ECS_IPV6, 128), 65535);
        assert_int_equal(key.len, KEY_MAX);
        _Alignas(4) uint8_t entry[1024];
        make_entry(&key, entry);
        assert_true(entry_key_match(&key, entry));
        key.bytes[KEY_MAX - 1] ^= 1;
        assert_false(entry_key_match(&key, entry));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b01_every_part_of_the_key_is_compared),
            cmocka_unit_test(b02_the_hash_depends_on_every_part_and_on_the_secret),
            cmocka_unit_test(b26_case_does_not_matter_but_only_of_letters),
            cmocka_unit_test(the_page_can_be_set_again_and_cleared),
            cmocka_unit_test(b24_a_tag_made_ready_is_the_same_tag),
            cmocka_unit_test(keys_pass_the_check_and_damaged_ones_do_not),
            cmocka_unit_test(the_longest_key_fits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
