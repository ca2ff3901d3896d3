-- SPDX-License-Identifier: MIT
-- The zones that everybody notices stay in the cache until they expire, however full it is; reverse names go first.
return {
    always_keep = { zones = { 'example.com.', 'example.net.' } },
    classes = { [1] = { weight = 0, zones = { 'in-addr.arpa.', 'ip6.arpa.' } } },
}
