/* SPDX-License-Identifier: MIT */
#include "policy_kit.h"

#include <stdio.h>
#include <unistd.h>

unsigned policy_lines;
char policy_line[1024];

static char path[64];

static void count_line(void *ctx, int level, const char *text)
{
        (void)ctx;
        (void)level;
        policy_lines++;
        snprintf(policy_line, sizeof policy_line, "%s", text);
}

void policy_open(struct kit *kit)
{
        policy_lines = 0;
        kit->options.log = count_line;
        kit_open(kit);
}

/* What sardine_policy_load() returns. */
static int load_text(struct kit *kit, const char *text, unsigned flags, char why[512])
{
        if (!*path)
                snprintf(path, sizeof path, "/tmp/sardine-policy-%d.lua", (int)getpid());
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        return sardine_policy_load(kit->cache, path, flags, why, 512);
}

void policy_set_flags(struct kit *kit, const char *text, unsigned flags)
{
        char why[512] = "";
        int err = load_text(kit, text, flags, why);
        if (err)
                fail_msg("%d: %s", err, why);
}

void policy_set(struct kit *kit, const char *text)
{
        policy_set_flags(kit, text, 0);
}

void policy_bad(struct kit *kit, const char *text, const char *reason)
{
        char why[512] = "";
        int err = load_text(kit, text, 0, why);
        if (err != -EINVAL || !strstr(why, reason))
                fail_msg("%d: \"%s\" instead of \"%s\"", err, why, reason);
}

struct sardine_policy_stats policy_stats(struct kit *kit)
{
        struct sardine_policy_stats stats = {.sz = sizeof stats};
        assert_int_equal(sardine_policy_stats_get(kit->cache, &stats), 0);
        return stats;
}

void policy_done(void)
{
        if (*path)
                unlink(path);
}

int policy_setup(void **state)
{
        kit_setup(state);
        kit.options.stale_window = 3600;
        policy_open(&kit);
        return 0;
}

int policy_teardown(void **state)
{
        kit_teardown(state);
        policy_done();
        return 0;
}
