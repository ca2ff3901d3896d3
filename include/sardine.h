/* SPDX-License-Identifier: MIT
 *
 * sardine.h - the C ABI of libsardine, a DNS packet cache packed tight.
 *
 * How a host uses it
 *
 *     struct sardine_options opt;
 *     sardine_options_init(&opt, sizeof opt);
 *     opt.max_entries = 1000000;
 *     sardine_cache *cache;
 *     int err = sardine_create(&opt, &cache);            // 0, or a negative error: sardine_strerror(err)
 *
 *     // for every query (any thread, no registration):
 *     struct sardine_query q = {.sz = sizeof q, .packet = query, .len = query_len};
 *     struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf, .token = &token};
 *     switch (sardine_lookup(cache, &q, &a)) {
 *     case SARDINE_HIT: case SARDINE_STALE: case SARDINE_REFRESH:
 *             send(buf, a.len); break;                   // complete reply for this very client
 *     case SARDINE_MISS:
 *             ask upstream and keep `token` beside the query in flight; when the response comes:
 *             sardine_insert(cache, &token, response, response_len, NULL, NULL); break;
 *     case SARDINE_BYPASS:
 *             ask upstream, do not insert; break;
 *     }
 *
 * Conventions
 *
 *   - Integers are in host byte order, TTLs and ages in seconds, sizes in bytes, names in wire form without
 *     compression unless a comment says "text".
 *   - Functions return a non-negative value on success and a negative error otherwise: a negated errno value,
 *     or one of enum sardine_error. Nothing is ever printed; a host that wants to hear passes a log callback.
 *   - Every struct that a caller passes in begins with `sz`, its size as the caller was compiled. Fields that
 *     the library does not know must be zero (-E2BIG otherwise); fields that the caller does not know take
 *     their default. So host and library can be upgraded apart. A size that no release had, a flag or a value
 *     of an enum that the library does not know: -EINVAL.
 *   - Threads: every function may be called from any thread at any time on a live cache, unless its comment
 *     says otherwise. Lookups take no lock. Only sardine_destroy() needs the caller to be alone.
 *   - fork(): a child has its own copies of all caches, and shares nothing with its parent, if no other
 *     thread was inside of a call when it was made. Of one that was, the child keeps the locks, for good,
 *     and never uses the memory again that it was reading. The thread that keeps a snapshot counts as inside
 *     of a call all the time: fork before sardine_snapshot_keep(), or call nothing in the child for that
 *     cache, not even sardine_destroy(). No descriptor of the library's survives an execve().
 *   - Ownership: the library keeps no pointer of the caller's beyond the call, except the callbacks and their
 *     contexts in sardine_options, which must outlive the cache.
 *
 * The part between the two [cdef] lines has no preprocessor directives: LuaJIT's ffi.cdef() reads it as it
 * is.
 */
#ifndef SARDINE_H
#define SARDINE_H

#include <stddef.h>
#include <stdint.h>

#define SARDINE_VERSION "0.1.0"
/* Bumped when a change would break a host that was compiled against an older header. */
#define SARDINE_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

/* A cache. Opaque; create as many as you like, they share nothing but the code. */
typedef struct sardine_cache sardine_cache;

/* Errors of our own, below any errno value. sardine_strerror() knows both kinds. */
enum sardine_error {
        SARDINE_ERR_TOKEN = -10001,  /* the token was not made by this library, or was damaged */
        SARDINE_ERR_NAME = -10002,   /* text that is not a domain name */
        SARDINE_ERR_OPTION = -10003, /* an option's value is out of its range; the log callback hears which */
        SARDINE_ERR_SNAPSHOT = -10004, /* not a snapshot that this cache can take; the result says why */
        SARDINE_ERR_FOREIGN =
            -10005, /* the file to write to is another user's, has other names, or is none */
};

enum {
        SARDINE_TAG_MAX = 128,
};

/* What a lookup came to. For each call exactly one of these is counted. */
enum sardine_outcome {
        SARDINE_MISS = 0, /* not here: ask upstream; the token was filled */
        SARDINE_HIT = 1,  /* the reply is in the buffer */
        SARDINE_STALE =
            2, /* expired, but within the stale window and the host allowed it: reply in the buffer */
        SARDINE_REFRESH =
            3,            /* as HIT, and this caller alone is asked to fetch the answer anew; token filled */
        SARDINE_WAIT = 5, /* not here, but somebody else is asking (SARDINE_COALESCE): see sardine_wait() */
        SARDINE_BYPASS = 4, /* not a question for a cache: ask upstream and do not insert; see the reason */
};

