/* SPDX-License-Identifier: MIT
 *
 * forwarder - a small DNS forwarder with a sardine cache: an example of the C ABI in use, and a host for the
 * tests.
 *
 *     forwarder --listen ADDRESS:PORT --upstream ADDRESS:PORT [options]
 *
 * Needs nothing but sardine.h and libc. Each UDP worker owns a socket to the upstream and the queries in
 * flight on it; each TCP client gets a thread. Whatever waits also waits for the stop signal.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sardine.h>

enum {
        HEADER = 12,
        MESSAGE = 65535,
        UPSTREAM_TIMEOUT_MS = 10000,
        IDLE_TIMEOUT_MS = 10000,
        MAX_UDP_WORKERS = 64,
        MAX_TCP_CLIENTS = 64,
        MAX_IN_FLIGHT = 4096, /* for each UDP worker */
};

struct address {
        struct sockaddr_storage sa;
        socklen_t len;
};

/* A query that waits for the upstream's answer. */
struct in_flight {
        uint64_t deadline;    /* in the past: the slot is free */
        uint16_t id;          /* towards the upstream: random */
        uint8_t client_id[2]; /* to be put back */
        struct address client;
        uint8_t question[255 + 4]; /* the answer must be to this question */
        size_t question_len;
        struct sardine_token token;
};

struct udp_worker {
        pthread_t thread;
        int upstream;
        struct in_flight flights[MAX_IN_FLIGHT]; /* the slot is the id's remainder */
        uint8_t query[MESSAGE], reply[MESSAGE];
};

static sardine_cache *cache;
static struct address listen_at, upstream_at;
static int udp_listener, tcp_listener;
static int stop_pipe[2]; /* its reading end becomes readable for good when it is time to stop */
static atomic_int tcp_clients;

static _Noreturn void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fputs("forwarder: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
        exit(EXIT_FAILURE);
}

static uint64_t now_ms(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max)
{
        char *end;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < min || value > max)
                die("--%s takes a number from %" PRIu64 " to %" PRIu64, option, min, max);
        return value;
}

/* "192.0.2.1:53" or "[2001:db8::1]:53" */
static struct address parse_address(const char *text)
{
        const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                       .ai_socktype = SOCK_DGRAM};
        struct addrinfo *info;
        struct address address;
        char host[64];
        const char *colon = strrchr(text, ':');
        size_t len = colon != NULL ? (size_t)(colon - text) : 0;
        if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
                text++;
                len -= 2;
        }
        if (len == 0 || snprintf(host, sizeof host, "%.*s", (int)len, text) >= (int)sizeof host ||
            getaddrinfo(host, colon + 1, &hints, &info) != 0)
                die("%s is not ADDRESS:PORT", text);
        number("listen and --upstream: the port", colon + 1, 1, 65535);
        memcpy(&address.sa, info->ai_addr, info->ai_addrlen);
        address.len = info->ai_addrlen;
        freeaddrinfo(info);
        return address;
}

static const uint8_t *raw_address(const struct address *address, uint32_t *len)
{
        bool v6 = address->sa.ss_family == AF_INET6;
        *len = v6 ? 16 : 4;
        return v6 ? ((const struct sockaddr_in6 *)&address->sa)->sin6_addr.s6_addr
                  : (const uint8_t *)&((const struct sockaddr_in *)&address->sa)->sin_addr;
}

/* Length of the question section of a message with one question; 0 when it is not such a message. */
static size_t question_length(const uint8_t *packet, size_t len)
{
        if (len < HEADER || packet[4] != 0 || packet[5] != 1)
                return 0;
        size_t at = HEADER;
        while (at < len && packet[at] != 0) {
                if (packet[at] > 63)
                        return 0;
                at += 1u + packet[at];
        }
        at += 1 + 4;
        return at <= len && at - HEADER <= 255 + 4 ? at - HEADER : 0;
}

static bool is_query(const uint8_t *packet, size_t len)
{
        return len >= HEADER && (packet[2] & 0x80) == 0 && question_length(packet, len) > 0;
}

/* Some servers answer a failure with the bare header. */
static bool is_answer_to(const uint8_t *packet, size_t len, const uint8_t *question, size_t question_len)
{
        if (len < HEADER || (packet[2] & 0x80) == 0)
                return false;
        if (len == HEADER)
                return (packet[3] & 15) != 0;
        return question_length(packet, len) == question_len &&
               memcmp(packet + HEADER, question, question_len) == 0;
}

