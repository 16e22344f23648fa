#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes s_waitcnt, s_barrier and s_nop out of kernels, one at a time: does the simulator's sanitizer notice?

    waits.py fmha_fwd_d128_bf16__gfx942_b128x64x128_w4_qr.co ...   emitted kernels
    waits.py build/device --nops 1                                 s_nops of one kernel a target
    waits.py programs --arch gfx942 --level -O2                    programs compiled from C

An s_waitcnt or s_barrier becomes s_nop 0. An s_nop changes places with the instruction behind it, which so
comes earlier; where a branch leads to that, or another s_nop follows, it becomes s_nop 0. A mutant is
noticed if some order and landing gives a report or another result, or if the build's checks of planned main
loops refuse it: not each of the barriers that keep waves in step guards something. Reasons why one is not:
the runs do not reach it; it is noticed together with others, the fewest that are, which do its work too; all
that are left together are not noticed, so that in these runs nothing depends on them; for an s_nop, what
padding.py says: hardware does not need it (simulator/check/hazards.md), or these runs do not take the path
that does.
Exits 1 if some mutant is neither noticed nor explained.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import random
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(ROOT / "test" / "simulator")]

import generator  # noqa: E402
import sampling  # noqa: E402
import toolchain  # noqa: E402
from arguments import struct_of  # noqa: E402
from bwd_kernel import BwdKernel  # noqa: E402
from kernel_code import Instruction, find_code, targets  # noqa: E402
from mla_kernel import MlaKernel  # noqa: E402
from padding import Kernel  # noqa: E402
from sim import LANDINGS, ORDERS, Sim, SimError, find_library, pack  # noqa: E402

from codegen.ops.fmha_fwd import operation  # noqa: E402
from codegen.resources import read_resources  # noqa: E402
from codegen.rows import read_instances  # noqa: E402

NOP, TRAP = 0xBF800000, 0xBF920002
SKIPPED = 77  # CTest's word for it
# What is tried of a mutant, the likeliest first.
TRIES = [
    ("forward", "late"),
    ("backward", "late"),
    ("alternate", "late"),
    ("random", "random"),
    ("backward", "at-once"),
]


def without(code: bytes, instructions: list[Instruction], index: int, led_to: set[int]) -> bytes:
    """The code without an instruction; others keep their places or move one place forward."""
    this = instructions[index]
    after = instructions[index + 1]
    nop = struct.pack("<I", NOP)
    fixed = after.at in led_to or after.text.startswith(
        ("s_nop", "s_branch", "s_cbranch", "s_getpc", "s_call")
    )
    if not this.text.startswith("s_nop") or fixed:
        return code[: this.at] + nop + code[this.at + 4 :]
    end = after.at + after.size
    return code[: this.at] + code[after.at : end] + code[this.at : after.at] + code[end:]


# ---- what runs

Run = Callable[[Sim, bytes, dict[str, int]], bytes]  # given a GPU, an image and how: what it makes


@dataclass(frozen=True)
class Subject:
    """A kernel, and what is run of it."""

    name: str
    arch: str
    image: bytes
    kernel: str
    runs: Sequence[Run]
    is_instance: bool = True

    def refused(self, image: bytes) -> str | None:
        """What the build's checks say of an image; None: nothing."""
        if not self.is_instance:
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{self.name}.co"
            file.write_bytes(image)
            return next(iter(read_resources(file, self.arch).complaints()), None)


def place_in_time(how: tuple[str, str], most: int) -> dict[str, int]:
    """Of a launch: an order and a landing; a wave that executes more instructions is a runaway."""
    order, landing = how
    return {"order": ORDERS[order], "landing": LANDINGS[landing], "seed": 1, "max_instructions": most}


def instructions_of(subject: Subject, library: Path, run: Run) -> int:
    """How many all waves execute in a run."""
    with Sim(library, subject.arch, sanitize=False) as sim:
        run(sim, subject.image, place_in_time(TRIES[0], 20_000_000))
        return sim.instructions


