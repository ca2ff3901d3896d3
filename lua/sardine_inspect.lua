-- SPDX-License-Identifier: MIT
--
-- Methods of a cache that tell people what is in it, how it is set, how it does, and why a query missed. Each returns
-- its text, which dnsdist's console shows. Made for sardine.lua, which loads it.

return function(core)
local ffi, lib, fail, is_whole = core.ffi, core.lib, core.fail, core.is_whole
local methods, cache_of, stats_of, wire_name = core.methods, core.cache_of, core.stats_of, core.wire_name

-- Numbers and names ----------------------------------------------------------------------------------------------

-- 1234567 -> "1,234,567"
local function count(n)
    local digits = string.format('%.0f', tonumber(n))
    return (digits:reverse():gsub('(%d%d%d)', '%1,'):reverse():gsub('^,', ''))
end

local function bytes(n)
    n = tonumber(n)
    for _, unit in ipairs { 'bytes', 'KiB', 'MiB', 'GiB' } do
        if n < 1024 or unit == 'GiB' then
            return string.format(unit == 'bytes' and '%.0f %s' or '%.1f %s', n, unit)
        end
        n = n / 1024
    end
end

local function percent(part, whole)
    whole = tonumber(whole)
    return whole > 0 and string.format('%.1f %%', 100 * tonumber(part) / whole) or '-'
end

local function duration(seconds)
    seconds = tonumber(seconds)
    if seconds < 120 then
        return string.format('%d s', seconds)
    elseif seconds < 7200 then
        return string.format('%.0f min', seconds / 60)
    elseif seconds < 172800 then
        return string.format('%.0f h', seconds / 3600)
    end
    return string.format('%.0f days', seconds / 86400)
end

local type_room = ffi.new('char[16]')
local function type_name(number)
    return ffi.string(lib.sardine_dnsdist_type(number, type_room))
end

local type_numbers = {}
for number = 1, 260 do
    type_numbers[type_name(number)] = number
end

-- A type by number or by name.
local function type_number(qtype, method)
    local number = qtype
    if type(qtype) == 'string' then
        number = type_numbers[qtype:upper()] or tonumber(qtype:upper():match('^TYPE(%d+)$'))
    end
    if not is_whole(number, 65535) then
        fail('%s: "%s" is not a type', method, tostring(qtype))
    end
    return number
end

local RCODES = { [0] = 'NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET', 'NXRRSET',
                 'NOTAUTH', 'NOTZONE' }
local function rcode_name(number)
    return RCODES[number] or 'RCODE' .. number
end

-- A text of lines from the library; the text is freed.
local function lines_of(text)
    if text == nil then
        fail('no memory')
    end
    local copy = ffi.string(text)
    lib.sardine_dnsdist_free(text)
    return copy:gmatch('[^\n]+')
end

local function as_text(lines)
    return table.concat(lines, '\n')
end

-- Reasons, in the order of their numbers, as { name, number, kind = 'bypass' or 'refused' }.
local reasons = {}
for number = 1, lib.SARDINE_REASON_COUNT - 1 do
    local name = ffi.string(lib.sardine_reason_name(number))
    if name ~= 'unknown' then
        table.insert(reasons, { name = name, number = number,
                                kind = number < lib.SARDINE_REFUSED_MALFORMED and 'bypass' or 'refused' })
    end
end

-- For people who ask why.
local REASONS = {
    host = 'a rule or the host asked for the cache to be skipped',
    query_malformed = 'its header, question or OPT record cannot be parsed',
    not_query = 'it is a response, or its opcode is not QUERY',
    qdcount = 'it does not have exactly one question',
    qtype = 'its type is never cached (AXFR, IXFR, TKEY, TSIG, ...)',
    qclass = 'its class is not IN',
    records = 'it carries records other than one OPT (TSIG, SIG(0), ...)',
    trailing = 'there are bytes after its last record',
    edns_version = 'its EDNS version is not 0',
    key_too_long = 'its tag and splitting options are too long for a key',
    response_malformed = 'the response does not parse, or its counts do not match its content',
    mismatch = 'the response is not to this question',
    truncated = 'the response was truncated',
    rcode = 'responses with such an rcode are not kept',
    ttl_zero = 'a TTL in it was 0',
    ttl_short = 'it would have lived for less than minTTL',
    no_soa = 'NXDOMAIN or NODATA without an SOA record (RFC 2308)',
    failure_off = 'failures are not kept: the failure TTL is 0',
    too_large = 'it is larger than maximumEntrySize',
    poorer = 'data with signatures is here already, and this was fetched without DO',
    failure = 'it is a failure, and usable data is here',
    purged = 'the cache was purged while the question was asked',
    ecs = 'its client subnet contradicts that of the query (RFC 7871)',
    complex = 'its names take more work to expand than honest ones do',
    no_memory = 'the system gave no memory',
    policy = 'the policy said so',
}

