# SPDX-License-Identifier: MIT
"""What pages of decoding share: a problem is timed beside reading its keys and values from memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from page import Case, Judgement, Probe, Record, beside, median_ratio
from turns import Contestant, Entry, Example

BYTES = {"bf16": 2, "fp16": 2, "fp8_e4m3": 1, "int8": 1}
HEADS = ((8, 1), (32, 8), (64, 8))
READ = 0.85  # of reading memory, in 16 bits
LOST = 0.25  # of the ratio of bytes that a quantised cache may lose


@dataclass(frozen=True)
class Decode:
    """A problem: sequences, heads of q and of k and v, keys of each sequence, keys of a page (0: none)."""

    b: int
    h: int
    h_k: int
    ctx: int
    page: int
    layout: str
    d: int = 128

    def __str__(self) -> str:
        pages = f"page{self.page}" if self.page else "whole"
        return f"b{self.b} h{self.h}/{self.h_k} ctx{self.ctx} {pages} {self.layout} d{self.d}"

    def row_bytes(self, kv: str) -> int:
        """Of a key or a value; turbo4's with its norm."""
        return self.d // 2 + 2 if kv == "turbo4" else self.d * BYTES[kv]

    def kv_bytes(self, kv: str) -> float:
        """Of K and V, which are read once."""
        return 2.0 * self.b * self.h_k * self.ctx * self.row_bytes(kv)

    def words(self, kv: str) -> list[str]:
        """For the program."""
        raise NotImplementedError


class DecodeCase(Case):
    """A problem and a type of cache, beside rivals."""

    def __init__(self, program: str, shape: Decode, kv: str) -> None:
        self.program, self.shape, self.kv, self.name = program, shape, kv, f"{kv} {shape}"

    def fields(self) -> Record:
        """The shape's."""
        return {**asdict(self.shape), "prec": self.kv}

    def problem(self) -> Record:
        """The same."""
        return self.fields()

    def ours(self, build: Path) -> list[Contestant]:
        """A call, and of a quantised cache the same in bf16."""
        program = build / "bin" / self.program
        plain = self.shape.row_bytes(self.kv) == self.shape.row_bytes("bf16")
        types = (self.kv,) if plain else (self.kv, "bf16")
        calls = [Example(program, self.shape.words(kv)) for kv in types]
        for call in calls[1:]:
            call.name = "bf16"
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
        least = self.shape.row_bytes("bf16") / self.shape.row_bytes(self.kv) * (1 - LOST)
        found = [Judgement("times bf16", ratio, least) for ratio in plain]
        if not plain:
            found.append(Judgement("share of the limit", records[0]["share"], READ))
        return [*found, *(Judgement("times the best rival", ratio, 1.0) for ratio in sorted(rivals)[:1])]

    def line(self, records: list[Record]) -> str:
        """Ours, then the others with their ratios."""
        ours = records[0]
        rate = f"{ours['gbytes']:.1f} GB/s, {100 * ours['share']:.0f} % of read"
        return f"{ours['ms']:.2f} ms, {rate}; {beside(records[1:])}"
