-- SPDX-License-Identifier: MIT
--
-- sardine for dnsdist: a packet cache from libsardine.so in place of dnsdist's own.
--
--     local sardine = require 'sardine'                  -- near the top of dnsdist.conf, before any rule
--     pc = sardine.newPacketCache(1000000, {maxTTL=86400})
--     sardine.attach(pc)                                 -- the default pool
--     sardine.attach(pc, 'auth')                         -- a pool that PoolAction('auth') leads to
--
-- `require` finds this file where `meson install` puts it when that is on LuaJIT's path (/usr/local and /usr are);
-- elsewhere, extend package.path first or set LUA_PATH. The library is the installed one, or what the environment
-- variable SARDINE_LIBRARY names.
--
-- How it works. dnsdist's own cache comes after all rules; ours is a rule, so it has to be the last one. Therefore
-- this file replaces some of dnsdist's global functions by ones that do the same and keep that order:
--   addAction, setRules, clearRules, mvRule, mvRuleToTop   the lookup stays the last rule
--   addResponseAction, mvResponseRule, mvResponseRuleToTop storing stays the last response rule
--   PoolAction, QPSPoolAction, AllowAction,
--   AllowResponseAction, ContinueAction                    end the rules, so they look up or store themselves
--   addCacheHitResponseAction, rm-, mv- and clear-         its rules also run for our hits, which are
--   addSelfAnsweredResponseAction                          self-answered to dnsdist; these then do not
--   addCacheInsertedResponseAction, rm-, mv- and clear-    its rules also run for what we kept
--   setServFailWhenNoServer, setStaleCacheEntriesTTL       see "No backend up" below
-- An action that was made before this file was loaded does not know of the cache. Nor do Lua actions when they end the
-- rules by themselves: what they let pass is not cached. README.md has the whole story.

local jit_present, ffi = pcall(require, 'ffi')
if not jit_present then
    error('sardine: this dnsdist was built without LuaJIT, which sardine needs', 0)
end
local abi = require 'sardine_abi'

local function fail(...)
    error('sardine: ' .. string.format(...), 0)
end

-- The library ----------------------------------------------------------------------------------------------------

local library_path = os.getenv('SARDINE_LIBRARY') or abi.library

local function load_library()
    local path = library_path
    -- With its symbols visible to the whole process: the threads of dnsdist find them without opening the file again,
    -- which may be out of their reach once dnsdist has dropped its privileges.
    local loaded, lib = pcall(ffi.load, path, true)
    if not loaded then
        fail('cannot load the library: %s (set SARDINE_LIBRARY to use another one)', lib)
    end
    if not pcall(ffi.sizeof, 'struct sardine_options') then
        ffi.cdef(abi.cdef)
    end
    local found, number = pcall(function() return lib.sardine_abi_version() end)
    if not found then
        fail('%s is not libsardine: it has no sardine_abi_version()', path)
    end
    local version = ffi.string(lib.sardine_version())
    if number ~= abi.abi_version or version ~= abi.version then
        fail('sardine.lua is of version %s (ABI %d), but the library %s is of version %s (ABI %d); install both from the same build',
             abi.version, abi.abi_version, path, version, number)
    end
    local complete, missing = pcall(function() return lib.sardine_dnsdist_missing() end)
    if not complete then
        fail('%s was built without the dnsdist adapter', path)
    end
    if missing ~= nil then
        fail('this dnsdist has no function %s; 1.7 or later is needed', ffi.string(missing))
    end
    return lib
end

local lib = load_library()

-- Options --------------------------------------------------------------------------------------------------------

local COOKIE = 10
local UINT32_MAX = 4294967295

local noted = {}
local function note(...)
    local text = 'sardine: ' .. string.format(...)
    if not noted[text] then
        noted[text] = true
        infolog(text)
    end
end

local function is_whole(value, max)
    return type(value) == 'number' and value >= 0 and value <= max and value == math.floor(value)
end

local function whole(field, max)
    return function(options, value, name)
        if not is_whole(value, max or UINT32_MAX) then
            fail('newPacketCache: %s must be a whole number from 0 to %.0f', name, max or UINT32_MAX)
        end
        options[field] = value
    end
end

local function boolean(set)
    return function(options, value, name)
        if type(value) ~= 'boolean' then
            fail('newPacketCache: %s must be true or false', name)
        end
        if set then
            set(options, value)
        end
    end
end

local function flag(field)
    return boolean(function(options, value) options[field] = value and 1 or 0 end)
end

local function codes(value, name)
    if type(value) ~= 'table' then
        fail('newPacketCache: %s must be a list of numbers', name)
    end
    for key, code in pairs(value) do
        if type(key) ~= 'number' or not is_whole(code, 65535) then
            fail('newPacketCache: %s must be a list of numbers from 0 to 65535', name)
        end
    end
    return value
end

-- dnsdist has the option, we have no use for it. It must still be of the right type.
local function unused(check, why)
    return function(options, value, name)
        check({}, value, name)
        note('option %s has no effect: %s', name, why)
    end
end

