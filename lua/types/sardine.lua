---@meta sardine
-- SPDX-License-Identifier: MIT
-- For the Lua language server: what `require "sardine"` gives in Lua 5.4. Add this file's folder to
-- workspace.library. ../MODULE.md is the guide.

---@class sardine
---@field version string
local sardine = {}

---A cache of DNS answers. Freed by `close()`, by the end of a `local cache <close>`, or with the garbage.
---@class sardine.Cache
local Cache = {}

---What a miss gives: the question, for `insert` and `wait` of the same cache.
---@class sardine.Token
local Token = {}

---A clock that the program moves.
---@class sardine.Clock
local Clock = {}

---Numbers are whole; TTLs in seconds, sizes in bytes. include/sardine.h has the limits.
---@class sardine.Options
---@field max_entries? integer 0: no limit but `max_bytes`. Default 0
---@field max_bytes? integer everything included; 0: from `max_entries`, or 1 GiB without it. Default 0
---@field max_ttl? integer upper bound of an entry's life. Default 86400
---@field min_ttl? integer answers that would live shorter are not kept. Default 0
---@field max_negative_ttl? integer for NXDOMAIN and NODATA. Default 3600
---@field failure_ttl? integer life of SERVFAIL and REFUSED, at most 300; 0: not kept. Default 60
---@field truncated_ttl? integer life of a truncated response without records; 0: not kept. Default 0
---@field stale_ttl? integer TTL shown in stale replies. Default 30
---@field stale_window? integer for how long after expiry an entry may still answer. Default 0
---@field stale_backoff? integer after `failed`, for how long stale answers go out at once. Default 30
---@field stale_positive? boolean of expired entries only positive answers may still answer
---@field max_networks? integer answers for different client networks kept of a question. Default 4096
---@field max_entry_size? integer largest response kept, 512 to 65535. Default 65535
---@field udp_payload_size? integer limit for UDP replies, 512 to 65535. Default 1232
---@field dont_age? boolean show the original TTL for all of an entry's life
---@field rotate? boolean each reply starts its record sets at another record
---@field cap_by_signature? boolean no entry outlives the first of its signatures to expire
---@field refresh_percent? integer with less of its life left a popular entry is reported as "refresh"; at most 50
---@field one_hit_share? integer percent of the bytes for answers that nobody asked for again. Default 10
---@field negative_share? integer percent for answers without data. Default 25
---@field stale_share? integer percent for expired answers that may still stand in. Default 25
---@field kept_share? integer percent for answers that are to be kept whatever else goes. Default 50
---@field segment_size? integer storage unit; for tests
---@field split_options? integer[] EDNS options whose bytes become part of the key, at most 16
---@field log? fun(level: "error"|"warning"|"info", text: string) called when a method that logged something is done
---@field clock? sardine.Clock in place of the system's

---How a query came, and what is wanted.
---@class sardine.Request
---@field client? string the client's IP address
---@field transport? "udp"|"tcp"|"dot"|"doh"|"doq" default "udp"
---@field tag? string part of the key: tenant, view, policy; at most 128 bytes
---@field skip? boolean do not use the cache: counted as bypass
---@field cache_only? boolean nobody will ask upstream: no token
---@field allow_stale? boolean an expired entry within `stale_window` may answer
---@field coalesce? boolean of those that miss, only the first is told to ask upstream, the others "wait"
---@field max_ttl? integer the reply shows no longer TTL
---@field failure? string|integer for `failed`: the response code that came, for the policy's stale hook
---@field local_address? string for policies: where the query came to
---@field local_port? integer
---@field pool? string for policies: the host's pool for it
---@field host_tags? table<string, string> for policies: what else is known of the query, at most 16
---@field peek? boolean leave no trace: no popularity, no hit or miss counted

---@class sardine.Details
---@field reason? string why a lookup was bypassed
---@field stale_available? boolean on a miss or a wait: `allow_stale` would have given a reply
---@field rcode? string of the reply
---@field ttl? integer remaining life of the reply; 0 when stale
---@field age? integer seconds since expiry when stale, else 0
---@field dnssec_ok? boolean the answer was fetched with DO=1
---@field ecs_ipv4? integer with "miss", "refresh" and "wait": by the policy, how much of a client's address the upstream may be told
---@field ecs_ipv6? integer
---@field ecs? string|false as these: the network that the upstream is to be told instead of what the query says; false: none

