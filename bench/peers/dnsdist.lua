-- SPDX-License-Identifier: MIT
-- dnsdist for bench/peers/run: LISTEN, UPSTREAM, CACHE (sardine or builtin), ENTRIES, BYTES (sardine's budget, 0: none),
-- ALWAYS_DO, CLEANING (seconds) come from the environment.
setLocal(os.getenv 'LISTEN')
setSecurityPollSuffix('') -- no queries but those of the clients
setCacheCleaningDelay(tonumber(os.getenv 'CLEANING'))
newServer { address = os.getenv 'UPSTREAM' }:setUp()
local entries = tonumber(os.getenv 'ENTRIES')
if os.getenv 'CACHE' == 'sardine' then
    local sardine = require 'sardine'
    local options = { alwaysDO = os.getenv 'ALWAYS_DO' == '1' }
    if os.getenv 'BYTES' ~= '0' then
        options.maxBytes = tonumber(os.getenv 'BYTES')
    end
    sardine.attach(sardine.newPacketCache(entries, options))
else
    getPool(''):setCache(newPacketCache(entries))
end
