# SPDX-License-Identifier: MIT
"""fmha_fwd: fused multi-head attention, forward: traits, rules, tiles, costs.

On the CPU every trait is an argument at run time: head dims and storage types are a matter of packing, and
the rest costs a few percent of the main loop at most. So instances differ in target, compute type and tile
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.space import Axis, Box, Region, Space, bits, region_meet, union
from codegen.spec import Instance, Operation, Product, Rule, Slices
from codegen.targets import Target

# The head dims (q, v) of CK's names. Any other pair is padded to the first that holds it.
HDIMS = (
    (32, 32), (48, 48), (64, 64), (80, 96), (96, 128),
    (128, 128), (192, 128), (192, 192), (256, 256), (512, 512),
)  # fmt: skip

FP8 = ("fp8", "fp8bf16", "fp8fp32")
MX = ("mxfp8", "mxfp4")
DTYPES = ("fp32", "fp16", "bf16", *FP8, *MX)


@dataclass(frozen=True)
class Compute:
    """A type that products are computed in."""

    dtypes: tuple[str, ...]  # storage types whose values it holds
    bk0: int  # elements along the reduced dimension that are packed together
    wk: int  # multiply-adds of one lane of one instruction
    numerics: str  # docs/vocabulary.md has the errors of each word


COMPUTES = {
    "f32": Compute(
        DTYPES,
        bk0=16,
        wk=1,
        numerics="fp32 products and sums, exp2 within 1.7e-7, soft cap by tanh within 3.9e-7",
    ),
    "bf16": Compute(
        ("bf16", *FP8, *MX),
        bk0=32,
        wk=2,
        numerics="bf16 products (scores rounded to nearest even) and fp32 sums, exp2 within 7.5e-5, "
        "soft cap by tanh within 3.9e-7",
    ),
}

PAD_SIDES = ("s", "sk", "d", "dv")
PADS = (
    "npad",
    *("p" + "".join(side for i, side in enumerate(PAD_SIDES) if sides >> i & 1) for sides in range(1, 16)),
)
PADS_OF_GROUP = ("pssk", "psskd", "psskdv", "psskddv")


def _hdim_word(q: int, v: int) -> str:
    return f"{q}" if q == v else f"{q}x{v}"


def _hdim_view(side: int) -> dict[str, tuple[str, ...]]:
    words: dict[str, tuple[str, ...]] = {}
    for hdim in HDIMS:
        words[f"{hdim[side]}"] = (*words.get(f"{hdim[side]}", ()), _hdim_word(*hdim))
    return words


def _flag(name: str, token: str) -> Axis:
    """An axis of no and yes, which CK spells nTOKEN and TOKEN."""
    return Axis(name, ("no", "yes"), (f"n{token}", token), aliases={"0": ("no",), "1": ("yes",)})


MASK_AXES = {
    "simplified": Axis(
        "mask",
        ("no", "mask"),
        ("nmask", "mask"),
        aliases=dict.fromkeys(("causal", "window", "generic"), ("mask",)),
    ),
    "generic": Axis(
        "mask",
        ("no", "causal", "generic"),
        ("nmask", "mc", "mg"),
        aliases={"window": ("generic",), "mask": ("causal", "generic")},
    ),
}


def make_space(mask: str) -> Space:
    """The axes in the order of CK's names."""
    return Space(
        (
            Axis(
                "hdim",
                tuple(_hdim_word(*hdim) for hdim in HDIMS),
                tuple(f"d{q}" for q, _ in HDIMS),
                short=tuple(f"d{_hdim_word(*hdim)}" for hdim in HDIMS),
                views={"hdim_q": _hdim_view(0), "hdim_v": _hdim_view(1)},
            ),
            Axis("dtype", DTYPES, DTYPES),
            Axis("mode", ("batch", "group"), ("batch", "group")),
            Axis("vlayout", ("r", "c"), ("vr", "vc")),
            Axis("pad", PADS, PADS),
            _flag("logits", "logits"),
            Axis("bias", ("no", "bias", "alibi"), ("nbias", "bias", "alibi")),
            MASK_AXES[mask],
            _flag("lse", "lse"),
            _flag("dropout", "dropout"),
            _flag("skip", "skip"),
            Axis(
                "qscale",
                ("no", "pt", "bs", "mx"),
                ("nqscale", "pertensor", "blockscale", "mx"),
                refused={
                    "kvbs": "it belongs to batch_prefill alone",
                    "kv_blockscale": "it belongs to batch_prefill alone",
                },
            ),
            Axis("trload", ("no",), ("ntrload",)),
            _flag("sink", "sink"),
        )
    )


