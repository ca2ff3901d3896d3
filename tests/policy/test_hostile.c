/* SPDX-License-Identifier: MIT
 * Policies that go wrong: the built-in decision is taken, it is counted, and nothing else happens. */
#include "policy_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Lua's long jumps out of C code are not seen by the thread sanitizer when liblua is built with fortified
 * ones: its record of the stack grows with each, and loops of errors take minutes and gigabytes. They have
 * one thread only. */
#if defined(__SANITIZE_THREAD__)
#define JUMPS_ARE_SEEN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JUMPS_ARE_SEEN 0
#endif
#endif
#ifndef JUMPS_ARE_SEEN
#define JUMPS_ARE_SEEN 1
#endif

/* A name is filled, hit, and used when stale, whatever the hooks do. */
static void works(void)
{
        static unsigned n;
        char name[32], records[64];
        snprintf(name, sizeof name, "n%u.example", n++);
        snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
        fill(&kit, ASK(name, 1), REPLY(name, 1, .ra = true, .records = records));
        assert_int_equal(look(&kit, ASK(name, 1))->outcome, SARDINE_HIT);
        kit_wait(&kit, 400);
        assert_int_equal(look(&kit, ASK(name, 1, .flags = SARDINE_ALLOW_STALE))->outcome, SARDINE_STALE);
}

/* What the body must end with. */
enum end { ERROR, TIMEOUT };

static void in_every_hook(const char *before_hooks, const char *body, enum end end, unsigned flags)
{
        char text[2000];
        snprintf(text, sizeof text,
                 "%s\nlocal function f(...) %s end\nreturn {key = f, store = f, stale = f, evict = f}",
                 before_hooks, body);
        policy_set_flags(&kit, text, flags);
        struct sardine_policy_stats before = policy_stats(&kit);
        works();
        struct sardine_policy_stats after = policy_stats(&kit);
        static const unsigned called[] = {SARDINE_HOOK_KEY, SARDINE_HOOK_STORE, SARDINE_HOOK_STALE};
        for (unsigned i = 0; i < 3; i++) {
                uint64_t errors = after.errors[called[i]] - before.errors[called[i]];
                uint64_t timeouts = after.timeouts[called[i]] - before.timeouts[called[i]];
                if (end == TIMEOUT ? timeouts == 0 || errors != 0 : errors == 0 || timeouts != 0)
                        fail_msg("hook %u: %s: %s", called[i], body, policy_line);
        }
}

