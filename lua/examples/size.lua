-- SPDX-License-Identifier: MIT
-- How large will my cache be? Reads responses, one a line in hexadecimal (words before it are skipped), puts them into a
-- cache, and says what was kept, what was not and why, and what an entry takes.
-- Run: lua5.4 size.lua [FILE]
local sardine = require 'sardine'

local cache <close> = assert(sardine.new {max_bytes = 1 << 30})

-- The question of a response as the query that a client would have sent for it.
local function question(packet)
    if #packet < 12 then
        return nil
    end
    local at = 13
    while packet:byte(at) and packet:byte(at) > 0 do
        at = at + packet:byte(at) + 1
    end
    local flags = string.unpack('>I2', packet, 3) & 0x0110 -- RD and CD
    return packet:sub(1, 2) .. string.pack('>I2 I2 I2 I2 I2', flags, 1, 0, 0, 0) .. packet:sub(13, at + 4)
end

local lines, refused = 0, {}
for line in io.lines(arg[1]) do
    local packet = (line:match('(%x*)%s*$')):gsub('%x%x', function(byte) return string.char(tonumber(byte, 16)) end)
    lines = lines + 1
    local token, why = cache:token(question(packet) or '')
    local outcome, _, reason
    if token then
        outcome, _, reason = cache:insert(token, packet)
    end
    if not token or outcome == 'refused' then
        reason = reason or why
        refused[reason] = (refused[reason] or 0) + 1
    end
end

local types, bytes, wire = {}, 0, 0
for entry in cache:walk({}, {messages = true}) do
    local t = types[entry.type] or {count = 0, bytes = 0}
    types[entry.type] = t
    t.count, t.bytes = t.count + 1, t.bytes + entry.bytes
    bytes, wire = bytes + entry.bytes, wire + #entry.message
end

local entries = cache:stats().entries
print(('%d responses, %d entries'):format(lines, entries))
if entries > 0 then
    print(('%.1f bytes an entry without its index slot, %.1f as a message'):format(bytes / entries, wire / entries))
end

local function sorted(t)
    local keys = {}
    for key in pairs(t) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return ipairs(keys)
end
for _, type in sorted(types) do
    print(('  %-10s %6d entries %8.1f bytes each'):format(type, types[type].count, types[type].bytes / types[type].count))
end
for _, reason in sorted(refused) do
    print(('  not kept: %-18s %6d'):format(reason, refused[reason]))
end
