# SPDX-License-Identifier: MIT
"""Hand-written programs: launches, LDS, atomics, calls, moves between lanes, and faults."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, ORDERS, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

PROGRAMS = Path(__file__).parent / "programs"
COMPILER = toolchain.compilers()[0]


class Loaded:
    """A program on one architecture."""

    def __init__(self, sim: Sim, image: bytes) -> None:
        self.sim, self.module = sim, sim.load(image)

    def run(
        self,
        kernel: str,
        items: int,
        block: int,
        *args: int,
        layout: str,
        most: int = 10_000_000,
        order: int = 0,
    ) -> None:
        packed = pack(*args, layout=layout)
        self.sim.launch(
            self.module, kernel, (items, 1, 1), (block, 1, 1), packed, max_instructions=most, order=order
        )

    def words(self, address: int, count: int, letter: str = "I") -> list[int]:
        data = self.sim.download(address, count * struct.calcsize(letter))
        return list(struct.unpack(f"<{count}{letter}", data))


KINDS = [(arch, level) for arch in ARCHS for level in ("-O0", "-O2")]
KINDS += [
    (arch, f"-mcode-object-version={version}")
    for arch, version in (("gfx90a", 4), ("gfx942", 4), ("gfx950", 5))
]


@pytest.fixture(scope="module", params=KINDS, ids="".join)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, bytes]]:
    """The programs for one architecture, at one optimization level or in an older form of code object."""
    arch, flag = request.param
    folder = tmp_path_factory.mktemp("programs")
    return arch, {
        name: toolchain.build_device(
            COMPILER, PROGRAMS / f"{name}.c", arch, ["-O1", flag], folder / f"{name}.co"
        )
        for name in ("basics", "lanes", "buffers")
    }


@pytest.fixture(params=[False, True], ids=["plain", "sanitized"])
def sanitize(request: pytest.FixtureRequest) -> bool:
    """The sanitizer has nothing to say of these programs but for the faults that they commit."""
    return bool(request.param)


@pytest.fixture
def basics(built: tuple[str, dict[str, bytes]], sanitize: bool, library: Path) -> Iterator[Loaded]:
    with Sim(library, built[0], sanitize=sanitize) as sim:
        yield Loaded(sim, built[1]["basics"])


@pytest.fixture
def lanes(built: tuple[str, dict[str, bytes]], sanitize: bool, library: Path) -> Iterator[Loaded]:
    with Sim(library, built[0], sanitize=sanitize) as sim:
        yield Loaded(sim, built[1]["lanes"])


def test_ids(basics: Loaded) -> None:
    width, height, depth = 19, 6, 3  # partial workgroups of 8 x 4 x 2 in every axis
    out = basics.sim.malloc(16 * width * height * depth)
    args = pack(out, width, height, layout="PII")
    basics.sim.launch(basics.module, "ids", (width, height, depth), (8, 4, 2), args)
    got = basics.words(out, 4 * width * height * depth)
    for z in range(depth):
        for y in range(height):
            for x in range(width):
                sizes = [min(n - i // b * b, b) for i, n, b in ((x, width, 8), (y, height, 4), (z, depth, 2))]
                lane = x % 8 + sizes[0] * (y % 4 + sizes[1] * (z % 2))
                at = 4 * (x + width * (y + height * z))
                assert got[at] == x | y << 8 | z << 16
                assert got[at + 1] == 8 | 4 << 8 | 2 << 16
                assert got[at + 2] == width | height << 8 | depth << 16
                assert got[at + 3] == lane


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_reduce(basics: Loaded, order: int) -> None:
    values = [float(i % 37) for i in range(1024)]
    given, out = basics.sim.upload(struct.pack("<1024f", *values)), basics.sim.malloc(16)
    basics.run("reduce", 1024, 256, given, out, layout="PP", order=order)
    assert basics.words(out, 4, "f") == [sum(values[i : i + 256]) for i in range(0, 1024, 256)]


def test_orders_show_races(basics: Loaded) -> None:
    """Without its barrier a neighbour's word is there or not, as the waves take turns."""
    basics.sim.set_sanitize(False)
    seen = set()
    for order in ORDERS.values():
        out = basics.sim.upload(bytes(4 * 256))
        basics.run("race", 256, 256, out, layout="P", order=order)
        seen.add(tuple(basics.words(out, 256)))
    assert len(seen) > 1


def test_widths(basics: Loaded) -> None:
    out = basics.sim.malloc(64 * 32)
    basics.run("widths", 64, 64, out, layout="P")
    got = basics.words(out, 512)
    for i in range(64):
        n = (i + 1) % 64
        byte = n * 7 % 256
        signed = (byte - 256 if byte > 127 else byte) & 0xFFFFFFFF
        assert got[8 * i : 8 * i + 8] == [n, 2 * n, 3 * n, 5 * n, n << 1, n, n * 1000 % 65536, signed]


