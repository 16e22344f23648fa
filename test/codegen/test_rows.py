# SPDX-License-Identifier: MIT
"""Rows that are wrong are refused with the row's number, and checks on all rows together hold."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, refused, run
from test_names import FWD, INSTANCES

from codegen.check import check_shadows
from codegen.ops.fmha_fwd import HDIM_SUMS
from codegen.rows import read_instances
from codegen.spec import Instance

DEFAULT = '[default.qr]\nepilogue = "store"\ncompute = "f32"\nmr = 8\nnv = 2\n'
ROW = """
[[tile]]
targets = ["x86-64-v4"]
pipeline = "qr"
bm0 = 128
bn0 = 128
efficiency = 0.8
why = "a test"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = tmp_path / "rows"
    rows.mkdir()
    shutil.copy(ROOT / "instances" / "receipts.toml", rows)
    return rows


def write(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "fmha_fwd.toml").write_text(DEFAULT + text)
    return ("--instances", str(folder), "--targets", "x86-64", "--table", "--format", "csv")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("bm0 = 128", "bm0 = 100", "bm0 = 100 is no multiple of the 32 rows of the register tile"),
        ("bm0 = 128", "bm0 = 4096", "the L2 cache of x86-64-v4 holds 1048576"),
        ("bn0 = 128", "bn0 = 512", "a strip's scores take 65536 bytes, the L1 cache of x86-64-v4 32768"),
        ("bm0 = 128", "bm0 = 128\nmr = 16", "35 vector registers, x86-64-v4 has 32"),
        ("bm0 = 128", 'bm0 = "128"', "bm0 = '128' is not of type int"),
        ("bm0 = 128", "bm0 = true", "bm0 = True is not of type int"),
        ("bm0 = 128", "bm0 = 0", "bm0, bn0, mr, nv must be positive"),
        ("bm0 = 128", "bm0 = 128\nahead = 2", "ahead = 2 is none of 1 and, in pipeline 'decode', 2 and 3"),
        (
            'pipeline = "qr"',
            'pipeline = "decode"\nepilogue = "store"\ncompute = "f32"\nmr = 4\nnv = 4\nahead = 3',
            "ahead = 3 is for products of bf16, not of f32",
        ),
        ("bm0 = 128", "bm0 = 128\nheads = 2", "heads = 2: more than 1 go with ahead = 2 or 3"),
        ("bm0 = 128", "bm0 = 128\nload = -1", "loads -1, and of caches (0, 0, 0), are 0 at least"),
        ("bm0 = 128", "bm0 = 128\nload_int8 = 0.1", "and these of pipeline 'decode'"),
        ("bm0 = 128", "bm0 = 128\nload = 5.0", "load = 5.0 leaves no time for products"),
        ("bm0 = 128", "bm1 = 128", "unknown field 'bm1'; there is: targets, pipeline,"),
        ("bm0 = 128\n", "", "field bm0 is missing"),
        ("0.8", "1.8", "0 < efficiency <= 1"),
        ('"a test"', '""', "why is empty"),
        ('"x86-64-v4"', '"z80"', "unknown target 'z80'; there is: portable,"),
        ('["x86-64-v4"]', "[]", "targets must be a list of at least one target"),
        ("bm0 = 128", 'bm0 = 128\ncompute = "f64"', "compute 'f64' is none of f32, bf16"),
        ("bm0 = 128", 'bm0 = 128\ncompute = "bf16"', "compute 'bf16' is none of f32, which x86-64-v4 has"),
        ("bm0 = 128", 'bm0 = 128\nserves = "dtype=fp99"', "unknown dtype 'fp99'"),
        ("bm0 = 128", 'bm0 = 128\nserves = "bm0=5"', "unknown field 'bm0'; there is: hdim,"),
        (
            "bm0 = 128",
            'bm0 = 128\nserves = "dtype=fp16 qscale=mx"',
            "leaves nothing that compute = 'f32' can",
        ),
        (
            '["x86-64-v4"]\npipeline = "qr"',
            '["x86-64-v4-amx"]\npipeline = "qr"\ncompute = "bf16x2"',
            "which only pipeline 'qr_tile' makes",
        ),
        (
            '["x86-64-v4"]\npipeline = "qr"',
            '["x86-64-v4-bf16"]\npipeline = "qr_tile"\nepilogue = "store"\ncompute = "bf16"\nmr = 32\nnv = 2',
            "is made of tile registers, x86-64-v4-bf16 has none",
        ),
        (
            '["x86-64-v4"]\npipeline = "qr"',
            '["x86-64-v4-amx"]\npipeline = "qr_tile"\nepilogue = "store"\ncompute = "bf16"\nmr = 16\nnv = 2',
            "qr_tile has mr = 32, nv = 1 or 2",
        ),
    ],
)
def test_a_wrong_row_is_refused(folder: Path, old: str, new: str, says: str) -> None:
    assert old in ROW
    message = refused(*write(folder, ROW.replace("128", "64") + ROW.replace(old, new)))
    assert says in message
    assert f"{folder / 'fmha_fwd.toml'}: tile 2: " in message


