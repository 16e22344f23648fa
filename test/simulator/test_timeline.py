# SPDX-License-Identifier: MIT
"""The clock's timelines for Perfetto: their spans, and that these add up to what the clock says."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import toolchain
from sim import CAUSES, Sim, SimError, Timing, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

TRACKS = ("MFMA", "VALU", "scalar", "LDS", "memory", "wait", "barrier")
SIMDS = 4
ISSUE = 4
# The causes that waits belong to, as docs/simulator.md has them.
CAUSE_OF = {
    "issue": "issue",
    "other wave": "issue",
    "fetch": "issue",
    "branch": "issue",
    "s_nop": "issue",
    "VALU port": "issue",
    "matrix pipe": "issue",
    "packed fp32": "valu",
    "vmcnt": "memory",
    "memory queue": "memory",
    "lgkmcnt": "lds",
    "LDS queue": "lds",
}
# Whatever takes time, in a loop; wave 0 comes late to each barrier.
MIX = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_lshlrev_b32 v1, 4, v0
    v_cmp_gt_u32 vcc, 64, v0
    s_mov_b32 s6, {rounds}
    s_waitcnt lgkmcnt(0)
1:  global_load_dwordx4 v[40:43], v1, s[2:3]
    v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
    v_exp_f32 v7, v2
    v_add_f32 v3, v4, v5
    v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
    v_pk_mul_f32 v[8:9], v[10:11], v[12:13]
    ds_read_b128 v[44:47], v1
    ds_read_b128 v[44:47], v1
    s_cbranch_vccz 2f
    s_nop 15
    v_mul_lo_u32 v3, v4, v5
2:  s_waitcnt lgkmcnt(0)
    s_barrier
    s_waitcnt vmcnt(0)
    v_exp_f32 v7, v2
    s_sub_u32 s6, s6, 1
    s_cmp_lg_u32 s6, 0
    s_cbranch_scc1 1b
    s_nop 15
    s_nop 15
    s_endpgm
"""


@dataclass(frozen=True)
class Span:
    """An event of the trace."""

    process: int
    wave: int
    simd: int
    track: str
    name: str
    begin: int
    end: int
    issued: int
    text: str
    letter: str = ""


@dataclass
class Timeline:
    """A trace, and what the labels of its processes say."""

    spans: list[Span]
    labels: dict[int, dict[str, Any]]

    def of(self, track: str) -> list[Span]:
        return [span for span in self.spans if span.track == track]


def read(path: Path) -> Timeline:
    events = json.loads(path.read_text())
    threads = {e["tid"]: e["args"] for e in events if e["name"] == "thread_name"}
    spans = []
    for e in (e for e in events if e["ph"] == "X"):
        thread = threads[e["tid"]]
        place = (e["pid"], thread["wave"], thread["simd"], thread["track"], e["name"])
        spans.append(
            Span(*place, e["ts"], e["ts"] + e["dur"], e["args"]["issued"], e["args"]["text"], e["cat"])
        )
    return Timeline(spans, {e["pid"]: e["args"] for e in events if e["name"] == "process_labels"})


def run(sim: Sim, folder: Path, text: str, waves: int, groups: int = 1) -> Timing:
    image = toolchain.assemble(text, "gfx942", folder / "kernel.co", lds=16384, kernarg=8)
    memory = sim.malloc(1 << 16)
    block = (64 * waves, 1, 1)
    sim.launch(sim.load(image), "kernel", (groups * block[0], 1, 1), block, pack(memory, layout="P"))
    return sim.take_timing()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of its own, whose launches take no time to start."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "units=1,dies=1,launch_cycles=0")


def record(library: Path, folder: Path, text: str, waves: int, groups: int = 1) -> tuple[Timeline, Timing]:
    path = folder / "timeline.json"
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        sim.set_output("timeline", path)
        timing = run(sim, folder, text, waves, groups)
    return read(path), timing


def total(spans: list[Span]) -> int:
    return sum(span.end - span.begin for span in spans)


def assert_apart(spans: list[Span]) -> None:
    for a, b in itertools.pairwise(sorted(spans, key=lambda span: span.begin)):
        assert a.end <= b.begin, (a, b)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("waves", [1, 4, 8, 16])
