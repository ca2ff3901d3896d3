-- SPDX-License-Identifier: MIT
-- Policies through the Lua module: a policy's own Lua, in the engine, beside the one that runs this.
local sardine = require 'sardine'
local kit = require 'kit'
local query, response, equal, raises = kit.query, kit.response, kit.equal, kit.raises
local test = {}

local path = os.tmpname()
local function write(text)
    local file = assert(io.open(path, 'w'))
    file:write(text)
    file:close()
    return path
end

local function new(options)
    return assert(sardine.new(options or {max_entries = 1000}))
end

function test.a_policy_decides_and_is_counted()
    local cache <close> = new()
    equal(cache:policy_stats().loaded, false)
    assert(cache:policy_load(write [[
        return {
            never_store = {zones = {'never.example'}},
            key = function(q)
                if q.qname:within('skip.example.') then
                    error('no such thing')
                end
                return q.qname:within('tenant.example.') and 'x' or nil
            end,
        }]]))
    local token = cache:token(query('a.never.example.', 'A'))
    local outcome, _, reason = cache:insert(token, response('a.never.example.', 'A', {data = '\192\0\2\1'}))
    equal(outcome .. ' ' .. reason, 'refused policy')
    kit.fill(cache, 'a.tenant.example.')
    equal(cache:lookup(query('a.tenant.example.', 'A')), 'hit')
    equal(cache:lookup(query('a.skip.example.', 'A')), 'miss')
    local stats = cache:policy_stats()
    equal(stats.loaded, true)
    equal(stats.loads, 1)
    equal(stats.key.defined, true)
    assert(stats.key.calls >= 3 and stats.key.errors == 1, stats.key.errors)
    equal(stats.evict.defined, false)
    equal(cache:stats().reasons.policy, 1)
    assert(cache:policy_unload())
    equal(cache:policy_stats().loaded, false)
end

