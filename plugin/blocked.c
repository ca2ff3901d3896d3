/* SPDX-License-Identifier: MIT
 * Removing what a list names, by name and by content (B90): the list is compiled once, the cache is gone over
 * once. ENTRY_LAYOUT: rdata of addresses and aliases. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "entry/page.h"
#include "entry/run.h"
#include "entry/stored.h"
#include "policy/names.h"
#include "policy/subnets.h"
#include "policy/suffixes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/response.h"

struct blocked {
        struct store_purge purge;
        struct suffixes names;
        struct subnets networks;
};

static int add_line(struct blocked *list, const char *text, size_t len)
{
        char copy[POLICY_NAME_TEXT];
        uint8_t name[255];
        struct subnet net;
        if (len >= sizeof copy)
                return -EINVAL;
        memcpy(copy, text, len);
        copy[len] = '\0';
        if (subnet_from_text(copy, &net))
                return subnets_add(&list->networks, &net, 1) ? 0 : -ENOMEM;
        size_t name_len = policy_name_from_text(copy, len, name);
        if (name_len == 0)
                return -EINVAL;
        return suffixes_put(&list->names, name, name_len) ? 0 : -ENOMEM;
}

static int read_lines(struct blocked *list, const char *text, size_t len)
{
        static const char blank[] = " \t\r\n";
        for (const char *p = text, *end = text + len; p < end;) {
                const char *line_end = memchr(p, '\n', (size_t)(end - p));
                if (!line_end)
                        line_end = end;
                const char *comment = memchr(p, '#', (size_t)(line_end - p)),
                           *stop = comment ? comment : line_end;
                while (p < stop && memchr(blank, *p, sizeof blank - 1))
                        p++;
                while (stop > p && memchr(blank, stop[-1], sizeof blank - 1))
                        stop--;
                int err = p < stop ? add_line(list, p, (size_t)(stop - p)) : 0;
                if (err)
                        return err;
                p = line_end + 1;
        }
        return subnets_finish(&list->networks) ? 0 : -ENOMEM;
}

static bool name_blocked(const struct blocked *list, const uint8_t *name, size_t len)
{
        return suffixes_find(&list->names, name, len) != SUFFIX_NONE;
}

static bool record_blocked(const struct blocked *list, const uint8_t *entry, uint16_t type,
                           const uint8_t *rdata)
{
        uint8_t name[255];
        switch (type) {
        case DNS_A:
                return subnets_find(&list->networks, rdata, 4);
        case DNS_AAAA:
                return subnets_find(&list->networks, rdata, 16);
        case DNS_CNAME:
        case DNS_DNAME: {
                size_t len = stored_name_expand(entry, rdata, name);
                wire_name_fold(name, name, len);
                return name_blocked(list, name, len);
        }
        default:
                return false;
        }
}

static bool content_blocked(const struct blocked *list, const struct entry_view *view)
{
        struct run_walk walk;
        struct entry_run run = {.owner = NULL};
        if (!view->body)
                return false;
        run_walk_init(&walk, view);
        while (walk.left > 0) {
                run_walk_next(&walk, &run);
                if (run.section != WIRE_ANSWER)
                        return false;
                const struct rdata_shape *shape = rdata_shape(run.type);
                for (uint32_t i = 0; i < run.count; i++, walk.p = rdata_skip(shape, walk.p))
                        if (record_blocked(list, view->entry, run.type, walk.p))
                                return true;
        }
        return false;
}

static bool dooms(const struct store_purge *purge, const uint8_t *entry)
{
        const struct blocked *list = (const struct blocked *)purge;
        struct entry_view view;
        uint8_t name[255];
        entry_view_init(&view, entry);
        if (list->names.count && name_blocked(list, name, entry_view_qname(&view, name)))
                return true;
        if (!view.page)
                return content_blocked(list, &view);
        /* A page goes as a whole: better one fetch too many than an answer too few removed. */
        struct page_view page;
        page_view_init(&page, entry);
        for (unsigned i = 0; i < page.count; i++) {
                struct entry_view answer;
                entry_view_init(&answer, page_answer(&page, i));
                if (content_blocked(list, &answer))
                        return true;
        }
        return false;
}

static void release(struct store_purge *purge)
{
        struct blocked *list = (struct blocked *)purge;
        suffixes_fini(&list->names);
        subnets_fini(&list->networks);
        free(list);
}

int64_t sardine_expunge_list(sardine_cache *cache, const char *text, size_t len)
{
        if (!cache || (len && !text))
                return -EINVAL;
        struct blocked *list = calloc(1, sizeof *list);
        if (!list)
                return -ENOMEM;
        list->purge.dooms = dooms;
        list->purge.release = release;
        uint64_t seed;
        memcpy(&seed, cache->secret, sizeof seed);
        suffixes_init(&list->names, seed);
        int err = read_lines(list, text, len);
        if (!err) {
                /* No record of a purge can say that: the snapshot is void until there is a new one. */
                const struct snapshot_purge everything = {.vague = true};
                int64_t removed = (int64_t)cache_purge(cache, &list->purge, &everything);
                sardine_snapshot_request(cache);
                return removed;
        }
        release(&list->purge);
        return err;
}
