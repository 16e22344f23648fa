# SPDX-License-Identifier: MIT
"""The library's CK name of one call is among those that the generator spells for an instance."""

from __future__ import annotations

import itertools
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT, run
from test_names import FWD, INSTANCES
from test_table import COMPILERS

from codegen import library
from codegen.ops import operations
from codegen.ops.fmha_fwd.traits import FP8, HDIMS, MX
from codegen.space import bits, held_values, region_meet
from codegen.spec import Instance

BIASES = ("no", "bias", "alibi")
MASKS = ("no", "top_left", "bottom_right", "generic")
QSCALES = ("no", "pt", "bs", "kvbs", "mx")
FLAGS = ("no", "yes")
BY_TARGET = [list(group) for _, group in itertools.groupby(INSTANCES, lambda instance: instance.target.name)]


@dataclass
class Call:
    """One call that an instance serves."""

    instance: Instance
    dtype: str
    hdim: tuple[int, int]
    group: int
    rowmajor: int
    soft_cap: int
    bias: int
    mask: int
    lse: int
    dropout: int
    skip: int
    qscale: str
    sink: int
    seqlen: tuple[int, int]

    @property
    def line(self) -> str:
        """A line of input for print_ck_name.c."""
        tile = self.instance.tile.ck_tile(self.instance.target)
        fields = ("bm0", "bn0", "bk0", "bk1", "bn1", "bk0max", "rm0", "wm0", "wn0", "wk0", "wn1")
        numbers = [tile[field] for field in fields]
        traits = [
            *self.hdim, self.group, self.rowmajor, self.soft_cap, self.bias, self.mask, self.lse,
            self.dropout, self.skip, QSCALES.index(self.qscale), self.sink, *self.seqlen,
        ]  # fmt: skip
        return " ".join(map(str, [*numbers, self.instance.tile.pipeline, self.dtype, *traits]))

    @property
    def names(self) -> list[str]:
        """The generator's names of exactly this combination."""
        tile = self.instance.tile.ck_tile(self.instance.target)
        bucket = next(pair for pair in HDIMS if self.hdim[0] <= pair[0] and self.hdim[1] <= pair[1])
        sides = [
            "s" if self.group or self.seqlen[0] % tile["bm0"] else "",
            "sk" if self.group or self.seqlen[1] % tile["bn0"] else "",
            "d" if self.hdim[0] != bucket[0] else "",
            "dv" if self.hdim[1] != bucket[1] else "",
        ]
        box = FWD.space.box(
            hdim=[f"{bucket[0]}x{bucket[1]}" if bucket[0] != bucket[1] else f"{bucket[0]}"],
            dtype=[self.dtype],
            mode=["group" if self.group else "batch"],
            vlayout=["r" if self.rowmajor else "c"],
            pad=["p" + "".join(sides) if any(sides) else "npad"],
            logits=[FLAGS[self.soft_cap]],
            bias=[BIASES[self.bias]],
            mask=["mask" if self.mask else "no"],
            lse=[FLAGS[self.lse]],
            dropout=[FLAGS[self.dropout]],
            skip=[FLAGS[self.skip]],
            qscale=[self.qscale],
            sink=[FLAGS[self.sink]],
        )
        return list(self.instance.ck_names(region_meet(self.instance.region, (box,))))


def some_call(random_: random.Random) -> Call:
    """A call of a data type and head dims that some instance takes; all else may or may not be."""
    instance = random_.choice(random_.choice(BY_TARGET))
    dtype = random_.choice(instance.tile.dtypes)
    pair = random_.choice([HDIMS[i] for i in bits(held_values(instance.region, 0))])
    hdim = random_.choice((pair, (random_.randint(1, 256) * 2, random_.randint(1, 256) * 2)))
    bias = random_.randrange(len(BIASES))
    tile = instance.tile.ck_tile(instance.target)
    return Call(
        instance,
        dtype,
        hdim,
        random_.randrange(2),
        random_.randrange(2),
        0 if bias else random_.randrange(2),
        bias,
        random_.randrange(len(MASKS)),
        random_.randrange(2),
        random_.randrange(2),
        random_.randrange(2),
        "mx" if dtype in MX else random_.choice(("no", "pt", "bs")) if dtype in FP8 else "no",
        random_.randrange(2),
        (random_.choice((tile["bm0"] * 3, random_.randint(1, 999))), random_.choice((tile["bn0"] * 2, 77))),
    )


NO_PACKS = """#include "device/pack.h"
const struct tessera_embedded_pack tessera_embedded_packs[1];
const size_t tessera_embedded_pack_count = 0;
"""


def owner_of(file: Path) -> str:
    """The operation with the longest name that the file's begins with, as in TesseraOperations.cmake."""
    return max(
        (op.name for op in operations().values() if file.name.startswith(op.name)), key=len, default=""
    )


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_the_library_spells_the_same_names(tmp_path: Path) -> None:
    sources = [
        file
        for file in (ROOT / "runtime").rglob("*.c")
        if file.parent.name != "ops" or file.stem.startswith("attention") or owner_of(file) == "fmha_fwd"
    ]
    sources.append(tmp_path / "packs.c")
    sources[-1].write_text(NO_PACKS, encoding="utf-8")
    assert run("-f", " ", "-o", tmp_path).code == 0  # the schema is in the table, whatever its rows
    sources += [
        tmp_path / "fmha_fwd_table.c",
        tmp_path / "fmha_fwd_combine_table.c",
        tmp_path / "tessera_library.c",
    ]
    assert library.main(["--api", "fwd", "--out", str(sources[-1])]) == 0
    program = tmp_path / "print_ck_name"
    command = [
        COMPILERS[0], "-std=c11", '-DTESSERA_VERSION="0"', f"-I{ROOT / 'include'}", f"-I{ROOT / 'runtime'}",
        f"-I{tmp_path}", *map(str, sources),
        str(Path(__file__).with_name("print_ck_name.c")), "-lm", "-ldl", "-pthread", "-o", str(program),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    random_ = random.Random(11939)
    calls = [call for _ in range(6000) if (names := (call := some_call(random_)).names) and len(names) == 1]
    # The others are calls that their instance does not serve.
    assert len(calls) > 1000
    assert {call.instance.target.name for call in calls} == {group[0].target.name for group in BY_TARGET}
    assert {call.dtype for call in calls} == {
        *itertools.chain.from_iterable(i.tile.dtypes for i in INSTANCES)
    }
    told = subprocess.run(
        [program], input="\n".join(call.line for call in calls), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told == [call.names[0] for call in calls]
