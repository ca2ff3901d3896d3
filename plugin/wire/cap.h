/* SPDX-License-Identifier: MIT
 * A message of our own making, with TTLs cut to what this client is to see (B89). */
#ifndef WIRE_CAP_H
#define WIRE_CAP_H

#include <stddef.h>
#include <stdint.h>

/* `message` is whole and valid. An OPT has no TTL. */
void wire_cap_ttls(uint8_t *message, size_t len, uint32_t most);

#endif
