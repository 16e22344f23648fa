# SPDX-License-Identifier: MIT
"""Filters, clauses and receipts select what a search through the full list of names selects."""

from __future__ import annotations

import fnmatch
import json
import re
from functools import lru_cache

import pytest
import sampling
from conftest import ROOT, refused, run, run_all
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import sample
from test_names import FWD, INSTANCES

import generate
from codegen.receipts import _features, cover, find_receipt, read_receipts
from codegen.select import Request, select
from codegen.space import region_meet

RECEIPTS = read_receipts(ROOT / "instances")
ALL = find_receipt(RECEIPTS, "all")
# A part of the space that is small enough to list and cuts through every axis.
SMALL = "dtype=fp16|fp8 hdim=64|192x128 pad=npad|psskddv vlayout=r skip=no sink=no|yes lse=no"


@lru_cache
def names_by_instance(where: str = SMALL) -> dict[str, list[str]]:
    parts = {instance: region_meet(instance.region, FWD.space.where(where)) for instance in INSTANCES}
    return {instance.name: list(instance.ck_names(part)) for instance, part in parts.items() if part}


def by_search(pattern: str, where: str = SMALL) -> dict[str, int]:
    """The instances that a pattern selects, and how many names of each, by looking at every name."""
    found = {}
    for short, names in names_by_instance(where).items():
        whole = fnmatch.fnmatchcase(short, pattern)
        taken = [name for name in names if whole or fnmatch.fnmatchcase(name, pattern)]
        if taken:
            found[short] = len(taken)
    return found


def by_sets(pattern: str, where: str = SMALL) -> dict[str, int]:
    try:
        selection = select(FWD, INSTANCES, Request(ALL, where=where), {"fwd": pattern})
    except generate.Refused:
        return {}
    return {match.instance.name: match.matched for match in selection.matches}


pieces = st.sampled_from(
    (
        "* * * _ ? fmha_fwd_d64_ d192 _fp16_ _fp8_ batch _group_ _b528x * x128x _qr_ _vr_ _npad _pssk "
        "nlogits _nbias_ bias _alibi _nmask _mask_ _nlse _dropout ndropout nskip pertensor _n[bm]* [!_] "
        "ntrload _nsink sink x86_64_v4 __ v[34]"
    ).split()
)


@settings(max_examples=500 if sampling.ALL else 50, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=7).map("".join))
def test_filters_against_a_search(pattern: str) -> None:
    assert by_sets(pattern) == by_search(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "*_fp16*_batch*_nbias*_nmask*_nlse*_ndropout*",
        "*_fp16_*_npad_*_alibi_*",
        "fmha_fwd_d64_fp16_batch_*",
        "*__x86_64_v4_*",
        "*_nsink",
        "*_qr_*",
        "*",
    ],
)
def test_usual_filters(pattern: str) -> None:
    found = by_search(pattern)
    assert found and by_sets(pattern) == found


def test_expand_lists_what_was_counted() -> None:
    result = run_all("--expand", "--where", SMALL, "-f", "*_fp8_*_alibi_mask*")
    count = json.loads(
        run_all("--count", "--format", "json", "--where", SMALL, "-f", "*_fp8_*_alibi_mask*").out
    )
    listed = [name for names in names_by_instance().values() for name in names]
    assert result.lines == [name for name in listed if fnmatch.fnmatchcase(name, "*_fp8_*_alibi_mask*")]
    assert count[0]["ck_names_asked_for"] == len(result.lines)


# --- the explicit none, and the error of a filter that matches nothing


@pytest.mark.parametrize("nothing", [" ", "  ", " @ "])
def test_explicit_none(nothing: str) -> None:
    result = run_all("--count", "-f", nothing, "--format", "json")
    assert result.code == 0
    assert json.loads(result.out)[0]["instances"] == 0
    assert result.err.count("\n") == 1 and "asks for none" in result.err


@pytest.mark.parametrize(
    ("pattern", "token"),
    [
        ("*_fp61*", "_fp61"),
        ("*_fp16*_nbisa*_mask*", "_nbisa"),
        ("*_fp16*_nbias*_mask", "_mask"),
        ("*_fp32*_pertensor*", "_pertensor"),
        ("fmha_bwd*", "fmha_bwd"),
        ("*_logits*_bias*", "_bias"),
    ],
)
def test_the_first_token_that_matches_nothing_is_named(pattern: str, token: str) -> None:
    assert refused("--targets", "x86-64", "-f", pattern, "--count").endswith(f"'{token}' matches nothing")


