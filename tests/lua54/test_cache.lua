-- SPDX-License-Identifier: MIT
-- The Lua module, method by method.
local sardine = require 'sardine'
local kit = require 'kit'
local query, response, equal, raises = kit.query, kit.response, kit.equal, kit.raises
local test = {}

local function new(options)
    options = options or {}
    options.max_entries = options.max_entries or 1000
    return assert(sardine.new(options))
end

function test.a_miss_gives_a_token_and_the_insert_makes_a_hit()
    local cache <close> = new()
    local outcome, reply, token, details = cache:lookup(query('www.example.', 'A'))
    equal(outcome, 'miss')
    equal(reply, nil)
    equal(details.stale_available, false)
    local stored, life, reason = cache:insert(token, response('www.example.', 'A', {data = '\192\0\2\1', ttl = 60}))
    equal(stored, 'stored')
    equal(life, 60)
    equal(reason, nil)
    outcome, reply, token, details = cache:lookup(query('WWW.example.', 'A', {id = 0x1234}))
    equal(outcome, 'hit')
    equal(token, nil)
    equal(reply:sub(1, 2), '\x12\x34')
    equal(reply:sub(14, 16), 'WWW')
    equal(reply:sub(-4), '\192\0\2\1')
    equal(details.rcode, 'NOERROR')
    equal(details.age, 0)
    equal(details.dnssec_ok, false)
    assert(details.ttl <= 60 and details.ttl > 0)
    stored = cache:insert(cache:token(query('www.example.', 'A')), response('www.example.', 'A', {data = '\192\0\2\2'}))
    equal(stored, 'replaced')
end

function test.bypass_and_refusal_say_why()
    local cache <close> = new()
    local outcome, reply, token, details = cache:lookup('hardly')
    equal(outcome, 'bypass')
    equal(reply, nil)
    equal(token, nil)
    equal(details.reason, 'query_malformed')
    outcome, _, _, details = cache:lookup(query('a.example.', 'A'), {skip = true})
    equal(outcome .. ' ' .. details.reason, 'bypass host')
    token = cache:token(query('a.example.', 'A'))
    local refused, life, reason = cache:insert(token, response('a.example.', 'A', {data = '\192\0\2\1', ttl = 0}))
    equal(refused, 'refused')
    equal(life, 0)
    equal(reason, 'ttl_zero')
    refused, _, reason = cache:insert(token, response('b.example.', 'A', {data = '\192\0\2\1'}))
    equal(refused .. ' ' .. reason, 'refused mismatch')
    token, reason = cache:token('')
    equal(token, nil)
    equal(reason, 'query_malformed')
    local reasons = cache:stats().reasons
    equal(reasons.ttl_zero, 1)
    equal(reasons.mismatch, 1)
    equal(reasons.query_malformed, 1)
end

