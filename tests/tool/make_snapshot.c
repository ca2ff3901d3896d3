/* SPDX-License-Identifier: MIT
 * Writes a snapshot of some of everything, for the tests of sardinectl. */
#include "file_kit.h"

int main(int argc, char **argv)
{
        struct kit kit;
        if (argc != 2)
                return 2;
        kit_init(&kit);
        kit_open(&kit);
        fill_variety(&kit, 5);
        for (int i = 0; i < 1000; i++)
                look(&kit, ASK("a.example.com", 1, .rd = true));
        int err = sardine_snapshot_save(kit.cache, argv[1], NULL);
        kit_close(&kit);
        return err ? 1 : 0;
}
