# SPDX-License-Identifier: MIT
"""Races between waves for LDS, and barriers that not all waves reach."""

from __future__ import annotations

from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, ORDERS, Report, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

WAVES = 4


class Workgroup:
    """Runs bodies of assembly as a workgroup of four waves, sanitized.

    v0 is the work-item, v1 its address in LDS (a word each), v2 that of the same lane in the next
    wave's part; s2 is the wave's number, s[4:5] points to data of the host.
    """

    def __init__(self, arch: str, library: Path, folder: Path) -> None:
        self.arch, self.library, self.folder = arch, library, folder

    def run(self, body: str, order: int = 0, most: int = 1000) -> list[Report]:
        """The faults: one or none."""
        text = f"""
            s_load_dwordx2 s[4:5], s[0:1], 0x0
            v_lshlrev_b32 v1, 2, v0
            v_add_u32 v2, 256, v1
            v_and_b32 v2, 0x3ff, v2
            v_lshrrev_b32 v3, 6, v0
            s_nop 4
            v_readfirstlane_b32 s2, v3
            s_waitcnt lgkmcnt(0)

            {body}
            s_endpgm
        """
        image = toolchain.assemble(text, self.arch, self.folder / "kernel.co", lds=1024)
        with Sim(self.library, self.arch, sanitize=True) as sim:
            block, args = (64 * WAVES, 1, 1), pack(sim.upload(bytes(1024)), layout="P")
            try:
                sim.launch(sim.load(image), "kernel", block, block, args, max_instructions=most, order=order)
            except SimError:
                assert sim.reports
            return sim.reports

    def fault(self, body: str, order: int = 0) -> Report:
        (report,) = self.run(body, order)
        return report