def make_rules(space: Space) -> tuple[Rule, ...]:
    """What does not go together."""
    return (
        Rule(
            space.box(logits=("yes",), bias=("bias", "alibi")),
            "a soft cap goes without a bias, as in CK",
        ),
        Rule(
            space.box(qscale=("pt", "bs"), dtype=(d for d in DTYPES if d not in FP8)),
            "descales for a tensor or for blocks belong to fp8 inputs",
        ),
        Rule(
            space.box(qscale=("mx",), dtype=(d for d in DTYPES if d not in MX)),
            "E8M0 scales belong to the mx types",
        ),
        Rule(
            space.box(qscale=("no", "pt", "bs"), dtype=MX),
            "the mx types always carry E8M0 scales",
        ),
        Rule(
            space.box(mode=("group",), pad=(pad for pad in PADS if pad not in PADS_OF_GROUP)),
            "sequences of a group end anywhere, so both of their sides are padded",
        ),
    )


@dataclass(frozen=True)
class Tile:
    """A row of instances/fmha_fwd.toml on the CPU."""

    pipeline: str
    epilogue: str
    compute: str  # the type that products are computed in
    bm0: int  # rows of q that a task takes
    bn0: int  # keys that a block takes
    mr: int  # the register tile: mr keys (or columns of v) x nv vectors of rows
    nv: int
    efficiency: float  # measured share of the target's peak in the main loop
    why: str  # the reason that the row is there
    serves: str = ""  # clauses, as for --where; "": all that the compute type can

    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e", "mr": "mr", "nv": "nv"}

    @property
    def bk0(self) -> int:
        """Elements along the reduced dimension that go into registers together."""
        return COMPUTES[self.compute].bk0

    @property
    def numerics(self) -> str:
        """How numbers are rounded and functions approximated."""
        return COMPUTES[self.compute].numerics

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}x{self.bn0}x{self.bk0}_w1"

    @property
    def needs(self) -> str:
        """What a call must bring."""
        return "any sizes, any strides, pointers aligned to their elements"

    def ck_tile(self, target: Target) -> dict[str, int]:
        """CK's fields. bn1 and bk0max are those of the call's head dims, which 0 stands for."""
        block = {"bm0": self.bm0, "bn0": self.bn0, "bk0": self.bk0, "bn1": 0, "bk1": self.bn0, "bk0max": 0}
        warps = {f"r{side}{gemm}": 1 for gemm in (0, 1) for side in "mnk"}
        shape = self.register_tile(target)
        return block | warps | {f"w{side}{gemm}": shape[side] for gemm in (0, 1) for side in "mnk"}

    def register_tile(self, target: Target) -> dict[str, int]:
        """Rows, keys and multiply-adds of a lane in a step of the main loop; qr has rows along the lanes."""
        rows, keys = self.nv * target.lanes, self.mr
        if self.pipeline == "decode":
            rows, keys = keys, rows
        return {"m": rows, "n": keys, "k": COMPUTES[self.compute].wk}

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in COMPUTES:
            return f"compute '{self.compute}' is none of {', '.join(COMPUTES)}"
        if self.compute not in target.macs:
            return f"compute '{self.compute}' is none of {', '.join(target.macs)}, which {target.name} has"
        if min(self.bm0, self.bn0, self.mr, self.nv) < 1 or not 0 < self.efficiency <= 1:
            return "bm0, bn0, mr, nv must be positive and 0 < efficiency <= 1"
        rows = self.register_tile(target)["m"]
        if self.bm0 % rows:
            return f"bm0 = {self.bm0} is no multiple of the {rows} rows of the register tile"
        registers = self.mr * self.nv + self.nv + 1
        if registers > target.registers:
            return f"mr x nv + nv + 1 = {registers} vector registers, {target.name} has {target.registers}"
        strip_bytes = 4 * self.bn0 * rows
        if strip_bytes > target.l1_bytes:
            return (
                f"a strip's scores take {strip_bytes} bytes, the L1 cache of {target.name} {target.l1_bytes}"
            )
        block_bytes = (
            4 * self.bn0 * (self.bm0 + 128 + 128)
        )  # scores, packed keys and values at head dims of 128
        if block_bytes > target.l2_bytes:
            return f"a block takes {block_bytes} bytes, the L2 cache of {target.name} holds {target.l2_bytes}"
        return ""