/* What an insert came to. */
enum sardine_insert_outcome {
        SARDINE_STORED = 0,    /* new */
        SARDINE_REPLACED = 1,  /* took the place of an older answer */
        SARDINE_REFRESHED = 2, /* the same answer was there: only its expiry moved, in place */
        SARDINE_REFUSED = 3,   /* not stored, see the reason; what was there is still there */
};

/* Why a lookup was bypassed (1..19) or an insert refused (20..). Stable numbers; sardine_reason_name() gives
 * the text that statistics and metrics use. */
enum sardine_reason {
        SARDINE_REASON_NONE = 0,
        SARDINE_BYPASS_HOST = 1, /* the host asked for it (SARDINE_SKIP) */
        SARDINE_BYPASS_MALFORMED =
            2, /* header, question or OPT cannot be parsed (RFC 1035 s4, RFC 6891 s6) */
        SARDINE_BYPASS_NOT_QUERY = 3,    /* QR set, or an opcode other than QUERY */
        SARDINE_BYPASS_QDCOUNT = 4,      /* not exactly one question */
        SARDINE_BYPASS_QTYPE = 5,        /* AXFR, IXFR, MAILA, MAILB, TKEY, TSIG, OPT, type 0 */
        SARDINE_BYPASS_QCLASS = 6,       /* not IN */
        SARDINE_BYPASS_RECORDS = 7,      /* records other than one OPT: TSIG, SIG(0), a prerequisite, ... */
        SARDINE_BYPASS_TRAILING = 8,     /* bytes after the last record */
        SARDINE_BYPASS_EDNS_VERSION = 9, /* EDNS version other than 0 */
        SARDINE_BYPASS_TOO_LONG = 10,    /* tag and splitting options exceed what a key holds */
        SARDINE_BYPASS_POLICY = 11,      /* the policy's key hook said so */
        SARDINE_REFUSED_MALFORMED = 20,  /* counts, names, rdata or OPT do not parse (RFC 1035, RFC 3597) */
        SARDINE_REFUSED_MISMATCH = 21,   /* not a response to the token's question (RFC 5452 s9.1) */
        SARDINE_REFUSED_TRUNCATED = 22,  /* TC=1 with records, or truncated_ttl is 0 (RFC 1035 s7.4) */
        SARDINE_REFUSED_RCODE = 23,    /* rcode that is not cached: BADVERS, BADCOOKIE, FORMERR, NOTIMP ... */
        SARDINE_REFUSED_TTL_ZERO = 24, /* a TTL of 0: pass it on once (RFC 1035 s3.2.1) */
        SARDINE_REFUSED_TTL_SHORT = 25,   /* life below options.min_ttl */
        SARDINE_REFUSED_NO_SOA = 26,      /* NODATA or NXDOMAIN without SOA (RFC 2308 s5) */
        SARDINE_REFUSED_FAILURE_OFF = 27, /* SERVFAIL or REFUSED while failure_ttl is 0 */
        SARDINE_REFUSED_TOO_LARGE = 28,   /* beyond options.max_entry_size, or more than a segment holds */
        SARDINE_REFUSED_POORER = 29, /* unexpired data fetched with DO=1 is there, this was fetched without */
        SARDINE_REFUSED_FAILURE = 30,   /* a failure must not take the place of usable data */
        SARDINE_REFUSED_PURGED = 31,    /* a purge happened after the question was asked upstream */
        SARDINE_REFUSED_ECS = 32,       /* ECS in the response contradicts the query (RFC 7871 s7.3) */
        SARDINE_REFUSED_COMPLEX = 33,   /* more compression work than any honest message needs */
        SARDINE_REFUSED_NO_MEMORY = 34, /* the system gave no memory */
        SARDINE_REFUSED_POLICY = 35,    /* the policy's never_store or store hook said so */
        SARDINE_REASON_COUNT = 36,
};

enum sardine_transport {
        SARDINE_UDP = 0,
        SARDINE_TCP = 1,
        SARDINE_DOT = 2,
        SARDINE_DOH = 3,
        SARDINE_DOQ = 4,
};

enum sardine_log_level {
        SARDINE_LOG_ERROR = 0,
        SARDINE_LOG_WARNING = 1,
        SARDINE_LOG_INFO = 2,
};

/* Flags of a query. */
enum sardine_query_flag {
        SARDINE_SKIP = 1,        /* the host does not want the cache to be used: counted as bypass */
        SARDINE_CACHE_ONLY = 2,  /* nobody will ask upstream: no token, counted apart from misses */
        SARDINE_ALLOW_STALE = 4, /* an expired entry within options.stale_window may answer (RFC 8767) */
        SARDINE_COALESCE = 16,   /* on a miss, only the first caller is told to ask upstream (B80) */
        SARDINE_PEEK = 8,        /* look without leaving a trace: no popularity, no hit or miss counted */
};

/* May be called from any thread, also from inside any sardine function; must not call back into the cache.
 * `text` is valid during the call only. */