function test.time_is_the_clock_s()
    local clock = sardine.clock()
    local cache <close> = new {clock = clock, stale_window = 100, stale_ttl = 7}
    kit.fill(cache, 'a.example.')
    clock:advance(299)
    equal(clock:now(), 299)
    local outcome, _, _, details = cache:lookup(query('a.example.', 'A'))
    equal(outcome, 'hit')
    equal(details.ttl, 1)
    clock:advance(11.5)
    outcome, _, _, details = cache:lookup(query('a.example.', 'A'))
    equal(outcome, 'miss')
    equal(details.stale_available, true)
    local reply
    outcome, reply, _, details = cache:lookup(query('a.example.', 'A'), {allow_stale = true})
    equal(outcome, 'stale')
    equal(details.ttl, 0)
    equal(details.age, 10)
    equal(string.unpack('>I4', reply, #reply - 9), 7)
    clock:advance(100)
    equal(cache:lookup(query('a.example.', 'A'), {allow_stale = true}), 'miss')
    raises('seconds', clock.advance, clock, -1)
    raises('seconds', clock.advance, clock, 0 / 0)
end

function test.failed_gives_what_may_stand_in()
    local clock = sardine.clock()
    local cache <close> = new {clock = clock, stale_window = 100}
    kit.fill(cache, 'a.example.')
    equal(cache:failed(query('b.example.', 'A')), 'miss')
    clock:advance(301)
    local outcome, reply, token = cache:failed(query('a.example.', 'A'))
    equal(outcome, 'stale')
    equal(reply:sub(-4), '\192\0\2\1')
    equal(token, nil)
    equal(cache:lookup(query('a.example.', 'A')), 'stale')
end

function test.one_of_many_asks_and_the_others_wait()
    local cache <close> = new()
    local outcome, _, leader = cache:lookup(query('a.example.', 'A'), {coalesce = true})
    equal(outcome, 'miss')
    local _, _, follower = cache:lookup(query('a.example.', 'A'), {coalesce = true})
    equal(cache:lookup(query('a.example.', 'A'), {coalesce = true}), 'wait')
    equal(cache:wait(follower, 0), 'miss')
    equal(cache:insert(leader, response('a.example.', 'A', {data = '\192\0\2\1'})), 'stored')
    equal(cache:wait(follower, 1000), 'hit')
    raises('out of range', cache.wait, cache, follower, -1)
end

function test.render_writes_for_the_client()
    local cache <close> = new()
    local outcome, reply = cache:render(query('a.example.', 'A', {id = 7}), response('a.example.', 'A', {data = '\192\0\2\1'}))
    equal(outcome, 'hit')
    equal(reply:sub(1, 2), '\0\7')
    outcome, reply = cache:render(query('a.example.', 'A'), 'junk')
    equal(outcome, 'bypass')
    equal(reply, nil)
end

function test.failures_live_as_long_as_the_host_says()
    local cache <close> = new()
    local token = cache:token(query('a.example.', 'A'))
    local outcome, life = cache:insert(token, response('a.example.', 'A', {rcode = 2}), {failure_ttl = 9})
    equal(outcome, 'stored')
    equal(life, 9)
    raises("unknown field 'ttl'", cache.insert, cache, token, '', {ttl = 1})
end

function test.tags_clients_and_transports()
    local cache <close> = new()
    kit.fill(cache, 'a.example.', '\192\0\2\1', {tag = 'kids', client = '192.0.2.7', transport = 'tcp'})
    equal(cache:lookup(query('a.example.', 'A')), 'miss')
    equal(cache:lookup(query('a.example.', 'A'), {tag = 'kids', client = '2001:db8::1', transport = 'doh'}), 'hit')
    raises('not an IP address', cache.lookup, cache, '', {client = 'localhost'})
    raises('udp, tcp', cache.lookup, cache, '', {transport = 'smoke'})
    raises('longer than 128', cache.lookup, cache, '', {tag = ('x'):rep(129)})
    raises("unknown field 'flags'", cache.lookup, cache, '', {flags = 1})
    raises("'peek' must be true or false", cache.lookup, cache, '', {peek = 1})
    raises('fields have names', cache.lookup, cache, '', {'peek'})
    equal(cache:lookup(query('b.example.', 'A'), {cache_only = true}), 'miss')
    equal(select(3, cache:lookup(query('b.example.', 'A'), {cache_only = true})), nil)
    local hits = cache:stats().hits
    equal(cache:lookup(query('a.example.', 'A'), {tag = 'kids', peek = true}), 'hit')
    equal(cache:stats().hits, hits)
end

function test.every_option_of_the_header_is_known()
    local names = {}
    local file = assert(io.open(arg[1]))
    local struct = file:read('a'):match('\nstruct sardine_options (%b{})')
    file:close()
    struct = struct:gsub('/%*.-%*/', '')
    local apart = {sz = true, log_ctx = true, clock_ctx = true, n_split_options = true}
    for name in struct:gmatch('([%w_]+);') do
        if not apart[name] then
            names[#names + 1] = name
            -- Known is an option when a value of a wrong kind is complained about.
            raises("'" .. name .. "'", sardine.new, {[name] = io.stdout})
            local _, text = pcall(sardine.new, {[name] = io.stdout})
            assert(not text:find('unknown'), text)
        end
    end
    assert(#names > 20, #names)
end

function test.options_are_checked()
    raises("unknown field 'max_entires'", sardine.new, {max_entires = 1})
    raises('fields have names', sardine.new, {1000})
    raises("'max_ttl' must be a whole number from 0 to 4294967295", sardine.new, {max_ttl = 2 ^ 32})
    raises("'max_ttl'", sardine.new, {max_ttl = 1.5})
    raises("'max_ttl'", sardine.new, {max_ttl = '60'})
    raises("'max_ttl'", sardine.new, {max_ttl = -1})
    raises("'rotate' must be true or false", sardine.new, {rotate = 1})
    raises("'log' must be a function", sardine.new, {log = 'stderr'})
    raises("'clock' must come from", sardine.new, {clock = io.stdout})
    raises('table expected', sardine.new, 1000)
    raises("'split_options'", sardine.new, {split_options = {70000}})
    raises('more than 16', sardine.new, {split_options = table.move({}, 1, 0, 18, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})})
    local cache, text = sardine.new {max_entry_size = 100}
    equal(cache, nil)
    equal(text, 'option out of range: max_entry_size must be in 512..65535')
    for _, options in ipairs {{refresh_percent = 50, dont_age = true, split_options = {10, 65001}, max_bytes = 1 << 21}, {}} do
        local made <close> = new(options)
    end
    local made <close> = assert(sardine.new())
    equal(made:stats().max_bytes, 1 << 30)
end

function test.split_options_split()
    local cookie, subnet = {10}, {}
    for splits, want in pairs {[cookie] = 'miss', [subnet] = 'hit'} do
        local cache <close> = new {split_options = splits}
        local with = query('a.example.', 'A', {dnssec_ok = false})
        kit.fill(cache, 'a.example.')
        -- A client cookie, in the OPT record at the end.
        with = with:sub(1, -3) .. string.pack('>s2', string.pack('>I2 s2', 10, '12345678'))
        equal(cache:lookup(with), want)
    end
end

function test.expunge_selects()
    local cache <close> = new()
    for _, name in ipairs {'example.', 'a.example.', 'b.a.example.', 'badexample.'} do
        kit.fill(cache, name)
        kit.fill(cache, name, nil, {tag = 'kids'})
    end
    equal(cache:expunge {name = 'a.example', type = 'AAAA'}, 0)
    equal(cache:expunge {name = 'a.example', type = 'A', tag = ''}, 1)
    equal(cache:expunge {name = 'A.Example', rcode = 'NXDOMAIN'}, 0)
    equal(cache:expunge {name = 'a.example.', type = 1}, 1)
    equal(cache:expunge {tag = 'kids', rcode = 'NOERROR'}, 3)
    equal(cache:expunge {name = 'example', below = true, rcode = 0}, 2)
    equal(cache:stats().entries, 1)
    raises('table expected', cache.expunge, cache)
    raises('not a record type', cache.expunge, cache, {type = 'AAAAA'})
    raises('not a response code', cache.expunge, cache, {rcode = 'NOPE'})
    raises('not a domain name', cache.expunge, cache, {name = 'a..b'})
    raises('not a domain name', cache.expunge, cache, {name = 'a\0b'})
    raises("'below' without 'name'", cache.expunge, cache, {below = true})
    raises("unknown field 'suffix'", cache.expunge, cache, {suffix = 'example.'})
    equal(cache:stats().entries, 1)
    kit.fill(cache, 'b.example.')
    kit.fill(cache, 'c.example.')
    equal(cache:expunge({name = 'b.example'}, {name = 'c.example.', type = 'A'}, {name = 'd.example.'}), 2)
    raises('table expected', cache.expunge, cache, {}, 1)
    equal(cache:expunge {}, 1)
end

function test.a_purge_wins_over_an_answer_in_flight()
    local cache <close> = new()
    local _, _, token = cache:lookup(query('a.example.', 'A'))
    cache:expunge {name = 'a.example.'}
    local outcome, _, reason = cache:insert(token, response('a.example.', 'A', {data = '\192\0\2\1'}))
    equal(outcome .. ' ' .. reason, 'refused purged')
end

function test.fewer_and_expired_entries()
    local clock = sardine.clock()
    local cache <close> = new {clock = clock}
    for i = 1, 20 do
        kit.fill(cache, ('n%d.example.'):format(i))
    end
    equal(cache:expunge_to(15), 5)
    equal(cache:purge_expired(), 0)
    clock:advance(301)
    equal(cache:purge_expired(10), 5)
    equal(cache:purge_expired(), 10)
    raises('out of range', cache.expunge_to, cache, -1)
    raises('number expected', cache.expunge_to, cache)
end

function test.walk_shows_entries()
    local cache <close> = new()
    kit.fill(cache, 'A.Example.', nil, {tag = 'kids'})
    local token = cache:token(query('b.example.', 'AAAA', {rd = false, dnssec_ok = true}))
    equal(cache:insert(token, response('b.example.', 'AAAA', {rcode = 3, soa = 30})), 'stored')
    local seen = {}
    for entry in cache:walk() do
        seen[entry.name] = entry
        equal(entry.message, nil)
    end
    local a, b = seen['a.example.'], seen['b.example.']
    equal(a.type .. a.rcode .. a.tag, 'ANOERRORkids')
    equal(b.type .. b.rcode, 'AAAANXDOMAIN')
    equal(b.tag, nil)
    equal(a.rd, true)
    equal(b.rd, false)
    equal(b.dnssec_ok, true)
    assert(a.bytes > 0 and a.ttl <= 300 and a.life <= 300 and a.expired == 0 and a.hits >= 0)
    local count = 0
    for entry in cache:walk({name = 'a.example.'}, {messages = true}) do
        count = count + 1
        equal(entry.message:sub(13, 14), '\1a')
    end
    equal(count, 1)
    raises("unknown field 'message'", cache.walk, cache, {}, {message = true})
end

function test.walk_shows_the_network_of_an_answer()
    local cache <close> = new()
    local subnet = '\0\1\24\0\192\0\2'
    local _, _, token = cache:lookup(query('a.example.', 'A', {ecs = subnet}))
    local answer = response('a.example.', 'A', {data = '\192\0\2\1'})
    answer = answer:sub(1, 11) .. '\1' .. answer:sub(13)
        .. string.pack('>x I2 I2 I4 s2', kit.TYPES.OPT, 1232, 0, string.pack('>I2 s2', 8, '\0\1\24\24\192\0\2'))
    equal(cache:insert(token, answer), 'stored')
    local networks = {}
    for entry in cache:walk() do
        networks[#networks + 1] = entry.network
    end
    equal(table.concat(networks, ' '), '192.0.2.0/24')
end

function test.a_loop_may_end_early_and_use_the_cache()
    local cache <close> = new {max_entries = 20000}
    for i = 1, 5000 do
        kit.fill(cache, ('n%d.example.'):format(i))
    end
    local calls = 0
    for entry in cache:walk {} do
        calls = calls + 1
        cache:expunge {name = entry.name}
        if calls == 10 then
            break
        end
    end
    equal(cache:stats().entries, 4990)
    equal(pcall(function()
        for _ in cache:walk {} do
            error('out')
        end
    end), false)
    calls = 0
    for _ in cache:walk({}, {limit = 7}) do
        calls = calls + 1
    end
    equal(calls, 7)
    for _ in cache:walk({}, {limit = 0}) do
        error('none were asked for')
    end
    -- The iterator by itself, abandoned, exhausted and called again, and outliving the cache.
    local step, state, first, closing = cache:walk({}, {limit = 2})
    equal(closing, state)
    cache:close()
    assert(step(state, first) and step(state) and not step(state) and not step(state))
    raises('expected', step)
end

function test.stats_add_up()
    local cache <close> = new()
    kit.fill(cache, 'a.example.')
    cache:lookup(query('a.example.', 'A'))
    cache:lookup('')
    local s = cache:stats()
    equal(s.lookups, 3)
    equal(s.lookups, s.hits + s.stale + s.refresh + s.misses + s.bypass + s.cache_only_misses + s.waits)
    equal(s.entries, 1)
    equal(s.max_entries, 1000)
    equal(math.type(s.bytes), 'integer')
    equal(type(s.jemalloc), 'boolean')
    equal(type(s.huge_pages), 'boolean')
end

function test.names()
    equal(sardine.name_from_text('www.Example'), '\3www\7Example\0')
    equal(sardine.name_from_text('.'), '\0')
    equal(sardine.name_to_text('\3a.b\1c\0'), 'a\\.b.c.')
    for _, bad in ipairs {'a..b', ('x'):rep(64), 'a\0b', ''} do
        local name, text = sardine.name_from_text(bad)
        if bad ~= '' then
            equal(name, nil)
            equal(text, 'not a domain name')
        end
    end
    for _, bad in ipairs {'', '\3ab', '\xc0\0', '\1a\0\0'} do
        local name, text = sardine.name_to_text(bad)
        equal(name, nil)
        equal(text, 'not a domain name')
    end
    raises('string expected', sardine.name_from_text)
end

function test.a_closed_cache_says_so()
    local cache = new()
    local token = cache:token(query('a.example.', 'A'))
    cache:close()
    cache:close()
    equal(tostring(cache), 'sardine cache (closed)')
    for _, method in ipairs {'lookup', 'insert', 'token', 'failed', 'wait', 'render', 'expunge', 'expunge_to',
                             'purge_expired', 'walk', 'stats'} do
        raises('the cache is closed', cache[method], cache, token)
    end
    local kept
    do
        local scoped <close> = new()
        kept = scoped
    end
    raises('the cache is closed', kept.stats, kept)
end

function test.a_token_is_good_for_its_cache_only()
    local one <close> = new()
    local other <close> = new()
    local token = one:token(query('a.example.', 'A'))
    raises('a token of another cache', other.insert, other, token, '')
    raises('sardine.token expected', one.insert, one, one, '')
    raises('sardine.cache expected', one.insert, token, token, '')
end

function test.garbage_is_collected()
    local before = collectgarbage('count')
    for _ = 1, 300 do
        local cache = new()
        kit.fill(cache, 'a.example.')
        cache:walk {}
    end
    collectgarbage()
    collectgarbage()
    assert(collectgarbage('count') < before + 200)
    -- The clock lives for as long as a cache that needs it.
    local cache <close> = new {clock = sardine.clock()}
    collectgarbage()
    kit.fill(cache, 'a.example.')
    equal(cache:lookup(query('a.example.', 'A')), 'hit')
end

function test.coroutines_and_text()
    local cache <close> = new()
    kit.fill(cache, 'a.example.')
    local names = {}
    for name in coroutine.wrap(function()
        for entry in cache:walk() do
            coroutine.yield(entry.name)
        end
    end) do
        names[#names + 1] = name
    end
    equal(names[1], 'a.example.')
    assert(tostring(cache):find('^sardine cache %(1 entries, %d+ bytes%)$'), tostring(cache))
    equal(sardine.version, '0.1.0')
end

function test.the_annotations_are_complete()
    local file = assert(io.open(arg[2]))
    local text = file:read('a')
    file:close()
    local cache <close> = new()
    local annotated, real = {}, {}
    for name in text:gmatch('function [Cc]ache:([%w_]+)') do
        annotated[#annotated + 1] = name
    end
    for name in pairs(getmetatable(cache).__index) do
        real[#real + 1] = name
    end
    for name in text:gmatch('function sardine%.([%w_]+)') do
        annotated[#annotated + 1] = 'sardine.' .. name
    end
    for name, value in pairs(sardine) do
        if type(value) == 'function' then
            real[#real + 1] = 'sardine.' .. name
        end
    end
    table.sort(annotated)
    table.sort(real)
    equal(table.concat(annotated, ' '), table.concat(real, ' '))
    -- Every option and every statistic has its line.
    for _, struct in ipairs {'options', 'stats'} do
        local header = assert(io.open(arg[1]))
        local body = header:read('a'):match('\nstruct sardine_' .. struct .. ' (%b{})'):sub(2, -2):gsub('/%*.-%*/', '')
        header:close()
        local apart = {sz = true, log_ctx = true, clock_ctx = true, n_split_options = true}
        for list in body:gmatch('([^;]+);') do
            local names = list:gsub('%[.*%]', ''):gsub('^%s*const%s+', ''):gsub('^%s*[%w_]+', '')
            for name in names:gmatch('[%w_]+') do
                assert(apart[name] or text:find('@field ' .. name .. '%f[^%w_]'), name .. ' has no annotation')
            end
        end
    end
end

kit.run(test)