# The C table's sets: field of tessera_fmha_fwd_served, and what each of the axis's values sets in it.
SERVED: dict[str, tuple[str, dict[str, int]]] = {
    "dtype": ("data_type", {dtype: 1 << i for i, dtype in enumerate(DTYPES)}),
    "mask": ("mask", {"no": 0b0001, "mask": 0b1110, "causal": 0b0110, "generic": 0b1110}),
    "bias": ("bias", {"no": 0b001, "bias": 0b010, "alibi": 0b100}),
    "qscale": ("qscale", {"no": 0b00001, "pt": 0b00010, "bs": 0b00100, "mx": 0b10000}),
    "mode": ("mode", {"batch": 0b01, "group": 0b10}),
    "vlayout": ("v_rowmajor", {"r": 0b10, "c": 0b01}),
    "logits": ("soft_cap", {"no": 0b01, "yes": 0b10}),
    "lse": ("lse", {"no": 0b01, "yes": 0b10}),
    "dropout": ("dropout", {"no": 0b01, "yes": 0b10}),
    "skip": ("skip", {"no": 0b01, "yes": 0b10}),
    "sink": ("sink", {"no": 0b01, "yes": 0b10}),
}
PACKED = {"mxfp4": 2}  # elements a byte: head dims are a multiple of it
BUCKETS = sorted({max(hdim) for hdim in HDIMS})

# Vector operations for one vector of scores: scale, maximum, the 8 steps of exp2, sum, pack.
SOFTMAX_CYCLES = 8.0
# Bookkeeping of one block: corrections of o and of the sums, the next block's addresses.
BLOCK_CYCLES = 400.0
# hdim_q + hdim_v: the range that costs are compared over.
HDIM_SUMS = (2, 1024)


def _ranges(hdim_q: int, hdim_v: int, multiple: int) -> dict[str, int]:
    """The ranges of head dims of a product in C."""
    fields = {}
    for side, most in (("q", hdim_q), ("v", hdim_v)):
        fields[f"hdim_{side}_min"] = multiple
        fields[f"hdim_{side}_max"] = most
        fields[f"hdim_{side}_multiple"] = multiple
    return fields


