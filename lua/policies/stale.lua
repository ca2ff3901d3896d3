-- SPDX-License-Identifier: MIT
-- Expired answers stand in only when they help: positive ones, and none of the bank's. Needs staleWindow.
return {
    stale_from = { negative = false, zones = { ['bank.example.'] = false } },
}