def test_a_wrong_file_is_refused(folder: Path) -> None:
    assert "fmha_fwd.toml" in refused(*write(folder, "[[tile]\n"))
    assert "unknown table 'tiles'; there is: default, tile" in refused(
        *write(folder, ROW.replace("tile", "tiles"))
    )


def test_lists_in_a_row_stand_for_one_row_each(folder: Path) -> None:
    lists = ROW.replace("bm0 = 128", "bm0 = [32, 128]").replace("0.8", "[0.8]")
    lists = lists.replace('"x86-64-v4"', '"x86-64-v4-bf16", "x86-64-v4"')
    lines = run(*write(folder, lists.replace("32, 128", "128, 32"))).lines[1:]
    assert [line.split(",")[0] for line in lines] == [
        f"fmha_fwd__x86_64_{target}_b{bm0}x128x16_w1_qr" for target in ("v4", "v4_bf16") for bm0 in (128, 32)
    ]


def test_a_name_says_what_differs_from_the_default_and_what_is_compiled(folder: Path) -> None:
    row = ROW.replace(
        "bm0 = 128", 'bm0 = 128\nmr = 4\nserves = "hdim=192x128 dtype=bf16 mode=batch mask=mask"'
    )
    (line,) = run(*write(folder, row)).lines[1:]
    assert line.startswith("fmha_fwd_d192x128_bf16_batch_mask__x86_64_v4_b128x128x16_w1_qr_mr4,")


def test_the_reason_of_a_row_stands_alone() -> None:
    """It is shown without the rows around it."""
    elsewhere = re.compile(r"\b(above|below)\b|^as ")
    assert not [i.name for i in INSTANCES if elsewhere.search(i.tile.why)]


def test_two_rows_of_one_name_are_refused(folder: Path) -> None:
    row = ROW.replace("why", 'serves = "dtype=%s"\nwhy')
    both = row % "fp16|bf16" + row % "fp32|fp16"
    message = refused(*write(folder, both))
    assert "two rows are named fmha_fwd_nqscale__x86_64_v4_b128x128x16_w1_qr" in message


def test_a_long_name_is_refused(folder: Path) -> None:
    serves = (
        "hdim=192x128 dtype=fp8bf16 mode=group vlayout=r pad=psskddv logits=no bias=alibi mask=mask lse=yes"
    )
    message = refused(*write(folder, ROW.replace("why", f'serves = "{serves} lse=yes dropout=yes"\nwhy')))
    assert re.search(r"has 1\d\d characters; the limit is 96", message)