def test_atomics(basics: Loaded) -> None:
    items = 512
    sim = basics.sim
    start = (1, 2, 0xFFFFFFFF, 0, 0, 0, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0, 9)
    words = sim.upload(struct.pack("<11I", *start))
    wide, floats = sim.upload(struct.pack("<2Q", 3, 0)), sim.upload(struct.pack("<f", 0.25))
    seen = sim.upload(bytes(4 * items))
    basics.run("atomics", items, 128, words, wide, floats, seen, layout="PPPP")
    every = range(items)
    mixed = [i * 2654435761 & 0xFFFFFFFF for i in every]
    signed = [m - (1 << 32) if m >> 31 else m for m in mixed]
    masks, ors, xors = 0xFFFFFFFF, 0, 0
    for i in every:
        masks &= ~(1 << (i & 31)) & 0xFFFFFFFF | i << 20
        ors |= 1 << i % 29
        xors ^= mixed[i]
    low = 0xFFFFFFFF
    expected = [1 + sum(every), (2 - 3 * sum(every)) & low, masks, ors, xors, max(mixed), min(mixed)]
    expected += [max(signed) & low, min(signed) & low, items, 9 + sum(every)]
    assert basics.words(words, 11) == expected
    top = max(i * 0x9E3779B97F4A7C15 & (1 << 64) - 1 for i in every)
    assert basics.words(wide, 2, "Q") == [3 + (sum(every) << 30), top]
    assert struct.unpack("<f", sim.download(floats, 4)) == (0.25 + 0.5 * items,)
    assert basics.words(seen, items) == [1] * items


def test_lds_atomics(basics: Loaded) -> None:
    out = basics.sim.malloc(4 * 260)
    basics.run("lds_atomics", 256, 256, out, layout="P")
    got = basics.words(out, 260)
    assert got[:256] == [1] * 256
    assert got[256:] == [261, 7 + 256, sum(range(256)), 4 + 256]


def test_calls(basics: Loaded) -> None:
    out = basics.sim.malloc(4 * 64)
    basics.run("recursion", 64, 64, out, layout="P")
    ackermann = [[n + 1 for n in range(9)], [n + 2 for n in range(9)], [2 * n + 3 for n in range(9)]]
    assert basics.words(out, 64) == [ackermann[i & 1][i % 5] + ackermann[2][i & 3] for i in range(64)]
    basics.run("pointers", 64, 64, out, layout="P")
    functions = (lambda x: 2 * x, lambda x: x * x, lambda x: -x & 0xFFFFFFFF)
    assert basics.words(out, 64) == [functions[i % 3](i + 10) for i in range(64)]
    basics.run("sieve", 64, 64, out, layout="P")
    primes = [n for n in range(2, 164) if all(n % d for d in range(2, n))]
    assert basics.words(out, 64) == [sum(p < 100 + i for p in primes) for i in range(64)]


def test_globals(basics: Loaded) -> None:
    out = basics.sim.malloc(4 * 64)
    address, size = basics.sim.find_global(basics.module, "counter")
    assert size == 4 and basics.words(address, 1) == [40]
    basics.run("globals", 64, 64, out, layout="P")
    assert basics.words(out, 64) == [(2, 3, 5, 7, 11, 13, 17, 19)[i & 7] + 40 for i in range(64)]
    assert basics.words(address, 1) == [42]


# ---- lanes

OLD = 0x5A5A


def _rows(values: list[int], count: int) -> list[list[int]]:
    return [values[64 * r : 64 * r + 64] for r in range(count)]


