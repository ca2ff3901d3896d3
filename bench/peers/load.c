/* SPDX-License-Identifier: MIT
 *
 * Clients: sends the questions of the reference workload (or of a list) to a server over UDP and TCP and
 * counts what comes back. Which question comes when, and from what kind of client, are functions of the seed.
 * Prints one line of JSON.
 */
#include "workload.h"

#include <ldns/ldns.h>
#include <sardine.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
        SOCKETS = 8,  /* for UDP: so many addresses and ports */
        STREAMS = 16, /* for TCP: so many connections, one query at a time on each */
        BATCH = 32,
        PACKET_MAX = 300, /* header, question, OPT with a cookie */
        REPLY_MAX = 4096,
        TIMEOUT_US = 2000000,
        SLOWEST_US = 65536, /* of the histogram */
        WAITING = 4096,     /* queries for TCP that wait for a connection */
};

/* A kind of client. */
struct kind {
        unsigned percent;
        unsigned size; /* that its OPT offers; 0: no OPT */
        bool dnssec_ok, cookie, ad, stream;
};

static const struct kind plain[] = {{.percent = 100, .size = WORKLOAD_UDP_SIZE}};
static const struct kind mixed[] = {
    {.percent = 22, .size = 1232},
    {.percent = 18, .size = 1232, .dnssec_ok = true, .cookie = true},
    {.percent = 18},
    {.percent = 12, .size = 4096, .dnssec_ok = true},
    {.percent = 12, .size = 512, .cookie = true, .ad = true},
    {.percent = 8, .size = 1410, .ad = true},
    {.percent = 5, .size = 1232, .stream = true},
    {.percent = 5, .size = 4096, .dnssec_ok = true, .stream = true},
};

struct flight {
        uint64_t sent_us;
        uint64_t number;
        bool busy;
};

struct stream {
        int fd; /* -1: not connected */
        struct flight flight;
        uint8_t in[2 + 65535];
        size_t have;
};

static struct sockaddr_in server = {.sin_family = AF_INET};
static uint64_t seed = 1, n_names = 1000000, n_queries, rate, window = 100, skipped;
static double seconds = 1e9;
static enum { LIST, RANDOM, ZIPF } order;
static const struct kind *kinds = plain;

static uint8_t *packets; /* all questions, each as header and question behind 2 bytes of length */
static uint64_t *offsets;
static double *cumulated; /* of Zipf's weights */

static int sockets[SOCKETS];
static struct flight flights[SOCKETS][65536];
static uint16_t next_id[SOCKETS];
static struct stream streams[STREAMS];
static uint64_t waiting[WAITING], waiting_from, waiting_to;

static struct {
        uint64_t sent, answered, lost, bad, truncated, streamed, outstanding;
        uint64_t slow[SLOWEST_US];
} count;

static void die(const char *what)
{
        fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
        exit(1);
}

