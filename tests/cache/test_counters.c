/* SPDX-License-Identifier: MIT
 * Counters lose nothing: threads side by side, more than there are stripes; threads that come and go and take
 * over stripes; threads without one; forked children (B74). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "counters.h"
#include "store/epoch.h"

enum {
        SIDE_BY_SIDE = COUNTER_STRIPES + 8,
        GENERATIONS = 4,
        EACH = 5000,
        STRANGERS = 4, /* of SIDE_BY_SIDE: they never read */
};

static struct counters *counters;
static pthread_barrier_t all_have_begun;

static void bump(unsigned times)
{
        for (unsigned i = 0; i < times; i++)
                counters_add(counters, COUNT_HIT);
}

static void *reader(void *arg)
{
        (void)arg;
        epoch_enter();
        epoch_leave();
        pthread_barrier_wait(&all_have_begun);
        bump(EACH);
        return NULL;
}

static void *stranger(void *arg)
{
        (void)arg;
        pthread_barrier_wait(&all_have_begun);
        bump(EACH);
        return NULL;
}

static void run_generation(void)
{
        pthread_t threads[SIDE_BY_SIDE];
        assert_int_equal(pthread_barrier_init(&all_have_begun, NULL, SIDE_BY_SIDE), 0);
        for (unsigned i = 0; i < SIDE_BY_SIDE; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, i < STRANGERS ? stranger : reader, NULL),
                                 0);
        for (unsigned i = 0; i < SIDE_BY_SIDE; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        pthread_barrier_destroy(&all_have_begun);
}

static int setup(void **state)
{
        (void)state;
        counters = aligned_alloc(_Alignof(struct counters), sizeof *counters);
        if (!counters)
                return -1;
        *counters = (struct counters){0};
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        free(counters);
        return 0;
}

static void b74_every_thread_counts(void **state)
{
        (void)state;
        for (unsigned n = 1; n <= GENERATIONS; n++) {
                run_generation();
                assert_int_equal(counters_sum(counters, COUNT_HIT), n * SIDE_BY_SIDE * EACH);
        }
        /* the first ones did without the shared stripe */
        for (unsigned i = 0; i < COUNTER_SHARED; i++)
                assert_true(counters->stripe[i].value[COUNT_HIT] > 0);
        assert_int_equal(counters_sum(counters, COUNT_MISS), 0);
}

/* Others begin and end while one goes on: whoever takes over a stripe goes on with what was there. */
static void *one_after_the_other(void *arg)
{
        (void)arg;
        for (unsigned n = 0; n < 50; n++) {
                pthread_t thread;
                if (pthread_barrier_init(&all_have_begun, NULL, 1) != 0 ||
                    pthread_create(&thread, NULL, reader, NULL) != 0 || pthread_join(thread, NULL) != 0)
                        return "failed";
                pthread_barrier_destroy(&all_have_begun);
        }
        return NULL;
}

static void b74_stripes_change_hands(void **state)
{
        (void)state;
        void *failed;
        pthread_t thread;
        epoch_enter();
        epoch_leave();
        assert_int_equal(pthread_create(&thread, NULL, one_after_the_other, NULL), 0);
        bump(20 * EACH);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        assert_int_equal(counters_sum(counters, COUNT_HIT), (20 + 50) * EACH);
}

static void b74_a_child_counts_for_itself(void **state)
{
        (void)state;
        bump(EACH);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                run_generation();
                _exit(counters_sum(counters, COUNT_HIT) != (SIDE_BY_SIDE + 1) * EACH);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(counters_sum(counters, COUNT_HIT), EACH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b74_every_thread_counts, setup, teardown),
            cmocka_unit_test_setup_teardown(b74_stripes_change_hands, setup, teardown),
            cmocka_unit_test_setup_teardown(b74_a_child_counts_for_itself, setup, teardown),
        };
        return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
