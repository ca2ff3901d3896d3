-- SPDX-License-Identifier: MIT
-- The life of one answer: missed, kept, given to clients, older, gone. The clock is moved by the program, so it takes
-- no time. Run: lua5.4 first.lua
local sardine = require 'sardine'

-- A query for the addresses of `name`, as a client's packet. Programs usually get these from a socket.
local function query(id, name)
    return string.pack('>I2 I2 I2 I2 I2 I2', id, 0x0100, 1, 0, 0, 0)
        .. assert(sardine.name_from_text(name)) .. string.pack('>I2 I2', 1, 1)
end

-- The answer of the server that knows: one address, with a TTL.
local function response(name, ttl, address)
    local a, b, c, d = address:match('(%d+)%.(%d+)%.(%d+)%.(%d+)')
    return string.pack('>I2 I2 I2 I2 I2 I2', 0, 0x8180, 1, 1, 0, 0)
        .. assert(sardine.name_from_text(name)) .. string.pack('>I2 I2', 1, 1)
        .. string.pack('>I2 I2 I2 I4 I2 BBBB', 0xc00c, 1, 1, ttl, 4, a, b, c, d)
end

local clock = sardine.clock()
local cache <close> = assert(sardine.new {max_entries = 10000, stale_window = 3600, clock = clock})

local function show(text, outcome, reply, _, details)
    if reply then
        print(('%-28s %-5s TTL %d, id %d'):format(text, outcome, string.unpack('>I4', reply, #reply - 9),
                                                string.unpack('>I2', reply)))
    else
        print(('%-28s %-5s %s'):format(text, outcome, details.stale_available and 'but a stale answer is there' or ''))
    end
end

-- Nobody has asked before: the token says what for, and is kept while the question is upstream.
local outcome, _, token = cache:lookup(query(1, 'www.example.com'))
print('first', outcome)
print('insert', cache:insert(token, response('www.example.com', 300, '192.0.2.1')))

show('second', cache:lookup(query(2, 'www.example.com')))
clock:advance(100)
show('100 s later, other case', cache:lookup(query(3, 'WWW.Example.COM')))
clock:advance(201)
show('expired', cache:lookup(query(4, 'www.example.com')))
-- The upstream is down: what is there may stand in for a while.
show('the upstream fails', cache:failed(query(4, 'www.example.com')))
show('the next one', cache:lookup(query(5, 'www.example.com')))
