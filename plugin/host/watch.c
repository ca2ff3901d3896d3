/* SPDX-License-Identifier: MIT */
#include "host/watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/refused.h"
#include "host/registry.h"
#include "host/top.h"

enum {
        SURVEY_MIN_SECONDS = 10,
        /* A walk that took n ms is not repeated for n / 20 seconds. */
        SURVEY_PACE = 20,
};

/* What is known of a cache. */
struct record {
        uint32_t id; /* 0: free */
        uint32_t n, next;
        struct sardine_dnsdist_point points[SARDINE_WATCH_POINTS];
        bool survey_wanted;
        struct sardine_dnsdist_survey survey;
        struct record *following;
        bool seen; /* in this round */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static pthread_cond_t wake;
static struct record *records;
static bool started;
static atomic_int counting;

int watch_counts(void)
{
        return atomic_load_explicit(&counting, memory_order_relaxed);
}

static struct record *record_of(uint32_t id)
{
        struct record *record = records;
        while (record != NULL && record->id != id)
                record = record->following;
        return record;
}

static void note_point(void *ctx, uint32_t id)
{
        (void)ctx;
        struct sardine_stats stats = {.sz = sizeof stats};
        sardine_cache *cache = registry_enter(id);
        if (cache == NULL)
                return;
        sardine_stats_get(cache, &stats);
        registry_leave();

        pthread_mutex_lock(&lock);
        struct record *record = record_of(id);
        if (record == NULL && (record = calloc(1, sizeof *record)) != NULL) {
                record->id = id;
                record->following = records;
                records = record;
        }
        if (record != NULL) {
                record->seen = true;
                record->points[record->next] = (struct sardine_dnsdist_point){
                    .at = (uint64_t)time(NULL),
                    .hits = stats.hits,
                    .stale = stats.stale,
                    .refresh = stats.refresh,
                    .misses = stats.misses,
                    .bypass = stats.bypass,
                    .other = stats.cache_only_misses + stats.waits,
                    .inserts = stats.inserts,
                    .refused = stats.refused,
                    .evicted = stats.evicted,
                    .entries = stats.entries,
                    .bytes = stats.bytes,
                };
                record->next = (record->next + 1) % SARDINE_WATCH_POINTS;
                if (record->n < SARDINE_WATCH_POINTS)
                        record->n++;
        }
        pthread_mutex_unlock(&lock);
}

/* With the lock. Forget the caches that are gone. */
static void sweep(void)
{
        for (struct record **at = &records; *at != NULL;) {
                struct record *record = *at;
                if (record->seen) {
                        record->seen = false;
                        at = &record->following;
                } else {
                        *at = record->following;
                        free(record);
                }
        }
}

static int is_gone(void *id)
{
        return registry_gone(*(uint32_t *)id);
}

/* A record that wants a survey, if there is one; its id, or 0. With the lock. */
static uint32_t next_survey(void)
{
        for (struct record *record = records; record != NULL; record = record->following)
                if (record->survey_wanted) {
                        record->survey_wanted = false;
                        return record->id;
                }
        return 0;
}

static void make_survey(uint32_t id)
{
        struct sardine_dnsdist_survey survey;
        sardine_cache *cache = registry_enter(id);
        if (cache == NULL)
                return;
        int err = survey_walk(cache, &survey, 0, NULL, is_gone, &id);
        registry_leave();
        pthread_mutex_lock(&lock);
        struct record *record = record_of(id);
        if (err == 0 && record != NULL)
                record->survey = survey;
        pthread_mutex_unlock(&lock);
}

static struct timespec now_and(time_t seconds)
{
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_sec += seconds;
        return at;
}

static void *run(void *unused)
{
        (void)unused;
        struct timespec next = now_and(0);
        for (;;) {
                registry_each(note_point, NULL);
                next.tv_sec += SARDINE_WATCH_STEP;
                pthread_mutex_lock(&lock);
                sweep();
                int err = 0;
                while (err == 0) {
                        uint32_t id = next_survey();
                        if (id != 0) {
                                pthread_mutex_unlock(&lock);
                                make_survey(id);
                                pthread_mutex_lock(&lock);
                        } else {
                                err = pthread_cond_timedwait(&wake, &lock, &next);
                        }
                }
                pthread_mutex_unlock(&lock);
        }
        return NULL;
}

/* Signals are for dnsdist's own threads. */
static int start_thread(void)
{
        pthread_condattr_t clock;
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&wake, &clock);
        pthread_condattr_destroy(&clock);

