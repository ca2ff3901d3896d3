-- SPDX-License-Identifier: MIT
-- One cache for several tenants: the tag of a lookup keeps their answers apart, and selects what is removed.
-- Run: lua5.4 tenants.lua
local sardine = require 'sardine'

local cache <close> = assert(sardine.new {max_entries = 10000})

local function query(name)
    return string.pack('>I2 I2 I2 I2 I2 I2', 1, 0x0100, 1, 0, 0, 0)
        .. assert(sardine.name_from_text(name)) .. string.pack('>I2 I2', 1, 1)
end

-- The filtered view of the world: schools get NXDOMAIN for what they had better not see.
local function upstream(name, tenant)
    local blocked = tenant == 'school' and name:find('games', 1, true)
    local head = string.pack('>I2 I2 I2 I2 I2 I2', 1, blocked and 0x8183 or 0x8180, 1, blocked and 0 or 1,
                             blocked and 1 or 0, 0)
    local body = assert(sardine.name_from_text(name)) .. string.pack('>I2 I2', 1, 1)
    if blocked then -- the SOA record that makes a negative answer fit for a cache
        return head .. body .. string.pack('>x I2 I2 I4 s2', 6, 1, 60, '\0\0' .. string.pack('>I4 I4 I4 I4 I4', 1, 2, 3, 4, 60))
    end
    return head .. body .. string.pack('>I2 I2 I2 I4 s2', 0xc00c, 1, 1, 300, '\192\0\2\1')
end

local function resolve(name, tenant)
    local outcome, reply, token, details = cache:lookup(query(name), {tag = tenant})
    if outcome == 'miss' then
        cache:insert(token, upstream(name, tenant))
        outcome, reply, token, details = cache:lookup(query(name), {tag = tenant, peek = true})
        return 'asked upstream', details.rcode
    end
    return outcome, details.rcode
end

for _, tenant in ipairs {'school', 'home', 'school', 'home'} do
    print(tenant, 'games.example.', resolve('games.example.', tenant))
end
resolve('www.example.', 'school')

print('school has now:')
local names = {}
for entry in cache:walk {tag = 'school'} do
    names[#names + 1] = ('  %s %s %s'):format(entry.name, entry.type, entry.rcode)
end
table.sort(names)
print(table.concat(names, '\n'))

-- The school's list of blocked names has changed: forget what came of it, and nothing else.
print('removed', cache:expunge {tag = 'school', rcode = 'NXDOMAIN'})
print('left', cache:stats().entries)
