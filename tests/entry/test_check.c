/* SPDX-License-Identifier: MIT
 * Entries out of a file: what the rest of the library could not bear is refused. ENTRY_LAYOUT: the list of
 * scopes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "entry/check.h"
#include "entry/encode.h"
#include "entry/header.h"
#include "entry/key.h"
#include "wire/dns.h"

enum {
        NOW = ENTRY_SECOND_ZERO,
};

/* A question with answers for networks of `count` prefix lengths. */
static bool list_passes(unsigned count)
{
        static const uint8_t name[] = "\3cdn\7example";
        static _Alignas(ENTRY_ALIGN) uint8_t entry[4096];
        struct entry_scope scopes[SCOPES_COUNT];
        struct entry_key key;
        for (unsigned i = 0; i < count; i++)
                scopes[i] = (struct entry_scope){network_code(2, (uint8_t)(128 - i)), 1};
        entry_key_init(&key, name, sizeof name, DNS_A, true, false, NULL, 0);
        const struct encode_params params = {
            .expiry = NOW + 60, .life = 60, .scopes = scopes, .scopes_count = (uint8_t)count};
        size_t len = entry_encode_scopes(&key, &params, entry, sizeof entry);
        assert_int_not_equal(len, 0);
        struct entry_checked checked;
        return entry_check(entry, len, &checked);
}

/* Whoever writes a list anew has room for so many and no more. */
static void b85_no_longer_lists_of_scopes_than_there_is_room_for(void **state)
{
        (void)state;
        assert_true(list_passes(1));
        assert_true(list_passes(SCOPES_MAX));
        assert_false(list_passes(SCOPES_MAX + 1));
        assert_false(list_passes(SCOPES_COUNT));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b85_no_longer_lists_of_scopes_than_there_is_room_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
