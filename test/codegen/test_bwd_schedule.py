# SPDX-License-Identifier: MIT
"""The planned main loop of fmha_bwd on CDNA: what must stand before what."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from codegen.ops import parse_apis
from codegen.ops.fmha_bwd.cdna_schedule import ELEMENTS, Step
from codegen.rows import read_instances
from codegen.spec import ROOT
from codegen.targets import TARGETS, CdnaTarget

STEPS = [
    instance.tile.step(instance.target)
    for instance in read_instances(
        parse_apis("bwd", "simplified")[2], ROOT / "instances", ("gfx942", "gfx950")
    )
    if instance.tile.pipeline == "kr_ktr_vr_bundled"
]


@pytest.fixture(params=STEPS, ids=lambda step: f"{step.target.name}_{step.tile.compute}{step.tile.stores_dq}")
def step(request: pytest.FixtureRequest) -> Step:
    assert isinstance(request.param, Step)
    return request.param


def places(step: Step, pattern: str) -> dict[str, int]:
    """The bundles of pieces, by their calls."""
    found = {
        piece.call: n
        for n, bundle in enumerate(step.schedule.bundles)
        for piece in bundle.pieces
        if re.fullmatch(pattern, piece.call)
    }
    assert found
    return found


def test_no_bundle_has_more_than_fits(step: Step) -> None:
    assert all(bundle.port <= step.law.room for bundle in step.schedule.bundles)
    assert all(bundle.issues <= step.law.issues for bundle in step.schedule.bundles)


def test_each_operand_is_read_once_and_before_its_products(step: Step) -> None:
    """In the slot that its products take, when those before have taken what was there."""
    reads: list[tuple[int, int]] = []
    for n, bundle in enumerate(step.schedule.bundles):
        for piece in bundle.pieces:
            if match := re.match(r"read_(?:row|column|scores)\(x, (\d+), ", piece.call):
                reads.append((n, int(match[1])))
    assert len(reads) == step.operands == step.size // step.parts
    for number, (at, slot) in enumerate(reads, step.ring):
        assert slot == number % step.ring
        assert (number - step.ring + 1) * step.parts - 1 <= at < number * step.parts
    for n, product in enumerate(step.products):
        assert f"x->ring[{n // step.parts % step.ring}]" in product


def test_all_of_the_tile_is_read_before_waves_meet(step: Step) -> None:
    for call, at in places(step, r"read_(row|column|scores)\(.*").items():
        of_next = "other.tiles.q" in call
        assert (at >= step.meeting) == of_next, call


def test_what_scores_become_follows_on_one_another(step: Step) -> None:
    parts = step.parts * step.tile.dq // 32
    for e in range(ELEMENTS):
        at = [
            places(step, rf"{name}\(x, {e}\)")[f"{name}(x, {e})"]
            for name in ("exponent", "power", "differentiate")
        ]
        assert step.changes <= at[0] < at[1] < at[2] and at[2] > step.begin("add_to_dq")
        for name, made, product in (("pack_two_of_p", at[1], "dv"), ("pack_two_of_ds", at[2], "dk")):
            pack = f"{name}(x, {e // 2 * 2})"
            assert (
                made < places(step, re.escape(pack))[pack] < step.begin(f"add_to_{product}") + e // 8 * parts
            )
    assert all(at < step.begin("gradient") for at in places(step, r"begin_gradient\(.*").values())


def test_gradients_of_scores_are_there_when_waves_meet(step: Step) -> None:
    """And not before all have read those of the tile before, where there is one room for them."""
    for call, at in places(step, r"put_ds\(.*").items():
        assert step.rows_meeting <= at < step.meeting, call


def test_memory_takes_in_one_access_a_bundle(step: Step) -> None:
    sent = places(step, r"send\(.*")
    loads = places(step, r"load_.*")
    assert len(sent) == ELEMENTS and len({*sent.values(), *loads.values()}) == len(sent) + len(loads)
    late = [sent[f"send(x, {e})"] for e in range(step.late, ELEMENTS)]
    early = [sent[f"send(x, {e})"] for e in range(step.late)]
    moved = [places(step, rf"{name}_dq\(x\)")[f"{name}_dq(x)"] for name in ("move", "limit")]
    assert max(late) < min(moved) <= max(moved) < min(early)
    assert max(late) < step.begin("add_to_dq") and min(early) > step.begin("add_to_dv")


def test_pointers_move_between_loads(step: Step) -> None:
    """Those of dO, where it goes straight to LDS, behind its loads, which are a step later than others."""
    advance = places(step, r"advance\(x\)")["advance(x)"]
    assert all(at < advance for at in places(step, r"(move_\w+|limit_dq)\(.*").values())
    for call, at in places(step, r"load_.*").items():
        assert (at < advance) == call.startswith("load_o"), call
    assert advance >= step.changes


def test_tiles_are_written_where_nobody_reads(step: Step) -> None:
    if step.is_direct:
        assert all(at >= step.meeting for at in places(step, r"load_(q|numbers)\(.*").values())
        behind = max(places(step, r"load_o\(.*").values())
        sent = places(step, r"send\(.*").values()
        assert step.loads_under_way == sum(behind < at < step.meeting for at in sent)
        return
    rows = places(step, r"read_(row|scores)\(x, \d, (now|other\.tiles\.s).*").values()
    assert max(rows) < step.rows_meeting <= min(places(step, r"read_column\(.*").values())
    assert max(places(step, r"put_columns\(.*").values()) < min(places(step, r"load_row\(.*").values())
    assert max(places(step, r"put_columns\(.*").values()) < step.rows_meeting
    put = places(step, r"put_row\(.*").values()
    assert max(places(step, r"load_row\(.*").values()) < min(put) and max(put) < step.meeting
    assert min(put) > step.rows_meeting


def test_what_there_is_no_plan_for_is_refused() -> None:
    page = TARGETS["gfx950"]
    assert isinstance(page, CdnaTarget)
    tile = STEPS[0].tile
    assert not tile.complaint(page)
    assert "not for fp32" in replace(tile, compute="fp32").complaint(page)
    assert not replace(tile, stores_dq=1).complaint(page)
    for fields in ({"stores_dq": 2}, {"stores_dq": 1, "pipeline": "kr_ktr_vr"}):
        assert "stores_dq" in replace(tile, **fields).complaint(page)
    for fields in ({"hdim_q": 64}, {"bm0": 64}, {"bn0": 64}, {"passes": 2}):
        assert "for head dims 128, 32 queries" in replace(tile, **fields).complaint(page)
