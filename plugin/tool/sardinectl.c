/* SPDX-License-Identifier: MIT
 * sardinectl: looks into snapshot files. It reads them as the library does, with the same checks; it needs no
 * running cache, and writes nothing but its output, and purges beside the file. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <ldns/ldns.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry/header.h"
#include "entry/page.h"
#include "entry/view.h"
#include "sardine.h"
#include "snapshot/file.h"
#include "snapshot/journal.h"
#include "snapshot/purgerecord.h"
#include "tool/trial.h"
#include "wire/bytes.h"
#include "wire/ecs.h"
#include "wire/name.h"

enum {
        EXIT_DAMAGED = 1, /* or not a snapshot */
        EXIT_USAGE = 2,
        EXIT_TROUBLE = 3, /* it cannot be read, no memory */
        NAME_TEXT = 1024,
        FIXED_BYTES = 2 << 20,
};

/* Of the index, for an entry. Slots have 8 bytes (store/index.h), 7 of 8 are in use. */
#define PER_SLOT 9.2
/* Full segments are not quite full. */
#define ENDS_OF_SEGMENTS 1.03

/* One answer, as the commands see it. */
struct item {
        const struct entry_view *view;
        const uint8_t *name;
        size_t name_len;
        const uint8_t *tag;
        uint32_t tag_len;
        int64_t ttl; /* now; below 0: expired for so long */
        uint32_t bytes;
        uint32_t popularity;
        const char *network; /* text, or NULL */
};

struct options {
        const char *path;
        uint8_t name[255];
        int name_len; /* 0: any */
        bool below;
        uint16_t type; /* 0: any */
        int rcode;     /* -1: any */
        const char *tag;
        bool expired; /* show these, too */
        bool json;
        uint64_t limit;   /* of lines; 0: none */
        uint64_t entries; /* for predict */
        bool pcap;        /* the file is a capture */
        uint16_t port;    /* of it, the servers' */
};

struct tool {
        struct options options;
        struct snapshot_reader reader;
        bool age_known;
        uint64_t age;
        uint64_t shown;
};

static const char *type_text(uint16_t type, char buf[16])
{
        const ldns_rr_descriptor *descriptor = type < 258 ? ldns_rr_descript(type) : NULL;
        if (descriptor && descriptor->_name && descriptor->_type == type)
                return descriptor->_name;
        snprintf(buf, 16, "TYPE%u", type);
        return buf;
}

static const char *rcode_text(unsigned rcode)
{
        switch (rcode) {
        case 0:
                return "NOERROR";
        case 2:
                return "SERVFAIL";
        case 3:
                return "NXDOMAIN";
        default:
                return "REFUSED";
        }
}

static void put_name(FILE *out, const uint8_t *name, size_t len)
{
        char text[NAME_TEXT];
        if (sardine_name_to_text(name, len, text, sizeof text) < 0)
                snprintf(text, sizeof text, "?");
        fputs(text, out);
}

/* Bytes of anybody's choice as the inside of a JSON string, in ASCII. */
static void put_json(FILE *out, const char *bytes, size_t len)
{
        for (size_t i = 0; i < len; i++) {
                uint8_t c = (uint8_t)bytes[i];
                if (c == '"' || c == '\\')
                        fprintf(out, "\\%c", c);
                else if (c < 0x20 || c > 0x7e)
                        fprintf(out, "\\u%04x", c);
                else
                        fputc(c, out);
        }
}

static bool wanted(const struct options *o, const struct item *item)
{
        if (item->ttl <= 0 && !o->expired)
                return false;
        if (o->type && o->type != item->view->qtype)
                return false;
        if (o->rcode >= 0 && (unsigned)o->rcode != item->view->rcode)
                return false;
        if (o->tag && (strlen(o->tag) != item->tag_len || memcmp(o->tag, item->tag, item->tag_len) != 0))
                return false;
        const uint8_t *name = item->name;
        size_t len = item->name_len, want = (size_t)o->name_len;
        while (want && len > want && o->below) {
                len -= 1u + name[0];
                name += 1u + name[0];
        }
        return !want || (len == want && memcmp(name, o->name, len) == 0);
}

typedef bool (*each)(struct tool *tool, const struct item *item);

static int64_t ttl_of(const struct tool *tool, const uint8_t *field)
{
        uint32_t time;
        memcpy(&time, field, sizeof time);
        return time_left(time) - (int64_t)(tool->age < INT32_MAX ? tool->age : INT32_MAX);
}

