# SPDX-License-Identifier: MIT
"""Draws what fmha_fwd.py measured, as SVG and PNG beside its file. Needs matplotlib.

    python benchmark/plots.py [benchmark/results/fmha_fwd.jsonl]

The newest record of each shape, type, number of threads and rival counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shapes import SUITES, Shape

ROOT = Path(__file__).resolve().parents[1]
Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    """The newest record of each measurement."""
    newest: dict[tuple[Any, ...], Record] = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if "rival" in record:
            newest[shape_of(record), record["prec"], record["threads"], record["rival"]] = record
    return list(newest.values())


def shape_of(record: Record) -> Shape:
    """The problem that was timed."""
    return Shape(*(record[name] for name in Shape.__dataclass_fields__))


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
    """Writes the pictures of the greatest number of threads."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("plots.py needs matplotlib: pip install matplotlib", file=sys.stderr)
        return 1
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmark/results/fmha_fwd.jsonl"
    everything = read(path)
    threads = max(r["threads"] for r in everything)
    records = [r for r in everything if r["threads"] == threads]
    drawings: dict[str, tuple[str, Callable[[Any], None]]] = {
        "share": (
            f"share of the CPU's limit measured beside it, {threads} threads",
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
        axes.set_title(f"fmha_fwd: {title}")
        axes.grid(axis="y", alpha=0.3)
        if name == "ratio":
            axes.set_yscale("log", base=2)
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(path.with_name(f"{path.stem}_{name}.{kind}"), dpi=110)
        pyplot.close(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
