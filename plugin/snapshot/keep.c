/* SPDX-License-Identifier: MIT
 * The thread that keeps a snapshot, and its journal: the purges since the snapshot was made. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "snapshot/file.h"
#include "snapshot/journal.h"
#include "snapshot/purgerecord.h"
#include "snapshot/snapshot.h"

enum {
        BACKGROUND_NICE = 10,
};

struct keeper {
        struct keeper *next; /* of those that have ended: somebody may still look at them */
        struct sardine_cache *cache;
        struct sardine_snapshot_options options;
        char *path, *journal_path;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        /* Under the lock. */
        bool ending, wanted, ended;
        int journal; /* -1: not opened yet */
        /* The thread's own. */
        bool load_broken;
        uint64_t changes;                      /* of the cache, when it was last saved; at first: none */
        struct sardine_snapshot_status status; /* under the lock */
        struct timespec saved;                 /* when; CLOCK_MONOTONIC; under the lock */
};

static void tell(const struct keeper *keeper, int level, const char *what, const char *detail)
{
        const struct sardine_options *o = &keeper->cache->options;
        char line[512];
        if (!o->log)
                return;
        snprintf(line, sizeof line, "snapshot %s: %s%s%s", keeper->path, what, detail ? ": " : "",
                 detail ? detail : "");
        o->log(o->log_ctx, level, line);
}

/* Anything that a snapshot would show. */
static uint64_t changes_of(struct sardine_cache *cache)
{
        struct store_stats stats;
        store_stats_get(cache->store, &stats);
        const struct counters *c = &cache->counters;
        return counters_sum(c, COUNT_STORED) + counters_sum(c, COUNT_REPLACED) +
               counters_sum(c, COUNT_REFRESHED) + stats.expunged + atomic_load(&cache->snapshots.loaded);
}

/* A snapshot whose purges are not known is worse than none. Under the lock. */
static void give_up_journal(struct keeper *keeper, int err)
{
        if (keeper->journal >= 0)
                close(keeper->journal);
        keeper->journal = -1;
        bool removed = unlink(keeper->path) == 0, absent = !removed && errno == ENOENT;
        /* Not before it, and not without it: what the journal does say is still to hold. */
        if (removed || absent)
                unlink(keeper->journal_path);
        if (removed)
                tell(keeper, SARDINE_LOG_WARNING, "removed, for a purge could not be noted beside it",
                     sardine_strerror(err));
        else if (!absent)
                tell(keeper, SARDINE_LOG_WARNING, "a purge could not be noted, nor the old snapshot removed",
                     sardine_strerror(err));
}

/* Add to the journal, which is made when there is first anything to say. Under the lock. */
static int add(struct keeper *keeper, const uint8_t *bytes, size_t len)
{
        struct stat file;
        /* Removed by another one who saves at this path: what is noted from now on must have a name again. */
        if (keeper->journal >= 0 && (fstat(keeper->journal, &file) != 0 || file.st_nlink == 0)) {
                close(keeper->journal);
                keeper->journal = -1;
        }
        if (keeper->journal < 0) {
                int fd = journal_open(keeper->journal_path);
                if (fd < 0)
                        return fd;
                keeper->journal = fd;
        }
        off_t size = lseek(keeper->journal, 0, SEEK_END);
        if (size < 0)
                return -errno;
        return size > JOURNAL_MOST ? -EFBIG : journal_append(keeper->journal, bytes, len);
}

/* Under the lock. */
static void note(struct keeper *keeper, const struct sardine_selector *selector)
{
        uint8_t record[PURGE_MAX];
        int err = add(keeper, record, purge_record_write(selector, record));
        if (err)
                give_up_journal(keeper, err);
}

static const struct sardine_selector *nth(const struct snapshot_purge *purge, size_t i)
{
        return purge->n ? (const void *)((uintptr_t)purge->first + i * purge->stride) : NULL;
}

