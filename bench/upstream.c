/* SPDX-License-Identifier: MIT
 *
 * A responder that answers every question of the reference workload, over UDP and TCP, out of nothing but the
 * question. It counts the queries that reach it; the count is its answer to a TXT question in class CH, so
 * that a cache in front of it can be checked with dig: `dig @127.0.0.1 -p 5301 queries CH TXT +short`.
 */
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH       64
#define QUERY_MAX   1024
#define STREAMS_MAX 256

static atomic_ullong queries;
static atomic_int streams;
static uint32_t ttl = 3600;
static uint32_t ttl_mix;        /* not 0: TTLs differ by question and are divided by this */
static unsigned signed_percent; /* of the questions have a signature for those who set DO */

static void die(const char *what)
{
        perror(what);
        exit(1);
}

/* TXT CH: one string with the count, TTL 0. */
static size_t count_response(const uint8_t *query, size_t end, uint8_t *response)
{
        static const uint8_t fixed[] = {0xc0, 12, 0, 16, 0, 3, 0, 0, 0, 0, 0};
        memcpy(response, query, end);
        response[2] = 0x84 | (query[2] & 0x01);
        response[3] = 0;
        memset(response + 6, 0, 6);
        response[7] = 1;
        memcpy(response + end, fixed, sizeof fixed);
        uint8_t *at = response + end + sizeof fixed;
        int n = sprintf((char *)at + 2, "%llu", atomic_load(&queries));
        at[0] = (uint8_t)(n + 1);
        at[1] = (uint8_t)n;
        return end + sizeof fixed + 2 + (size_t)n;
}

static uint32_t ttl_of(uint64_t hash)
{
        static const uint32_t ttls[10] = {30, 30, 60, 60, 300, 300, 300, 3600, 3600, 86400};
        return ttl_mix ? (ttls[hash % 10] + ttl_mix - 1) / ttl_mix : ttl;
}

/* Put a signature (RFC 4034 s3.1, ECDSA by its size, random by its content) behind the answer records. The
 * room is there: an answer is at most a third of WORKLOAD_RESPONSE_MAX shorter than that. Returns the new
 * length, or with TC. */
static size_t sign(const uint8_t *query, size_t end, uint32_t its_ttl, uint64_t hash, bool stream,
                   uint8_t *response, size_t len)
{
        const uint8_t *signer = query + 12 + 1 + query[12], *type = query + end - 4;
        size_t signer_len = (size_t)(type - signer), rdlen = 18 + signer_len + 64;
        size_t limit = stream ? WORKLOAD_RESPONSE_MAX : (size_t)(query[end + 3] << 8 | query[end + 4]);
        if (len + 12 + rdlen > limit) {
                if (!stream) {
                        response[2] |= 0x02;
                        response[7] = 0;
                        memcpy(response + end, response + len - 11, 11);
                        return end + 11;
                }
                return len;
        }
        uint8_t opt[11], *at = response + len - sizeof opt;
        memcpy(opt, at, sizeof opt);
        const uint8_t fixed[] = {0xc0,
                                 12,
                                 0,
                                 46,
                                 0,
                                 1,
                                 (uint8_t)(its_ttl >> 24),
                                 (uint8_t)(its_ttl >> 16),
                                 (uint8_t)(its_ttl >> 8),
                                 (uint8_t)its_ttl,
                                 (uint8_t)(rdlen >> 8),
                                 (uint8_t)rdlen,
                                 type[0],
                                 type[1],
                                 13,
                                 3,
                                 (uint8_t)(its_ttl >> 24),
                                 (uint8_t)(its_ttl >> 16),
                                 (uint8_t)(its_ttl >> 8),
                                 (uint8_t)its_ttl,
                                 0x7f,
                                 0,
                                 0,
                                 0,
                                 0x60,
                                 0,
                                 0,
                                 0,
                                 0x12,
                                 0x34};
        memcpy(at, fixed, sizeof fixed);
        at += sizeof fixed;
        memcpy(at, signer, signer_len);
        at += signer_len;
        for (unsigned k = 0; k < 64; k += 8, at += 8) {
                hash = workload_mix(hash + 1);
                memcpy(at, &hash, 8);
        }
        memcpy(at, opt, sizeof opt);
        response[7]++;
        return len + 12 + rdlen;
}

static size_t respond(const uint8_t *query, size_t len, bool stream, uint8_t *response)
{
        size_t end = workload_question_end(query, len);
        if (end && !(query[2] & 0x80) && !memcmp(query + end - 4, "\0\20\0\3", 4))
                return count_response(query, end, response);
        uint64_t hash = end ? workload_mix(workload_question_hash(query, end)) : 0;
        size_t n = workload_response(query, len, ttl_of(hash), stream, response);
        if (!n)
                return 0;
        atomic_fetch_add(&queries, 1);
        bool records = response[7] && !(response[2] & 0x02),
             dnssec_ok = response[11] && response[n - 4] & 0x80;
        if (records && dnssec_ok && hash / 10 % 100 < signed_percent && end > 17)
                return sign(query, end, ttl_of(hash), hash, stream, response, n);
        return n;
}

static bool read_all(int fd, uint8_t *buf, size_t len)
{
        while (len) {
                ssize_t n = read(fd, buf, len);
                if (n <= 0)
                        return false;
                buf += n;
                len -= (size_t)n;
        }
        return true;
}

