-- SPDX-License-Identifier: MIT
-- DNS messages for the tests of the Lua module, and a runner: each function of a test file's table is a test.
local sardine = require 'sardine'
local kit = {TYPES = {A = 1, NS = 2, SOA = 6, AAAA = 28, OPT = 41}}

-- {rd=, dnssec_ok= (with an OPT record), id=, ecs= (option bytes)}
function kit.query(name, type, o)
    o = o or {}
    local opt = ''
    if o.dnssec_ok ~= nil or o.ecs then
        local data = o.ecs and string.pack('>I2s2', 8, o.ecs) or ''
        opt = string.pack('>x I2 I2 I4 s2', kit.TYPES.OPT, 1232, o.dnssec_ok and 0x8000 or 0, data)
    end
    return string.pack('>I2 I2 I2 I2 I2 I2', o.id or 1, o.rd == false and 0 or 0x0100, 1, 0, 0, opt == '' and 0 or 1)
        .. assert(sardine.name_from_text(name)) .. string.pack('>I2 I2', kit.TYPES[type], 1) .. opt
end

-- {ttl=, rcode=, soa= (a negative answer's), data=}
function kit.response(name, type, o)
    o = o or {}
    local owner = assert(sardine.name_from_text(name))
    local answer, authority = '', ''
    if o.data then
        answer = string.pack('>I2 I2 I2 I4 s2', 0xc00c, kit.TYPES[type], 1, o.ttl or 300, o.data)
    end
    if o.soa then
        local rdata = '\0\0' .. string.pack('>I4 I4 I4 I4 I4', 1, 2, 3, 4, o.soa)
        authority = string.pack('>x I2 I2 I4 s2', kit.TYPES.SOA, 1, o.soa, rdata)
    end
    return string.pack('>I2 I2 I2 I2 I2 I2', 1, 0x8180 | (o.rcode or 0), 1, answer == '' and 0 or 1,
                       authority == '' and 0 or 1, 0)
        .. owner .. string.pack('>I2 I2', kit.TYPES[type], 1) .. answer .. authority
end

-- Look up, which must miss, and insert.
function kit.fill(cache, name, data, how)
    local outcome, _, token = cache:lookup(kit.query(name, 'A'), how)
    assert(outcome == 'miss', outcome)
    return cache:insert(token, kit.response(name, 'A', {data = data or '\192\0\2\1'}))
end

function kit.equal(got, want)
    if got ~= want then
        error(('got %s, want %s'):format(got, want), 2)
    end
end

-- The call must raise an error whose text has `words`.
function kit.raises(words, fn, ...)
    local fine, text = pcall(fn, ...)
    if fine or not tostring(text):find(words, 1, true) then
        error(('no error with "%s" but: %s'):format(words, text), 2)
    end
end

function kit.run(tests)
    local names, failed = {}, 0
    for name in pairs(tests) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local fine, text = xpcall(tests[name], debug.traceback)
        print((fine and 'ok   ' or 'FAIL ') .. name)
        if not fine then
            print(text)
            failed = failed + 1
        end
    end
    os.exit(failed == 0 and #names > 0, true)
end

return kit
