# SPDX-License-Identifier: MIT
"""Write sardine_abi.lua: what the Lua front has to know of the library, taken from the C headers.

usage: make-abi.py LIBRARY-PATH HEADER...
"""
import re
import sys

library, headers = sys.argv[1], [open(name, encoding="utf-8").read() for name in sys.argv[2:]]
declarations = []
defines = {}
for text in headers:
    parts = text.split("/* [cdef] */")
    if len(parts) != 3:
        sys.exit("make-abi.py: a header needs exactly two [cdef] lines")
    declarations.append(re.sub(r"/\*.*?\*/", "", parts[1], flags=re.S))
    defines.update(re.findall(r"^#define (SARDINE_\w+) +(\S+)$", text, flags=re.M))

cdef = "\n".join(line.rstrip() for line in "".join(declarations).splitlines() if line.strip())
print("-- SPDX-License-Identifier: MIT")
print("-- Made from the C headers by make-abi.py when the library was built: do not edit.")
print("return {")
print(f"    abi_version = {int(defines['SARDINE_ABI_VERSION'])},")
print(f"    version = {defines['SARDINE_VERSION']},")
print(f"    library = [==[{library}]==],")
print(f"    cdef = [==[\n{cdef}\n]==],")
print("}")
