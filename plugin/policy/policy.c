/* SPDX-License-Identifier: MIT
 * Policies, and the way to the engine: a shared object that is opened when it is needed. */
#include "policy/policy.h"

#include <dlfcn.h>
#include <errno.h>
#include <ldns/ldns.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char ENGINE_FILE[] = "policy-lua54.so";

static int type_number(const char *name)
{
        ldns_rr_type type = ldns_get_rr_type_by_name(name);
        return type == 0 ? -1 : (int)type;
}

static int rcode_number(const char *name)
{
        const ldns_lookup_table *found = ldns_lookup_by_name(ldns_rcodes, name);
        return found ? found->id : -1;
}

static const struct policy_services services = {
    .rules_zone = policy_rules_zone,
    .rules_client = policy_rules_client,
    .rules_type = policy_rules_type,
    .rules_ttl = policy_rules_ttl,
    .rules_tag = policy_rules_tag,
    .rules_listener = policy_rules_listener,
    .rules_host_tag = policy_rules_host_tag,
    .type_number = type_number,
    .rcode_number = rcode_number,
};

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct policy_engine *the_engine; /* under the lock; once found it stays */

/* Its symbols are seen by nobody, and it sees its own Lua first: a process with LuaJIT has functions of the
 * same names. The sanitizers' dlopen() cannot do that, and the processes that they are used in have no other
 * Lua. */
static void *open_engine(const char *path)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#else
        return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
#endif
#else
        return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
#endif
}

/* Beside this library: installed in the folder "sardine", in the build folder in "policy". */
static void *find_engine(char *why, size_t why_size)
{
        static const char *const folders[] = {"sardine", "policy"};
        const char *named = secure_getenv("SARDINE_POLICY_ENGINE");
        if (named) {
                void *handle = open_engine(named);
                if (!handle)
                        snprintf(why, why_size, "%s", dlerror());
                return handle;
        }
        Dl_info info;
        if (!dladdr(&services, &info) || !info.dli_fname) {
                snprintf(why, why_size, "cannot find out where this library is");
                return NULL;
        }
        const char *slash = strrchr(info.dli_fname, '/');
        int folder_len = slash ? (int)(slash - info.dli_fname) : 1;
        const char *folder = slash ? info.dli_fname : ".";
        for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
                char path[PATH_MAX];
                int len =
                    snprintf(path, sizeof path, "%.*s/%s/%s", folder_len, folder, folders[i], ENGINE_FILE);
                if (len < 0 || (size_t)len >= sizeof path)
                        continue;
                void *handle = open_engine(path);
                if (handle)
                        return handle;
                /* What is wrong with the installed one is what matters. */
                if (i == 0)
                        snprintf(why, why_size, "%s", dlerror());
        }
        return NULL;
}

static const struct policy_engine *get_engine(char *why, size_t why_size)
{
        pthread_mutex_lock(&engine_lock);
        if (!the_engine) {
                void *handle = find_engine(why, why_size);
                const struct policy_engine *engine = handle ? dlsym(handle, POLICY_ENGINE_SYMBOL) : NULL;
                if (engine && engine->version == POLICY_ENGINE_VERSION)
                        the_engine = engine;
                else if (handle)
                        snprintf(why, why_size, "the policy engine is not of this library's version");
                /* It is never closed: threads may hold variables of its own. */
        }
        pthread_mutex_unlock(&engine_lock);
        return the_engine;
}

int policy_load(const struct policy_source *source, struct policy **out, char *why, size_t why_size)
{
        const struct policy_engine *engine = get_engine(why, why_size);
        if (!engine)
                return -ENOENT;
        struct policy *policy = calloc(1, sizeof *policy);
        struct policy_rules *rules = policy_rules_create();
        if (!policy || !rules) {
                snprintf(why, why_size, "no memory");
                free(policy);
                policy_rules_free(rules);
                return -ENOMEM;
        }
        policy->engine = engine;
        policy->rules = rules;
        policy->program = engine->load(&services, source, rules, &policy->hooks, why, why_size);
        int err = policy->program ? 0 : -EINVAL;
        if (!err && !policy_rules_finish(rules)) {
                snprintf(why, why_size, "no memory for the tables");
                err = -ENOMEM;
        }
        if (err) {
                policy_free(policy);
                return err;
        }
        if (policy_has(policy, POLICY_HOOK_KEY) || rules->n_listeners || rules->n_host_tags)
                policy->keys = POLICY_KEYS_ANY;
        else
                policy->keys = rules->tag_clients.count ? POLICY_KEYS_CLIENT : POLICY_KEYS_PLAIN;
        *out = policy;
        return 0;
}

void policy_free(struct policy *policy)
{
        if (!policy)
                return;
        if (policy->program)
                policy->engine->unload(policy->program);
        policy_rules_free(policy->rules);
        free(policy);
}
