/* SPDX-License-Identifier: MIT
 * Runs a fuzz target without libFuzzer: over files, folders of files, and text of one message a line (*.txt).
 * With -o FOLDER first, the messages are also written there, one a file: seeds for libFuzzer. */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "wire/corpus.h"

static unsigned inputs;
static const char *out;

static void run(const uint8_t *data, size_t size)
{
        LLVMFuzzerTestOneInput(data, size);
        inputs++;
        if (out == NULL)
                return;
        char path[4096];
        snprintf(path, sizeof path, "%s/%06u", out, inputs);
        FILE *file = fopen(path, "wb");
        MUST(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static void run_message(void *ctx, unsigned line, const char *kind, const uint8_t *message, size_t len)
{
        (void)ctx;
        (void)line;
        (void)kind;
        run(message, len);
}

static void run_file(const char *path)
{
        FILE *file = fopen(path, "rb");
        MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
        long size = ftell(file);
        MUST(size >= 0);
        rewind(file);
        /* exactly as large as the input, so that a sanitizer sees a step beyond */
        uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
        MUST(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size);
        fclose(file);
        run(data, (size_t)size);
        free(data);
}

static void run_path(const char *path)
{
        size_t len = strlen(path);
        DIR *folder = opendir(path);
        if (folder != NULL) {
                for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
                        if (entry->d_name[0] == '.')
                                continue;
                        char inside[4096];
                        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
                        run_file(inside);
                }
                closedir(folder);
        } else if (len > 4 && strcmp(path + len - 4, ".txt") == 0) {
                corpus_read(path, run_message, NULL);
        } else {
                run_file(path);
        }
}

int main(int argc, char **argv)
{
        int i = 1;
        if (argc > 2 && strcmp(argv[1], "-o") == 0) {
                out = argv[2];
                i = 3;
        }
        for (; i < argc; i++)
                run_path(argv[i]);
        printf("%u inputs\n", inputs);
        return inputs > 0 ? 0 : 1;
}
