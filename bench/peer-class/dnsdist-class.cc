// SPDX-License-Identifier: MIT
//
// dnsdist's own packet cache class behind the functions of peer.h. Compiled by `build` against dnsdist's source,
// which is not ours and not here. Does with a query what dnsdist does between receiving it and sending the reply,
// as far as the cache is concerned: the name and type out of the packet, the DO bit, and then the class.
#include "peer.h"

#include "dnsdist.hh"
#include "dnsdist-cache.hh"
#include "dnsdist-ecs.hh"

#include <memory>

// What the class asks of the rest of dnsdist, which is not here.
namespace dnsdist::configuration
{
const RuntimeConfiguration &getCurrentRuntimeConfiguration()
{
        static const RuntimeConfiguration nothing_set;
        return nothing_set;
}
}

static std::unique_ptr<DNSDistPacketCache> cache;
static std::unique_ptr<InternalQueryState> state;
static PacketBuffer packet;
static std::optional<Netmask> subnet;
static uint32_t key;
static uint16_t flags;
static bool dnssec_ok;

const char *peer_name(void)
{
        return "dnsdist " DNSDIST_CLASS_VERSION;
}

int peer_create(uint64_t max_entries)
{
        try {
                DNSDistPacketCache::CacheSettings settings;
                settings.d_maxEntries = max_entries;
                settings.d_shardCount = 20; // what newPacketCache() makes of it
                cache = std::make_unique<DNSDistPacketCache>(settings);
                state = std::make_unique<InternalQueryState>();
                state->protocol = dnsdist::Protocol::DoUDP;
                packet.reserve(4096);
                return 0;
        } catch (...) {
                return -1;
        }
}

void peer_destroy(void)
{
        cache.reset();
        state.reset();
}

uint64_t peer_entries(void)
{
        return cache->getSize();
}

size_t peer_lookup(const uint8_t *query, size_t len, const uint8_t **reply)
{
        packet.resize(len); // where the host would have received it
        memcpy(packet.data(), query, len);
        state->qname = DNSName(reinterpret_cast<const char *>(query), len, sizeof(dnsheader), false, &state->qtype,
                               &state->qclass);
        DNSQuestion question(*state, packet);
        uint16_t id;
        memcpy(&id, query, sizeof id);
        dnssec_ok = (dnsdist::getEDNSZ(question) & EDNS_HEADER_FLAG_DO) != 0;
        flags = *getFlagsFromDNSHeader(question.getHeader().get());
        subnet.reset();
        if (!cache->get(question, id, &key, subnet, dnssec_ok, true))
                return 0;
        *reply = packet.data();
        return packet.size();
}

void peer_insert(const uint8_t *response, size_t len)
{
        packet.resize(len);
        memcpy(packet.data(), response, len);
        cache->insert(key, subnet, flags, dnssec_ok, state->qname, state->qtype, state->qclass, packet, true,
                      response[3] & 0xf, std::nullopt);
}