typedef void (*sardine_log_fn)(void *ctx, int level, const char *text);

/* A clock that never goes back, in milliseconds from any origin. */
typedef uint64_t (*sardine_clock_fn)(void *ctx);

/* Options of a cache. Fill with sardine_options_init(), then change what you need. */
struct sardine_options {
        size_t sz;
        uint64_t max_entries;      /* 0: no limit but max_bytes. Default 0 */
        uint64_t max_bytes;        /* everything included: entries, index, slack. 0: derived from max_entries
                                      (1 KiB an entry, at least 1 MiB, at most the machine's memory), or 1 GiB
                                      without it. At most 1 TiB. Default 0 */
        uint32_t max_ttl;          /* upper bound of an entry's life; TTLs shown do not change. 86400 */
        uint32_t min_ttl;          /* answers that would live shorter are not kept. 0 */
        uint32_t max_negative_ttl; /* upper bound for NXDOMAIN and NODATA (RFC 2308 s5). 3600 */
        uint32_t failure_ttl; /* life of SERVFAIL and REFUSED, at most 300 (RFC 9520 s3.2); 0: not kept. 60 */
        uint32_t truncated_ttl; /* life of a TC=1 response without records, for UDP clients; 0: not kept. 0 */
        uint32_t stale_ttl;     /* TTL shown in stale replies, at most the original TTL (RFC 8767 s5). 30 */
        uint32_t stale_window;  /* for how long after expiry an entry may still answer; 0: never. 0 */
        uint32_t max_networks;  /* answers for different client networks (RFC 7871) kept of one question and
                                   prefix length; the soonest to expire go first. 0: none are kept. 4096 */
        uint32_t max_entry_size;   /* largest response kept, 512..65535. 65535 */
        uint16_t udp_payload_size; /* our limit for UDP replies, and the size in our OPT; 512..65535. 1232 */
        uint8_t dont_age;          /* 1: show the original TTL for all of an entry's life. 0 */
        uint8_t rotate;            /* 1: let each reply start its RRsets at another record (B81). 0 */
        uint8_t stale_positive;    /* 1: of expired entries only positive answers may still answer. 0 */
        uint8_t cap_by_signature;  /* 1: no entry outlives the first of its signatures to expire, by the wall
                                      clock (RFC 4035 s5.3.3). 0 */
        uint32_t stale_backoff;  /* after sardine_failed(), for how long stale answers go out at once, without
                                    asking upstream (RFC 8767 s5). 30 */
        uint8_t refresh_percent; /* with less than this share of its life left, a popular entry is reported
                                    once as SARDINE_REFRESH; 0: never, at most 50. 0 */
        uint32_t segment_size;   /* storage unit, a power of two, 4096..262144; 0: chosen. For tests. 0 */
        /* EDNS options that shape the answer upstream: their bytes become part of the key. At most 16;
         * read during sardine_create() only. None */
        uint32_t n_split_options;
        const uint16_t *split_options;
        sardine_log_fn log; /* NULL: silence */
        void *log_ctx;
        sardine_clock_fn clock; /* NULL: CLOCK_MONOTONIC */
        void *clock_ctx;
        /* Shares, in percent of the bytes in use, 1..100. When room is needed, what is beyond its share goes
         * first, but for dead and expired data, so that a flood of it pushes out nothing else; as long as
         * there is room, or nothing else, a share limits nothing. Caches of less than half a megabyte have
         * none. */
        uint8_t one_hit_share;  /* of answers that nobody asked for again. 10 */
        uint8_t negative_share; /* of answers without data: NXDOMAIN, NODATA, failures (B39). 25 */
        uint8_t stale_share;    /* of expired answers that may still stand in (stale_window). 25 */
        uint8_t kept_share;     /* of answers that are to be kept whatever else goes. 50 */
};

/* The miss token: what the question was, and when it was asked. Plain data: copy `len` + 2 bytes of it to
 * wherever the query in flight is kept, throw it away when no answer comes. Good for the cache that made it.
 */
struct sardine_token {
        uint16_t len; /* bytes used; 0: no token */
        uint8_t bytes[638];
};

/* What the host knows of a query under a name: text, or NULL. Valid until the lookup returns. For policies.
 */
typedef const char *(*sardine_host_tag_fn)(void *ctx, const char *name);

