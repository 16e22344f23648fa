# SPDX-License-Identifier: MIT
"""One module an operation, which is all that makes it known.

A module without operation() is what several share.
"""

from __future__ import annotations

import importlib
import pkgutil

from codegen import Refused, unknown
from codegen.spec import Operation

# CK's --mask: how names spell masks.
MASKS = ("simplified", "generic")


def operations(mask: str = "simplified") -> dict[str, Operation]:
    """The operations by the words of --api. `mask` is CK's spelling of masks in names."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        make = getattr(importlib.import_module(f"{__name__}.{module.name}"), "operation", None)
        if make:
            operation: Operation = make(mask)
            found[operation.api] = operation
    return found


def parse_apis(text: str, mask: str) -> list[Operation]:
    """The operations of a comma list. Those that are parts of another stand before it."""
    if mask not in MASKS:
        raise Refused(unknown("mask", mask, MASKS))
    known = operations(mask)
    chosen = []
    for word in text.split(","):
        if word not in known:
            raise Refused(f"api '{word}' is unknown; there is: {', '.join(known)}")
        if known[word] in chosen:
            raise Refused(f"api '{word}' is named twice")
        chosen += [*known[word].parts, known[word]]
    return chosen
