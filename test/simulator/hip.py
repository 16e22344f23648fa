# SPDX-License-Identifier: MIT
"""libamdhip64 from Python: what tests need of the HIP runtime's binary interface."""

from __future__ import annotations

import ctypes as c
import re
import struct
from pathlib import Path

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2  # modes of capture
NONE, ACTIVE, INVALIDATED = 0, 1, 2  # its states
PER_THREAD = 2  # the handle of the thread's own stream

HEADER = Path(__file__).resolve().parents[2] / "simulator/hip/hip_api.h"
ERRORS = {
    name: int(number) for name, number in re.findall(r"(hip(?:Error\w+|Success)) = (\d+)", HEADER.read_text())
}
NAMES = {number: name for name, number in ERRORS.items()}


class PointerAttributes(c.Structure):
    """hipPointerAttribute_t."""

    _fields_ = [
        ("type", c.c_int),
        ("device", c.c_int),
        ("device_pointer", c.c_void_p),
        ("host_pointer", c.c_void_p),
        ("is_managed", c.c_int),
        ("flags", c.c_uint),
    ]


class Hip:
    """The library. Attributes are functions that return the name of their error."""

    def __init__(self, library: Path) -> None:
        self.library = c.CDLL(str(library))
        self.library.hipGetErrorName.restype = c.c_char_p
        self.library.hipGetErrorString.restype = c.c_char_p

    def __getattr__(self, name: str) -> object:
        function = getattr(self.library, "hip" + name)

        def call(*args: object) -> str:
            # Integers are pointers and sizes as often as not: all 64 bits of them.
            return NAMES[function(*(c.c_uint64(a & 2**64 - 1) if isinstance(a, int) else a for a in args))]

        return call

    def check(self, name: str, *args: object) -> None:
        """Calls a function that must succeed."""
        result = getattr(self, name)(*args)
        assert result == "hipSuccess", f"hip{name}: {result}"

    def make(self, name: str, *args: object) -> int:
        """Calls a function whose first argument points to its result."""
        out = c.c_uint64(0)
        self.check(name, c.byref(out), *args)
        return out.value

    def upload(self, data: bytes) -> int:
        """New memory with this content."""
        address = self.make("Malloc", len(data))
        self.check("Memcpy", address, data, len(data), HOST_TO_DEVICE)
        return address

    def words(self, address: int, count: int) -> list[int]:
        """Reads words of the device's memory."""
        data = c.create_string_buffer(4 * count)
        self.check("Memcpy", data, address, 4 * count, DEVICE_TO_HOST)
        return list(struct.unpack(f"{count}I", data.raw))

    def launch(
        self,
        function: int,
        params: list[object] | None = None,
        *,
        packed: bytes | None = None,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (64, 1, 1),
        shared: int = 0,
        stream: int = 0,
    ) -> str:
        """hipModuleLaunchKernel, with the arguments one by one or packed."""
        pointers = None
        if params is not None:
            pointers = (c.c_void_p * (len(params) + 1))(*(c.addressof(p) for p in params))  # type: ignore[arg-type]
        extra = None
        if packed is not None:
            size = c.c_size_t(len(packed))
            content = c.create_string_buffer(packed, max(len(packed), 1))
            extra = (c.c_void_p * 5)(1, c.addressof(content), 2, c.addressof(size), 3)
        return str(self.ModuleLaunchKernel(function, *grid, *block, shared, stream, pointers, extra))  # type: ignore[operator]
