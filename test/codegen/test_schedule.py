# SPDX-License-Identifier: MIT
"""Orders of main loops: those that are made of any pieces, and attention's."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from test_cdna_computes import tile

from codegen import Refused
from codegen.ops.fmha_fwd.cdna_schedule import RING, Step
from codegen.schedule import Law, Piece, Schedule, plan
from codegen.targets import TARGETS, CdnaTarget

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


@pytest.fixture(params=[("gfx942", "bf16"), ("gfx942", "fp16"), ("gfx950", "bf16")], ids="-".join)
def step(request: pytest.FixtureRequest) -> Step:
    name, compute = request.param
    target = TARGETS[name]
    assert isinstance(target, CdnaTarget)
    said = {"pipeline": "qr_bundled", "bm0": 256, "rm0": 8, "bn0": 64, "hdim_q": 128, "hdim_v": 128}
    return Step(tile(compute, **said, occupancy=2), target)


def test_each_piece_of_a_step_is_there_once(step: Step) -> None:
    calls = [call for bundle in step.schedule.bundles for call in bundle.calls]
    assert len(calls) == len(set(calls))
    assert len(step.products) == 128 * 64 * 2 // 32 // (16 if step.parts == 1 else 8)
    for e in range(32):
        assert {f"exponential(x, s, {e})", f"add(x, s, {e})"} <= set(calls)
        assert e % 2 or {f"pack_two(x, s, {e})", f"maximum(x, s_next, {e})"} <= set(calls)


def test_no_bundle_has_more_than_fits(step: Step) -> None:
    for bundle in step.schedule.bundles:
        assert bundle.port <= step.law.room and bundle.issues <= step.law.issues


def test_operands_are_read_before_their_products(step: Step) -> None:
    """And behind the products of what their places in the ring held."""
    at = places(step.schedule)
    for call, bundle in at.items():
        found = re.fullmatch(r"read_([kv])\(x, (\w+)\.\w, (\d+)\)", call)
        if not found:
            continue
        operand = int(found[3]) + (step.score_operands if found[1] == "v" else 0)
        operand += len(step.products) // step.parts * (found[2] == "now" and found[1] == "k")
        assert (operand - RING + 1) * step.parts - 1 < bundle + 1 <= operand * step.parts


def test_probabilities_are_packed_before_their_products(step: Step) -> None:
    at = places(step.schedule)
    for e in range(0, 32, 2):
        assert max(at[f"exponential(x, s, {i})"] for i in (e, e + 1)) < at[f"pack_two(x, s, {e})"]
        assert at[f"pack_two(x, s, {e})"] < step.half + e // 8 * 4 * step.parts


def test_loads_stand_where_nothing_is_read(step: Step) -> None:
    """Loads to LDS begin when all have met; K has arrived when they meet again, V a step later."""
    at = places(step.schedule)
    for call, bundle in at.items():
        if call.startswith("load_k"):
            assert step.first_meeting <= bundle < step.second_meeting
        elif call.startswith(("load_v", "store_v")):
            assert bundle >= step.first_meeting
    order = [at[f"load_k(x, now.k, {n})"] for n in range(step.loads_k)]
    assert all(one < other for one, other in pairwise(order))
    assert step.loads_under_way == (step.loads_v if at[step_last_v(step)] < step.second_meeting else 0)


def step_last_v(step: Step) -> str:
    """The last load of V."""
    if step.target.transposing_reads:
        return f"load_v(x, next.v, {step.loads_v - 1})"
    return f"fetch_v_row(x, {step.loads_v - 1})"


def test_waves_meet_twice(step: Step) -> None:
    meetings = [n for n in range(len(step.products)) if any("MEET" in call for call in step.calls(n))]
    assert meetings == [step.first_meeting, step.second_meeting]