def test_dpp(lanes: Loaded) -> None:
    out = lanes.sim.malloc(4 * 64 * 13)
    lanes.run("dpp", 64, 64, out, layout="P")
    got = _rows(lanes.words(out, 64 * 13), 13)
    each = range(64)
    row = [i & ~15 for i in each]
    assert got[0] == [100 + (i & ~3 | 3 - (i & 3)) for i in each]
    assert got[1] == [100 + i + 3 if i % 16 < 13 else OLD for i in each]
    assert got[2] == [100 + i + 3 if i % 16 < 13 else 0 for i in each]
    assert got[3] == [100 + i - 5 if i % 16 >= 5 else OLD for i in each]
    assert got[4] == [100 + row[i] + (i - 1) % 16 for i in each]
    assert got[5] == [100 + row[i] + 15 - i % 16 for i in each]
    assert got[6] == [100 + (i & ~7) + 7 - i % 8 for i in each]
    assert got[7] == [100 + row[i] - 1 if i // 16 in (1, 3) else OLD for i in each]
    assert got[8] == [131 if i >= 32 else OLD for i in each]
    assert got[9] == [100 + row[i] + 4 for i in each]
    assert got[10] == [
        100 + (i & ~3 | 3 - (i & 3)) if i // 16 in (0, 2) and i % 16 < 8 else OLD for i in each
    ]
    assert got[11] == [100 + i + 1 if i < 63 else 0 for i in each]
    assert got[12] == [100 + i - 1 if i > 0 else OLD for i in each]


def test_shuffles(lanes: Loaded) -> None:
    out = lanes.sim.malloc(4 * 64 * 9)
    lanes.run("shuffles", 64, 64, out, layout="P")
    got = _rows(lanes.words(out, 64 * 9), 9)
    each = range(64)
    assert got[0] == [163 - i for i in each]
    assert got[1] == [100 + i * 13 % 64 for i in each]  # 13 is the inverse of 5
    assert got[2] == [100 + (i ^ 1) for i in each]
    assert got[3] == [100 + (i ^ 31) for i in each]
    assert got[4] == [100 + (i ^ 2) for i in each]
    assert got[5] == [101] * 64
    assert got[6] == [142] * 64
    mask = sum(1 << i for i in each if (100 + i) % 3 == 0)
    assert got[7] == [mask & 0xFFFFFFFF] * 64
    assert got[8] == [mask >> 32] * 64


def test_transposing_reads(lanes: Loaded, built: tuple[str, dict[str, bytes]]) -> None:
    if built[0] != "gfx950":
        pytest.skip("gfx950 alone has them")
    data = random.Random(1).randbytes(1024)
    given, out = lanes.sim.upload(data), lanes.sim.malloc(64 * 36)
    lanes.run("transpose", 64, 64, given, out, layout="PP")
    got = lanes.sim.download(out, 64 * 36)
    # Bits of an element, bytes of a lane, bytes from lane to lane, place in the output.
    for bits, size, stride, place in ((16, 8, 8, 0), (8, 8, 8, 8), (4, 8, 8, 16), (6, 12, 16, 24)):
        each = 8 * size // bits  # a row of sixteen takes 16 // each lanes
        parts = [int.from_bytes(data[stride * i : stride * i + size], "little") for i in range(64)]
        for lane in range(64):
            group, column = lane // 16 * 16, lane % 16
            holders = [group + row * (16 // each) + column // each for row in range(each)]
            column_of = [parts[h] >> column % each * bits & ((1 << bits) - 1) for h in holders]
            expected = sum(v << bits * row for row, v in enumerate(column_of))
            at = 36 * lane + place
            assert int.from_bytes(got[at : at + size], "little") == expected


# ---- buffers


@pytest.fixture
def buffers(built: tuple[str, dict[str, bytes]], sanitize: bool, library: Path) -> Iterator[Loaded]:
    with Sim(library, built[0], sanitize=sanitize) as sim:
        yield Loaded(sim, built[1]["buffers"])


@pytest.mark.parametrize(("limit", "scalar"), [(4 * 64, 0), (4 * 41, 0), (4 * 50, 16), (0, 0)])
def test_buffer_bounds(buffers: Loaded, limit: int, scalar: int) -> None:
    data = bytes(i * 7 % 251 for i in range(512))
    given, out = buffers.sim.upload(data), buffers.sim.upload(b"\xee" * 1024)
    buffers.run("bounds", 64, 64, given, out, limit, scalar, layout="PPII")

    def at(offset: int, size: int, scalar: int = 0) -> int:  # what ends the buffer is the offset alone
        seen = data[scalar : scalar + limit] + bytes(1024)
        return int.from_bytes(seen[offset : offset + size], "little")

    got = buffers.words(out, 256)
    for i in range(60):
        wide = [at(4 * i + 4 * k, 4, scalar) for k in range(4)]
        expected = [wide[0] + at(i, 1), wide[1] + at(2 * i, 2), wide[2], wide[3]]
        assert got[4 * i : 4 * i + 4] == [e & 0xFFFFFFFF for e in expected]
    assert got[240:] == [0xEEEEEEEE] * 16


def test_straight_to_lds(buffers: Loaded, built: tuple[str, dict[str, bytes]]) -> None:
    if built[0] == "gfx90a":
        pytest.skip("gfx90a's compiler has no builtin for it")
    given = buffers.sim.upload(struct.pack("<128I", *range(1000, 1128)))
    out = buffers.sim.malloc(4 * 128)
    buffers.run("straight", 64, 64, given, out, layout="PP")
    got = buffers.words(out, 128)
    assert got[:64] == [1000 + 2 * i for i in range(64)]
    assert got[64:] == [1000 + 2 * i if 8 * i < 256 else 0 for i in range(64)]


# ---- faults, each at its place


def _fault(loaded: Loaded, kernel: str, items: int, *args: int, layout: str) -> str:
    with pytest.raises(SimError) as raised:
        loaded.run(kernel, items, 64, *args, layout=layout, most=20_000)
    (report,) = loaded.sim.reports
    assert report.text == str(raised.value)
    assert report.kernel == kernel
    return report.fault


@pytest.mark.parametrize("index", [64, -1, 1 << 29])  # 2 GiB: further than memory in use spans
def test_store_out_of_bounds(basics: Loaded, index: int) -> None:
    out = basics.sim.malloc(4 * 64)
    assert _fault(basics, "store_at", 64, out, index, layout="Pi") == "out of bounds"
    (report,) = basics.sim.reports
    assert (report.workgroup, report.wave, report.lane, report.address) == ((0, 0, 0), 0, 37, out + 4 * index)
    assert "store" in report.instruction
    near = {64: "0 bytes behind", -1: "4 bytes before"}.get(index)
    assert near is None or f"{near} an allocation of 256 bytes at {out:#x}" in report.text


def test_load_out_of_bounds(basics: Loaded) -> None:
    out, given = basics.sim.malloc(4 * 64), basics.sim.malloc(10)
    assert _fault(basics, "load_at", 64, out, given, 2, layout="PPi") == "out of bounds"  # across the end
    (report,) = basics.sim.reports
    assert (report.lane, report.address) == (5, given + 8)
    assert f"loads 4 bytes at {given + 8:#x}, across the end of an allocation of 10 bytes at" in report.text


def test_use_after_free(basics: Loaded, sanitize: bool) -> None:
    out = basics.sim.malloc(4 * 64)
    basics.sim.free(out)
    fault = _fault(basics, "store_at", 64, out, 0, layout="Pi")
    if sanitize:
        (report,) = basics.sim.reports
        assert f"0 bytes into an allocation of 256 bytes at {out:#x} that was freed" in report.text
        assert fault == "use after free"
    else:  # the launch's own memory may have come to lie there
        assert fault in ("use after free", "store to read-only memory")


def test_lds_out_of_bounds(basics: Loaded) -> None:
    out = basics.sim.malloc(4 * 64)
    assert _fault(basics, "lds_at", 64, out, 16, layout="PI") == "out of bounds"


def test_trap(basics: Loaded) -> None:
    out = basics.sim.malloc(4 * 256)
    assert _fault(basics, "traps", 256, out, 130, layout="PI") == "trap"
    (report,) = basics.sim.reports
    assert report.workgroup == (2, 0, 0)


def test_endless(basics: Loaded) -> None:
    out = basics.sim.upload(bytes(4))
    assert _fault(basics, "endless", 64, out, layout="P") == "runaway"


def test_misaligned_atomic(basics: Loaded) -> None:
    out = basics.sim.malloc(64)
    assert _fault(basics, "misaligned", 64, out, layout="P") == "misaligned"


def test_read_only(basics: Loaded) -> None:
    out = basics.sim.malloc(64)
    assert _fault(basics, "read_only", 64, out, layout="P") == "store to read-only memory"


def test_threads_do_not_matter(built: tuple[str, dict[str, bytes]], library: Path) -> None:
    for threads in (1, 4):
        with Sim(library, built[0], threads=threads) as sim:
            loaded = Loaded(sim, built[1]["basics"])
            out = sim.malloc(4 * 256)
            assert _fault(loaded, "traps", 256, out, 70, layout="PI") == "trap"
            assert sim.reports[0].workgroup == (1, 0, 0)


# ---- what is refused


def test_refusals(basics: Loaded, library: Path, built: tuple[str, dict[str, bytes]]) -> None:
    with pytest.raises(SimError, match="accepted are gfx90a, gfx942 and gfx950"):
        Sim(library, "gfx1100")
    with pytest.raises(SimError, match="not a 64-bit"):
        basics.sim.load(b"\x7fEL" + bytes(200))
    with pytest.raises(SimError, match="image"):
        basics.sim.load(built[1]["basics"][:3000])
    other = next(a for a in ARCHS if a != built[0])
    with Sim(library, other) as sim, pytest.raises(SimError, match="made for another GPU"):
        sim.load(built[1]["basics"])
    with pytest.raises(SimError, match="kernarg_bytes=4"):
        basics.sim.launch(basics.module, "ids", (64, 1, 1), (64, 1, 1), bytes(4))
    with pytest.raises(SimError, match="at most 1024"):
        basics.sim.launch(basics.module, "ids", (2048, 1, 1), (2048, 1, 1), bytes(16))
    with pytest.raises(SimError, match="dynamic_lds_bytes"):
        basics.sim.launch(basics.module, "ids", (64, 1, 1), (64, 1, 1), bytes(16), dynamic_lds=1 << 20)
