/* SPDX-License-Identifier: MIT
 * Snapshots in the public interface. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "snapshot/snapshot.h"

static uint64_t micros_now(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int snapshot_timed(struct sardine_cache *cache, const char *path, snapshot_work work,
                   struct sardine_snapshot_result *result)
{
        uint64_t start = micros_now();
        memset(result, 0, sizeof *result);
        result->sz = sizeof *result;
        int err = work(cache, path, result);
        result->micros = micros_now() - start;
        return err;
}

static int once(struct sardine_cache *cache, const char *path, snapshot_work work,
                struct sardine_snapshot_result *result)
{
        struct sardine_snapshot_result own = {.sz = sizeof own};
        if (!cache || !path)
                return -EINVAL;
        int err = result ? struct_check(result, sizeof *result) : 0;
        if (err)
                return err;
        size_t sz = result ? result->sz : sizeof own;
        if (!result)
                result = &own;
        err = snapshot_timed(cache, path, work, result);
        if (work == snapshot_load)
                atomic_fetch_add(&cache->snapshots.loaded, result->entries);
        result->sz = sz;
        return err;
}

int sardine_snapshot_save(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result)
{
        return once(cache, path, snapshot_save, result);
}

int sardine_snapshot_load(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result)
{
        return once(cache, path, snapshot_load, result);
}

int sardine_snapshot_keep(sardine_cache *cache, const struct sardine_snapshot_options *options)
{
        int err = cache ? struct_check(options, sizeof *options) : -EINVAL;
        if (err)
                return err;
        if (!options->path || !*options->path || options->load > 1 || options->save_at_end > 1)
                return -EINVAL;
        return snapshot_keep(cache, options);
}

int sardine_snapshot_status_get(sardine_cache *cache, struct sardine_snapshot_status *status)
{
        int err = cache ? struct_check(status, sizeof *status) : -EINVAL;
        if (err)
                return err;
        size_t sz = status->sz;
        memset(status, 0, sz);
        status->sz = sz;
        snapshot_status(cache, status);
        return 0;
}
