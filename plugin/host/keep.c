/* SPDX-License-Identifier: MIT */
#include "host/keep.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
        KEPT_MAX = 64,
        LOOK_MS = 1000,
        SIGNALS = 2,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sardine_cache *kept[KEPT_MAX];
static unsigned n_kept;
static bool watching;
static int wake = -1;

static const int signals[SIGNALS] = {SIGTERM, SIGINT};
static struct sigaction before[SIGNALS]; /* what would have happened */
static _Atomic int caught;

static void on_signal(int number)
{
        int err = errno;
        uint64_t one = 1;
        atomic_store(&caught, number);
        if (write(wake, &one, sizeof one) < 0) {
                /* It is full: somebody is waking up already. */
        }
        errno = err;
}

/* dnsdist may set its own, before or after us. What it ignores stays ignored. */
static void catch_signals(void)
{
        struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, now;
        for (unsigned i = 0; i < SIGNALS; i++) {
                if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler == on_signal ||
                    now.sa_handler == SIG_IGN)
                        continue;
                before[i] = now;
                sigaction(signals[i], &ours, NULL);
        }
}

void sardine_dnsdist_ending(void)
{
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < n_kept; i++)
                sardine_snapshot_stop(kept[i]);
        pthread_mutex_unlock(&lock);
}

static void end_as_before(int number)
{
        for (unsigned i = 0; i < SIGNALS; i++)
                if (signals[i] == number) {
                        sigaction(number, &before[i], NULL);
                        kill(getpid(), number);
                }
}

static void *watch(void *arg)
{
        (void)arg;
        pthread_setname_np(pthread_self(), "sardine-end");
        for (;;) {
                struct pollfd event = {.fd = wake, .events = POLLIN};
                if (poll(&event, 1, LOOK_MS) > 0) {
                        sardine_dnsdist_ending();
                        end_as_before(atomic_load(&caught));
                        return NULL;
                }
                catch_signals();
        }
}

/* Under the lock. */
static int start_watching(void)
{
        sigset_t all, mask;
        pthread_t thread;
        if (watching)
                return 0;
        wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wake < 0)
                return -errno;
        catch_signals();
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &mask);
        int err = pthread_create(&thread, NULL, watch, NULL);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        if (err)
                return -err;
        pthread_detach(thread);
        watching = true;
        return 0;
}

int sardine_dnsdist_keep(sardine_cache *cache, const char *path, uint32_t interval)
{
        const struct sardine_snapshot_options options = {
            .sz = sizeof options, .path = path, .interval = interval, .load = 1, .save_at_end = 1};
        pthread_mutex_lock(&lock);
        int err = n_kept == KEPT_MAX ? -ENOSPC : start_watching();
        if (!err)
                err = sardine_snapshot_keep(cache, &options);
        if (!err)
                kept[n_kept++] = cache;
        pthread_mutex_unlock(&lock);
        return err;
}

void sardine_dnsdist_keep_no_more(sardine_cache *cache)
{
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < n_kept; i++)
                if (kept[i] == cache)
                        kept[i--] = kept[--n_kept];
        pthread_mutex_unlock(&lock);
}
