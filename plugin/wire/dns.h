/* SPDX-License-Identifier: MIT
 * Numbers of the DNS that more than one module needs: header layout (RFC 1035 s4.1.1), types, rcodes,
 * EDNS options. */
#ifndef WIRE_DNS_H
#define WIRE_DNS_H

enum {
        DNS_HEADER = 12,
        DNS_MAX_MESSAGE = 65535,
        DNS_MIN_UDP = 512,
        DNS_OPT_FIXED = 11, /* root owner, type, class, ttl, rdlength */
};

/* Byte 2 of the header. */
enum {
        DNS_QR = 0x80,
        DNS_OPCODE_MASK = 0x78,
        DNS_AA = 0x04,
        DNS_TC = 0x02,
        DNS_RD = 0x01,
};

/* Byte 3 of the header. */
enum {
        DNS_RA = 0x80,
        DNS_AD = 0x20,
        DNS_CD = 0x10,
        DNS_RCODE_MASK = 0x0f,
};

enum dns_type {
        DNS_A = 1,
        DNS_NS = 2,
        DNS_CNAME = 5,
        DNS_SOA = 6,
        DNS_PTR = 12,
        DNS_MX = 15,
        DNS_TXT = 16,
        DNS_SIG = 24,
        DNS_AAAA = 28,
        DNS_SRV = 33,
        DNS_DNAME = 39,
        DNS_OPT = 41,
        DNS_DS = 43,
        DNS_RRSIG = 46,
        DNS_NSEC = 47,
        DNS_DNSKEY = 48,
        DNS_NSEC3 = 50,
        DNS_NSEC3PARAM = 51,
        DNS_SVCB = 64,
        DNS_HTTPS = 65,
        DNS_TKEY = 249,
        DNS_TSIG = 250,
        DNS_IXFR = 251,
        DNS_AXFR = 252,
        DNS_MAILB = 253,
        DNS_MAILA = 254,
        DNS_ANY = 255,
};

enum {
        DNS_IN = 1,
};

enum dns_rcode {
        DNS_NOERROR = 0,
        DNS_SERVFAIL = 2,
        DNS_NXDOMAIN = 3,
        DNS_REFUSED = 5,
};

enum edns_option {
        EDNS_ECS = 8,
        EDNS_COOKIE = 10,
        EDNS_PADDING = 12,
        EDNS_EDE = 15,
};

#endif
