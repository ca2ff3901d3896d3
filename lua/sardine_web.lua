-- SPDX-License-Identifier: MIT
--
-- The caches on dnsdist's own web server: a page for people, the JSON that the page reads, metrics for Prometheus, and
-- dnsdist's way to remove names over HTTP. Made for sardine.lua, which loads it.
--
--     webserver('127.0.0.1:8083')
--     setWebserverConfig({password='...'})
--     require('sardine').web()          -- http://127.0.0.1:8083/sardine
--
-- Who may see it is up to dnsdist: its ACL, and its password.

return function(core)
local ffi, lib, fail = core.ffi, core.lib, core.fail
local page = require 'sardine_page'

-- JSON -------------------------------------------------------------------------------------------------------------

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }

local function json_string(text)
    return '"' .. text:gsub('[%c"\\\127-\255]', function(char)
        return ESCAPES[char] or string.format('\\u%04x', char:byte())
    end) .. '"'
end

-- A table is an array if it says so: { array = true, ... }.
local function json(value)
    if type(value) == 'table' then
        local parts = {}
        if value.array then
            for i = 1, #value do
                parts[i] = json(value[i])
            end
            return '[' .. table.concat(parts, ',') .. ']'
        end
        for key, element in pairs(value) do
            table.insert(parts, json_string(tostring(key)) .. ':' .. json(element))
        end
        table.sort(parts)
        return '{' .. table.concat(parts, ',') .. '}'
    elseif type(value) == 'string' then
        return json_string(value)
    elseif type(value) == 'boolean' then
        return tostring(value)
    end
    return string.format('%.15g', tonumber(value))
end

-- The caches that pools use, sorted by name: { cache, name, pools }.
local function caches()
    local list, by_cache = {}, {}
    for pool, cache in pairs(core.attached) do
        local entry = by_cache[cache]
        if not entry then
            entry = { cache = cache, name = core.name_of(cache), pools = {} }
            by_cache[cache] = entry
            table.insert(list, entry)
        end
        table.insert(entry.pools, pool)
    end
    table.sort(list, function(one, other)
        return one.name < other.name or one.name == other.name and one.cache.id < other.cache.id
    end)
    local last
    for _, entry in ipairs(list) do
        table.sort(entry.pools)
        -- Two of one name: no series twice.
        entry.name, last = entry.name == last and entry.name .. '-' .. entry.cache.id or entry.name, entry.name
    end
    return list
end

local function survey_of(cache)
    local survey = ffi.new('struct sardine_dnsdist_survey')
    return lib.sardine_dnsdist_surveyed(cache.id, survey) ~= 0 and survey or nil
end

-- Lookups by outcome; together they are all lookups.
local OUTCOMES = { 'hits', 'stale', 'refresh', 'misses', 'bypass', 'cache_only_misses', 'waits' }
local OUTCOME_LABELS = { hits = 'hit', misses = 'miss', cache_only_misses = 'cache_only_miss', waits = 'wait' }
-- Inserts by outcome.
local INSERTS = { 'stored', 'replaced', 'refreshed', 'refused' }
local CAUSES = { 'evicted', 'expired', 'expunged' }
local GAUGES = {
    { 'entries', 'Entries in the cache.' },
    { 'max_entries', 'Entries that the cache takes at most; 0: no limit but the bytes.' },
    { 'bytes', 'Memory of the cache, everything included.' },
    { 'max_bytes', 'Memory that the cache takes at most.' },
    { 'entry_bytes', 'Bytes of live entries alone.' },
    { 'index_bytes', 'Bytes of the index.' },
    { 'dead_bytes', 'Bytes of entries that were replaced or removed, not reclaimed yet.' },
}
local LIFE_LABELS = { '0', '10', '60', '300', '900', '3600', '21600', '86400', '+Inf' }

-- Metrics -------------------------------------------------------------------------------------------------------------

local LABEL_ESCAPES = { ['\\'] = '\\\\', ['"'] = '\\"', ['\n'] = '\\n' }

local function labels_of(labels)
    local parts = {}
    for i = 1, #labels, 2 do
        table.insert(parts, string.format('%s="%s"', labels[i], (tostring(labels[i + 1]):gsub('[\\"\n]', LABEL_ESCAPES))))
    end
    return #parts > 0 and '{' .. table.concat(parts, ',') .. '}' or ''