function test.a_broken_file_says_where_and_leaves_the_old_one()
    local cache <close> = new()
    assert(cache:policy_load(write 'return {never_store = {zones = {"never.example"}}}'))
    local done, why = cache:policy_load(write '\nreturn {never_stroe = {}}')
    equal(done, nil)
    assert(why:find('never_stroe', 1, true), why)
    done, why = cache:policy_load(write '\n\nreturn {')
    equal(done, nil)
    assert(why:find(':3:', 1, true), why)
    done, why = cache:policy_load('/nowhere/policy.lua')
    equal(done, nil)
    assert(#why > 0)
    local stats = cache:policy_stats()
    equal(stats.loaded, true)
    equal(stats.loads, 1)
    equal(stats.load_failures, 3)
    raises('NUL', cache.policy_load, cache, 'a\0b')
    raises("unknown field 'libraries'", cache.policy_load, cache, path, {libraries = true})
end

function test.a_file_can_change()
    local cache <close> = new()
    local done, why = cache:policy_reload()
    equal(done, nil)
    equal(type(why), 'string')
    equal(cache:policy_changed(), false)
    assert(cache:policy_load(write 'return {}'))
    equal(cache:policy_changed(), false)
    write 'return {never_store = {zones = {"never.example"}}}'
    equal(cache:policy_changed(), true)
    assert(cache:policy_reload())
    equal(cache:policy_changed(), false)
    equal(cache:policy_stats().loads, 2)
end

function test.libraries_are_opened_on_request()
    local cache <close> = new()
    local done, why = cache:policy_load(write 'assert(io, "no io") return {}')
    equal(done, nil)
    assert(why:find('no io', 1, true), why)
    assert(cache:policy_load(path, {all_libraries = true}))
end

-- This module is there, and its folder is known; but it is written in C.
function test.a_hook_has_no_way_to_call_the_cache()
    for _, all_libraries in ipairs {false, true} do
        local cache <close> = new()
        assert(cache:policy_load(write [[
            local function call()
                local cache = assert(require 'sardine'.new {max_entries = 64})
                return cache:lookup ''
            end
            return {key = call, store = call, evict = call, stale = call}]], {all_libraries = all_libraries}))
        for i = 1, 5 do
            kit.fill(cache, i .. '.example.')
            equal(cache:lookup(query(i .. '.example.', 'A')), 'hit')
        end
        local stats = cache:policy_stats()
        equal(stats.key.calls, 10)
        equal(stats.key.errors, 10)
        equal(stats.store.errors, 5)
    end
end

function test.b88_cache_only_where_a_policy_tells_clients_apart()
    local clock = sardine.clock()
    local cache <close> = new {max_entries = 1000, stale_window = 100, clock = clock}
    assert(cache:policy_load(write [[
        return {
            tags = {clients = {['192.0.2.0/24'] = 'kids'}},
            stale = function(e, why) return e.tag == 'kids' and why == 'allowed' end,
        }]]))
    local function ask(client, name, allow_stale)
        local outcome, _, token, details =
            cache:lookup(query(name, 'A'), {client = client, cache_only = true, allow_stale = allow_stale})
        equal(token, nil)
        return outcome, details
    end
    for _, client in ipairs {'192.0.2.1', '198.51.100.1'} do
        kit.fill(cache, 'a.example.', nil, {client = client})
    end
    kit.fill(cache, 'kids.example.', nil, {client = '192.0.2.1'})
    equal(ask('192.0.2.9', 'kids.example.'), 'hit')
    equal(ask('198.51.100.9', 'kids.example.'), 'miss')
    clock:advance(350)
    local outcome, details = ask('192.0.2.9', 'a.example.')
    equal(outcome, 'miss')
    equal(details.stale_available, true)
    equal(ask('192.0.2.9', 'a.example.', true), 'stale')
    outcome, details = ask('198.51.100.9', 'a.example.', true)
    equal(outcome, 'miss')
    equal(details.stale_available, false)
    local s = cache:stats()
    equal(s.cache_only_misses, 3)
    equal(s.misses, 3) -- of fill()
    equal(s.stale, 1)
end

function test.hooks_see_what_the_program_says()
    local cache <close> = new()
    assert(cache:policy_load(write [[
        return {
            key = function(q)
                return (q.pool or '') .. '/' .. (q:host_tag('tenant') or '') .. '/' .. (q.client and tostring(q.client) or '')
            end,
            store = function(q, r)
                return {group = 'customers', class = 3}
            end,
        }]]))
    local how = {client = '192.0.2.9', pool = 'p', host_tags = {tenant = 't'}, local_address = '192.0.2.53', local_port = 53}
    equal(kit.fill(cache, 'a.example.', nil, how), 'stored')
    equal(cache:lookup(query('a.example.', 'A'), how), 'hit')
    how.host_tags.tenant = 'u'
    equal(cache:lookup(query('a.example.', 'A'), how), 'miss')
    equal(cache:policy_stats().key.errors, 0)
    equal(cache:policy_stats().store.errors, 0)
    for entry in cache:walk {group = 'customers'} do
        equal(entry.group, 'customers')
        equal(entry.eviction_class, 3)
        assert(entry.tag:find('p/t/192.0.2.9', 1, true), entry.tag)
    end
    equal(cache:expunge {group = 'others'}, 0)
    equal(cache:expunge {group = 'customers'}, 1)
    raises('must have strings only', cache.lookup, cache, '', {host_tags = {1}})
    raises('must be a table', cache.lookup, cache, '', {host_tags = 'tenant'})
    raises("'local_port'", cache.lookup, cache, '', {local_port = 65536})
    raises("'group' must not be empty", cache.expunge, cache, {group = ''})
end

function test.what_the_upstream_is_to_be_told()
    local cache <close> = new()
    assert(cache:policy_load(write [[
        local networks = {four = '192.0.2.0/24', six = '2001:db8::/32', none = false}
        return {
            ecs = {ipv4 = 20},
            key = function(q) return {ecs = networks[q.qname:label(1)]} end,
        }]]))
    local own = {ecs = '\0\1\24\0\203\0\113'}
    for name, told in pairs {four = '192.0.0.0/20', six = '2001:db8::/32', none = false, own = '203.0.112.0/20'} do
        local outcome, _, _, details = cache:lookup(query(name .. '.example.', 'A', own))
        equal(outcome, 'miss')
        equal(details.ecs, told)
        equal(details.ecs_ipv4, name == 'none' and 0 or 20)
    end
    local _, _, _, details = cache:lookup(query('own.example.', 'A'))
    equal(details.ecs, nil)
end

function test.who_waits_or_has_failed_is_told_too()
    local cache <close> = new()
    assert(cache:policy_load(write "return {ecs = {ipv4 = 20, ipv6 = 40}}"))
    local asked = query('a.example.', 'A', {ecs = '\0\1\24\0\203\0\113'})
    local function told(expected, outcome, _, token, details)
        equal(outcome, expected)
        equal(details.ecs_ipv4, 20)
        equal(details.ecs_ipv6, 40)
        equal(details.ecs, '203.0.112.0/20')
        return token
    end
    local token = told('miss', cache:lookup(asked, {coalesce = true}))
    told('wait', cache:lookup(asked, {coalesce = true}))
    told('miss', cache:failed(asked, {}, token))
    told('miss', cache:failed(asked))
end

function test.lists_of_what_must_go()
    local cache <close> = new()
    kit.fill(cache, 'a.bad.example.', '\192\0\2\1')
    kit.fill(cache, 'b.example.', '\203\0\113\5')
    kit.fill(cache, 'c.example.', '\192\0\2\1')
    equal(cache:expunge_list 'bad.example # a name\n203.0.113.0/24\n', 2)
    local count, text = cache:expunge_list 'c.example.\na..b'
    equal(count, nil)
    equal(type(text), 'string')
    equal(cache:stats().entries, 1)
end

function test.a_reply_may_show_less()
    local cache <close> = new()
    kit.fill(cache, 'a.example.')
    local _, reply = cache:lookup(query('a.example.', 'A'), {max_ttl = 5})
    equal(string.unpack('>I4', reply, #reply - 9), 5)
end

local function cleanly(tests)
    local guarded = {}
    for name, fn in pairs(tests) do
        guarded[name] = function()
            local fine, text = xpcall(fn, debug.traceback)
            os.remove(path)
            assert(fine, text)
        end
    end
    return guarded
end

kit.run(cleanly(test))
