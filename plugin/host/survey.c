/* SPDX-License-Identifier: MIT */
#include "host/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
        TYPES = 65536,
        ZONE_SLOTS = 1 << 15,
        ZONES_MAX = ZONE_SLOTS / 4 * 3,
        ZONES_LISTED = 1000,
        ZONE_NAME = 108, /* longer ones are known by fewer labels */
        ASK_EVERY = 4096,
};

struct zone {
        struct sardine_dnsdist_share share;
        uint8_t len;
        uint8_t name[ZONE_NAME];
};

struct walk {
        struct sardine_dnsdist_survey *survey;
        struct sardine_dnsdist_share types[TYPES];
        uint32_t labels;
        uint32_t n_zones;
        struct zone *zones; /* a hash table; NULL: not asked for */
        struct sardine_dnsdist_share other_zones;
        uint32_t seen;
        int (*stop)(void *ctx);
        void *ctx;
        bool stopped;
};

static void add(struct sardine_dnsdist_share *share, const struct sardine_entry_view *entry)
{
        share->entries++;
        share->bytes += entry->bytes;
}

/* The last `labels` labels of a name: where they begin. */
static const uint8_t *zone_of(const uint8_t *name, uint32_t len, uint32_t labels, uint32_t *zone_len)
{
        uint8_t starts[128];
        uint32_t n = 0;
        for (uint32_t at = 0; name[at] != 0 && n < sizeof starts; at += 1u + name[at])
                starts[n++] = (uint8_t)at;
        for (labels = labels < n ? labels : n; labels > 0; labels--) {
                *zone_len = len - starts[n - labels];
                if (*zone_len <= ZONE_NAME)
                        return name + starts[n - labels];
        }
        *zone_len = 1;
        return name + len - 1;
}

/* The walk goes in an order that has nothing to do with names: what comes first, until the table is full, is
 * a fair choice, and a large zone is in it. */
static void add_zone(struct walk *walk, const struct sardine_entry_view *entry)
{
        uint32_t len;
        const uint8_t *name = zone_of(entry->qname, entry->qname_len, walk->labels, &len);
        uint32_t hash = 2166136261u;
        for (uint32_t i = 0; i < len; i++)
                hash = (hash ^ name[i]) * 16777619u;
        hash ^= hash >> 15;
        for (uint32_t i = hash % ZONE_SLOTS;; i = (i + 1) % ZONE_SLOTS) {
                struct zone *zone = &walk->zones[i];
                if (zone->len == 0) {
                        if (walk->n_zones == ZONES_MAX) {
                                add(&walk->other_zones, entry);
                                return;
                        }
                        walk->n_zones++;
                        zone->len = (uint8_t)len;
                        memcpy(zone->name, name, len);
                }
                if (zone->len == len && memcmp(zone->name, name, len) == 0) {
                        add(&zone->share, entry);
                        return;
                }
        }
}

static unsigned life_class(uint32_t left)
{
        static const uint32_t most[SARDINE_SURVEY_LIVES - 1] = {0, 10, 60, 300, 900, 3600, 21600, 86400};
        unsigned i = 0;
        while (i < SARDINE_SURVEY_LIVES - 1 && left > most[i])
                i++;
        return i;
}

static int visit(void *ctx, const struct sardine_entry_view *entry)
{
        struct walk *walk = ctx;
        struct sardine_dnsdist_survey *survey = walk->survey;
        add(&survey->all, entry);
        if (entry->ttl == 0)
                add(&survey->stale, entry);
        if (entry->dnssec_ok)
                add(&survey->signed_, entry);
        if (entry->ecs_family != 0)
                add(&survey->networks, entry);
        add(&walk->types[entry->qtype & (TYPES - 1)], entry);
        uint32_t others = SARDINE_SURVEY_RCODES - 1;
        add(&survey->of_rcode[entry->rcode < others ? entry->rcode : others], entry);
        add(&survey->of_life[life_class(entry->ttl)], entry);
        if (walk->zones != NULL)
                add_zone(walk, entry);
        if (++walk->seen % ASK_EVERY == 0 && walk->stop != NULL)
                walk->stopped = walk->stop(walk->ctx) != 0;
        return walk->stopped;
}

