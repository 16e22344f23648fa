#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what the waves of a SIMD do in a loop by the simulator's clock (docs/simulator.md), as SVG and PNG.

    build/bin/tile_example_fmha_fwd -device=sim:gfx942 -s=4096 -v=0 -sample=1 -trace=trace.json
    python benchmark/schedule.py trace.json --output schedule

It finds the loop that issues most matrix instructions, or without any takes most cycles, and of its rounds
those in its midst that take as long as most do. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

LANES = ("MFMA", "VALU", "scalar", "LDS", "memory", "wait", "barrier")

# Colours of instructions by their letters, in the order of the legend.
WORK = {
    "MFMA": ("#5b8fd6", "|"),
    "VALU": ("#7cc58d", "v"),
    "transcendental": ("#f0a24b", "T"),
    "packed fp32": ("#a78bd4", "P"),
    "conversion": ("#c9c94f", "c"),
    "scalar, s_waitcnt, branch": ("#9aa5b1", "swnb"),
    "LDS": ("#3fb8b0", "d"),
    "memory": ("#e07aa8", "m"),
    "barrier": ("#d9695f", "B"),
}
# Of waits by their reasons: pale colours of what is waited for.
WAITS = {
    "for the MFMA pipe": ("#c5d8f3", ("matrix pipe",)),
    "for the VALU port": ("#cdebd4", ("VALU port",)),
    "for another wave's issue": ("#e6e9ed", ("other wave", "issue", "start")),
    "for packed fp32": ("#dccff0", ("packed fp32",)),
    "for fetch, branch, s_nop": ("#f3e7b3", ("fetch", "branch", "s_nop")),
    "lgkmcnt, LDS queue": ("#b5e6e2", ("lgkmcnt", "LDS queue")),
    "vmcnt, memory queue": ("#f6cfe0", ("vmcnt", "memory queue")),
}
COLOURS = {letter: colour for colour, letters in WORK.values() for letter in letters}
WAIT_COLOURS = {reason: colour for colour, reasons in WAITS.values() for reason in reasons}


@dataclass(frozen=True)
class Span:
    """An event of a lane, and the instruction that it is of."""

    begin: int
    end: int
    name: str
    letter: str
    issued: int
    at: int  # the instruction's place in the code


@dataclass
class Wave:
    """The lanes of a wave."""

    name: str
    simd: int
    lanes: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))

    def issues(self) -> list[tuple[int, Span]]:
        """Its instructions in order."""
        spans = (span for lane, spans in self.lanes.items() if lane != "wait" for span in spans)
        return sorted(((span.issued, span) for span in spans), key=lambda pair: pair[0])


@dataclass(frozen=True)
class Loop:
    """The place that a wave goes back to, and the cycles in which it is there again."""

    at: int
    times: tuple[int, ...]

    def steady(self, rounds: int) -> int:
        """The first of so many rounds that together take as long as most: the nearest to the midst."""
        lengths = [end - begin for begin, end in zip(self.times, self.times[rounds:], strict=False)]
        if not lengths:
            raise SystemExit(
                f"--rounds {rounds}: the loop at +0x{self.at:x} has {len(self.times) - 1} whole ones"
            )
        usual = statistics.median_low(lengths)
        middle = len(lengths) / 2
        return min(range(len(lengths)), key=lambda i: (abs(lengths[i] - usual), abs(i - middle)))


def read(path: Path) -> tuple[list[Wave], dict[str, Any]]:
    """The waves of a trace's first launch that share its unit, and what is said of the launch."""
    events = json.loads(path.read_text())
    labels = {event["pid"]: event["args"] for event in events if event["name"] == "process_labels"}
    threads = {event["tid"]: event for event in events if event["name"] == "thread_name"}
    launch = next(iter(labels.values()))
    waves: dict[tuple[int, int], Wave] = {}
    for event in events:
        if event["ph"] != "X" or labels[event["pid"]] != launch:
            continue
        thread, args = threads[event["tid"]]["args"], event["args"]
        name = f"wave {thread['wave']}" + (f" of {event['pid']}" if len(labels) > 1 else "")
        wave = waves.setdefault((event["pid"], thread["wave"]), Wave(name, thread["simd"]))
        begin, end = event["ts"], event["ts"] + event["dur"]
        span = Span(begin, end, event["name"], event["cat"], args["issued"], int(args["at"], 16))
        wave.lanes[thread["track"]].append(span)
    return list(waves.values()), launch


