/* SPDX-License-Identifier: MIT
 * What the tests of policies have in common: a cache whose policy is a text. */
#ifndef POLICY_KIT_H
#define POLICY_KIT_H

#include "../cache/kit.h"

/* Load a policy from its text. Returns what sardine_policy_load() does; *why (may be NULL) gets the reason.
 */
int policy_text(struct kit *kit, const char *text, const char **why);

/* It must load. */
void policy_set(struct kit *kit, const char *text);

/* It must not; and the reason must have this in it. */
void policy_bad(struct kit *kit, const char *text, const char *reason);

struct sardine_policy_stats policy_stats(struct kit *kit);

/* The log callback of such a cache counts lines and keeps the last one. */
extern unsigned policy_lines;
extern char policy_line[1024];
void policy_open(struct kit *kit); /* kit_open(), with that callback */

/* Remove the files. */
void policy_done(void);

#endif
