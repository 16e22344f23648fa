# SPDX-License-Identifier: MIT
"""Draws what fmha_fwd.py measured, as SVG and PNG beside its file. Needs matplotlib.

    python benchmark/plots.py [benchmark/results/fmha_fwd.jsonl]

Pictures are of one machine each, and its name is in the names of their files; only those of the file's first
machine go without.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from records import Record, read, shape_of
from shapes import SUITES, limit_of, median_probe

ROOT = Path(__file__).resolve().parents[1]
PRECS = ("fp32", "bf16", "fp16")
# The suites whose shapes are compared; "scaling" has pictures of its own.
CASES = ("table", "short", "decode")

Drawings = dict[str, Callable[[Any], None]]  # by name


def machines(records: list[Record]) -> dict[str, tuple[str, list[Record]]]:
    """By processor: what is added to the names of its files, and its records."""
    found: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        name = record["processor"]
        words = re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", "", name.lower()))
        found.setdefault(name, ("_" + "_".join(words) if found else "", []))[1].append(record)
    return found


def bars(axes: Any, records: list[Record], value: str) -> None:
    """A group of bars for each shape and type, a bar for each rival."""
    shapes = [shape for suite in CASES for shape in SUITES[suite]]
    groups = [(shape, prec) for prec in PRECS for shape in shapes]
    of = {(shape_of(r), r["prec"], r["rival"]): r[value] for r in records}
    groups = [group for group in groups if any((*group, r["rival"]) in of for r in records)]
    rivals = list(dict.fromkeys(r["rival"] for r in records))
    for n, rival in enumerate(rivals):
        places = [g + n * 0.8 / len(rivals) for g, group in enumerate(groups) if (*group, rival) in of]
        heights = [of[(*group, rival)] for group in groups if (*group, rival) in of]
        axes.bar(places, heights, 0.8 / len(rivals), label=rival, align="edge")
    axes.set_xticks([g + 0.4 for g in range(len(groups))], [f"{prec} {shape}" for shape, prec in groups])
    axes.tick_params("x", rotation=90, labelsize=7)
    if value == "ratio":
        axes.set_yscale("log", base=2)


def roofs(records: list[Record]) -> dict[str, float]:
    """GFLOP/s (reading: GB/s) of each limit that Tessera's calls have met: medians of what was probed."""
    ours = [r for r in records if r["rival"] == "tessera"]
    probe = median_probe([r["probe"] for r in ours])
    met = {"read", *(limit_of(shape_of(r), r["what"]) for r in ours)}
    return {limit: probe[limit] for limit in sorted(met)}


def roofline(axes: Any, records: list[Record]) -> None:
    """GFLOP/s over FLOP for a byte of the tensors, under what reading and products allow."""
    shapes = {shape for suite in CASES for shape in SUITES[suite]}
    records = [r for r in records if shape_of(r) in shapes]
    tops = roofs(records)
    read = tops.pop("read")
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = [(shape_of(r).intensity(r["prec"]), r["gflops"]) for r in records if r["rival"] == rival]
        axes.plot(*zip(*points, strict=True), "o", markersize=4, label=rival)
    for limit, top in tops.items():
        axes.plot([0.5, top / read, 4096], [0.5 * read, top, top], "k-", linewidth=0.8)
        axes.annotate(limit, (4096, top), fontsize=7, ha="right", va="bottom")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("FLOP for a byte of Q, K, V and O")


def scaling(axes: Any, records: list[Record]) -> None:
    """GFLOP/s over the length."""
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = {shape_of(r): r["gflops"] for r in records if r["rival"] == rival}
        there = [shape for shape in SUITES["scaling"] if shape in points]
        axes.plot([s.s_q for s in there], [points[s] for s in there], marker="o", label=rival)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("length (8 heads, d 128)")


def threads_scaling(axes: Any, records: list[Record]) -> None:
    """GFLOP/s over the number of threads, of the longest shape of the suite."""
    shape = SUITES["scaling"][-1]
    records = [r for r in records if shape_of(r) == shape]
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = sorted((r["threads"], r["gflops"]) for r in records if r["rival"] == rival)
        axes.plot(*zip(*points, strict=True), marker="o", label=rival)
    axes.set_xticks(sorted({r["threads"] for r in records}))
    axes.set_xlabel(f"threads ({shape})")


def main() -> int:
    """Writes the pictures of every machine."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        print("plots.py needs matplotlib: pip install matplotlib", file=sys.stderr)
        return 1
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmark/results/fmha_fwd.jsonl"
    records = [record for case in read(path).values() for record in case if "rival" in record]
    for processor, (slug, measured) in machines(records).items():
        draw_all(processor, measured, path.with_name(path.stem + slug))
    return 0


def draw_all(processor: str, everything: list[Record], path: Path) -> None:
    """A machine's pictures, of the greatest number of threads; each name begins with that of the path."""
    threads = max(r["threads"] for r in everything)
    records = [r for r in everything if r["threads"] == threads]

    def save(name: str, title: str, drawings: Drawings) -> None:
        draw(path.with_name(f"{path.name}_{name}"), f"fmha_fwd on {processor}: {title}", drawings)

    save("share", f"share of the limit measured beside it, {threads} threads", one(bars, records, "share"))
    save("ratio", f"time over Tessera's, {threads} threads", one(bars, records, "ratio"))
    save("roofline", f"GFLOP/s, {threads} threads", by_type(roofline, records))
    if any(shape_of(r) == SUITES["scaling"][-1] for r in records):  # else not measured
        save("scaling", f"GFLOP/s over the length, {threads} threads", by_type(scaling, records))
        save("threads", "GFLOP/s over threads", by_type(threads_scaling, everything))


def one(picture: Callable[..., None], *arguments: Any) -> Drawings:
    """A picture of all types in one."""
    return {"": lambda axes: picture(axes, *arguments)}


def by_type(picture: Callable[..., None], records: list[Record]) -> Drawings:
    """A picture of each type."""
    types = [prec for prec in PRECS if any(r["prec"] == prec for r in records)]
    return {prec: partial(picture, records=[r for r in records if r["prec"] == prec]) for prec in types}


def draw(path: Path, title: str, drawings: Drawings) -> None:
    """Writes pictures, side by side, to an SVG and a PNG."""
    from matplotlib import pyplot

    figure, row = pyplot.subplots(1, len(drawings), figsize=(11, 6), squeeze=False)
    for axes, (name, picture) in zip(row[0], drawings.items(), strict=True):
        picture(axes)
        axes.set_title(name)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(title)
    figure.tight_layout()
    for kind in ("svg", "png"):
        figure.savefig(path.with_name(f"{path.name}.{kind}"), dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
