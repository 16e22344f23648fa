# SPDX-License-Identifier: MIT
"""Draws what bench.py measured of operations, as SVG and PNG beside their files. Needs matplotlib.

    python benchmark/plots.py [benchmark/results/fmha_fwd.jsonl ...]      without files: all that there are

Pictures are of one machine each, and its name is in the names of their files; only those of the file's first
machine go without.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import page as pages
from page import LIMITS, Page, Record, median_probe
from records import read

ROOT = Path(__file__).resolve().parents[1]

Drawings = dict[str, Callable[[Any], None]]  # by name


def machines(records: list[Record]) -> dict[str, tuple[str, list[Record]]]:
    """By processor: what is added to the names of its files, and its records."""
    found: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        name = record["processor"]
        words = re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", "", name.lower()))
        found.setdefault(name, ("_" + "_".join(words) if found else "", []))[1].append(record)
    return found


def cases_of(page: Page, suites: Sequence[str]) -> list[str]:
    """The names of the cases of suites, in order, type by type."""
    return [case.name for prec in page.precs for suite in suites for case in page.cases(suite, [prec])]


def bars(axes: Any, page: Page, records: list[Record], value: str) -> None:
    """A group of bars for each case, a bar for each rival."""
    of = {(r["case"], r["rival"]): r[value] for r in records}
    rivals = list(dict.fromkeys(r["rival"] for r in records))
    groups = [case for case in cases_of(page, page.pictured) if any((case, rival) in of for rival in rivals)]
    for n, rival in enumerate(rivals):
        places = [g + n * 0.8 / len(rivals) for g, group in enumerate(groups) if (group, rival) in of]
        heights = [of[group, rival] for group in groups if (group, rival) in of]
        axes.bar(places, heights, 0.8 / len(rivals), label=rival, align="edge")
    axes.set_xticks([g + 0.4 for g in range(len(groups))], groups)
    axes.tick_params("x", rotation=90, labelsize=7)
    if value == "ratio":
        axes.set_yscale("log", base=2)


def roofs(page: Page, records: list[Record]) -> dict[str, float]:
    """GFLOP/s (reading: GB/s) of each limit that Tessera's calls have met: medians of what was probed."""
    ours = [r for r in records if r["rival"] == "tessera"]
    probe = median_probe([r["probe"] for r in ours])
    return {limit: probe[limit] for limit in sorted({"read", *map(page.limit, ours)})}


def roofline(axes: Any, page: Page, records: list[Record]) -> None:
    """GFLOP/s over FLOP for a byte of the tensors, under what reading and products allow."""
    compared = set(cases_of(page, page.pictured))
    records = [r for r in records if r["case"] in compared]
    tops = roofs(page, records)
    read = tops.pop("read")
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = [(page.intensity(r), r["gflops"]) for r in records if r["rival"] == rival]
        axes.plot(*zip(*points, strict=True), "o", markersize=4, label=rival)
    for limit, top in tops.items():
        axes.plot([0.5, top / read, 4096], [0.5 * read, top, top], "k-", linewidth=0.8)
        axes.annotate(limit, (4096, top), fontsize=7, ha="right", va="bottom")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("FLOP for a byte of the tensors")


def scaling(axes: Any, page: Page, records: list[Record]) -> None:
    """GFLOP/s over the size of the problem."""
    assert page.scaling
    scaled = set(cases_of(page, [page.scaling]))
    records = [r for r in records if r["case"] in scaled]
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = sorted((page.scale(r), r["gflops"]) for r in records if r["rival"] == rival)
        axes.plot(*zip(*points, strict=True), marker="o", label=rival)
    axes.set_xscale("log", base=2)
    axes.set_xlabel(page.scale_label)


def largest(page: Page, prec: str) -> str:
    """The last case of the suite of one problem in several sizes."""
    assert page.scaling
    return page.cases(page.scaling, [prec])[-1].name


def threads_scaling(axes: Any, page: Page, records: list[Record]) -> None:
    """GFLOP/s over the number of threads, of the largest problem of the suite."""
    case = largest(page, records[0]["prec"])
    records = [r for r in records if r["case"] == case]
    for rival in dict.fromkeys(r["rival"] for r in records):
        points = sorted((r["threads"], r["gflops"]) for r in records if r["rival"] == rival)
        axes.plot(*zip(*points, strict=True), marker="o", label=rival)
    axes.set_xticks(sorted({r["threads"] for r in records}))
    axes.set_xlabel(f"threads ({case})")


def main() -> int:
    """Writes the pictures of every machine."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        print("plots.py needs matplotlib: pip install matplotlib", file=sys.stderr)
        return 1
    results = [ROOT / f"benchmark/results/{name}.jsonl" for name in pages.names()]
    for path in [Path(word) for word in sys.argv[1:]] or [path for path in results if path.exists()]:
        records = [record for case in read(path).values() for record in case if "rival" in record]
        for processor, (slug, measured) in machines(records).items():
            draw_all(pages.load(path.stem), processor, measured, path.with_name(path.stem + slug))
    return 0


def draw_all(page: Page, processor: str, everything: list[Record], path: Path) -> None:
    """A machine's pictures, of the greatest number of threads; each name begins with that of the path."""
    if page.on_gpu:  # what limits it has other work
        everything = [r for r in everything if r["rival"] not in LIMITS]
    threads = max(r["threads"] for r in everything)
    records = [r for r in everything if r["threads"] == threads]
    where = ", sustained" if page.on_gpu else f", {threads} threads"

    def save(name: str, title: str, drawings: Drawings) -> None:
        draw(path.with_name(f"{path.name}_{name}"), f"{page.name} on {processor}: {title}", drawings)

    def by_type(picture: Callable[..., None], records: list[Record]) -> Drawings:
        types = [prec for prec in page.precs if any(r["prec"] == prec for r in records)]
        return {
            prec: partial(picture, page=page, records=[r for r in records if r["prec"] == prec])
            for prec in types
        }

    share, ratio = (partial(bars, page=page, records=records, value=value) for value in ("share", "ratio"))
    save("share", f"share of the limit measured beside it{where}", {"": share})
    save("ratio", f"time over Tessera's{where}", {"": ratio})
    if page.intensity(records[0]) is not None:
        save("roofline", f"GFLOP/s{where}", by_type(roofline, records))
    measured = {r["case"] for r in records}
    sizes = measured & set(cases_of(page, [page.scaling])) if page.scaling else set()
    if len(sizes) > 1 and any(largest(page, prec) in measured for prec in page.precs):
        save("scaling", f"GFLOP/s over the size{where}", by_type(scaling, records))
        if not page.on_gpu:
            save("threads", "GFLOP/s over threads", by_type(threads_scaling, everything))


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