---Which entries: all fields that are there must hold.
---@class sardine.Selector
---@field name? string
---@field below? boolean also the names below `name`
---@field type? string|integer "AAAA", 28
---@field tag? string exactly this tag; "": those without
---@field rcode? string|integer "NXDOMAIN", 3
---@field group? string that a policy put it into

---@class sardine.Entry
---@field name string in lower case, with a final dot
---@field type string
---@field rcode string
---@field ttl integer life left; 0: expired
---@field expired integer seconds since expiry
---@field life integer life at insert, rounded down to within 1/16
---@field bytes integer in the store, without its index slot
---@field hits integer popularity from 0 to 7: not a count
---@field rd boolean of the query that fetched it
---@field cd boolean
---@field dnssec_ok boolean
---@field tag? string
---@field group? string by the policy
---@field eviction_class integer by the policy, from 0 to 7
---@field network? string the client network that it is for: "192.0.2.0/24"
---@field message? string the entry as a response, when asked for

---@class sardine.WalkOptions
---@field messages? boolean give each entry's `message` too
---@field limit? integer stop after so many

---Counters since the cache was made, and gauges.
---@class sardine.Stats
---@field entries integer
---@field max_entries integer
---@field bytes integer all memory, as the budget counts it
---@field max_bytes integer
---@field entry_bytes integer live entries alone
---@field index_bytes integer
---@field dead_bytes integer replaced or removed, not reclaimed yet
---@field lookups integer hits + stale + refresh + misses + bypass + cache_only_misses + waits
---@field hits integer
---@field stale integer
---@field refresh integer
---@field misses integer
---@field bypass integer
---@field cache_only_misses integer
---@field waits integer
---@field rescued integer replies by `failed`
---@field inserts integer stored + replaced + refreshed + refused
---@field stored integer
---@field replaced integer
---@field refreshed integer
---@field refused integer
---@field evicted integer
---@field expired integer
---@field expunged integer
---@field moved integer entries copied forward by reclaiming
---@field jemalloc boolean
---@field huge_pages boolean
---@field reasons table<string, integer> of bypass and refusal, those that happened

---What saving or loading a snapshot came to.
---@class sardine.SnapshotResult
---@field entries integer written; or put into the cache
---@field bytes integer of the file
---@field micros integer how long it took
---@field expired integer meanwhile
---@field present integer the cache had something fresher
---@field purged integer removed since it was written
---@field refused integer no memory, or larger than the cache's segments
---@field damaged integer blocks that were passed over
---@field age integer seconds since the file was written
---@field why? string why it ended early

---@class sardine.SnapshotOptions
---@field interval? integer seconds from one save to the next, if anything has changed; 0: only when asked
---@field load? boolean load it first, if it is there
---@field save_at_end? boolean save in `snapshot_stop` and `close`

---@class sardine.SnapshotStatus
---@field keeping boolean
---@field loading boolean
---@field saving boolean
---@field loads integer that came to their end, well or not
---@field saves integer
---@field failures integer
---@field save_age integer seconds since the last good save
---@field load_error? string
---@field save_error? string
---@field loaded sardine.SnapshotResult the last one
---@field saved sardine.SnapshotResult

---@class sardine.HookStats
---@field defined boolean
---@field calls integer
---@field errors integer the built-in decision was taken instead
---@field timeouts integer the same, after too many instructions
---@field skipped integer not called, after many errors

---@class sardine.PolicyStats
---@field loaded boolean
---@field loads integer
---@field load_failures integer
---@field key sardine.HookStats
---@field store sardine.HookStats
---@field evict sardine.HookStats
---@field stale sardine.HookStats

---@alias sardine.Outcome "hit"|"stale"|"refresh"|"miss"|"wait"|"bypass"

---Make a cache.
---@param options? sardine.Options
---@return sardine.Cache? cache
---@return string? message when there is no cache
function sardine.new(options) end

---@return sardine.Clock
function sardine.clock() end

---Text to wire form, without compression.
---@param text string
---@return string? name
---@return string? message
function sardine.name_from_text(text) end

---Wire form to text with a final dot.
---@param name string
---@return string? text
---@return string? message
function sardine.name_to_text(name) end

---Look up a query and make the reply for this client.
---@param query string the packet
---@param request? sardine.Request
---@return sardine.Outcome? outcome
---@return string? reply with "hit", "stale" and "refresh"; the message when outcome is nil
---@return sardine.Token? token with "miss", "refresh" and "wait"
---@return sardine.Details details
function Cache:lookup(query, request) end

