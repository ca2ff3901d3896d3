-- SPDX-License-Identifier: MIT
-- Names that are never cached: a list in a file beside this one, one name a line, and two types.
return {
    never_store = { zones = list 'never.txt', types = { 'ANY', 'TYPE65280' } },
}
