/* SPDX-License-Identifier: MIT */
#include "sardine.h"

#include <string.h>

const char *sardine_strerror(int error)
{
        switch (error) {
        case SARDINE_ERR_TOKEN:
                return "not a token of this library";
        case SARDINE_ERR_NAME:
                return "not a domain name";
        case SARDINE_ERR_OPTION:
                return "option out of range";
        case SARDINE_ERR_SNAPSHOT:
                return "not a snapshot that this cache can take";
        case SARDINE_ERR_FOREIGN:
                return "the file there is another user's, has other names, or is not a regular one";
        default:
                break;
        }
        /* strerrordesc_np is static text, unlike strerror's, which another thread may overwrite. */
        const char *text = error < 0 && error > SARDINE_ERR_TOKEN ? strerrordesc_np(-error) : NULL;
        return text ? text : "unknown error";
}

static const char *const reason_names[SARDINE_REASON_COUNT] = {
    [SARDINE_REASON_NONE] = "none",
    [SARDINE_BYPASS_HOST] = "host",
    [SARDINE_BYPASS_MALFORMED] = "query_malformed",
    [SARDINE_BYPASS_NOT_QUERY] = "not_query",
    [SARDINE_BYPASS_QDCOUNT] = "qdcount",
    [SARDINE_BYPASS_QTYPE] = "qtype",
    [SARDINE_BYPASS_QCLASS] = "qclass",
    [SARDINE_BYPASS_RECORDS] = "records",
    [SARDINE_BYPASS_TRAILING] = "trailing",
    [SARDINE_BYPASS_EDNS_VERSION] = "edns_version",
    [SARDINE_BYPASS_TOO_LONG] = "key_too_long",
    [SARDINE_BYPASS_POLICY] = "policy",
    [SARDINE_REFUSED_MALFORMED] = "response_malformed",
    [SARDINE_REFUSED_MISMATCH] = "mismatch",
    [SARDINE_REFUSED_TRUNCATED] = "truncated",
    [SARDINE_REFUSED_RCODE] = "rcode",
    [SARDINE_REFUSED_TTL_ZERO] = "ttl_zero",
    [SARDINE_REFUSED_TTL_SHORT] = "ttl_short",
    [SARDINE_REFUSED_NO_SOA] = "no_soa",
    [SARDINE_REFUSED_FAILURE_OFF] = "failure_off",
    [SARDINE_REFUSED_TOO_LARGE] = "too_large",
    [SARDINE_REFUSED_POORER] = "poorer",
    [SARDINE_REFUSED_FAILURE] = "failure",
    [SARDINE_REFUSED_PURGED] = "purged",
    [SARDINE_REFUSED_ECS] = "ecs",
    [SARDINE_REFUSED_COMPLEX] = "complex",
    [SARDINE_REFUSED_NO_MEMORY] = "no_memory",
    [SARDINE_REFUSED_POLICY] = "policy",
};

const char *sardine_reason_name(unsigned reason)
{
        const char *name = reason < SARDINE_REASON_COUNT ? reason_names[reason] : NULL;
        return name ? name : "unknown";
}

uint32_t sardine_abi_version(void)
{
        return SARDINE_ABI_VERSION;
}

const char *sardine_version(void)
{
        return SARDINE_VERSION;
}
