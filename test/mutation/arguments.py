# SPDX-License-Identifier: MIT
"""Arguments of emitted kernels, as their headers say."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path


def struct_of(header: Path, name: str) -> type[ctypes.Structure]:
    """A struct of a C header: numbers of fixed size and pointers, but for structs in it."""
    found = re.search(rf"struct {name} {{(.*?)\n}};", header.read_text(), re.DOTALL)
    assert found, name
    fields: list[tuple[str, type[ctypes._SimpleCData]]] = []
    for line in re.sub(r"//.*", "", found[1]).split(";"):
        if match := re.match(r"\s*(?:const )?(?!struct)(\w+) (.*)", line, re.DOTALL):
            kind = match[1].removesuffix("_t")
            for declared in match[2].split(","):
                pointer = "*" in declared
                fields.append(
                    (declared.strip(" *"), ctypes.c_uint64 if pointer else getattr(ctypes, f"c_{kind}"))
                )
    return type(name, (ctypes.Structure,), {"_fields_": fields})
