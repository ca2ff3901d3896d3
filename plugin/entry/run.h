/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: the runs of a body, and their records. Entries are our own: nothing is checked. */
#ifndef ENTRY_RUN_H
#define ENTRY_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "entry/view.h"
#include "wire/rdata.h"

/* The head byte of a run in a general body. */
enum run_head {
        RUN_SECTION = 0x03,
        RUN_OWNER = 0x0c,
        RUN_OWNER_QUESTION = 0x00,
        RUN_OWNER_PREVIOUS = 0x04,
        RUN_OWNER_NAME = 0x08,
        RUN_TYPE = 0x10,
        RUN_DELTA = 0x20,
        RUN_COUNT = 0x40,
};

/* Adjacent records of one section with the same owner, type and TTL. */
struct entry_run {
        const uint8_t *owner; /* stored name; NULL: the question's */
        const uint8_t *rdata; /* of the first record */
        uint32_t delta;
        uint32_t count; /* > 0 */
        uint16_t type;
        uint8_t section; /* enum wire_section */
};

struct run_walk {
        const uint8_t *p;
        uint32_t left; /* runs still to come */
        uint16_t qtype;
        bool simple;
};

void run_walk_init(struct run_walk *walk, const struct entry_view *view);

/* The next run; walk->left must be above 0. `run` is the one before, if any. Afterwards walk->p is to be
 * moved past the run's records, with rdata_skip() or by rendering them. */
void run_walk_next(struct run_walk *walk, struct entry_run *run);

/* What comes after the rdata at p. */
const uint8_t *rdata_skip(const struct rdata_shape *shape, const uint8_t *p);

#endif
