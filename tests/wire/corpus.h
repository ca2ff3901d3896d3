/* SPDX-License-Identifier: MIT
 * Reads messages from text: one a line, "kind hex" (tests/corpus). */
#ifndef TESTS_WIRE_CORPUS_H
#define TESTS_WIRE_CORPUS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `message` is a heap block of exactly `len` bytes and is freed after the call. */
typedef void (*corpus_fn)(void *ctx, unsigned line, const char *kind, const uint8_t *message, size_t len);

/* Returns how many messages there were, 0 when the file cannot be read. */
static inline unsigned corpus_read(const char *path, corpus_fn each, void *ctx)
{
        FILE *file = fopen(path, "r");
        if (file == NULL)
                return 0;
        unsigned line = 0, messages = 0;
        char *text = NULL;
        size_t room = 0;
        while (getline(&text, &room, file) > 0) {
                line++;
                char *hex = strchr(text, ' ');
                if (hex == NULL)
                        continue;
                *hex++ = '\0';
                size_t len = strspn(hex, "0123456789abcdef") / 2;
                uint8_t *message = malloc(len > 0 ? len : 1);
                if (message == NULL)
                        abort();
                for (size_t i = 0; i < len; i++) {
                        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
                        message[i] = (uint8_t)strtoul(digits, NULL, 16);
                }
                each(ctx, line, text, message, len);
                free(message);
                messages++;
        }
        free(text);
        fclose(file);
        return messages;
}

#endif