@functools.cache
def fill(kind: str, count: int, seed: int) -> bytes:
    """Random numbers from -1 to 1 as fp16, bf16 or fp32; as fp8 below 2, and none that is NaN in FNUZ."""
    source = random.Random(seed)
    if kind.startswith("fp8"):
        return bytes(source.randrange(1, 0x40) | source.randrange(2) << 7 for _ in range(count))
    numbers = [source.uniform(-1, 1) for _ in range(count)]
    if kind != "bf16":
        return struct.pack(f"<{count}{'e' if kind == 'fp16' else 'f'}", *numbers)
    return b"".join(struct.pack("<f", number)[2:] for number in numbers)


# Bits of tessera_fmha_fwd_gpu_args.features.
SOFT_CAP, BIAS, ALIBI, ALIBI_SHIFT, ALIBI_VERTICAL, DROPOUT, RANDVAL, PER_TENSOR = 1, 2, 4, 8, 16, 32, 64, 256
UNBOUNDED = 2**30 - 1


@dataclass(frozen=True)
class Problem:
    """A call of fmha_fwd: how sequences' lengths are given ("": batch mode), and its features."""

    lengths: str
    features: int
    mask: dict[str, int]
    sink: int = 0
    seed_in_memory: bool = False
    scale: float = 1  # times that of attention


CAUSAL = {"mask_y": UNBOUNDED, "mask_x": 1, "shift_x": 1}
ALL_KEYS = {"mask_y": UNBOUNDED, "mask_x": UNBOUNDED}
PROBLEMS = (
    Problem("", 0, CAUSAL),
    Problem("physical", SOFT_CAP | BIAS, ALL_KEYS),
    Problem("logical", ALIBI | ALIBI_SHIFT | DROPOUT | RANDVAL, CAUSAL),
    Problem("cumulative", ALIBI | ALIBI_VERTICAL | DROPOUT, {"mask_y": 40, "mask_x": 1}, 3, True),
)


