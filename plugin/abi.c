/* SPDX-License-Identifier: MIT */
#include "abi.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static size_t size_of(const void *in)
{
        size_t size;
        memcpy(&size, in, sizeof size);
        return size;
}

int abi_check(const void *in, size_t least, size_t known)
{
        if (!in)
                return -EINVAL;
        size_t size = size_of(in);
        if (size < least || size > ABI_SIZE_MOST)
                return -EINVAL;
        for (const uint8_t *p = in; size > known; size--)
                if (p[size - 1] != 0)
                        return -E2BIG;
        return 0;
}

bool abi_is_stride(size_t size, size_t least)
{
        return size >= least && size <= ABI_SIZE_MOST && size % _Alignof(size_t) == 0;
}

void abi_take(void *full, const void *in, size_t known)
{
        size_t size = size_of(in);
        memcpy(full, in, size < known ? size : known);
        memcpy(full, &known, sizeof known);
}

void abi_give(void *out, const void *full, size_t known)
{
        size_t size = size_of(out);
        memset(out, 0, size);
        memcpy(out, full, size < known ? size : known);
        memcpy(out, &size, sizeof size);
}

bool abi_short(const struct sardine_query *query, const struct sardine_answer *answer)
{
        return query && answer && query->sz >= ABI_QUERY_LEAST && answer->sz >= ABI_ANSWER_LEAST &&
               (query->sz < sizeof *query || answer->sz < sizeof *answer);
}

int abi_full_take(struct abi_full *full, const struct sardine_query *query,
                  const struct sardine_answer *answer)
{
        memset(full, 0, sizeof *full);
        int err = abi_check(query, ABI_QUERY_LEAST, sizeof full->query);
        if (!err)
                err = abi_check(answer, ABI_ANSWER_LEAST, sizeof full->answer);
        if (err)
                return err;
        abi_take(&full->query, query, sizeof full->query);
        abi_take(&full->answer, answer, sizeof full->answer);
        return 0;
}

int abi_lookup(abi_lookup_fn fn, sardine_cache *cache, const struct sardine_query *query,
               struct sardine_answer *answer)
{
        struct abi_full full;
        int outcome = abi_full_take(&full, query, answer);
        if (outcome)
                return outcome;
        outcome = fn(cache, &full.query, &full.answer);
        abi_give(answer, &full.answer, sizeof full.answer);
        return outcome;
}