def test_nothing_overlaps(library: Path, tmp_path: Path, waves: int) -> None:
    """Neither in a track nor in what the waves of a SIMD or unit share; and the sums are the clock's."""
    timeline, timing = record(library, tmp_path, MIX.format(rounds=10), waves)
    tracks, shared = defaultdict(list), defaultdict(list)
    for span in timeline.spans:
        tracks[span.process, span.wave, span.track].append(span)
        if span.track in ("MFMA", "VALU"):
            shared[span.track, span.simd].append(span)
        if span.track in ("LDS", "memory"):
            shared[span.track, 0].append(span)
    assert {track for *_, track in tracks} == {*TRACKS}
    assert {wave for _, wave, _ in tracks} == {*range(waves)}
    for spans in (*tracks.values(), *shared.values()):
        assert_apart(spans)
    slots = SIMDS * timing.cycles
    assert total(timeline.of("MFMA")) == pytest.approx(timing.share_of("mfma") * slots, abs=0.01)
    assert total(timeline.of("VALU")) == pytest.approx(timing.valu_busy * slots, abs=0.01)
    assert total(timeline.of("LDS")) == timing.lds_cycles
    (label,) = timeline.labels.values()
    assert label["until"] == label["cycles"] == timing.cycles
    assert len(timeline.of("MFMA")) == timing.matrix
    letters = {span.name: span.letter for span in timeline.spans if span.track != "wait"}
    assert (letters["v_exp_f32"], letters["v_pk_mul_f32"], letters["s_waitcnt"]) == ("T", "P", "w")
    assert {span.letter for span in timeline.of("MFMA")} == {"|"}


# Of Google's document "Trace Event Format", in an array of objects: the metadata that is written, with the
# types of their arguments, and what a complete event must have, whose times are microseconds. Other metadata
# is left alone by those who read it.
METADATA: dict[str, dict[str, type]] = {
    "process_name": {"name": str},
    "process_labels": {"labels": str},
    "thread_name": {"name": str},
    "thread_sort_index": {"sort_index": int},
    "trace_end": {},
}
COMPLETE = {"pid": int, "tid": int, "name": str, "cat": str, "ts": int, "dur": int, "args": dict}


def test_trace_event_format(library: Path, tmp_path: Path) -> None:
    """What chrome://tracing and Perfetto read: events of two phases, whose threads have names."""
    record(library, tmp_path, MIX.format(rounds=3), 8, groups=3)
    events = json.loads((tmp_path / "timeline.json").read_text())
    names: Counter[tuple[str, int, int | None]] = Counter()
    threads = set()
    for event in events:
        if event["ph"] == "M":
            names[event["name"], event["pid"], event.get("tid")] += 1
            assert ("tid" in event) == event["name"].startswith("thread")
            for field, kind in METADATA[event["name"]].items():
                assert type(event["args"][field]) is kind
        else:
            assert event["ph"] == "X"
            assert {field: type(event[field]) for field in COMPLETE} == COMPLETE
            assert event["ts"] >= 0 and event["dur"] > 0
            assert ("thread_name", event["pid"], event["tid"]) in names  # it stands ahead of its events
            threads.add((event["pid"], event["tid"]))
    assert set(names.values()) == {1}
    assert {pid for pid, _ in threads} == {pid for name, pid, _ in names if name == "process_name"}
    assert len({tid for _, tid in threads}) == len(threads)  # a thread is of one process


def issues(spans: list[Span]) -> list[int]:
    """The cycles in which a wave's instructions issued."""
    return sorted(span.issued for span in spans if span.track != "wait")


def in_no_other(spans: list[Span], others: list[Span]) -> int:
    """Cycles in some of the spans that are in none of the others; neither overlap each other."""
    both = (min(a.end, b.end) - max(a.begin, b.begin) for a in spans for b in others)
    return total(spans) - sum(max(cycles, 0) for cycles in both)


@pytest.mark.usefixtures("alone")
def test_causes(library: Path, tmp_path: Path) -> None:
    """With a wave on each SIMD, the spans say what the clock says that cycles went to."""
    timeline, timing = record(library, tmp_path, MIX.format(rounds=10), SIMDS)
    causes: Counter[str] = Counter()
    for simd in range(SIMDS):
        spans = [span for span in timeline.spans if span.simd == simd]
        matrix = [span for span in spans if span.track == "MFMA"]
        slow = [span for span in spans if span.name == "v_exp_f32"]
        valu = [span for span in spans if span.track == "VALU" and span not in slow]
        causes["mfma"] += total(matrix)
        causes["transcendental"] += in_no_other(slow, matrix)
        causes["valu"] += in_no_other(valu, matrix)
        why = {span.end: CAUSE_OF[span.name] for span in spans if span.track == "wait"}
        why |= {span.end: "barrier" for span in spans if span.track == "barrier"}
        times = issues(spans)
        busy = [*matrix, *slow, *valu]
        for begin, end in itertools.pairwise([*times, int(timing.cycles)]):
            gap = Span(0, 0, simd, "", "", begin, end, begin, "")
            reason = "idle" if begin == times[-1] else why.get(end, "issue")
            causes[reason] += in_no_other([gap], merge(busy))
        causes["idle"] += times[0]
    assert {name: causes[name] for name in CAUSES} == pytest.approx(
        {name: share * SIMDS * timing.cycles for name, share in zip(CAUSES, timing.share, strict=True)},
        abs=0.01,
    )
    assert all(causes[name] for name in CAUSES)


