/* SPDX-License-Identifier: MIT
 * What a cache would be like after the responses of a capture: they go through the library itself. */
#ifndef TOOL_TRIAL_H
#define TOOL_TRIAL_H

#include <stdint.h>

struct trial {
        uint64_t packets, messages; /* in the capture; over UDP */
        uint64_t responses;         /* of them, from the port */
        uint64_t bypassed;          /* to questions that no cache is asked */
        uint64_t refused[64];       /* by enum sardine_reason */
        uint64_t answers;           /* in the cache in the end, expired or not */
        uint64_t bytes;             /* of their entries, without the index */
        uint64_t fresh;             /* of them, in the end */
        uint64_t span_ms;           /* from the first response to the last */
        const char *error;          /* why it ended early; NULL: it did not */
};

/* Responses that came from this UDP port; `path` may be "-". 0, or a negative error: then error is set if
 * the capture is to blame. */
int trial_run(struct trial *trial, const char *path, uint16_t port);

#endif
