# SPDX-License-Identifier: MIT
"""Orders of main loops: those that are made of any pieces, and attention's."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from test_cdna_computes import GPUS

from codegen import Refused
from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.ops.fmha_fwd.cdna_schedule import Step
from codegen.schedule import Law, Piece, Schedule, plan
from codegen.spec import Instance
from codegen.targets import CdnaTarget

LAW = Law(product=32, port=4, waves=2)
PRODUCTS = [f"product({n})" for n in range(8)]


def places(schedule: Schedule) -> dict[str, int]:
    """The bundle of each piece."""
    return {piece.call: n for n, bundle in enumerate(schedule.bundles) for piece in bundle.pieces}


def test_pieces_are_spread_evenly() -> None:
    schedule = plan(LAW, PRODUCTS, [Piece(f"a({n})", 0, 7, 4) for n in range(16)])
    assert [bundle.port for bundle in schedule.bundles] == [8] * 8
    assert [bundle.product for bundle in schedule.bundles] == PRODUCTS
    assert schedule.law.room == 28 and schedule.law.bundle == 64


def test_bundles_share_large_pieces_evenly_if_asked() -> None:
    pieces = [Piece(f"a({n})", 0, 7, 12) for n in range(8)] + [Piece(f"b({n})", 0, 7, 4) for n in range(8)]
    assert [bundle.port for bundle in plan(LAW, PRODUCTS, pieces, even=True).bundles] == [16] * 8


def test_bounds_and_orders_hold() -> None:
    pieces = [
        Piece("late", 6, 7, 4),
        Piece("first", 2, 3, 20),
        Piece("second", 0, 7, 4, after=("first",)),
        Piece("read", 0, 7, 0, kind="read"),
        Piece("other read", 0, 7, 0, kind="read"),
    ]
    at = places(plan(LAW, PRODUCTS, pieces))
    assert at["late"] in (6, 7) and at["first"] in (2, 3) and at["second"] > at["first"]
    assert at["read"] != at["other read"]


def test_what_finds_no_room_is_refused() -> None:
    with pytest.raises(Refused, match="232 cycles of the VALU port find no room beside 8 products with 28 "):
        plan(LAW, PRODUCTS, [Piece(f"a({n})", 0, 7, 4) for n in range(58)])


def test_what_is_under_way_is_counted_round_the_loop() -> None:
    pieces = [Piece(f"load({n})", n, n, 0, kind="load") for n in (1, 4, 6)]
    schedule = plan(LAW, PRODUCTS, pieces)
    assert schedule.under_way(("load",), "load(1)", 6) == 1
    assert schedule.under_way(("load",), "load(1)", 7) == 2
    assert schedule.under_way(("load",), "load(6)", 2) == 1
    assert schedule.under_way(("read",), "load(6)", 2) == 0


# ---- attention


STEPS = [instance for instance in GPUS if instance.tile.pipeline == "qr_bundled"]


@pytest.fixture(params=STEPS, ids=lambda instance: str(instance.name))
def step(request: pytest.FixtureRequest) -> Step:
    instance: Instance = request.param
    tile, target = instance.tile, instance.target
    assert isinstance(tile, CdnaTile) and isinstance(target, CdnaTarget)
    return tile.step(target)


def early(step: Step) -> set[str]:
    """Exponentials of the next tile."""
    return {f"exponential(x, s_next, {e})" for e in range(step.early)}


def operands_of_p(step: Step) -> int:
    """Numbers of a lane that an operand of P has."""
    return 16 * step.tile.bn0 // 32 // (step.tile.bn0 // step.tile.mma_k)


def test_planned_loops_are_there() -> None:
    there = {(i.target.name, i.tile.compute, i.tile.hdim_q, i.tile.hdim_v) for i in STEPS}
    hdims = ((64, 64), (128, 128), (192, 128), (256, 256))
    both = ("fp16", "bf16")
    kinds = (("gfx90a", ("bf16",)), ("gfx942", both), ("gfx950", both))
    wanted = {(target, kind, *hdim) for target, some in kinds for kind in some for hdim in hdims}
    assert there == wanted | {(target, "fp8", 128, 128) for target in ("gfx942", "gfx950")}


def test_each_piece_of_a_step_is_there_once(step: Step) -> None:
    calls = [call for bundle in step.schedule.bundles for call in bundle.calls]
    assert len(calls) == len(set(calls))
    tile = step.tile
    assert len(step.products) == (tile.dq + tile.dv) * tile.bn0 // 32 // (tile.mma_k // step.parts)
    made = {f"exponential(x, s, {e})" for e in range(step.early, tile.score_registers)} | early(step)
    assert {call for call in calls if call.startswith("exponential")} == made
    for e in range(tile.score_registers):
        assert f"add(x, s, {e})" in calls
        assert (f"maximum(x, s_next, {e})" in calls) == (e % 2 == 0 and not tile.stays)
        assert e % (32 // tile.bits) or f"pack_word(x, s, {e})" in calls


def test_no_bundle_has_more_than_fits(step: Step) -> None:
    for bundle in step.schedule.bundles:
        assert bundle.port <= step.law.room and bundle.issues <= step.law.issues
    port = sum(bundle.port for bundle in step.schedule.bundles)
    assert port <= step.size * max(step.law.room, step.law.share + 4)


def test_pieces_share_the_port_where_products_leave_too_little() -> None:
    law = LAW.shared_by(8 * 40, 8)
    assert (law.share, law.room, law.bundle, law.issues) == (40, 80, 88, 17)
    schedule = plan(law, PRODUCTS, [Piece(f"a({n})", 0, 7, 20) for n in range(16)])
    assert [bundle.port for bundle in schedule.bundles] == [40] * 8
    assert LAW.shared_by(8 * 28, 8).room == LAW.room and LAW.shared_by(8 * 28 + 1, 8).share == 32


def read_operand(step: Step, call: str) -> int | None:
    """The operand that a call reads, counted from the step's first; K of the next step follows."""
    found = re.fullmatch(r"read_([kv])\(x, (\w+)\.\w, (\d+)\)", call)
    if not found:
        return None
    of, tile, number = found.groups()
    before = step.score_operands if of == "v" else step.size // step.parts if tile == "now" else 0
    return int(number) + before


