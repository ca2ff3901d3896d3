/* SPDX-License-Identifier: MIT
 * Epochs: when may memory that readers may still be reading be used again? One domain for the whole process.
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H

#include <stdint.h>

/* Reader sections. Threads need no registration. A section may not nest. */
void epoch_enter(void);
void epoch_leave(void);

/* Something was made unreachable just now: the tag under which to remember it. */
uint64_t epoch_retire(void);

/* What was retired under a tag below this is out of every reader's reach. Never waits. */
uint64_t epoch_horizon(void);

/* A few random bits for the calling thread: cheap, not good. */
uint32_t epoch_dice(void);

#endif