/* Wait until the socket is ready. False: time is up, or it is time to stop. */
static bool ready(int fd, short events, int timeout_ms)
{
        struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = stop_pipe[0], .events = POLLIN}};
        return poll(fds, 2, timeout_ms) > 0 && fds[1].revents == 0;
}

/* Returns true when `reply` is to be sent. Otherwise the token, if there is one, belongs to the query. */
static bool look_up(const uint8_t *query, size_t len, const struct address *client, uint32_t transport,
                    uint8_t *reply, size_t *reply_len, struct sardine_token *token)
{
        struct sardine_query q = {.sz = sizeof q, .packet = query, .len = len, .transport = transport};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = MESSAGE, .token = token};
        q.client = raw_address(client, &q.client_len);
        token->len = 0;
        int outcome = sardine_lookup(cache, &q, &a);
        *reply_len = a.len;
        return outcome == SARDINE_HIT || outcome == SARDINE_STALE;
}

static void insert(const struct sardine_token *token, const uint8_t *response, size_t len)
{
        if (token->len > 0)
                sardine_insert(cache, token, response, len, NULL, NULL);
}

/* UDP */

static void forward(struct udp_worker *w, size_t len, const struct address *client,
                    const struct sardine_token *token)
{
        uint64_t now = now_ms();
        struct in_flight *flight;
        uint16_t id;
        int attempts = 0;
        do {
                if (attempts++ == 16 || getrandom(&id, sizeof id, 0) != sizeof id)
                        return; /* overloaded: the client tries again */
                flight = &w->flights[id % MAX_IN_FLIGHT];
        } while (flight->deadline > now);

        flight->deadline = now + UPSTREAM_TIMEOUT_MS;
        flight->id = id;
        flight->client = *client;
        memcpy(flight->client_id, w->query, 2);
        flight->question_len = question_length(w->query, len);
        memcpy(flight->question, w->query + HEADER, flight->question_len);
        flight->token.len = token->len;
        memcpy(flight->token.bytes, token->bytes, token->len);

        memcpy(w->query, &id, 2);
        send(w->upstream, w->query, len, 0);
}

static void udp_query(struct udp_worker *w)
{
        struct address client = {.len = sizeof client.sa};
        struct sardine_token token;
        size_t reply_len;
        ssize_t len = recvfrom(udp_listener, w->query, sizeof w->query, MSG_DONTWAIT,
                               (struct sockaddr *)&client.sa, &client.len);
        if (len < 0 || !is_query(w->query, (size_t)len))
                return;
        if (look_up(w->query, (size_t)len, &client, SARDINE_UDP, w->reply, &reply_len, &token))
                sendto(udp_listener, w->reply, reply_len, 0, (struct sockaddr *)&client.sa, client.len);
        else
                forward(w, (size_t)len, &client, &token);
}

static void udp_answer(struct udp_worker *w)
{
        uint16_t id;
        ssize_t len = recv(w->upstream, w->reply, sizeof w->reply, MSG_DONTWAIT);
        if (len < HEADER)
                return;
        memcpy(&id, w->reply, 2);
        struct in_flight *flight = &w->flights[id % MAX_IN_FLIGHT];
        if (flight->id != id || flight->deadline <= now_ms() ||
            !is_answer_to(w->reply, (size_t)len, flight->question, flight->question_len))
                return;
        memcpy(w->reply, flight->client_id, 2);
        insert(&flight->token, w->reply, (size_t)len);
        sendto(udp_listener, w->reply, (size_t)len, 0, (struct sockaddr *)&flight->client.sa,
               flight->client.len);
        flight->deadline = 0;
}

static void *udp_work(void *arg)
{
        struct udp_worker *w = arg;
        for (;;) {
                struct pollfd fds[] = {{.fd = udp_listener, .events = POLLIN},
                                       {.fd = w->upstream, .events = POLLIN},
                                       {.fd = stop_pipe[0], .events = POLLIN}};
                poll(fds, 3, -1);
                if (fds[2].revents != 0)
                        break;
                if (fds[1].revents != 0)
                        udp_answer(w);
                if (fds[0].revents != 0)
                        udp_query(w);
        }
        return NULL;
}

/* TCP: two bytes of length before each message */

static bool read_all(int fd, uint8_t *buf, size_t len, int timeout_ms)
{
        while (len > 0) {
                ssize_t n = ready(fd, POLLIN, timeout_ms) ? recv(fd, buf, len, 0) : -1;
                if (n <= 0)
                        return false;
                buf += n;
                len -= (size_t)n;
        }
        return true;
}

