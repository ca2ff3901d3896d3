-- SPDX-License-Identifier: MIT
-- Snapshots through the Lua module.
local sardine = require 'sardine'
local kit = require 'kit'
local query, equal, raises = kit.query, kit.equal, kit.raises
local test = {}

local path = os.tmpname()

local function filled(n)
    local cache = assert(sardine.new {max_entries = 1000})
    for i = 1, n do
        kit.fill(cache, ('n%d.example.'):format(i))
    end
    return cache
end

local function exists(file)
    local handle = io.open(file)
    return handle and handle:close()
end

function test.saved_and_loaded()
    local cache <close> = filled(50)
    local saved = assert(cache:snapshot_save(path))
    equal(saved.entries, 50)
    equal(saved.why, nil)
    assert(saved.bytes > 500)
    local other <close> = filled(10)
    local loaded = assert(other:snapshot_load(path))
    equal(loaded.entries + loaded.present, 50)
    assert(loaded.present == 10 or loaded.entries == 50)
    equal(loaded.damaged, 0)
    equal(other:lookup(query('n50.example.', 'A')), 'hit')
end

function test.what_cannot_be_done_says_why()
    local cache <close> = filled(1)
    local result, text = cache:snapshot_load('/nowhere/at/all')
    equal(result, nil)
    equal(text, 'No such file or directory')
    result, text = cache:snapshot_load(arg[0])
    equal(result, nil)
    assert(text:find('^not a snapshot.*: '), text)
    result, text = cache:snapshot_save('/nowhere/at/all')
    equal(result, nil)
    equal(text, 'No such file or directory')
    result, text = cache:snapshot_request()
    equal(result, nil)
    equal(type(text), 'string')
    raises('NUL', cache.snapshot_save, cache, 'a\0b')
    raises('string expected', cache.snapshot_load, cache)
    raises("unknown field 'every'", cache.snapshot_keep, cache, path, {every = 1})
    raises("'load' must be true or false", cache.snapshot_keep, cache, path, {load = 1})
end

function test.kept_by_a_thread()
    os.remove(path)
    do
        local cache <close> = filled(20)
        local status = cache:snapshot_status()
        equal(status.keeping, false)
        equal(status.saves, 0)
        assert(cache:snapshot_keep(path, {save_at_end = true}))
        equal(cache:snapshot_status().keeping, true)
        kit.fill(cache, 'later.example.')
        local again, text = cache:snapshot_keep(path)
        equal(again, nil)
        equal(type(text), 'string')
    end
    assert(exists(path))
    local said = {}
    local warm <close> = assert(sardine.new {max_entries = 1000, log = function(level, text)
        said[#said + 1] = level .. ' ' .. text
    end})
    assert(warm:snapshot_keep(path, {load = true}))
    -- The thread takes its time, but not for ever.
    local deadline = os.time() + 60
    repeat
        local status = warm:snapshot_status()
    until status.loads > 0 or os.time() > deadline
    local status = warm:snapshot_status()
    equal(status.loads, 1)
    equal(status.load_error, nil)
    equal(status.loaded.entries, 21)
    equal(warm:lookup(query('n20.example.', 'A')), 'hit')
    assert(warm:snapshot_stop())
    warm:stats()
    assert(#said > 0 and said[1]:find('^info .*' .. path:gsub('%p', '%%%0')), table.concat(said, '; '))
end

function test.close_ends_the_thread()
    for _ = 1, 20 do
        local cache <close> = filled(5)
        assert(cache:snapshot_keep(path, {interval = 1, load = true, save_at_end = true}))
    end
    equal(sardine.new():snapshot_keep(path), true) -- left to the collector
    collectgarbage()
    collectgarbage()
end

local function cleanly(tests)
    local guarded = {}
    for name, fn in pairs(tests) do
        guarded[name] = function()
            local fine, text = xpcall(fn, debug.traceback)
            os.remove(path)
            os.remove(path .. '.purges')
            assert(fine, text)
        end
    end
    return guarded
end

kit.run(cleanly(test))
