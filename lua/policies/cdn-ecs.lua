-- SPDX-License-Identifier: MIT
-- Client subnets only where they matter: /24 and /56 for the names of content networks, nothing for the rest. What an
-- answer for a network says elsewhere, it says to everybody; the backend is told no more than this either.
return {
    ecs = {
        ipv4 = 0,
        ipv6 = 0,
        zones = { ['cdn.example.'] = { ipv4 = 24, ipv6 = 56 } },
    },
}
