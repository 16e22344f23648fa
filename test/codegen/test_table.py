# SPDX-License-Identifier: MIT
"""The dispatch table as C: it compiles without a warning, and says what the records say."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest
from conftest import ALL_TARGETS, ROOT, run
from sampling import sample
from test_names import FWD, INSTANCES

from codegen.ops.fmha_fwd.traits import CACHE_TYPES, DTYPES, HDIMS
from codegen.receipts import read_receipts
from codegen.schema import RANGES, SET_WORDS, WORD_BITS, Trait, flag, places
from codegen.space import Region, bits
from codegen.targets import TARGETS

# What head dims are multiples of: on GPUs those of a 16-byte access, and of 8; on CPUs a byte's elements.
GPU_MULTIPLES = dict.fromkeys(("fp32", "fp16", "bf16"), 8)
GPU_MULTIPLES |= dict.fromkeys(("fp8", "fp8bf16", "fp8fp32", "mxfp8"), 16) | {"mxfp4": 32}
CPU_MULTIPLES = {dtype: 2 if dtype == "mxfp4" else 1 for dtype in DTYPES}
GOLDEN = Path(__file__).parent / "golden"
COMPILERS = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)]
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


def compile_c(compiler: str, source: Path, *arguments: object) -> None:
    command = [
        compiler,
        *WARNINGS,
        f"-I{ROOT / 'include'}",
        f"-I{source.parent}",
        str(source),
        *map(str, arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize("selection", [("-r", "all"), ("-f", " "), ("-r", "801"), ("-m", "generic")], ids=str)
def test_tables_compile(tmp_path: Path, selection: tuple[str, str]) -> None:
    assert run("--targets", ALL_TARGETS, "-o", tmp_path, *selection).code == 0
    for compiler in sample(COMPILERS, 1):
        compile_c(compiler, tmp_path / "fmha_fwd_table.c", "-c", "-o", tmp_path / "table.o")


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_the_table_says_what_the_records_say(tmp_path: Path) -> None:
    assert run("--targets", ALL_TARGETS, "-o", tmp_path).code == 0
    stubs = ['#include "tessera_fmha_fwd_table.h"']
    for i in INSTANCES:
        if i.target.kind != "cpu":
            continue
        task = "const struct tessera_fmha_fwd_cpu_problem *p, const struct tessera_fmha_fwd_cpu_task *t"
        stubs += [
            f"void {i.symbol}({task}, void *s) {{ (void)p, (void)t, (void)s; }}",
            f"void {i.symbol}_combine({task}, int32_t n, int64_t o) {{ (void)p, (void)t; (void)(n + o); }}",
            f"size_t {i.symbol}_scratch(int32_t q, int32_t v) {{ return (size_t)(q + v); }}",
        ]
    (tmp_path / "stubs.c").write_text("\n".join(stubs) + "\n")
    program = tmp_path / "print_table"
    printer = Path(__file__).with_name("print_table.c")
    compile_c(COMPILERS[0], tmp_path / "fmha_fwd_table.c", tmp_path / "stubs.c", printer, "-o", program)
    lines = subprocess.run(
        [tmp_path / "print_table"], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    numbers = {target: number for number, target in enumerate(enumerators("device.h", "TESSERA_TARGET_"))}
    slices = set()
    served = set()
    kernels = set()
    for instance in INSTANCES:
        gpu = instance.target.kind != "cpu"
        if gpu:
            kernels.add(f"kernel {instance.name} {instance.symbol} {instance.tile.threads}")
        for dtype, *others, widest in instance_traits(instance.region):
            multiple = (GPU_MULTIPLES if gpu else CPU_MULTIPLES)[dtype]
            if gpu and getattr(instance.tile, "access", 16) == 4:
                multiple = 8
            if getattr(instance.tile, "kv", "auto") != "auto" or getattr(instance.tile, "direct", False):
                multiple = 16
            most = (instance.tile.hdim_q, instance.tile.hdim_v) if gpu else (widest, widest)
            hdims = " ".join(f"{multiple} {hdim} {multiple}" for hdim in most)
            served.add(f"served {instance.name} {dtype} {' '.join(others)}  {hdims}")
            for bucket in FWD.buckets:
                if bucket <= max(most):
                    slices.add(
                        f"slice {numbers[instance.target.tag.upper()]} {DTYPES.index(dtype)} {bucket} "
                        f"{instance.name}"
                    )
    assert sorted(line for line in lines if line.startswith("served")) == sorted(served)
    assert sorted(line for line in lines if line.startswith("slice")) == sorted(slices)
    assert sorted(line for line in lines if line.startswith("kernel")) == sorted(kernels)
    rate = {instance.name: instance.macs_per_cycle for instance in INSTANCES}
    for _, group in itertools.groupby(
        (line.split() for line in lines if line.startswith("slice")), lambda x: x[1:4]
    ):
        rates = [rate[words[4]] for words in group]
        assert rates == sorted(rates, reverse=True)


def instance_traits(region: Region) -> set[tuple[Any, ...]]:
    """The traits of the C API that a region serves, combination by combination, and the widest head dim."""
    space = FWD.space
    found = set()
    for box in region:
        widest = max(max(HDIMS[i]) for i in bits(box[0]))
        held = [
            space.values(box, name) for name in "dtype mask bias qscale mode vlayout logits dropout".split()
        ]
        for dtype, masked, bias, qscale, mode, v, cap, drop in itertools.product(*held):
            for mask in ("no",) if masked == "no" else ("top_left", "bottom_right", "generic"):
                flags = [f"{int(word == yes)}" for word, yes in ((mode, "group"), (v, "r"), (cap, "yes"))]
                dropout = f"{int(drop == 'yes')}"
                found.add((dtype, mask, bias, qscale, *flags, "3", dropout, "3", "3", widest))
    return found


# --- facts that are written down in C as well


def enumerators(header: str, prefix: str, names: Container[str] | None = None) -> list[str]:
    """The enumerators of a header, or those of some names, in order, without their prefix."""
    text = (ROOT / "include" / "tessera" / header).read_text()
    pairs = re.findall(rf"^\s+{prefix}(\w+) = (\d+)", text, re.M)
    pairs = [pair for pair in pairs if names is None or pair[0] in names]
    assert [int(value) for _, value in pairs] == list(range(len(pairs)))
    return [name for name, _ in pairs]


def test_targets_are_those_of_the_header() -> None:
    names = [target.tag.upper() for target in TARGETS.values()]
    enums = enumerators("device.h", "TESSERA_TARGET_")
    assert set(enums) == set(names)
    for target in TARGETS.values():
        assert target.enum == f"TESSERA_TARGET_{target.tag.upper()}"
        assert (ROOT / "include" / "tessera" / "isa" / target.vocabulary).is_file()


def test_data_types_are_those_of_the_header() -> None:
    text = (ROOT / "include" / "tessera" / "attention.h").read_text()
    values = dict(re.findall(r"TESSERA_FMHA_(\w+) = (\d+)", text))
    assert [int(values[dtype.upper()]) for dtype in DTYPES] == list(range(len(DTYPES)))


def test_words_of_traits_are_those_of_the_runtime() -> None:
    text = (ROOT / "runtime/ops/attention.c").read_text()
    words = {trait.name: trait.words for trait in FWD.traits}
    for trait, names, prefix in (
        ("data_type", "dtypes", "FMHA_"),
        ("mask_type", "masks", "MASK_"),
        ("bias_type", "biases", "BIAS_"),
        ("qscale_type", "qscales", "QSCALE_"),
    ):
        body = re.search(rf"\b{names}\[[^]]*\] = \{{(.*?)\}};", text, re.S)
        assert body
        spelled = dict(re.findall(rf'\[TESSERA_{prefix}(\w+)\] = "(\w+)"', body[1]))
        order = enumerators("attention.h", f"TESSERA_{prefix}", spelled)
        assert tuple(spelled[name] for name in order) == words[trait]


def test_sets_lie_apart_in_their_words() -> None:
    for traits in (FWD.traits, (flag("a", "a"), *(Trait(f"t{i}", "t", ("w",) * 40) for i in range(2)))):
        taken: set[tuple[int, int]] = set()
        for trait, (word, first) in zip(traits, places(traits)):
            mine = {(word, first + i) for i in range(len(trait.words))}
            assert not taken & mine and word < SET_WORDS and max(bit for _, bit in mine) < WORD_BITS
            taken |= mine
    header = (ROOT / "include" / "tessera" / "operation.h").read_text()
    assert f"TESSERA_SET_WORDS = {SET_WORDS}, TESSERA_MAX_SIZES = {RANGES} " in header


def test_rates_of_processors_with_fp16() -> None:
    """Products of bf16 are slower there than of floats, elsewhere faster; so are blocks that go to L2."""
    rows = [i for i in INSTANCES if i.macs_per_cycle_fp16]
    assert rows and all(i.target.name == "x86-64-v4-bf16" for i in rows)
    assert all(i.compute == "bf16" or (i.compute, i.tile.pipeline) == ("f32", "decode") for i in rows)
    pairs = [i for i in rows if i.tile.pipeline == "qr"]
    floats = [i for i in INSTANCES if i.target.name == "x86-64-v4" and i.tile.pipeline == "qr"]
    assert max(i.macs_per_cycle_fp16 for i in pairs) < min(i.macs_per_cycle for i in floats)
    assert min(i.macs_per_cycle for i in pairs) > max(i.macs_per_cycle for i in floats)


def test_rates_of_caches() -> None:
    """They are in the order of tessera_kv_cache_dtype; rows that copy quantised rows have none."""
    order = enumerators("attention.h", "TESSERA_KV_", {kv.upper() for kv in CACHE_TYPES})
    assert [kv.upper() for kv in CACHE_TYPES] == order
    for tile in (i.tile for i in INSTANCES if i.target.kind == "cpu"):
        assert tile.cache_rates["auto"] == 1
        assert all((tile.cache_rates[kv] > 0) == (tile.pipeline == "decode") for kv in CACHE_TYPES[1:])
        assert all(tile.cache_loads[kv] > 0 for kv in CACHE_TYPES)
        assert bool(tile.heights) == (tile.pipeline == "decode") and tile.count_loads(1) == 1


def test_the_golden_table_is_current(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A table to be read in review. After a change: python -m pytest test/codegen --update-golden"""
    assert run("--targets", "x86-64,gfx942", "-r", "ci", "-o", tmp_path).code == 0
    for file in FWD.dispatch_files:
        if request.config.getoption("--update-golden"):
            GOLDEN.mkdir(exist_ok=True)
            shutil.copy(tmp_path / file, GOLDEN / file)
        assert (GOLDEN / file).read_text() == (tmp_path / file).read_text()


def test_receipts_are_ck_s_numbers_and_ours() -> None:
    receipts = read_receipts(ROOT / "instances")
    numbers = [receipt.number for receipt in receipts if receipt.number is not None]
    assert sorted(numbers) == [0, 1, 2, 3, 4, 100, 200, 300, 400, 600, 700, 800, 801, 888]
    assert {receipt.name for receipt in receipts if receipt.number is None} == {"all", "ci", "quickstart"}
    assert len({receipt.name for receipt in receipts}) == len(receipts)
