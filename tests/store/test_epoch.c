/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

/* To look at the records. */
#include "store/epoch.c"

static unsigned count_records(void)
{
        unsigned n = 0;
        for (struct epoch_record *r = atomic_load(&records); r; r = r->next)
                n++;
        return n;
}

struct visitor {
        pthread_t thread;
        sem_t inside, leave;
};

static void *stay(void *arg)
{
        struct visitor *v = arg;
        epoch_enter();
        sem_post(&v->inside);
        sem_wait(&v->leave);
        epoch_leave();
        return NULL;
}

static void visit_begin(struct visitor *v)
{
        sem_init(&v->inside, 0, 0);
        sem_init(&v->leave, 0, 0);
        assert_int_equal(pthread_create(&v->thread, NULL, stay, v), 0);
        sem_wait(&v->inside);
}

static void visit_end(struct visitor *v)
{
        sem_post(&v->leave);
        pthread_join(v->thread, NULL);
}

static void readers_hold_back_what_they_may_see(void **state)
{
        (void)state;
        uint64_t alone = epoch_retire();
        assert_true(alone < epoch_horizon());
        struct visitor early, late;
        visit_begin(&early);
        uint64_t tag = epoch_retire();
        assert_true(alone < epoch_horizon());
        assert_false(tag < epoch_horizon());
        /* Who comes later cannot see it any more, and does not hold it back. */
        visit_begin(&late);
        uint64_t next = epoch_retire();
        visit_end(&early);
        assert_true(tag < epoch_horizon());
        assert_false(next < epoch_horizon());
        visit_end(&late);
        assert_true(next < epoch_horizon());
}

static void own_section_counts(void **state)
{
        (void)state;
        epoch_enter();
        uint64_t tag = epoch_retire();
        assert_false(tag < epoch_horizon());
        epoch_leave();
        assert_true(tag < epoch_horizon());
}

static void threads_come_and_go(void **state)
{
        (void)state;
        struct visitor v;
        visit_begin(&v);
        visit_end(&v);
        unsigned before = count_records();
        for (unsigned n = 0; n < 200; n++) {
                visit_begin(&v);
                visit_end(&v);
        }
        assert_int_equal(count_records(), before);
        struct visitor many[20];
        for (unsigned n = 0; n < 20; n++)
                visit_begin(&many[n]);
        assert_true(count_records() >= 20);
        for (unsigned n = 0; n < 20; n++)
                visit_end(&many[n]);
        assert_true(epoch_retire() < epoch_horizon());
}

/* A section without a record, as after a failed allocation. */
static void strangers_hold_everything_back(void **state)
{
        (void)state;
        struct epoch_record *kept = epoch_mine;
        uint64_t tag = epoch_retire();
        epoch_mine = NULL;
        atomic_fetch_add(&strangers, 1);
        assert_false(tag < epoch_horizon());
        epoch_leave();
        epoch_mine = kept;
        assert_true(tag < epoch_horizon());
}

static void a_forked_child_goes_on(void **state)
{
        (void)state;
        epoch_enter();
        epoch_leave();
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct visitor v;
                visit_begin(&v);
                uint64_t tag = epoch_retire();
                bool held = !(tag < epoch_horizon());
                visit_end(&v);
                _exit(held && tag < epoch_horizon() ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(readers_hold_back_what_they_may_see),
            cmocka_unit_test(own_section_counts),
            cmocka_unit_test(threads_come_and_go),
            cmocka_unit_test(strangers_hold_everything_back),
            cmocka_unit_test(a_forked_child_goes_on),
        };
        return cmocka_run_group_tests_name("store epoch", tests, NULL, NULL);
}
