/* SPDX-License-Identifier: MIT
 * DNS messages over UDP out of a capture: pcap, of either byte order, and pcapng. What is in it may be
 * hostile. Fragments, TCP and encrypted transports are passed over. */
#ifndef TOOL_CAPTURE_H
#define TOOL_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
        CAPTURE_INTERFACES = 64,
};

struct capture {
        FILE *file;
        const char *error; /* why it ended; NULL: at its end */
        uint64_t packets;
        bool swapped, ng;
        unsigned n_interfaces;
        struct capture_interface {
                uint32_t link, snap;
                uint64_t ticks; /* a second */
        } interfaces[CAPTURE_INTERFACES];
        uint8_t *bytes;
        size_t room;
};

struct capture_message {
        const uint8_t *bytes; /* valid until the next one */
        size_t len;
        uint64_t ms; /* when, since 1970; 0: not known */
        uint16_t from, to;
};

/* `path` may be "-". False: it cannot be read, or is no capture; capture->error says why. */
bool capture_open(struct capture *capture, const char *path);
void capture_close(struct capture *capture);

/* The next message; false: there is none, see capture->error. */
bool capture_next(struct capture *capture, struct capture_message *message);

#endif