local OPTIONS = {
    -- dnsdist's.
    maxTTL = whole('max_ttl'),
    minTTL = whole('min_ttl'),
    maxNegativeTTL = whole('max_negative_ttl'),
    staleTTL = whole('stale_ttl'),
    truncatedTTL = whole('truncated_ttl'),
    maximumEntrySize = whole('max_entry_size'),
    dontAge = flag('dont_age'),
    shuffle = flag('rotate'),
    temporaryFailureTTL = function(options, value, name)
        whole('failure_ttl')(options, value, name)
        if value > 300 then
            options.failure_ttl = 300
            note('option %s is limited to 300 seconds (RFC 9520)', name)
        end
    end,
    cookieHashing = boolean(function(options, value)
        if value then
            table.insert(options.split, COOKIE)
        end
    end),
    numberOfShards = unused(whole('ignored'), 'there are no shards'),
    deferrableInsertLock = unused(boolean(), 'no insert is ever given up'),
    parseECS = unused(boolean(), 'client subnets are always handled'),
    keepStaleData = unused(boolean(), 'expired data is kept for as long as it may be used'),
    payloadRanks = unused(function(_, value, name) codes(value, name) end, 'one entry serves every payload size'),
    skipOptions = unused(function(_, value, name) codes(value, name) end,
                         'EDNS options are skipped unless splitOptions names them'),
    -- Ours.
    maxBytes = whole('max_bytes', 2 ^ 53),
    udpPayloadSize = whole('udp_payload_size', 65535),
    splitOptions = function(options, value, name)
        for _, code in pairs(codes(value, name)) do
            table.insert(options.split, code)
        end
    end,
    alwaysDO = boolean(function(options, value) options.always_do = value end),
    staleWindow = whole('stale_window'),
    staleBackoff = whole('stale_backoff'),
    stalePositive = flag('stale_positive'),
    refreshPercent = whole('refresh_percent', 50),
    capBySignature = flag('cap_by_signature'),
    policy = function(options, value, name)
        if type(value) ~= 'string' then
            fail('newPacketCache: %s must be the name of a file', name)
        end
        options.policy = value
    end,
    policyWatch = whole('policy_watch'),
    policyLibraries = boolean(function(options, value) options.policy_libraries = value end),
    snapshot = function(options, value, name)
        if type(value) ~= 'string' or value:sub(1, 1) ~= '/' then
            fail('newPacketCache: %s must be the path of a file, from the root', name)
        end
        options.snapshot = value
    end,
    snapshotInterval = whole('snapshot_interval'),
    oneHitShare = whole('one_hit_share', 100),
    negativeShare = whole('negative_share', 100),
    staleShare = whole('stale_share', 100),
    keptShare = whole('kept_share', 100),
    name = function(options, value, name)
        if type(value) ~= 'string' or not value:find('^[%w_.-]+$') then
            fail('newPacketCache: %s must be a string of letters, digits, ".", "-" and "_"', name)
        end
        options.name = value
    end,
}

-- Where dnsdist prints to its console, the methods return a string: the console shows what a call returns.
local PacketCache = {}

local function cache_of(self)
    if getmetatable(self) ~= PacketCache then
        fail('call the method with a colon: cache:method()')
    end
    return self.cache
end

local function stats_of(self)
    local stats = ffi.new('struct sardine_stats')
    stats.sz = ffi.sizeof(stats)
    lib.sardine_stats_get(cache_of(self), stats)
    return stats
end

local methods = {}

-- dnsdist's names first, then ours: all plain numbers, for the console prints only such tables.
function methods:getStats()
    local stats = stats_of(self)
    local result = {
        hits = tonumber(stats.hits + stats.stale),
        -- One that fetches a fresh answer ahead of time waits for it, like one that missed.
        misses = tonumber(stats.misses + stats.cache_only_misses + stats.refresh),
        deferredInserts = 0,
        deferredLookups = 0,
        lookupCollisions = 0,
        insertCollisions = 0,
        ttlTooShorts = tonumber(stats.reasons[lib.SARDINE_REFUSED_TTL_ZERO] + stats.reasons[lib.SARDINE_REFUSED_TTL_SHORT]),
        cleanupCount = 0,
        maxEntries = tonumber(stats.max_entries),
        maxBytes = tonumber(stats.max_bytes),
        entryBytes = tonumber(stats.entry_bytes),
        indexBytes = tonumber(stats.index_bytes),
        deadBytes = tonumber(stats.dead_bytes),
        staleHits = tonumber(stats.stale),
    }
    for _, name in ipairs { 'entries', 'bytes', 'lookups', 'refresh', 'rescued', 'bypass', 'inserts', 'stored', 'replaced', 'refreshed',
                            'refused', 'evicted', 'expired', 'expunged' } do
        result[name] = tonumber(stats[name])
    end
    for reason = 1, lib.SARDINE_REASON_COUNT - 1 do
        if stats.reasons[reason] > 0 then
            local prefix = reason < lib.SARDINE_REFUSED_MALFORMED and 'bypass_' or 'refused_'
            result[prefix .. ffi.string(lib.sardine_reason_name(reason))] = tonumber(stats.reasons[reason])
        end
    end
    return result
end

function methods:toString()
    local stats = stats_of(self)
    return string.format('%.0f/%.0f', tonumber(stats.entries), tonumber(stats.max_entries))
end

function methods:isFull()
    local stats = stats_of(self)
    return stats.max_entries > 0 and stats.entries >= stats.max_entries
end

local function removed(count)
    if count < 0 then
        fail('%s', ffi.string(lib.sardine_strerror(tonumber(count))))
    end
    return tonumber(count)
end