/* The one that notes purges now, locked; NULL: none does. */
static struct keeper *lock_keeper(struct sardine_cache *cache)
{
        for (;;) {
                struct keeper *keeper = atomic_load_explicit(&cache->snapshots.keeper, memory_order_acquire);
                if (!keeper)
                        return NULL;
                pthread_mutex_lock(&keeper->lock);
                if (!keeper->ended)
                        return keeper;
                pthread_mutex_unlock(&keeper->lock);
                /* Another one begins only after this one has gone from here. */
                if (atomic_load_explicit(&cache->snapshots.keeper, memory_order_acquire) == keeper)
                        return NULL;
        }
}

/* On disk first, then for those who are at it, and nothing of the keeper's in between: so whoever has not
 * been told finds it in the journal. */
struct keeper *snapshot_lock_purging(struct sardine_cache *cache, const struct snapshot_purge *purge)
{
        size_t n = purge->n ? purge->n : 1;
        uint32_t now = cache_now(cache);
        pthread_mutex_lock(&cache->snapshots.purging);
        struct keeper *keeper = lock_keeper(cache);
        for (size_t i = 0; keeper && i < n; i++)
                note(keeper, nth(purge, i));
        store_lock(cache->store);
        for (size_t i = 0; i < n; i++)
                purgelog_note(&cache->snapshots.purges, nth(purge, i));
        for (size_t i = n > PURGED_LAST ? n - PURGED_LAST : 0; i < n; i++)
                purged_note(&cache->purged, nth(purge, i), purge->vague, now);
        return keeper;
}

void snapshot_unlock_purging(struct sardine_cache *cache, struct keeper *keeper)
{
        store_unlock(cache->store);
        if (keeper)
                pthread_mutex_unlock(&keeper->lock);
        pthread_mutex_unlock(&cache->snapshots.purging);
}

void snapshot_hold_purges(struct sardine_cache *cache)
{
        pthread_mutex_lock(&cache->snapshots.purging);
}

/* The journal begins anew. If it cannot be removed it says more than needed: no harm. */
void snapshot_release_purges(struct sardine_cache *cache, const char *saved)
{
        struct keeper *keeper = lock_keeper(cache);
        if (keeper && saved && strcmp(saved, keeper->path) == 0 &&
            (unlink(keeper->journal_path) == 0 || errno == ENOENT) && keeper->journal >= 0) {
                close(keeper->journal);
                keeper->journal = -1;
        }
        if (keeper)
                pthread_mutex_unlock(&keeper->lock);
        pthread_mutex_unlock(&cache->snapshots.purging);
}

static void load(struct keeper *keeper)
{
        struct sardine_snapshot_result result;
        pthread_mutex_lock(&keeper->lock);
        keeper->status.loading = 1;
        pthread_mutex_unlock(&keeper->lock);
        int err = snapshot_timed(keeper->cache, keeper->path, snapshot_load, &result);
        keeper->load_broken = err == -ECANCELED;
        pthread_mutex_lock(&keeper->lock);
        keeper->status.loading = 0;
        if (err == -ENOENT) {
                pthread_mutex_unlock(&keeper->lock);
                tell(keeper, SARDINE_LOG_INFO, "none there yet", NULL);
                return;
        }
        keeper->status.loaded = result;
        keeper->status.load_error = err;
        if (err)
                keeper->status.failures++;
        else
                keeper->status.loads++;
        pthread_mutex_unlock(&keeper->lock);
        if (err) {
                tell(keeper, SARDINE_LOG_WARNING, "not loaded",
                     result.why ? result.why : sardine_strerror(err));
                return;
        }
        char line[256];
        snprintf(line, sizeof line,
                 "loaded %llu entries in %.1f s, %u s old; %llu expired, %llu fresher here, %llu purged, "
                 "%llu damaged blocks%s%s",
                 (unsigned long long)result.entries, (double)result.micros / 1e6, result.age,
                 (unsigned long long)result.expired, (unsigned long long)result.present,
                 (unsigned long long)result.purged, (unsigned long long)result.damaged,
                 result.why ? "; ended early: " : "", result.why ? result.why : "");
        tell(keeper, result.damaged ? SARDINE_LOG_WARNING : SARDINE_LOG_INFO, line, NULL);
}

