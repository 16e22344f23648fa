# SPDX-License-Identifier: MIT
"""The page of fmha_fwd: counts of work, limits of calls, bars."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codegen.ops import operations
from codegen.rows import read_instances
from codegen.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

from page import Judgement, median_probe, median_ratio  # noqa: E402
from pages.fmha_fwd import (  # noqa: E402
    CAUSAL,
    PAGE,
    PLAIN,
    PRODUCTS,
    RAGGED,
    SHARES,
    SUITES,
    Figures,
    Shape,
    features,
    judge,
    judge_feature,
    least_share,
    limit_of,
    shape_of,
    square,
    tessera,
    window_share,
)

PROBE = {"threads": 2, "fma_avx512": 500.0, "dot_bf16": 1000.0, "read": 40.0}


def test_flop_counts_both_products() -> None:
    """Each product counts 2 m n k; a causal mask halves that."""
    shape = square(2, 3, 3, 100, 64)
    assert shape.flop == 2 * 3 * (2 * 100 * 100 * 64) * 2
    assert square(2, 3, 3, 100, 64, causal=True).flop == shape.flop / 2
    assert Shape(1, 8, 2, 1, 4096, 128).flop == 4 * 8 * 4096 * 128


def test_bytes_are_those_of_k_and_v() -> None:
    """Bytes are counted for the heads of k and v, however many q has."""
    shape = Shape(8, 32, 8, 1, 4096, 128)
    assert shape.kv_bytes("fp32") == 2 * 8 * 8 * 4096 * 128 * 4
    assert shape.kv_bytes("bf16") == shape.kv_bytes("fp16") == shape.kv_bytes("fp32") / 2


def test_intensity_counts_each_tensor_once() -> None:
    """FLOP over the bytes of Q, K, V and O."""
    shape = Shape(2, 4, 1, 100, 200, 64)
    elements = 2 * (4 * 100 + 200 + 200 + 4 * 100) * 64
    assert shape.intensity("bf16") == pytest.approx(shape.flop / (2 * elements))
    assert shape.intensity("fp32") == pytest.approx(shape.flop / (4 * elements))


def test_medians_and_rates() -> None:
    """An outlier in one round changes nothing."""
    shape = square(1, 1, 1, 1000, 125)
    figures = Figures(shape, "fp32", (2.0, 900.0, 1.0))
    assert figures.median == 2.0
    assert figures.gflops == pytest.approx(4 * 1000 * 1000 * 125 / 2e-3 / 1e9)
    assert figures.share([PROBE] * 3, "fma_avx512") == pytest.approx(figures.gflops / 500)
    assert figures.share([PROBE] * 3, "dot_bf16") == pytest.approx(figures.gflops / 1000)


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """It is not the ratio of medians, since a slow round is slow for both."""
    assert median_ratio((2.0, 20.0, 4.0), (1.0, 10.0, 1.0)) == 2.0
    with pytest.raises(ValueError):
        median_ratio((1.0, 2.0), (1.0,))


def test_a_share_is_the_median_of_the_rounds_shares() -> None:
    """It is not the share of medians, since in a slow round the probe is slow too."""
    shape = square(1, 1, 1, 1000, 250)  # 1 GFLOP
    probes = [{"fma_avx512": rate} for rate in (1000.0, 500.0, 100.0)]
    assert Figures(shape, "fp32", (2.0, 4.0, 5.0)).share(probes, "fma_avx512") == pytest.approx(0.5)
    with pytest.raises(ValueError):
        Figures(shape, "fp32", (2.0,)).share(probes, "fma_avx512")


def test_the_limit_follows_from_the_instance() -> None:
    """It follows from its target or the products that it replaces; decoding is limited by reading memory."""
    limits = {
        "fmha_fwd__x86_64_v3_b384x128x16_w1_qr": "fma_avx2",
        "fmha_fwd__x86_64_v4_b528x128x16_w1_qr": "fma_avx512",
        "fmha_fwd_fp16_bf16__x86_64_v4_b528x128x16_w1_qr": "fma_avx512",
        "fmha_fwd__x86_64_v4_bf16_b512x128x32_w1_qr_cbf16": "dot_bf16",
        "fmha_fwd__x86_64_v4_amx_b512x256x32_w1_qr_tile": "tile_bf16",
        "fmha_fwd_fp16__x86_64_v4_amx_b512x128x32_w1_qr_tile_cbf16x2": "fma_avx512",
    }
    assert {name: limit_of(PLAIN, name) for name in limits} == limits
    for none in ("fmha_fwd__x86_64_v2_b256x128x16_w1_qr", "torch 2.0"):
        with pytest.raises(ValueError, match=none):
            limit_of(PLAIN, none)
    decode = Shape(1, 4, 1, 1, 10000, 100)
    assert {limit_of(decode, name) for name in limits} == {"read"}
    figures = Figures(decode, "fp16", (0.1,))
    assert figures.gbytes == pytest.approx(2 * 10000 * 100 * 2 / 1e-4 / 1e9)
    assert figures.share([PROBE], "read") == pytest.approx(figures.gbytes / 40)


def test_every_instance_has_a_limit() -> None:
    """As its row has it: names say all that the limit depends on."""
    selected = [
        instance
        for instance in read_instances(operations()["fwd"], ROOT / "instances", tuple(TARGETS))
        if instance.target.name.startswith("x86-64") and instance.target.name != "x86-64-v2"
    ]
    assert {instance.target.tag for instance in selected} == set(PRODUCTS)
    for instance in selected:
        emulated = instance.tile.compute not in ("f32", "bf16", "bf16i8")
        floats = "fma_avx512" if instance.target.name.startswith("x86-64-v4") else "fma_avx2"
        expected = floats if emulated else PRODUCTS[instance.target.tag]
        assert limit_of(PLAIN, instance.name) == expected


def test_probes_are_taken_figure_by_figure() -> None:
    assert median_probe([{"a": 1.0, "b": 9.0}, {"a": 3.0, "b": 7.0}, {"a": 2.0, "b": 8.0}]) == {
        "a": 2.0,
        "b": 8.0,
    }


def test_suites_hold_shapes_that_there_are() -> None:
    for shapes in SUITES.values():
        assert len(set(shapes)) == len(shapes)
        assert all(shape.h % shape.h_k == 0 for shape in shapes)
    assert {str(shape) for shape in SUITES["decode"]} >= {"b8 h32/8 s1x4096 d128"}


def test_bars_of_shapes() -> None:
    """Bars depend on type and head dim, are lower under a mask, and for decoding refer to reading memory."""
    assert least_share(square(1, 8, 8, 1024, 128), "fp32") == 0.88
    assert least_share(square(1, 8, 8, 1024, 128, causal=True), "fp32") == pytest.approx(0.80)
    assert least_share(square(1, 8, 8, 2048, 256, causal=True), "bf16") == pytest.approx(0.82 - CAUSAL)
    assert least_share(square(1, 8, 8, 512, 128), "bf16") is None  # too short
    assert least_share(square(4, 8, 8, 4096, 32), "bf16") is None  # of no head dim that is listed
    assert least_share(Shape(8, 32, 8, 1, 4096, 128), "fp16") == 0.90
    assert {(shape.d in SHARES["fp32"]) for shape in SUITES["table"]} == {True}


def test_judgements() -> None:
    """The best rival counts; decoding is judged by memory alone; outside the table ahead is enough."""
    shape = SUITES["table"][0]
    ours = {"share": 0.85, "ratio": 1.0}
    rivals = [{"ratio": 2.0}, {"ratio": 1.25}]
    assert judge(shape, "fp16", [ours, *rivals]) == [
        Judgement("share of the limit", 0.85, 0.80),
        Judgement("times the best rival", 1.25, 1.3),
    ]
    assert [j.met for j in judge(shape, "fp16", [ours, *rivals])] == [True, False]
    assert judge(square(4, 8, 8, 512, 32), "fp16", [ours, *rivals]) == [
        Judgement("times the best rival", 1.25, 1.0)
    ]
    assert judge(SUITES["decode"][0], "fp16", [ours, *rivals]) == [
        Judgement("share of the limit", 0.85, 0.90)
    ]
    assert Judgement("", 1.0, least=1.0).met and Judgement("", 1.0, most=1.0).met
    assert not Judgement("", 1.0, least=1.1).met and not Judgement("", 1.0, most=0.9).met


def test_work_of_features() -> None:
    """Windows and lengths leave a share of the plain call's pairs."""
    assert window_share(4, 0) == 4 / 16
    assert window_share(4, 1) == (1 + 2 + 2 + 2) / 16
    assert window_share(4, 99) == (1 + 2 + 3 + 4) / 16
    of = {(f.name, f.prec): f for f in features()}
    assert of["group", "fp32"].work == pytest.approx(sum(s * s for s in RAGGED) / PLAIN.s_q**2)
    group = dict(word.split("=", 1) for word in of["group", "fp32"].words.split())
    assert group["-s"] == group["-s_k"] == ",".join(map(str, RAGGED))  # the plain call's -s_k does not stay
    assert of["bias", "bf16"].work == 1 and of["bias", "bf16"].beside == "bf16"
    assert {f.prec for f in features() if f.least == 1.0} == {"fp8", "fp8bf16", "mxfp8", "mxfp4"}
    assert judge_feature(of["dropout", "bf16"], 0.76).met and not judge_feature(of["bias", "bf16"], 0.76).met


def test_words_of_a_call() -> None:
    """An extra word takes the place of the shape's or the device's."""
    words = tessera(Path("b"), square(1, 2, 2, 64, 32, causal=True), "bf16", "-s=8,9 -device=cpu:x86-64-v3")
    assert words.program == Path("b/bin/tile_example_fmha_fwd")
    assert words.words == ["-b=1", "-h=2", "-h_k=2", "-s_k=64", "-d=32", "-prec=bf16", "-mask=t"]
    assert words.extra == ["-s=8,9", "-device=cpu:x86-64-v3"]


def test_cases() -> None:
    """A case's fields say its shape, which a rival is told; features are for Tessera alone."""
    table = PAGE.cases("table", ["fp32", "bf16"])
    assert len(table) == 2 * len(SUITES["table"]) == len({case.name for case in table})
    assert shape_of(table[0].fields()) == SUITES["table"][0] and table[0].problem() == table[0].fields()
    assert [case.problem() for case in PAGE.cases("features", ["fp32"])] == [None] * (len(features()) + 1)
