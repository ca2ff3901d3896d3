/* SPDX-License-Identifier: MIT
 * The methods of a cache that deal with snapshots. */
#ifndef LUA54_SNAPSHOT_H
#define LUA54_SNAPSHOT_H

#include "lua54/cache.h"

extern const struct method snapshot_methods[];

#endif