/* A query, as it came from the client. */
struct sardine_query {
        size_t sz;
        const uint8_t *packet; /* may be hostile */
        size_t len;
        const uint8_t *client; /* client address, network order, or NULL: then only an ECS option can select a
                                  subnet-specific answer */
        uint32_t client_len;   /* 4, 16, or 0 */
        uint32_t transport;    /* enum sardine_transport */
        uint32_t flags;        /* enum sardine_query_flag */
        uint32_t tag_len;      /* at most SARDINE_TAG_MAX */
        const void *tag;       /* opaque part of the key: tenant, view, policy */
        uint32_t max_ttl;      /* the reply shows no longer TTL; what is stored stays as it is. 0: no limit */
        uint32_t
            failure; /* sardine_failed(): the RCODE that came; 0: nothing did. For the policy's stale hook */
        /* The rest is for policies, and may be left zero: where the query came to, the host's pool for it,
         * and what else the host knows. */
        const uint8_t *local;
        uint32_t local_len; /* 4, 16, or 0 */
        uint32_t local_port;
        const char *pool;
        sardine_host_tag_fn host_tag;
        void *host_ctx;
};

/* The reply to a lookup. The caller owns everything. */
struct sardine_answer {
        size_t sz;
        uint8_t *buf; /* in: where the reply goes; must not overlap the query */
        size_t cap;   /* in: room there. A reply never exceeds what the client can take, nor 65535 */
        size_t len;   /* out: length of the reply; with -EMSGSIZE the room that is needed */
        struct sardine_token *token; /* in: may be NULL when the host will not insert */
        uint32_t reason;             /* out: enum sardine_reason */
        uint32_t rcode;              /* out: 12-bit RCODE of the reply */
        uint32_t ttl;                /* out: remaining life; 0 when stale */
        uint32_t age;                /* out: how long expired when stale, else 0 */
        uint32_t stale_available;    /* out, on a miss: 1 when SARDINE_ALLOW_STALE would have hit */
        uint32_t dnssec_ok;          /* out: 1 when the answer was fetched with DO=1; after SARDINE_REFRESH
                                        only one fetched with DO=1 again can take its place */
        /* out, if the upstream is to be asked (SARDINE_MISS, _WAIT, _REFRESH): by the policy, how much of the
         * client's address it may be told, as prefix lengths by family: 0: nothing; 255: the policy does not
         * say */
        uint32_t ecs_ipv4, ecs_ipv6;
        /* out, as before: 1: the policy wants the upstream to be told of another network than the query has
         * in its ECS option: send it there with this one instead; with family 0, without an option. Addresses
         * are cut to their prefix. Set for IPv4 and IPv6 as in RFC 7871: families 1 and 2 */
        uint32_t ecs_set, ecs_family, ecs_prefix;
        uint8_t ecs_addr[16];
};

/* What the host knows about a response. NULL for none of it. */
struct sardine_insert_info {
        size_t sz;
        uint32_t failure_ttl_set; /* 1: failure_ttl below counts, also when 0 */
        uint32_t failure_ttl;     /* instead of options.failure_ttl, for this response */
};

struct sardine_insert_result {
        size_t sz;
        uint32_t reason; /* enum sardine_reason */
        uint32_t life;   /* seconds that the entry will live; 0 when refused */
};

/* Which entries: all conditions that are set must hold. Zeroed (but for sz): every entry. */
struct sardine_selector {
        size_t sz;
        const uint8_t *name; /* wire form, any case; NULL: any name */
        uint32_t name_len;
        uint32_t below;   /* 1: also every name below `name` (never "badexample" for "example") */
        uint32_t qtype;   /* 0 or 255 (ANY): any type */
        uint32_t use_tag; /* 1: only entries with exactly this tag (empty: those without) */
        uint32_t tag_len;
        const void *tag;
        uint32_t use_rcode; /* 1: only entries with this rcode */
        uint32_t rcode;
        uint32_t group_len; /* above 0: only entries that a policy put into this group */
        const void *group;
};

/* Why a lookup would come to what it comes to. Numbers are stable. */
enum sardine_why {
        SARDINE_WHY_HIT = 0,       /* a fresh answer is here that serves this client */
        SARDINE_WHY_BYPASS = 1,    /* not a question for a cache: see the reason */
        SARDINE_WHY_ABSENT = 2,    /* no answer to this question is kept, for anybody */
        SARDINE_WHY_EXPIRED = 3,   /* the answer has expired; stale_available: it may still stand in */
        SARDINE_WHY_DNSSEC = 4,    /* the answer was fetched without DO, and this client sets DO */
        SARDINE_WHY_TRUNCATED = 5, /* only a truncated answer is here, and this client is on a stream */
        SARDINE_WHY_NETWORK = 6,   /* answers for client networks are here, none for this client's */
        SARDINE_WHY_FLAGS = 7,     /* only for queries with other RD or CD bits: rd and cd say which */
        SARDINE_WHY_TAG = 8,       /* only under another tag, or with other splitting options */
};

/* Was an answer that is absent removed on purpose? */
enum sardine_purged {
        SARDINE_PURGED_NO = 0,      /* not by any of the last 16 selectors */
        SARDINE_PURGED_YES = 1,     /* if it was here */
        SARDINE_PURGED_PERHAPS = 2, /* by a list, an rcode or a group: it depends on what it was */
};

