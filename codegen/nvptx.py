# SPDX-License-Identifier: MIT
"""Images of NVIDIA GPUs: a kernel's PTX, and its cubin where there is a ptxas to make it.

An image is the PTX, zero bytes up to a multiple of 64 of which there is at least one, and the cubin, if any.
runtime/device/driver_cuda_calls.c loads the cubin, or has the driver compile the PTX where that fails.

    python -m codegen.nvptx --target sm_90a [--ptxas PTXAS] --out NAME.co NAME.ptx

What ptxas says of registers, spills and shared memory stays beside the image, in NAME.ptxas.txt.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from codegen import Refused

ALIGNMENT = 64


def image(ptx: bytes, cubin: bytes) -> bytes:
    """The bytes of an image."""
    if b"\0" in ptx or not ptx:
        raise Refused("the PTX is empty, or no text")
    padded = ptx + bytes(ALIGNMENT - len(ptx) % ALIGNMENT)
    return padded + cubin


def parts(data: bytes) -> tuple[bytes, bytes]:
    """The PTX and the cubin of an image; either may be empty."""
    end = data.find(b"\0")
    if end < 0:
        raise Refused("the PTX has no end")
    return data[:end], data[end + ALIGNMENT - end % ALIGNMENT :]


def assemble(ptxas: str, target: str, ptx: Path) -> tuple[bytes, str]:
    """The cubin, and what ptxas says of it."""
    handle, name = tempfile.mkstemp(suffix=".cubin", prefix=f"{ptx.stem}.", dir=ptx.parent)
    os.close(handle)
    try:
        command = [ptxas, f"-arch={target}", "-v", str(ptx), "-o", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"{ptxas} fails for {ptx}\n{done.stdout}{done.stderr}".rstrip())
        return Path(name).read_bytes(), done.stdout + done.stderr
    except OSError as error:
        raise Refused(f"cannot run {ptxas}: {error.strerror}") from None
    finally:
        os.unlink(name)


def log_of(out: Path) -> Path:
    """Where what ptxas says of an image is kept."""
    return out.with_suffix(".ptxas.txt")


def make(ptx: Path, target: str, ptxas: str, out: Path) -> None:
    """Makes an image, and beside it what ptxas says."""
    try:
        text = ptx.read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {ptx}: {error.strerror}") from None
    cubin, said = assemble(ptxas, target, ptx) if ptxas else (b"", "")
    if ptxas:
        log_of(out).write_text(said, encoding="utf-8")
    else:
        log_of(out).unlink(missing_ok=True)
    out.write_bytes(image(text, cubin))


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(prog="codegen.nvptx", description="Makes images.", allow_abbrev=False)
    parser.add_argument("--target", required=True, help="what the PTX is for")
    parser.add_argument("--ptxas", default="", help="makes the cubin; without it there is none")
    parser.add_argument("--out", required=True, type=Path, metavar="NAME.co", help="the image")
    parser.add_argument("ptx", type=Path, metavar="NAME.ptx", help="of one kernel")
    options = parser.parse_args(arguments)
    try:
        make(options.ptx, options.target, options.ptxas, options.out)
    except Refused as refused:
        print(f"codegen.nvptx: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"codegen.nvptx: cannot write {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
