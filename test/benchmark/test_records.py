# SPDX-License-Identifier: MIT
"""Machines and what they measured are told apart, in the file of results and in pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

from plots import machines, roofs  # noqa: E402
from records import case_of, processor, read, replace  # noqa: E402

CASE: dict[str, Any] = {
    **{"b": 1, "h": 8, "h_k": 8, "s_q": 1024, "s_k": 1024, "d": 128, "causal": False},
    **{"prec": "bf16", "threads": 2, "processor": "AMD EPYC", "rival": "tessera"},
}
XEON = "Intel(R) Xeon(R) Processor, AMX"


def test_a_case_is_a_problem_on_a_machine() -> None:
    others: list[dict[str, Any]] = [
        {"processor": XEON},
        {"prec": "fp16"},
        {"threads": 1},
        {"causal": True},
        {"feature": "bias"},
        {"feature": "lse"},
    ]
    assert len({case_of(CASE | other) for other in ({}, *others)}) == 1 + len(others)
    assert case_of(CASE | {"rival": "torch", "ms": 3.0}) == case_of(CASE)


def test_newer_records_take_the_place_of_older_ones(tmp_path: Path) -> None:
    """With all rivals of the case, whose ratios are to what was measured beside them; others stay."""
    path = tmp_path / "results.jsonl"
    epyc = [CASE | {"ms": 1.0}, CASE | {"rival": "torch", "ms": 2.0}]
    xeon = [CASE | {"processor": XEON, "ms": 3.0}]
    feature = [CASE | {"feature": "bias", "ms": 4.0}]
    for records in (epyc, xeon, feature):
        replace(path, records)
    assert list(read(path).values()) == [epyc, xeon, feature]
    newer = [CASE | {"ms": 0.5}]
    replace(path, newer)
    assert list(read(path).values()) == [newer, xeon, feature]
    assert len(path.read_text().splitlines()) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_results_hold_each_measurement_once() -> None:
    for case in read(ROOT / "benchmark/results/fmha_fwd.jsonl").values():
        rivals = [record.get("rival") for record in case]
        assert len(set(rivals)) == len(rivals)
        assert rivals[0] in ("tessera", None)


def test_processors() -> None:
    """The first field of a name is any processor's; a name that says little has AMX with it."""
    text = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu {}\n\nprocessor\t: 1\n"
    assert processor(text.format("amx_bf16 amx_tile")) == XEON
    assert processor(text.format("avx512f")) == "Intel(R) Xeon(R) Processor"
    assert processor("processor\t: 0\n") == "unknown"


def test_pictures_are_of_one_machine() -> None:
    """The first machine's files have no name of it."""
    records = [CASE, CASE | {"processor": XEON}, CASE | {"rival": "torch"}]
    assert machines(records) == {
        "AMD EPYC": ("", [records[0], records[2]]),
        XEON: ("_intel_xeon_processor_amx", [records[1]]),
    }


def test_roofs_are_of_the_limits_that_calls_have_met() -> None:
    """The median of what was probed beside them; reading is always one."""
    probes = [{"read": read, "fma_avx512": 10 * read, "tile_bf16": 99.0} for read in (10.0, 12.0, 30.0)]
    qr = CASE | {"what": "fmha_fwd__x86_64_v4_b528x128x16_w1_qr"}
    torch = CASE | {"rival": "torch", "what": "2.9.0", "probe": probes[1]}
    assert roofs([*(qr | {"probe": probe} for probe in probes), torch]) == {"read": 12.0, "fma_avx512": 120.0}
    decode = qr | {"s_q": 1, "probe": probes[0]}
    assert roofs([decode]) == {"read": 10.0}
