/* SPDX-License-Identifier: MIT */
#include "host/refused.h"

void refused_init(struct refused *refused)
{
        pthread_mutex_init(&refused->lock, NULL);
}

void refused_note(struct refused *refused, uint32_t cache, const uint8_t *response, size_t len,
                  uint32_t reason)
{
        struct refused_item item = {.at = time(NULL), .cache = cache, .reason = reason};
        if (!message_question(response, len, &item.question) || pthread_mutex_trylock(&refused->lock) != 0)
                return;
        refused->items[refused->n++ % REFUSED_KEPT] = item;
        pthread_mutex_unlock(&refused->lock);
}