-- Statistics -----------------------------------------------------------------------------------------------------

-- How the snapshot does, or nil: none is kept.
local function snapshot_of(self)
    local status = ffi.new('struct sardine_snapshot_status')
    status.sz = ffi.sizeof(status)
    return lib.sardine_snapshot_status_get(cache_of(self), status) == 0 and status.keeping ~= 0 and status or nil
end
core.snapshot_of = snapshot_of

local function about_snapshot(status)
    local text = status.loading ~= 0 and 'being loaded' or status.saving ~= 0 and 'being saved' or
                 status.save_error ~= 0 and 'not saved: ' .. ffi.string(lib.sardine_strerror(status.save_error)) or
                 status.saves == 0 and 'not saved yet' or ''
    if status.saves > 0 then
        text = string.format('%s%ssaved %s ago, %s entries, %s', text, text ~= '' and '; ' or '', duration(status.save_age),
                             count(status.saved.entries), bytes(status.saved.bytes))
    end
    if status.load_error ~= 0 then
        local why = status.loaded.why ~= nil and status.loaded.why or lib.sardine_strerror(status.load_error)
        text = text .. '; the old one was not loaded: ' .. ffi.string(why)
    end
    return text
end
core.about_snapshot = about_snapshot

function methods:printStats()
    local stats = stats_of(self)
    local lines = {}
    local function line(label, ...)
        table.insert(lines, string.format('%-10s ' .. string.rep('%s', select('#', ...)), label .. ':', ...))
    end
    local hits, misses = stats.hits + stats.stale, stats.misses + stats.cache_only_misses + stats.refresh
    line('Entries', count(stats.entries),
         stats.max_entries > 0 and ' of ' .. count(stats.max_entries) .. ' (' .. percent(stats.entries, stats.max_entries) .. ')' or '')
    line('Memory', bytes(stats.bytes), ' of ', bytes(stats.max_bytes), ' (', percent(stats.bytes, stats.max_bytes), ')',
         stats.entries > 0 and string.format(', %.1f bytes an entry', tonumber(stats.bytes) / tonumber(stats.entries)) or '')
    line('Lookups', count(stats.lookups))
    line('Hits', count(hits), ' (', percent(hits, hits + misses), ' of hits and misses)')
    line('Misses', count(misses), stats.refresh > 0 and ', of these to refresh ' .. count(stats.refresh) or '')
    line('Stale', count(stats.stale), ' hits, ', count(stats.rescued), ' in place of a failure')
    line('Bypassed', count(stats.bypass))
    line('Inserts', count(stats.inserts), ': new ', count(stats.stored), ', replaced ', count(stats.replaced), ', refreshed ',
         count(stats.refreshed), ', refused ', count(stats.refused))
    line('Removed', 'evicted ', count(stats.evicted), ', expired ', count(stats.expired), ', expunged ', count(stats.expunged))
    local snapshot = snapshot_of(self)
    if snapshot then
        line('Snapshot', about_snapshot(snapshot))
    end
    local why = {}
    for _, reason in ipairs(reasons) do
        local n = stats.reasons[reason.number]
        if n > 0 then
            table.insert(why, { n = tonumber(n), text = string.format('  %12s %s, %s', count(n),
                         reason.kind == 'bypass' and 'bypassed' or 'not kept', REASONS[reason.name] or reason.name) })
        end
    end
    table.sort(why, function(one, other) return one.n > other.n end)
    for _, entry in ipairs(why) do
        table.insert(lines, entry.text)
    end
    return as_text(lines)
end

-- Options --------------------------------------------------------------------------------------------------------

local function on(value)
    return value ~= 0
end

