/* SPDX-License-Identifier: MIT
 *
 * Reads a capture (pcap or pcapng) and prints the questions that clients asked in it over UDP, in their
 * order, as lines of NAME TYPE: for `peers-load --list`, and for dnsperf. Nothing else of the capture is
 * kept: no address, no time.
 */
#include "wire/bytes.h"
#include "wire/query.h"

#include <ldns/ldns.h>
#include <pcap/pcap.h>
#include <sardine.h>

#include <stdio.h>
#include <stdlib.h>

enum {
        ETHERTYPE_V4 = 0x0800,
        ETHERTYPE_V6 = 0x86dd,
        ETHERTYPE_VLAN = 0x8100,
        ETHERTYPE_QINQ = 0x88a8,
        PROTOCOL_UDP = 17,
};

struct bytes {
        const uint8_t *at, *end;
};

static size_t left(const struct bytes *b)
{
        return (size_t)(b->end - b->at);
}

static int skip(struct bytes *b, size_t n)
{
        if (left(b) < n)
                return 0;
        b->at += n;
        return 1;
}

/* From the link's header to that of IP. */
static int skip_link(int link, struct bytes *b)
{
        unsigned type;
        switch (link) {
        case DLT_EN10MB:
                if (!skip(b, 14))
                        return 0;
                type = get_be16(b->at - 2);
                while (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) {
                        if (!skip(b, 4))
                                return 0;
                        type = get_be16(b->at - 2);
                }
                return type == ETHERTYPE_V4 || type == ETHERTYPE_V6;
        case DLT_LINUX_SLL:
                return skip(b, 16);
        case DLT_LINUX_SLL2:
                return skip(b, 20);
        case DLT_NULL:
        case DLT_LOOP:
                return skip(b, 4);
        default: /* DLT_RAW, which is not the same number everywhere */
                return 1;
        }
}

/* From there to what UDP carries to `port`. Fragments are left out. */
static int skip_ip_udp(struct bytes *b, unsigned port)
{
        if (!left(b))
                return 0;
        if (b->at[0] >> 4 == 4) {
                if (left(b) < 20 || b->at[9] != PROTOCOL_UDP || get_be16(b->at + 6) & 0x3fff ||
                    !skip(b, (b->at[0] & 15u) * 4))
                        return 0;
        } else if (b->at[0] >> 4 != 6 || left(b) < 40 || b->at[6] != PROTOCOL_UDP || !skip(b, 40)) {
                return 0;
        }
        if (left(b) < 8 || get_be16(b->at + 2) != port)
                return 0;
        size_t len = get_be16(b->at + 4);
        if (len < 8 || len > left(b))
                return 0;
        b->end = b->at + len;
        return skip(b, 8);
}

int main(int argc, char **argv)
{
        char error[PCAP_ERRBUF_SIZE], text[1100];
        if (argc < 2 || argc > 3) {
                fprintf(stderr, "usage: pcap2queries FILE [PORT]\nFILE may be -, PORT is 53.\n");
                return 2;
        }
        unsigned port = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 53;
        unsigned long long packets = 0, queries = 0;
        pcap_t *pcap = pcap_open_offline(argv[1], error);
        if (!pcap) {
                fprintf(stderr, "pcap2queries: %s\n", error);
                return 1;
        }
        int link = pcap_datalink(pcap), status;
        struct pcap_pkthdr *header;
        const uint8_t *packet;
        while ((status = pcap_next_ex(pcap, &header, &packet)) == 1) {
                struct bytes b = {packet, packet + header->caplen};
                struct wire_query query;
                packets++;
                if (!skip_link(link, &b) || !skip_ip_udp(&b, port) ||
                    wire_query_parse(b.at, left(&b), &query))
                        continue;
                sardine_name_to_text(query.qname, query.qname_len, text, sizeof text);
                char *type = ldns_rr_type2str(query.qtype);
                printf("%s %s\n", text, type);
                free(type);
                queries++;
        }
        if (status == -1)
                fprintf(stderr, "pcap2queries: %s\n", pcap_geterr(pcap));
        pcap_close(pcap);
        fprintf(stderr, "%llu packets, %llu queries\n", packets, queries);
        return status == -1 || fflush(stdout) != 0;
}
