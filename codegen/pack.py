# SPDX-License-Identifier: MIT
"""Packs: the code objects of one operation and target in one file, which runtime/device/pack.c reads.

Numbers are little-endian; names are padded with zero bytes, of which there is at least one.

    at    bytes  head
    0     8      "TSRPACK2"
    8     32     operation: "fmha_fwd"
    40    32     target: "gfx942"
    72    4      number of entries
    76    4      CRC-32 of all entries
    80    8      the interface of its kernels, which must be that of the library
    88    144 each, in ascending order of the symbols' bytes
    at    bytes  entry
    0     120    symbol of the kernel
    120   8      where its code object begins, counted from the beginning of the pack; a multiple of 64
    128   4      bytes that it takes there
    132   4      bytes of the code object
    136   4      method: 0 stored, 1 zlib
    140   4      CRC-32 of the code object, unpacked

Code objects follow in the order of the entries, with zero bytes up to where each begins. Nothing but what is
in a pack and the version of zlib decide on its bytes: files come in any order.

    python -m codegen.pack --op fmha_fwd --target gfx942 --out fmha_fwd_gfx942.pack OBJECT.co ...
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import sys
import zlib
from pathlib import Path

from codegen import Refused
from codegen.spec import symbol_of

ROOT = Path(__file__).resolve().parents[1]
MAGIC = b"TSRPACK2"
HEAD = struct.Struct("<8s32s32sIIQ")
ENTRY = struct.Struct("<120sQIIII")
STORED, ZLIB = 0, 1
ALIGNMENT = 64


def interface() -> int:
    """A hash of the headers that say what the library passes to kernels.

    A pack of other headers would read other arguments than those that it is given.
    """
    hasher = hashlib.blake2b(digest_size=8)
    for header in sorted((ROOT / "include/tessera/kernel").glob("*.h")):
        hasher.update(header.name.encode() + b"\0" + header.read_bytes() + b"\0")
    return int.from_bytes(hasher.digest(), "little")


def pack(op: str, target: str, objects: dict[str, bytes]) -> bytes:
    """The bytes of a pack of code objects by their symbols."""
    entries, data = b"", b""
    begin = HEAD.size + len(objects) * ENTRY.size
    for symbol, plain in sorted((_name(symbol, 120), plain) for symbol, plain in objects.items()):
        packed = zlib.compress(plain)  # level 9 takes PTX four times as long, and makes 3 % less of it
        method, stored = (ZLIB, packed) if len(packed) < len(plain) else (STORED, plain)
        data += bytes(-(begin + len(data)) % ALIGNMENT)
        entries += ENTRY.pack(symbol, begin + len(data), len(stored), len(plain), method, zlib.crc32(plain))
        data += stored
    head = HEAD.pack(MAGIC, _name(op, 32), _name(target, 32), len(objects), zlib.crc32(entries), interface())
    return head + entries + data


def _name(name: str, size: int) -> bytes:
    encoded = name.encode("ascii")
    if not 0 < len(encoded) < size:
        raise Refused(f"name '{name}' has {len(encoded)} bytes; a pack has room for 1 to {size - 1}")
    return encoded


def read_objects(files: list[Path]) -> dict[str, bytes]:
    """Code objects by the symbols of the instances that the files are named after."""
    objects: dict[str, bytes] = {}
    for file in files:
        symbol = symbol_of(file.stem)
        if symbol in objects:
            raise Refused(f"{file}: there are two code objects of {symbol}")
        try:
            objects[symbol] = file.read_bytes()
        except OSError as error:
            raise Refused(f"cannot read {file}: {error.strerror}") from None
    return objects


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(
        prog="codegen.pack", description="Packs code objects.", allow_abbrev=False
    )
    parser.add_argument("--op", required=True, help="operation")
    parser.add_argument("--target", required=True, help="target")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the pack")
    parser.add_argument("objects", nargs="*", type=Path, metavar="OBJECT.co", help="named after its instance")
    options = parser.parse_args(arguments)
    try:
        objects = read_objects(options.objects)
        options.out.write_bytes(pack(options.op, options.target, objects))
    except Refused as refused:
        print(f"codegen.pack: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"codegen.pack: cannot write {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
