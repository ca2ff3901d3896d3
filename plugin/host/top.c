/* SPDX-License-Identifier: MIT */
#include "host/top.h"

enum {
        /* After so many samples the counts are halved: old fame fades. */
        AGE = 4096,
        AGE_MIN_SECONDS = 4,
        AGE_MAX_SECONDS = 16,
        STRIDE_MAX = 1024,
};

void top_init(struct top *top)
{
        top->countdown = top->stride = 1;
        top->aged = time(NULL);
        pthread_mutex_init(&top->lock, NULL);
}

static void halve(struct top_table *table)
{
        for (uint32_t i = 0; i < table->n; i++) {
                table->items[i].queries /= 2;
                table->items[i].hits /= 2;
                table->items[i].error /= 2;
        }
}

/* Halve what there is, and look at more or fewer queries from now on. */
static void age(struct top *top)
{
        time_t now = time(NULL), took = now - top->aged;
        halve(&top->asked);
        halve(&top->missed);
        if (took < AGE_MIN_SECONDS && top->stride < STRIDE_MAX)
                top->stride *= 2;
        else if (took > AGE_MAX_SECONDS && top->stride > 1)
                top->stride /= 2;
        top->samples = 0;
        top->aged = now;
}

static uint32_t hash_of(const struct top_item *item)
{
        const struct message_question *question = &item->question;
        uint32_t hash = 2166136261u ^ item->cache ^ (uint32_t)question->type << 16;
        for (unsigned i = 0; i < question->name_len; i++)
                hash = (hash ^ question->name[i]) * 16777619u;
        return hash;
}

/* The item for this question: its own, a new one, or that of the one asked least. */
static struct top_item *place(struct top_table *table, const struct top_item *item, uint32_t hash)
{
        uint32_t least = 0;
        for (uint32_t i = 0; i < table->n; i++)
                if (table->hashes[i] == hash && table->items[i].cache == item->cache &&
                    message_question_equals(&table->items[i].question, &item->question))
                        return &table->items[i];
        if (table->n < TOP_NAMES) {
                least = table->n++;
                table->items[least].queries = 0;
        } else {
                for (uint32_t i = 1; i < TOP_NAMES; i++)
                        if (table->items[i].queries < table->items[least].queries)
                                least = i;
        }
        struct top_item *taken = &table->items[least];
        uint64_t queries = taken->queries;
        *taken = *item;
        taken->queries = taken->error = queries;
        table->hashes[least] = hash;
        return taken;
}

void top_sample(struct top *top, uint32_t cache, const uint8_t *query, size_t len, bool hit)
{
        struct top_item item = {.cache = cache};
        top->countdown = top->stride;
        if (!message_question(query, len, &item.question) || pthread_mutex_trylock(&top->lock) != 0)
                return;
        uint32_t hash = hash_of(&item);
        struct top_item *asked = place(&top->asked, &item, hash);
        asked->queries += top->stride;
        if (hit)
                asked->hits += top->stride;
        else
                place(&top->missed, &item, hash)->queries += top->stride;
        if (++top->samples == AGE) {
                age(top);
                top->countdown = top->stride;
        }
        pthread_mutex_unlock(&top->lock);
}