static int save(struct keeper *keeper)
{
        struct sardine_cache *cache = keeper->cache;
        struct sardine_snapshot_result result;
        pthread_mutex_lock(&keeper->lock);
        keeper->status.saving = 1;
        keeper->wanted = false;
        pthread_mutex_unlock(&keeper->lock);
        uint64_t changes = changes_of(cache);
        int err = snapshot_timed(cache, keeper->path, snapshot_save, &result);
        if (!err)
                keeper->changes = changes;
        pthread_mutex_lock(&keeper->lock);
        keeper->status.saving = 0;
        keeper->status.save_error = err;
        if (err) {
                keeper->status.failures++;
        } else {
                keeper->status.saves++;
                keeper->status.saved = result;
                clock_gettime(CLOCK_MONOTONIC, &keeper->saved);
        }
        pthread_mutex_unlock(&keeper->lock);
        if (err && err != -ECANCELED)
                tell(keeper, SARDINE_LOG_WARNING, "not saved", sardine_strerror(err));
        return err;
}

/* Until it is time to save, or to end. Returns whether it is to end. */
static bool wait(struct keeper *keeper)
{
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += keeper->options.interval;
        int late = 0;
        pthread_mutex_lock(&keeper->lock);
        while (!keeper->ending && !keeper->wanted && late != ETIMEDOUT)
                late = keeper->options.interval ? pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until)
                                                : pthread_cond_wait(&keeper->wake, &keeper->lock);
        bool ending = keeper->ending;
        pthread_mutex_unlock(&keeper->lock);
        return ending;
}

static void *run(void *arg)
{
        struct keeper *keeper = arg;
        pthread_setname_np(pthread_self(), "sardine-keeper");
        if (keeper->options.load)
                load(keeper);
        /* Not before: a load takes the store's lock, and must not sleep with it for want of a processor. */
        setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND_NICE);
        while (!wait(keeper)) {
                pthread_mutex_lock(&keeper->lock);
                bool wanted = keeper->wanted;
                pthread_mutex_unlock(&keeper->lock);
                if (wanted || changes_of(keeper->cache) != keeper->changes)
                        save(keeper);
        }
        return NULL;
}

static void keeper_free(struct keeper *keeper)
{
        if (keeper->journal >= 0)
                close(keeper->journal);
        pthread_mutex_destroy(&keeper->lock);
        pthread_cond_destroy(&keeper->wake);
        free(keeper->path);
        free(keeper->journal_path);
        free(keeper);
}

static struct keeper *keeper_make(struct sardine_cache *cache, const struct sardine_snapshot_options *options)
{
        struct keeper *keeper = calloc(1, sizeof *keeper);
        if (!keeper)
                return NULL;
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&keeper->wake, &attr);
        pthread_condattr_destroy(&attr);
        pthread_mutex_init(&keeper->lock, NULL);
        keeper->cache = cache;
        keeper->options = *options;
        keeper->journal = -1;
        keeper->path = strdup(options->path);
        if (asprintf(&keeper->journal_path, "%s" SNAPSHOT_JOURNAL, options->path) < 0)
                keeper->journal_path = NULL;
        if (!keeper->path || !keeper->journal_path) {
                keeper_free(keeper);
                return NULL;
        }
        return keeper;
}

/* No signal of the host's is for this thread. */
static int start(struct keeper *keeper)
{
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int err = -pthread_create(&keeper->thread, NULL, run, keeper);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return err;
}