@pytest.mark.parametrize(
    ("bm0", "efficiency", "refuses"),
    [
        (128, 0.7, True),  # the same block, slower
        (128, 0.9, True),  # then it is the first that is never chosen
        (64, 0.5, False),  # slower, but makes more tasks
        (256, 0.9, False),  # faster on long ones
        (256, 0.3, False),  # slow, but at the least head dims softmax is all
    ],
)
def test_a_row_that_is_never_chosen_is_refused(
    folder: Path, bm0: int, efficiency: float, refuses: bool
) -> None:
    other = ROW.replace("bm0 = 128", f"bm0 = {bm0}").replace("0.8", f"{efficiency}")
    # Of one name they would be refused for that: the second one's epilogue makes it another.
    other = other.replace("pipeline", 'epilogue = "quant"\npipeline')
    arguments = write(folder, ROW + other)
    if refuses:
        assert "would never be chosen" in refused(*arguments)
    else:
        assert run(*arguments).code == 0


def test_a_row_that_serves_a_part_is_compared_with_one_that_serves_all(folder: Path) -> None:
    part = ROW.replace("why", 'serves = "dtype=fp16"\nwhy')
    assert "fp16__x86_64_v4_b128x128x16_w1_qr would never be chosen" in refused(*write(folder, ROW + part))
    assert run(*write(folder, ROW + part.replace("0.8", "0.85"))).code == 0


def cost(instance: Instance, rows: int, keys: int, hdims: int, units: int) -> float:
    """The formula of runtime/ops/fmha_fwd_cost_cpu.c, without parts of keys."""
    tile = instance.tile
    whole, rest = divmod(rows, tile.bm0)
    tasks = -(-rows // tile.bm0)
    loads = whole * tile.count_loads(tile.bm0) + (tile.count_loads(rest) if rest else 0)
    step, keys_step = tile.row_step(instance.target), tile.register_tile(instance.target)["n"]
    rows, keys = -(-rows // step) * step, -(-keys // keys_step) * keys_step
    product = 1 / instance.macs_per_cycle - tile.count_loads(tile.bm0) * tile.load / tile.bm0
    of_row = hdims * product + instance.tile_cycles / (tile.bm0 * tile.bn0)
    return float(keys * (hdims * loads * tile.load + rows * of_row) / tasks * -(-tasks // units))


def test_shadowing_agrees_with_a_search_through_sizes(folder: Path) -> None:
    rows = [
        ROW.replace("bm0 = 128", f"bm0 = {bm0}\nmr = {mr}\nnv = {nv}").replace("0.8", f"{efficiency}")
        for bm0, mr, nv in ((64, 8, 2), (64, 4, 4), (64, 4, 1), (128, 8, 2), (256, 8, 1))
        for efficiency in (0.3, 0.7, 0.75)
    ]
    rows += [
        ROW.replace("bm0 = 128", f"bm0 = {bm0}\nload = {load}").replace("0.8", "0.7")
        for bm0, load in ((64, 0.2), (128, 0.5))
    ]
    write(folder, "".join(rows))
    instances = read_instances(FWD, folder, ("x86-64-v4",))
    sizes = [*range(1, 40), 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 512, 513, 1024, 1025, 4096, 4097]
    points = list(itertools.product(sizes, (1, 4, 7, 8, 128, 129), HDIM_SUMS, (1, 2, 3, 8, 16, 64)))
    found = set()
    for one, other in itertools.permutations(instances, 2):
        never_worse = all(cost(one, *point) <= cost(other, *point) for point in points)
        if FWD.shadows(one, other):
            assert never_worse, (one.tile, other.tile)
        elif (one.tile.bm0, one.tile.load) == (other.tile.bm0, other.tile.load):
            assert not never_worse, (one.tile, other.tile)
        found.add((FWD.shadows(one, other), one.tile.bm0 == other.tile.bm0))
    assert {(True, True), (False, True), (False, False)} <= found


def test_the_rows_of_this_checkout_pass() -> None:
    check_shadows(FWD, INSTANCES)
