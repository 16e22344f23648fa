# SPDX-License-Identifier: MIT
"""The metadata of code objects is read correctly; kernels that take too much are refused by name."""

from __future__ import annotations

import csv
import io
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sampling
from conftest import refused, run
from device import compile_object
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import Refused
from codegen.elf import CodeObject, unpack
from codegen.resources import main, read_resources, report

NAME = "fmha_fwd_test__gfx942_b1"
SYMBOL = "tessera_k_fmha_fwd_test_gfx942_b1"
HEAD = '#include "tessera/isa/cdna.h"\n'


def kernel(body: str, attributes: str = "WORKGROUP(256)", before: str = "") -> str:
    return f"{HEAD}{before}KERNEL {attributes} void {SYMBOL}(float *x, int n) {{\n{body}\n}}\n"


# 96 accumulators of 16 numbers are more than 512 registers hold.
SPILLING = "\n".join(
    [
        *(f"f32x16 a{i} = ((GLOBAL f32x16 *)(uint64_t)x)[{i} * 64 + lane_id()];" for i in range(96)),
        "for (int j = 0; j < n; j++) {",
        *(f"a{i} = a{i} * a{(i + 1) % 96} + (float)j;" for i in range(96)),
        "}",
        *(f"((GLOBAL f32x16 *)(uint64_t)x)[{i} * 64 + lane_id()] = a{i};" for i in range(96)),
    ]
)


