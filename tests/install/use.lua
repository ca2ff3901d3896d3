-- SPDX-License-Identifier: MIT
-- usage: luajit use.lua HEADER LIBRARY: the marked part of the header must be what ffi.cdef() reads.
local ffi = require 'ffi'
local file = assert(io.open(arg[1]))
local text = file:read('*a')
file:close()
local declarations = assert(text:match('/%* %[cdef%] %*/(.*)/%* %[cdef%] %*/'), 'no marks in ' .. arg[1])
ffi.cdef(declarations)
local lib = ffi.load(arg[2])
assert(lib.sardine_abi_version() == tonumber(text:match('SARDINE_ABI_VERSION%s+(%d+)')))
assert(ffi.string(lib.sardine_version()) == text:match('SARDINE_VERSION%s+"([^"]+)"'))
local options = ffi.new('struct sardine_options')
lib.sardine_options_init(options, ffi.sizeof(options))
local cache = ffi.new('sardine_cache *[1]')
assert(lib.sardine_create(options, cache) == 0)
local stats = ffi.new('struct sardine_stats', ffi.sizeof('struct sardine_stats'))
assert(lib.sardine_stats_get(cache[0], stats) == 0 and stats.entries == 0)
lib.sardine_destroy(cache[0])
