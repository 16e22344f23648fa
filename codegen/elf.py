# SPDX-License-Identifier: MIT
"""What a code object says of its kernels: just enough of ELF, its notes and MessagePack.

ELF: "System V ABI", chapters 4 and 5. The note: LLVM's "User Guide for AMDGPU Backend", "Code Object V3 and
Above Note Records" and "Code Object V3 Metadata". MessagePack: its specification at github.com/msgpack.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from codegen import Refused

MACHINE_AMDGPU = 224
SEGMENT_LOAD, SEGMENT_NOTE, SECTION_DYNSYM, SYMBOL_FUNCTION = 1, 4, 11, 2
NOTE_METADATA = 32


class CodeObject:
    """A linked code object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        try:
            if data[:6] != b"\x7fELF\x02\x01":
                raise Refused("is no 64-bit little-endian ELF file")
            header = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
            if header[1] != MACHINE_AMDGPU:
                raise Refused(f"is for machine {header[1]}, not for an AMD GPU ({MACHINE_AMDGPU})")
            self._segments, self._sections = (header[4], header[9]), (header[5], header[11])
            self.metadata = self._read_metadata()
            self.functions = dict(self._functions())
        except (struct.error, ArithmeticError, LookupError, ValueError, TypeError, RecursionError):
            raise Refused("is cut short or damaged") from None

    def _read_metadata(self) -> dict[str, Any]:
        for _, offset, size in self._segments_of(SEGMENT_NOTE):
            for owner, note, content in self._notes(offset, offset + size):
                if (owner, note) == (b"AMDGPU\0", NOTE_METADATA):
                    metadata = unpack(content)
                    if isinstance(metadata, dict):
                        return metadata
        raise Refused("has no metadata note")

    def _segments_of(self, wanted: int) -> Iterator[tuple[int, int, int]]:
        """Address, place in the file and bytes of the segments of a kind."""
        begin, count = self._segments
        for at in range(begin, begin + 56 * count, 56):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", self.data, at)
            if kind == wanted:
                yield address, offset, size

    def _notes(self, at: int, end: int) -> Iterator[tuple[bytes, int, bytes]]:
        while at + 12 <= end:
            owner_size, size, kind = struct.unpack_from("<III", self.data, at)
            content = at + 12 + _round_up(owner_size)
            yield self.data[at + 12 : at + 12 + owner_size], kind, self.data[content : content + size]
            at = content + _round_up(size)

    def _functions(self) -> Iterator[tuple[str, bytes]]:
        """Names of exported functions, and their code."""
        begin, count = self._sections
        headers = [
            struct.unpack_from("<IIQQQQII", self.data, at) for at in range(begin, begin + 64 * count, 64)
        ]
        for _, kind, _, _, offset, size, link, _ in headers:
            if kind == SECTION_DYNSYM:
                strings = headers[link][4]
                for at in range(offset, offset + size, 24):
                    name, info, _, _, address, length = struct.unpack_from("<IBBHQQ", self.data, at)
                    if info & 15 == SYMBOL_FUNCTION:
                        first = strings + name
                        yield (
                            self.data[first : self.data.index(b"\0", first)].decode(),
                            self._loaded(address, length),
                        )

    def _loaded(self, address: int, length: int) -> bytes:
        """The bytes of a range of addresses when the object is loaded."""
        for begin, offset, size in self._segments_of(SEGMENT_LOAD):
            if begin <= address and address + length <= begin + size:
                place = offset + address - begin
                if place + length <= len(self.data):
                    return self.data[place : place + length]
        raise IndexError


def _round_up(size: int) -> int:
    return (size + 3) & ~3


def unpack(data: bytes) -> Any:
    """The value that MessagePack encodes: maps, arrays, strings, integers, booleans and nil."""
    value, _ = _value(data, 0)
    return value


# First byte -> (kind, struct of the number that follows: a value, or how many bytes or elements).
_SIZED = {
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xCC: ("int", ">B"), 0xCD: ("int", ">H"), 0xCE: ("int", ">I"), 0xCF: ("int", ">Q"),
    0xD0: ("int", ">b"), 0xD1: ("int", ">h"), 0xD2: ("int", ">i"), 0xD3: ("int", ">q"),
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """The value at a place, and where it ends."""
    first = data[at]
    if first in _CONSTANTS:
        return _CONSTANTS[first], at + 1
    if first in _SIZED:
        kind, form = _SIZED[first]
        (number,) = struct.unpack_from(form, data, at + 1)
        return _body(data, at + 1 + struct.calcsize(form), kind, number)
    if first < 0x80 or first >= 0xE0:
        return first - (first >= 0xE0) * 0x100, at + 1
    if first < 0x90:
        return _body(data, at + 1, "map", first & 15)
    if first < 0xA0:
        return _body(data, at + 1, "array", first & 15)
    if first < 0xC0:
        return _body(data, at + 1, "text", first & 31)
    raise Refused(f"has MessagePack of type {first:#x} in its metadata")


def _body(data: bytes, at: int, kind: str, number: int) -> tuple[Any, int]:
    """The string, array or map whose first byte was read."""
    if kind == "int":
        return number, at
    if kind in ("text", "bytes"):
        content = data[at : at + number]
        if len(content) < number:
            raise IndexError
        return content.decode() if kind == "text" else content, at + number
    items = []
    for _ in range(2 * number if kind == "map" else number):
        item, at = _value(data, at)
        items.append(item)
    return dict(zip(items[::2], items[1::2])) if kind == "map" else items, at