---Keep the response to the token's question.
---@param token sardine.Token
---@param response string the packet
---@param info? {failure_ttl: integer?}
---@return "stored"|"replaced"|"refreshed"|"refused"|nil outcome
---@return integer|string life in seconds, 0 when refused; the message when outcome is nil
---@return string? reason when refused
function Cache:insert(token, response, info) end

---The token for a query, without a lookup.
---@param query string
---@param request? sardine.Request
---@return sardine.Token? token
---@return string? reason why such a query is never cached
function Cache:token(query, request) end

---The upstream did not answer this query, or with a failure: is there a stale answer that may stand in?
---@param query string
---@param request? sardine.Request
---@param token? sardine.Token of the lookup: with a policy, its key hook is not asked once more
---@return "stale"|"hit"|"miss"|nil outcome
---@return string? reply
---@return nil
---@return sardine.Details details
function Cache:failed(query, request, token) end

---After "wait": until the one who asks has inserted or failed. "hit": look up again. "miss": now ask yourself.
---"wait": too long, but somebody else has taken over. Blocks the whole program; with 0 it does not wait.
---@param token sardine.Token
---@param milliseconds integer
---@return "hit"|"miss"|"wait"|nil outcome
---@return string? message
function Cache:wait(token, milliseconds) end

---Write a response as a hit would be written for this client, without the cache. "bypass": pass it on as it is.
---@param query string
---@param response string
---@param request? sardine.Request
---@return "hit"|"bypass"|nil outcome
---@return string? reply
---@return nil
---@return sardine.Details details
function Cache:render(query, response, request) end

---Remove what any of the selectors selects; `{}` is everything. Answers in flight to questions asked before are refused.
---@param selector sardine.Selector
---@param ... sardine.Selector
---@return integer? removed
---@return string? message
function Cache:expunge(selector, ...) end

---Remove what a list names: a name or a network on each line; '#' begins a comment.
---@param text string
---@return integer? removed
---@return string? message
function Cache:expunge_list(text) end

---Remove entries until at most n are left, least useful first.
---@param n integer
---@return integer? removed
---@return string? message
function Cache:expunge_to(n) end

---Remove expired entries until at most n entries are left.
---@param n? integer default 0
---@return integer? removed
---@return string? message
function Cache:purge_expired(n) end

---The selected entries, in no order: `for entry in cache:walk() do`. They are copied first, so the loop may use
---the cache and end when it likes.
---@param selector? sardine.Selector
---@param options? sardine.WalkOptions
---@return (fun(state: any): sardine.Entry?)? step
---@return any state or the message when step is nil
---@return nil
---@return any closing
function Cache:walk(selector, options) end

---@return sardine.Stats
function Cache:stats() end

---Load a policy file, in place of the one there may be. When anything is wrong with it, that one stays.
---@param path string
---@param options? {all_libraries: boolean?}
---@return true? done
---@return string? message what is wrong, with the line
function Cache:policy_load(path, options) end

---@return true? done
---@return string? message
function Cache:policy_unload() end

---Load the same file again.
---@return true? done
---@return string? message
function Cache:policy_reload() end

---Is the file another one than what was loaded?
---@return boolean
function Cache:policy_changed() end

---@return sardine.PolicyStats
function Cache:policy_stats() end

---Write what is in the cache to a file, in the place of the one that may be there.
---@param path string
---@return sardine.SnapshotResult? result
---@return string? message
function Cache:snapshot_save(path) end

---Put what is in a snapshot into the cache. What is in the cache already stays.
---@param path string
---@return sardine.SnapshotResult? result
---@return string? message
function Cache:snapshot_load(path) end

---Have a thread keep a snapshot.
---@param path string
---@param options? sardine.SnapshotOptions
---@return true? done
---@return string? message
function Cache:snapshot_keep(path, options) end

---Ask that thread to save now. Does not wait.
---@return true? done
---@return string? message
function Cache:snapshot_request() end

---End that thread. Waits for its last save.
---@return true? done
---@return string? message
function Cache:snapshot_stop() end

---@return sardine.SnapshotStatus
function Cache:snapshot_status() end

---Free the cache. Twice does no harm; everything else is an error afterwards.
function Cache:close() end

---@param seconds number from 0 to 4294967295
function Clock:advance(seconds) end

---@return number seconds
function Clock:now() end

return sardine