def merge(spans: list[Span]) -> list[Span]:
    """The same cycles in spans that do not overlap."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.begin):
        if merged and span.begin <= merged[-1].end:
            last = merged.pop()
            merged.append(Span(0, 0, 0, "", "", last.begin, max(last.end, span.end), 0, ""))
        else:
            merged.append(span)
    return merged


@pytest.mark.usefixtures("alone")
def test_a_waves_cycles(library: Path, tmp_path: Path) -> None:
    """A wave issues, waits or stands at a barrier, and nothing else."""
    timeline, _ = record(library, tmp_path, MIX.format(rounds=5), 8)
    for wave in range(8):
        spans = [span for span in timeline.spans if span.wave == wave]
        times = issues(spans)
        stands = [span for span in spans if span.track in ("wait", "barrier")]
        slots = [Span(0, 0, 0, "", "", t, t + ISSUE, t, "") for t in times]
        barriers = {span.begin for span in spans if span.track == "barrier"}
        parts = [*stands, *(slot for slot in slots if slot.begin not in barriers)]
        assert_apart(parts)
        assert total(parts) == times[-1] + ISSUE


@pytest.mark.usefixtures("alone")
def test_reasons(library: Path, tmp_path: Path) -> None:
    """What a wave waits for, and how long."""
    text = """
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        global_load_dword v2, v1, s[2:3]
        s_waitcnt vmcnt(0)
        s_nop 9
        v_exp_f32 v7, v2
        v_add_f32 v3, v4, v5
        v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
        v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
        v_pk_mul_f32 v[8:9], v[10:11], v[12:13]
        s_branch 1f
    1:  s_branch 2f
        s_nop 0
    2:  s_endpgm
    """
    timeline, _ = record(library, tmp_path, text, 1)
    cycles = {
        (span.name, span.text.split()[0].removesuffix("_e32")): span.end - span.begin
        for span in timeline.of("wait")
    }
    with Sim(library, "gfx942") as sim:
        value = {parameter.name: parameter.value for parameter in sim.parameters()}
    assert cycles["lgkmcnt", "s_waitcnt"] == value["scalar_miss"] - 2 * ISSUE
    assert 0 <= cycles["vmcnt", "s_waitcnt"] + ISSUE - value["mall_latency"] < ISSUE  # two lines
    assert cycles["s_nop", "v_exp_f32"] == 10 * 4 - ISSUE
    assert cycles["VALU port", "v_add_f32"] == 16 - ISSUE
    assert cycles["matrix pipe", "v_mfma_f32_32x32x8_f16"] == 32 - ISSUE
    assert cycles["packed fp32", "v_pk_mul_f32"] == 32 + 8 - ISSUE
    assert cycles["branch", "s_endpgm"] == 16 - ISSUE
    loads = timeline.of("memory")
    assert [(span.name, span.end - span.begin) for span in loads] == [("global_load_dword", 4)]


@pytest.mark.usefixtures("alone")
def test_long_launches_are_cut(library: Path, tmp_path: Path) -> None:
    most = 1 << 17
    text = """
        s_movk_i32 s6, {rounds}
    1:  s_sub_u32 s6, s6, 1
        s_cmp_lg_u32 s6, 0
        s_cbranch_scc1 1b
        s_endpgm
    """
    timeline, timing = record(library, tmp_path, text.format(rounds=6000), 8)
    (label,) = timeline.labels.values()
    assert 0.5 * timing.cycles < label["until"] < label["cycles"] == timing.cycles
    assert f"cycles 0 to {label['until']} of {label['cycles']}" in label["labels"]
    assert 0.99 * most < len(timeline.spans) <= most
    assert max(span.end for span in timeline.spans) == label["until"]
    branch = 4 * ISSUE  # from a taken one to the next instruction
    for wave in range(8):  # all of them end there
        assert max(span.end for span in timeline.spans if span.wave == wave) >= label["until"] - branch


@pytest.mark.usefixtures("alone")
def test_several_groups_and_launches(library: Path, tmp_path: Path) -> None:
    """Groups that share the unit are processes; a new path begins a new file."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        sim.set_output("timeline", first)
        for _ in range(2):
            run(sim, tmp_path, "s_nop 3\ns_endpgm", 1, groups=3)
        sim.set_output("timeline", second)
        run(sim, tmp_path, "s_nop 3\ns_endpgm", 1)
        sim.set_output("timeline", None)
        run(sim, tmp_path, "s_nop 3\ns_endpgm", 1)
        with pytest.raises(SimError, match="output=3: accepted are 0 to 2"):
            sim._check(sim._lib.tessera_sim_set_output(sim._sim, 3, b"x"))
    assert {span.process for span in read(first).spans} == {1, 2, 3, 33, 34, 35}
    assert {span.simd for span in read(first).spans} == {0, 1, 2}
    assert {span.process for span in read(second).spans} == {1}


def test_environment(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "timeline.json"
    monkeypatch.setenv("TESSERA_SIM_TIMELINE", str(path))
    with Sim(library, "gfx942") as sim:
        run(sim, tmp_path, "s_endpgm", 1)
        assert not path.exists()  # the clock is off
        sim.set_clock("on")
        run(sim, tmp_path, "s_endpgm", 1)
    assert [span.name for span in read(path).spans] == ["s_endpgm"]
