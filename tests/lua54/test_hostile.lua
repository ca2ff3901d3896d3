-- SPDX-License-Identifier: MIT
-- No argument may crash the module: every function is called with whatever there is. What comes back is either
-- results or an error; that the process is still there and the cache still works is the test.
local sardine = require 'sardine'
local kit = require 'kit'
local test = {}

-- A fixed sequence, so that a failure can be repeated. `lua5.4 test_hostile.lua SEED` tries another one.
math.randomseed(tonumber(arg[1]) or 20261130, 0)
local random = math.random

local function pick(list)
    return list[random(#list)]
end

-- Values of all kinds, those that the functions know among them, and tables of fields that they know.
local field_names = {'client', 'transport', 'tag', 'skip', 'cache_only', 'allow_stale', 'coalesce', 'peek', 'name', 'below',
                     'type', 'rcode', 'messages', 'limit', 'failure_ttl', 'max_ttl', 'max_entries', 'min_ttl', 'stale_ttl',
                     'refresh_percent', 'split_options', 'clock', 'log', 'rotate', 'segment_size', 'max_entry_size', 'nonsense'}
local strings = {'', '\0', 'a.example.', 'udp', 'tcp', '192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1', 'A', 'TYPE65535',
                 'TYPE99999999999', 'ANY', 'NXDOMAIN', ('x'):rep(128), ('x'):rep(300), ('a.'):rep(127), ('\\255'):rep(63),
                 'a\\', '\\300', 'a\0b', ('\1a'):rep(127) .. '\0', '\xc0\x0c', ('\xff'):rep(65536),
                 kit.query('a.example.', 'A'), kit.query('b.example.', 'AAAA', {dnssec_ok = true}),
                 kit.response('a.example.', 'A', {data = '\192\0\2\1'}), kit.response('a.example.', 'A', {rcode = 3, soa = 10})}
local numbers = {0, 1, -1, 0.5, 255, 256, 512, 4096, 65535, 65536, 4294967295, 4294967296, math.maxinteger, math.mininteger, 1e308, -1e308,
                 math.huge, -math.huge, 0 / 0}

local cache, other, closed, tokens, clock, walked

local value
local function table_of_fields(depth)
    local t = {}
    for _ = 1, random(0, 4) do
        t[random(10) == 1 and value(depth + 1) or pick(field_names)] = value(depth + 1)
    end
    return t
end

local makers = {
    function() return nil end,
    function() return random(2) == 1 end,
    function() return pick(numbers) end,
    function() return pick(strings) end,
    function() -- a short string, damaged
        local s = pick(strings):sub(1, 600)
        local at = random(0, #s)
        return s:sub(1, at) .. string.char(random(0, 255)) .. s:sub(at + random(0, 3))
    end,
    table_of_fields,
    table_of_fields,
    function() return pick(tokens) end,
    function() return cache end,
    function() return pick {other, closed, clock, io.stdout} end,
    function() return coroutine.create(print) end,
    function() return function() end end,
    function() return setmetatable({}, {__index = error, __pairs = error, __len = error}) end,
}

function value(depth)
    depth = depth or 0
    local key = depth > 2 and random(5) or random(#makers)
    local made = makers[key](depth)
    if made ~= made and depth > 0 then -- NaN is no key
        return 0
    end
    return made == nil and depth > 0 and false or made
end

local function set_up()
    clock = sardine.clock()
    cache = assert(sardine.new {max_entries = 500, max_bytes = 1 << 20, clock = clock, stale_window = 60})
    other = assert(sardine.new {max_entries = 10})
    closed = assert(sardine.new {max_entries = 10})
    closed:close()
    tokens = {}
    for i = 1, 10 do
        tokens[i] = assert(cache:token(kit.query(i > 5 and 'a.example.' or 'b.example.', 'A')))
    end
    walked = select(2, cache:walk())
    tokens[11] = assert(other:token(kit.query('a.example.', 'A')))
end

local function check_alive()
    local name = 'alive.example.'
    cache:expunge {name = name}
    local _, _, token = cache:lookup(kit.query(name, 'A'))
    kit.equal(cache:insert(token, kit.response(name, 'A', {data = '\192\0\2\9'})), 'stored')
    kit.equal(cache:lookup(kit.query(name, 'A')), 'hit')
    local s = cache:stats()
    kit.equal(s.lookups, s.hits + s.stale + s.refresh + s.misses + s.bypass + s.cache_only_misses + s.waits)
    kit.equal(s.inserts, s.stored + s.replaced + s.refreshed + s.refused)
end

-- These block, or write files wherever they are told to.
local apart = {wait = true, snapshot_save = true, snapshot_keep = true}

-- All other functions that a program can get at, those of metatables too.
local function everything()
    local list = {}
    local function add(t)
        for name, member in pairs(t) do
            if type(member) == 'function' and not apart[name] then
                list[#list + 1] = {name = name, call = member}
            end
        end
    end
    add(sardine)
    for _, object in ipairs {cache, clock, tokens[1], (select(2, cache:walk()))} do
        local meta = debug.getmetatable(object)
        add(meta)
        if type(meta.__index) == 'table' then
            add(meta.__index)
        end
    end
    list[#list + 1] = {name = 'step', call = (cache:walk())}
    table.sort(list, function(a, b) return tostring(a.name) < tostring(b.name) end)
    return list
end

function test.random_arguments()
    set_up()
    local functions = everything()
    assert(#functions > 15)
    local called, returned = 0, 0
    for round = 1, 100 do
        for _ = 1, 500 do
            local fn = pick(functions)
            local n, arguments = random(0, 5), {}
            for i = 1, n do
                arguments[i] = value()
            end
            -- Mostly on the right kind of object, else few calls would get far.
            if random(4) > 1 then
                arguments[1] = fn.name == 'advance' and clock or fn.name == 'step' and walked or arguments[1]
                if debug.getmetatable(cache).__index[fn.name] then
                    arguments[1] = cache
                end
            end
            called = called + 1
            if pcall(fn.call, table.unpack(arguments, 1, n)) then
                returned = returned + 1
            end
        end
        if not pcall(cache.stats, cache) then
            set_up() -- it was closed
        end
        check_alive()
        walked = select(2, cache:walk())
        if round % 10 == 0 then
            collectgarbage()
        end
    end
    print(called .. ' calls, ' .. returned .. ' without an error')
    assert(returned > called / 10)
end

function test.odd_arguments_for_the_others()
    set_up()
    for _, token in ipairs(tokens) do
        for _, time in ipairs {0, 1, -1, 1.5, 'x', math.maxinteger} do
            pcall(cache.wait, cache, token, time)
        end
    end
    for _, path in ipairs {'', '/', '\0', '/nowhere/' .. ('x'):rep(65536), {}, true, cache} do
        for _, options in ipairs {{}, {interval = -1}, {load = cache}, {save_at_end = true, load = true}, 7, false} do
            pcall(cache.snapshot_save, cache, path, options)
            pcall(cache.snapshot_keep, cache, path, options)
        end
    end
    check_alive()
end

-- Through as many C functions as Lua lets call each other.
function test.deep_in_the_c_stack()
    set_up()
    local query, depth = kit.query('a.example.', 'A'), 0
    local function deep()
        depth = depth + 1
        return (('x'):gsub('x', function()
            cache:lookup(query)
            return deep()
        end))
    end
    kit.raises('C stack overflow', deep)
    assert(depth > 50, depth)
    check_alive()
end

function test.finalizers_called_by_hand()
    set_up()
    for _, object in ipairs {cache, (select(2, cache:walk()))} do
        local meta = debug.getmetatable(object)
        for _ = 1, 3 do
            meta.__gc(object)
            meta.__close(object, nil)
        end
    end
    kit.raises('the cache is closed', cache.stats, cache)
    set_up()
    check_alive()
end

kit.run(test)
