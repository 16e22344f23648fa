# SPDX-License-Identifier: MIT
"""The clock: what it counts, how it samples launches, and its settings."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import toolchain
from conftest import ROOT, SIMULATOR
from sim import ARCHS, CAUSES, Sim, SimError, Timing, pack

sys.path.append(str(SIMULATOR / "clock"))
import table

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

# Stores the workgroup's number plus 1, after as many rounds as that.
COUNT = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_add_u32 s5, s4, 1
    s_lshl_b32 s6, s4, 2
    v_mov_b32 v1, s5
    v_mov_b32 v2, s6
    s_mul_i32 s7, s5, {rounds}
1:  v_add_f32 v3, v4, v5
    s_sub_u32 s7, s7, 1
    s_cmp_lg_u32 s7, 0
    s_cbranch_scc1 1b
    s_waitcnt lgkmcnt(0)
    global_store_dword v2, v1, s[2:3]
    s_endpgm
"""
GROUP_ID = ".amdhsa_system_sgpr_workgroup_id_x 1\n.amdhsa_user_sgpr_count 4"


def run_count(
    library: Path, folder: Path, mode: str, groups: int, rounds: int = 40
) -> tuple[Timing, list[int]]:
    text = COUNT.format(rounds=rounds)
    image = toolchain.assemble(text, "gfx942", folder / "count.co", directives=GROUP_ID)
    with Sim(library, "gfx942") as sim:
        sim.set_clock(mode)
        out = sim.upload(bytes(4 * groups))
        sim.launch(sim.load(image), "kernel", (64 * groups, 1, 1), (64, 1, 1), pack(out, layout="P"))
        words = sim.download(out, 4 * groups)
        return sim.take_timing(), [
            int.from_bytes(words[i : i + 4], "little") for i in range(0, 4 * groups, 4)
        ]


def run_text(
    sim: Sim, folder: Path, text: str, *args: int, waves: int = 1, groups: int = 1, lds: int = 65536
) -> Timing:
    image = toolchain.assemble(
        text + "\ns_endpgm", "gfx942", folder / "text.co", lds=lds, kernarg=16, directives=GROUP_ID
    )
    sim.launch(
        sim.load(image),
        "kernel",
        (64 * waves * groups, 1, 1),
        (64 * waves, 1, 1),
        pack(*args, layout="P" * len(args)),
    )
    return sim.take_timing()


def test_off_by_default(library: Path, tmp_path: Path) -> None:
    with Sim(library, "gfx942") as sim:
        assert run_text(sim, tmp_path, "s_nop 0").launches == 0


def test_all_or_a_sample(library: Path, tmp_path: Path) -> None:
    """Both model the same; with `sample` most workgroups are not executed."""
    groups = 1000
    on, whole = run_count(library, tmp_path, "on", groups)
    sample, part = run_count(library, tmp_path, "sample", groups)
    assert whole == list(range(1, groups + 1))
    executed = [i for i, word in enumerate(part) if word]
    assert 8 <= len(executed) <= 71
    assert all(part[i] == i + 1 for i in executed)
    assert on.launches == sample.launches == 1
    assert on.cycles == sample.cycles


