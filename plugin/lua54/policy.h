/* SPDX-License-Identifier: MIT
 * The methods of a cache that deal with its policy. */
#ifndef LUA54_POLICY_H
#define LUA54_POLICY_H

#include "lua54/cache.h"

extern const struct method policy_methods[];

#endif
