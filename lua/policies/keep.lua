-- SPDX-License-Identifier: MIT
-- The zones that everybody notices stay in the cache until they expire, however full it is, up to half of it; answers for
-- reverse names go when their turn comes, even if they are asked for again and again.
return {
    always_keep = { zones = { 'example.com.', 'example.net.' } },
    classes = { [1] = { weight = 0, zones = { 'in-addr.arpa.', 'ip6.arpa.' } } },
}
