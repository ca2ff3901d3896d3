/* SPDX-License-Identifier: MIT
 * Loading, reloading and taking away a cache's policy while lookups go on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cache.h"
#include "policy/policy.h"
#include "store/epoch.h"
#include "verdict.h"

static void add_stats(const struct policy *policy, struct policy_hook_stats sum[POLICY_HOOKS])
{
        struct policy_hook_stats stats[POLICY_HOOKS];
        policy->engine->stats(policy->program, stats);
        for (unsigned i = 0; i < POLICY_HOOKS; i++) {
                sum[i].calls += stats[i].calls;
                sum[i].errors += stats[i].errors;
                sum[i].timeouts += stats[i].timeouts;
                sum[i].skipped += stats[i].skipped;
        }
}

/* Sections are short: a hook's limits bind the longest. */
static void wait_for_readers(void)
{
        uint64_t tag = epoch_retire();
        while (epoch_horizon() <= tag)
                nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* The store's judge: by the entry's class, or the evict hook. */
static int judge(const void *ctx, const uint8_t *entry, uint32_t popularity)
{
        const sardine_cache *cache = ctx;
        epoch_enter();
        const struct policy *policy = policy_of(cache);
        int weight = policy ? verdict_evict(policy, entry, popularity, cache_now(cache)) : POLICY_NO_ANSWER;
        /* What would go stays with a chance that makes it stay `weight` times as long. */
        bool again = weight > 1 && epoch_dice() % (uint32_t)weight != 0;
        epoch_leave();
        if (weight == POLICY_NO_ANSWER)
                return STORE_AS_EVER;
        if (weight == 0)
                return STORE_GOES;
        if (weight == POLICY_WEIGHT_KEEP)
                return popularity > 0 ? (int)popularity : 1;
        return popularity > 0 || !again ? STORE_AS_EVER : 0;
}

static bool judges(const struct policy *policy)
{
        bool weighs = policy_has(policy, POLICY_HOOK_EVICT);
        for (unsigned class = 0; class < POLICY_CLASSES; class ++)
                weighs |= class == POLICY_CLASS_KEEP ? policy->rules->weights[class] != POLICY_WEIGHT_KEEP
                                                     : policy->rules->weights[class] != 1;
        return weighs;
}

/* Under the lock. */
static void exchange(sardine_cache *cache, struct policy *policy)
{
        store_lock(cache->store);
        for (unsigned class = 0; class < POLICY_CLASSES; class ++)
                cache->keeps[class] = policy && policy->rules->weights[class] == POLICY_WEIGHT_KEEP;
        store_unlock(cache->store);
        const struct policy_rules *rules = policy ? policy->rules : NULL;
        store_set_policy(cache->store, policy && judges(policy) ? judge : NULL,
                         rules ? rules->share_one_hit : 0, rules ? rules->share_negative : 0,
                         rules ? rules->share_stale : 0);
        struct policy *old = atomic_exchange(&cache->policy, policy);
        if (!old)
                return;
        wait_for_readers();
        add_stats(old, cache->policy_state.past);
        policy_free(old);
}

static void look_at(const char *path, struct policy_file *file)
{
        struct stat st;
        memset(file, 0, sizeof *file);
        if (stat(path, &st) != 0)
                return;
        file->inode = st.st_ino;
        file->size = (uint64_t)st.st_size;
        file->time = st.st_mtim;
}

/* Under the lock. `path` may be the one that is there already. */
static int load(sardine_cache *cache, const char *path, uint32_t flags, char *why, size_t why_size)
{
        struct policy_state *state = &cache->policy_state;
        const struct policy_source source = {
            .path = path,
            .all_libraries = flags & SARDINE_POLICY_ALL_LIBRARIES,
            .log = cache->options.log,
            .log_ctx = cache->options.log_ctx,
        };
        char reason[512] = "";
        struct policy *policy = NULL;
        char *copy = strdup(path);
        look_at(path, &state->file);
        int err = copy ? policy_load(&source, &policy, reason, sizeof reason) : -ENOMEM;
        if (why && why_size)
                snprintf(why, why_size, "%s", reason);
        if (err) {
                state->load_failures++;
                free(copy);
                return err;
        }
        policy_rules_hash_tags(policy->rules, cache->secret, sizeof cache->secret);
        free(state->path);
        state->path = copy;
        state->flags = flags;
        state->loads++;
        exchange(cache, policy);
        return 0;
}

int sardine_policy_load(sardine_cache *cache, const char *path, uint32_t flags, char *why, size_t why_size)
{
        int err = 0;
        if (!cache || flags & ~(uint32_t)SARDINE_POLICY_ALL_LIBRARIES)
                return -EINVAL;
        pthread_mutex_lock(&cache->policy_state.lock);
        if (path) {
                err = load(cache, path, flags, why, why_size);
        } else {
                exchange(cache, NULL);
                free(cache->policy_state.path);
                cache->policy_state.path = NULL;
        }
        pthread_mutex_unlock(&cache->policy_state.lock);
        return err;
}

int sardine_policy_reload(sardine_cache *cache, char *why, size_t why_size)
{
        if (!cache)
                return -EINVAL;
        struct policy_state *state = &cache->policy_state;
        pthread_mutex_lock(&state->lock);
        int err = -ENOENT;
        if (state->path)
                err = load(cache, state->path, state->flags, why, why_size);
        else if (why && why_size)
                snprintf(why, why_size, "there is no policy");
        pthread_mutex_unlock(&state->lock);
        return err;
}

int sardine_policy_changed(sardine_cache *cache)
{
        if (!cache)
                return -EINVAL;
        struct policy_state *state = &cache->policy_state;
        pthread_mutex_lock(&state->lock);
        bool changed = false;
        if (state->path) {
                struct policy_file now;
                look_at(state->path, &now);
                /* A file that is just being replaced may be missing for a moment. */
                changed = now.inode != 0 && (now.inode != state->file.inode || now.size != state->file.size ||
                                             now.time.tv_sec != state->file.time.tv_sec ||
                                             now.time.tv_nsec != state->file.time.tv_nsec);
        }
        pthread_mutex_unlock(&state->lock);
        return changed;
}

int sardine_policy_stats_get(sardine_cache *cache, struct sardine_policy_stats *stats)
{
        size_t sz = stats ? stats->sz : 0;
        if (!cache || sz < sizeof *stats)
                return -EINVAL;
        struct policy_state *state = &cache->policy_state;
        memset(stats, 0, sz);
        stats->sz = sz;
        pthread_mutex_lock(&state->lock);
        struct policy_hook_stats sum[POLICY_HOOKS];
        memcpy(sum, state->past, sizeof sum);
        const struct policy *policy = atomic_load(&cache->policy);
        if (policy)
                add_stats(policy, sum);
        stats->loaded = policy != NULL;
        stats->hooks = policy ? policy->hooks : 0;
        stats->loads = state->loads;
        stats->load_failures = state->load_failures;
        for (unsigned i = 0; i < POLICY_HOOKS; i++) {
                stats->calls[i] = sum[i].calls;
                stats->errors[i] = sum[i].errors;
                stats->timeouts[i] = sum[i].timeouts;
                stats->skipped[i] = sum[i].skipped;
        }
        pthread_mutex_unlock(&state->lock);
        return 0;
}

void policies_init(sardine_cache *cache)
{
        pthread_mutex_init(&cache->policy_state.lock, NULL);
}

void policies_fini(sardine_cache *cache)
{
        policy_free(atomic_load(&cache->policy));
        free(cache->policy_state.path);
        pthread_mutex_destroy(&cache->policy_state.lock);
}