def find_loop(wave: Wave) -> Loop:
    """The loop whose whole rounds have most matrix instructions, and then the shortest of these."""
    issues = wave.issues()
    returns: dict[int, list[int]] = defaultdict(list)  # indices of first instructions behind a jump back
    for i in range(1, len(issues)):
        if issues[i][1].at < issues[i - 1][1].at:
            returns[issues[i][1].at].append(i)
    matrix = [0]
    for _, span in issues:
        matrix.append(matrix[-1] + (span.letter == "|"))

    def worth(at: int) -> tuple[int, int]:
        first, last = returns[at][0], returns[at][-1]
        done = matrix[last] - matrix[first]
        cycles = issues[last][0] - issues[first][0]
        return (done, -cycles // max(1, len(returns[at]) - 1)) if matrix[-1] else (cycles, 0)

    loops = [at for at, indices in returns.items() if len(indices) > 1]
    if not loops:
        raise SystemExit("the trace has no loop of two rounds")
    best = max(loops, key=worth)
    return Loop(best, tuple(issues[i][0] for i in returns[best]))


@dataclass(frozen=True)
class Window:
    """The cycles that are drawn."""

    begin: int
    end: int


def inside(spans: list[Span], window: Window) -> list[Span]:
    """Their parts in a window, whose first cycle is 0 for these."""
    return [
        replace(
            span,
            begin=max(span.begin - window.begin, 0),
            end=min(span.end, window.end) - window.begin,
        )
        for span in spans
        if span.begin < window.end and span.end > window.begin
    ]


def busy(spans: list[Span], window: Window) -> float:
    """The share of a window's cycles."""
    return sum(span.end - span.begin for span in inside(spans, window)) / (window.end - window.begin)


def by_colour(lane: str, spans: list[Span]) -> dict[str, list[tuple[int, int]]]:
    """Begins and ends for each colour; neighbours that look the same are one, but for matrix instructions."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: span.begin):
        colour = WAIT_COLOURS[span.name] if lane == "wait" else COLOURS[span.letter]
        parts = found[colour]
        if lane != "MFMA" and parts and parts[-1][1] == span.begin:
            parts[-1] = (parts[-1][0], span.end)
        else:
            parts.append((span.begin, span.end))
    return found


# ---- drawing

LANE, GAP = 0.78, 0.6  # heights, of 1 from lane to lane, and between waves
INCHES = 0.23  # from lane to lane


def bars(axes: Any, parts: list[tuple[float, float]], middle: float, colour: str) -> None:
    """Bars of a colour, as one path of thick lines: files are smaller than with boxes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    corners = [(x, middle) for part in parts for x in part]
    codes = [Outline.MOVETO, Outline.LINETO] * len(parts)
    width = LANE * INCHES * 72
    line = {"edgecolor": colour, "linewidth": width, "capstyle": "butt", "fill": False}
    axes.add_patch(PathPatch(Outline(corners, codes), **line))


def draw_lane(axes: Any, lane: str, spans: list[Span], middle: float, window: Window) -> None:
    """Draws a lane with its name and busy share; matrix instructions stay apart."""
    place = {"transform": axes.get_yaxis_transform(), "va": "center"}
    gap = 0.1 if lane == "MFMA" else 0
    bars(axes, [(0, window.end - window.begin)], middle, "#f6f7f9")
    for colour, parts in by_colour(lane, inside(spans, window)).items():
        bars(axes, [(a, b - gap * (b - a)) for a, b in parts], middle, colour)
    axes.text(-0.006, middle, lane, ha="right", **place)
    axes.text(1.006, middle, f"{100 * busy(spans, window):.0f} %", **place)


def draw_wave(axes: Any, wave: Wave, top: float, window: Window) -> None:
    """Draws a wave's lanes below one another."""
    for i, lane in enumerate(LANES):
        draw_lane(axes, lane, wave.lanes[lane], top + i + 0.5, window)
    place = {"transform": axes.get_yaxis_transform(), "ha": "center", "va": "center"}
    axes.text(-0.075, top + len(LANES) / 2, wave.name, rotation=90, weight="bold", **place)


def legends(figure: Any) -> None:
    """Colours of work, and of waits, at the bottom."""
    from matplotlib.patches import Patch

    for place, title, colours in ((0.06, "work", WORK), (0.53, "wait", WAITS)):
        patches = [Patch(facecolor=colour, label=name) for name, (colour, _) in colours.items()]
        figure.legend(
            handles=patches,
            title=title,
            alignment="left",
            ncols=3,
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(place, 0.0),
            handlelength=1.2,
            columnspacing=1.4,
        )


def title_of(launch: dict[str, Any], simd: int, loop: Loop, first: int, rounds: int) -> str:
    """What is shown: the kernel's name, and which rounds."""
    kernel = launch["kernel"].removeprefix("tessera_k_")
    which = f"round {first + 1}" if rounds == 1 else f"rounds {first + 1} to {first + rounds}"
    return f"{kernel}\n{which} of the loop at +0x{loop.at:x}, SIMD {simd} of a compute unit, modelled"


def rate(waves: list[Wave], window: Window) -> str:
    """How well the matrix pipe is used."""
    begins = [span.begin for wave in waves for span in wave.lanes["MFMA"]]
    count = sum(window.begin <= begin < window.end for begin in begins)
    share = sum(busy(wave.lanes["MFMA"], window) for wave in waves)
    cycles = window.end - window.begin
    return f": {cycles / count:.1f} cycles an MFMA, pipe busy {100 * share:.0f} %" if count else ""


def draw(path: Path, waves: list[Wave], title: str, window: Window) -> None:
    """Writes the picture to an SVG and a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    above, below, rows = 0.5, 1.2, len(waves) * (len(LANES) + GAP)
    height = above + below + INCHES * rows
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tessera", "font.size": 8}):
        figure, axes = pyplot.subplots(figsize=(12, height))
        figure.subplots_adjust(left=0.095, right=0.955, top=1 - above / height, bottom=below / height)
        for i, wave in enumerate(waves):
            draw_wave(axes, wave, i * (len(LANES) + GAP), window)
        axes.set(xlim=(0, window.end - window.begin), ylim=(rows, 0), yticks=[], xlabel="cycles")
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.set_title(title + rate(waves, window), loc="left", fontsize=9)
        legends(figure)
        figure.savefig(path.with_name(f"{path.name}.png"), dpi=110)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        # A hundredth of a pixel is enough, and half of the file.
        short = re.sub(r"(\d\.\d\d)\d+", r"\1", text.getvalue())
        path.with_name(f"{path.name}.svg").write_text(re.sub(r" +$", "", short, flags=re.MULTILINE))
        pyplot.close(figure)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, help="what -trace=FILE or TESSERA_SIM_TIMELINE=FILE wrote")
    parser.add_argument("--output", type=Path, help="its path without .svg and .png; default: the trace's")
    parser.add_argument("--simd", type=int, default=0, help="0 to 3 (default: 0)")
    parser.add_argument("--rounds", type=int, default=1, help="of the loop (default: 1)")
    parser.add_argument("--cycles", type=int, help="only the first of these; default: all")
    arguments = parser.parse_args()
    waves, launch = read(arguments.trace)
    waves = [wave for wave in waves if wave.simd == arguments.simd]
    if not waves:
        sys.exit(f"--simd {arguments.simd}: the trace has no wave there")
    loop = find_loop(waves[0])
    first = loop.steady(arguments.rounds)
    begin, end = loop.times[first], loop.times[first + arguments.rounds]
    window = Window(begin, min(end, begin + (arguments.cycles or end)))
    title = title_of(launch, arguments.simd, loop, first, arguments.rounds)
    try:
        draw(arguments.output or arguments.trace.with_suffix(""), waves, title, window)
    except ImportError:
        print("schedule.py needs matplotlib: pip install matplotlib", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