local function limit(value, method)
    if not is_whole(value, 2 ^ 53) then
        fail('%s: the number of entries to keep must be a whole number', method)
    end
    return value
end

function methods:expunge(n)
    return removed(lib.sardine_expunge_to(cache_of(self), limit(n, 'expunge')))
end

-- Load the policy's file again. The old one stays when the new one is broken; returns what the console is to show.
function methods:reloadPolicy()
    local why = ffi.new('char[512]')
    local err = lib.sardine_policy_reload(cache_of(self), why, ffi.sizeof(why))
    return err == 0 and 'policy loaded' or 'policy not loaded: ' .. ffi.string(why)
end

local HOOKS = { 'key', 'store', 'evict', 'stale' }
local HOOK_COUNTERS = { 'calls', 'errors', 'timeouts', 'skipped' }

local function policy_stats(self)
    local stats = ffi.new('struct sardine_policy_stats')
    stats.sz = ffi.sizeof(stats)
    lib.sardine_policy_stats_get(cache_of(self), stats)
    return stats
end

-- Calls, errors, timeouts and skipped calls of the policy's hooks, by name: key_calls, store_errors ...
function methods:getPolicyStats()
    local stats = policy_stats(self)
    local result = { loads = tonumber(stats.loads), loadFailures = tonumber(stats.load_failures) }
    for number, hook in ipairs(HOOKS) do
        for _, what in ipairs(HOOK_COUNTERS) do
            result[hook .. '_' .. what] = tonumber(stats[what][number - 1])
        end
    end
    return result
end

-- For the page: what there is to say of a policy; nothing if there never was one.
local function policy_data(cache)
    local stats, rows = policy_stats(cache), { array = true }
    if stats.loads + stats.load_failures == 0 then
        return rows
    end
    table.insert(rows, { label = 'loaded', n = tonumber(stats.loads) })
    table.insert(rows, { label = 'did not load', n = tonumber(stats.load_failures) })
    for number, hook in ipairs(HOOKS) do
        for _, what in ipairs(HOOK_COUNTERS) do
            local n = tonumber(stats[what][number - 1])
            if n > 0 or (what == 'calls' and bit.band(stats.hooks, bit.lshift(1, number - 1)) ~= 0) then
                table.insert(rows, { label = hook .. ': ' .. what, n = n })
            end
        end
    end
    return rows
end

local function policy_metrics(add, cache, name)
    local stats = policy_stats(cache)
    add('policy_loads_total', 'counter', 'Policies loaded, by outcome.', stats.loads, 'cache', name, 'outcome', 'loaded')
    add('policy_loads_total', 'counter', '', stats.load_failures, 'cache', name, 'outcome', 'failed')
    for _, what in ipairs(HOOK_COUNTERS) do
        for number, hook in ipairs(HOOKS) do
            add('policy_' .. what .. '_total', 'counter', 'Hooks of the policy: ' .. what .. '.', stats[what][number - 1],
                'cache', name, 'hook', hook)
        end
    end
end