static bool show_page(struct tool *tool, struct item *item, const uint8_t *entry, each fn)
{
        struct page_view page;
        page_view_init(&page, entry);
        for (unsigned i = 0; i < page.count; i++) {
                struct page_item network;
                struct entry_view view;
                char address[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];
                page_item(&page, i, &network);
                entry_view_init(&view, network.answer);
                inet_ntop(network_family(page.code) == ECS_IPV6 ? AF_INET6 : AF_INET, network.network,
                          address, sizeof address);
                snprintf(text, sizeof text, "%s/%u", address, network_prefix(page.code));
                item->view = &view;
                item->ttl = ttl_of(tool, page.expiries + 4u * i);
                item->bytes = entry_size(entry) / page.count;
                item->network = text;
                if (wanted(&tool->options, item) && !fn(tool, item))
                        return false;
        }
        return true;
}

static bool show_entry(struct tool *tool, const struct entry_checked *checked, const uint8_t *entry, each fn)
{
        struct entry_view view;
        entry_view_init(&view, entry);
        struct item item = {.view = &view, .bytes = view.size};
        uint32_t time;
        memcpy(&time, entry, sizeof time);
        item.popularity = time_popularity(time);
        item.name = entry_key_name(&checked->key, &item.name_len);
        if (view.extra) {
                item.tag_len = view.extra[0];
                item.tag = view.extra + 1;
        }
        if (checked->page)
                return show_page(tool, &item, entry, fn);
        item.ttl = ttl_of(tool, entry);
        return view.no_answer || !wanted(&tool->options, &item) || fn(tool, &item);
}

/* Every wanted answer, until `fn` returns false. */
static void for_each(struct tool *tool, each fn)
{
        static const enum block_kind kinds[] = {BLOCK_ENTRIES, BLOCK_PAGES};
        struct entry_checked checked;
        for (unsigned k = 0; k < 2; k++) {
                snapshot_rewind(&tool->reader);
                while (snapshot_next_block(&tool->reader, kinds[k])) {
                        const uint8_t *entry;
                        while ((entry = snapshot_next_entry(&tool->reader, &checked)))
                                if (!show_entry(tool, &checked, entry, fn))
                                        return;
                }
        }
}

static bool list_text(const struct item *item)
{
        char type[16];
        put_name(stdout, item->name, item->name_len);
        printf("\t%s\t%s\t%" PRId64 "\t%u\t%u\t%s\t", type_text(item->view->qtype, type),
               rcode_text(item->view->rcode), item->ttl, item->bytes, item->popularity,
               item->network ? item->network : "-");
        if (!item->tag_len)
                fputc('-', stdout);
        for (uint32_t i = 0; i < item->tag_len; i++) {
                uint8_t c = item->tag[i];
                if (c > 0x20 && c < 0x7f && c != '\\')
                        fputc(c, stdout);
                else
                        printf("\\%03u", c);
        }
        fputc('\n', stdout);
        return !ferror(stdout);
}

static bool list_json(const struct item *item)
{
        char type[16], text[NAME_TEXT];
        if (sardine_name_to_text(item->name, item->name_len, text, sizeof text) < 0)
                text[0] = 0;
        fputs("{\"name\":\"", stdout);
        put_json(stdout, text, strlen(text));
        printf("\",\"type\":\"%s\",\"rcode\":\"%s\",\"ttl\":%" PRId64
               ",\"bytes\":%u,\"popularity\":%u,\"rd\":%s,\"cd\":%s,\"do\":%s",
               type_text(item->view->qtype, type), rcode_text(item->view->rcode), item->ttl, item->bytes,
               item->popularity, item->view->flags & ENTRY_RD ? "true" : "false",
               item->view->flags & ENTRY_CD ? "true" : "false",
               item->view->flags & ENTRY_DO ? "true" : "false");
        if (item->network)
                printf(",\"network\":\"%s\"", item->network);
        if (item->tag_len) {
                fputs(",\"tag\":\"", stdout);
                put_json(stdout, (const char *)item->tag, item->tag_len);
                fputc('"', stdout);
        }
        fputs("}\n", stdout);
        return !ferror(stdout);
}

static bool list_each(struct tool *tool, const struct item *item)
{
        if (!(tool->options.json ? list_json(item) : list_text(item)))
                return false;
        tool->shown++;
        return !tool->options.limit || tool->shown < tool->options.limit;
}