def test_filters_are_positional() -> None:
    assert "3 parts for 1 apis" in refused("--targets", "cpu", "-f", "a,b,c", "--count")
    assert "between @" in refused("--targets", "cpu", "-f", "*@*_fp16*", "--count")
    everything = run_all("--count").out
    assert run_all("--count", "-f", "").out == everything == run_all("--count", "-f", "*").out


def test_filters_of_splitkv_are_those_of_combine_and_main() -> None:
    """As CK's: what is missing is *, and combine is one of fwd's, so that its part chooses nothing."""

    def asked(filter_: str) -> int:
        arguments = ("-d", "fwd_splitkv", "--targets", "portable", "--count", "--format", "json")
        (api,) = json.loads(run(*arguments, "-f", filter_).out)
        return int(api["ck_names_asked_for"]) if api["instances"] else 0

    everything, main = asked("*"), asked("*_fp16*_lse*@*_fp16*_batch*_pagedkv*")
    assert 0 < main == asked("*@*_fp16*_batch*_pagedkv*") == asked("@*_fp16*_batch*_pagedkv*") < everything
    assert asked("*@*") == asked("*_fp16*_lse*") == everything
    assert asked("* @ ") == asked(" @ ") == 0
    assert "'_nbisa' matches nothing" in refused(
        "-d", "fwd_splitkv", "--targets", "cpu", "-f", "*@*_nbisa*", "--count"
    )
    assert "combine@fwd_splitkv" in refused("-d", "fwd_splitkv", "--targets", "cpu", "-f", "*@*@*", "--count")


# --- clauses


@pytest.mark.parametrize(
    ("clause", "test"),
    [
        ("hdim_q=192", lambda n: "_d192_" in n),
        ("hdim_q!=64", lambda n: "_d64_" not in n),
        ("hdim_v=128", lambda n: "_d192_" in n),
        ("hdim=64", lambda n: "_d64_" in n),
        ("dtype=fp16", lambda n: "_fp16_" in n),
        ("dtype!=fp16", lambda n: "_fp16_" not in n),
        ("mask!=no", lambda n: "_mask_" in n),
        ("mask=causal", lambda n: "_mask_" in n),
        ("bias=no|alibi", lambda n: "_nbias_" in n or "_alibi_" in n),
        ("sink=1", lambda n: n.endswith("_sink")),
        ("sink=nsink", lambda n: n.endswith("_nsink")),
        (
            "qscale=pt|bs dropout=no",
            lambda n: ("_pertensor_" in n or "_blockscale_" in n) and "_ndropout_" in n,
        ),
        ("mode=group logits=yes", lambda n: "_group_" in n and "_logits_" in n),
    ],
)
def test_clauses_against_a_search(clause: str, test) -> None:  # type: ignore[no-untyped-def]
    found = {short: sum(map(test, names)) for short, names in names_by_instance().items()}
    assert by_sets("*", f"{SMALL} {clause}") == {short: count for short, count in found.items() if count}


def test_clauses_on_instances() -> None:
    names = [row["name"] for row in json.loads(run_all("--table", "--format", "json").out)]
    wide = [
        row["name"]
        for row in json.loads(
            run_all("--table", "--format", "json", "--where", "target=x86-64-v4|armv8-a bm0!=32").out
        )
    ]
    assert wide == [name for name in names if re.search("__(x86_64_v4|armv8_a)_b(?!32x)[0-9]", name)]


def test_optdim() -> None:
    for text, dims in (("64", "64"), ("32,64, 192", "32|64|192")):
        assert run_all("--count", "--optdim", text).out == run_all("--count", "--where", f"hdim_q={dims}").out
    assert run_all("--count", "--optdim", "-1").out == run_all("--count").out


# --- receipts