/* What sardine_explain() found. From `rcode` on: about the answer that is here, zero when there is none. */
struct sardine_explanation {
        size_t sz;
        uint32_t why;             /* enum sardine_why */
        uint32_t reason;          /* enum sardine_reason, of a bypass */
        uint32_t purged;          /* enum sardine_purged, of what is absent */
        uint32_t purged_ago;      /* and for how many seconds */
        uint32_t reply_len;       /* of the reply that the client would get; 0: none */
        uint32_t truncated;       /* 1: that reply would have TC set */
        uint32_t stale_available; /* 1: it missed, but SARDINE_ALLOW_STALE would have hit */
        uint32_t rcode;
        uint32_t ttl, expired;      /* as in struct sardine_entry_view */
        uint32_t life, bytes, hits; /* too, of the answer for every network */
        uint32_t rd, cd, dnssec_ok; /* of the query that fetched it */
};

/* An entry as the walk shows it; pointers are valid during the callback only. */
struct sardine_entry_view {
        size_t sz;
        const uint8_t *qname; /* folded to lower case */
        uint32_t qname_len;
        uint32_t qtype, qclass, rcode;
        uint32_t ttl;               /* life left; 0: expired */
        uint32_t expired;           /* seconds since expiry */
        uint32_t life;              /* life at insert, rounded down to within 1/16 */
        uint32_t bytes;             /* in the store, without its index slot */
        uint32_t hits;              /* popularity, 0..7: not a count */
        uint32_t rd, cd, dnssec_ok; /* of the query that fetched it */
        uint32_t tag_len;
        const uint8_t *tag;
        uint32_t ecs_family; /* 0: for every client; 1: IPv4; 2: IPv6 */
        uint32_t ecs_prefix;
        uint8_t ecs_addr[16];
        const void *entry;       /* for sardine_entry_message() */
        uint32_t eviction_class; /* by the policy, 0..7 */
        uint32_t group_len;      /* by the policy's store hook */
        const uint8_t *group;
};

/* Return 0 to go on, anything else to stop. Must not call the cache, but for sardine_entry_message(). */
typedef int (*sardine_walk_fn)(void *ctx, const struct sardine_entry_view *entry);

/* Counters since creation, but for the gauges. lookups == hits + stale + refresh + misses + bypass +
 * cache_only_misses + waits; inserts == stored + replaced + refreshed + refused. */
struct sardine_stats {
        size_t sz;
        uint64_t entries, max_entries; /* gauges */
        uint64_t bytes, max_bytes;     /* gauges: all memory, as the budget counts it */
        uint64_t entry_bytes;          /* gauge: bytes of live entries alone */
        uint64_t index_bytes;          /* gauge */
        uint64_t dead_bytes;           /* gauge: replaced or removed, not reclaimed yet */
        uint64_t lookups, hits, stale, refresh, misses, bypass, cache_only_misses;
        uint64_t waits;   /* lookups that were told to wait */
        uint64_t rescued; /* replies written by sardine_failed(); no lookups */
        uint64_t inserts, stored, replaced, refreshed, refused;
        uint64_t evicted, expired, expunged; /* entries that left, by cause */
        uint64_t moved;                      /* entries copied forward by reclaiming */
        uint64_t reasons[64];                /* by enum sardine_reason */
        uint32_t jemalloc;                   /* 1: segments come from a jemalloc arena; 0: from mmap */
        uint32_t huge_pages;                 /* 1: huge pages were asked for */
};

/* What saving or loading a snapshot came to. */
struct sardine_snapshot_result {
        size_t sz;
        uint64_t entries; /* written; or put into the cache. Each client network's answer counts on loading */
        uint64_t bytes;   /* of the file */
        uint64_t micros;  /* how long it took */
        /* Of a load: what did not go in, and why. */
        uint64_t expired; /* meanwhile */
        uint64_t present; /* the cache had something fresher */
        uint64_t purged;  /* removed since it was written */
        uint64_t refused; /* no memory, or larger than the cache's segments */
        uint64_t damaged; /* blocks of the file that were passed over, entirely or from some entry on */
        uint32_t age;     /* seconds that have passed since the file was written */
        const char *why;  /* static text: why it was refused, or ended early; or NULL */
};

/* How a thread of the library is to keep a snapshot of a cache. */
struct sardine_snapshot_options {
        size_t sz;
        const char *path; /* copied. The folder must be writable: the file is replaced by a new one */
        uint32_t
            interval;  /* seconds from one save to the next, if anything has changed; 0: only when asked */
        uint32_t load; /* 1: load it first, if it is there */
        uint32_t save_at_end; /* 1: save in sardine_snapshot_stop() and sardine_destroy() */
};

