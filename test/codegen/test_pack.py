# SPDX-License-Identifier: MIT
"""Packs say what was put into them, read back by a reader of their own."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from conftest import ROOT

from codegen import Refused
from codegen.pack import interface, main, pack
from codegen.spec import NAME_LIMIT, symbol_of

OBJECTS = {
    "tessera_k_b": b"\x7fELF" + bytes(5000),
    "tessera_k_a": random.Random(1).randbytes(300),  # does not become smaller
    "tessera_k_a_1": b"",
}


def number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def text(data: bytes, at: int, size: int) -> str:
    field = data[at : at + size]
    assert field.endswith(b"\0")
    return field.rstrip(b"\0").decode()


def read(data: bytes) -> tuple[str, str, list[tuple[str, int, bytes]]]:
    """Operation, target, and (symbol, method, code object) of each entry."""
    assert data[:8] == b"TSRPACK2" and number(data, 80, 8) == interface()
    count, found = number(data, 72, 4), []
    end = 88 + 144 * count
    assert zlib.crc32(data[88:end]) == number(data, 76, 4)
    for at in range(88, end, 144):
        begin, stored, plain, method, crc = (
            number(data, at + 120, 8),
            *(number(data, at + offset, 4) for offset in (128, 132, 136, 140)),
        )
        assert begin % 64 == 0 and begin >= end and not any(data[end:begin])
        end = begin + stored
        content = data[begin:end] if method == 0 else zlib.decompress(data[begin:end])
        assert len(content) == plain and zlib.crc32(content) == crc
        found.append((text(data, at, 120), method, content))
    assert end == len(data)
    return text(data, 8, 32), text(data, 40, 32), found


def test_what_goes_in_comes_out() -> None:
    op, target, entries = read(pack("fmha_fwd", "gfx942", OBJECTS))
    assert (op, target) == ("fmha_fwd", "gfx942")
    assert [(symbol, content) for symbol, _, content in entries] == sorted(OBJECTS.items())
    assert [method for _, method, _ in entries] == [0, 0, 1]


def test_the_order_of_the_objects_does_not_matter() -> None:
    backwards = dict(reversed(OBJECTS.items()))
    assert pack("fmha_fwd", "gfx942", OBJECTS) == pack("fmha_fwd", "gfx942", backwards)


def test_no_object_at_all() -> None:
    assert read(pack("fmha_fwd", "gfx942", {})) == ("fmha_fwd", "gfx942", [])


def test_every_symbol_that_names_allow_has_room() -> None:
    longest = symbol_of("x" * NAME_LIMIT)
    assert read(pack("o", "t", {longest: b"1"}))[2][0][0] == longest
    with pytest.raises(Refused, match="a pack has room for 1 to 119"):
        pack("o", "t", {"x" * 120: b"1"})


def test_the_interface_is_that_of_the_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = interface()
    folder = tmp_path / "include/tessera/kernel"
    shutil.copytree(ROOT / "include/tessera/kernel", folder)
    monkeypatch.setattr("codegen.pack.ROOT", tmp_path)
    assert interface() == before
    header = folder / "fmha_fwd_cuda.h"
    header.write_text(header.read_text().replace("int32_t", "int64_t", 1))
    assert interface() != before


def test_the_command_line(tmp_path: Path) -> None:
    for name, content in (("fmha_fwd_d64__gfx942_b1", b"one"), ("fmha_fwd_d128__gfx942_b1", b"two")):
        (tmp_path / f"{name}.co").write_bytes(content)
    command = [sys.executable, "-m", "codegen.pack", "--op", "fmha_fwd", "--target", "gfx942", "--out"]
    files = sorted(map(str, tmp_path.glob("*.co")))
    for out, objects in (("a.pack", files), ("b.pack", files[::-1])):
        subprocess.run([*command, str(tmp_path / out), *objects], cwd=ROOT, check=True)
    assert (tmp_path / "a.pack").read_bytes() == (tmp_path / "b.pack").read_bytes()
    assert [entry[0] for entry in read((tmp_path / "a.pack").read_bytes())[2]] == [
        "tessera_k_fmha_fwd_d128_gfx942_b1",
        "tessera_k_fmha_fwd_d64_gfx942_b1",
    ]


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--op", "fmha_fwd", "--target", "gfx942", "--out"]
    assert main([*options, str(tmp_path / "x.pack"), str(tmp_path / "no.co")]) == 1
    assert f"cannot read {tmp_path / 'no.co'}" in capsys.readouterr().err
    (tmp_path / "a.co").write_bytes(b"")
    assert main([*options, str(tmp_path / "x.pack"), str(tmp_path / "a.co"), str(tmp_path / "a.co")]) == 1
    assert "two code objects of tessera_k_a" in capsys.readouterr().err
    assert main([*options, str(tmp_path / "no" / "x.pack"), str(tmp_path / "a.co")]) == 1
    assert "cannot write" in capsys.readouterr().err
