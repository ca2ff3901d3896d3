# SPDX-License-Identifier: MIT
"""Write the fields of sardine.h's structs as X-macros, so that the Lua module knows all of them.

usage: make-fields.py HEADER > fields.h

OPTION_FIELDS(X) is X(field, kind) for what a Lua program can set in struct sardine_options, STAT_FIELDS(X) for what
it can read in struct sardine_stats, and so on. A kind is NUMBER, or FLAG when the field's comment begins with "1:".
Pointers and arrays are left out.
"""
import re
import sys

APART = {"sz", "n_split_options"}  # the latter is the length of the list
MACROS = {
    "OPTION_FIELDS": "sardine_options",
    "STAT_FIELDS": "sardine_stats",
    "SNAPSHOT_FIELDS": "sardine_snapshot_result",
}


def fields(text, struct):
    body = re.search(r"^struct %s \{(.*?)^\};" % struct, text, flags=re.S | re.M).group(1)
    found = []
    fresh = False  # the next comment is the last declaration's
    for comment, declaration in re.findall(r"/\*(.*?)\*/|([^;/]+;)", body, flags=re.S):
        if declaration:
            integers = re.fullmatch(r"\s*(?:u?int\d+_t|size_t)\s+([\w\s,]+);", declaration)
            names = re.split(r"\s*,\s*", integers.group(1).strip()) if integers else []
            found += [[name, "NUMBER"] for name in names]
            fresh = bool(names)
        elif fresh:
            if re.match(r"\s*1:", comment):
                found[-1][1] = "FLAG"
            fresh = False
    return [field for field in found if field[0] not in APART]


header = open(sys.argv[1], encoding="utf-8").read()
print("/* SPDX-License-Identifier: MIT\n * Made from sardine.h by make-fields.py: do not edit. */")
for macro, struct in MACROS.items():
    print(f"#define {macro}(X) \\")
    print(" \\\n".join(f"        X({name}, {kind})" for name, kind in fields(header, struct)))
