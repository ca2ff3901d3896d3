/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see run.h. */
#include "entry/run.h"

#include "entry/header.h"
#include "entry/stored.h"
#include "wire/bytes.h"
#include "wire/response.h"

void run_walk_init(struct run_walk *walk, const struct entry_view *view)
{
        walk->p = view->body;
        walk->qtype = view->qtype;
        walk->simple = view->flags & ENTRY_SIMPLE;
        walk->left = walk->simple ? 1 : varint_get(&walk->p);
}

void run_walk_next(struct run_walk *walk, struct entry_run *run)
{
        const uint8_t *p = walk->p;
        uint8_t head = RUN_OWNER_QUESTION | WIRE_ANSWER;
        if (!walk->simple)
                head = *p++;

        run->section = head & RUN_SECTION;
        if ((head & RUN_OWNER) == RUN_OWNER_NAME) {
                run->owner = p;
                p = stored_name_skip(p);
        } else if ((head & RUN_OWNER) == RUN_OWNER_QUESTION) {
                run->owner = NULL;
        }
        run->type = walk->qtype;
        if (head & RUN_TYPE) {
                run->type = *p++;
                if (run->type == 0) {
                        run->type = get_be16(p);
                        p += 2;
                }
        }
        run->delta = head & RUN_DELTA ? varint_get(&p) : 0;
        run->count = head & RUN_COUNT ? varint_get(&p) : 1;
        if (walk->simple)
                run->count = *p++;
        run->rdata = p;
        walk->p = p;
        walk->left--;
}

const uint8_t *rdata_skip(const struct rdata_shape *shape, const uint8_t *p)
{
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                switch (field->kind) {
                case RDATA_FIXED:
                        p += field->size;
                        break;
                case RDATA_STRING:
                        p += *p + 1u;
                        break;
                case RDATA_NAME:
                        p = stored_name_skip(p);
                        break;
                case RDATA_REST: {
                        uint32_t len = varint_get(&p);
                        p += len;
                        break;
                }
                }
        }
        return p;
}
