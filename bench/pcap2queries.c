/* SPDX-License-Identifier: MIT
 *
 * Reads a capture (pcap or pcapng) and prints the questions that clients asked in it over UDP, in their
 * order, as lines of NAME TYPE: for `peers-load --list`, and for dnsperf. Nothing else of the capture is
 * kept: no address, no time.
 */
#include "tool/capture.h"
#include "wire/query.h"

#include <ldns/ldns.h>
#include <sardine.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
        struct capture capture;
        struct capture_message message;
        char text[1100];
        if (argc < 2 || argc > 3) {
                fprintf(stderr, "usage: pcap2queries FILE [PORT]\nFILE may be -, PORT is 53.\n");
                return 2;
        }
        unsigned port = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 53;
        unsigned long long queries = 0;
        bool opened = capture_open(&capture, argv[1]);
        while (opened && capture_next(&capture, &message)) {
                struct wire_query query;
                if (message.to != port || wire_query_parse(message.bytes, message.len, &query))
                        continue;
                sardine_name_to_text(query.qname, query.qname_len, text, sizeof text);
                char *type = ldns_rr_type2str(query.qtype);
                printf("%s %s\n", text, type);
                free(type);
                queries++;
        }
        if (capture.error)
                fprintf(stderr, "pcap2queries: %s\n", capture.error);
        if (opened)
                fprintf(stderr, "%llu packets, %llu queries\n", (unsigned long long)capture.packets, queries);
        bool failed = capture.error;
        capture_close(&capture);
        return failed || fflush(stdout) != 0;
}
