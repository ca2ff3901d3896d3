-- SPDX-License-Identifier: MIT
-- Filtered and unfiltered clients in one cache. Clients of a filtered network never see what was fetched for others,
-- nor the other way round. A rule of dnsdist may name the tenant as well: setTag('tenant', 'acme').
return {
    tags = {
        clients = { ['127.0.0.2/31'] = 'filtered', ['2001:db8:100::/40'] = 'filtered' },
        host = { 'tenant' },
    },
}
