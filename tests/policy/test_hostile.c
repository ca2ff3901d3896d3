/* SPDX-License-Identifier: MIT
 * Policies that go wrong: the built-in decision is taken, it is counted, and nothing else happens. */
#include "policy_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

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

static struct kit kit;

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.stale_window = 3600;
        policy_open(&kit);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        kit_close(&kit);
        policy_done();
        return 0;
}

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

static void in_every_hook(const char *body, bool timeout)
{
        char text[2000];
        snprintf(text, sizeof text,
                 "local function f(...) %s end\nreturn {key = f, store = f, stale = f, evict = f}", body);
        policy_set(&kit, text);
        struct sardine_policy_stats before = policy_stats(&kit);
        works();
        struct sardine_policy_stats after = policy_stats(&kit);
        static const unsigned called[] = {SARDINE_HOOK_KEY, SARDINE_HOOK_STORE, SARDINE_HOOK_STALE};
        for (unsigned i = 0; i < 3; i++) {
                uint64_t errors = after.errors[called[i]] - before.errors[called[i]];
                uint64_t timeouts = after.timeouts[called[i]] - before.timeouts[called[i]];
                if (timeout ? timeouts == 0 : errors == 0)
                        fail_msg("hook %u: %s: %s", called[i], body, policy_line);
        }
}

static void errors_and_loops_fall_back(void **state)
{
        (void)state;
        if (!JUMPS_ARE_SEEN)
                skip();
        static const struct {
                const char *body;
                bool timeout;
        } bad[] = {
            {"error('no')", false},
            {"error({})", false},
            {"error(setmetatable({}, {__tostring = function() while true do end end}))", false},
            {"while true do end", true},
            {"while true do pcall(function() while true do end end) end", true},
            {"local function g() local x <close> = setmetatable({}, {__close = function() while true do end "
             "end}) g() end g()",
             true},
            {"local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end", false},
            {"local s = 'x' while true do s = s .. s end", false},
            {"local function g() return 1 + g() end g()", true},
            {"return (('a'):rep(200)):find(('a-'):rep(20) .. 'b')", false},
            {"return ('x'):rep(1e9)", false},
            {"return (''):rep(1 << 62)", false},
            {"return table.move({}, 1, 1 << 40, 2)", false},
            {"return table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)", false},
            {"setmetatable({}, {__gc = function() while true do end end})", false},
            {"local function g(s) return (s:gsub('.', g)) end g('x')", false},
            {"return {tag = 1, ttl = 'x'}, 5, {}", false},
            {"return os.exit()", false},
            {"return io.open('/etc/passwd')", false},
            {"return debug.getregistry()", false},
            {"return load('x = 1')", false},
            {"return require 'os'", false},
            {"return string.dump(works)", false},
            {"return coroutine.wrap(function() while true do end end)()", false},
            {"return getmetatable(...).__index", false},
            {"local q = ... q.tag = 'x'", false},
            {"local q = ... return q.qname.within(q, 'x')", false},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                in_every_hook(bad[i].body, bad[i].timeout);
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
        policy_bad(&kit, "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
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
        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_MISS);
        struct sardine_policy_stats stats = policy_stats(&kit);
        assert_int_equal(policy_lines, 1);
        assert_int_equal(stats.errors[SARDINE_HOOK_KEY] + stats.skipped[SARDINE_HOOK_KEY], 1000);
        assert_true(stats.skipped[SARDINE_HOOK_KEY] > 0);
}

static atomic_bool stop;

static void *ask_on(void *unused)
{
        uint8_t packet[1024], reply[1024], response[1024];
        while (!atomic_load(&stop)) {
                static _Thread_local unsigned n;
                char name[32];
                snprintf(name, sizeof name, "n%u.example", n++ % 50);
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
        assert_int_equal(sardine_policy_load(kit.cache, NULL, 0, NULL, 0), 0);
        atomic_store(&stop, true);
        for (unsigned i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        struct sardine_policy_stats stats = policy_stats(&kit);
        assert_int_equal(stats.loads, 80);
        assert_int_equal(stats.loaded, 0);
        if (stats.errors[SARDINE_HOOK_KEY] + stats.errors[SARDINE_HOOK_STORE])
                fail_msg("%s", policy_line);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(errors_and_loops_fall_back, setup, teardown),
            cmocka_unit_test_setup_teardown(views_that_are_kept_give_errors, setup, teardown),
            cmocka_unit_test_setup_teardown(b91_files_that_do_not_load_leave_the_old_policy, setup, teardown),
            cmocka_unit_test_setup_teardown(noise_is_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(reloads_under_load, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