class FmhaFwd(Operation):
    """The operation."""

    api = "fwd"
    name = "fmha_fwd"
    kernels = ("fwd",)
    entries: ClassVar[dict[str, str]] = {"run": "run", "combine": "combine", "scratch_bytes": "scratch"}
    head_axes = 3
    row = Tile
    optdim_field = "hdim_q"

    def __init__(self, mask: str) -> None:
        self.space = make_space(mask)
        self.rules = make_rules(self.space)

    def served(self, tile: Tile) -> Region:
        """All traits of the storage types that the compute type holds, or those that the row names."""
        region = region_meet(self.everything, (self.space.box(dtype=COMPUTES[tile.compute].dtypes),))
        return region_meet(region, self.space.where(tile.serves))

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """Tile and pipeline in CK's names."""
        hdim_q, hdim_v = HDIMS[first]
        tile: Tile = instance.tile
        shape = tile.register_tile(instance.target)
        warp = f"w{shape['m']}x{shape['n']}x{shape['k']}"
        return (
            f"b{tile.bm0}x{tile.bn0}x{tile.bk0}x",
            f"{hdim_v}x{tile.bn0}x{hdim_q}",
            f"_r1x1x1_r1x1x1_{warp}_{warp}_{tile.pipeline}",
        )

    def tile_cycles(self, instance: Instance) -> float:
        """What a block of keys costs beside its multiply-adds: its softmax and its bookkeeping."""
        tile: Tile = instance.tile
        return SOFTMAX_CYCLES * tile.bm0 * tile.bn0 / instance.target.lanes + BLOCK_CYCLES

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one's cost is at most the other's for every size and number of compute units.

        runtime/fmha_fwd_select.c has the formula: cycles for each score, times scores in whole register
        tiles, times the share of the unit with most tasks. The first is linear in the head dims; the second
        is worst where the other's register tile is filled; the third differs by less than 2, or by as many
        of the other's tasks as go into one of one's.
        """
        a: Tile = one.tile
        b: Tile = other.tile
        ours, theirs = a.register_tile(one.target), b.register_tile(other.target)
        worst = 1.0 if a.bm0 == b.bm0 else max(2, -(-a.bm0 // b.bm0))
        for side in "mn":
            worst *= -(-theirs[side] // ours[side]) * ours[side] / theirs[side]
        return all(
            worst * self.score_cycles(one, hdims) <= self.score_cycles(other, hdims) for hdims in HDIM_SUMS
        )

    def score_cycles(self, instance: Instance, hdims: int) -> float:
        """Cycles for each score, where head dims of q and v add up to `hdims`."""
        tile: Tile = instance.tile
        return hdims / instance.macs_per_cycle + self.tile_cycles(instance) / (tile.bm0 * tile.bn0)

    def served_products(self, region: Region) -> list[Product]:
        """A region as the C table holds it: pads are no trait there, and head dims are ranges."""
        space = self.space
        dtype_axis = space.index["dtype"]
        dropped = {i: space.full[i] for i, axis in enumerate(space.axes) if axis.name not in SERVED}
        by_range: dict[tuple[int, int, int], list[Box]] = {}
        for box in region:
            widest = HDIMS[box[0].bit_length() - 1]  # the pairs are a chain: the last one covers the others
            for dtype in bits(box[dtype_axis]):
                projected = [dropped.get(i, mask) for i, mask in enumerate(box)]
                projected[dtype_axis] = 1 << dtype
                key = (*widest, PACKED.get(DTYPES[dtype], 1))
                by_range.setdefault(key, []).append(tuple(projected))
        return [
            Product(space.describe(box), {**self._sets(box), **_ranges(*range_)})
            for range_, boxes in sorted(by_range.items())
            for box in union(boxes)
        ]

    def _sets(self, box: Box) -> dict[str, int]:
        """The sets of values of a product in C."""
        sets = {}
        for axis, (field, values) in SERVED.items():
            sets[field] = 0
            for value in self.space.values(box, axis):
                sets[field] |= values[value]
        return sets

    def slices(self, instances: list[Instance]) -> Slices:
        """Rows that may serve (target, data_type, bucket of hdim), the fastest main loop first."""
        dtype_axis = self.space.index["dtype"]
        index: dict[tuple[str, str, int], list[int]] = {}
        for number in sorted(range(len(instances)), key=lambda n: (-instances[n].macs_per_cycle, n)):
            instance = instances[number]
            served: dict[int, int] = {}
            for box in instance.region:
                for dtype in bits(box[dtype_axis]):
                    served[dtype] = max(served.get(dtype, 0), *HDIMS[box[0].bit_length() - 1])
            for dtype, most in sorted(served.items()):
                for bucket, floor in enumerate((0, *BUCKETS[:-1])):
                    if most > floor:
                        key = (instance.target.enum, f"TESSERA_{DTYPES[dtype].upper()}", bucket)
                        index.setdefault(key, []).append(number)
        return Slices("hdim", BUCKETS, index)


def operation(mask: str) -> FmhaFwd:
    """This module's operation."""
    return FmhaFwd(mask)