class Fmha:
    """Runs an emitted kernel of fmha_fwd on the problems: just over a tile of queries and three of keys."""

    def __init__(
        self, kernel: str, kind: str, hdims: tuple[int, int], tile: tuple[int, int, int], waves: int
    ) -> None:
        self.kernel, self.kind, self.waves = kernel, kind, waves
        self.dq, self.dv = hdims
        self.bm0, bn0, self.turns = tile
        self.o_bytes = {"fp8": 1, "fp8fp32": 4}.get(kind, 2)  # of an element
        self.heads, self.queries, self.keys, self.bn0 = 2, self.bm0 + 9, 3 * bn0 + 5, bn0
        self.problems = PROBLEMS
        if "hk_prefill" in kernel:  # whole tiles alone, without features: a round of the main loop and two
            self.queries = self.keys = 2 * self.bm0
            self.heads = 1
            self.problems = (PROBLEMS[0], Problem("", 0, ALL_KEYS, scale=100))  # references move far
        header = ROOT / "include/tessera/kernel/fmha_fwd_gpu.h"
        self.args_of = struct_of(header, "tessera_fmha_fwd_gpu_args")
        if kind == "bf16" and "qr_bundled" in kernel:  # rows whose first tile is far below others
            self.problems += (Problem("", 0, CAUSAL, scale=1000),)
        if kind.startswith("fp8"):
            self.problems += (Problem("", PER_TENSOR, CAUSAL),)

    def tensors(self, sim: Sim) -> Any:
        """Tensors that all problems share, and the argument with them."""
        dq, dv, heads, queries, keys = self.dq, self.dv, self.heads, self.queries, self.keys
        args: Any = self.args_of(stride_q=dq, stride_k=dq, stride_v=dv, stride_o=dv, keep_scale=1)
        args.q = sim.upload(fill(self.kind, heads * queries * dq, 1))
        args.k, args.v = (sim.upload(fill(self.kind, keys * d, seed)) for d, seed in ((dq, 2), (dv, 3)))
        args.o = sim.upload(bytes(self.o_bytes * heads * queries * dv))
        args.lse = sim.upload(bytes(4 * heads * queries))
        args.nhead_stride_q, args.nhead_stride_o = queries * dq, queries * dv
        args.nhead_stride_lse, args.nhead_q, args.group = queries, heads, heads
        args.nhead_k = args.together = 1
        args.over_nhead_k = args.over_together = 2**32 - 1
        args.hdim_q, args.hdim_v, args.seqlen_q, args.seqlen_k = dq, dv, queries, keys
        args.scale_log2 = math.log2(math.e) / math.sqrt(dq)
        args.min_seqlen_q, args.blocks_q = -1, -(-queries // self.bm0)
        args.turns, args.rows = self.turns, -(-args.blocks_q // self.turns)
        return args

    def set_lengths(self, sim: Sim, args: Any, lengths: str) -> None:
        bm0, bn0 = self.bm0, self.bn0
        given: dict[str, tuple[int, ...]] = {}
        if lengths:
            given |= {"seqstart_q": (0, bm0 // 2, self.queries), "seqstart_k": (0, bn0 + 3, self.keys)}
        if lengths == "logical":
            given |= {"seqlen_q_of": (bm0 // 2 - 3, 40), "seqlen_k_of": (bn0, bn0 + 9)}
        if lengths == "cumulative":
            given |= {"cu_seqlen_q": (0, 30, 60), "cu_seqlen_k": (0, bn0 + 1, 2 * bn0)}
        for name, values in given.items():
            setattr(args, name, sim.upload(struct.pack(f"<{len(values)}i", *values)))

    def set_features(self, sim: Sim, args: Any, problem: Problem) -> None:
        args.features = problem.features
        if problem.features & SOFT_CAP:
            args.cap_log2, args.cap_scale = 20.0, args.scale_log2 / 10
        if problem.features & BIAS:
            kind = "fp32" if self.kind.startswith("fp8") else self.kind
            args.bias = sim.upload(fill(kind, self.queries * self.keys, 4))
            args.stride_bias = self.keys
        if problem.features & ALIBI:
            args.bias = sim.upload(struct.pack("<2f", 0.5, 0.25))
        if problem.features & DROPOUT:
            args.keep_below, args.keep_scale, args.drop_seed, args.drop_offset = 200, 1.25, 7, 9
            args.rand_val = sim.upload(bytes(self.heads * self.queries * self.keys))
            args.stride_randval, args.nhead_stride_randval = self.keys, self.queries * self.keys
        if problem.features & PER_TENSOR:
            args.q_descale, args.k_descale, args.v_descale = (
                sim.upload(struct.pack("<f", x)) for x in (0.5, 2, 3)
            )
        if problem.seed_in_memory:
            args.drop_seed_ptr, args.drop_offset_ptr = (sim.upload(struct.pack("<Q", n)) for n in (7, 9))
        if problem.sink:
            args.sink_size, args.sink = problem.sink, sim.upload(struct.pack("<2f", 0.5, 1))

    @property
    def runs(self) -> list[Run]:
        """One for each problem."""
        return [functools.partial(self.run, problem) for problem in self.problems]

    def run(self, problem: Problem, sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        args, module = self.tensors(sim), sim.load(image)
        self.set_lengths(sim, args, problem.lengths)
        self.set_features(sim, args, problem)
        args.scale_log2 *= problem.scale
        for name, value in problem.mask.items():
            setattr(args, name, value)
        sequences, threads = 2 if problem.lengths else 1, 64 * self.waves
        grid = (self.heads * threads, args.rows, sequences)
        sim.launch(module, self.kernel, grid, (threads, 1, 1), bytes(args), **how)
        rows = self.heads * self.queries
        made = sim.download(args.o, self.o_bytes * rows * self.dv) + sim.download(args.lse, 4 * rows)
        return made + (sim.download(args.rand_val, rows * self.keys) if args.rand_val else b"")


class Rows:
    """Runs an emitted kernel of an operation on rows: with what may be added, quantized, and without."""

    def __init__(self, kernel: str, kind: str, rows: int, n: int, waves: int) -> None:
        self.kernel, self.kind, self.rows, self.n, self.waves = kernel, kind, rows, n, waves
        header = ROOT / "include/tessera/kernel/rows.h"
        self.args_of = struct_of(header, "tessera_rows_problem")

    def tensors(self, sim: Sim, adds: bool, quantizes: int) -> Any:
        """The argument without results."""
        n, elements = self.n, (self.rows + 1) * self.n
        args: Any = self.args_of(m=self.rows + 1, n=n, slots=1, experts=1, epsilon=1e-5)
        args.x_stride = args.residual_stride = args.y_stride = args.residual_out_stride = n
        setattr(args, "in", TYPES[self.kind])
        args.out = TYPES["int8" if quantizes else self.kind]
        args.x = sim.upload(fill(self.kind, elements, 1))
        args.gamma, args.beta = (sim.upload(fill(self.kind, n, seed)) for seed in (2, 3))
        if adds:
            args.residual, args.bias = (sim.upload(fill(self.kind, count, 4)) for count in (elements, n))
        if quantizes == SMOOTH:
            args.smooth = sim.upload(fill("fp32", n, 5))
            args.expert = sim.upload(bytes(4 * (self.rows + 1))) if "moe" in self.kernel else 0
        return args

    @property
    def runs(self) -> list[Run]:
        """One for each pair of features."""
        pairs = itertools.product((False, True), (0, SMOOTH, DYNAMIC))
        return [functools.partial(self.run, adds, quantizes) for adds, quantizes in pairs]

    def run(self, adds: bool, quantizes: int, sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        args, module = self.tensors(sim, adds, quantizes), sim.load(image)
        wide = ["y"] + ["residual_out"] * adds + ["unquantized"] * bool(quantizes)
        narrow = ["mean", "inv"] * adds + ["y_scale"] * bool(quantizes)
        size = 4 if self.kind == "fp32" else 2
        made = [(name, args.m * self.n * size) for name in wide] + [(name, 4 * args.m) for name in narrow]
        for name, count in made:
            setattr(args, name, sim.upload(bytes(count)))
        grid, threads = -(-args.m // self.rows), 64 * self.waves
        sim.launch(module, self.kernel, (grid * threads, 1, 1), (threads, 1, 1), bytes(args), **how)
        return b"".join(sim.download(getattr(args, name), count) for name, count in made)


SMOOTH, DYNAMIC = 1, 2  # tessera_fused_quant
TYPES = {"fp32": 0, "fp16": 1, "bf16": 2, "int8": 9}  # tessera_type
ROWS = r"(?:\w+norm|\w*smooth)\w+?_(fp32|fp16|bf16)__(gfx\w+?)_b(\d+)x(\d+)_w(\d+)_(one|multi)_pass"
FMHA = (
    r"fmha_fwd_d(?P<hdims>\d+(?:x\d+)?)_(?P<kind>fp16|bf16|fp8[a-z0-9]*)(?:_\w+)?"
    r"__(?P<arch>gfx\w+?)_b(?P<bm0>\d+)x(?P<bn0>\d+)x\d+_w(?P<waves>\d+)"
)

BWD = (
    r"fmha_bwd_(?:d(?:\d+|\d+x\d+)_)?(fp16|bf16|fp32)(?:_\w+)?"
    r"__(gfx\w+?)_b(\d+)x(\d+)x(\d+)(?:x(\d+))?_w\d+_kr_ktr_vr"
)
MLA = r"mla_prefill_fp8bf16__(gfx\w+?)_b256x128x192_w8_staggered"

OTHERS = (  # columns of v; other arguments, for caches
    "_vc_",
    "_qr_pages",
    "_qr_direct",
    "_qr_pieces",
    "_qr_split",
)


def objects(path: Path) -> list[Path]:
    """The object itself; or of a folder, for gfx942 and gfx950, a small one of attention and one on rows."""
    if path.suffix == ".co":
        return [path]
    there = sorted(path.glob("gfx9[45]*/*.co"))
    rows = [p for p in there if not any(word in p.stem for word in OTHERS)]
    small = [
        p for p in rows if (match := re.match(FMHA, p.stem)) and int(match["hdims"].split("x")[0]) <= 128
    ]
    on_rows = [p for p in rows if re.match(ROWS, p.stem)]
    return [one for some in (small, on_rows) for one in sampling.sample_each(some, lambda p: p.parent.name)]


def emitted(path: Path) -> Subject:
    """An emitted kernel."""
    kernel = "tessera_k_" + path.stem.replace("__", "_")
    if match := re.match(ROWS, path.stem):
        piece = int(match[4])
        n = piece - 4 if match[6] == "one" else piece + 4
        on_rows = Rows(kernel, match[1], int(match[3]), n, int(match[5]))
        return Subject(path.stem, match[2], path.read_bytes(), kernel, on_rows.runs)
    if match := re.match(MLA, path.stem):
        on_mla = MlaKernel(kernel, items=2, workgroups=1)
        return Subject(path.stem, match[1], path.read_bytes(), kernel, [on_mla])
    if match := re.match(BWD, path.stem):
        hdim, tile = int(match[5]), (int(match[3]), int(match[4]))
        on_bwd = BwdKernel(kernel, match[1], (hdim, int(match[6] or hdim)), tile)
        return Subject(path.stem, match[2], path.read_bytes(), kernel, [on_bwd])
    match = re.match(FMHA, path.stem)
    if not match:
        raise SystemExit(f"waits.py: {path}: the name is none that it knows of an instance")
    hdims = [int(hdim) for hdim in match["hdims"].split("x")]
    rows = read_instances(operation("simplified"), ROOT / "instances", (match["arch"],))
    turns = next(one.tile.turns for one in rows if one.name == path.stem)
    tile = int(match["bm0"]), int(match["bn0"]), int(turns)
    fmha = Fmha(kernel, match["kind"], (hdims[0], hdims[-1]), tile, int(match["waves"]))
    return Subject(path.stem, match["arch"], path.read_bytes(), kernel, fmha.runs)


def generated(seed: int, arch: str, image: bytes) -> Subject:
    """A generated program."""

    def run(sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        given, count = sim.upload(generator.inputs(seed)), generator.ITEMS * generator.OUTPUTS * 8
        out = sim.upload(bytes(count))
        args = pack(given, out, layout="PP")
        sim.launch(sim.load(image), f"p{seed}", (generator.ITEMS, 1, 1), (generator.BLOCK, 1, 1), args, **how)
        return sim.download(out, count)

    return Subject(f"p{seed}", arch, image, f"p{seed}", [run], is_instance=False)


def reduction(arch: str, image: bytes) -> Subject:
    """A sum through LDS, with a barrier in each step."""

    def run(sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        given = sim.upload(struct.pack("<512f", *(float(i % 37) for i in range(512))))
        out = sim.upload(bytes(8))
        sim.launch(sim.load(image), "reduce", (512, 1, 1), (256, 1, 1), pack(given, out, layout="PP"), **how)
        return sim.download(out, 8)

    return Subject("reduce", arch, image, "reduce", [run], is_instance=False)


def compiled(arch: str, level: str, seeds: range, folder: Path) -> Iterator[Subject]:
    source, compiler = folder / "programs.c", toolchain.compilers()[0]
    source.write_text(generator.source(seeds))
    image = toolchain.build_device(compiler, source, arch, [level], folder / "programs.co")
    for seed in seeds:
        yield generated(seed, arch, image)
    basics = ROOT / "test" / "simulator" / "programs" / "basics.c"
    yield reduction(arch, toolchain.build_device(compiler, basics, arch, [level], folder / "basics.co"))


# ---- mutants


class Mutants:
    """A subject's removable instructions."""

    def __init__(self, subject: Subject, library: Path, tools: Path, nops: int | None) -> None:
        self.subject, self.library = subject, library
        self.begin, size = find_code(subject.image, subject.kernel)
        self.code = subject.image[self.begin : self.begin + size]
        self.padding = Kernel(tools, subject.arch, self.code)
        self.instructions = self.padding.instructions
        self.led_to = targets(self.instructions)
        self.removable = [i for i, one in enumerate(self.instructions) if one.removable]
        if nops is not None:
            needed = [
                i for i in self.removable if self.instructions[i].is_nop and self.rule_of(i)[0] != "spare"
            ]
            self.removable = sampling.sample_each(needed, self.rule_of, nops)
        # Of one wave, which is far more than it needs.
        self.most = {run: instructions_of(subject, library, run) for run in subject.runs}
        self.expected = {run: self.outcome(run, subject.image, None) for run in subject.runs}
        self.reached: dict[int, frozenset[Run]] = {}
        for how, run in itertools.product(TRIES, subject.runs):
            if (got := self.outcome(run, subject.image, how)) != self.expected[run]:
                text = got if isinstance(got, str) else "another result"
                raise SystemExit(f"waits.py: {subject.name} as it is ({', '.join(how)}): {text}")

    def outcome(self, run: Run, image: bytes, how: tuple[str, str] | None) -> bytes | str:
        """What a run makes, or the fault's report. `how` is an order and a landing; None: not sanitized."""
        with Sim(self.library, self.subject.arch, sanitize=how is not None) as sim:
            try:
                return run(sim, image, place_in_time(how or TRIES[0], self.most[run]))
            except SimError as error:
                return str(error)

    def rule_of(self, index: int) -> tuple[str, str]:
        return self.padding.reason(self.instructions[index])

    def image(self, code: bytes) -> bytes:
        image = self.subject.image
        return image[: self.begin] + code + image[self.begin + len(code) :]

    def reaching(self, index: int) -> frozenset[Run]:
        """The runs that execute an instruction."""
        if index not in self.reached:
            at = self.instructions[index].at
            trap = self.image(self.code[:at] + struct.pack("<I", TRAP) + self.code[at + 4 :])
            stopped = (run for run in self.subject.runs if isinstance(self.outcome(run, trap, None), str))
            self.reached[index] = frozenset(stopped)
        return self.reached[index]

    def notice(self, *indices: int) -> str | None:
        """How a run shows that these instructions are missing; None: it does not."""
        code = self.code
        for index in indices:
            code = without(code, self.instructions, index, self.led_to)
        image = self.image(code)
        reaching = [run for run in self.subject.runs if any(run in self.reaching(i) for i in indices)]
        for how, run in itertools.product(TRIES, reaching):
            got = self.outcome(run, image, how)
            if isinstance(got, str):
                return got.split(" (kernel", 1)[0]
            if got != self.expected[run]:
                return f"another result ({', '.join(how)})"
        return self.subject.refused(image)

    def least(self, waits: list[int]) -> list[int]:
        """Of some that are noticed together, those that all are needed for that; none, if it is not so."""
        needed: list[int] = []
        while waits and not (needed and self.notice(*needed)):
            first, end = 1, len(waits)  # the shortest beginning that is noticed with these
            while first < end:
                middle = (first + end) // 2
                first, end = (first, middle) if self.notice(*needed, *waits[:middle]) else (middle + 1, end)
            needed.append(waits[end - 1])
            waits = waits[: end - 1]
        return needed if self.notice(*needed) else []

    def apart(self, waits: list[int]) -> list[list[int]]:
        """Parts of them of which none is noticed together."""
        if len(waits) == 1 or not self.notice(*waits):
            return [waits]
        return self.apart(waits[::2]) + self.apart(waits[1::2])

    def doers(self, left: list[int], beside: list[int]) -> Iterator[tuple[int, str]]:
        """Of `left` those that are noticed with others of them or of `beside`, which are not without them."""
        while left and self.notice(*left, *beside):
            together = self.least(beside + left)
            if not together:
                return
            for index in (index for index in together if index in left):
                others = (f"+0x{self.instructions[one].at:x}" for one in together if one != index)
                yield index, f"so does {' with '.join(others)}"
            left = [index for index in left if index not in together]

    def reasons(self, unnoticed: list[int]) -> dict[int, str]:
        """Why removing instructions is not noticed, where the reason is known."""
        waits = [i for i in unnoticed if not self.instructions[i].is_nop]
        found = {
            index: why
            for index in unnoticed
            if index not in waits and (why := self.padding.why_unnoticed(self.instructions[index]))
        }
        found |= self.doers(waits, [])
        known, left = ([i for i in waits if (i in found) == are] for are in (True, False))
        if left and self.notice(*left):
            return found
        for beside in self.apart(known) if left and known else ():
            found |= self.doers([index for index in left if index not in found], beside)
        left = [index for index in left if index not in found]
        return found | dict.fromkeys(left, "nothing of another wave and no later use depends on it")


def examine(subject: Subject, library: Path, tools: Path, nops: int | None) -> dict[str, int]:
    """Prints a line for each mutant, first of those that need no reason; returns the number of each kind."""
    mutants = Mutants(subject, library, tools, nops)
    print(f"{subject.name} on {subject.arch}: {len(mutants.removable)} instructions", flush=True)
    counts = {"noticed": 0, "explained": 0, "not reached": 0, "open": 0}

    def say(index: int, kind: str, text: str) -> None:
        one = mutants.instructions[index]
        counts[kind] += 1
        print(f"  +0x{one.at:04x} {shorten(one.text):28} {text}", flush=True)

    unnoticed = []
    for index in mutants.removable:
        if not mutants.reaching(index):
            say(index, "not reached", "not reached")
        elif how := mutants.notice(index):
            say(index, "noticed", f"noticed: {how}")
        else:
            unnoticed.append(index)
    reasons = mutants.reasons(unnoticed)
    for index in unnoticed:
        if index in reasons:
            say(index, "explained", f"not noticed: {reasons[index]}")
        else:
            say(index, "open", "open")
    return counts


def shorten(text: str) -> str:
    """A wait without the counts that it leaves alone."""
    return re.sub(r" (vmcnt\(63\)|expcnt\(7\)|lgkmcnt\(15\))", "", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("subjects", nargs="+", metavar="OBJECT.co|FOLDER|programs")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--level", default="-O2")
    parser.add_argument("--seeds", type=int, default=3, help="how many generated programs")
    parser.add_argument(
        "--nops", type=int, metavar="N", help="s_nops alone, N of a needed rule, others every day"
    )
    parser.add_argument(
        "--tools", type=Path, required=True, help="folder of tessera_sim_disassemble and _padding"
    )
    args = parser.parse_args()
    library = find_library()
    if library is None:
        raise SystemExit("waits.py: no libtessera_sim: set TESSERA_SIM_LIBRARY")
    if "programs" in args.subjects and toolchain.ZIGLANG is None:
        print("waits.py: programs are compiled by PyPI's ziglang")
        return SKIPPED
    if args.nops is not None:
        print(sampling.about())
    total: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.subjects:
            programs = compiled(args.arch, args.level, range(args.seeds), Path(folder))
            for subject in programs if name == "programs" else map(emitted, objects(Path(name))):
                for kind, count in examine(subject, library, args.tools, args.nops).items():
                    total[kind] = total.get(kind, 0) + count
    if not total:
        print("waits.py: no kernels here")
        return SKIPPED
    print(", ".join(f"{count} {kind}" for kind, count in total.items()))
    return 1 if total.get("open") else 0


if __name__ == "__main__":
    os.environ.pop("TESSERA_SIM_ORDER", None)
    sys.exit(main())
