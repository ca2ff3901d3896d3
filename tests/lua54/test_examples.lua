-- SPDX-License-Identifier: MIT
-- usage: test_examples.lua FOLDER CORPUS: the examples say what their comments promise.
local kit = require 'kit'
local test = {}

local function output(command)
    local interpreter = arg[-1]
    local pipe = assert(io.popen(("'%s' '%s'/%s 2>&1"):format(interpreter, arg[1], command)))
    local text = pipe:read('a')
    assert(pipe:close(), text)
    return text
end

local function finds(text, ...)
    for _, words in ipairs {...} do
        assert(text:find(words, 1, true), ('no "%s" in:\n%s'):format(words, text))
    end
end

function test.first()
    finds(output 'first.lua', 'first\tmiss', 'insert\tstored\t300', 'second                       hit   TTL 300, id 2',
          'other case      hit   TTL 200, id 3', 'expired                      miss  but a stale answer is there',
          'the upstream fails           stale TTL 30, id 4', 'the next one                 stale TTL 30, id 5')
end

function test.tenants()
    finds(output 'tenants.lua', 'school\tgames.example.\tasked upstream\tNXDOMAIN', 'home\tgames.example.\tasked upstream\tNOERROR',
          'school\tgames.example.\thit\tNXDOMAIN', 'home\tgames.example.\thit\tNOERROR',
          '  games.example. A NXDOMAIN\n  www.example. A NOERROR', 'removed\t1', 'left\t2')
end

function test.size()
    local text = output("size.lua '" .. arg[2] .. "'")
    local lines = 0
    for _ in io.lines(arg[2]) do
        lines = lines + 1
    end
    local responses, entries = text:match('(%d+) responses, (%d+) entries')
    kit.equal(tonumber(responses), lines)
    local bytes, wire = text:match('([%d.]+) bytes an entry without its index slot, ([%d.]+) as a message')
    assert(tonumber(bytes) > 20 and tonumber(bytes) < tonumber(wire), text)
    local of_types = 0
    for count in text:gmatch('(%d+) entries +[%d.]+ bytes each') do
        of_types = of_types + count
    end
    kit.equal(of_types, tonumber(entries))
    finds(text, 'not kept: ttl_zero', 'not kept: no_soa')
    kit.equal(output 'size.lua </dev/null', '0 responses, 0 entries\n')
end

kit.run(test)