static void pick_types(struct walk *walk)
{
        struct sardine_dnsdist_survey *survey = walk->survey;
        while (survey->n_types < SARDINE_SURVEY_TYPES) {
                uint32_t most = 0;
                for (uint32_t type = 1; type < TYPES; type++)
                        if (walk->types[type].entries > walk->types[most].entries)
                                most = type;
                if (walk->types[most].entries == 0)
                        break;
                survey->types[survey->n_types] = most;
                survey->of_type[survey->n_types++] = walk->types[most];
                walk->types[most] = (struct sardine_dnsdist_share){0};
        }
        for (uint32_t type = 0; type < TYPES; type++) {
                survey->other_types.entries += walk->types[type].entries;
                survey->other_types.bytes += walk->types[type].bytes;
        }
}

static int by_bytes(const void *one, const void *other)
{
        const struct zone *a = one, *b = other;
        if (a->share.bytes != b->share.bytes)
                return a->share.bytes < b->share.bytes ? 1 : -1;
        return (a->share.entries < b->share.entries) - (a->share.entries > b->share.entries);
}

static char *list_zones(struct walk *walk)
{
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        if (to == NULL)
                return NULL;
        qsort(walk->zones, ZONE_SLOTS, sizeof *walk->zones, by_bytes);
        for (uint32_t i = 0; i < walk->n_zones; i++) {
                const struct zone *zone = &walk->zones[i];
                char name[1021];
                if (i >= ZONES_LISTED || sardine_name_to_text(zone->name, zone->len, name, sizeof name) < 0) {
                        walk->other_zones.entries += zone->share.entries;
                        walk->other_zones.bytes += zone->share.bytes;
                        continue;
                }
                fprintf(to, "%" PRIu64 " %" PRIu64 " %s\n", zone->share.entries, zone->share.bytes, name);
        }
        if (walk->other_zones.entries > 0)
                fprintf(to, "%" PRIu64 " %" PRIu64 " *\n", walk->other_zones.entries,
                        walk->other_zones.bytes);
        bool failed = ferror(to) != 0;
        if (fclose(to) != 0 || failed) {
                free(text);
                return NULL;
        }
        return text;
}

static uint64_t milliseconds(void)
{
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int survey_walk(sardine_cache *cache, struct sardine_dnsdist_survey *survey, uint32_t labels, char **zones,
                int (*stop)(void *ctx), void *ctx)
{
        struct walk *walk = calloc(1, sizeof *walk);
        if (walk == NULL)
                return -ENOMEM;
        int err = 0;
        memset(survey, 0, sizeof *survey);
        walk->survey = survey;
        walk->labels = labels;
        walk->stop = stop;
        walk->ctx = ctx;
        if (labels > 0)
                walk->zones = calloc(ZONE_SLOTS, sizeof *walk->zones);
        if (labels > 0 && walk->zones == NULL) {
                err = -ENOMEM;
        } else {
                uint64_t begun = milliseconds();
                sardine_walk(cache, NULL, visit, walk);
                survey->took_ms = (uint32_t)(milliseconds() - begun);
                survey->at = (uint64_t)time(NULL);
                pick_types(walk);
                if (walk->stopped)
                        err = -EINTR;
        }
        if (err == 0 && labels > 0) {
                *zones = list_zones(walk);
                err = *zones != NULL ? 0 : -ENOMEM;
        }
        free(walk->zones);
        free(walk);
        return err;
}

int sardine_dnsdist_measure(sardine_cache *cache, struct sardine_dnsdist_survey *survey, uint32_t labels,
                            char **zones)
{
        return survey_walk(cache, survey, labels, zones, NULL, NULL);
}
