/* SPDX-License-Identifier: MIT
 * Recount everything that the store keeps count of. */
#ifndef TESTS_STORE_AUDIT_H
#define TESTS_STORE_AUDIT_H

struct store;

/* Fails the running test at the first thing that is wrong. The caller is alone, or holds the lock. */
void audit(struct store *store);

#endif
