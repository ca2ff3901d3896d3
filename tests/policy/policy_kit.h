/* SPDX-License-Identifier: MIT
 * What the tests of policies have in common: a cache whose policy is a text. */
#ifndef POLICY_KIT_H
#define POLICY_KIT_H

#include "../cache/kit.h"

/* Load a policy from its text. It must load. */
void policy_set(struct kit *kit, const char *text);
void policy_set_flags(struct kit *kit, const char *text, unsigned flags);

/* It must not; and the reason must have this in it. */
void policy_bad(struct kit *kit, const char *text, const char *reason);

struct sardine_policy_stats policy_stats(struct kit *kit);

/* The log callback of such a cache counts lines and keeps the last one. */
extern unsigned policy_lines;
extern char policy_line[1024];
void policy_open(struct kit *kit); /* kit_open(), with that callback */

/* Remove the files. */
void policy_done(void);

/* With the kit's own cache, whose answers may be stale for an hour. */
int policy_setup(void **state);
int policy_teardown(void **state);

#endif