struct sardine_snapshot_status {
        size_t sz;
        uint32_t keeping; /* 1: between sardine_snapshot_keep() and sardine_snapshot_stop() */
        uint32_t loading, saving;
        uint32_t loads, saves, failures;              /* how many came to their end, well and otherwise */
        int32_t load_error, save_error;               /* of the last ones; 0: fine, or there was none */
        struct sardine_snapshot_result loaded, saved; /* the last ones; `sz` of these is set */
        uint64_t save_age;                            /* seconds since the last good save */
};

/* A policy's hooks. */
enum sardine_hook {
        SARDINE_HOOK_KEY = 0,
        SARDINE_HOOK_STORE = 1,
        SARDINE_HOOK_EVICT = 2,
        SARDINE_HOOK_STALE = 3,
        SARDINE_HOOK_COUNT = 4,
};

enum sardine_policy_flag {
        SARDINE_POLICY_ALL_LIBRARIES =
            1, /* the file may use all of Lua's libraries: files, processes, debugging.
                  The limits of hooks then bind only those who want to keep them */
};

/* What policies have done since the cache was created, by enum sardine_hook. */
struct sardine_policy_stats {
        size_t sz;
        uint32_t loaded; /* 1: there is a policy */
        uint32_t hooks;  /* a bit for each hook that it defines */
        uint64_t loads;  /* that went well, the first one counted */
        uint64_t load_failures;
        uint64_t calls[4];
        uint64_t errors[4];   /* the built-in decision was taken instead */
        uint64_t timeouts[4]; /* the same, after too many instructions, or their time */
        uint64_t skipped[4];  /* not called for the rest of a second, after 10 errors in it */
};

/* The library that is really loaded. Compare with SARDINE_ABI_VERSION. Never fails. */
uint32_t sardine_abi_version(void);
const char *sardine_version(void);

/* Text for a negative error of this library: static, never NULL. */
const char *sardine_strerror(int error);
/* "ttl_zero", "malformed", ...: static, never NULL; fit for a metric's label. */
const char *sardine_reason_name(unsigned reason);

/* Defaults. `sz` is sizeof the caller's struct; writes no byte beyond it. */
void sardine_options_init(struct sardine_options *options, size_t sz);

/* Create a cache. On success 0 and *cache is set; else -EINVAL (NULL), -E2BIG (unknown fields set),
 * SARDINE_ERR_OPTION (a value out of range), -ENOMEM. */
int sardine_create(const struct sardine_options *options, sardine_cache **cache);

/* Free a cache. The caller makes sure that no other thread is inside a call on it. NULL is fine. */
void sardine_destroy(sardine_cache *cache);

/* Look up a query and write the whole reply for this client.
 * Returns enum sardine_outcome, or -EINVAL / -E2BIG, or -EMSGSIZE when the reply does not fit in answer->cap
 * (answer->len says what is needed; counted as a hit). Takes no lock, allocates nothing, but for
 * a miss with SARDINE_COALESCE.
 * RFC 1035 s4, 4035 s3.2, 6840 s5.7, 6891 s6, 7871 s7.3, 8767. */
int sardine_lookup(sardine_cache *cache, const struct sardine_query *query, struct sardine_answer *answer);

/* As sardine_lookup() for `n` queries at once, for a host that reads many packets with one system call: their
 * memory is fetched side by side, which is several times faster when the cache is larger than the
 * processor's. All elements of an array are of the size that the first one's `sz` says, and every one has its
 * `sz` set. outcomes[i] is what sardine_lookup() would have returned. Returns 0, or -EINVAL with nothing
 * done. */
int sardine_lookup_batch(sardine_cache *cache, size_t n, const struct sardine_query *queries,
                         struct sardine_answer *answers, int *outcomes);

/* Make the token for a query without looking it up (for warm-up, or a host that looks up elsewhere).
 * Returns 0, a positive enum sardine_reason when such a query is never cached, or -EINVAL / -E2BIG. */
int sardine_token_init(sardine_cache *cache, const struct sardine_query *query, struct sardine_token *token);

/* Keep a response to the token's question. Returns enum sardine_insert_outcome, or -EINVAL / -E2BIG /
 * SARDINE_ERR_TOKEN. `info` and `result` may be NULL. Bad responses are refused and counted. */
int sardine_insert(sardine_cache *cache, const struct sardine_token *token, const uint8_t *response,
                   size_t len, const struct sardine_insert_info *info, struct sardine_insert_result *result);