static int list(struct tool *tool)
{
        for_each(tool, list_each);
        return 0;
}

/* What is counted by a name and a type, or by a type or a zone alone. */
struct count {
        struct count *next;
        uint64_t answers, bytes, popularity;
        uint16_t type;
        uint8_t name_len;
        uint8_t name[255];
};

enum {
        BUCKETS = 1 << 16,
};

static struct count *buckets[BUCKETS];
static uint64_t n_counts;

static struct count *count_of(const uint8_t *name, size_t len, uint16_t type)
{
        uint32_t hash = type;
        for (size_t i = 0; i < len; i++)
                hash = hash * 16777619u ^ name[i];
        struct count **bucket = &buckets[(hash ^ hash >> 16) % BUCKETS], *count;
        for (count = *bucket; count; count = count->next)
                if (count->type == type && count->name_len == len && memcmp(count->name, name, len) == 0)
                        return count;
        count = calloc(1, sizeof *count + len);
        if (!count) {
                fprintf(stderr, "sardinectl: no memory\n");
                exit(EXIT_TROUBLE);
        }
        count->next = *bucket;
        *bucket = count;
        count->type = type;
        count->name_len = (uint8_t)len;
        memcpy(count->name, name, len);
        n_counts++;
        return count;
}

static void add(struct count *count, const struct item *item)
{
        count->answers++;
        count->bytes += item->bytes;
        if (item->popularity > count->popularity)
                count->popularity = item->popularity;
}

static int by_popularity(const void *a, const void *b)
{
        const struct count *x = *(struct count *const *)a, *y = *(struct count *const *)b;
        if (x->popularity != y->popularity)
                return x->popularity < y->popularity ? 1 : -1;
        if (x->answers != y->answers)
                return x->answers < y->answers ? 1 : -1;
        int names = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);
        if (names || x->name_len != y->name_len)
                return names ? names : x->name_len - y->name_len;
        return x->type - y->type;
}

static int by_bytes(const void *a, const void *b)
{
        const struct count *x = *(struct count *const *)a, *y = *(struct count *const *)b;
        return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_popularity(a, b);
}

static struct count **sorted(int (*compare)(const void *, const void *))
{
        struct count **all = malloc((n_counts + 1) * sizeof *all);
        uint64_t n = 0;
        if (!all) {
                fprintf(stderr, "sardinectl: no memory\n");
                exit(EXIT_TROUBLE);
        }
        for (unsigned i = 0; i < BUCKETS; i++)
                for (struct count *count = buckets[i]; count; count = count->next)
                        all[n++] = count;
        qsort(all, n, sizeof *all, compare);
        return all;
}

static void counts_free(void)
{
        for (unsigned i = 0; i < BUCKETS; i++)
                for (struct count *count; (count = buckets[i]);) {
                        buckets[i] = count->next;
                        free(count);
                }
        n_counts = 0;
}

static bool count_question(struct tool *tool, const struct item *item)
{
        (void)tool;
        add(count_of(item->name, item->name_len, item->view->qtype), item);
        return true;
}

static int top_or_names(struct tool *tool, bool counts)
{
        for_each(tool, count_question);
        struct count **all = sorted(by_popularity);
        uint64_t limit = tool->options.limit ? tool->options.limit : UINT64_MAX;
        for (uint64_t i = 0; i < n_counts && i < limit; i++) {
                char type[16];
                put_name(stdout, all[i]->name, all[i]->name_len);
                printf(counts ? "\t%s" : " %s", type_text(all[i]->type, type));
                if (counts)
                        printf("\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, all[i]->popularity, all[i]->answers,
                               all[i]->bytes);
                putchar('\n');
        }
        free(all);
        counts_free();
        return 0;
}

static int top(struct tool *tool)
{
        if (!tool->options.limit)
                tool->options.limit = 20;
        return top_or_names(tool, true);
}

static int names(struct tool *tool)
{
        return top_or_names(tool, false);
}

/* The last two labels: which zones there are nobody tells us. */
static bool count_zone(struct tool *tool, const struct item *item)
{
        (void)tool;
        const uint8_t *name = item->name;
        size_t starts[128], n = 0, at = 0;
        for (; name[at] != 0; at += 1u + name[at])
                starts[n++] = at;
        size_t from = n > 2 ? starts[n - 2] : 0;
        add(count_of(name + from, item->name_len - from, 0), item);
        return true;
}