def test_sampling_error(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one unit, the cycles of a launch whose workgroups differ are about the sum of theirs."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "units=1,dies=1,launch_cycles=0,waves=1")
    groups, rounds = 400, 20
    timing, _ = run_count(library, tmp_path, "sample", groups, rounds)
    alone, _ = run_count(library, tmp_path, "sample", 1, rounds)
    other, _ = run_count(library, tmp_path, "sample", 1, 2 * rounds)
    a_round = (other.cycles - alone.cycles) / rounds
    four_places = 4  # a wave on each SIMD
    expected = groups * (alone.cycles + a_round * rounds * (groups - 1) / 2) / four_places
    assert timing.cycles == pytest.approx(expected, rel=0.05)
    assert 0 <= timing.sampling_error < 0.05


def test_units_get_more_workgroups(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two waves of a SIMD the older goes first; a launch of many takes as long as they hold the port."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "units=1,dies=1,launch_cycles=0,waves=2")
    each, groups = 2000, 400
    with Sim(library, "gfx942") as sim:
        sim.set_clock("sample")
        mfma = "v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], v[8:11]\n"
        text = (mfma + "v_exp_f32 v3, v4\n" * 3) * (each // 4)
        timing = run_text(sim, tmp_path, text, waves=4, groups=groups, lds=0)
    assert timing.waves_a_simd == pytest.approx(2, rel=0.01)
    assert timing.matrix == 4 * each / 4 * groups
    port = each / 4 * (4 + 3 * 16)
    assert timing.cycles == pytest.approx(groups * port, rel=0.03)
    assert timing.cycles_a_matrix == pytest.approx(4 + 3 * 16, rel=0.03)


def test_shares(library: Path, tmp_path: Path) -> None:
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        busy = run_text(
            sim, tmp_path, "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]\n" * 100, waves=4
        )
        plain = run_text(sim, tmp_path, "v_exp_f32 v1, v2\nv_add_f32 v3, v4, v5\n" * 100, waves=4)
        late = "v_cmp_gt_u32 vcc, 64, v0\ns_cbranch_vccz 1f\n" + "s_nop 15\n" * 100 + "1: s_barrier\ns_nop 0"
        barrier = run_text(sim, tmp_path, late, waves=4)
    for timing in (busy, plain, barrier):
        assert sum(timing.share) == pytest.approx(1)
    assert busy.share_of("mfma") > 0.95
    assert busy.cycles_a_matrix == pytest.approx(32, rel=0.02)
    assert busy.matrix == 400
    assert busy.waves_a_simd == pytest.approx(1, abs=0.05)
    assert plain.share_of("transcendental") == pytest.approx(0.8, abs=0.02)
    assert plain.share_of("valu") == pytest.approx(0.2, abs=0.02)
    assert barrier.share_of("barrier") == pytest.approx(0.75, abs=0.05)  # three of four SIMDs wait


def test_clock_falls_with_work(library: Path, tmp_path: Path) -> None:
    mfma = "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]\n"
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        busy = run_text(sim, tmp_path, mfma * 100, waves=4)
        both = run_text(sim, tmp_path, (mfma + "v_add_f32 v3, v4, v5\n" * 6) * 100, waves=4)
        plain = run_text(sim, tmp_path, "s_nop 7\n" * 100, waves=4)
    assert both.cycles == pytest.approx(busy.cycles, rel=0.02)
    assert both.valu_busy == pytest.approx(0.75, abs=0.02)
    assert plain.clock_mhz == 2100
    assert busy.clock_mhz == pytest.approx(1207 * (1.02 / busy.share_of("mfma")) ** 0.5)
    assert both.clock_mhz < 0.85 * busy.clock_mhz
    for timing in (busy, both, plain):
        assert timing.ms == pytest.approx(timing.cycles / timing.clock_mhz / 1e3)
        assert timing.ms_band == pytest.approx(0.2 * timing.ms)


@pytest.mark.parametrize(("apart", "lines"), [(4, 2), (16, 8), (128, 64), (0, 1)])
def test_lines(library: Path, tmp_path: Path, apart: int, lines: int) -> None:
    """Lanes that access the same line make one request of it; the second time L1 has it."""
    load = "global_load_dword v2, v1, s[2:3]\ns_waitcnt vmcnt(0)\n"
    text = (
        f"s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mul_u32_u24 v1, {apart}, v0\ns_waitcnt lgkmcnt(0)\n"
        + 2 * load
    )
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        timing = run_text(sim, tmp_path, text, sim.malloc(65536))
    assert timing.bytes_of("mall") == timing.bytes_of("l1") == 128 * lines


# Workgroup g reads the region whose offset a table has for it.
READ = """
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    s_lshl_b32 s6, s4, 2
    v_lshlrev_b32 v1, 4, v0
    s_waitcnt lgkmcnt(0)
    s_load_dword s7, s[8:9], s6
    s_waitcnt lgkmcnt(0)
    v_add_u32 v1, s7, v1
"""


def read_regions(library: Path, folder: Path, offsets: list[int], size: int, text: str) -> float:
    """The bytes that memory delivers to workgroups that each read from their offset on, all at once."""
    with Sim(library, "gfx942") as sim:
        sim.set_clock("sample")
        table = sim.upload(b"".join(offset.to_bytes(4, "little") for offset in offsets))
        timing = run_text(sim, folder, READ + text, table, sim.malloc(size), groups=len(offsets))
    return timing.bytes_of("hbm")


ALL_AT_ONCE = "dies=1,units=64,mall_megabytes=0"


@pytest.mark.parametrize("apart", [1, 3, 8])
@pytest.mark.parametrize("readers", [1, 2, 3, 4, 8, 64])
def test_lines_of_several_workgroups(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: int, apart: int
) -> None:
    """Memory delivers each line once, whether few workgroups in a row read it or all.

    What a few beside one another read is counted closely; rows that reach beyond the workgroups that are
    recorded, which end 16 further on, are guessed.
    """
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", ALL_AT_ONCE)
    region = 64 * 1024
    load = "global_load_dwordx4 v[4:7], v1, s[10:11]\nv_add_u32 v1, 0x400, v1\n"
    regions = [g // (readers * apart) * apart + g % apart for g in range(64)]
    delivered = read_regions(
        library, tmp_path, [region * n for n in regions], 64 * region, load * 64 + "s_waitcnt vmcnt(0)"
    )
    truth = region * len(set(regions))
    if readers == 1:
        assert delivered == truth
    elif apart == 1 and readers != 8:
        assert delivered == pytest.approx(truth, rel=0.25)
    else:
        assert truth / 3.1 < delivered < 1.7 * truth


def test_lines_of_rows_beside_one_another(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 68 bytes of eight heads, as caches of 4 bits have: a line has those of two or three."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", ALL_AT_ONCE)
    heads, row, tokens = 8, 68, 512
    sequence = heads * row * tokens
    step = f"v_add_u32 v1, {64 * heads * row}, v1\n"
    text = f"v_mul_u32_u24 v1, {heads * row}, v0\nv_add_u32 v1, s7, v1\n"
    loads = "".join(f"global_load_dwordx4 v[4:7], v1, s[10:11] offset:{at}\n" for at in range(0, 64, 16))
    text += (loads + step) * (tokens // 64) + "s_waitcnt vmcnt(0)"
    offsets = [g // heads * sequence + g % heads * row for g in range(64)]
    delivered = read_regions(library, tmp_path, offsets, 64 // heads * sequence, text)
    assert delivered == pytest.approx(64 // heads * sequence, rel=0.3)


def test_conflicts(library: Path, tmp_path: Path) -> None:
    """16 bytes a lane, side by side and two apart: the latter meet in pairs in each of eight phases."""
    counts = []
    for shift in (4, 5):
        with Sim(library, "gfx942") as sim:
            sim.set_clock("on")
            text = f"v_lshlrev_b32 v1, {shift}, v0\nds_read_b128 v[4:7], v1"
            counts.append(run_text(sim, tmp_path, text).lds_conflicts)
    assert counts == [0, 8]


def test_bandwidth(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyhip vmem-bandwidth.md: 4184 GB/s of an MI308X at 1800 MHz, 16 bytes a lane, four waves a unit."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "units=80,clock_mhz=1800,mall_megabytes=0,launch_cycles=0")
    groups, rounds, loads = 80, 4, 32
    one = "global_load_dwordx4 v[4:7], v1, s[2:3]\nv_add_u32 v1, 0x1000, v1\n"
    text = (
        """
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        s_mul_i32 s6, s4, 0x80000
        v_lshlrev_b32 v1, 4, v0
        v_add_u32 v1, s6, v1
        s_waitcnt lgkmcnt(0)
    """
        + (one * loads + "s_waitcnt vmcnt(0)\n") * rounds
    )
    with Sim(library, "gfx942") as sim:
        sim.set_clock("sample")
        size = groups * 0x80000
        memory = sim.malloc(size)
        timing = run_text(sim, tmp_path, text, memory, waves=4, groups=groups)
    assert size / timing.ms / 1e6 == pytest.approx(4184, rel=0.05)


def test_copies_take_the_rate_of_loads_and_stores(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gcnasm membench, an MI308X: 4160 GB/s by the best settings, loads and stores in sum."""
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "units=80,clock_mhz=1800,mall_megabytes=0,launch_cycles=0")
    groups, rounds, loads = 160, 8, 8
    registers = [f"v[{4 * i}:{4 * i + 3}]" for i in range(2, 2 + loads)]
    head = """
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        s_mul_i32 s6, s4, 0x80000
        v_lshlrev_b32 v1, 4, v0
        v_add_u32 v1, s6, v1
        v_add_u32 v2, 0x40000, v1
        s_waitcnt lgkmcnt(0)
    """
    load = [f"global_load_dwordx4 {r}, v1, s[2:3]\nv_add_u32 v1, 0x1000, v1" for r in registers]
    store = [f"global_store_dwordx4 v2, {r}, s[2:3]\nv_add_u32 v2, 0x1000, v2" for r in registers]
    text = "\n".join([head, *[*load, "s_waitcnt vmcnt(0)", *store] * rounds])
    with Sim(library, "gfx942") as sim:
        sim.set_clock("sample")
        size = groups * 0x80000
        memory = sim.malloc(size)
        copy = run_text(sim, tmp_path, text, memory, waves=4, groups=groups)
    assert size / copy.ms / 1e6 == pytest.approx(4160, rel=0.05)
    assert copy.bytes_of("hbm") == size
    assert copy.share_of("memory") > 0.9 and sum(copy.share) == pytest.approx(1)


def test_environment(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "timing.jsonl"
    monkeypatch.setenv("TESSERA_SIM_CLOCK", "on")
    monkeypatch.setenv("TESSERA_SIM_TIMING", str(path))
    with Sim(library, "gfx942") as sim:
        timing = run_text(sim, tmp_path, "s_nop 0")
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert line["kernel"] == "kernel"
    assert line["modelled_cycles"] == pytest.approx(timing.cycles, abs=1)
    assert [line[cause] for cause in CAUSES] == pytest.approx(list(timing.share), abs=1e-4)


def test_annotation(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each instruction with its cycles, and what stands between the matrix instructions of a loop."""
    path = tmp_path / "annotated.txt"
    monkeypatch.setenv("TESSERA_SIM_ANNOTATE", str(path))
    mfma = "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]\n"
    loop = f"""
        s_mov_b32 s6, 10
    1:  {mfma}
        v_exp_f32 v7, v2
        v_add_f32 v3, v4, v5
        {mfma}
        v_pk_mul_f32 v[8:9], v[10:11], v[12:13]
        ds_read_b32 v40, v1
        s_waitcnt lgkmcnt(0)
        s_sub_u32 s6, s6, 1
        s_cmp_lg_u32 s6, 0
        s_cbranch_scc1 1b
        s_cbranch_scc1 1b // which is never taken, and so ends no loop
    """
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        run_text(sim, tmp_path, "v_mov_b32 v1, 0\n" + loop)
    text = path.read_text()
    found = re.search(r"# loop .*: 10 rounds, (\d+\.\d) cycles of a wave each, 2\.0 MFMA\n#   (.*)\n", text)
    assert found and found[2] == "|Tv|Pdwssb"
    assert text.count("# loop") == 1
    rows = re.findall(r"^ *(\d+\.\d+)% +(\d+\.\d) +(\d+) +\+0x\w+ (\w+)", text, re.MULTILINE)
    assert sum(float(share) for share, *_ in rows) == pytest.approx(100, abs=0.2)
    cycles = {name: float(mean) for _, mean, issues, name in rows if issues == "10"}
    assert cycles["v_pk_mul_f32"] == 40  # behind an MFMA of 32
    assert sum(float(mean) for _, mean, issues, _ in rows if issues == "10") == pytest.approx(
        float(found[1]), abs=1
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TESSERA_SIM_CLOCK", "yes"),
        ("TESSERA_SIM_PARAMETERS", "none=1"),
        ("TESSERA_SIM_PARAMETERS", "valu"),
        ("TESSERA_SIM_PARAMETERS", "valu=x"),
        ("TESSERA_SIM_PARAMETERS", "valu=4;issue=4"),
    ],
)
def test_bad_environment(library: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SimError, match=f"{name}={value}: accepted are"), Sim(library, "gfx942"):
        pass


@pytest.mark.parametrize("name", ["TESSERA_SIM_TIMING", "TESSERA_SIM_ANNOTATE", "TESSERA_SIM_TIMELINE"])
def test_no_such_place(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, str(tmp_path / "none" / "file"))
    with Sim(library, "gfx942") as sim, pytest.raises(SimError, match="cannot be written"):
        sim.set_clock("on")
        run_text(sim, tmp_path, "s_nop 0")


def test_parameters(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library has the values of the table, each with its source; the document shows the table."""
    rows = table.read_parameters()
    for i, arch in enumerate(ARCHS):
        with Sim(library, arch) as sim:
            found = sim.parameters()
        assert [(p.name, str(p.value), p.unit, p.meaning, p.source, p.fit) for p in found] == [
            (row[0], row[1 + i], *row[4:]) for row in rows
        ]
    assert all(row[6] for row in rows)
    assert table.render() in (ROOT / "docs" / "simulator.md").read_text(), "python simulator/clock/table.py"
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "valu=5,issue=6")
    with Sim(library, "gfx942") as sim:
        values = {p.name: p.value for p in sim.parameters()}
    assert (values["valu"], values["issue"]) == (5, 6)
