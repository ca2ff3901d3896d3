-- SPDX-License-Identifier: MIT
-- usage: luajit policy.lua HEADER LIBRARY POLICY: in a process with LuaJIT a policy has Lua 5.4 all the same.
local ffi = require 'ffi'
local file = assert(io.open(arg[1]))
ffi.cdef((assert(file:read('*a'):match('/%* %[cdef%] %*/(.*)/%* %[cdef%] %*/'))))
file:close()
local lib = ffi.load(arg[2], true)
local options = ffi.new('struct sardine_options')
lib.sardine_options_init(options, ffi.sizeof(options))
local cache = ffi.new('sardine_cache *[1]')
assert(lib.sardine_create(options, cache) == 0)
local why = ffi.new('char[512]')
local err = lib.sardine_policy_load(cache[0], arg[3], 0, why, 512)
assert(err == 0, ffi.string(why))
local stats = ffi.new('struct sardine_policy_stats', ffi.sizeof('struct sardine_policy_stats'))
assert(lib.sardine_policy_stats_get(cache[0], stats) == 0 and stats.loaded == 1 and stats.hooks == 1)
lib.sardine_destroy(cache[0])
