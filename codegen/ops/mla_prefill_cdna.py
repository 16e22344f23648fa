# SPDX-License-Identifier: MIT
"""Tiles of mla_prefill on CDNA: eight waves in two halves, which go through clusters some barriers apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.model import parameter
from codegen.ops.fmha_fwd.cdna_figures import block_and_start
from codegen.spec import Instance, Point
from codegen.targets import CdnaTarget

# Of launches that decide how fast instances are: so many blocks of queries of a head share its keys, of two
# lengths, whose difference in time is that of their tiles.
FULL, BLOCKS, KEYS = "full", 8, (1024, 4096)
WHOLE, ROPE, HDIM_V = 192, 64, 128  # elements of q and k, of which so many are rotated; of v
UNSAID = -1  # of a field: what follows from the grid


@dataclass(frozen=True)
class CdnaTile:
    """A row of instances/mla_prefill.toml for CDNA."""

    pipeline: str
    epilogue: str
    compute: str
    why: str
    persistent: int = 0  # 1: workgroups, no more than there are units, take one work item after the other
    exact_stagger: int = UNSAID  # 1: halves part at the beginning of each item, not of the first one alone
    v_qktail: int = UNSAID  # 1: the tail of C_QK reads the first operands of values, else C_V_PREFETCH does
    serves: str = ""
    # Modelled, as instances/mla_prefill_modelled.toml has it; these where it is not yet.
    efficiency: float = 0.5  # the share of the target's peak that the main loop reaches
    start: float = 3.0  # the time of a work item beside its tiles, in tiles

    modelled: ClassVar[tuple[str, ...]] = ("efficiency", "start")
    held: ClassVar[str] = "dtype=fp8bf16"
    name_tokens: ClassVar[dict[str, str]] = {
        "persistent": "persistent", "exact_stagger": "es", "v_qktail": "qt",
    }  # fmt: skip
    dtypes: ClassVar[tuple[str, ...]] = ("fp8bf16",)
    kind: ClassVar[str] = "cdna"
    alignment: ClassVar[int] = 16  # of rows
    bm0: ClassVar[int] = 256  # queries of a work item: 32 of each wave
    bn0: ClassVar[int] = 128  # keys of a tile
    waves: ClassVar[int] = 8
    threads: ClassVar[int] = 512
    occupancy: ClassVar[int] = 2  # waves of a SIMD: a workgroup's
    k_ring: ClassVar[int] = 2  # tiles of k in LDS,
    v_ring: ClassVar[int] = 4  # and of v
    band: ClassVar[int] = 4  # operands of k and then of v in registers
    stagger: ClassVar[int] = 4  # barriers between the halves

    @property
    def hdim_q(self) -> int:
        """Elements of q and k."""
        return WHOLE

    @property
    def hdim_v(self) -> int:
        """Elements of v and o."""
        return HDIM_V

    @property
    def staggers_each(self) -> int:
        """Whether halves part at the beginning of each item and meet at its end."""
        return self.persistent if self.exact_stagger == UNSAID else self.exact_stagger

    @property
    def reads_v_early(self) -> int:
        """Whether the tail of C_QK reads the first operands of values."""
        return 1 - self.persistent if self.v_qktail == UNSAID else self.v_qktail

    @property
    def lds_bytes(self) -> int:
        """Queries and both rings."""
        return self.bm0 * WHOLE + self.bn0 * (self.k_ring * WHOLE + self.v_ring * HDIM_V)

    @property
    def block(self) -> str:
        """Block and waves in the short name."""
        return f"b{self.bm0}x{self.bn0}x{WHOLE}_w{self.waves}"

    def p_shift(self, target: CdnaTarget) -> int:
        """The power of 2 that p in [0, 1] is stored times."""
        return 8

    def ck_tile(self, target: CdnaTarget) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": self.bm0, "keys": self.bn0}

    def cycles(self, target: CdnaTarget) -> float:
        """Cycles of a tile of keys beside its multiply-adds: none, since efficiency counts all."""
        return 0.0

    def needs(self, target: CdnaTarget) -> str:
        """What the machine and a call must bring."""
        return (
            f"{self.lds_bytes} bytes of LDS, {self.waves} waves, any lengths, rows aligned to "
            f"{self.alignment} bytes"
        )

    def numerics(self, target: CdnaTarget) -> str:
        """How numbers are rounded."""
        return "fp8 products and fp32 sums, p rounded to nearest even in fp8, exp2 within 1 ulp"

    def complaint(self, target: CdnaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.lds_bytes > target.lds_bytes:
            return f"q, k and v take {self.lds_bytes} bytes of LDS, {target.name} has {target.lds_bytes}"
        return ""


def figure_problems(instance: Instance) -> dict[Point, tuple[str, ...]]:
    """The arguments of its launches: a work item for each unit."""
    heads = parameter("units", instance.target.name) // BLOCKS
    sizes = ("-b=1", f"-h={heads}", f"-s={BLOCKS * instance.tile.bm0}")
    return {(FULL, keys): (*sizes, f"-s_k={keys}") for keys in KEYS}


def figures_of(instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
    """An instance's figures from the cycles of its launches."""
    assert isinstance(instance.target, CdnaTarget)
    tile = instance.tile
    of_tile, start = block_and_start(instance, FULL, cycles)
    peak = tile.bm0 * tile.bn0 * (WHOLE + HDIM_V) / instance.target.macs[tile.compute]
    return {"efficiency": round(peak / of_tile, 3), "start": round(max(start, 0.1), 2)}