static bool read_message(int fd, uint8_t *buf, size_t *len, int timeout_ms)
{
        uint8_t prefix[2];
        if (!read_all(fd, prefix, 2, timeout_ms))
                return false;
        *len = (size_t)prefix[0] << 8 | prefix[1];
        return read_all(fd, buf, *len, timeout_ms);
}

static bool write_message(int fd, const uint8_t *buf, size_t len)
{
        uint8_t prefix[2] = {(uint8_t)(len >> 8), (uint8_t)len};
        if (send(fd, prefix, 2, MSG_NOSIGNAL | MSG_MORE) != 2)
                return false;
        while (len > 0) {
                ssize_t n = ready(fd, POLLOUT, IDLE_TIMEOUT_MS) ? send(fd, buf, len, MSG_NOSIGNAL) : -1;
                if (n <= 0)
                        return false;
                buf += n;
                len -= (size_t)n;
        }
        return true;
}

/* Ask the upstream over a connection of its own. The id needs no secret there, only the question is checked.
 */
static bool ask_over_tcp(const uint8_t *query, size_t len, uint8_t *reply, size_t *reply_len)
{
        int fd = socket(upstream_at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&upstream_at.sa, upstream_at.len) == 0 &&
                  write_message(fd, query, len) && read_message(fd, reply, reply_len, UPSTREAM_TIMEOUT_MS) &&
                  is_answer_to(reply, *reply_len, query + HEADER, question_length(query, len)) &&
                  memcmp(reply, query, 2) == 0;
        if (fd >= 0)
                close(fd);
        return ok;
}

struct tcp_client {
        int fd;
        struct address address;
        struct sardine_token token;
        uint8_t query[MESSAGE], reply[MESSAGE];
};

static void close_tcp_client(struct tcp_client *c)
{
        close(c->fd);
        free(c);
        atomic_fetch_sub(&tcp_clients, 1);
}

static void *serve_tcp_client(void *arg)
{
        struct tcp_client *c = arg;
        size_t len, reply_len;
        while (read_message(c->fd, c->query, &len, IDLE_TIMEOUT_MS) && is_query(c->query, len)) {
                if (!look_up(c->query, len, &c->address, SARDINE_TCP, c->reply, &reply_len, &c->token)) {
                        if (!ask_over_tcp(c->query, len, c->reply, &reply_len))
                                break;
                        insert(&c->token, c->reply, reply_len);
                }
                if (!write_message(c->fd, c->reply, reply_len))
                        break;
        }
        close_tcp_client(c);
        return NULL;
}

static void *accept_tcp_clients(void *arg)
{
        (void)arg;
        while (ready(tcp_listener, POLLIN, -1)) {
                struct address address = {.len = sizeof address.sa};
                int fd = accept4(tcp_listener, (struct sockaddr *)&address.sa, &address.len, SOCK_CLOEXEC);
                struct tcp_client *c = atomic_load(&tcp_clients) < MAX_TCP_CLIENTS ? malloc(sizeof *c) : NULL;
                if (fd < 0 || c == NULL) {
                        free(c);
                        close(fd);
                        continue;
                }
                c->fd = fd;
                c->address = address;
                atomic_fetch_add(&tcp_clients, 1);
                pthread_t thread;
                if (pthread_create(&thread, NULL, serve_tcp_client, c) == 0)
                        pthread_detach(thread);
                else
                        close_tcp_client(c);
        }
        return NULL;
}

/* Start and stop */

static void log_line(void *ctx, int level, const char *text)
{
        (void)ctx, (void)level;
        fprintf(stderr, "forwarder: %s\n", text);
}

static int open_listener(int type)
{
        int fd = socket(listen_at.sa.ss_family, type | SOCK_CLOEXEC, 0);
        int on = 1;
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
            bind(fd, (struct sockaddr *)&listen_at.sa, listen_at.len) != 0 ||
            (type == SOCK_STREAM && listen(fd, 64) != 0))
                die("cannot listen: %s", strerror(errno));
        return fd;
}