def check(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The text of the build's check; empty if all is well."""
    code = main(["--target", "gfx942", str(file)])
    err = capsys.readouterr().err
    assert code == (1 if err else 0)
    return err


def test_a_kernel_within_its_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "tile[lane_id()] = x[n]; barrier(); x[lane_id()] = tile[lane_id() ^ n];"
    file = compile_object(kernel(body, before="LDS float tile[4096];\n"), tmp_path / f"{NAME}.co")
    assert check(file, capsys) == ""
    found = read_resources(file)
    assert (found.name, found.target.name, found.threads, found.lds_bytes) == (NAME, "gfx942", 256, 16384)
    assert found.vgpr_spills == found.sgpr_spills == found.scratch_bytes == 0
    assert found.waves == 4  # LDS has room for 4 workgroups of 4 waves, a wave for each of 4 SIMDs


def test_the_second_opinion_of_llvm(tmp_path: Path) -> None:
    readelf = next(
        filter(None, map(shutil.which, ("llvm-readelf", "llvm-readelf-19", "llvm-readelf-14"))), None
    )
    if readelf is None:
        pytest.skip("no llvm-readelf")
    file = compile_object(kernel(SPILLING), tmp_path / f"{NAME}.co")
    text = subprocess.run(
        [readelf, "-n", "--symbols", file], capture_output=True, text=True, check=True
    ).stdout
    said = {key: int(value) for key, value in re.findall(r"\.(\w+): +(\d+)$", text, re.M)}
    found = read_resources(file)
    assert said["vgpr_spill_count"] > 0
    assert (found.vgprs, found.agprs, found.sgprs, found.vgpr_spills, found.sgpr_spills) == tuple(
        said[key]
        for key in ("vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count")
    )
    assert (found.scratch_bytes, found.lds_bytes) == (
        said["private_segment_fixed_size"],
        said["group_segment_fixed_size"],
    )
    sizes = re.findall(rf"(\d+) FUNC .* {SYMBOL}$", text, re.M)
    assert len(found.code) == int(sizes[0])


def test_spills_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = check(compile_object(kernel(SPILLING), tmp_path / f"{NAME}.co"), capsys)
    assert re.search(rf"^{NAME}: spills [1-9]\d* VGPRs and \d+ SGPRs$", said, re.M)
    assert re.search(rf"^{NAME}: takes [1-9]\d* bytes of scratch a thread$", said, re.M)


# Rounds of a planned loop: four products, and so many sums with exponentials behind the last.
PLANNED = """
f32x16 c = 0.0f;
u32x4 a = {{1, 2, 3, (uint32_t)n}};
float y[{count}] = {{}};
for (int j = 0; j < n; j++) {{
    UNROLL
    for (int i = 0; i < 4; i++) {{
        c = pinned(mma_part_bf16(a, a, c, i % 2));
        one_after_the_other();
    }}
    UNROLL
    for (int i = 0; i < {count}; i++) y[i] = here_f32(exp2_fast(y[i] * {factor}));
    one_after_the_other();
}}
UNROLL
for (int i = 0; i < {count}; i++) x[i] = y[i];
UNROLL
for (int i = 0; i < 16; i++) x[64 * i + lane_id()] = c[i];
"""


def compile_planned(pipeline: str, count: int, factor: str, folder: Path) -> Path:
    """An instance of the pipeline, with so many sums behind the last product of a round."""
    text = kernel(PLANNED.format(count=count, factor=factor), "NO_PACKED_MATH WORKGROUP(256)")
    return compile_object(text.replace(SYMBOL, f"{SYMBOL}_{pipeline}"), folder / f"{NAME}_{pipeline}.co")


@pytest.mark.parametrize(
    ("count", "factor", "says"),
    [
        (1, "(float)n", ""),
        (4, "(float)n", r"holds the VALU port for 80 cycles at 0x\w+, behind an MFMA that leaves 28"),
        (1, "x[n]", "waits in its main loop until no load is under way"),
    ],
)
def test_broken_orders_are_refused(
    count: int, factor: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = compile_planned("qr_bundled", count, factor, tmp_path)
    assert re.fullmatch(f"{file.stem}: {says}\n" if says else "", check(file, capsys))


def test_beside_products_of_gradients_an_address_may_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = compile_planned("kr_ktr_vr_bundled", 4, "(float)n", tmp_path)
    assert re.search(
        r"holds the VALU port for 80 cycles at 0x\w+, behind an MFMA that leaves 32$", check(file, capsys)
    )


def test_a_planned_order_needs_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = f"{NAME}_qr_bundled"
    text = kernel("x[n] = 0.0f;").replace(SYMBOL, f"{SYMBOL}_qr_bundled")
    said = check(compile_object(text, tmp_path / f"{planned}.co"), capsys)
    assert said == f"{planned}: has no main loop\n"


def test_scratch_without_spills_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "volatile float here[64];\nfor (int i = 0; i < n; i++) here[i & 63] = x[i];\nx[0] = here[n & 63];"
    said = check(compile_object(kernel(body), tmp_path / f"{NAME}.co"), capsys)
    assert re.fullmatch(rf"{NAME}: takes \d+ bytes of scratch a thread\n", said)


def test_more_lds_than_there_is_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = kernel("tile[n] = 1; barrier(); x[0] = tile[lane_id()];", before="LDS float tile[24 * 1024];\n")
    file = compile_object(text, tmp_path / f"{NAME}.co", "gfx950")
    assert f"{NAME}: {file} is for gfx950, not for gfx942" in check(file, capsys)
    file.write_bytes(file.read_bytes().replace(b"amdhsa--gfx950", b"amdhsa--gfx942"))
    assert check(file, capsys) == f"{NAME}: takes 98304 bytes of LDS, gfx942 has 65536\n"


def test_an_object_of_another_kernel_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = compile_object(kernel("x[0] = 1;"), tmp_path / "fmha_fwd_other__gfx942_b1.co")
    assert f"must have the one kernel tessera_k_fmha_fwd_other_gfx942_b1; it has: {SYMBOL}" in check(
        file, capsys
    )


def test_damaged_objects_are_refused(tmp_path: Path) -> None:
    good = compile_object(kernel("x[n] = 1;"), tmp_path / f"{NAME}.co").read_bytes()
    CodeObject(good)
    for bad, says in (
        (b"", "is no 64-bit little-endian ELF file"),
        (b"\x7fELF\x01" + good[5:], "is no 64-bit little-endian ELF file"),
        (good[:18] + b"\x3e\x00" + good[20:], "is for machine 62, not for an AMD GPU"),
        (good[:40], "is cut short"),
        (good.replace(b"AMDGPU\0", b"amdgpu\0"), "has no metadata note"),
    ):
        with pytest.raises(Refused, match=says):
            CodeObject(bad)
    random_ = random.Random(5)
    refusals = 0
    for _ in range(3000):  # whatever is wrong, nothing but a refusal comes of it
        bad = bytearray(good[: random_.choice((len(good), random_.randrange(len(good))))])
        for _ in range(random_.randrange(4)):
            if bad:
                bad[random_.randrange(min(len(bad), 0x600))] = random_.randrange(256)
        try:
            CodeObject(bytes(bad))
        except Refused:
            refusals += 1
    assert refusals > 300


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(max_size=300)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=30,
)


def encode(value: object) -> bytes:
    """MessagePack, each value in the longest form that it has."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return (
            b"\xcf" + value.to_bytes(8, "big")
            if value >= 0
            else b"\xd3" + value.to_bytes(8, "big", signed=True)
        )
    if isinstance(value, str):
        text = value.encode()
        return b"\xdb" + len(text).to_bytes(4, "big") + text
    if isinstance(value, bytes):
        return b"\xc6" + len(value).to_bytes(4, "big") + value
    if isinstance(value, list):
        return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(encode, value))
    assert isinstance(value, dict)
    pairs = b"".join(encode(key) + encode(item) for key, item in value.items())
    return b"\xdf" + len(value).to_bytes(4, "big") + pairs


@settings(max_examples=500 if sampling.ALL else 30)
@given(VALUES)
def test_messagepack_of_long_forms(value: object) -> None:
    assert unpack(encode(value)) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("7f", 127), ("ff", -1), ("e0", -32), ("cc80", 128), ("cd0100", 256), ("ce00010000", 65536),
        ("d080", -128), ("d18000", -32768), ("d280000000", -(2**31)), ("a161", "a"), ("d90161", "a"),
        ("da000161", "a"), ("c40161", b"a"), ("c5000161", b"a"), ("9201a162", [1, "b"]), ("dc000101", [1]),
        ("81a16102", {"a": 2}), ("de0001a16102", {"a": 2}),
    ],
)  # fmt: skip
def test_messagepack_of_short_forms(data: str, value: object) -> None:
    assert unpack(bytes.fromhex(data)) == value


def test_the_report_says_what_a_build_lacks(tmp_path: Path) -> None:
    file = compile_object(kernel("x[n] = 1;"), tmp_path / f"{NAME}.co")
    listed = "fmha_fwd_other__gfx942_b1"
    (tmp_path / "fmha_fwd_sources.txt").write_text(f"# file\n{listed}.c\tamdgcn\tgfx942\t\t\tcdna.h\n")
    result = run("--report", tmp_path)
    assert result.code == 0 and result.lines[1].split()[-6:] == ["-"] * 6
    assert result.err.splitlines() == [
        f"generate.py: note: {listed} is not built",
        f"generate.py: note: {NAME} is left from an earlier build",
        f"generate.py: note: {NAME} has no loop with MFMA",
    ]
    (tmp_path / "fmha_fwd_sources.txt").write_text(f"{NAME}.c\tamdgcn\tgfx942\t\t\tcdna.h\n")
    assert run("--report", tmp_path).err == f"generate.py: note: {NAME} has no loop with MFMA\n"
    file.unlink()
    assert "there is no code object" in refused("--report", tmp_path)


def test_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "device" / "gfx942"
    folder.mkdir(parents=True)
    compile_object(kernel("x[n] = 1;"), folder / f"{NAME}.co")
    result = run("--report", tmp_path, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(result.out))
    assert result.code == 0 and result.err == f"generate.py: note: {NAME} has no loop with MFMA\n"
    assert (row["name"], row["target"], row["lds"], row["scratch"]) == (NAME, "gfx942", "0", "0")
    assert row["waves_per_simd"] == "8" and int(row["vgprs"]) > 0 and int(row["code"]) > 0
    assert run("--report", tmp_path).lines[0].split() == list(row)
    told: list[tuple[int, int]] = []
    report(tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(1, 1)]
    assert "there is no code object" in refused("--report", tmp_path / "nowhere")
    (folder / "x.co").write_bytes(b"junk")
    assert "x.co is no 64-bit little-endian ELF file" in refused("--report", tmp_path)
