# SPDX-License-Identifier: MIT
"""Results and pictures of different machines are kept apart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import page  # noqa: E402
from pages.fmha_fwd import PAGE  # noqa: E402
from plots import cases_of, machines, roofs  # noqa: E402
from records import case_of, processor, read, replace  # noqa: E402

CASE: dict[str, Any] = {
    "case": "bf16 b1 h8/8 s1024 d128",
    **{"b": 1, "h": 8, "h_k": 8, "s_q": 1024, "s_k": 1024, "d": 128, "causal": False},
    **{"prec": "bf16", "threads": 2, "processor": "AMD EPYC", "rival": "tessera"},
}
XEON = "Intel(R) Xeon(R) Processor, AMX"


def test_a_case_is_a_problem_on_a_machine() -> None:
    others: list[dict[str, Any]] = [{"processor": XEON}, {"case": "bf16 bias"}, {"threads": 1}]
    assert len({case_of(CASE | other) for other in ({}, *others)}) == 1 + len(others)
    assert case_of(CASE | {"rival": "torch", "ms": 3.0}) == case_of(CASE)


def test_newer_records_take_the_place_of_older_ones(tmp_path: Path) -> None:
    """They replace those of all rivals of the case, as ratios refer to one run; other records stay."""
    path = tmp_path / "results.jsonl"
    epyc = [CASE | {"ms": 1.0}, CASE | {"rival": "torch", "ms": 2.0}]
    xeon = [CASE | {"processor": XEON, "ms": 3.0}]
    feature = [CASE | {"case": "bf16 bias", "ms": 4.0}]
    for records in (epyc, xeon, feature):
        replace(path, records)
    assert list(read(path).values()) == [epyc, xeon, feature]
    newer = [CASE | {"ms": 0.5}]
    replace(path, newer)
    assert list(read(path).values()) == [newer, xeon, feature]
    assert len(path.read_text().splitlines()) == 3
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", page.names())
def test_results_hold_each_measurement_once(name: str) -> None:
    """Of cases that the operation's page has, under the name that it gives their fields."""
    operation = page.load(name)
    cases = [case for suite in operation.suites for case in operation.cases(suite, operation.precs)]
    fields = {case.name: case.fields() for case in cases}
    assert all(fields[case.name] == case.fields() for case in cases)
    for (_, case, _), records in read(ROOT / f"benchmark/results/{name}.jsonl").items():
        assert all(fields[str(case)].items() <= record.items() for record in records)
        rivals = [record.get("rival") for record in records]
        assert len(set(rivals)) == len(rivals)
        assert rivals[0] in ("tessera", None)


def test_processors() -> None:
    """The first processor's name; where it says little AMX, or AMD's generation, is added."""
    text = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu {}\n\nprocessor\t: 1\n"
    assert processor(text.format("amx_bf16 amx_tile")) == XEON
    assert processor(text.format("avx512f")) == "Intel(R) Xeon(R) Processor"
    assert processor("processor\t: 0\n") == "unknown"
    text = "vendor_id\t: AuthenticAMD\ncpu family\t: {}\nmodel name\t: AMD EPYC\nflags\t\t: fpu {}\n"
    assert processor(text.format(25, "avx2")) == "AMD EPYC, Zen 3"
    assert processor(text.format(25, "avx2 avx512f")) == "AMD EPYC, Zen 4"
    assert processor(text.format(26, "avx2 avx512f")) == "AMD EPYC, Zen 5"
    assert processor(text.format(99, "avx2 avx512f")) == "AMD EPYC"


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
    assert roofs(PAGE, [*(qr | {"probe": probe} for probe in probes), torch]) == {
        "read": 12.0,
        "fma_avx512": 120.0,
    }
    decode = qr | {"s_q": 1, "probe": probes[0]}
    assert roofs(PAGE, [decode]) == {"read": 10.0}


def test_pictures_have_the_cases_of_their_suites() -> None:
    """By type, then in the order of the suites."""
    names = cases_of(PAGE, ("decode", "short"))
    assert names[0] == "fp32 b8 h32/8 s1x4096 d128" and names[-1] == "fp16 b2 h40/8 s512 d128 causal"
    assert len(set(names)) == len(names) == 3 * (2 + 4)