static void print_statistics(void)
{
        struct sardine_stats s = {.sz = sizeof s};
        sardine_stats_get(cache, &s);
        printf("entries %" PRIu64 ", bytes %" PRIu64 "\n", s.entries, s.bytes);
        printf("lookups %" PRIu64 ": hits %" PRIu64 ", misses %" PRIu64 ", bypass %" PRIu64 "\n", s.lookups,
               s.hits + s.stale + s.refresh, s.misses + s.cache_only_misses, s.bypass);
        printf("inserts %" PRIu64 ": stored %" PRIu64 ", replaced %" PRIu64 ", refreshed %" PRIu64
               ", refused %" PRIu64 "\n",
               s.inserts, s.stored, s.replaced, s.refreshed, s.refused);
        for (unsigned reason = 1; reason < SARDINE_REASON_COUNT; reason++)
                if (s.reasons[reason] > 0)
                        printf("  %s %" PRIu64 "\n", sardine_reason_name(reason), s.reasons[reason]);
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
            {"listen", required_argument, NULL, 'l'},   {"upstream", required_argument, NULL, 'u'},
            {"threads", required_argument, NULL, 't'},  {"entries", required_argument, NULL, 'e'},
            {"udp-size", required_argument, NULL, 's'}, {"failure-ttl", required_argument, NULL, 'f'},
            {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
        static const char usage[] = "usage: forwarder --listen ADDRESS:PORT --upstream ADDRESS:PORT\n"
                                    "  --threads N      UDP workers (2)\n"
                                    "  --entries N      entries in the cache (1000000)\n"
                                    "  --udp-size N     largest UDP reply in bytes (1232)\n"
                                    "  --failure-ttl N  seconds that SERVFAIL and REFUSED are kept (60)\n"
                                    "SIGINT or SIGTERM stops it and prints the cache's statistics.\n";
        struct sardine_options opt;
        size_t n_workers = 2;
        int c, index = 0;

        sardine_options_init(&opt, sizeof opt);
        opt.max_entries = 1000000;
        opt.log = log_line;
        while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
                switch (c) {
                case 'l':
                        listen_at = parse_address(optarg);
                        break;
                case 'u':
                        upstream_at = parse_address(optarg);
                        break;
                case 't':
                        n_workers = number(options[index].name, optarg, 1, MAX_UDP_WORKERS);
                        break;
                case 'e':
                        opt.max_entries = number(options[index].name, optarg, 1, UINT64_MAX);
                        break;
                case 's':
                        opt.udp_payload_size = (uint16_t)number(options[index].name, optarg, 512, 65535);
                        break;
                case 'f':
                        opt.failure_ttl = (uint32_t)number(options[index].name, optarg, 0, 300);
                        break;
                default:
                        fputs(usage, c == 'h' ? stdout : stderr);
                        return c == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
                }
        }
        if (optind != argc || listen_at.len == 0 || upstream_at.len == 0) {
                fputs(usage, stderr);
                return EXIT_FAILURE;
        }
        if (sardine_abi_version() != SARDINE_ABI_VERSION)
                die("compiled for ABI %d, the library has %" PRIu32, SARDINE_ABI_VERSION,
                    sardine_abi_version());
        int err = sardine_create(&opt, &cache);
        struct udp_worker *workers = calloc(n_workers, sizeof *workers);
        if (err < 0 || workers == NULL)
                die("cache: %s", sardine_strerror(err < 0 ? err : -ENOMEM));

        /* Before any thread starts, so that no other one gets the signal. */
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);

        if (pipe(stop_pipe) != 0)
                die("pipe: %s", strerror(errno));
        udp_listener = open_listener(SOCK_DGRAM);
        tcp_listener = open_listener(SOCK_STREAM);
        pthread_t acceptor;
        for (struct udp_worker *w = workers; w < workers + n_workers; w++) {
                w->upstream = socket(upstream_at.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                if (connect(w->upstream, (struct sockaddr *)&upstream_at.sa, upstream_at.len) != 0)
                        die("upstream: %s", strerror(errno));
                if (pthread_create(&w->thread, NULL, udp_work, w) != 0)
                        die("cannot start a thread");
        }
        if (pthread_create(&acceptor, NULL, accept_tcp_clients, NULL) != 0)
                die("cannot start a thread");

        int signal_number;
        sigwait(&signals, &signal_number);
        close(stop_pipe[1]); /* everybody who waits sees the pipe hang up */
        pthread_join(acceptor, NULL);
        for (size_t i = 0; i < n_workers; i++)
                pthread_join(workers[i].thread, NULL);
        while (atomic_load(&tcp_clients) > 0)
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        print_statistics();
        sardine_destroy(cache);
        free(workers);
        return EXIT_SUCCESS;
}