/* The upstream did not answer this query in time, or answered with a failure. If an expired entry is there
 * that may stand in (options.stale_window, RFC 8767 s5), the reply is written and SARDINE_STALE returned, and
 * for options.stale_backoff seconds lookups of this question give it at once. SARDINE_HIT if somebody else
 * has brought a fresh answer meanwhile. Else SARDINE_MISS. Errors as sardine_lookup(). Callers that wait for
 * this question are woken. With a policy, let answer->token be the lookup's: else its key hook is asked once
 * more. A token of no length is no token; it is not changed. With SARDINE_PEEK it only says what could be
 * had: nothing is counted, later lookups are as before, nobody is woken. */
int sardine_failed(sardine_cache *cache, const struct sardine_query *query, struct sardine_answer *answer);

/* Wait, after SARDINE_WAIT, until the caller that asks upstream has inserted or failed, `timeout_ms` at most.
 * SARDINE_HIT: look up again. SARDINE_MISS: it took too long, the caller is now the one to ask upstream (one
 * of all that wait). SARDINE_WAIT: too long for this caller, but somebody else has taken over. Blocks. */
int sardine_wait(sardine_cache *cache, const struct sardine_token *token, uint32_t timeout_ms);

/* Write an upstream's response the way a hit would be written for this client (its DO, size, EDNS, case),
 * without the cache: for a host that fetches with DO on behalf of a client that did not set it. SARDINE_HIT,
 * or SARDINE_BYPASS when query or response is not fit for that: pass the response on as it is. Errors as
 * sardine_lookup(). */
int sardine_render(sardine_cache *cache, const struct sardine_query *query, const uint8_t *response,
                   size_t len, struct sardine_answer *answer);

/* Say what a lookup of this query would come to, and why. Leaves no trace: no counter, no popularity. Returns
 * the outcome as sardine_lookup() would, or its errors, or -ENOMEM. For people and tests, not for every
 * query: when nothing is found it walks the whole cache. */
int sardine_explain(sardine_cache *cache, const struct sardine_query *query,
                    struct sardine_explanation *explanation);

/* Remove what the selector selects (NULL: everything). Returns how many entries were removed, or -ENOMEM with
 * nothing done. No lookup finds any of it from the first microseconds of the call on; the call itself looks
 * at every entry of the cache (a second for some millions). Answers to questions that were asked before the
 * call and arrive after it are refused (SARDINE_REFUSED_PURGED); to later ones, they are kept. */
int64_t sardine_expunge(sardine_cache *cache, const struct sardine_selector *selector);

/* Remove what any of the `n` selectors selects, as if by one: it takes hardly longer than sardine_expunge().
 * All elements of the array are of the size that the first one's `sz` says, and every one has its `sz` set.
 * While it runs, a hit costs a little more. */
int64_t sardine_expunge_many(sardine_cache *cache, size_t n, const struct sardine_selector *selectors);

/* Remove entries until at most `n` are left, least useful first. Returns how many were removed. */
int64_t sardine_expunge_to(sardine_cache *cache, uint64_t n);

/* Remove expired entries (those beyond the stale window) until at most `n` entries are left. */
int64_t sardine_purge_expired(sardine_cache *cache, uint64_t n);

/* Call `fn` for every selected entry (NULL: all), in no order. Readers and writers go on meanwhile: an entry
 * that is there during the whole walk is seen at least once. Returns the number of calls. */
int64_t sardine_walk(sardine_cache *cache, const struct sardine_selector *selector, sardine_walk_fn fn,
                     void *ctx);

/* In the callback of a walk: write the entry as the response that a client with EDNS and DO would get over a
 * stream, with id 0 and the question in lower case. Returns its length, -EMSGSIZE, or -EINVAL. */
int sardine_entry_message(sardine_cache *cache, const struct sardine_entry_view *entry, uint8_t *buf,
                          size_t cap);

/* Write what is in the cache to a file, in the place of the one at `path` (which stays as it is until the new
 * one is whole and on disk, and when anything goes wrong). Lookups and inserts go on meanwhile, and never
 * wait for the disk. What is purged during the call is purged in the file. `result` may be NULL. Returns 0;
 * -EBUSY when another save to the same path is under way; -ECANCELED when sardine_snapshot_stop() broke it
 * off; or a negated errno value: -ENOSPC, -EACCES ... The file can be read by its owner only: it says who
 * asked for what. */