static void errors_and_loops_fall_back(void **state)
{
        (void)state;
        static const struct {
                const char *body;
                enum end end;
        } bad[] = {
            {"error('no')", ERROR},
            {"error({})", ERROR},
            {"error(setmetatable({}, {__tostring = function() while true do end end}))", ERROR},
            {"while true do end", TIMEOUT},
            {"while true do pcall(function() while true do end end) end", TIMEOUT},
            {"local function g() local x <close> = setmetatable({}, {__close = function() while true do end "
             "end}) g() end g()",
             TIMEOUT},
            {"local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end", TIMEOUT},
            {"local s = 'x' while true do s = s .. s end", ERROR},
            {"local function g() return 1 + g() end g()", TIMEOUT},
            {"return (('a'):rep(200)):find(('a-'):rep(20) .. 'b')", ERROR},
            {"return ('x'):rep(1e9)", ERROR},
            {"return (''):rep(1 << 62)", ERROR},
            {"return table.move({}, 1, 1 << 40, 2)", ERROR},
            {"return table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)", ERROR},
            {"setmetatable({}, {__gc = function() while true do end end})", ERROR},
            {"local function g(s) return (s:gsub('.', g)) end g('x')", ERROR},
            {"return {tag = 1, ttl = 'x'}, 5, {}", ERROR},
            {"return os.exit()", ERROR},
            {"return io.open('/etc/passwd')", ERROR},
            {"return debug.getregistry()", ERROR},
            {"return load('x = 1')", ERROR},
            {"return require 'os'", ERROR},
            {"return string.dump(works)", ERROR},
            {"return coroutine.wrap(function() while true do end end)()", ERROR},
            {"return getmetatable(...).__index", ERROR},
            {"local q = ... q.tag = 'x'", ERROR},
            {"local q = ... return q.qname.within(q, 'x')", ERROR},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                in_every_hook("", bad[i].body, bad[i].end, 0);
}

/* Nothing that a hook calls works for long without being counted. Were it not so, these would take minutes.
 */
static void work_in_libraries_counts(void **state)
{
        (void)state;
        static const struct {
                const char *before, *body;
                enum end end;
        } bad[] = {
            {"", "xpcall(function() while true do end end, function() while true do end end)", TIMEOUT},
            {"", "xpcall(error, function() while true do end end)", TIMEOUT},
            {"", "xpcall(function() while true do end end, string.rep, 5) while true do end", TIMEOUT},
            {"",
             "while true do xpcall(function() local x <close> = setmetatable({}, {__close = function() "
             "while true do end end}) error('no') end, function(e) return e end) end",
             TIMEOUT},
            {"",
             "local t = setmetatable({}, {__tostring = function() while true do end end}) "
             "xpcall(function() error(t) end, tostring)",
             TIMEOUT},
            {"local t = {} for i = 1, 9999 do t[i] = i % 77 end",
             "for i = 1, 9 do table.sort(t, function(a, b) return a < b end) end", TIMEOUT},
            {"local t = {} for i = 1, 9999 do t[i] = 'x' end", "while true do table.sort(t) end", TIMEOUT},
            {"local s = ('a'):rep(50000)", "return s:gsub('.', function() end)", TIMEOUT},
            {"local s = ('a'):rep(1000000)", "return s:gsub('.', string.upper)", TIMEOUT},
            {"", "return string.find(('a'):rep(19) .. 'b', ('a?'):rep(20) .. ('a'):rep(20))", ERROR},
            {"local s = ('('):rep(100000)", "return s:find('%b()')", ERROR},
            {"local s = ('a'):rep(20000)", "return s:find('^(.*)%1b')", ERROR},
            {"local s = ('a'):rep(1500)", "while true do s:find('%f[b]a*c') end", TIMEOUT},
            {"local s = ('a'):rep(1000)", "while true do for x in s:gmatch('a*b') do end end", TIMEOUT},
            {"local s, p = ('a'):rep(3000), ('a'):rep(1500) .. 'b'", "while true do s:find(p, 1, true) end",
             TIMEOUT},
            {"local t = {} for i = 1, 500000 do t[i] = i end",
             "for i = 1, 300 do table.insert(t, 1, 0) table.remove(t, 1) end", TIMEOUT},
            {"local t = {} for i = 1, 50000 do t[i] = i end", "for i = 1, 300 do table.remove(t, 1) end",
             TIMEOUT},
            {"local t = {} for i = 1, 50000 do t[i] = '' end", "while true do table.concat(t) end", TIMEOUT},
            {"local t = {}", "while true do table.move(t, 1, 9999, 2) end", TIMEOUT},
            {"local t = {}", "while true do table.unpack(t, 1, 9999) end", TIMEOUT},
            {"local t = {}", "return table.unpack(t, 1, 100000)", ERROR},
            {"", "return table.unpack(setmetatable({}, {__len = function() while true do end end}))",
             TIMEOUT},
            {"local s = ('a'):rep(200000)", "while true do s:byte(1, -1) end", TIMEOUT},
            {"local s = ('a'):rep(1000000)", "while true do utf8.len(s) end", TIMEOUT},
            {"local s = ('a'):rep(1 << 19)", "while true do s:upper():lower():reverse() end", TIMEOUT},
            {"local s = ('a'):rep(1 << 19)", "while true do string.format('%s%s', s, 'b') end", TIMEOUT},
            {"", "while true do ('x'):rep(1000000) end", TIMEOUT},
            {"", "while true do (''):rep(1000000) end", TIMEOUT},
            {"local a, b = ('a'):rep(1 << 19), 0", "while true do b = a .. b b = 0 end", TIMEOUT},
            {"local a = ('a'):rep(1000000)", "return a .. a", ERROR},
            {"local a = ('a'):rep(1000000)", "while true do pcall(function() return a .. a end) end",
             TIMEOUT},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                in_every_hook(bad[i].before, bad[i].body, bad[i].end, 0);
}

/* What the limits are made of cannot be taken away either. */
static void limits_hold_with_all_libraries(void **state)
{
        (void)state;
        static const struct {
                const char *before, *body;
                enum end end;
        } bad[] = {
            {"", "xpcall(function() while true do end end, function() while true do end end)", TIMEOUT},
            {"", "xpcall(function() while true do end end, debug.traceback) while true do end", TIMEOUT},
            {"", "debug.sethook() while true do end", ERROR},
            {"", "debug.setmetatable({}, {__gc = function() while true do end end})", ERROR},
            {"", "setmetatable({}, {__gc = function() while true do end end})", ERROR},
            {"", "coroutine.wrap(function() while true do end end)()", TIMEOUT},
            {"", "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
             TIMEOUT},
            {"", "while true do pcall(coroutine.wrap(function() for i = 1, 100 do end end)) end", TIMEOUT},
            {"",
             "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() while true "
             "do end end}) while true do end end)()",
             TIMEOUT},
            {"",
             "local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = "
             "function() while true do end end}) coroutine.yield() end) coroutine.resume(c) "
             "coroutine.close(c)",
             TIMEOUT},
            {"local c = coroutine.wrap(function() while true do coroutine.yield() for i = 1, 1e9 do end end "
             "end)",
             "pcall(c) pcall(c) while true do end", TIMEOUT},
            {"", "load('while true do end')()", TIMEOUT},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                in_every_hook(bad[i].before, bad[i].body, bad[i].end, SARDINE_POLICY_ALL_LIBRARIES);
        uint64_t errors = policy_stats(&kit).errors[SARDINE_HOOK_KEY];
        policy_set_flags(
            &kit,
            "return { key = function(q)\n"
            "  local fine, why, more = xpcall(function(...) return ... end, error, 1, 2)\n"
            "  assert(fine and why == 1 and more == 2)\n"
            "  fine, why = xpcall(error, function(e) return e .. '!' end, 'no', 0)\n"
            "  assert(not fine and why == 'no!')\n"
            "  local c = coroutine.wrap(function(a) local b = coroutine.yield(a + 1)\n"
            "    local _, d = xpcall(function() return coroutine.yield(b + 1) end, error) return d + 1 end)\n"
            "  assert(c(1) == 2 and c(5) == 6 and c(7) == 8)\n"
            "  fine, why = pcall(coroutine.wrap(function() error('no', 0) end))\n"
            "  assert(not fine and why == 'no')\n"
            "end }",
            SARDINE_POLICY_ALL_LIBRARIES);
        works();
        if (policy_stats(&kit).errors[SARDINE_HOOK_KEY] != errors)
                fail_msg("%s", policy_line);
}

static void views_that_are_kept_give_errors(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "local q0, name0, client0, r0, rr0\n"
            "return { key = function(q)\n"
            "  if not q0 then q0, name0, client0 = q, q.qname, q.client return end\n"
            "  for _, f in ipairs { function() return q0.name end, function() return tostring(name0) end,\n"
            "    function() return name0:within('.') end, function() return client0.family end } do\n"
            "    local fine, why = pcall(f)\n"
            "    assert(not fine and why:find('was kept from an earlier call', 1, true), why)\n"
            "  end\n"
            "end, store = function(q, r)\n"
            "  if not r0 then r0 = r for rr in r:records() do rr0 = rr end return end\n"
            "  assert(not pcall(function() return r0.ttl end))\n"
            "  assert(not pcall(function() return rr0.data end))\n"
            "  assert(not pcall(function() for rr in r0:records() do end end))\n"
            "end }");
        const uint8_t client[4] = {192, 0, 2, 1};
        look(&kit, ASK("a.example", 1, .client = client));
        look(&kit, ASK("b.example", 1, .client = client));
        works();
        works();
        struct sardine_policy_stats stats = policy_stats(&kit);
        if (stats.errors[SARDINE_HOOK_KEY] + stats.errors[SARDINE_HOOK_STORE])
                fail_msg("%s", policy_line);
}

static void b91_files_that_do_not_load_leave_the_old_policy(void **state)
{
        (void)state;
        policy_set(&kit, "return { key = function() return 'old' end }");
        policy_bad(&kit, "return {", "unexpected symbol");
        policy_bad(&kit, "return 5", "must return a table");
        policy_bad(&kit, "while true do end", "more than 200000000 instructions");
        policy_bad(&kit, "return { ttll = {} }", "there is no ttll here");
        policy_bad(&kit, "return { ttl = { zones = { ['a..b'] = { at_most = 1 } } } }",
                   "is not a domain name");
        policy_bad(&kit, "return { ttl = { at_most = 'x' } }", "ttl.at_most: must be a whole number");
        policy_bad(&kit, "return { tags = { clients = { ['10.0.0.1/8'] = 'x' } } }", "is not a network");
        policy_bad(&kit, "return { never_store = { types = {'NOSUCH'} } }", "is not a record type");
        policy_bad(&kit, "return { never_store = { zones = list 'no-such-file' } }", "No such file");
        policy_bad(&kit, "return { key = 5 }", "key must be a function");
        policy_bad(&kit, "\33Lua", "attempt to load a binary chunk");
        /* Each alone has room, with the buffer that it is made in. */
        policy_bad(&kit,
                   "local mb = ('x'):rep(1000):rep(1000) local s = mb:rep(100) return #s + #mb:rep(500)",
                   "not enough memory");
        assert_int_equal(policy_stats(&kit).loads, 1);
        assert_int_equal(policy_stats(&kit).load_failures, 12);
        works();
        struct sardine_selector sel = {.sz = sizeof sel, .use_tag = 1, .tag = "old", .tag_len = 3};
        assert_int_equal(sardine_expunge(kit.cache, &sel), 1);
}

/* Not more lines than one a minute and hook; and not called for the rest of a second after many errors. */
static void noise_is_bounded(void **state)
{
        (void)state;
        policy_set(&kit, "return { key = function() error('no') end }");
        struct sardine_policy_stats stats;
        struct timespec start, end;
        unsigned asked = 0;
        clock_gettime(CLOCK_MONOTONIC, &start);
        do { /* more than once, if the machine has made a pause of a second between the errors */
                for (unsigned i = 0; i < 1000; i++)
                        assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_MISS);
                asked += 1000;
                stats = policy_stats(&kit);
        } while (stats.skipped[SARDINE_HOOK_KEY] == 0 && asked < 100000);
        clock_gettime(CLOCK_MONOTONIC, &end);
        assert_in_range(policy_lines, 1, 1 + (end.tv_sec - start.tv_sec + 1) / 60);
        assert_int_equal(stats.errors[SARDINE_HOOK_KEY] + stats.skipped[SARDINE_HOOK_KEY], asked);
        assert_true(stats.skipped[SARDINE_HOOK_KEY] > 0);
}

static atomic_bool stop;

static void *ask_on(void *unused)
{
        uint8_t packet[1024], reply[1024], response[1024];
        while (!atomic_load(&stop)) {
                static _Thread_local unsigned n;
                char name[32];
                snprintf(name, sizeof name, "n%u.example", n++ % 3000); /* more than there is room for */
                struct sardine_token token;
                struct sardine_query q = {
                    .sz = sizeof q, .packet = packet, .len = ask_packet(&ASK(name, 1), packet)};
                struct sardine_answer a = {
                    .sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = &token};
                if (sardine_lookup(kit.cache, &q, &a) != SARDINE_MISS)
                        continue;
                memcpy(response, packet, q.len);
                static const uint8_t rr[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1};
                memcpy(response + q.len, rr, sizeof rr);
                response[2] |= 0x80;
                response[7] = 1;
                sardine_insert(kit.cache, &token, response, q.len + sizeof rr, NULL, NULL);
        }
        return unused;
}

enum {
        PATIENCE =
            12000, /* how often somebody looks whether the threads have done what the test wants to see, */
        PATIENCE_NS = 10000000, /* and how long it sleeps in between */
};

static bool all_called(void)
{
        struct sardine_policy_stats stats = policy_stats(&kit);
        for (unsigned hook = SARDINE_HOOK_KEY; hook <= SARDINE_HOOK_EVICT; hook++)
                if (stats.calls[hook] == 0)
                        return false;
        return true;
}

static void reloads_under_load(void **state)
{
        (void)state;
        pthread_t threads[3];
        atomic_store(&stop, false);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, ask_on, NULL), 0);
        for (unsigned i = 0; i < 40; i++) {
                char text[400];
                snprintf(text, sizeof text,
                         "return { tags = { clients = { ['127.0.0.0/8'] = 'x' } }, ttl = { at_most = %u },\n"
                         "  key = function(q) return 'v%u' .. #q.name end, evict = function(e) return e.hits "
                         "end,\n"
                         "  store = function(q, r) for rr in r:records() do return rr.ttl end end }",
                         100 + i, i % 5);
                policy_set(&kit, text);
                sardine_policy_reload(kit.cache, NULL, 0);
        }
        /* The threads may not have had their turn yet. */
        for (unsigned i = 0; i < PATIENCE && !all_called(); i++)
                nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
        assert_int_equal(sardine_policy_load(kit.cache, NULL, 0, NULL, 0), 0);
        atomic_store(&stop, true);
        for (unsigned i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        struct sardine_policy_stats stats = policy_stats(&kit);
        assert_int_equal(stats.loads, 80);
        assert_int_equal(stats.loaded, 0);
        for (unsigned hook = SARDINE_HOOK_KEY; hook <= SARDINE_HOOK_EVICT; hook++) {
                assert_true(stats.calls[hook] > 0);
                if (stats.errors[hook])
                        fail_msg("%s", policy_line);
        }
}

int main(void)
{
        const struct CMUnitTest alone[] = {
            cmocka_unit_test_setup_teardown(errors_and_loops_fall_back, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(work_in_libraries_counts, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(limits_hold_with_all_libraries, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(views_that_are_kept_give_errors, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b91_files_that_do_not_load_leave_the_old_policy, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(noise_is_bounded, policy_setup, policy_teardown),
        };
        const struct CMUnitTest together[] = {
            cmocka_unit_test_setup_teardown(reloads_under_load, policy_setup, policy_teardown),
        };
        int failed = JUMPS_ARE_SEEN ? cmocka_run_group_tests(alone, NULL, NULL) : 0;
        return failed + cmocka_run_group_tests(together, NULL, NULL);
}