-- How each option acts: its value, from the options that the library was given.
local EFFECTIVE = {
    { 'maxTTL', 'max_ttl', 'no entry lives longer' },
    { 'minTTL', 'min_ttl', 'what would live shorter is not kept' },
    { 'maxNegativeTTL', 'max_negative_ttl', 'no NXDOMAIN or NODATA lives longer' },
    { 'temporaryFailureTTL', 'failure_ttl', 'life of SERVFAIL and REFUSED; 0: not kept' },
    { 'truncatedTTL', 'truncated_ttl', 'life of TC=1 without records, for UDP; 0: not kept' },
    { 'maximumEntrySize', 'max_entry_size', 'larger responses are not kept' },
    { 'dontAge', 'dont_age', 'TTLs are shown as they came', on },
    { 'shuffle', 'rotate', 'each reply starts its record sets at another record', on },
    { 'staleTTL', 'stale_ttl', 'TTL shown in expired answers' },
    { 'staleWindow', 'stale_window', 'expired answers may be used for so long; 0: never' },
    { 'staleBackoff', 'stale_backoff', 'after a failure, expired answers go out at once for so long' },
    { 'stalePositive', 'stale_positive', 'expired NXDOMAIN and NODATA are not used', on },
    { 'refreshPercent', 'refresh_percent', 'popular entries are fetched anew with less life left; 0: never' },
    { 'capBySignature', 'cap_by_signature', 'no entry outlives its signatures', on },
    { 'oneHitShare', 'one_hit_share', 'percent of the budget for answers that nobody asked for again' },
    { 'negativeShare', 'negative_share', 'percent of the budget for NXDOMAIN, NODATA and failures' },
    { 'staleShare', 'stale_share', 'percent of the budget for expired answers that may stand in' },
    { 'keptShare', 'kept_share', 'percent of the budget for answers to be kept whatever else goes' },
    { 'udpPayloadSize', 'udp_payload_size', 'no UDP reply is larger' },
}

-- Every option that has an effect, with the value that it has; what has none is not in it.
function methods:getOptions()
    cache_of(self)
    local stats, result = stats_of(self), {}
    for _, option in ipairs(EFFECTIVE) do
        local value = tonumber(self.options[option[2]])
        if option[4] then
            value = option[4](value)
        end
        result[option[1]] = value
    end
    result.maxEntries = tonumber(stats.max_entries)
    result.maxBytes = tonumber(stats.max_bytes)
    result.alwaysDO = self.set.always_do == true
    result.policy = self.set.policy or ''
    result.policyWatch = self.set.policy_watch or 0
    result.policyLibraries = self.set.policy_libraries == true
    result.snapshot = self.set.snapshot or ''
    result.snapshotInterval = self.set.snapshot_interval or 600
    result.cookieHashing = false
    local split = {}
    for _, code in ipairs(self.set.split) do
        table.insert(split, code)
        result.cookieHashing = result.cookieHashing or code == 10
    end
    result.splitOptions = table.concat(split, ' ')
    result.name = core.name_of(self)
    for name, value in pairs(core.more_options and core.more_options(self) or {}) do
        result[name] = value
    end
    return result
end

local NOTES = {
    maxEntries = '0: no limit but maxBytes',
    maxBytes = 'memory, everything included',
    alwaysDO = 'backends are asked with DO for everybody',
    cookieHashing = 'cookies split the cache',
    policy = 'the policy file',
    policyWatch = 'seconds between looks whether it has changed; 0: never',
    policyLibraries = 'it may use all of Lua\'s libraries',
    snapshot = 'the file that it outlives restarts in',
    snapshotInterval = 'seconds from save to save; 0: only at the end',
    splitOptions = 'EDNS options that split the cache',
    name = 'in metrics and on the page',
}
for _, option in ipairs(EFFECTIVE) do
    NOTES[option[1]] = option[3]
end

function methods:printOptions()
    local names, lines, options = {}, {}, methods.getOptions(self)
    for name in pairs(options) do
        table.insert(names, name)
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local value = options[name]
        value = type(value) == 'number' and string.format('%.0f', value) or value == '' and 'none' or tostring(value)
        local mark = self.given[name] ~= nil and '*' or ' '
        table.insert(lines, string.format('%s %-20s %-14s %s', mark, name, value, NOTES[name] or ''))
    end
    local window = self.stale_window
    table.insert(lines, 'Expired answers: ' .. (window == 0 and 'never used' or string.format('used for %s after expiry, %s',
                 duration(window), self.set.stale_window and 'after failures, after time-outs (dnsdist 2.0), and while no backend is up'
                                   or 'while no backend is up (setStaleCacheEntriesTTL)')))
    table.insert(lines, 'Options marked * were given; the others have their defaults.')
    local ignored = {}
    for name in pairs(self.given) do
        if options[name] == nil then
            table.insert(ignored, name)
        end
    end
    if #ignored > 0 then
        table.sort(ignored)
        table.insert(lines, 'Given, without effect: ' .. table.concat(ignored, ', '))
    end
    return as_text(lines)