static bool count_type(struct tool *tool, const struct item *item)
{
        (void)tool;
        add(count_of((const uint8_t *)"", 0, item->view->qtype), item);
        return true;
}

static void size_report(struct tool *tool, const char *what, each fn, uint64_t limit)
{
        for_each(tool, fn);
        struct count **all = sorted(by_bytes);
        printf("%s\tanswers\tbytes\tbytes an answer\n", what);
        for (uint64_t i = 0; i < n_counts && i < limit; i++) {
                char type[16];
                if (all[i]->type)
                        fputs(type_text(all[i]->type, type), stdout);
                else
                        put_name(stdout, all[i]->name, all[i]->name_len);
                printf("\t%" PRIu64 "\t%" PRIu64 "\t%.1f\n", all[i]->answers, all[i]->bytes,
                       (double)all[i]->bytes / (double)all[i]->answers);
        }
        free(all);
        counts_free();
}

static int size(struct tool *tool)
{
        uint64_t limit = tool->options.limit ? tool->options.limit : 20;
        size_report(tool, "type", count_type, limit);
        putchar('\n');
        size_report(tool, "zone", count_zone, limit);
        return 0;
}

static uint64_t all_answers, all_bytes;

static bool count_all(struct tool *tool, const struct item *item)
{
        (void)tool;
        all_answers++;
        all_bytes += item->bytes;
        return true;
}

static int check(struct tool *tool)
{
        const struct snapshot_header *h = &tool->reader.header;
        tool->options.expired = true;
        for_each(tool, count_all);
        uint64_t damaged = tool->reader.damaged;
        printf("format\t%u\nlayout\t%u\nbytes\t%" PRIu64 "\nblocks\t%" PRIu64 "\nentries\t%" PRIu64
               "\nanswers\t%" PRIu64 "\n",
               h->version, h->layout, tool->reader.size, tool->reader.end.blocks, tool->reader.end.entries,
               all_answers);
        if (tool->age_known)
                printf("age\t%" PRIu64 "\n", tool->age);
        else
                printf("age\tunknown: from the future\n");
        printf("damaged\t%" PRIu64 "\n", damaged);
        return damaged ? EXIT_DAMAGED : 0;
}

/* lua/SIZE.md has the formula. */
static int predict_from(uint64_t answers, uint64_t answers_bytes, uint64_t wanted)
{
        if (answers == 0) {
                fprintf(stderr, "sardinectl: there is nothing in it to judge by\n");
                return EXIT_TROUBLE;
        }
        double each = (double)answers_bytes / (double)answers + PER_SLOT;
        if (wanted == 0)
                wanted = answers;
        double bytes = FIXED_BYTES + each * (double)wanted * ENDS_OF_SEGMENTS;
        printf("entries\t%" PRIu64 "\nbytes an entry\t%.1f\nmax_bytes\t%.0f\nMiB\t%.1f\n", wanted, each,
               bytes, bytes / 1048576);
        return 0;
}

static int predict(struct tool *tool)
{
        tool->options.expired = true;
        for_each(tool, count_all);
        return predict_from(all_answers, all_bytes, tool->options.entries);
}

static int predict_from_capture(const struct options *o)
{
        struct trial trial;
        int err = trial_run(&trial, o->path, o->port);
        if (err || trial.error)
                fprintf(stderr, "sardinectl: %s: %s\n", o->path,
                        trial.error ? trial.error : sardine_strerror(err));
        if (err)
                return EXIT_TROUBLE;
        printf("packets\t%" PRIu64 "\nresponses\t%" PRIu64 "\nseconds\t%.0f\n", trial.packets,
               trial.responses, (double)trial.span_ms / 1e3);
        if (trial.bypassed)
                printf("not kept: bypassed\t%" PRIu64 "\n", trial.bypassed);
        for (unsigned i = 0; i < SARDINE_REASON_COUNT; i++)
                if (trial.refused[i])
                        printf("not kept: %s\t%" PRIu64 "\n", sardine_reason_name(i), trial.refused[i]);
        printf("answers\t%" PRIu64 "\nfresh at the end\t%" PRIu64 "\n", trial.answers, trial.fresh);
        int status = predict_from(trial.answers, trial.bytes, o->entries);
        return trial.error ? EXIT_DAMAGED : status;
}