/* Saves will fail; the cache works without. */
static void warn_of_folder(const struct keeper *keeper)
{
        char *path = strdup(keeper->path);
        if (path && faccessat(AT_FDCWD, dirname(path), W_OK | X_OK, AT_EACCESS) != 0)
                tell(keeper, SARDINE_LOG_WARNING, "its folder cannot be written to", strerrordesc_np(errno));
        free(path);
}

int snapshot_keep(struct sardine_cache *cache, const struct sardine_snapshot_options *options)
{
        struct keeper *keeper = keeper_make(cache, options), *none = NULL;
        if (!keeper)
                return -ENOMEM;
        warn_of_folder(keeper);
        int err = atomic_compare_exchange_strong(&cache->snapshots.keeper, &none, keeper) ? 0 : -EALREADY;
        if (!err && (err = start(keeper)) != 0)
                atomic_store(&cache->snapshots.keeper, NULL);
        if (err)
                keeper_free(keeper);
        return err;
}

int sardine_snapshot_request(sardine_cache *cache)
{
        if (!cache)
                return -EINVAL;
        struct keeper *keeper = atomic_load_explicit(&cache->snapshots.keeper, memory_order_acquire);
        if (!keeper)
                return -ENOENT;
        pthread_mutex_lock(&keeper->lock);
        keeper->wanted = true;
        pthread_cond_signal(&keeper->wake);
        pthread_mutex_unlock(&keeper->lock);
        return 0;
}

int sardine_snapshot_stop(sardine_cache *cache)
{
        if (!cache)
                return -EINVAL;
        struct keeper *keeper = atomic_load_explicit(&cache->snapshots.keeper, memory_order_acquire);
        if (!keeper)
                return 0;
        int err = 0;
        pthread_mutex_lock(&keeper->lock);
        bool mine = !keeper->ending;
        keeper->ending = true;
        if (mine)
                atomic_store(&cache->snapshots.stop, true);
        pthread_cond_signal(&keeper->wake);
        pthread_mutex_unlock(&keeper->lock);
        if (!mine)
                return -EALREADY;
        pthread_join(keeper->thread, NULL);
        atomic_store(&cache->snapshots.stop, false);
        if (keeper->options.save_at_end && !keeper->load_broken && changes_of(cache) != keeper->changes)
                err = save(keeper);
        pthread_mutex_lock(&keeper->lock);
        keeper->ended = true;
        pthread_mutex_unlock(&keeper->lock);
        store_lock(cache->store);
        atomic_store(&cache->snapshots.keeper, NULL);
        keeper->next = cache->snapshots.ended;
        cache->snapshots.ended = keeper;
        store_unlock(cache->store);
        return err;
}

void snapshot_init(struct sardine_cache *cache)
{
        pthread_mutex_init(&cache->snapshots.purging, NULL);
}

void snapshot_end(struct sardine_cache *cache)
{
        sardine_snapshot_stop(cache);
        while (cache->snapshots.ended) {
                struct keeper *keeper = cache->snapshots.ended;
                cache->snapshots.ended = keeper->next;
                keeper_free(keeper);
        }
        purgelog_fini(&cache->snapshots.purges);
        pthread_mutex_destroy(&cache->snapshots.purging);
        free(cache->purged);
}

void snapshot_status(struct sardine_cache *cache, struct sardine_snapshot_status *status)
{
        struct keeper *keeper = atomic_load_explicit(&cache->snapshots.keeper, memory_order_acquire);
        if (!keeper)
                return;
        size_t sz = status->sz;
        struct timespec now;
        pthread_mutex_lock(&keeper->lock);
        *status = keeper->status;
        clock_gettime(CLOCK_MONOTONIC, &now);
        status->save_age = status->saves ? (uint64_t)(now.tv_sec - keeper->saved.tv_sec) : 0;
        pthread_mutex_unlock(&keeper->lock);
        status->sz = sz;
        status->keeping = 1;
        status->loaded.sz = status->saved.sz = sizeof status->saved;
}