end

-- Families in the order in which they are first named, each with all of its samples together.
local function exposition()
    local families, order = {}, {}
    local self = {}
    function self.add(name, kind, help, value, ...)
        local family = families[name]
        if not family then
            family = { string.format('# HELP sardine_%s %s\n# TYPE sardine_%s %s', name, help, name, kind) }
            families[name] = family
            table.insert(order, family)
        end
        table.insert(family, string.format('sardine_%s%s %.15g', name, labels_of({ ... }), tonumber(value)))
    end
    function self.text()
        local lines = {}
        for _, family in ipairs(order) do
            table.insert(lines, table.concat(family, '\n'))
        end
        return table.concat(lines, '\n') .. '\n'
    end
    return self
end

local function add_survey(add, name, survey)
    add('survey_timestamp_seconds', 'gauge', 'When the entries were last counted by type, rcode and life.', survey.at, 'cache', name)
    add('survey_duration_seconds', 'gauge', 'How long that took.', survey.took_ms / 1000, 'cache', name)
    local function type_samples(label, share)
        add('type_entries', 'gauge', 'Answers by type, when last counted.', share.entries, 'cache', name, 'type', label)
        add('type_bytes', 'gauge', 'Bytes of answers by type, when last counted.', share.bytes, 'cache', name, 'type', label)
    end
    for i = 0, survey.n_types - 1 do
        type_samples(core.type_name(survey.types[i]), survey.of_type[i])
    end
    if survey.other_types.entries > 0 then
        type_samples('other', survey.other_types)
    end
    for i = 0, lib.SARDINE_SURVEY_RCODES - 1 do
        local share = survey.of_rcode[i]
        if share.entries > 0 or i == 0 then
            add('rcode_entries', 'gauge', 'Answers by rcode, when last counted.', share.entries, 'cache', name, 'rcode',
                i == lib.SARDINE_SURVEY_RCODES - 1 and 'other' or core.rcode_name(i))
        end
    end
    local up_to = 0
    for i, label in ipairs(LIFE_LABELS) do
        up_to = up_to + tonumber(survey.of_life[i - 1].entries)
        add('ttl_left_entries', 'gauge', 'Answers with at most so many seconds of life left, when last counted; 0: expired.',
            up_to, 'cache', name, 'le', label)
    end
end

local function add_snapshot(add, name, status)
    add('snapshot_saves_total', 'counter', 'Snapshots saved.', status.saves, 'cache', name)
    add('snapshot_failures_total', 'counter', 'Snapshots that could not be saved or loaded.', status.failures, 'cache', name)
    if status.saves > 0 then
        add('snapshot_age_seconds', 'gauge', 'Since the snapshot was saved.', status.save_age, 'cache', name)
        add('snapshot_entries', 'gauge', 'Entries in it.', status.saved.entries, 'cache', name)
        add('snapshot_bytes', 'gauge', 'Bytes of the file.', status.saved.bytes, 'cache', name)
    end
end

local function metrics()
    local out = exposition()
    local add = out.add
    add('info', 'gauge', 'The version of sardine.', 1, 'version', core.version)
    for _, entry in ipairs(caches()) do
        local cache, name = entry.cache, entry.name
        local stats = core.stats_of(cache)
        for _, pool in ipairs(entry.pools) do
            add('pool_info', 'gauge', 'Which cache a pool uses.', 1, 'cache', name, 'pool', pool)
        end
        for _, gauge in ipairs(GAUGES) do
            add(gauge[1], 'gauge', gauge[2], stats[gauge[1]], 'cache', name)
        end
        local snapshot = core.snapshot_of(cache)
        if snapshot then
            add_snapshot(add, name, snapshot)
        end
        for _, outcome in ipairs(OUTCOMES) do
            add('lookups_total', 'counter', 'Lookups by outcome.', stats[outcome], 'cache', name, 'outcome', OUTCOME_LABELS[outcome] or outcome)
        end
        for _, outcome in ipairs(INSERTS) do
            add('inserts_total', 'counter', 'Responses offered to the cache by outcome.', stats[outcome], 'cache', name, 'outcome', outcome)
        end
        for _, reason in ipairs(core.reasons) do
            local bypass = reason.kind == 'bypass'
            add(bypass and 'bypassed_total' or 'refused_total', 'counter',
                bypass and 'Queries that went past the cache by reason.' or 'Responses that were not kept by reason.',
                stats.reasons[reason.number], 'cache', name, 'reason', reason.name)
        end
        add('rescued_total', 'counter', 'Expired answers given in place of a failure.', stats.rescued, 'cache', name)
        for _, cause in ipairs(CAUSES) do
            add('removed_total', 'counter', 'Entries that left the cache by cause.', stats[cause], 'cache', name, 'cause', cause)
        end
        add('moved_total', 'counter', 'Entries copied forward while memory was reclaimed.', stats.moved, 'cache', name)
        core.policy_metrics(add, cache, name)
        local survey = survey_of(cache)
        if survey then
            add_survey(add, name, survey)
        end
    end
    return out.text()
