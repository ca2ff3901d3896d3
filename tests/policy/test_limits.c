/* SPDX-License-Identifier: MIT
 * The limits of hooks are what lua/POLICY.md says: just below each of them a hook works, just above it fails.
 */
#include "policy_kit.h"

#include <stdio.h>

enum end { FINE, ERROR, TIMEOUT };

/* A key hook with this body, called `calls` times; `rest`: more of the policy. What became of the last call.
 */
static enum end run(const char *before, const char *body, const char *rest, unsigned calls)
{
        char text[1000];
        snprintf(text, sizeof text, "%s return { key = function(q) %s end, %s }", before, body, rest);
        policy_set(&kit, text);
        struct sardine_policy_stats old, new = policy_stats(&kit);
        do {
                old = new;
                look(&kit, ASK("www.example", 1));
                new = policy_stats(&kit);
        } while (--calls > 0);
        assert_int_equal(new.calls[SARDINE_HOOK_KEY], old.calls[SARDINE_HOOK_KEY] + 1);
        if (new.timeouts[SARDINE_HOOK_KEY] > old.timeouts[SARDINE_HOOK_KEY])
                return TIMEOUT;
        return new.errors[SARDINE_HOOK_KEY] > old.errors[SARDINE_HOOK_KEY] ? ERROR : FINE;
}

/* All at once, to say which one is not as told. */
struct limit {
        const char *before, *body, *rest;
        enum end end;
};
static void as_told(const struct limit *limits, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                enum end end = run(limits[i].before, limits[i].body, limits[i].rest, 1);
                if (end != limits[i].end)
                        fail_msg("%s %s: %d (%s)", limits[i].before, limits[i].body, end, policy_line);
        }
}
#define AS_TOLD(limits) as_told(limits, sizeof(limits) / sizeof(limits)[0])

static void instructions(void **state)
{
        (void)state;
        static const struct limit limits[] = {
            {"", "for i = 1, 97000 do end", "", FINE},
            {"", "for i = 1, 102000 do end", "", TIMEOUT},
            {"", "for i = 1, 2000 do end", "limits = { instructions = 1000 }", TIMEOUT},
            {"", "for i = 1, 900000 do end", "limits = { instructions = 1000000 }", FINE},
        };
        AS_TOLD(limits);
        policy_bad(&kit, "return { limits = { instructions = 999 } }", "from 1000 to 10000000");
        policy_bad(&kit, "return { limits = { instructions = 10000001 } }", "from 1000 to 10000000");
        policy_bad(&kit, "return { limits = { memory = 1048575 } }", "from 1048576 to 1073741824");
        /* The file itself has more. */
        policy_set(&kit, "for i = 1, 100000000 do end return {}");
}

/* Strings of a million bytes. Making them costs instructions as well. */
#define MORE "instructions = 10000000"

static void memory(void **state)
{
        (void)state;
        static const struct limit limits[] = {
            {"local s = ('x'):rep(1000)", "kept = {} for i = 1, 14 do kept[i] = s:rep(1000) end",
             "limits = { " MORE " }", FINE},
            {"local s = ('x'):rep(1000)", "kept = {} for i = 1, 18 do kept[i] = s:rep(1000) end",
             "limits = { " MORE " }", ERROR},
            {"local s = ('x'):rep(1000)", "kept = {} for i = 1, 18 do kept[i] = s:rep(1000) end",
             "limits = { " MORE ", memory = 22000000 }", FINE},
            /* What the file takes does not count. */
            {"local s, t = ('x'):rep(1000), {} for i = 1, 40 do t[i] = s:rep(1000) end",
             "kept = {} for i = 1, 14 do kept[i] = s:rep(1000) end", "limits = { " MORE " }", FINE},
        };
        AS_TOLD(limits);
}