-- Remove what a list names: a name or a network on each line. Returns how many entries went.
function methods:expungeList(text)
    if type(text) ~= 'string' then
        fail('expungeList: the list must be a string of lines')
    end
    return removed(lib.sardine_expunge_list(cache_of(self), text, #text))
end

function methods:purgeExpired(n)
    return removed(lib.sardine_purge_expired(cache_of(self), limit(n, 'purgeExpired')))
end

-- `name` is text or a DNSName. Returns its wire form, and how long that is.
local function wire_name(name, method)
    if type(name) == 'userdata' then
        name = name:toString()
    end
    if type(name) ~= 'string' then
        fail('%s: the name must be a string or a DNSName', method)
    end
    local wire = ffi.new('uint8_t[255]')
    local length = lib.sardine_name_from_text(name, wire)
    if length < 0 then
        fail('%s: "%s" is not a domain name', method, name)
    end
    return wire, length
end

-- Returns how many entries were removed, all variants of a name counted.
function methods:expungeByName(name, qtype, suffix_match)
    local cache = cache_of(self)
    if qtype ~= nil and not is_whole(qtype, 65535) then
        fail('expungeByName: the type must be a number, as in DNSQType')
    end
    local wire, length = wire_name(name, 'expungeByName')
    local selector = ffi.new('struct sardine_selector')
    selector.sz = ffi.sizeof(selector)
    selector.name = wire
    selector.name_len = length
    selector.below = suffix_match and 1 or 0
    selector.qtype = qtype or 0
    return removed(lib.sardine_expunge(cache, selector))
end

-- What a tag keeps apart, the host's and the policy's together; '' is what has none. Returns how many entries went.
function methods:expungeByTag(tag)
    if type(tag) ~= 'string' then
        fail('expungeByTag: the tag must be a string')
    end
    local selector = ffi.new('struct sardine_selector')
    selector.sz = ffi.sizeof(selector)
    selector.use_tag = 1
    selector.tag = ffi.cast('const char *', tag)
    selector.tag_len = #tag
    return removed(lib.sardine_expunge(cache_of(self), selector))
end

-- What a policy's store hook has put into a group. Returns how many entries went.
function methods:expungeByGroup(group)
    if type(group) ~= 'string' or group == '' then
        fail('expungeByGroup: the group must be a string, and not an empty one')
    end
    local selector = ffi.new('struct sardine_selector')
    selector.sz = ffi.sizeof(selector)
    selector.group = ffi.cast('const char *', group)
    selector.group_len = #group
    return removed(lib.sardine_expunge(cache_of(self), selector))
end

-- The different lines of a text from the library, sorted, each as `make` makes it.
local function list_of(lines, make)
    if lines == nil then
        fail('no memory')
    end
    local seen, list = {}, {}
    for line in ffi.string(lines):gmatch('[^\n]+') do
        if not seen[line] then
            seen[line] = true
            table.insert(list, line)
        end
    end
    lib.sardine_dnsdist_free(lines)
    table.sort(list)
    for i, line in ipairs(list) do
        list[i] = make(line)
    end
    return list
end

-- Returns a list of ComboAddress.
function methods:getAddressListByDomain(domain)
    local cache = cache_of(self)
    local wire, length = wire_name(domain, 'getAddressListByDomain')
    return list_of(lib.sardine_dnsdist_addresses_of(cache, wire, length), newCA)
end

-- `address` is text or a ComboAddress. Returns a list of names as text.
function methods:getDomainListByAddress(address)
    local cache = cache_of(self)
    if type(address) == 'userdata' then
        address = address:toString()
    end
    local bytes = ffi.new('uint8_t[16]')
    local length = type(address) == 'string' and lib.sardine_dnsdist_address(address, bytes) or 0
    if length == 0 then
        fail('getDomainListByAddress: "%s" is not an address', tostring(address))
    end
    return list_of(lib.sardine_dnsdist_names_with(cache, bytes, length), tostring)
end

-- Save to a file, which takes as long as it takes: the console waits, queries do not. Without a path, the snapshot
-- that is kept is saved in the background.
function methods:save(path)
    local cache = cache_of(self)
    if path == nil then
        local err = lib.sardine_snapshot_request(cache)
        return err == 0 and 'Saving' or 'There is no snapshot to save: see the option snapshot'
    end
    local result = ffi.new('struct sardine_snapshot_result')
    result.sz = ffi.sizeof(result)
    local err = lib.sardine_snapshot_save(cache, path, result)
    if err < 0 then
        return string.format('Error saving %s: %s', path, ffi.string(lib.sardine_strerror(err)))
    end
    return string.format('Saved %d entries, %d bytes', tonumber(result.entries), tonumber(result.bytes))
end

-- Load from a file; what is in the cache already stays.
function methods:load(path)
    local cache = cache_of(self)
    local result = ffi.new('struct sardine_snapshot_result')
    result.sz = ffi.sizeof(result)
    local err = lib.sardine_snapshot_load(cache, path, result)
    local why = result.why ~= nil and ffi.string(result.why) or nil
    if err < 0 then
        return string.format('Error loading %s: %s', path, why or ffi.string(lib.sardine_strerror(err)))
    end
    return string.format('Loaded %d entries (%d expired, %d fresher here, %d purged, %d damaged blocks)%s',
                         tonumber(result.entries), tonumber(result.expired), tonumber(result.present),
                         tonumber(result.purged), tonumber(result.damaged), why and ': ' .. why or '')
end

PacketCache.__tostring = methods.toString
function PacketCache.__index(_, name)
    return methods[name] or fail('PacketCache has no method "%s" in this version', tostring(name))
end

-- The names of a list of options, sorted, so that the same mistakes always give the same message.
local function sorted_names(options)
    local names = {}
    for name in pairs(options) do
        table.insert(names, tostring(name))
    end
    table.sort(names)
    return names
end

-- Caches whose window for stale data is what setStaleCacheEntriesTTL() says, for they have none of their own.
local followers = setmetatable({}, { __mode = 'k' })
local stale_entries_ttl = 0

-- What `set` holds beside the fields of struct sardine_options.
local NOT_FIELDS = { split = true, always_do = true, name = true, policy = true, policy_watch = true,
                     policy_libraries = true, snapshot = true, snapshot_interval = true }

-- dnsdist's shutdown() ends the process on the spot: the snapshots come first.
local ending_wanted = false
local function want_ending()
    if ending_wanted then
        return
    end
    ending_wanted = true
    local shutdown = _G.shutdown
    function _G.shutdown()
        lib.sardine_dnsdist_ending()
        shutdown()
    end
end

-- Create the library's cache for a PacketCache object, by the options set in it.
local function create(self)
    local set = self.set
    local opt = ffi.new('struct sardine_options')
    lib.sardine_options_init(opt, ffi.sizeof(opt))
    opt.max_entries = self.max_entries
    local split = ffi.new('uint16_t[?]', math.max(#set.split, 1), set.split)
    opt.split_options = split
    opt.n_split_options = #set.split
    opt.stale_window = stale_entries_ttl
    for field, value in pairs(set) do
        if not NOT_FIELDS[field] then
            opt[field] = value
        end
    end

    local flags = (set.always_do and lib.SARDINE_DNSDIST_ALWAYS_DO or 0) +
                  (set.stale_window and lib.SARDINE_DNSDIST_RESCUE or 0)
    local cache = ffi.new('sardine_cache *[1]')
    local why = ffi.new('char[256]')
    local id = lib.sardine_dnsdist_create(opt, flags, cache, why, ffi.sizeof(why))
    if id < 0 then
        local detail = ffi.string(why)
        fail('newPacketCache: %s%s', ffi.string(lib.sardine_strerror(id)), detail ~= '' and ': ' .. detail or '')
    end
    self.cache = ffi.gc(cache[0], function() lib.sardine_dnsdist_destroy(id) end)
    self.id = id
    if set.policy then
        local reason = ffi.new('char[512]')
        local libraries = set.policy_libraries and lib.SARDINE_POLICY_ALL_LIBRARIES or 0
        local err = lib.sardine_dnsdist_policy(id, set.policy, libraries, set.policy_watch or 0, reason, ffi.sizeof(reason))
        if err < 0 then
            fail('newPacketCache: policy: %s', ffi.string(reason))
        end
    end
    if set.snapshot then
        local err = lib.sardine_dnsdist_keep(self.cache, set.snapshot, set.snapshot_interval or 600)
        if err < 0 then
            note('the snapshot %s is not kept: %s', set.snapshot, ffi.string(lib.sardine_strerror(err)))
        end
        want_ending()
    end
    self.options = opt
    self.stale_window = opt.stale_window
end

local function newPacketCache(max_entries, options)
    if not is_whole(max_entries, 2 ^ 53) then
        fail('newPacketCache: the first argument, the number of entries, must be a whole number')
    end
    if options ~= nil and type(options) ~= 'table' then
        fail('newPacketCache: the second argument must be a table of options')
    end
    options = options or {}
    if max_entries == 0 and options.maxBytes == nil then
        fail('newPacketCache: 0 entries means no limit by number, which needs the option maxBytes')
    end

    local set = { split = {} }
    for _, name in ipairs(sorted_names(options)) do
        if not OPTIONS[name] then
            fail('newPacketCache: unknown option %s', name)
        end
        OPTIONS[name](set, options[name], name)
    end

    local self = setmetatable({ max_entries = max_entries, set = set, given = options }, PacketCache)
    create(self)
    if not set.stale_window then
        followers[self] = true
    end
    return self
end

-- Actions --------------------------------------------------------------------------------------------------------

local dnsdist = {}
for _, name in ipairs { 'addAction', 'setRules', 'clearRules', 'rmRule', 'mvRule', 'mvRuleToTop', 'PoolAction',
                        'AllowAction', 'addResponseAction', 'rmResponseRule', 'mvResponseRule', 'mvResponseRuleToTop',
                        'AllowResponseAction', 'addSelfAnsweredResponseAction',
                        'rmSelfAnsweredResponseRule', 'mvSelfAnsweredResponseRule',
                        'mvSelfAnsweredResponseRuleToTop', 'setStaleCacheEntriesTTL', 'setServFailWhenNoServer',
                        'ContinueAction', 'getPool' } do
    dnsdist[name] = _G[name]
    if dnsdist[name] == nil then
        fail('this Lua state has no function %s: is this a configuration of dnsdist 1.7 or later?', name)
    end
end

-- Code for a Lua state of a dnsdist thread: declares the C functions of ours that it calls. Tried out here, since a
-- mistake there would show at the first query only. LuaJIT calls a function of its own C API several times faster than
-- one of the FFI that gets a packet, so the FFI is for what has no such form, and for threads that cannot find it.
-- It does not compile either kind, so it need not try.
local function thread_code(body)
    local declaration, functions = '', ''
    for c_function in body:gmatch('(sardine_dnsdist_[%w_]+)%(') do
        declaration = declaration .. abi.cdef:match('[^\n]*%f[%w_]' .. c_function .. '%b();')
        functions = functions .. string.format('local %s = package.loadlib(%q, %q) or lib.%s\n', c_function, library_path,
                                               c_function:gsub('^sardine_dnsdist_', '%0lua_'), c_function)
    end
    local code = string.format([[
local ffi = require 'ffi'
ffi.cdef(%q)
local lib = ffi.C
%s
return function(packet)
%s
end]], declaration, functions, body)
    assert(type(assert(loadstring(code))()) == 'function')
    return "jit.off()\n" .. code
end

local function pool_number(name)
    if type(name) ~= 'string' then
        fail('a pool is named by a string')
    end
    local number = lib.sardine_dnsdist_pool(name)
    if number < 0 then
        fail('pool %s: %s', name, ffi.string(lib.sardine_strerror(number)))
    end
    return number
end

-- An action that looks up in the cache of the pool of that number; after a miss it does `otherwise`. Every instance costs a Lua state in
-- every thread, so equal ones are made once.
local lookup_actions = {}
-- Nothing, if `before` returns.
local function lookup_action(pool, otherwise, before)
    local code = thread_code(string.format([[
    %s
    if sardine_dnsdist_lookup(%d, packet) ~= 0 then
        return %d
    end
    %s]], before or '', pool, DNSAction.HeaderModify, otherwise))
    lookup_actions[code] = lookup_actions[code] or LuaFFIPerThreadAction(code)
    return lookup_actions[code]
end

local response_actions = {}
local function response_action(body)
    local code = thread_code(body)
    response_actions[code] = response_actions[code] or LuaFFIPerThreadResponseAction(code)
    return response_actions[code]
end

local function store_action(result)
    return response_action(string.format([[
    sardine_dnsdist_response(packet)
    return %d]], result))
end

local function self_answered_action()
    return response_action(string.format([[
    return sardine_dnsdist_self_answered(packet) ~= 0 and %d or %d]], DNSResponseAction.Drop, DNSResponseAction.None))
end

local function set_pool(pool)
    return string.format([[
    lib.dnsdist_ffi_dnsquestion_set_result(packet, %q, %d)
    return %d]], pool, #pool, DNSAction.Pool)
end

-- An action that lets the rules go on, with the pool chosen that a later lookup is to use, and dnsdist too.
local choose_actions = {}
local function choose_action(pool, before)
    local code = thread_code(string.format([[
    %s
    sardine_dnsdist_choose(%d, packet)
    %s]], before or '', pool_number(pool), set_pool(pool)))
    choose_actions[code] = choose_actions[code] or dnsdist.ContinueAction(LuaFFIPerThreadAction(code))
    return choose_actions[code]
end

-- What ContinueAction makes of our actions, which cannot go on once they have found an answer.
local continued = {}

-- From 1.8 on, dnsdist has `stop`: false lets the rules go on.
local function pool_action(pool, stop, before)
    local number = pool_number(pool)
    if stop == false then
        return choose_action(pool, before)
    end
    local action = lookup_action(number, set_pool(pool), before)
    continued[action] = choose_action(pool, before)
    return action
end

function PoolAction(pool, stop)
    return pool_action(pool, stop)
end

function QPSPoolAction(limit, pool, stop)
    if not is_whole(limit, UINT32_MAX) then
        fail('QPSPoolAction: the first argument, queries a second, must be a whole number')
    end
    local limiter = lib.sardine_dnsdist_limiter(limit)
    if limiter < 0 then
        fail('QPSPoolAction: %s', ffi.string(lib.sardine_strerror(limiter)))
    end
    return pool_action(pool, stop, string.format('if sardine_dnsdist_within(%d) == 0 then return %d end', limiter,
                                                 DNSAction.None))
end

function AllowAction()
    local action = lookup_action(lib.SARDINE_DNSDIST_CHOSEN_POOL, 'return ' .. DNSAction.Allow)
    continued[action] = dnsdist.ContinueAction(dnsdist.AllowAction())
    return action
end

function ContinueAction(action)
    return continued[action] or dnsdist.ContinueAction(action)
end

function AllowResponseAction()
    return store_action(DNSResponseAction.Allow)
end

-- Order of rules -------------------------------------------------------------------------------------------------

-- A rule of ours that is to be the last of its chain, once it is wanted; or the first, given what moves it there.
local function end_rule(name, rule_maker, action_maker, add, remove, get, to_top)
    local chain = { wanted = false, there = false }
    -- From 1.9 on, `get` finds a rule by its number, or fails; before, nobody needs the length.
    function chain.length()
        local n = 0
        while get and pcall(get, n) do
            n = n + 1
        end
        return n
    end
    function chain.take()
        if chain.there then
            remove(name)
            chain.there = false
            if chain.behind then
                chain.behind.take()
            end
        end
    end
    function chain.put()
        if chain.wanted then
            chain.take()
            add(rule_maker(), action_maker(), { name = name })
            if to_top then
                to_top()
            end
            chain.there = true
            if chain.behind then
                chain.behind.put()
            end
            chain.own_length = chain.length()
        end
    end
    -- The whole chain is emptied by `clear`.
    function chain.clear(clear)
        chain.take()
        clear()
        chain.put()
    end
    -- Rules may have come behind it that did not pass through this file.
    function chain.put_behind()
        if chain.there and chain.length() > chain.own_length then
            chain.put()
        end
    end
    function chain.want()
        if not chain.wanted then
            chain.wanted = true
            chain.put()
        end
    end
    return chain
end

local function last_lookup_action()
    return lookup_action(lib.SARDINE_DNSDIST_CHOSEN_POOL, 'return ' .. DNSAction.None)
end

local function last_store_action()
    return store_action(DNSResponseAction.None)
end

local lookups = end_rule('sardine lookup', AllRule, last_lookup_action, dnsdist.addAction, dnsdist.rmRule, getRule)
local stores = end_rule('sardine store', AllRule, last_store_action, dnsdist.addResponseAction, dnsdist.rmResponseRule, getResponseRule)
local self_answers = end_rule('sardine self-answered', function() return TagRule('sardine') end, self_answered_action,
                           dnsdist.addSelfAnsweredResponseAction, dnsdist.rmSelfAnsweredResponseRule, nil,
                           dnsdist.mvSelfAnsweredResponseRuleToTop)

function addAction(...)
    dnsdist.addAction(...)
    lookups.put()
end

function setRules(...)
    dnsdist.setRules(...)
    lookups.there = false
    lookups.put()
end

function clearRules()
    dnsdist.clearRules()
    lookups.there = false
    lookups.put()
end

function mvRule(...)
    lookups.take()
    dnsdist.mvRule(...)
    lookups.put()
end

function mvRuleToTop()
    lookups.take()
    dnsdist.mvRuleToTop()
    lookups.put()
end

function addResponseAction(...)
    dnsdist.addResponseAction(...)
    stores.put()
end

function mvResponseRule(...)
    stores.take()
    dnsdist.mvResponseRule(...)
    stores.put()
end

function mvResponseRuleToTop()
    stores.take()
    dnsdist.mvResponseRuleToTop()
    stores.put()
end

-- Rules that dnsdist runs for its own cache only. They go into dnsdist's chain as ever, for show...() and the like, and a copy
-- of each, in the same order, into a chain that our replies pass; there it runs for those that have the tag.
local copies = 0
local function mirror(kind, tag, mark, add_copy, remove_copy)
    local names = { add = 'add%sResponseAction', rm = 'rm%sResponseRule', mv = 'mv%sResponseRule',
                    to_top = 'mv%sResponseRuleToTop', clear = 'clear%sResponseRules' }
    local original = {}
    for what, name in pairs(names) do
        names[what] = name:format(kind)
        original[what] = _G[names[what]]
    end
    local self, rules = { there = false }, {}

    local function put(rule)
        copies = copies + 1
        rule.copy = tag .. ' ' .. copies
        add_copy(AndRule { TagRule(tag), rule.rule }, rule.action, { name = rule.copy })
    end
    local function take(rule)
        if rule.copy then
            remove_copy(rule.copy)
            rule.copy = nil
        end
    end
    function self.take()
        self.there = false
        for _, rule in ipairs(rules) do
            take(rule)
        end
    end
    function self.put()
        self.take()
        self.there = true
        for _, rule in ipairs(rules) do
            put(rule)
        end
    end
    local function reorder()
        if self.there then
            self.put()
        end
    end

    if not original.add then -- this dnsdist has no such rules
        return self
    end
    _G[names.add] = function(rule, action, options)
        local mirrored = { rule = makeRule(rule), action = action, name = options and options.name, uuid = options and options.uuid }
        if options then
            original.add(rule, action, options)
        else
            original.add(rule, action)
        end
        table.insert(rules, mirrored)
        if self.there then
            put(mirrored)
        end
        mark(1)
    end
    -- By position, UUID or name, as dnsdist does.
    _G[names.rm] = function(id)
        original.rm(id)
        for i, rule in ipairs(rules) do
            if id == i - 1 or id == rule.uuid or id == rule.name then
                take(rule)
                table.remove(rules, i)
                return
            end
        end
    end
    _G[names.mv] = function(from, to)
        original.mv(from, to)
        local rule = table.remove(rules, from + 1)
        if rule then
            table.insert(rules, to > from and to or to + 1, rule)
            reorder()
        end
    end
    _G[names.to_top] = function()
        original.to_top()
        table.insert(rules, 1, table.remove(rules))
        reorder()
    end
    if original.clear then -- from 2.0 on
        _G[names.clear] = function()
            original.clear()
            for _, rule in ipairs(rules) do
                take(rule)
            end
            rules = {}
        end
    end
    return self
end

-- Our hits are self-answered to dnsdist; what was kept has passed our last response rule.
local hits = mirror('CacheHit', 'sardine-hit', lib.sardine_dnsdist_mark_hits, dnsdist.addSelfAnsweredResponseAction,
                    dnsdist.rmSelfAnsweredResponseRule)
hits.put()
stores.behind = mirror('CacheInserted', 'sardine-kept', lib.sardine_dnsdist_mark_kept, dnsdist.addResponseAction,
                       dnsdist.rmResponseRule)

-- From 2.0 on, whole chains can be emptied: of the operator's rules, not of ours.
if clearResponseRules then
    local clear = clearResponseRules
    function clearResponseRules()
        stores.clear(clear)
    end
end
if clearSelfAnsweredResponseRules then
    local clear = clearSelfAnsweredResponseRules
    function clearSelfAnsweredResponseRules()
        hits.take()
        self_answers.clear(clear)
        hits.put()
    end
end

function addSelfAnsweredResponseAction(rule, ...)
    dnsdist.addSelfAnsweredResponseAction(AndRule { NotRule(TagRule('sardine-hit')), makeRule(rule) }, ...)
    lib.sardine_dnsdist_mark_hits(1)
end

-- From 2.0 on, rules may also come from a YAML file, after this one. Once dnsdist runs, ours go behind them; only if there are
-- any, because queries that come at that very moment do without the cache.
if addMaintenanceCallback then
    local behind = false
    addMaintenanceCallback(function()
        if not behind then
            behind = true
            lookups.put_behind()
            stores.put_behind()
        end
    end)
end

-- Its rules would never run, which is no thing to find out later.
for _, name in ipairs { 'addCacheMissAction', 'setCacheMissRules' } do
    if _G[name] then
        _G[name] = function()
            fail('%s does not work with sardine, which is a rule itself', name)
        end
    end
end

function mvSelfAnsweredResponseRule(...)
    self_answers.take()
    dnsdist.mvSelfAnsweredResponseRule(...)
    self_answers.put()
end

function mvSelfAnsweredResponseRuleToTop()
    self_answers.take()
    dnsdist.mvSelfAnsweredResponseRuleToTop()
    self_answers.put()
end

-- No backend up --------------------------------------------------------------------------------------------------

-- dnsdist drops a query when no backend is up, and no rule hears of it. Told to answer SERVFAIL, it lets rules for
-- self-answered responses run, and ours can put expired data there, or drop it after all.
local servfail_wanted, catching = false, false

local function apply_no_server()
    if catching then
        dnsdist.setServFailWhenNoServer(true)
        lib.sardine_dnsdist_no_server(servfail_wanted and lib.SARDINE_DNSDIST_SERVFAIL or lib.SARDINE_DNSDIST_DROP)
    else
        dnsdist.setServFailWhenNoServer(servfail_wanted)
    end
end

function setServFailWhenNoServer(on)
    servfail_wanted = on
    apply_no_server()
end

-- From 2.0 on there are rules for time-outs. Where there is expired data, ours sends the query on to a pool without
-- backends, and then no backend is up for it.
local NOWHERE = 'sardine-nowhere'
local catching_timeouts = false

local function catch_timeouts()
    if catching_timeouts or not addTimeoutResponseAction or lib.sardine_dnsdist_catch_timeouts(1) == 0 then
        return
    end
    catching_timeouts = true
    dnsdist.getPool(NOWHERE)
    addTimeoutResponseAction(TagRule('sardine'), response_action(string.format([[
    sardine_dnsdist_timed_out(packet)
    return %d]], DNSResponseAction.None)), { name = 'sardine timed out' })
    addTimeoutResponseAction(TagRule('sardine-late'), LuaResponseAction(function(response)
        if response.pool ~= NOWHERE then
            response.pool = NOWHERE
            response:restart()
        end
        return DNSResponseAction.None
    end), { name = 'sardine late' })
end

local function prepare_for(cache)
    if cache.stale_window > 0 and not catching then
        catching = true
        apply_no_server()
    end
    if cache.set.stale_window and cache.stale_window > 0 then
        catch_timeouts()
    end
    self_answers.want()
end

-- Attaching ------------------------------------------------------------------------------------------------------

local attached = {} -- by pool: keeps the cache from being collected

-- Let a pool use a cache, in place of what it used. The default pool when none is named.
local function attach(cache, pool)
    pool = pool or ''
    if getmetatable(cache) ~= PacketCache then
        fail('attach: the first argument must come from sardine.newPacketCache()')
    end
    prepare_for(cache)
    lib.sardine_dnsdist_attach(pool_number(pool), cache.id)
    attached[pool] = cache
    stores.want()
    lookups.want() -- a rule may have chosen the pool and let the rules go on
end

-- As in dnsdist, to be called in the configuration: a cache that is in use does not change any more. What its snapshot
-- has brought already is loaded again.
function setStaleCacheEntriesTTL(seconds)
    dnsdist.setStaleCacheEntriesTTL(seconds)
    stale_entries_ttl = seconds
    for cache in pairs(followers) do
        local stats = stats_of(cache)
        if stats.lookups + stats.inserts > 0 or stats.entries > 0 and not cache.set.snapshot then
            note('setStaleCacheEntriesTTL has no effect on a cache that is in use')
        else
            local old_id = cache.id
            ffi.gc(cache.cache, nil)
            create(cache)
            for pool, of_pool in pairs(attached) do
                if of_pool == cache then
                    attach(cache, pool)
                end
            end
            lib.sardine_dnsdist_destroy(old_id)
        end
    end
end

-- The pool does without a cache from now on. The cache is freed when nothing else refers to it.
local function detach(pool)
    pool = pool or ''
    lib.sardine_dnsdist_attach(pool_number(pool), 0)
    attached[pool] = nil
end

-- In place of dnsdist's own ----------------------------------------------------------------------------------------

-- The methods of a pool that have to do with caches, for both kinds of cache. `index` finds dnsdist's method.
local pool_methods = {}

function pool_methods.setCache(name, index)
    return function(pool, cache)
        if getmetatable(cache) == PacketCache then
            index(pool, 'unsetCache')(pool)
            attach(cache, name)
        else
            detach(name)
            index(pool, 'setCache')(pool, cache)
        end
    end
end

function pool_methods.unsetCache(name, index)
    return function(pool)
        detach(name)
        index(pool, 'unsetCache')(pool)
    end
end

function pool_methods.getCache(name, index)
    return function(pool)
        return attached[name] or index(pool, 'getCache')(pool)
    end
end

-- dnsdist gives every object that it hands to Lua a metatable of its own; here it gets methods that know ours.
local function getPool(name)
    local pool = dnsdist.getPool(name)
    local meta = debug.getmetatable(pool)
    local index = meta.__index
    function meta.__index(object, key)
        local method = pool_methods[key]
        if method then
            return method(name, index)
        end
        return index(object, key)
    end
    return pool
end

-- From now on newPacketCache() makes sardine's caches, and pools take them.
local function replace()
    _G.newPacketCache = newPacketCache
    _G.getPool = getPool
end

-- Inspection, statistics for people, the web page ------------------------------------------------------------------------

-- What a cache is called in metrics and on the page: by its option, or by the first of its pools.
local function name_of(cache)
    if cache.set.name then
        return cache.set.name
    end
    local pools = {}
    for pool, of_pool in pairs(attached) do
        if of_pool == cache then
            table.insert(pools, pool)
        end
    end
    table.sort(pools)
    return pools[1] == nil and 'cache-' .. cache.id or pools[1] == '' and 'default' or pools[1]
end

local core = {
    ffi = ffi, lib = lib, fail = fail, is_whole = is_whole,
    methods = methods, cache_of = cache_of, stats_of = stats_of, wire_name = wire_name,
    attached = attached, name_of = name_of, known_options = OPTIONS, version = abi.version,
    policy_data = policy_data, policy_metrics = policy_metrics,
}
require 'sardine_inspect'(core)
local web, web_content = require 'sardine_web'(core)

return {
    newPacketCache = newPacketCache,
    attach = attach,
    detach = detach,
    replace = replace,
    web = web,
    webContent = web_content,
    options = function() return sorted_names(OPTIONS) end,
    version = abi.version,
}