def test_operands_are_read_before_their_products(step: Step) -> None:
    """And behind the products of what their places in the ring held."""
    reads = 0
    for call, bundle in places(step.schedule).items():
        operand = read_operand(step, call)
        if operand is not None:
            assert (operand - step.ring + 1) * step.parts <= bundle + 1 <= operand * step.parts
            reads += 1
    assert reads == len(step.products) // step.parts


def test_waits_let_no_more_under_way_than_was_read_later(step: Step) -> None:
    """Before the first of two operands' products, what was issued behind their reads may be under way."""
    accesses: list[int] = []  # operands, as they are read; -1: a store
    waits, together = 0, min(step.ring // 2, 2)
    for time in range(2 * step.size):  # the second round has a first one before it
        n = time % step.size
        product = n // step.parts
        for call in step.calls(n):
            found = re.fullmatch(r"WAIT_FOR_OPERANDS\((\d+)\)", call)
            operand = read_operand(step, call)
            if found and time >= step.size:
                assert n % (together * step.parts) == 0
                covered = {product + i for i in range(together)}
                assert not covered & set(accesses[len(accesses) - int(found[1]) :])
                waits += 1
            if operand is not None:
                both = 2 if "read_v" in call and step.target.transposing_reads else 1
                accesses += step.tile.operand_chunks * both * [operand % (step.size // step.parts)]
            elif "store_word" in call:
                accesses += 2 * [-1] if step.tile.bits == 16 else 4 * [-1]
    assert waits == step.size // (together * step.parts)


def test_probabilities_are_packed_before_their_products(step: Step) -> None:
    at = places(step.schedule)
    numbers, columns = 32 // step.tile.bits, step.tile.dv // 32
    for e in range(0, step.tile.score_registers, numbers):
        packed = at[f"pack_word(x, s, {e})"]
        for i in range(max(e, step.early), e + numbers):
            assert at[f"exponential(x, s, {i})"] < packed
        assert packed < step.half + e // operands_of_p(step) * columns * step.parts


def test_the_reference_moves_between_sums_and_early_exponentials(step: Step) -> None:
    """Sums are of this tile, and what is early of the next has the reference that its scores moved."""
    at = places(step.schedule)
    assert all(at[call] > step.check for call in early(step))
    if not step.early or step.tile.stays:
        return
    assert all(n < step.half for call, n in at.items() if call.startswith(("add(", "pack_word(")))
    assert all(step.half <= n <= step.check for call, n in at.items() if call.startswith("maximum("))


def test_where_the_reference_stays_bundles_have_an_even_share(step: Step) -> None:
    """Of exponentials, too: some of the next tile stand beside the last values of this one."""
    if not step.tile.stays:
        return
    counts = [sum(piece.call.startswith("exponential(") for piece in b.pieces) for b in step.schedule.bundles]
    share = -(-step.tile.score_registers // step.size)
    assert max(counts) <= share + 1 and step.early > 0


def test_loads_stand_where_nothing_is_read(step: Step) -> None:
    """Loads to LDS have arrived when waves meet; what they overwrite was read before they met last."""
    at = places(step.schedule)
    for call, bundle in at.items():
        if call.startswith(("load_", "store_word", "read_v", "read_k(x, next")):
            assert bundle < step.meeting
        elif call.startswith("read_k(x, now"):
            assert bundle >= step.meeting
    order = [at[f"load_k(x, now.k, {n})"] for n in range(step.loads_k)]
    assert all(one < other for one, other in pairwise(order))
    to_registers = [n for call, n in at.items() if call.startswith("fetch_v") and n < step.meeting]
    assert all(n > order[-1] for n in to_registers)
    assert step.loads_under_way == len(to_registers)


def test_tiles_are_left_behind_their_last_loads(step: Step) -> None:
    at = places(step.schedule)
    last = max(n for call, n in at.items() if call.startswith(("load_", "fetch_v")))
    assert last < at["move_k(x)"] < at["move_v(x)"] < at["advance(x)"]


def test_waves_meet_once(step: Step) -> None:
    meetings = [n for n in range(len(step.products)) if any("MEET" in call for call in step.calls(n))]
    assert meetings == [step.meeting]


@pytest.mark.parametrize("instance", STEPS, ids=lambda instance: str(instance.name))
def test_no_loop_is_faster_than_planned(instance: Instance) -> None:
    """Nor slower by a third, by the clock; --explain says both."""
    tile, target = instance.tile, instance.target
    assert isinstance(tile, CdnaTile) and isinstance(target, CdnaTarget)
    planned, modelled = tile.step(target).unit_cycles, instance.op.block_cost(instance).busy_cycles
    # A figure is what two launches differ by, which begin and end alike but for a hundredth.
    assert 0.99 * planned < modelled < planned * 4 / 3
    assert f"{modelled:.0f} ({planned:.0f} as planned)" in instance.op.cost_words(instance)
