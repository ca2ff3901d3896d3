/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see view.h. */
#include "entry/view.h"

#include "entry/header.h"
#include "entry/key.h"
#include "entry/run.h"
#include "entry/stored.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/response.h"

/* What the ext byte announces, before and after the name. */
static const uint8_t *view_ext_key(struct entry_view *view, const uint8_t *p)
{
        view->ext = *p++;
        if (view->ext & EXT_RCODE)
                view->rcode = *p++;
        if (view->ext & EXT_EXTRA) {
                view->extra_len = *p++;
                view->extra = p;
                p += view->extra_len;
        }
        if (view->ext & EXT_PAGE) {
                view->page_code = *p;
                view->page_number = get_be16(p + 1);
                p += 1 + PAGE_NUMBER;
        }
        return p;
}

static const uint8_t *view_ext_answer(struct entry_view *view, const uint8_t *p)
{
        if (view->ext & EXT_SCOPES) {
                uint8_t count = *p++;
                view->scopes_count = count & SCOPES_COUNT;
                view->scopes = p;
                p += (size_t)SCOPE_ITEM * view->scopes_count;
                if (count & SCOPES_NO_ANSWER) {
                        view->no_answer = true;
                        return NULL;
                }
        }
        if (view->ext & EXT_EDE) {
                view->ede_count = *p++;
                view->ede = p;
                for (unsigned i = 0; i < view->ede_count; i++) {
                        p += 2;
                        uint32_t text = varint_get(&p);
                        p += text;
                }
        }
        if (view->ext & EXT_POLICY) {
                uint8_t policy = *p++;
                view->class = policy & POLICY_BYTE_CLASS;
                if (policy & POLICY_BYTE_GROUP) {
                        view->group_len = *p++;
                        view->group = p;
                        p += view->group_len;
                }
        }
        return p;
}

void entry_view_init(struct entry_view *view, const uint8_t *entry)
{
        const uint8_t *p = entry + ENTRY_HEADER;
        *view = (struct entry_view){
            .entry = entry,
            .size = entry_size(entry),
            .qtype = entry[ENTRY_AT_TYPE],
            .flags = entry[ENTRY_AT_FLAGS],
        };
        if (entry[ENTRY_AT_SIZE] == 0)
                p += ENTRY_SIZE32;
        if (view->qtype == 0) {
                view->qtype = get_be16(p);
                p += 2;
        }
        if (view->flags & ENTRY_EXT)
                p = view_ext_key(view, p);
        view->name = p;
        p = stored_name_skip(p);
        if (view->ext & EXT_PAGE) {
                view->no_answer = true;
                view->page = entry + (((size_t)(p - entry) + ENTRY_ALIGN - 1) & ~(size_t)(ENTRY_ALIGN - 1));
        } else {
                view->body = view->flags & ENTRY_EXT ? view_ext_answer(view, p) : p;
        }
}

size_t entry_view_qname(const struct entry_view *view, uint8_t name[255])
{
        return stored_name_expand(view->entry, view->name, name);
}

bool entry_view_is_failure(const struct entry_view *view)
{
        return (view->rcode != DNS_NOERROR && view->rcode != DNS_NXDOMAIN) || (view->ext & EXT_TRUNCATED);
}

bool entry_view_has_answer_records(const struct entry_view *view)
{
        struct run_walk walk;
        struct entry_run run = {.owner = NULL};
        if (view->body == NULL)
                return false;
        run_walk_init(&walk, view);
        if (walk.left == 0)
                return false;
        run_walk_next(&walk, &run);
        return run.section == WIRE_ANSWER;
}
