# SPDX-License-Identifier: MIT
"""Results in flight: who touches them too early is reported, with both places; late landings show more."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, LANDINGS, ORDERS, Report, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

BYTES = 4096
# s[2:3]: the buffer; v1: 4 * lane; v2, v3: the lane's address; v4: 0. `first` is what comes then, at +0x28.
BEFORE = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v3, s3
    v_mov_b32 v4, 0
    v_add_co_u32 v2, vcc, s2, v1
    s_nop 1
    v_addc_co_u32 v3, vcc, v3, v4, vcc
    s_nop 4
"""
FIRST = 0x28
LOAD = "global_load_dword v8, v1, s[2:3]"
# Directs the shared aperture's addresses of LDS to v[6:7].
LDS_ADDRESS = "s_mov_b64 s[8:9], src_shared_base\n v_mov_b32 v6, v1\n v_mov_b32 v7, s9"


def build(body: str, arch: str, folder: Path) -> bytes:
    text = "\n".join([BEFORE, body, "s_endpgm"])
    return toolchain.assemble(text, arch, folder / "kernel.co", vgprs=128, accum_offset=64, lds=BYTES)


class Case:
    """A wave that runs a body; `waves` of them."""

    def __init__(self, body: str, arch: str, library: Path, folder: Path, waves: int = 1) -> None:
        self.image = build(body, arch, folder)
        self.arch, self.library, self.waves = arch, library, waves

    def run(
        self, *, sanitize: bool = True, landing: str = "late", order: str = "forward", seed: int = 0
    ) -> Report | bytes:
        """The first report, or what the buffer holds in the end."""
        with Sim(self.library, self.arch, sanitize=sanitize) as sim:
            buffer = sim.upload(struct.pack(f"<{BYTES // 4}I", *range(BYTES // 4)))
            items = (64 * self.waves, 1, 1)
            where = {"landing": LANDINGS[landing], "order": ORDERS[order], "seed": seed}
            try:
                sim.launch(sim.load(self.image), "kernel", items, items, pack(buffer, layout="P"), **where)
            except SimError:
                return sim.reports[0]
            return sim.download(buffer, BYTES)


MOVE, PAIR_LOAD = "v_mov_b32 v9, v8", "ds_read2_b32 v[8:9], v1 offset1:64"
READ, READ_NEXT = "ds_read_b32 v8, v1", "ds_read_b32 v9, v1"
SCALAR, SCALAR_NEXT = "s_load_dword s8, s[2:3], 0x0", "s_load_dword s9, s[2:3], 0x4"
LOAD_NEXT = "global_load_dword v9, v1, s[2:3] offset:256"
FLAT_LOAD, FLAT_LDS = "flat_load_dword v8, v[2:3]", "flat_load_dword v8, v[6:7]"
DESCRIPTOR = "s_mov_b32 s12, s2\n s_mov_b32 s13, s3\n s_mov_b32 s14, 4096\n s_mov_b32 s15, 0x20000\n"

# A name, what is issued, what comes too early, what is said of it, the lane (-1: none).
EARLY = [
    ("global", LOAD, "v_add_u32 v9, v4, v8", "v8 is read", 0),
    ("store", LOAD, "global_store_dword v1, v8, s[2:3] offset:512", "v8 is read", 0),
    ("address", LOAD, "ds_read_b32 v9, v8", "v8 is read", 0),
    ("overwrite", LOAD, "v_mov_b32 v8, 0", "v8 is overwritten", 0),
    ("wide", "global_load_dwordx4 v[8:11], v1, s[2:3]", "v_mov_b32 v12, v10", "v10 is read", 0),
    ("tuple", LOAD, "global_store_dwordx4 v1, v[6:9], s[2:3] offset:512", "v8 is read", 0),
    ("accumulator", "global_load_dword a3, v1, s[2:3]", "v_accvgpr_read_b32 v9, a3", "a3 is read", 0),
    ("atomic", "global_atomic_add v8, v1, v4, s[2:3] sc0", MOVE, "v8 is read", 0),
    ("flat", FLAT_LOAD, MOVE, "v8 is read", 0),
    ("buffer", "buffer_load_dword v8, v1, s[12:15], 0 offen", MOVE, "v8 is read", 0),
    ("lds", READ, MOVE, "v8 is read", 0),
    ("lds_pair", PAIR_LOAD, "v_mov_b32 v10, v9", "v9 is read", 0),
    ("swizzle", "ds_swizzle_b32 v8, v1", MOVE, "v8 is read", 0),
    ("lds_then_memory", READ, LOAD, "v8 is overwritten", 0),
    ("scalar", SCALAR, "s_add_u32 s9, s8, s8", "s8 is read", -1),
    ("scalar_valu", SCALAR, "v_mov_b32 v9, s8", "s8 is read", -1),
    ("scalar_overwrite", SCALAR, "s_mov_b32 s8, 0", "s8 is overwritten", -1),
    ("scalar_tuple", "s_load_dwordx4 s[8:11], s[2:3], 0x10", "s_mov_b32 s12, s11", "s11 is read", -1),
    ("scalar_of_two", SCALAR, "s_load_dword s9, s[8:9], 0x0", "s8 is read", -1),
    ("vcc", "s_load_dwordx2 vcc, s[2:3], 0x0", "s_cbranch_vccz 0", "s106 is read", -1),
    ("exec", LOAD, f"s_mov_b64 exec, 48\n {MOVE}", "v8 is read", 4),
    ("lane", LOAD, "v_readlane_b32 s8, v8, 7", "v8 is read", 7),
    ("lane_off", LOAD, "s_mov_b64 exec, 0\n v_readlane_b32 s8, v8, 7", "v8 is read", 7),
    ("mfma", LOAD, "v_mfma_f32_4x4x1f32 v[20:23], v8, v9, v[24:27]", "v8 is read", 0),
]


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("case", EARLY, ids=[case[0] for case in EARLY])
def test_early_use(case: tuple[str, str, str, str, int], landing: str, library: Path, tmp_path: Path) -> None:
    name, first, early, text, lane = case
    before = DESCRIPTOR if name == "buffer" else ""
    where = FIRST + 4 * before.count("\n") + (8 if before else 0)  # two of them have a literal
    report = Case(f"{before}{first}\n{early}", "gfx942", library, tmp_path).run(landing=landing)
    assert isinstance(report, Report)
    assert report.fault == "early use"
    assert text in report.text
    assert f"covers +0x{where:x}: {first.split(maxsplit=1)[0]}" in report.text
    assert report.lane == lane
    assert report.wave == 0
    assert report.instruction[:9] == early.splitlines()[-1].strip()[:9]
    wait = "s_waitcnt lgkmcnt(0)" if first.startswith(("ds_", "s_")) else "s_waitcnt vmcnt(0)"
    right = Case(f"{before}{first}\n{wait}\n{early}", "gfx942", library, tmp_path).run(landing=landing)
    assert isinstance(right, bytes) or right.fault != "early use"


# What waits and what does not: a body, and whether its last instruction is too early.
COUNTS = [
    ("in_order", [LOAD, LOAD_NEXT, "s_waitcnt vmcnt(1)", "v_mov_b32 v10, v8"], False),
    ("the_later", [LOAD, LOAD_NEXT, "s_waitcnt vmcnt(1)", "v_mov_b32 v10, v9"], True),
    ("stores_count", [LOAD, "global_store_dword v1, v4, s[2:3]", "s_waitcnt vmcnt(1)", MOVE], False),
    ("other_counter", [LOAD, "s_waitcnt lgkmcnt(0)", MOVE], True),
    ("lds_in_order", [READ, READ_NEXT, "s_waitcnt lgkmcnt(1)", "v_mov_b32 v10, v8"], False),
    ("lds_other_counter", [READ, "s_waitcnt vmcnt(0)", MOVE], True),
    ("scalar_in_no_order", [SCALAR, SCALAR_NEXT, "s_waitcnt lgkmcnt(1)", "s_mov_b32 s10, s8"], True),
    ("lds_beside_scalar", [READ, SCALAR, "s_waitcnt lgkmcnt(1)", MOVE], True),
    ("two_and_a_scalar", [READ, READ_NEXT, SCALAR, "s_waitcnt lgkmcnt(1)", "v_mov_b32 v10, v8"], False),
    ("flat_in_memory", [FLAT_LOAD, "s_waitcnt vmcnt(0)", MOVE], False),
    ("flat_in_lds", [LDS_ADDRESS, FLAT_LDS, "s_waitcnt vmcnt(0)", MOVE], True),
    ("flat_in_lds_both", [LDS_ADDRESS, FLAT_LDS, "s_waitcnt vmcnt(0) lgkmcnt(0)", MOVE], False),
    ("order_of_loads", [LOAD, "global_load_dword v8, v1, s[2:3] offset:256"], False),
    ("other_lanes", ["s_mov_b64 exec, 1", LOAD, "s_mov_b64 exec, 2", "v_mov_b32 v8, v4"], False),
    ("same_lanes", ["s_mov_b64 exec, 3", LOAD, "s_mov_b64 exec, 2", "v_mov_b32 v8, v4"], True),
    ("address_is_free", [LOAD, "v_mov_b32 v1, v4"], False),
    ("store_has_read", ["global_store_dword v1, v4, s[2:3]", "v_mov_b32 v4, v1"], False),
    ("never_waited", [LOAD], False),
]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("case", COUNTS, ids=[case[0] for case in COUNTS])
def test_counts(case: tuple[str, list[str], bool], arch: str, library: Path, tmp_path: Path) -> None:
    _, body, early = case
    for landing in LANDINGS:
        got = Case("\n".join(body), arch, library, tmp_path).run(landing=landing)
        assert (isinstance(got, Report) and got.fault == "early use") == early, got


# ---- memory that other waves see

# Wave 0 stores lane + 1, wave 1 copies it behind the barrier.
HAND_OVER = """
    s_mov_b32 s4, 0
    v_readfirstlane_b32 s4, v0
    s_nop 4
    v_and_b32 v5, 63, v0
    v_lshlrev_b32 v1, 2, v5
    v_add_u32 v5, 1, v5
    s_cmp_lg_u32 s4, 0
    s_cbranch_scc1 1f
    {store}
    {wait}
1:  s_barrier
    s_cmp_eq_u32 s4, 0
    s_cbranch_scc1 2f
    {load}
    s_waitcnt vmcnt(0) lgkmcnt(0)
    global_store_dword v1, v6, s[2:3] offset:1024
2:
"""
GLOBAL = {"store": "global_store_dword v1, v5, s[2:3]", "load": "global_load_dword v6, v1, s[2:3]"}
SHARED = {"store": "ds_write_b32 v1, v5", "load": "ds_read_b32 v6, v1"}


def copied(result: Report | bytes) -> bool:
    assert isinstance(result, bytes), result
    return struct.unpack_from("<64I", result, 1024) == tuple(range(1, 65))


KINDS = [(GLOBAL, "vmcnt(0)"), (SHARED, "lgkmcnt(0)")]


@pytest.mark.parametrize(("kind", "wait"), KINDS, ids=["global", "lds"])
def test_stores_land_late(kind: dict[str, str], wait: str, library: Path, tmp_path: Path) -> None:
    right = Case(HAND_OVER.format(**kind, wait=f"s_waitcnt {wait}"), "gfx942", library, tmp_path, waves=2)
    for order in ORDERS:
        for landing in LANDINGS:
            assert copied(right.run(order=order, landing=landing, seed=3))
    wrong = Case(HAND_OVER.format(**kind, wait=""), "gfx942", library, tmp_path, waves=2)
    assert copied(wrong.run(landing="at-once"))
    late = wrong.run(landing="late", order="backward")  # wave 1 reads before wave 0 ends
    assert isinstance(late, Report) or not copied(late)


def test_stores_land_at_barriers(library: Path, tmp_path: Path) -> None:
    """Whenever a store lands, also while its wave stands at a barrier, it is not lost."""
    stores = [f"global_store_dword v1, v0, s[2:3] offset:{256 * i}\n s_barrier" for i in range(16)]
    case = Case("\n".join(stores), "gfx942", library, tmp_path)
    for seed in range(20):
        got = case.run(landing="random", seed=seed)
        assert isinstance(got, bytes), got
        assert struct.unpack("<1024I", got) == tuple(range(64)) * 16


# ---- loads to LDS

TO_LDS = f"""
    {DESCRIPTOR}
    s_mov_b32 m0, 256
    s_nop 0
    {{load}}
    {{wait}}
    ds_read_b32 v6, v1 offset:256
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v6, s[2:3] offset:1024
"""
BUFFER_TO_LDS, GLOBAL_TO_LDS = (
    "buffer_load_dword v1, s[12:15], 0 offen lds",
    "global_load_lds_dword v1, s[2:3]",
)
LOADS_TO_LDS = [(arch, BUFFER_TO_LDS) for arch in ARCHS] + [(arch, GLOBAL_TO_LDS) for arch in ARCHS[1:]]


@pytest.mark.parametrize(("arch", "load"), LOADS_TO_LDS)
def test_load_to_lds(arch: str, load: str, library: Path, tmp_path: Path) -> None:
    right = Case(TO_LDS.format(load=load, wait="s_waitcnt vmcnt(0)"), arch, library, tmp_path)
    for landing in LANDINGS:
        got = right.run(landing=landing)
        assert isinstance(got, bytes), got
        assert struct.unpack_from("<64I", got, 1024) == tuple(range(64))
    for landing in LANDINGS:
        report = Case(TO_LDS.format(load=load, wait=""), arch, library, tmp_path).run(landing=landing)
        assert isinstance(report, Report)
        assert report.fault == "early use"
        where = FIRST + 36  # behind six instructions, three of them with a literal
        assert f"LDS 256 is touched before s_waitcnt covers +0x{where:x}: {load[:16]}" in report.text
        assert (report.lane, report.instruction) == (0, "ds_read_b32 v6, v1 offset:256")


# ---- settings

SETTINGS = [
    ("TESSERA_SIM_ORDER", "sideways", "forward, backward, alternate, random and random:SEED"),
    ("TESSERA_SIM_ORDER", "random:x", "random:SEED"),
    ("TESSERA_SIM_ORDER", "forward:1", "random:SEED"),
    ("TESSERA_SIM_SANITIZE", "yes", "0 and 1"),
    ("TESSERA_SIM_LANDING", "soon", "late, at-once and random"),
    ("TESSERA_SIM_THREADS", "-1", "0 to 1024"),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_bad_setting(setting: tuple[str, str, str], library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, value, accepted = setting
    monkeypatch.setitem(os.environ, name, value)
    with pytest.raises(SimError, match=f"^{name}={value}: accepted are .*{accepted}$"):
        Sim(library, "gfx942")


def test_environment_sanitizes(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = build(f"{LOAD}\n{MOVE}", "gfx942", tmp_path)
    for value, found in (("0", False), ("1", True)):
        monkeypatch.setitem(os.environ, "TESSERA_SIM_SANITIZE", value)
        with Sim(library, "gfx942") as sim:
            args = pack(sim.upload(bytes(BYTES)), layout="P")
            with contextlib.suppress(SimError):
                sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), args)
            assert bool(sim.reports) == found


def test_random_orders_repeat(library: Path, tmp_path: Path) -> None:
    """A race shows by the seed, and the same seed shows the same."""
    body = """
        v_mov_b32 v5, v0
        v_mov_b32 v6, 0
        global_load_dword v7, v6, s[2:3]
        s_waitcnt vmcnt(0)
        global_store_dword v6, v5, s[2:3]
        s_waitcnt vmcnt(0)
        v_lshlrev_b32 v1, 2, v0
        global_store_dword v1, v7, s[2:3] offset:1024
    """
    case = Case(body, "gfx942", library, tmp_path, waves=4)
    results = [case.run(sanitize=False, order="random", seed=seed) for seed in range(12)]
    assert len(set(results)) > 1
    assert results == [case.run(sanitize=False, order="random", seed=seed) for seed in range(12)]
