-- SPDX-License-Identifier: MIT
-- Against floods of random names: negative answers live for 30 seconds at most and take a tenth of the cache; long first
-- labels that look like nothing but letters and digits are not kept at all when there is no such name.
return {
    ttl = { rcodes = { NXDOMAIN = { at_most = 30 } } },
    shares = { negative = 10 },
    store = function(q, r)
        if r.negative then
            local label = q.qname:label(1)
            if label and #label >= 16 and label:find('^[%w]+$') then
                return false
            end
        end
    end,
}