end

-- What the page shows -----------------------------------------------------------------------------------------------

local function share_of(label, share)
    return { label = label, entries = tonumber(share.entries), bytes = tonumber(share.bytes) }
end

local function survey_data(survey)
    local types, rcodes, lives = { array = true }, { array = true }, { array = true }
    for i = 0, survey.n_types - 1 do
        table.insert(types, share_of(core.type_name(survey.types[i]), survey.of_type[i]))
    end
    if survey.other_types.entries > 0 then
        table.insert(types, share_of('other', survey.other_types))
    end
    for i = 0, lib.SARDINE_SURVEY_RCODES - 1 do
        if survey.of_rcode[i].entries > 0 then
            table.insert(rcodes, share_of(i == lib.SARDINE_SURVEY_RCODES - 1 and 'other' or core.rcode_name(i), survey.of_rcode[i]))
        end
    end
    for i, label in ipairs(LIFE_LABELS) do
        table.insert(lives, share_of(label, survey.of_life[i - 1]))
    end
    return { at = survey.at, took = survey.took_ms / 1000, all = share_of('all', survey.all), types = types, rcodes = rcodes, lives = lives }
end

local POINT = { 'at', 'hits', 'stale', 'refresh', 'misses', 'bypass', 'other', 'inserts', 'refused', 'evicted', 'entries', 'bytes' }
local points = ffi.new('struct sardine_dnsdist_point[?]', lib.SARDINE_WATCH_POINTS)

-- Each point as a row in the order of POINT.
local function history_data(cache, since)
    local rows = { array = true }
    for i = 0, lib.sardine_dnsdist_history(cache.id, since, points, lib.SARDINE_WATCH_POINTS) - 1 do
        local row = { array = true }
        for j, field in ipairs(POINT) do
            row[j] = tonumber(points[i][field])
        end
        table.insert(rows, row)
    end
    return rows
end

local function as_rows(list)
    list.array = true
    for _, item in ipairs(list) do
        item.array = true
    end
    return list
end

local TOP = 15

local function cache_data(entry, since)
    local cache = entry.cache
    local stats, counters, why = core.stats_of(cache), {}, { array = true }
    for _, gauge in ipairs(GAUGES) do
        counters[gauge[1]] = tonumber(stats[gauge[1]])
    end
    for _, list in ipairs { OUTCOMES, INSERTS, CAUSES, { 'lookups', 'inserts', 'rescued' } } do
        for _, name in ipairs(list) do
            counters[name] = tonumber(stats[name])
        end
    end
    for _, reason in ipairs(core.reasons) do
        if stats.reasons[reason.number] > 0 then
            table.insert(why, { kind = reason.kind, name = reason.name, n = tonumber(stats.reasons[reason.number]) })
        end
    end
    local survey, snapshot = survey_of(cache), core.snapshot_of(cache)
    entry.pools.array = true
    return {
        id = cache.id, name = entry.name, pools = entry.pools, stats = counters, reasons = why,
        survey = survey and survey_data(survey) or false, history = history_data(cache, since),
        top = as_rows(core.top_list(cache, TOP, false)), top_misses = as_rows(core.top_list(cache, TOP, true)),
        refused = as_rows(core.refused_list(cache, TOP)),
        policy = core.policy_data(cache),
        snapshot = snapshot and { text = core.about_snapshot(snapshot), failing = snapshot.save_error ~= 0 } or false,
    }
end