        pthread_t thread;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int err = pthread_create(&thread, NULL, run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (err == 0)
                pthread_detach(thread);
        return -err;
}

int sardine_dnsdist_watch(void)
{
        int err = 0;
        pthread_mutex_lock(&lock);
        if (!started) {
                err = start_thread();
                started = err == 0;
                atomic_store(&counting, started);
        }
        pthread_mutex_unlock(&lock);
        return err;
}

uint32_t sardine_dnsdist_history(uint32_t cache, uint64_t since, struct sardine_dnsdist_point *points,
                                 uint32_t max)
{
        uint32_t n = 0;
        pthread_mutex_lock(&lock);
        const struct record *record = record_of(cache);
        for (uint32_t i = 0; record != NULL && i < record->n && n < max; i++) {
                uint32_t at = (record->next + SARDINE_WATCH_POINTS - record->n + i) % SARDINE_WATCH_POINTS;
                if (record->points[at].at > since)
                        points[n++] = record->points[at];
        }
        pthread_mutex_unlock(&lock);
        return n;
}

int sardine_dnsdist_surveyed(uint32_t cache, struct sardine_dnsdist_survey *survey)
{
        int there = 0;
        pthread_mutex_lock(&lock);
        struct record *record = record_of(cache);
        if (record != NULL) {
                *survey = record->survey;
                there = survey->at != 0;
                uint64_t pause = survey->took_ms / SURVEY_PACE;
                if ((uint64_t)time(NULL) >=
                    survey->at + (pause > SURVEY_MIN_SECONDS ? pause : SURVEY_MIN_SECONDS)) {
                        record->survey_wanted = true;
                        pthread_cond_signal(&wake);
                }
        }
        pthread_mutex_unlock(&lock);
        return there;
}

struct ranking {
        uint32_t cache;
        bool misses;
        bool failed;
        uint32_t n;
        uint32_t cap;
        struct top_item *items;
};

/* Threads are asked the same names: add them up. */
static void rank(void *ctx, struct top *top, struct refused *refused)
{
        (void)refused;
        struct ranking *ranking = ctx;
        const struct top_table *table = ranking->misses ? &top->missed : &top->asked;
        pthread_mutex_lock(&top->lock);
        for (uint32_t i = 0; i < table->n && !ranking->failed; i++) {
                const struct top_item *item = &table->items[i];
                if (item->cache != ranking->cache)
                        continue;
                uint32_t at = 0;
                while (at < ranking->n &&
                       !message_question_equals(&ranking->items[at].question, &item->question))
                        at++;
                if (at == ranking->cap) {
                        uint32_t cap = ranking->cap + TOP_NAMES;
                        struct top_item *more = realloc(ranking->items, cap * sizeof *more);
                        if (more == NULL) {
                                ranking->failed = true;
                                break;
                        }
                        ranking->items = more;
                        ranking->cap = cap;
                }
                if (at == ranking->n) {
                        ranking->items[ranking->n++] = *item;
                } else {
                        ranking->items[at].queries += item->queries;
                        ranking->items[at].hits += item->hits;
                        ranking->items[at].error += item->error;
                }
        }
        pthread_mutex_unlock(&top->lock);
}

static uint64_t sure_queries(const struct top_item *item)
{
        return item->queries - item->error;
}

static int by_queries(const void *one, const void *other)
{
        uint64_t a = sure_queries(one), b = sure_queries(other);
        return (a < b) - (a > b);
}

char *sardine_dnsdist_top(uint32_t cache, uint32_t max, int misses)
{
        struct ranking ranking = {.cache = cache, .misses = misses != 0};
        registry_each_thread(rank, &ranking);
        char *text = NULL;
        size_t size = 0;
        FILE *to = ranking.failed ? NULL : open_memstream(&text, &size);
        if (to != NULL) {
                if (ranking.n > 0)
                        qsort(ranking.items, ranking.n, sizeof *ranking.items, by_queries);
                for (uint32_t i = 0; i < ranking.n && i < max; i++) {
                        const struct top_item *item = &ranking.items[i];
                        char name[1021];
                        if (sure_queries(item) == 0)
                                break;
                        if (sardine_name_to_text(item->question.name, item->question.name_len, name,
                                                 sizeof name) > 0)
                                fprintf(to, "%" PRIu64 " %" PRIu64 " %u %s\n", sure_queries(item), item->hits,
                                        (unsigned)item->question.type, name);
                }
                bool failed = ferror(to) != 0;
                if (fclose(to) != 0 || failed) {
                        free(text);
                        text = NULL;
                }
        }
        free(ranking.items);
        return text;
}

struct search {
        uint32_t cache;
        struct message_question question; /* name_len 0: any */
        uint32_t n;
        struct refused_item *items;
        uint32_t cap;
};

static void collect(void *ctx, struct top *top, struct refused *refused)
{
        (void)top;
        struct search *search = ctx;
        pthread_mutex_lock(&refused->lock);
        uint64_t n = refused->n < REFUSED_KEPT ? refused->n : REFUSED_KEPT;
        for (uint64_t i = 0; i < n; i++) {
                const struct refused_item *item = &refused->items[i];
                if (item->cache != search->cache ||
                    (search->question.name_len > 0 &&
                     !message_question_equals(&item->question, &search->question)))
                        continue;
                if (search->n == search->cap) {
                        uint32_t cap = search->cap + REFUSED_KEPT;
                        struct refused_item *more = realloc(search->items, cap * sizeof *more);
                        if (more == NULL)
                                break;
                        search->items = more;
                        search->cap = cap;
                }
                search->items[search->n++] = *item;
        }
        pthread_mutex_unlock(&refused->lock);
}

static int newest_first(const void *one, const void *other)
{
        const struct refused_item *a = one, *b = other;
        return (a->at < b->at) - (a->at > b->at);
}

char *sardine_dnsdist_refused(uint32_t cache, const uint8_t *name, uint32_t name_len, uint32_t type,
                              uint32_t max)
{
        struct search search = {.cache = cache};
        search.question.type = (uint16_t)type;
        search.question.name_len = (uint8_t)name_len;
        memcpy(search.question.name, name, search.question.name_len);
        registry_each_thread(collect, &search);
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        if (to != NULL) {
                time_t now = time(NULL);
                if (search.n > 0)
                        qsort(search.items, search.n, sizeof *search.items, newest_first);
                for (uint32_t i = 0; i < search.n && i < max; i++) {
                        const struct refused_item *item = &search.items[i];
                        char text_name[1021];
                        if (sardine_name_to_text(item->question.name, item->question.name_len, text_name,
                                                 sizeof text_name) > 0)
                                fprintf(to, "%" PRId64 " %s %u %s\n", (int64_t)(now - item->at),
                                        sardine_reason_name(item->reason), (unsigned)item->question.type,
                                        text_name);
                }
                bool failed = ferror(to) != 0;
                if (fclose(to) != 0 || failed) {
                        free(text);
                        text = NULL;
                }
        }
        free(search.items);
        return text;
}
