# SPDX-License-Identifier: MIT
"""benchmark/schedule.py: which loop and which of its rounds are drawn, and how."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import schedule  # noqa: E402

CLOCK = ROOT / "simulator" / "clock"
MFMA, VALU, SCALAR, WAIT = 0, 1, 2, 5


def event(track: int, begin: int, took: int, at: int, letter: str) -> dict[str, Any]:
    name = "vmcnt" if track == WAIT else "x"
    args = {"at": f"+0x{at:x}", "issued": begin, "text": ""}
    place = {"ph": "X", "pid": 1, "tid": track, "ts": begin, "dur": took}
    return place | {"cat": letter, "name": name, "args": args}


def trace(folder: Path, rounds: list[int]) -> Path:
    """A loop of two MFMAs at 0x100 whose rounds take so many cycles, behind a longer one without."""
    labels = {"kernel": "tessera_k_some", "arch": "gfx942", "until": 10000, "cycles": 10000}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_labels", "args": labels},
        *(
            {"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"wave": 0, "simd": 2, "track": t}}
            for i, t in enumerate(schedule.LANES)
        ),
    ]
    now = 0
    for _ in range(50):
        events += [event(VALU, now, 4, 0x10, "v"), event(SCALAR, now + 4, 4, 0x20, "b")]
        now += 100
    for took in rounds:
        events += [event(MFMA, now, 32, 0x100, "|"), event(MFMA, now + 32, 32, 0x108, "|")]
        events += [event(WAIT, now + 64, took - 68, 0x110, "b"), event(SCALAR, now + took - 4, 4, 0x110, "b")]
        now += took
    events.append(event(SCALAR, now, 4, 0x118, "s"))
    path = folder / "trace.json"
    path.write_text(json.dumps(events))
    return path


def test_loop_and_round(tmp_path: Path) -> None:
    """The loop with the MFMAs; the usual round that is nearest to the midst, and not one that took longer."""
    (wave,), launch = schedule.read(trace(tmp_path, [400, 200, 200, 300, 200, 200, 250]))
    assert wave.simd == 2 and launch["kernel"] == "tessera_k_some"
    loop = schedule.find_loop(wave)
    assert loop.at == 0x100
    assert [b - a for a, b in zip(loop.times, loop.times[1:], strict=False)] == [200, 200, 300, 200, 200]
    assert loop.steady(1) in (1, 3)
    assert loop.steady(5) == 0
    with pytest.raises(SystemExit, match="--rounds 6: the loop at \\+0x100 has 5 whole ones"):
        loop.steady(6)
    window = schedule.Window(loop.times[1], loop.times[2])
    assert schedule.busy(wave.lanes["MFMA"], window) == pytest.approx(64 / 200)
    assert schedule.rate([wave], window) == ": 100.0 cycles an MFMA, pipe busy 32 %"
    assert schedule.busy(wave.lanes["wait"], schedule.Window(window.begin + 64, window.end)) < 1


def test_no_loop(tmp_path: Path) -> None:
    (wave,), _ = schedule.read(trace(tmp_path, []))
    assert schedule.find_loop(wave).at == 0x10  # by cycles, where there is no MFMA
    wave.lanes = {"scalar": wave.lanes["scalar"][:1]}
    with pytest.raises(SystemExit, match="no loop of two rounds"):
        schedule.find_loop(wave)


def test_neighbours_are_one() -> None:
    """But not MFMAs, so that they can be counted."""
    spans = [schedule.Span(4 * i, 4 * i + 4, "x", letter, 4 * i, 0) for i, letter in enumerate("vvTv")]
    assert schedule.by_colour("VALU", spans) == {
        schedule.COLOURS["v"]: [(0, 8), (12, 16)],
        schedule.COLOURS["T"]: [(8, 12)],
    }
    spans = [schedule.Span(32 * i, 32 * i + 32, "x", "|", 32 * i, 0) for i in range(2)]
    assert schedule.by_colour("MFMA", spans) == {schedule.COLOURS["|"]: [(0, 32), (32, 64)]}


def test_colours() -> None:
    """Each letter and each reason of the clock has one; no two of a kind share it."""
    letters = re.search(r'letters\[SIM_KINDS \+ 1\] = "(\S+)"', (CLOCK / "kinds.c").read_text())
    assert letters and {*letters[1], "b", "c"} == set(schedule.COLOURS)
    reasons = re.findall(r'\] = \{"([^"]+)", TESSERA_SIM_CAUSE', (CLOCK / "reasons.c").read_text())
    assert {*reasons} - {"barrier"} == set(schedule.WAIT_COLOURS)
    colours = [colour for colour, _ in (*schedule.WORK.values(), *schedule.WAITS.values())]
    assert len(set(colours)) == len(colours)


def test_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = trace(tmp_path, [200] * 4)
    waves, _ = schedule.read(path)
    schedule.draw(tmp_path / "picture", waves, "title", schedule.Window(5000, 5400))
    text = (tmp_path / "picture.svg").read_text()
    assert "title: 100.0 cycles an MFMA, pipe busy 32 %" in text
    assert all(f">{lane}</text>" in text for lane in schedule.LANES)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