local function data(since)
    POINT.array = true
    local list = { array = true }
    for _, entry in ipairs(caches()) do
        table.insert(list, cache_data(entry, since))
    end
    return json { version = core.version, now = os.time(), step = lib.SARDINE_WATCH_STEP, points = lib.SARDINE_WATCH_POINTS,
                  columns = POINT, caches = list }
end

-- Handlers ------------------------------------------------------------------------------------------------------------

-- The headers that dnsdist has set stay: they are for security.
local function respond(response, status, content_type, body)
    local headers = response.headers
    headers['Content-Type'] = content_type
    headers['Cache-Control'] = 'no-store'
    response.headers = headers
    response.status = status
    response.body = body
end

-- An error shows as such, and does not end a thread of dnsdist.
local function handler(content_type, make)
    return function(request, response)
        local done, body = pcall(make, request)
        if done then
            respond(response, 200, content_type, body)
        else
            respond(response, 500, 'text/plain', tostring(body))
        end
    end
end

-- As dnsdist answers DELETE /api/v1/cache?pool=&name=[&type=][&suffix=] (1.8 and later), for our caches too.
local function remove_names(request, response)
    local vars = request.getvars
    local function answer(status, fields)
        respond(response, status, 'application/json', json(fields))
    end
    if request.method ~= 'DELETE' or not vars.pool or not vars.name then
        return answer(400, { status = 'error', error = 'DELETE with pool and name' })
    end
    local cache = core.attached[vars.pool]
    if not cache then
        return answer(404, { status = 'error', error = 'no sardine cache in this pool' })
    end
    local done, result = pcall(function()
        return cache:expungeByName(vars.name, core.type_number(vars.type or 'ANY', 'type'), vars.suffix ~= nil)
    end)
    if not done then
        return answer(400, { status = 'error', error = tostring(result) })
    end
    return answer(200, { purged = tostring(result) })
end

-- What there is below the path, but for removing names: by what follows the path, the type and what makes it.
local function contents(path)
    return {
        [''] = { 'text/html; charset=utf-8', function() return (page.html:gsub('{{path}}', path)) end },
        ['/page.js'] = { 'application/javascript; charset=utf-8', function() return page.script end },
        ['/data'] = { 'application/json', function(since) return data(tonumber(since) or 0) end },
        ['/metrics'] = { 'text/plain; version=0.0.4; charset=utf-8', metrics },
    }
end

local function check_path(path)
    if type(path) ~= 'string' or not path:find('^/[%w/_.-]*[%w_-]$') then
        fail('web: path must be like "/sardine"')
    end
end

-- Until 1.9.5 dnsdist called Lua web handlers without its lock, side by side with whatever else was running in the same
-- Lua state (its pull request 14341): once in some thousand requests that ended the process. Development versions call
-- themselves 0.0.
local function is_safe()
    ffi.cdef 'int getpid(void);'
    local major, minor, patch
    for _, program in ipairs { string.format('/proc/%d/exe', ffi.C.getpid()), 'dnsdist' } do
        local pipe = not major and io.popen(program .. ' --version 2>/dev/null')
        if pipe then
            major, minor, patch = pipe:read('*a'):match('^dnsdist (%d+)%.(%d+)%.(%d+)')
            pipe:close()
        end
    end
    if not major then
        return false
    end
    local version = (major * 1000 + minor) * 1000 + patch
    return version >= 1009005 or major == '0'
end

-- Serve them all below a path of dnsdist's web server, "/sardine" if none is given.
local function web(options)
    local path = options and options.path or '/sardine'
    check_path(path)
    if not is_safe() then
        fail('web: before 1.9.5, dnsdist may crash when a web handler runs; serve the page with sardine-web instead (see WATCH.md)')
    end
    core.start_to_watch()
    for rest, content in pairs(contents(path)) do
        registerWebHandler(path .. rest, handler(content[1], function(request)
            return content[2](request.getvars.since)
        end))
    end
    registerWebHandler('/api/v1/cache', remove_names)
end

-- The same for sardine-web, which asks on the console: a first line with the type, then the content; nil if there is no
-- such thing.
local function web_content(path, rest, since)
    check_path(path)
    core.start_to_watch()
    local content = contents(path)[rest]
    return content and content[1] .. '\n' .. content[2](since)
end

return web, web_content
end