end

-- What is in the cache ---------------------------------------------------------------------------------------------

local FILTERS = {
    name = 'string', suffix = 'string', type = true, rcode = 'number', tag = 'string', stale = 'boolean', minBytes = 'number',
    minHits = 'number', expiresWithin = 'number', max = 'number', raw = 'boolean', format = 'string',
}

local function dump_json(self, path, filters)
    local selector = ffi.new('struct sardine_selector')
    local filter = ffi.new('struct sardine_dnsdist_filter')
    selector.sz = ffi.sizeof(selector)
    for name, value in pairs(filters) do
        local kind = FILTERS[name]
        if not kind then
            fail('dump: unknown filter %s', tostring(name))
        elseif kind ~= true and type(value) ~= kind or kind == 'number' and not is_whole(value, 4294967295) then
            fail('dump: %s must be a %s', name, kind == 'number' and 'whole number' or kind)
        end
    end
    if filters.format and filters.format ~= 'json' then
        fail('dump: the only other format is json')
    end
    local wire, length
    if filters.name and filters.suffix then
        fail('dump: either name or suffix')
    elseif filters.name or filters.suffix then
        wire, length = wire_name(filters.name or filters.suffix, 'dump')
        selector.name = wire
        selector.name_len = length
        selector.below = filters.suffix and 1 or 0
    end
    selector.qtype = filters.type and type_number(filters.type, 'dump') or 0
    if filters.rcode then
        selector.use_rcode = 1
        selector.rcode = filters.rcode
    end
    local tag
    if filters.tag then
        tag = ffi.new('char[?]', math.max(#filters.tag, 1), filters.tag)
        selector.use_tag = 1
        selector.tag_len = #filters.tag
        selector.tag = tag
    end
    filter.min_bytes = filters.minBytes or 0
    filter.min_hits = filters.minHits or 0
    filter.expires_within = filters.expiresWithin or 0
    filter.max = filters.max or 0
    filter.stale = filters.stale == true and 1 or 0
    filter.fresh = filters.stale == false and 1 or 0
    filter.raw = filters.raw and 1 or 0
    return lib.sardine_dnsdist_dump_json(cache_of(self), path, selector, filter)
end

-- As dnsdist's, or with a table of filters: lines of JSON.
function methods:dump(path, how)
    local cache = cache_of(self)
    if type(path) ~= 'string' then
        fail('dump: the first argument must be the name of a new file')
    end
    local count_or_error
    if type(how) == 'table' then
        count_or_error = dump_json(self, path, how)
    else
        count_or_error = lib.sardine_dnsdist_dump(cache, path, how and 1 or 0)
    end
    count_or_error = tonumber(count_or_error)
    if count_or_error < 0 then
        return string.format('Error opening or writing the dump file %s: %s', path, ffi.string(lib.sardine_strerror(count_or_error)))
    end
    return string.format('Dumped %d records', count_or_error)
end

local LIVES = { 'expired', '10 s', '1 min', '5 min', '15 min', '1 h', '6 h', '1 day', 'longer' }

-- What takes the memory: by type, by life left, and by zone, which is the last `labels` labels of a name (2).
function methods:size(labels)
    labels = labels or 2
    if not is_whole(labels, 10) then
        fail('size: the number of labels must be a whole number from 0 to 10')
    end
    local survey, zones = ffi.new('struct sardine_dnsdist_survey'), ffi.new('char *[1]')
    if lib.sardine_dnsdist_measure(cache_of(self), survey, labels, zones) ~= 0 then
        fail('no memory')
    end
    local stats, lines = stats_of(self), {}
    local all = survey.all
    local function line(label, share)
        if share.entries > 0 then
            table.insert(lines, string.format('%-30s %14s %8s %16s %8s %8.1f', label, count(share.entries), percent(share.entries, all.entries),
                         count(share.bytes), percent(share.bytes, all.bytes), tonumber(share.bytes) / tonumber(share.entries)))
        end
    end
    table.insert(lines, string.format('%-30s %14s %8s %16s %8s %8s', '', 'answers', '', 'bytes', '', 'each'))
    line('all', all)
    line('fetched with DO', survey.signed_)
    line('for client networks', survey.networks)
    for i = 0, survey.n_types - 1 do
        line(type_name(survey.types[i]), survey.of_type[i])
    end
    line('other types', survey.other_types)
    for i = 0, lib.SARDINE_SURVEY_LIVES - 1 do
        line((i == 0 and '' or i == 8 and 'lives ' or 'lives at most ') .. LIVES[i + 1], survey.of_life[i])
    end
    if labels > 0 then
        local n = 0
        for zone_line in lines_of(zones[0]) do
            local entries, size, name = zone_line:match('^(%d+) (%d+) (.*)$')
            n = n + 1
            if n <= 20 or name == '*' then
                line(name == '*' and 'other zones' or name, { entries = tonumber(entries), bytes = tonumber(size) })
            end
        end
    end
    if stats.entries > 0 then
        local entries, used = tonumber(stats.entries), tonumber(stats.bytes)
        table.insert(lines, string.format('Memory in all: %s for %s entries, %.1f bytes an entry: answers %.1f, index %.1f, free or dead %.1f',
                     bytes(used), count(entries), used / entries, tonumber(stats.entry_bytes) / entries,
                     tonumber(stats.index_bytes) / entries,
                     (used - tonumber(stats.entry_bytes) - tonumber(stats.index_bytes)) / entries))
        -- 8 bytes a slot, of which 7 of 8 are taken; the rest is what is left over at the ends of segments.
        table.insert(lines, string.format('More of the same: about %s a million entries',
                     bytes((tonumber(stats.entry_bytes) / entries * 1.03 + 9.2) * 1e6)))
    end
    return as_text(lines)
end

-- What is asked most ------------------------------------------------------------------------------------------------

local function start_to_watch()
    local err = lib.sardine_dnsdist_watch()
    if err ~= 0 then
        fail('cannot watch: %s', ffi.string(lib.sardine_strerror(err)))
    end
end

-- A list of { queries, hits, type, name }.
local function top_list(self, n, misses)
    local list = {}
    cache_of(self)
    for line in lines_of(lib.sardine_dnsdist_top(self.id, n, misses and 1 or 0)) do
        local queries, hits, qtype, name = line:match('^(%d+) (%d+) (%d+) (.*)$')
        table.insert(list, { tonumber(queries), tonumber(hits), type_name(tonumber(qtype)), name })
    end
    return list
end

-- The names asked most; with `misses`, those that miss most.
function methods:top(n, misses)
    start_to_watch()
    local lines = {}
    for _, item in ipairs(top_list(self, n or 20, misses)) do
        table.insert(lines, string.format('%10s %8s  %-10s %s', count(item[1]), misses and '' or percent(item[2], item[1]), item[3], item[4]))
    end
    if #lines == 0 then
        return 'Nothing yet: names are counted from the first call on.'
    end
    table.insert(lines, 1, string.format('%10s %8s  %-10s %s', misses and 'misses' or 'queries', misses and '' or 'hits', 'type', 'name'))
    return as_text(lines)
end

-- A list of { seconds ago, reason, type, name }.
local function refused_list(self, n, wire, length, qtype)
    local list = {}
    cache_of(self)
    for line in lines_of(lib.sardine_dnsdist_refused(self.id, wire or ffi.new('uint8_t[1]'), length or 0, qtype or 0, n)) do
        local ago, reason, number, name = line:match('^(%d+) (%S+) (%d+) (.*)$')
        table.insert(list, { tonumber(ago), reason, type_name(tonumber(number)), name })
    end
    return list
end

-- The last responses that were not kept.
function methods:refused(n)
    local lines = {}
    for _, item in ipairs(refused_list(self, n or 20)) do
        table.insert(lines, string.format('%8s ago  %-10s %s  (%s: %s)', duration(item[1]), item[3], item[4], item[2],
                     REASONS[item[2]] or ''))
    end
    return #lines > 0 and as_text(lines) or 'None was refused lately.'
end

-- Why -------------------------------------------------------------------------------------------------------------------

local TRANSPORTS = { udp = 'SARDINE_UDP', tcp = 'SARDINE_TCP', dot = 'SARDINE_DOT', doh = 'SARDINE_DOH', doq = 'SARDINE_DOQ' }

local function be16(n)
    return string.char(math.floor(n / 256), n % 256)
end

local function parse_address(text, what)
    local address = ffi.new('uint8_t[16]')
    if type(text) == 'userdata' then
        text = text:toString()
    end
    local length = type(text) == 'string' and lib.sardine_dnsdist_address(text, address) or 0
    if length == 0 then
        fail('explain: %s must be an address', what)
    end
    return address, length
end

-- An EDNS client subnet option (RFC 7871) from "192.0.2.0/24".
local function subnet_option(text)
    local network, prefix = tostring(text):match('^(.*)/(%d+)$')
    prefix = tonumber(prefix)
    local address, length = parse_address(network, 'ecs, before the slash,')
    if prefix > length * 8 then
        fail('explain: ecs has a prefix that is too long')
    end
    local size = math.ceil(prefix / 8)
    return be16(8) .. be16(4 + size) .. be16(length == 4 and 1 or 2) .. string.char(prefix, 0) .. ffi.string(address, size)
end

local EXPLAIN = { client = true, ['do'] = true, dnssec = true, rd = true, cd = true, ad = true, edns = true, size = true,
                  transport = true, ecs = true, tag = true, skip = true, staleAllowed = true }

local function make_query(qname, qtype, how)
    local wire, length = wire_name(qname, 'explain')
    local with_do = how['do'] or how.dnssec
    local flags1 = how.rd == false and 0 or 1
    local flags2 = (how.cd and 0x10 or 0) + (how.ad and 0x20 or 0)
    local edns = with_do or how.edns or how.ecs or how.size
    local options = how.ecs and subnet_option(how.ecs) or ''
    local packet = '\0\0' .. string.char(flags1, flags2) .. be16(1) .. be16(0) .. be16(0) .. be16(edns and 1 or 0) ..
                   ffi.string(wire, length) .. be16(qtype) .. be16(1)
    if edns then
        packet = packet .. '\0' .. be16(41) .. be16(how.size or 1232) .. '\0\0' .. (with_do and '\128\0' or '\0\0') .. be16(#options) .. options
    end
    return packet, wire, length
end

local function about_answer(e)
    local parts = { rcode_name(e.rcode) }
    table.insert(parts, e.ttl > 0 and duration(e.ttl) .. ' left' or 'expired ' .. duration(e.expired) .. ' ago')
    if e.life > 0 then
        table.insert(parts, 'life ' .. duration(math.max(e.life, e.ttl))) -- kept rounded down
        table.insert(parts, e.bytes .. ' bytes')
        table.insert(parts, 'popularity ' .. e.hits .. ' of 7')
    end
    table.insert(parts, e.dnssec_ok ~= 0 and 'fetched with DO' or 'fetched without DO')
    return 'The answer here: ' .. table.concat(parts, ', ') .. '.'
end

-- Of an answer that is not here.
local function what_became(self, e)
    if e.purged == lib.SARDINE_PURGED_YES then
        return string.format('A purge %s ago removed what was here then.', duration(e.purged_ago))
    elseif e.purged == lib.SARDINE_PURGED_PERHAPS then
        return string.format('A purge %s ago may have removed it: by a list, an rcode or a group.', duration(e.purged_ago))
    end
    local evicted = tonumber(stats_of(self).evicted)
    if evicted == 0 then
        return 'Nothing has been evicted so far: it never came, was not kept, or expired long ago.'
    end
    return string.format('It never came, was not kept, expired long ago, or was evicted, as %s answers were so far.', count(evicted))
end

local function verdict(self, e, outcome)
    local why = e.why
    if why == lib.SARDINE_WHY_BYPASS then
        local name = ffi.string(lib.sardine_reason_name(e.reason))
        return 'BYPASS', { string.format('It is no question for a cache: %s (%s).', REASONS[name] or name, name) }
    elseif outcome == lib.SARDINE_HIT then
        local size = string.format('The reply has %d bytes%s.', e.reply_len, e.truncated ~= 0 and ', cut to what the client takes (TC)' or '')
        return 'HIT', { about_answer(e), size }
    elseif outcome == lib.SARDINE_STALE then
        return 'HIT, STALE', { 'The answer has expired, and the backend could not renew it a moment ago: it goes out at once.', about_answer(e) }
    elseif why == lib.SARDINE_WHY_EXPIRED then
        local text
        if e.stale_available ~= 0 then
            text = 'It would stand in if the backend failed (staleWindow).'
        elseif self.stale_window == 0 then
            text = 'Expired answers are not used (staleWindow is 0).'
        elseif e.expired >= self.stale_window then
            text = 'It is too old to stand in (staleWindow is ' .. duration(self.stale_window) .. ').'
        else
            text = 'It may not stand in: ' .. (e.dnssec_ok == 0 and 'a failure, a truncated answer, one without signatures for a client that wants them, or negative with stalePositive.'
                                               or 'a failure, a truncated answer, or negative with stalePositive.')
        end
        return 'MISS', { 'The answer has expired. ' .. text, about_answer(e) }
    elseif why == lib.SARDINE_WHY_DNSSEC then
        return 'MISS', { 'The answer was fetched without DO, and this client sets DO: it may want signatures, which are not here. ' ..
                         'Once fetched with DO, it serves both; alwaysDO=true fetches everything so.', about_answer(e) }
    elseif why == lib.SARDINE_WHY_TRUNCATED then
        return 'MISS', { 'Only a truncated answer is here, and a client over TCP, DoT or DoH came for the whole.', about_answer(e) }
    elseif why == lib.SARDINE_WHY_NETWORK then
        return 'MISS', { 'The backend tailors this answer to client networks (RFC 7871), and there is no fresh one for this client\'s network: ' ..
                         'say which client, with client= or ecs=.' }
    elseif why == lib.SARDINE_WHY_FLAGS then
        return 'MISS', { string.format('An answer is here for queries with RD=%d CD=%d only. These bits change what a resolver does, so they are part of the key.',
                                       e.rd, e.cd), about_answer(e) }
    elseif why == lib.SARDINE_WHY_TAG then
        return 'MISS', { 'An answer is here under another tag, or for other values of the EDNS options that splitOptions names.', about_answer(e) }
    end
    return 'MISS', { 'There is no answer to this question here, fresh or expired.', what_became(self, e) }
end

-- What would become of a query, and why. `how`: { client='192.0.2.1', ['do']=true, cd=, rd=, ad=, edns=, size=, ecs='192.0.2.0/24',
-- transport='udp', tag=, skip= }. Leaves no trace in the cache.
function methods:explain(qname, qtype, how)
    local cache = cache_of(self)
    how = how or {}
    if type(how) ~= 'table' then
        fail('explain: the third argument must be a table')
    end
    for name in pairs(how) do
        if not EXPLAIN[name] then
            fail('explain: unknown field %s', tostring(name))
        end
    end
    local number = type_number(qtype or 'A', 'explain')
    local transport = TRANSPORTS[how.transport or 'udp'] or fail('explain: transport must be udp, tcp, dot, doh or doq')
    local packet, wire, length = make_query(qname, number, how)
    local query, explanation = ffi.new('struct sardine_query'), ffi.new('struct sardine_explanation')
    local buffer = ffi.new('uint8_t[?]', #packet, packet)
    query.sz = ffi.sizeof(query)
    query.packet = buffer
    query.len = #packet
    query.transport = lib[transport]
    query.flags = how.skip and lib.SARDINE_SKIP or 0
    local address, tag
    if how.client then
        address, query.client_len = parse_address(how.client, 'client')
        query.client = address
    end
    if how.tag then
        tag = ffi.new('char[?]', math.max(#how.tag, 1), how.tag)
        query.tag = tag
        query.tag_len = #how.tag
    end
    explanation.sz = ffi.sizeof(explanation)
    local outcome = lib.sardine_explain(cache, query, explanation)
    if outcome < 0 then
        fail('explain: %s', ffi.string(lib.sardine_strerror(outcome)))
    end
    local word, lines = verdict(self, explanation, outcome)
    table.insert(lines, 1, word)
    -- The names of refused responses are in lower case.
    local folded = ffi.string(wire, length):gsub('%u', string.lower)
    local room = ffi.new('uint8_t[255]')
    ffi.copy(room, folded, #folded)
    for _, item in ipairs(refused_list(self, 1, room, length, number)) do
        table.insert(lines, string.format('A response was not kept %s ago: %s (%s).', duration(item[1]), REASONS[item[2]] or item[2], item[2]))
    end
    return as_text(lines)
end

core.reasons = reasons
core.type_name = type_name
core.type_number = type_number
core.rcode_name = rcode_name
core.start_to_watch = start_to_watch
core.top_list = top_list
core.refused_list = refused_list
end
