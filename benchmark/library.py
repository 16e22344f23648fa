# SPDX-License-Identifier: MIT
"""The library through ctypes, on any device. Structs are read from its headers: fields are spelled once."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test/reference"))

from structs import struct_of  # noqa: E402

Numbers = dict[str, Any]  # by field: integers, reals and addresses


class Refused(Exception):
    """What the library says of a call that it does not do."""


class Tessera:
    """The library of a build, with a device open."""

    def __init__(self, build: Path, device: str) -> None:
        self.library = ctypes.CDLL(str(build / "libtessera.so"))
        self.library.tessera_last_error.restype = ctypes.c_char_p
        self.library.tessera_device_get_facts.restype = ctypes.c_void_p
        self.device = ctypes.c_void_p()
        self.must(self.library.tessera_device_open(device.encode(), ctypes.byref(self.device)))
        self.facts = ctypes.c_void_p(self.library.tessera_device_get_facts(self.device))

    def must(self, status: int) -> None:
        """A status of success, or else Refused."""
        if status:
            raise Refused(self.library.tessera_last_error().decode())

    def value(self, kind: str, word: str) -> int:
        """Of an enumeration, such as "mask", by its word in the headers."""
        found = ctypes.c_int()
        function = getattr(self.library, f"tessera_{kind}_from_string")
        self.must(function(word.encode(), ctypes.byref(found)))
        return found.value

    def close(self) -> None:
        """Closes the device."""
        self.library.tessera_device_close(self.device)


class Call:
    """A call of an operation. Fields that are not given are 0, or what the header's initializer says."""

    UNBOUNDED: ClassVar[Numbers] = {"window_size_left": -1, "window_size_right": -1}
    DEFAULTS: ClassVar[dict[str, Numbers]] = {"fmha_fwd": UNBOUNDED, "fmha_bwd": UNBOUNDED}

    def __init__(self, tessera: Tessera, operation: str, traits: Numbers, args: Numbers) -> None:
        header = (ROOT / f"include/tessera/{operation}.h").read_text()
        self.tessera, self.operation = tessera, operation
        self.traits, self.args = (
            self.filled(struct_of(header, f"tessera_{operation}_{part}"), numbers)
            for part, numbers in (("traits", traits), ("args", self.DEFAULTS.get(operation, {}) | args))
        )
        self.structs = (ctypes.byref(self.traits), ctypes.byref(self.args))
        self.function = self.named("")
        self.function.argtypes = [ctypes.c_void_p] * 4

    def named(self, suffix: str) -> Any:
        """A function of the operation."""
        return getattr(self.tessera.library, f"tessera_{self.operation}{suffix}")

    @staticmethod
    def filled(kind: type[ctypes.Structure], numbers: Numbers) -> ctypes.Structure:
        """The struct, with those fields."""
        unknown = set(numbers) - {name for name, _ in kind._fields_}
        if unknown:
            raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
        return kind(struct_size=ctypes.sizeof(kind), **numbers)

    def workspace_bytes(self) -> int:
        """That the call needs."""
        found = ctypes.c_size_t()
        function = self.named("_workspace_size")
        self.tessera.must(function(self.tessera.device, *self.structs, ctypes.byref(found)))
        return found.value

    def set_workspace(self, address: int, size: int) -> None:
        """Memory of the device."""
        self.args.workspace_ptr, self.args.workspace_size = address, size

    def prepare(self) -> str:
        """Loads the code; returns the name of the instance."""
        instance = ctypes.c_void_p()
        name = self.named("_instance_name")
        name.restype = ctypes.c_char_p
        self.tessera.must(self.named("_select")(self.tessera.facts, *self.structs, ctypes.byref(instance)))
        self.tessera.must(self.named("_prepare")(self.tessera.device, *self.structs))
        return str(name(instance).decode())

    def __call__(self, stream: int | None = None) -> None:
        """Puts it into the stream; on a CPU the result is there then."""
        self.tessera.must(self.function(self.tessera.device, *self.structs, stream))