static uint64_t now_us(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t draw(uint64_t k, uint64_t what)
{
        return workload_mix(workload_mix(seed * 8 + what) ^ workload_mix(~k));
}

static uint64_t name_of(uint64_t k)
{
        if (order == LIST)
                return k % n_names;
        uint64_t r = draw(k, 1);
        if (order == RANDOM)
                return (uint64_t)((unsigned __int128)r * n_names >> 64);
        double wanted = (double)(r >> 11) * 0x1p-53 * cumulated[n_names - 1];
        uint64_t low = 0, high = n_names - 1;
        while (low < high) {
                uint64_t middle = (low + high) / 2;
                if (cumulated[middle] < wanted)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static const struct kind *kind_of(uint64_t k)
{
        unsigned percent = (unsigned)(draw(k, 2) % 100);
        const struct kind *kind = kinds;
        for (; percent >= kind->percent; kind++)
                percent -= kind->percent;
        return kind;
}

static void put16(uint8_t *at, unsigned value)
{
        at[0] = (uint8_t)(value >> 8);
        at[1] = (uint8_t)value;
}

static size_t make_query(uint64_t k, unsigned id, uint8_t out[PACKET_MAX])
{
        const struct kind *kind = kind_of(k);
        const uint8_t *query = packets + offsets[name_of(k)];
        size_t end = (size_t)(query[0] << 8 | query[1]);
        memcpy(out, query + 2, end);
        put16(out, id);
        out[3] = kind->ad ? 0x20 : 0;
        out[11] = kind->size != 0;
        if (!kind->size)
                return end;
        uint8_t *opt = out + end;
        memset(opt, 0, 11);
        opt[2] = 41;
        put16(opt + 3, kind->size);
        opt[7] = kind->dnssec_ok ? 0x80 : 0;
        if (!kind->cookie)
                return end + 11;
        static const uint8_t cookie[] = {0, 10, 0, 8};
        opt[10] = 12;
        memcpy(opt + 11, cookie, 4);
        uint64_t client = draw(k, 3) % 1000; /* each has its own */
        client = draw(client, 4);
        memcpy(opt + 15, &client, 8);
        return end + 23;
}

static void finish(struct flight *flight)
{
        flight->busy = false;
        count.outstanding--;
}

/* Of a reply to query `flight->number`: what became of it. */
static void judge(struct flight *flight, const uint8_t *reply, size_t len, bool stream)
{
        uint64_t taken = now_us() - flight->sent_us;
        count.slow[taken < SLOWEST_US ? taken : SLOWEST_US - 1]++;
        if (len >= 12 && !stream && reply[2] & 0x02) { /* as a real client: once more over TCP */
                count.truncated++;
                finish(flight);
                if (waiting_to - waiting_from == WAITING)
                        count.lost++;
                else
                        waiting[waiting_to++ % WAITING] = flight->number;
                return;
        }
        bool good = len >= 12 && reply[2] & 0x80 && !(reply[3] & 0x0f) && (reply[6] || reply[7]);
        count.answered++;
        count.bad += !good;
        count.streamed += stream;
        finish(flight);
}

/* Queries are numbered from 0 here; `skipped` of the sequence have gone before. */
static void send_datagrams(uint64_t *next, uint64_t limit, unsigned at)
{
        static uint8_t out[BATCH][PACKET_MAX];
        struct iovec vec[BATCH];
        struct mmsghdr msg[BATCH];
        unsigned n = 0;
        uint64_t now = now_us();
        while (n < BATCH && *next < limit && count.outstanding < window) {
                uint64_t k = skipped + *next;
                if (kind_of(k)->stream) {
                        if (waiting_to - waiting_from == WAITING)
                                break;
                        waiting[waiting_to++ % WAITING] = k;
                        count.sent++;
                        ++*next;
                        continue;
                }
                uint16_t id = next_id[at]++;
                struct flight *flight = &flights[at][id];
                if (flight->busy)
                        continue;
                *flight = (struct flight){now, k, true};
                vec[n] = (struct iovec){out[n], make_query(k, id, out[n])};
                msg[n] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vec[n], .msg_iovlen = 1}};
                n++;
                count.sent++;
                count.outstanding++;
                ++*next;
        }
        for (unsigned done = 0; done < n;) {
                int k = sendmmsg(sockets[at], msg + done, n - done, 0);
                if (k < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
                        die("sendmmsg");
                done += k > 0 ? (unsigned)k : 0;
        }
}

static void receive_datagrams(unsigned at)
{
        static uint8_t in[BATCH][REPLY_MAX];
        struct iovec vec[BATCH];
        struct mmsghdr msg[BATCH];
        for (unsigned i = 0; i < BATCH; i++) {
                vec[i] = (struct iovec){in[i], REPLY_MAX};
                msg[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vec[i], .msg_iovlen = 1}};
        }
        int n = recvmmsg(sockets[at], msg, BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++) {
                struct flight *flight = &flights[at][in[i][0] << 8 | in[i][1]];
                if (msg[i].msg_len >= 12 && flight->busy)
                        judge(flight, in[i], msg[i].msg_len, false);
        }
}

static void close_stream(struct stream *stream)
{
        if (stream->flight.busy) {
                count.lost++;
                finish(&stream->flight);
        }
        close(stream->fd);
        stream->fd = -1;
}

static void open_stream(struct stream *stream)
{
        int one = 1;
        stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (stream->fd < 0)
                die("socket");
        if (connect(stream->fd, (struct sockaddr *)&server, sizeof server))
                die("connect over TCP");
        setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(stream->fd, F_SETFL, O_NONBLOCK);
        stream->have = 0;
}

static void use_streams(void)
{
        for (unsigned i = 0; i < STREAMS && waiting_from != waiting_to; i++) {
                struct stream *stream = &streams[i];
                uint8_t out[2 + PACKET_MAX];
                if (stream->flight.busy)
                        continue;
                if (stream->fd < 0)
                        open_stream(stream);
                uint64_t k = waiting[waiting_from++ % WAITING];
                size_t len = make_query(k, k & 0xffff, out + 2);
                put16(out, (unsigned)len);
                stream->flight = (struct flight){now_us(), k, true};
                count.outstanding++;
                if (send(stream->fd, out, len + 2, MSG_NOSIGNAL) != (ssize_t)len + 2) {
                        /* The server had closed it: the query goes out again over a new one. */
                        finish(&stream->flight);
                        waiting_from--;
                        close_stream(stream);
                        return;
                }
        }
}

static void receive_stream(struct stream *stream)
{
        ssize_t n = recv(stream->fd, stream->in + stream->have, sizeof stream->in - stream->have, 0);
        if (n <= 0) {
                if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        close_stream(stream);
                return;
        }
        stream->have += (size_t)n;
        size_t len = stream->have < 2 ? SIZE_MAX : (size_t)(stream->in[0] << 8 | stream->in[1]);
        if (len == SIZE_MAX || stream->have < len + 2)
                return;
        if (stream->flight.busy)
                judge(&stream->flight, stream->in + 2, len, true);
        stream->have = 0;
}

static void give_up_old(void)
{
        uint64_t old = now_us() - TIMEOUT_US;
        for (unsigned s = 0; s < SOCKETS; s++)
                for (unsigned id = 0; id < 65536; id++)
                        if (flights[s][id].busy && flights[s][id].sent_us < old) {
                                count.lost++;
                                finish(&flights[s][id]);
                        }
        for (unsigned i = 0; i < STREAMS; i++)
                if (streams[i].flight.busy && streams[i].flight.sent_us < old)
                        close_stream(&streams[i]);
}

static void wait_and_receive(int timeout_ms)
{
        struct pollfd fds[SOCKETS + STREAMS];
        for (unsigned s = 0; s < SOCKETS; s++)
                fds[s] = (struct pollfd){sockets[s], POLLIN, 0};
        for (unsigned i = 0; i < STREAMS; i++)
                fds[SOCKETS + i] = (struct pollfd){streams[i].fd, POLLIN, 0};
        if (poll(fds, SOCKETS + STREAMS, timeout_ms) <= 0)
                return;
        for (unsigned s = 0; s < SOCKETS; s++)
                if (fds[s].revents)
                        receive_datagrams(s);
        for (unsigned i = 0; i < STREAMS; i++)
                if (fds[SOCKETS + i].revents && streams[i].fd >= 0)
                        receive_stream(&streams[i]);
}

/* Returns how many seconds it took. */
static double run(void)
{
        uint64_t start = now_us(), next = 0, looked = start;
        for (unsigned at = 0;; at = (at + 1) % SOCKETS) {
                uint64_t now = now_us(), elapsed = now - start;
                uint64_t limit = (double)elapsed / 1e6 >= seconds ? next : n_queries;
                if (rate && limit > elapsed * rate / 1000000 + 1)
                        limit = elapsed * rate / 1000000 + 1;
                bool all_sent = next >= n_queries || (double)elapsed / 1e6 >= seconds;
                if (all_sent && !count.outstanding && waiting_from == waiting_to)
                        return (double)elapsed / 1e6;
                if (now - looked > 500000) {
                        give_up_old();
                        looked = now;
                }
                bool can_send = next < limit && count.outstanding < window;
                if (can_send)
                        send_datagrams(&next, limit, at);
                use_streams();
                wait_and_receive(can_send && count.outstanding < window ? 0 : 1);
        }
}

/* Header and question of a line of a list; 0: it is none. */
static size_t read_question(const char *line, uint8_t *out)
{
        static const uint8_t header[12] = {[2] = 1, [5] = 1}; /* RD, one question */
        char name[1100], type[20];
        if (sscanf(line, "%1099s %19s", name, type) != 2)
                return 0;
        ldns_rr_type number = ldns_get_rr_type_by_name(type);
        int len = sardine_name_from_text(name, out + 12);
        if (!number || len < 0)
                return 0;
        memcpy(out, header, sizeof header);
        put16(out + 12 + len, number);
        put16(out + 14 + len, 1);
        return 16 + (size_t)len;
}

static void make_packets(const char *list)
{
        size_t used = 0, room = 0;
        FILE *file = list ? fopen(list, "r") : NULL;
        if (list && !file)
                die(list);
        offsets = malloc(n_names * sizeof *offsets);
        char line[1200];
        uint64_t n = 0;
        for (; n < n_names; n++) {
                if (used + 2 + PACKET_MAX > room) {
                        room = room ? 2 * room : 1 << 20;
                        packets = realloc(packets, room);
                }
                if (!packets || !offsets)
                        die("memory");
                uint8_t *at = packets + used;
                size_t len = 0;
                if (!list) {
                        len = workload_query(seed, n, at + 2);
                        len = workload_question_end(at + 2, len);
                }
                while (list && !len && fgets(line, sizeof line, file))
                        len = read_question(line, at + 2);
                if (!len)
                        break;
                put16(at, (unsigned)len);
                offsets[n] = used;
                used += 2 + len;
        }
        if (file)
                fclose(file);
        n_names = n;
        if (!n_names) {
                fprintf(stderr, "load: no questions\n");
                exit(1);
        }
}

static uint64_t quantile(double share)
{
        uint64_t all = 0, seen = 0;
        for (unsigned us = 0; us < SLOWEST_US; us++)
                all += count.slow[us];
        for (unsigned us = 0; us < SLOWEST_US; us++) {
                seen += count.slow[us];
                if ((double)seen >= share * (double)all)
                        return us;
        }
        return 0;
}

static _Noreturn void usage(void)
{
        fprintf(
            stderr,
            "usage: peers-load --server 127.0.0.1:PORT [--names 1000000 | --list FILE] [--seed 1]\n"
            "       [--order list|random|zipf] [--mix plain|mixed] [--window 100] [--rate QUERIES_A_SECOND]\n"
            "       [--queries N] [--seconds S] [--skip N]\n"
            "FILE: lines of NAME TYPE, as from pcap2queries; asked in their order by --order list.\n"
            "--skip: go on with the sequence where an earlier run ended.\n");
        exit(2);
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
            {"server", required_argument, NULL, 's'},  {"names", required_argument, NULL, 'n'},
            {"list", required_argument, NULL, 'l'},    {"seed", required_argument, NULL, 'e'},
            {"order", required_argument, NULL, 'o'},   {"mix", required_argument, NULL, 'm'},
            {"window", required_argument, NULL, 'w'},  {"rate", required_argument, NULL, 'r'},
            {"queries", required_argument, NULL, 'q'}, {"seconds", required_argument, NULL, 't'},
            {"skip", required_argument, NULL, 'k'},    {0}};
        const char *list = NULL;
        char host[INET_ADDRSTRLEN];
        unsigned port;
        bool all_names = true;
        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                switch (c) {
                case 's':
                        if (sscanf(optarg, "%15[0-9.]:%u", host, &port) != 2 || port > 65535 ||
                            inet_pton(AF_INET, host, &server.sin_addr) != 1)
                                usage();
                        server.sin_port = htons((uint16_t)port);
                        break;
                case 'n':
                        n_names = strtoull(optarg, NULL, 10);
                        all_names = false;
                        break;
                case 'l':
                        list = optarg;
                        break;
                case 'e':
                        seed = strtoull(optarg, NULL, 10);
                        break;
                case 'o':
                        order = !strcmp(optarg, "zipf") ? ZIPF : !strcmp(optarg, "random") ? RANDOM : LIST;
                        break;
                case 'm':
                        kinds = !strcmp(optarg, "mixed") ? mixed : plain;
                        break;
                case 'w':
                        window = strtoull(optarg, NULL, 10);
                        break;
                case 'r':
                        rate = strtoull(optarg, NULL, 10);
                        break;
                case 'q':
                        n_queries = strtoull(optarg, NULL, 10);
                        break;
                case 'k':
                        skipped = strtoull(optarg, NULL, 10);
                        break;
                case 't':
                        seconds = strtod(optarg, NULL);
                        break;
                default:
                        usage();
                }
        }
        if (!server.sin_port || !window || window > 4096 || !n_names)
                usage();
        if (list && all_names)
                n_names = 100000000;
        make_packets(list);
        if (!n_queries)
                n_queries = seconds < 1e9 ? UINT64_MAX : n_names;
        if (order == ZIPF) {
                double sum = 0;
                cumulated = malloc(n_names * sizeof *cumulated);
                if (!cumulated)
                        die("memory");
                for (uint64_t i = 0; i < n_names; i++)
                        cumulated[i] = sum += 1 / (double)(i + 1);
        }
        for (unsigned s = 0; s < SOCKETS; s++) {
                int big = 4 << 20;
                sockets[s] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (sockets[s] < 0 || connect(sockets[s], (struct sockaddr *)&server, sizeof server))
                        die("socket");
                setsockopt(sockets[s], SOL_SOCKET, SO_RCVBUF, &big, sizeof big);
        }
        for (unsigned i = 0; i < STREAMS; i++)
                streams[i].fd = -1;
        double took = run();
        printf("{\"sent\": %llu, \"answered\": %llu, \"lost\": %llu, \"bad\": %llu, \"truncated\": %llu, "
               "\"streamed\": %llu, "
               "\"seconds\": %.3f, \"qps\": %.1f, \"p50_us\": %llu, \"p99_us\": %llu}\n",
               (unsigned long long)count.sent, (unsigned long long)count.answered,
               (unsigned long long)count.lost, (unsigned long long)count.bad,
               (unsigned long long)count.truncated, (unsigned long long)count.streamed, took,
               (double)count.answered / took, (unsigned long long)quantile(0.5),
               (unsigned long long)quantile(0.99));
        return 0;
}