int sardine_snapshot_save(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

/* Put what is in a snapshot into the cache, which may be in use; what is in it already stays, for it is
 * fresher, and nothing is evicted to make room. Answers have aged by the time that has passed; expired ones
 * come back only within options.stale_window. The file may be damaged or hostile: each entry is checked like
 * a message from the network, damaged blocks are passed over (result->damaged), and a file that was cut off,
 * is of another version of the library, or from the future (the clock was set back) is refused:
 * SARDINE_ERR_SNAPSHOT, with the reason in result->why. Else 0, -ECANCELED, or a negated errno value. */
int sardine_snapshot_load(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

/* Have a thread of the library keep a snapshot: load it now, in the background, save it again and again. What
 * is purged after a save is also noted beside it, in PATH.purges, so that it does not come back when the
 * process dies before the next save. How it goes is told to the log callback. Returns 0; -EALREADY when one
 * is kept already; -EINVAL; -EAGAIN or -ENOMEM without a thread. Nothing is written before the first purge or
 * save: a folder that cannot be written to is told to the log callback. */
int sardine_snapshot_keep(sardine_cache *cache, const struct sardine_snapshot_options *options);

/* Ask that thread to save now. Does not wait. -ENOENT: there is none. */
int sardine_snapshot_request(sardine_cache *cache);

/* End that thread: loading and saving are broken off, but for a last save if that was wanted and anything has
 * changed; with a load broken off there is none, for it would lack what was not loaded. Returns what that
 * save came to, 0, or -EALREADY when another thread is doing it. Purges after it are not noted any more. */
int sardine_snapshot_stop(sardine_cache *cache);

/* How it goes. Returns 0, -EINVAL or -E2BIG. */
int sardine_snapshot_status_get(sardine_cache *cache, struct sardine_snapshot_status *status);

/* Remove what a list names, in one pass. `text` has a name or a network on each line; '#' begins a comment. A
 * name removes entries of that name and below it, and those with a CNAME or DNAME in the answer that leads
 * there; a network ("203.0.113.0/24", or an address) those with an address of it in the answer. Returns how
 * many were removed; -EINVAL: a line is neither, and nothing was done; -ENOMEM. */
int64_t sardine_expunge_list(sardine_cache *cache, const char *text, size_t len);

/* Load a policy file (lua/POLICY.md), in place of the one there may be, while lookups go on. The file is read
 * and compiled first; when anything is wrong with it the old policy stays, the result is -EINVAL, and `why`
 * (may be NULL) says what, with the line. `flags`: enum sardine_policy_flag. -ENOENT: the engine is not
 * installed: it is the file sardine/policy-lua54.so beside this library, or what the environment variable
 * SARDINE_POLICY_ENGINE names. -ENOMEM. `path` is kept for sardine_policy_reload(); NULL: no policy from now
 * on. Returns when no call uses the old one any more; not to be called from inside a callback.
 *
 * Each thread that is in a hook has a Lua of its own; the file runs once in each. It has the basic functions,
 * string, table, math and utf8, without load, print, finalizers and the like. A call of a hook may take
 * 100000 instructions, 100 ns of CPU time for each of them (work inside of Lua's functions counts as well),
 * and a thread's Lua 16 MiB beyond what the file takes; `limits` in the file sets others. What a single call
 * of a library function may do is bounded too: a string of 1 MiB, a pattern of 10 million steps at worst,
 * 10000 items sorted. A view that is kept gives an error in any later call. A hook that fails, by an error, a
 * limit, or an answer of a wrong kind, counts as if it had said nothing; that is counted, told to the log
 * callback once a minute for each hook at most, and after 10 failures in a second the hook is left out for
 * the rest of it. The file itself may take 200 million instructions and 1 GiB, and be of 64 MiB. */
int sardine_policy_load(sardine_cache *cache, const char *path, uint32_t flags, char *why, size_t why_size);

/* Load the same file again, with the same flags. -ENOENT without one. */
int sardine_policy_reload(sardine_cache *cache, char *why, size_t why_size);

/* 1: the file is another one than what was loaded (by its time, size, and inode), or than what failed to load
 * last; 0: it is not, or there is no policy. Lists that the file names are not looked at. */
int sardine_policy_changed(sardine_cache *cache);

/* Write the counters. `stats->sz` must be set. Returns 0 or -EINVAL. */
int sardine_policy_stats_get(sardine_cache *cache, struct sardine_policy_stats *stats);

/* The options that are in effect, limits that were derived included. `options->sz` must be set.
 * `split_options` is valid as long as the cache. Returns 0 or -EINVAL. */
int sardine_options_get(sardine_cache *cache, struct sardine_options *options);

/* Write the counters. `stats->sz` must be set. Returns 0 or -EINVAL. */
int sardine_stats_get(sardine_cache *cache, struct sardine_stats *stats);

/* "www.example.com" (text, RFC 1035 s5.1 escapes, with or without the final dot) to wire form.
 * Returns the length, or SARDINE_ERR_NAME. */
int sardine_name_from_text(const char *text, uint8_t name[255]);
/* Wire form to text with a final dot; `size` of at least 1021 always suffices. Returns the length, or
 * SARDINE_ERR_NAME, or -EMSGSIZE. */
int sardine_name_to_text(const uint8_t *name, size_t len, char *text, size_t size);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