static void *serve_stream(void *arg)
{
        int fd = (int)(intptr_t)arg;
        uint8_t query[2 + QUERY_MAX], response[2 + WORKLOAD_RESPONSE_MAX];
        while (read_all(fd, query, 2)) {
                size_t len = (size_t)(query[0] << 8 | query[1]);
                if (len > QUERY_MAX || !read_all(fd, query + 2, len))
                        break;
                size_t n = respond(query + 2, len, true, response + 2);
                if (!n)
                        break;
                response[0] = (uint8_t)(n >> 8);
                response[1] = (uint8_t)n;
                if (write(fd, response, n + 2) != (ssize_t)n + 2)
                        break;
        }
        close(fd);
        atomic_fetch_sub(&streams, 1);
        return NULL;
}

static void *accept_streams(void *arg)
{
        int listener = (int)(intptr_t)arg;
        for (;;) {
                int fd = accept(listener, NULL, NULL);
                if (fd < 0) {
                        if (errno != EINTR && errno != ECONNABORTED)
                                die("accept");
                        continue;
                }
                pthread_t thread;
                if (atomic_fetch_add(&streams, 1) >= STREAMS_MAX ||
                    pthread_create(&thread, NULL, serve_stream, (void *)(intptr_t)fd)) {
                        atomic_fetch_sub(&streams, 1);
                        close(fd);
                        continue;
                }
                pthread_detach(thread);
        }
        return NULL;
}

static _Noreturn void serve_datagrams(int fd)
{
        static uint8_t in[BATCH][QUERY_MAX], out[BATCH][WORKLOAD_RESPONSE_MAX];
        static struct sockaddr_in peer[BATCH];
        static struct iovec in_vec[BATCH], out_vec[BATCH];
        static struct mmsghdr in_msg[BATCH], out_msg[BATCH];
        for (;;) {
                for (int i = 0; i < BATCH; i++) {
                        in_vec[i] = (struct iovec){in[i], sizeof in[i]};
                        in_msg[i].msg_hdr = (struct msghdr){.msg_name = &peer[i],
                                                            .msg_namelen = sizeof peer[i],
                                                            .msg_iov = &in_vec[i],
                                                            .msg_iovlen = 1};
                }
                int n = recvmmsg(fd, in_msg, BATCH, MSG_WAITFORONE, NULL), ready = 0;
                if (n < 0 && errno != EINTR)
                        die("recvmmsg");
                for (int i = 0; i < n; i++) {
                        size_t len = respond(in[i], in_msg[i].msg_len, false, out[ready]);
                        if (!len)
                                continue;
                        out_vec[ready] = (struct iovec){out[ready], len};
                        out_msg[ready].msg_hdr = (struct msghdr){.msg_name = &peer[i],
                                                                 .msg_namelen = sizeof peer[i],
                                                                 .msg_iov = &out_vec[ready],
                                                                 .msg_iovlen = 1};
                        ready++;
                }
                for (int sent = 0; sent < ready;) {
                        int k = sendmmsg(fd, out_msg + sent, (unsigned)(ready - sent), 0);
                        sent += k > 0 ? k : 1; /* a reply that cannot be sent is a lost datagram */
                }
        }
}

static struct sockaddr_in parse_address(const char *text)
{
        struct sockaddr_in address = {.sin_family = AF_INET};
        char host[INET_ADDRSTRLEN];
        unsigned port;
        if (sscanf(text, "%15[0-9.]:%u", host, &port) != 2 || port > 65535 ||
            inet_pton(AF_INET, host, &address.sin_addr) != 1) {
                fprintf(stderr, "upstream: '%s' is not IPV4-ADDRESS:PORT\n", text);
                exit(2);
        }
        address.sin_port = htons((uint16_t)port);
        return address;
}

static int bound_socket(int type, struct sockaddr_in *address)
{
        int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1, big = 8 << 20;
        socklen_t len = sizeof *address;
        if (fd < 0)
                die("socket");
        if (type == SOCK_STREAM)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        else if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big,
                            sizeof big)) /* needs root, else what we get */
                setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof big);
        if (bind(fd, (struct sockaddr *)address, sizeof *address) ||
            getsockname(fd, (struct sockaddr *)address, &len))
                die("bind");
        return fd;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                                {"ttl", required_argument, NULL, 't'},
                                                {"ttl-mix", required_argument, NULL, 'm'},
                                                {"signed", required_argument, NULL, 's'},
                                                {0}};
        struct sockaddr_in address = parse_address("127.0.0.1:5301");
        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (c == 'l') {
                        address = parse_address(optarg);
                } else if (c == 't') {
                        ttl = (uint32_t)strtoul(optarg, NULL, 10);
                } else if (c == 'm') {
                        ttl_mix = (uint32_t)strtoul(optarg, NULL, 10);
                } else if (c == 's') {
                        signed_percent = (unsigned)strtoul(optarg, NULL, 10);
                } else {
                        fprintf(stderr, "usage: upstream [--listen 127.0.0.1:5301] [--ttl 3600 | --ttl-mix "
                                        "DIVISOR] [--signed PERCENT]\n"
                                        "Port 0: any free one; it is printed. With --ttl-mix, TTLs are 30, "
                                        "60, 300, 3600 or 86400 (2:2:3:2:1),\n"
                                        "by question, over the divisor. With --signed, so many questions "
                                        "have an RRSIG for who sets DO.\n");
                        return 2;
                }
        }
        signal(SIGPIPE, SIG_IGN);
        int datagrams = bound_socket(SOCK_DGRAM, &address), listener = bound_socket(SOCK_STREAM, &address);
        pthread_t thread;
        if (listen(listener, 128))
                die("listen");
        if (pthread_create(&thread, NULL, accept_streams, (void *)(intptr_t)listener))
                die("pthread_create");
        printf("listening on %s:%u\n", inet_ntoa(address.sin_addr), ntohs(address.sin_port));
        fflush(stdout);
        serve_datagrams(datagrams);
}