/* Over all calls of a thread: then it begins anew. */
static void a_leak_ends(void **state)
{
        (void)state;
        const char *before = "local s, kept = ('x'):rep(1000), {}", *body = "kept[#kept + 1] = s:rep(1000)";
        assert_int_equal(run(before, body, "", 14), FINE);
        assert_int_equal(run(before, body, "", 16), ERROR); /* one more is in the making */
        for (unsigned i = 0; i < 13; i++)
                look(&kit, ASK("www.example", 1));
        assert_int_equal(policy_stats(&kit).errors[SARDINE_HOOK_KEY], 1);
}

static void single_calls(void **state)
{
        (void)state;
        static const struct limit limits[] = {
            {"local s = ('x'):rep(1000)", "return #s:rep(1048) > 0 and nil", "", FINE},
            {"local s = ('x'):rep(1000)", "return s:rep(1049)", "", ERROR},
            /* Patterns. */
            {"local s = ('a'):rep(300)", "s:find('^.*foo.*bar.*$')", "", ERROR},
            {"local s = ('a'):rep(100)", "s:find('^.*foo.*bar')", "", FINE},
            {"local s = ('a'):rep(300)", "s:find('foo.*bar')", "", FINE},
            {"local s = ('a'):rep(100000)", "s:find('foo', 1, true)", "", FINE},
            {"local s = ('a'):rep(2000) s:find('^.*foo.*')", "", "", FINE}, /* the file may */
            /* Items. */
            {"local t = {} for i = 1, 5000 do t[i] = i end", "table.sort(t)", "", FINE},
            {"local t = {} for i = 1, 10001 do t[i] = i end", "table.sort(t)",
             "limits = { instructions = 10000000 }", ERROR},
            {"local t = {}", "table.unpack(t, 1, 10000)", "", FINE},
            {"local t = {}", "table.unpack(t, 1, 10001)", "", ERROR},
            {"local t = {}", "table.move(t, 1, 10001, 2)", "", ERROR},
            {"local t = setmetatable({}, {__index = function() return 1 end})", "table.concat(t)", "", ERROR},
        };
        AS_TOLD(limits);
}

static void caught_errors(void **state)
{
        (void)state;
        static const struct limit limits[] = {
            {"", "local fine, why = pcall(error, 'x', 0) assert(not fine and why == 'x')", "", FINE},
            {"",
             "local fine, why = xpcall(error, function(e) return e .. '!' end, 'x', 0) assert(why == 'x!')",
             "", FINE},
            /* The stack is unwound by then: what the function has closed is closed. */
            {"",
             "local closed = false\n"
             "local _, seen = xpcall(function()\n"
             "  local x <close> = setmetatable({}, {__close = function() closed = true end}) error('x')\n"
             "end, function() return closed end)\n"
             "assert(seen == true)",
             "", FINE},
            {"", "pcall(function() for i = 1, 200000 do end end)", "", TIMEOUT},
            {"", "xpcall(function() for i = 1, 200000 do end end, function() end)", "", TIMEOUT},
        };
        AS_TOLD(limits);
}

/* Which functions there are: all that is not said to be missing. */
static void libraries(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "local missing = 'io os debug package coroutine load loadfile dofile require print warn '\n"
            "  .. 'collectgarbage'\n"
            "for name in missing:gmatch('%a+') do assert(_G[name] == nil, name) end\n"
            "assert(string.dump == nil)\n"
            "local there = 'assert error getmetatable ipairs next pairs pcall rawequal rawget rawlen '\n"
            "  .. 'rawset select setmetatable tonumber tostring type xpcall string table math utf8 '\n"
            "  .. 'types rcodes list'\n"
            "for name in there:gmatch('%w+') do assert(_G[name] ~= nil, name) end\n"
            "assert(not pcall(setmetatable, {}, {__gc = function() end}))\n"
            "return {}");
        policy_set_flags(
            &kit,
            "assert(io and os and debug and package and coroutine and load and require and print)\n"
            "assert(debug.sethook == nil and not pcall(setmetatable, {}, {__gc = function() end}))\n"
            "assert(package.loadlib == nil and #package.searchers == 2)\n"
            "return {}",
            SARDINE_POLICY_ALL_LIBRARIES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(instructions, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(memory, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_leak_ends, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(single_calls, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(caught_errors, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(libraries, policy_setup, policy_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