/* As the file's owner, if we may: it is him who reads that. */
static int open_journal_of(const char *path)
{
        char *journal;
        struct stat st;
        if (geteuid() == 0 && stat(path, &st) == 0 && (setegid(st.st_gid) != 0 || seteuid(st.st_uid) != 0))
                return -errno;
        if (asprintf(&journal, "%s" SNAPSHOT_JOURNAL, path) < 0)
                return -ENOMEM;
        int fd = journal_open(journal);
        free(journal);
        return fd;
}

/* What happened while nobody was there to hear of it. */
static int purge(struct tool *tool)
{
        const struct options *o = &tool->options;
        const struct sardine_selector selector = {
            .sz = sizeof selector,
            .name = o->name_len ? o->name : NULL,
            .name_len = (uint32_t)o->name_len,
            .below = o->below,
            .qtype = o->type,
            .use_tag = o->tag ? 1 : 0,
            .tag = o->tag,
            .tag_len = o->tag ? (uint32_t)strlen(o->tag) : 0,
            .use_rcode = o->rcode >= 0,
            .rcode = o->rcode >= 0 ? (uint32_t)o->rcode : 0,
        };
        uint8_t record[PURGE_MAX];
        int fd = open_journal_of(o->path);
        int err = fd < 0 ? fd : journal_append(fd, record, purge_record_write(&selector, record));
        if (!err && fsync(fd) != 0)
                err = -errno;
        if (fd >= 0)
                close(fd);
        if (!err)
                return 0;
        fprintf(stderr, "sardinectl: %s" SNAPSHOT_JOURNAL ": %s\n", o->path, sardine_strerror(err));
        return EXIT_TROUBLE;
}

static const struct {
        const char *name;
        int (*run)(struct tool *tool);
} commands[] = {{"check", check}, {"list", list},       {"top", top},    {"names", names},
                {"size", size},   {"predict", predict}, {"purge", purge}};

static void usage(FILE *out)
{
        fputs("Usage: sardinectl COMMAND [OPTION]... FILE\n"
              "Look into a snapshot of a sardine cache.\n"
              "\n"
              "Commands:\n"
              "  check     read all of it, say what it is and whether anything is damaged\n"
              "  list      a line for each answer: name, type, rcode, TTL left, bytes, popularity, network, "
              "tag\n"
              "  top       the most popular questions: name, type, popularity (0..7), answers, bytes\n"
              "  names     the same order, as a list of questions for dnsperf, to warm up another cache\n"
              "  size      answers and bytes by type, and by the last two labels of the name\n"
              "  purge     have what --name, --below, --type, --rcode, --tag select left out when it is "
              "loaded\n"
              "  predict   how many bytes a cache of such answers needs; with --pcap, FILE is a capture\n"
              "\n"
              "Options:\n"
              "  -n, --name NAME      only this name\n"
              "  -b, --below          and all names below it\n"
              "  -t, --type TYPE      only this type\n"
              "  -r, --rcode RCODE    only this rcode: NOERROR, NXDOMAIN, SERVFAIL, REFUSED\n"
              "  -T, --tag TAG        only answers with this tag\n"
              "  -e, --expired        expired answers, too\n"
              "  -j, --json           list: a JSON object a line\n"
              "  -l, --limit N        at most so many lines (top and size: 20)\n"
              "  -N, --entries N      predict: for so many entries\n"
              "  -p, --pcap           predict: from a capture (pcap, pcapng; -: standard input)\n"
              "  -P, --port N         the servers' UDP port in it (53)\n"
              "  -h, --help           this text\n"
              "  -V, --version\n"
              "\n"
              "Exit status: 0 fine, 1 damaged or no snapshot, 2 wrong usage, 3 cannot be read.\n",
              out);
}

static _Noreturn void wrong(const char *what, const char *detail)
{
        fprintf(stderr, "sardinectl: %s%s%s\nTry 'sardinectl --help'.\n", what, detail ? ": " : "",
                detail ? detail : "");
        exit(EXIT_USAGE);
}

static uint64_t number(const char *text)
{
        char *end;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || value == 0)
                wrong("not a number above 0", text);
        return value;
}

static int rcode(const char *text)
{
        static const int rcodes[] = {0, 2, 3, 5};
        for (unsigned i = 0; i < 4; i++)
                if (strcasecmp(text, rcode_text((unsigned)rcodes[i])) == 0)
                        return rcodes[i];
        wrong("unknown rcode", text);
}

