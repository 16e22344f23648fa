# SPDX-License-Identifier: MIT
"""The page of paged_attention: decoding over pages, beside reading memory and torch, which gathers them.

Types are those of the cache; queries are bf16. int8 has a scale for each token and head, fp8 one of the
tensor. Quantised caches are timed beside the same problem in bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from page import Case, Judgement, Page, Probe, Record, beside, median_ratio
from turns import Contestant, Entry, Example

BYTES = {"bf16": 2, "fp8_e4m3": 1, "int8": 1}
SCALES = {"bf16": "none", "fp8_e4m3": "tensor", "int8": "token"}
READ = 0.85  # of reading memory, in bf16
LOST = 0.25  # of the ratio of bytes that a quantised cache may lose


@dataclass(frozen=True)
class Decode:
    """A problem: sequences, heads of q and of k and v, keys of each sequence, keys and layout of a page."""

    b: int
    h: int
    h_k: int
    ctx: int
    page: int
    layout: str
    d: int = 128

    def __str__(self) -> str:
        return f"b{self.b} h{self.h}/{self.h_k} ctx{self.ctx} page{self.page} {self.layout} d{self.d}"

    def kv_bytes(self, kv: str) -> float:
        """Of K and V, which are read once."""
        return 2.0 * self.b * self.h_k * self.ctx * self.d * BYTES[kv]

    def words(self, kv: str) -> list[str]:
        """For tile_example_paged_attention."""
        return [
            *(f"-b={self.b}", f"-h={self.h}", f"-h_k={self.h_k}", f"-ctx={self.ctx}", f"-d={self.d}"),
            *(f"-block_size={self.page}", f"-kv_layout={self.layout}", f"-kv_scale={SCALES[kv]}"),
            f"-kv_cache_dtype={'auto' if kv == 'bf16' else kv}",
        ]


HEADS = ((8, 1), (32, 8), (64, 8))
GIB = 2.0**30

SUITES: dict[str, tuple[Decode, ...]] = {
    "table": tuple(
        Decode(b, *heads, ctx, page, layout)
        for b, ctx, heads in (
            (1, 8192, HEADS[1]),
            *((8, 8192, heads) for heads in HEADS),
            (64, 1024, HEADS[1]),
        )
        for page, layout in ((16, "nhd"), (128, "hnd"))
    ),
    "all": tuple(
        shape
        for b, ctx, heads, page, layout in product(
            (1, 8, 64), (1024, 8192, 65536), HEADS, (16, 128), ("nhd", "hnd")
        )
        if (shape := Decode(b, *heads, ctx, page, layout)).kv_bytes("bf16") <= 8 * GIB
    ),
}


class DecodeCase(Case):
    """A problem and a type of cache, beside rivals."""

    def __init__(self, shape: Decode, kv: str) -> None:
        self.shape, self.kv, self.name = shape, kv, f"{kv} {shape}"

    def fields(self) -> Record:
        """The shape's."""
        return {**asdict(self.shape), "prec": self.kv}

    def problem(self) -> Record:
        """The same."""
        return self.fields()

    def ours(self, build: Path) -> list[Contestant]:
        """A call, and of a quantised cache the same in bf16."""
        program = build / "bin/tile_example_paged_attention"
        calls = [Example(program, self.shape.words(kv)) for kv in dict.fromkeys((self.kv, "bf16"))]
        for plain in calls[1:]:
            plain.name = "bf16"
        return list(calls)

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """Shares are of reading memory."""
        ours, records = entries[0], []
        for entry in entries:
            kv = "bf16" if entry.contestant.name == "bf16" else self.kv
            rates = [self.shape.kv_bytes(kv) / ms / 1e6 for ms in entry.milliseconds]
            shares = sorted(rate / probe["read"] for rate, probe in zip(rates, probes, strict=True))
            record = {
                "rival": entry.contestant.name,
                "what": entry.what,
                "limit": "read",
                "ms": sorted(entry.milliseconds)[len(rates) // 2],
                "gbytes": sorted(rates)[len(rates) // 2],
                "share": shares[len(shares) // 2],
                "ratio": median_ratio(entry.milliseconds, ours.milliseconds),
            }
            records.append(record)
        records[0]["bars"] = [judgement.record() for judgement in self.judge(records)]
        return records

    def judge(self, records: list[Record]) -> list[Judgement]:
        """Reading memory, or less bytes in less time; and the rivals."""
        plain = [r["ratio"] for r in records[1:] if r["rival"] == "bf16"]
        rivals = [r["ratio"] for r in records[1:] if r["rival"] != "bf16"]
        least = BYTES["bf16"] / BYTES[self.kv] * (1 - LOST)
        found = [Judgement("times bf16", ratio, least) for ratio in plain]
        if not plain:
            found.append(Judgement("share of the limit", records[0]["share"], READ))
        return [*found, *(Judgement("times the best rival", ratio, 1.0) for ratio in sorted(rivals)[:1])]

    def line(self, records: list[Record]) -> str:
        """Ours, then the others with their ratios."""
        ours = records[0]
        rate = f"{ours['gbytes']:.1f} GB/s, {100 * ours['share']:.0f} % of read"
        return f"{ours['ms']:.2f} ms, {rate}; {beside(records[1:])}"


class PagedAttention(Page):
    """paged_attention."""

    name = "paged_attention"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = tuple(BYTES)
    programs = ("tile_example_paged_attention",)
    rivals = {"torch": "torch"}
    rival_module = "paged_attention"
    pictured = ("table",)

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Each problem in each type."""
        return [DecodeCase(shape, kv) for shape in SUITES[suite] for kv in precs]


PAGE = PagedAttention()