def expected(receipt: str, name: str) -> bool:
    """CK's receipts on forward names, written down once more from its documentation as tests on the name."""
    sixteen = "_fp16_" in name or "_bf16_" in name
    row_v = "_vr_" in name
    plain = "_nqscale_" in name and "_nskip_" in name
    fp8 = "_fp8bf16_" in name and ("_d128_" in name or "_d192_" in name)
    tests = {
        "0": "_fp32_" not in name,
        "2": sixteen
        and row_v
        and "_bias_" not in name
        and plain
        and name.endswith("_nsink")
        and "_nlogits_" in name
        and "_lse_" in name,
        "3": sixteen and row_v and plain,
        "4": sixteen and row_v and "_alibi_" not in name and plain and "_nlogits_" in name,
        "100": (sixteen or fp8) and row_v and "_batch_" in name,
        "200": (sixteen or fp8) and row_v and "_group_" in name,
        "600": (sixteen or fp8) and row_v,
        "700": sixteen
        and row_v
        and plain
        and name.endswith("_nsink")
        and "_nlogits_" in name
        and "_lse_" in name,
        "800": "_fp32_" in name and "_nskip_" in name and "_nlogits_" in name,
        "801": "_fp32_" in name
        and ("_d48_" in name or "_d128_" in name)
        and all(
            f"_{t}_" in name for t in ["batch", "nbias", "nlse", "ndropout", "nskip", "nlogits", "nmask"]
        ),
        "888": ("_fp8bf16_" in name or "_fp8fp32_" in name)
        and ("_d128_" in name or "_d192_" in name)
        and row_v,
    }
    return tests[{"1": "0", "300": "0", "400": "0"}.get(receipt, receipt)]


NUMBERS = ["0", "1", "2", "3", "4", "100", "200", "300", "400", "600", "700", "800", "801", "888"]


@pytest.mark.parametrize("number", sample(NUMBERS, 5))
def test_receipts_of_ck(number: str) -> None:
    """Counted with one instance's names, all of them but for the pads, which no receipt looks at."""
    where = "target=x86-64-v4 bm0=528 pad=psskddv dropout=no|yes hdim=48|128|192x128"
    names = [name for name in run_all("--expand", "--where", where).lines if expected(number, name)]
    assert run_all("--expand", "-r", number, "--where", where).lines == names
    assert names
    result = run_all("-r", number, "--count")
    receipt = find_receipt(RECEIPTS, number)
    assert f"receipt {number} ({receipt.name})" in result.err
    assert run_all("-r", receipt.name, "--count").out == result.out


def test_the_default_receipt_is_all() -> None:
    assert run_all("--table").out == run_all("--table", "-r", "all").out
    assert len(json.loads(run_all("--table", "--format", "json").out)) == len(INSTANCES)


def test_ci_shows_everything_with_as_few_as_possible() -> None:
    chosen = cover(INSTANCES)
    everything = frozenset().union(*map(_features, INSTANCES))
    assert frozenset().union(*map(_features, chosen)) == everything
    for instance in chosen:
        others = [_features(other) for other in chosen if other is not instance]
        assert frozenset().union(*others) != everything
    names = [row["name"] for row in json.loads(run_all("--table", "--format", "json", "-r", "ci").out)]
    assert names == [instance.name for instance in INSTANCES if instance in chosen]


def test_quickstart_is_all_for_cpus_and_ci_for_gpus() -> None:
    chosen = set(map(id, cover(INSTANCES)))
    names = [
        row["name"] for row in json.loads(run_all("--table", "--format", "json", "-r", "quickstart").out)
    ]
    assert names == [i.name for i in INSTANCES if i.target.kind == "cpu" or id(i) in chosen]


def test_selection_never_narrows() -> None:
    """What is selected is printed the same whatever selected it."""
    whole = {row["name"]: row for row in json.loads(run_all("--table", "--format", "json").out)}
    for part in (
        ("-r", "801"),
        ("-f", "*_fp16_*_alibi*"),
        ("--where", "hdim_q=32 mask=mask"),
        ("--optdim", "256"),
    ):
        rows = json.loads(run_all("--table", "--format", "json", *part).out)
        assert all(row == whole[row["name"]] for row in rows)
        for row in sample(rows, 2):
            one = run("--render", row["name"])
            assert one.code == 0 and one.out


def test_explain_accounts_for_every_instance() -> None:
    asked = ("-r", "801", "--where", "bm0!=32", "-f", "*_d48_*")
    text = run_all("--explain", "all", *asked).out
    for instance in INSTANCES:
        assert len(re.findall(rf"^  [+-] {instance.name}\b", text, re.M)) == 1
    brief = run_all("--explain", *asked).out
    for reason in ("receipt 801 (fp32-minimal)", "clause 'bm0!=32'"):
        kept_out = text.count(f": kept out by {reason}\n")
        assert kept_out > 0
        assert f"  - {kept_out} kept out by {reason}\n" in brief
    selected = brief.count("\n  + ")
    assert selected == text.count("\n  + ") > 0
    counts = re.findall(r"^  - (\d+) kept out by ", brief, re.M)
    assert selected + sum(map(int, counts)) == len(INSTANCES)
    for rule in FWD.rules:
        assert rule.reason in text and rule.reason in brief