static void parse(int argc, char **argv, struct options *o)
{
        static const struct option options[] = {
            {"name", required_argument, NULL, 'n'},    {"below", no_argument, NULL, 'b'},
            {"type", required_argument, NULL, 't'},    {"rcode", required_argument, NULL, 'r'},
            {"tag", required_argument, NULL, 'T'},     {"expired", no_argument, NULL, 'e'},
            {"json", no_argument, NULL, 'j'},          {"limit", required_argument, NULL, 'l'},
            {"entries", required_argument, NULL, 'N'}, {"pcap", no_argument, NULL, 'p'},
            {"port", required_argument, NULL, 'P'},    {"help", no_argument, NULL, 'h'},
            {"version", no_argument, NULL, 'V'},       {0},
        };
        o->rcode = -1;
        o->port = 53;
        for (int c; (c = getopt_long(argc, argv, "n:bt:r:T:ejl:N:pP:hV", options, NULL)) != -1;) {
                switch (c) {
                case 'n':
                        o->name_len = sardine_name_from_text(optarg, o->name);
                        if (o->name_len <= 0)
                                wrong("not a domain name", optarg);
                        wire_name_fold(o->name, o->name, (size_t)o->name_len);
                        break;
                case 'b':
                        o->below = true;
                        break;
                case 't':
                        o->type = (uint16_t)ldns_get_rr_type_by_name(optarg);
                        if (o->type == 0)
                                wrong("unknown type", optarg);
                        break;
                case 'r':
                        o->rcode = rcode(optarg);
                        break;
                case 'T':
                        o->tag = optarg;
                        break;
                case 'e':
                        o->expired = true;
                        break;
                case 'j':
                        o->json = true;
                        break;
                case 'l':
                        o->limit = number(optarg);
                        break;
                case 'N':
                        o->entries = number(optarg);
                        break;
                case 'p':
                        o->pcap = true;
                        break;
                case 'P':
                        if (number(optarg) > UINT16_MAX)
                                wrong("not a port", optarg);
                        o->port = (uint16_t)number(optarg);
                        break;
                case 'h':
                        usage(stdout);
                        exit(0);
                case 'V':
                        printf("sardinectl %s\n", SARDINE_VERSION);
                        exit(0);
                default:
                        fprintf(stderr, "Try 'sardinectl --help'.\n");
                        exit(EXIT_USAGE);
                }
        }
}

static int flushed(int status)
{
        if (fflush(stdout) == 0)
                return status;
        fprintf(stderr, "sardinectl: cannot write: %s\n", strerror(errno));
        return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
        struct tool tool = {.reader = {.fd = -1}};
        parse(argc, argv, &tool.options);
        if (argc - optind != 2)
                wrong("a command and a file are needed", NULL);
        int (*run)(struct tool * tool) = NULL;
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
                if (strcmp(argv[optind], commands[i].name) == 0)
                        run = commands[i].run;
        if (!run)
                wrong("unknown command", argv[optind]);
        tool.options.path = argv[optind + 1];
        if (run == purge && !tool.options.name_len && !tool.options.type && tool.options.rcode < 0 &&
            !tool.options.tag)
                wrong("purge of what? To leave out everything, remove the file", NULL);
        if (tool.options.tag && strlen(tool.options.tag) > SARDINE_TAG_MAX)
                wrong("a tag is not so long", NULL);
        if (tool.options.pcap && run != predict)
                wrong("--pcap is for predict", NULL);
        if (tool.options.pcap)
                return flushed(predict_from_capture(&tool.options));
        const char *why;
        int err = snapshot_open(tool.options.path, &tool.reader, &why);
        if (err) {
                fprintf(stderr, "sardinectl: %s: %s\n", tool.options.path, why ? why : sardine_strerror(err));
                return err == SARDINE_ERR_SNAPSHOT ? EXIT_DAMAGED : EXIT_TROUBLE;
        }
        tool.age_known = snapshot_age(&tool.reader.header, &tool.age);
        int status = run(&tool);
        if (tool.reader.damaged && status == 0) {
                fprintf(stderr, "sardinectl: %s: damaged in %" PRIu64 " places, which were passed over\n",
                        tool.options.path, tool.reader.damaged);
                status = EXIT_DAMAGED;
        }
        snapshot_close(&tool.reader);
        return flushed(status);
}