@pytest.fixture(params=ARCHS)
def group(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Workgroup:
    return Workgroup(request.param, library, tmp_path)


WAIT = "s_waitcnt lgkmcnt(0)\n"
BARRIER = WAIT + "s_barrier\n"
STORE, LOAD = "ds_write_b32 v1, v0\n", "ds_read_b32 v4, v2\n"


@pytest.mark.parametrize("order", [ORDERS["forward"], ORDERS["backward"], ORDERS["alternate"]])
def test_store_and_load(group: Workgroup, order: int) -> None:
    report = group.fault(STORE + WAIT + LOAD + WAIT, order)
    assert report.fault == "LDS race"
    assert " and no barrier between" in report.text
    assert "loads LDS" in report.text or "stores to LDS" in report.text


def test_both_places_are_named(group: Workgroup) -> None:
    # Forward, wave 0 has ended before wave 1 stores where it loaded.
    report = group.fault(STORE + WAIT + LOAD + WAIT, ORDERS["forward"])
    assert "stores to LDS 256, which wave 0 loaded at +0x" in report.text
    assert (report.wave, report.lane, report.address) == (1, 0, 256)
    assert report.instruction == "ds_write_b32 v1, v0"
    report = group.fault(STORE + WAIT + LOAD + WAIT, ORDERS["backward"])
    assert "stores to LDS 512, which wave 1" not in report.text
    assert "which wave 3 loaded at +0x" in report.text or "which wave 3 stored to at +0x" in report.text


def test_atomic_against_store(group: Workgroup) -> None:
    body = "v_and_b32 v1, 0xff, v1\ns_cmp_eq_u32 s2, 3\ns_cbranch_scc1 3\nds_add_u32 v1, v0\ns_branch 2\n"
    report = group.fault("v_mov_b32 v4, 0\n" + body + STORE + WAIT, ORDERS["forward"])
    assert report.fault == "LDS race" and report.wave == 3 and "which atomics of other waves" in report.text


CLEAN = {
    "barrier": STORE + BARRIER + LOAD + WAIT,
    "two barriers": STORE + BARRIER + LOAD + BARRIER + STORE + WAIT,
    "own words": STORE + WAIT + "ds_read_b32 v4, v1\n" + WAIT,
    "loads": LOAD + "ds_read_b32 v5, v1\n" + WAIT,
    "atomics": "v_and_b32 v1, 0xff, v1\nds_add_u32 v1, v0\nds_or_b32 v1, v0\n" + WAIT,
    "bytes of a word": "v_mul_u32_u24 v4, 256, v0\nv_lshl_add_u32 v4, v0, 2, s2\nv_and_b32 v4, 0xff, v4\n"
    "ds_write_b8 v4, v0\n" + WAIT,
    "the same value": "v_and_b32 v1, 0xff, v1\nv_mov_b32 v4, 7\nds_write_b32 v1, v4\n" + WAIT,
    "an early end": "s_cmp_eq_u32 s2, 1\ns_cbranch_scc1 4\n" + STORE + BARRIER,
}
RACES = {
    "no barrier": STORE + WAIT + LOAD + WAIT,
    "one barrier": STORE + BARRIER + LOAD + WAIT + "ds_write_b32 v1, v2\n" + WAIT,
    "no wait": STORE + "s_barrier\n" + LOAD + WAIT,
    "no wait for a load": STORE + BARRIER + LOAD + "s_barrier\nv_mov_b32 v5, 1\nds_write_b32 v1, v5\n" + WAIT,
    "atomics, then a load": "ds_add_u32 v2, v0\n" + WAIT + "ds_read_b32 v4, v1\n" + WAIT,
    "different values": "v_and_b32 v1, 0xff, v1\n" + STORE + WAIT,
    "overlapping words": "v_lshlrev_b32 v1, 1, v1\nv_and_b32 v1, 0x1ff, v1\nds_write_b64 v1, v[0:1]\n" + WAIT,
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, group: Workgroup) -> None:
    for order in ORDERS.values():
        assert not group.run(CLEAN[name], order)


@pytest.mark.parametrize("name", RACES)
def test_races(name: str, group: Workgroup) -> None:
    for order in ORDERS.values():
        assert group.fault(RACES[name], order).fault == "LDS race"


def test_loads_to_lds(library: Path, tmp_path: Path) -> None:
    load = "s_lshl_b32 m0, s2, 8\ns_nop 4\nglobal_load_lds_dword v1, s[4:5]\n"
    for arch in ("gfx942", "gfx950"):
        group = Workgroup(arch, library, tmp_path)
        assert not group.run(load + "s_waitcnt vmcnt(0)\ns_barrier\n" + LOAD + WAIT)
        assert not group.run(load + "s_waitcnt vmcnt(0)\n" + WAIT)
        # What lands is the 0 of the host's data where a 0 may be already: another value shows.
        store = "v_mov_b32 v5, 1\nds_write_b32 v2, v5\n" + WAIT
        assert group.fault(store + load + "s_waitcnt vmcnt(0)\n" + LOAD + WAIT).fault == "LDS race"


# ---- barriers

TWICE = "s_barrier\ns_cmp_eq_u32 s2, {wave}\ns_cbranch_scc1 1\ns_barrier\n"


@pytest.mark.parametrize(("order", "wave"), [("forward", 1), ("backward", 1), ("alternate", 0)])
def test_barriers_that_differ(order: str, wave: int, group: Workgroup) -> None:
    report = group.fault(TWICE.format(wave=wave), ORDERS[order])
    assert report.fault == "barrier mismatch"
    if report.instruction == "s_barrier":
        assert f"comes to its barrier 2, but wave {wave} has ended after 1" in report.text
    else:
        assert "ends after 1 barriers, but wave" in report.text and report.wave == wave


def test_same_count_at_different_places(group: Workgroup) -> None:
    body = "s_cmp_eq_u32 s2, 1\ns_cbranch_scc1 2\ns_barrier\ns_branch 1\ns_barrier\n"
    assert not group.run(body)


# ---- deadlocks

# Wave 0 waits in LDS for a word that wave 1 stores, or not; all then meet at a barrier.
SPIN = """
    v_mov_b32 v4, 0
    v_mov_b32 v6, 1
    s_cmp_eq_u32 s2, 0
    s_cbranch_scc0 other
    ds_write_b32 v4, v4
spin:
    ds_add_rtn_u32 v5, v4, v4
    s_waitcnt lgkmcnt(0)
    v_cmp_ne_u32 vcc, 0, v5
    s_nop 4
    s_cbranch_vccz spin
    s_branch done
other:
    s_cmp_eq_u32 s2, 1
    s_cbranch_scc0 done
    s_mov_b32 s6, 0
count:
    s_add_u32 s6, s6, 1
    s_cmp_lt_u32 s6, 0x9000
    s_cbranch_scc1 count
    {signal}
    s_waitcnt lgkmcnt(0)
done:
    s_barrier
"""


@pytest.mark.parametrize("order", ORDERS)
def test_deadlock(order: str, group: Workgroup) -> None:
    (report,) = group.run(SPIN.format(signal="s_nop 0"), ORDERS[order], 1_000_000)
    assert (report.fault, report.wave) == ("deadlock", 0)
    assert "5 instructions repeat" in report.text and "3 of the other waves wait at a barrier" in report.text


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_waited_for_comes_late(order: str, group: Workgroup) -> None:
    assert not group.run(SPIN.format(signal="ds_or_b32 v4, v6"), ORDERS[order], 1_000_000)
