# SPDX-License-Identifier: MIT
"""Structs of C headers in ctypes."""

from __future__ import annotations

import ctypes
import re
from typing import Any


def struct_of(header: str, name: str) -> type[ctypes.Structure]:
    """The ctypes form of a struct of a header, so that its fields are written in one place."""
    scalars = {
        "size_t": ctypes.c_size_t,
        "int32_t": ctypes.c_int32,
        "int64_t": ctypes.c_int64,
        "uint64_t": ctypes.c_uint64,
        "float": ctypes.c_float,
    }
    found = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.S)
    assert found
    fields: list[tuple[str, Any]] = []
    for line in re.sub(r"//.*", "", found[1]).split(";"):
        words = line.replace("const ", "").split(None, 1)
        if not words:
            continue
        for declarator in words[1].split(","):
            pointer = "*" in declarator
            kind = ctypes.c_void_p if pointer else scalars.get(words[0], ctypes.c_int)
            fields.append((declarator.replace("*", "").strip(), kind))
    return type(name, (ctypes.Structure,), {"_fields_": fields})
