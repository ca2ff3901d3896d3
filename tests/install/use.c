/* SPDX-License-Identifier: MIT
 *
 * A host that has only what was installed. Compiled as C and as C++.
 */
#include <sardine.h>

#include <stdio.h>
#include <string.h>

static const uint8_t query[] = {0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};
static const uint8_t response[] = {0, 1,    0x81, 0x80, 0, 1, 0, 1, 0, 0,  0,  0, 1, 'a', 0, 0, 1, 0,
                                   1, 0xc0, 12,   0,    1, 0, 1, 0, 0, 14, 16, 0, 4, 192, 0, 2, 1};

int main(void)
{
        struct sardine_options options;
        sardine_options_init(&options, sizeof options);
        options.max_entries = 100;
        sardine_cache *cache;
        struct sardine_token token;
        uint8_t reply[512];
        struct sardine_query q;
        struct sardine_answer a;
        memset(&q, 0, sizeof q);
        memset(&a, 0, sizeof a);
        q.sz = sizeof q;
        q.packet = query;
        q.len = sizeof query;
        a.sz = sizeof a;
        a.buf = reply;
        a.cap = sizeof reply;
        a.token = &token;
        if (sardine_abi_version() != SARDINE_ABI_VERSION || strcmp(sardine_version(), SARDINE_VERSION) ||
            sardine_create(&options, &cache))
                return 1;
        if (sardine_lookup(cache, &q, &a) != SARDINE_MISS)
                return 2;
        if (sardine_insert(cache, &token, response, sizeof response, NULL, NULL) != SARDINE_STORED)
                return 3;
        if (sardine_lookup(cache, &q, &a) != SARDINE_HIT || a.len != sizeof response)
                return 4;
        sardine_destroy(cache);
        puts(sardine_version());
        return 0;
}
