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
from pathlib import Path
from typing import Any

from records import Record, read, shape_of
from shapes import SUITES

ROOT = Path(__file__).resolve().parents[1]


def machines(records: list[Record]) -> dict[str, tuple[str, list[Record]]]:
    """By processor: what is added to the names of its files, and its records."""
    found: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        name = record["processor"]
        words = re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", "", name.lower()))
        found.setdefault(name, ("_" + "_".join(words) if found else "", []))[1].append(record)
    return found


def bars(axes: Any, records: list[Record], value: Callable[[Record], float], suites: tuple[str, ...]) -> None:
    """A group of bars for each shape and type, a bar for each rival."""
    shapes = [shape for suite in suites for shape in SUITES[suite]]
    groups = [(shape, prec) for prec in ("fp32", "bf16", "fp16") for shape in shapes]
    of = {(shape_of(r), r["prec"], r["rival"]): value(r) for r in records}
    groups = [group for group in groups if any((*group, r["rival"]) in of for r in records)]
    rivals = list(dict.fromkeys(r["rival"] for r in records))
    for n, rival in enumerate(rivals):
        places = [g + n * 0.8 / len(rivals) for g, group in enumerate(groups) if (*group, rival) in of]
        heights = [of[(*group, rival)] for group in groups if (*group, rival) in of]
        axes.bar(places, heights, 0.8 / len(rivals), label=rival, align="edge")
    axes.set_xticks([g + 0.4 for g in range(len(groups))], [f"{prec} {shape}" for shape, prec in groups])
    axes.tick_params("x", rotation=90, labelsize=7)
    axes.legend(fontsize=7)


def scaling(axes: Any, records: list[Record]) -> None:
    """GFLOP/s over the length."""
    shapes = SUITES["scaling"]
    for rival, prec in dict.fromkeys((r["rival"], r["prec"]) for r in records):
        points = {shape_of(r): r["gflops"] for r in records if (r["rival"], r["prec"]) == (rival, prec)}
        there = [shape for shape in shapes if shape in points]
        axes.plot([s.s_q for s in there], [points[s] for s in there], marker="o", label=f"{rival} {prec}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("length (8 heads, d 128)")
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize=7)


def threads_scaling(axes: Any, records: list[Record]) -> None:
    """GFLOP/s over the number of threads, of the longest shape of the suite."""
    shape = SUITES["scaling"][-1]
    records = [r for r in records if shape_of(r) == shape]
    for rival, prec in dict.fromkeys((r["rival"], r["prec"]) for r in records):
        points = sorted(
            (r["threads"], r["gflops"]) for r in records if (r["rival"], r["prec"]) == (rival, prec)
        )
        axes.plot(*zip(*points, strict=True), marker="o", label=f"{rival} {prec}")
    axes.set_xticks(sorted({r["threads"] for r in records}))
    axes.set_xlabel(f"threads ({shape})")
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize=7)


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
    from matplotlib import pyplot

    threads = max(r["threads"] for r in everything)
    records = [r for r in everything if r["threads"] == threads]
    drawings: dict[str, tuple[str, Callable[[Any], None]]] = {
        "share": (
            f"share of the limit measured beside it, {threads} threads",
            lambda axes: bars(axes, records, lambda r: r["share"], ("table", "short", "decode")),
        ),
        "ratio": (
            f"time over Tessera's, {threads} threads",
            lambda axes: bars(axes, records, lambda r: r["ratio"], ("table", "short", "decode")),
        ),
        "scaling": (f"rate over the length, {threads} threads", lambda axes: scaling(axes, records)),
        "threads": ("rate over threads", lambda axes: threads_scaling(axes, everything)),
    }
    if not any(shape_of(r) == SUITES["scaling"][-1] for r in records):
        del drawings["scaling"], drawings["threads"]  # not measured
    for name, (title, draw) in drawings.items():
        figure, axes = pyplot.subplots(figsize=(11, 6))
        draw(axes)
        axes.set_title(f"fmha_fwd on {processor}: {title}")
        axes.grid(axis="y", alpha=0.3)
        if name == "ratio":
            axes.set_yscale("log", base=2)
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(path.with_name(f"{path.name}_{name}.{kind}"), dpi=110)
        pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
