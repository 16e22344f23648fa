# SPDX-License-Identifier: MIT
"""The reference of the row operations: its ranges hold the exact results, computed in fractions from the same
headers; it accepts what fp32 computes in any order, and refuses what is computed wrongly."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from formats import bf16_values, e4m3_values, e4m3fnuz_values  # noqa: E402
from structs import struct_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "test/reference/rows_reference.h").read_text()
NONE, MEAN, SQUARE = range(3)
TYPES = {"fp32": 0, "fp16": 1, "bf16": 2, "e4m3": 3, "e4m3fnuz": 6, "int8": 9}
BYTES = {"fp32": np.uint32, "fp16": np.uint16, "bf16": np.uint16}
GREATEST = {"int8": 127, "e4m3": 448, "e4m3fnuz": 240}
NUMBER, NAN, ANYTHING = range(3)

Call = struct_of(HEADER, "rows_call")


class Verdict(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("checked", "wrong", "unspecified")] + [
        ("first", ctypes.c_char * 200)
    ]


class Range(ctypes.Structure):
    _fields_ = [("lo", ctypes.c_double), ("hi", ctypes.c_double), ("kind", ctypes.c_int)]


class Answer(ctypes.Structure):
    _fields_ = [(name, ctypes.POINTER(Range)) for name in ("s", "z", "y", "work")] + [
        (name, Range) for name in ("mean", "inv", "y_scale")
    ]


def codes_of(kind: str, values: Any) -> Any:
    """Codes of fp32 values, rounded to nearest even: of types up to fp32 and of the quantized ones."""
    values = np.asarray(values, np.float32)
    if kind == "fp32":
        return values
    if kind == "fp16":
        return values.astype(np.float16)
    if kind == "bf16":
        bits = values.view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if kind == "int8":
        return np.clip(np.rint(values), -127, 127).astype(np.int8)
    table = (e4m3_values if kind == "e4m3" else e4m3fnuz_values)(np.arange(127 if kind == "e4m3" else 128))
    magnitude = np.minimum(np.abs(values.astype(np.float64)), table[-1])
    above = np.clip(np.searchsorted(table, magnitude), 1, len(table) - 1)
    low, high = magnitude - table[above - 1], table[above] - magnitude
    code = np.where((high < low) | ((high == low) & (above % 2 == 0)), above, above - 1)
    return (code | np.where((values < 0) & ((code > 0) | (kind == "e4m3")), 128, 0)).astype(np.uint8)


def values_of(kind: str, codes: Any) -> Any:
    if kind == "bf16":
        return bf16_values(codes)
    if kind in ("e4m3", "e4m3fnuz"):
        return (e4m3_values if kind == "e4m3" else e4m3fnuz_values)(codes)
    return np.asarray(codes).astype(np.float64)


@dataclass(frozen=True)
class Problem:
    """One row operation, its inputs as fp64 values of their type."""

    statistics: int
    into: str
    out: str
    m: int
    n: int
    epsilon: float = 1e-5
    bias: bool = False
    residual: bool = False
    smooth: bool = False
    rounds_twice: bool = False
    mean: float = 0.0
    seed: int = 0
    scale: float = 1.0
    inputs: dict[str, Any] = field(default_factory=dict)

    def filled(self) -> Problem:
        rng = np.random.default_rng(self.seed)

        def random(shape: tuple[int, ...], middle: float, scale: float) -> Any:
            drawn = rng.normal(middle, scale, shape)
            return values_of(self.into, codes_of(self.into, drawn))

        rows = (self.m, self.n)
        inputs = {"x": random(rows, self.mean, self.scale)}
        if self.residual:
            inputs["residual"] = random(rows, 0, self.scale)
        if self.bias:
            inputs["bias"] = random((self.n,), 0, self.scale)
        if self.statistics != NONE:
            inputs["gamma"] = random((self.n,), 1, 0.3)
        if self.statistics == MEAN:
            inputs["beta"] = random((self.n,), 0, 0.3)
        if self.smooth:
            inputs["smooth"] = rng.uniform(0.2, 2, self.n).astype(np.float32).astype(np.float64)
        return replace(self, inputs=inputs)

    @property
    def quantized(self) -> bool:
        return self.out in GREATEST

    @property
    def eps(self) -> float:
        return float(np.float32(self.epsilon))


# --- what kernels compute, in fp32 --------------------------------------------------------------------------


def four_chains(terms: Any) -> Any:
    """The least parallel sum that the reference allows for."""
    lanes = np.zeros((terms.shape[0], 4), np.float32)
    for at in range(0, terms.shape[1], 4):
        part = terms[:, at : at + 4]
        lanes[:, : part.shape[1]] += part
    return (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])


def pairwise(terms: Any) -> Any:
    return terms.sum(axis=1, dtype=np.float32)


@dataclass(frozen=True)
class Kernel:
    """A kernel's ways: those of right ones, and one fault."""

    total: Callable[[Any], Any] = four_chains
    reciprocal: bool = False  # quotients by the reciprocal of y_scale
    inv_off: int = 0  # steps of fp32 that 1 / sqrt is off by
    fault: str = ""

    def run(self, p: Problem) -> dict[str, Any]:
        f32, fault, kind = np.float32, self.fault, p.into
        x = {name: np.asarray(value, np.float32) for name, value in p.inputs.items()}
        out: dict[str, Any] = {}
        s = x["x"] + (x["bias"] if p.bias and fault != "bias" else f32(0))
        s = s + (x["residual"] if p.residual and fault != "residual" else f32(0))
        out["residual_out"] = codes_of(kind, s)
        if fault == "rounds s":
            s = values_of(kind, out["residual_out"]).astype(f32)
        counted = s[:, :-1] if fault == "tail" else s
        n = f32(p.n - 1 if fault == "divisor" else p.n)
        z = s
        if p.statistics != NONE:
            mean = self.total(counted) / n if p.statistics == MEAN else np.zeros(p.m, f32)
            v = self.total((counted - mean[:, None]) ** 2) / n
            if fault == "one pass":
                v = self.total(s * s) / n - mean * mean
            v = v + (f32(0) if fault == "epsilon" else f32(p.eps))
            inv = f32(1) / np.sqrt(v)
            for _ in range(self.inv_off):
                inv = np.nextafter(inv, f32(np.inf))
            out["mean"], out["inv"] = mean, inv
            z = (s - mean[:, None]) * inv[:, None]
            if p.rounds_twice and fault != "rounds once":
                z = values_of(kind, codes_of(kind, z)).astype(f32)
            z = z * x["gamma"] + (x["beta"] if p.statistics == MEAN and fault != "beta" else f32(0))
            if p.rounds_twice:
                z = values_of(kind, codes_of(kind, z)).astype(f32)
        out["unquantized"] = codes_of(kind, z)
        if p.smooth:
            z = z * (np.roll(x["smooth"], 1) if fault == "smooth" else x["smooth"])
        if p.quantized:
            q = f32(GREATEST[p.out])
            greatest = np.abs(z[:, :-1] if fault == "tail" else z).max(axis=1)
            out["y_scale"] = greatest / (q + f32(1) if fault == "128" else q)
            z = z * (f32(1) / out["y_scale"])[:, None] if self.reciprocal else z / out["y_scale"][:, None]
            if fault == "truncates":
                z = np.trunc(z)
        out["y"] = codes_of(p.out, z)
        return out


# --- the reference ------------------------------------------------------------------------------------------


class Reference:
    """A problem and results as the reference takes them, with strides of more than n."""

    def __init__(self, library: ctypes.CDLL, p: Problem, results: dict[str, Any]):
        self.library, self.p, self.keep = library, p, []
        c = self.call = Call()
        c.statistics, c.rounds_twice, c.quantized = p.statistics, p.rounds_twice, p.quantized
        setattr(c, "in", TYPES[p.into])
        c.out, c.m, c.n, c.epsilon = TYPES[p.out], p.m, p.n, p.eps
        c.x_stride, c.residual_stride, c.y_stride, c.residual_out_stride = (p.n + k for k in (1, 2, 3, 4))
        for name, values in p.inputs.items():
            codes = values.astype(np.float32) if name == "smooth" else codes_of(p.into, values)
            self.point(name, codes, {"x": c.x_stride, "residual": c.residual_stride}.get(name, 0))
        strides = {"y": c.y_stride, "unquantized": c.y_stride, "residual_out": c.residual_out_stride}
        for name, codes in results.items():
            wanted = {"mean": p.statistics == MEAN, "inv": p.statistics != NONE}.get(name, True)
            if wanted:
                self.point(name, codes, strides.get(name, 0))

    def point(self, name: str, codes: Any, stride: int) -> None:
        if stride:
            rows = np.zeros((self.p.m, stride), codes.dtype)
            rows[:, : self.p.n] = codes
            codes = rows
        codes = np.ascontiguousarray(codes)
        self.keep.append(codes)
        setattr(self.call, name, codes.ctypes.data)

    def check(self, threads: int = 2) -> Verdict:
        verdict = Verdict()
        failed = self.library.rows_check(
            ctypes.byref(self.call),
            ctypes.c_int64(0),
            ctypes.c_int64(self.p.m),
            threads,
            ctypes.byref(verdict),
        )
        assert failed == 0
        return verdict

    def answer(self, row: int) -> Answer:
        answer = Answer()
        for name in ("s", "z", "y", "work"):
            setattr(answer, name, (Range * self.p.n)())
        self.library.rows_answer_of(ctypes.byref(self.call), ctypes.c_int64(row), ctypes.byref(answer))
        return answer


def expect(library: ctypes.CDLL, p: Problem, kernel: Kernel, right: bool = True) -> Verdict:
    verdict = Reference(library, p, kernel.run(p)).check()
    assert (verdict.wrong == 0) == right, (p.statistics, p.into, p.out, p.n, kernel, verdict.first)
    assert (verdict.first == b"") == right
    return verdict


PROBLEMS = [
    Problem(MEAN, "fp32", "fp32", 5, 4096),
    Problem(MEAN, "fp16", "fp16", 5, 1000, bias=True, residual=True),
    Problem(MEAN, "bf16", "int8", 5, 257, residual=True, smooth=True),
    Problem(MEAN, "fp32", "fp32", 5, 300, mean=1000.0),
    Problem(MEAN, "fp32", "e4m3", 5, 17134, mean=3.0, bias=True),
    Problem(MEAN, "fp32", "fp32", 5, 2),
    Problem(SQUARE, "fp32", "fp32", 5, 4096, residual=True),
    Problem(SQUARE, "fp16", "fp16", 5, 1000, rounds_twice=True),
    Problem(SQUARE, "bf16", "bf16", 5, 1000, rounds_twice=True, residual=True),
    Problem(SQUARE, "bf16", "int8", 5, 257, residual=True, smooth=True),
    Problem(SQUARE, "fp16", "e4m3fnuz", 5, 17134, residual=True),
    Problem(SQUARE, "fp32", "int8", 5, 1, residual=True),
    Problem(NONE, "fp16", "int8", 5, 1001, smooth=True),
    Problem(NONE, "bf16", "e4m3", 5, 1001, smooth=True),
    Problem(NONE, "fp32", "e4m3fnuz", 5, 77, smooth=True),
]


def name_of(p: Problem) -> str:
    return f"{('none', 'mean', 'square')[p.statistics]}_{p.into}_{p.out}_{p.n}"


@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
def test_right_kernels_are_accepted(library: ctypes.CDLL, problem: Problem) -> None:
    for seed in range(2):
        p = replace(problem, seed=seed).filled()
        for total in (four_chains, pairwise):
            for reciprocal in (False, True):
                for inv_off in (0, 2):
                    verdict = expect(library, p, Kernel(total, reciprocal, inv_off))
                    assert verdict.checked >= p.m * p.n and verdict.unspecified == 0


FAULTS = {
    "epsilon": replace(PROBLEMS[0], scale=0.01),
    "divisor": replace(PROBLEMS[1], n=300),
    "one pass": PROBLEMS[3],
    "tail": replace(PROBLEMS[0], n=600),
    "bias": PROBLEMS[1],
    "residual": PROBLEMS[6],
    "beta": PROBLEMS[4],
    "rounds s": replace(PROBLEMS[2], out="bf16", smooth=False),
    "rounds once": PROBLEMS[8],
    "smooth": PROBLEMS[12],
    "128": PROBLEMS[12],
    "truncates": PROBLEMS[9],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_kernels_are_refused(library: ctypes.CDLL, fault: str) -> None:
    for seed in range(3):
        p = replace(FAULTS[fault], seed=seed).filled()
        expect(library, p, Kernel())
        expect(library, p, Kernel(fault=fault), right=False)


def test_a_tie_has_two_right_codes(library: ctypes.CDLL) -> None:
    """fp32 cannot tell on which side of a boundary a quotient is: both neighbours are right, no third one."""
    x = np.array([[127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3]])
    p = Problem(NONE, "fp32", "int8", 1, 8, inputs={"x": x, "smooth": np.ones(8)}, smooth=True)
    results = Kernel().run(p)
    for codes, wrong in [
        ([127, 0, 2, 2, 0, -2, -2, 3], 0),
        ([127, 1, 1, 3, -1, -1, -3, 3], 0),
        ([127, -1, 3, 1, 1, 0, -4, 4], 7),
        ([126, 0, 2, 2, 0, -2, -2, 3], 1),
    ]:
        results["y"] = np.array([codes], np.int8)
        assert Reference(library, p, results).check().wrong == wrong


# --- exact results ------------------------------------------------------------------------------------------


def root(x: Fraction) -> Fraction:
    """Of a positive number, to 150 bits."""
    shift = 2 ** (2 * (150 + max(0, -x.numerator.bit_length() + x.denominator.bit_length())))
    return Fraction(math.isqrt(x.numerator * shift // x.denominator), math.isqrt(shift))


def exact_row(p: Problem, i: int) -> dict[str, Any]:
    """The header's equations on fractions; with rounds_twice z is left out."""
    one = lambda name, j: Fraction(float(p.inputs[name].reshape(-1, p.n)[-1][j]))  # noqa: E731
    s = [Fraction(float(v)) for v in p.inputs["x"][i]]
    if p.bias:
        s = [v + one("bias", j) for j, v in enumerate(s)]
    if p.residual:
        s = [v + Fraction(float(p.inputs["residual"][i][j])) for j, v in enumerate(s)]
    found: dict[str, Any] = {"s": s}
    z = s
    if p.statistics != NONE:
        mean = sum(s) / p.n if p.statistics == MEAN else Fraction(0)
        inv = 1 / root(sum((v - mean) ** 2 for v in s) / p.n + Fraction(p.eps))
        z = [(v - mean) * inv * one("gamma", j) for j, v in enumerate(s)]
        if p.statistics == MEAN:
            z = [v + one("beta", j) for j, v in enumerate(z)]
        found |= {"mean": mean, "inv": inv}
    found["z"] = z
    if p.quantized:
        if p.smooth:
            z = [v * one("smooth", j) for j, v in enumerate(z)]
        greatest, q = max(abs(v) for v in z), GREATEST[p.out]
        found |= {"y_scale": greatest / q, "y": [v / greatest * q for v in z]}
    return found


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if not p.rounds_twice], ids=name_of)
def test_ranges_hold_the_exact_results(library: ctypes.CDLL, problem: Problem) -> None:
    """And are not wider than what the header derives: errors of the longest chain, seen through a root."""
    p = replace(problem, m=2, n=min(problem.n, 700), seed=9).filled()
    reference = Reference(library, p, Kernel().run(p))
    chain = min(p.n, p.n / 4 + 16) * 2.0**-24
    for i in range(p.m):
        exact, answer = exact_row(p, i), reference.answer(i)
        size = abs(p.mean) + 4  # of elements of s, over that of their deviations
        for name in ("mean", "inv", "y_scale"):
            if name in exact and (name != "mean" or p.statistics == MEAN):
                found, want = getattr(answer, name), exact[name]
                assert found.kind == NUMBER and Fraction(found.lo) <= want <= Fraction(found.hi), name
                assert found.hi - found.lo <= (4 * chain + 2.0**-20) * size * max(1, float(abs(want))), name
        for name in ("s", "z", "y"):
            for j, want in enumerate(exact.get(name, [])):
                found = getattr(answer, name)[j]
                assert found.kind == NUMBER and Fraction(found.lo) <= want <= Fraction(found.hi), (name, j)
                q = GREATEST[p.out] if name == "y" else 1
                assert found.hi - found.lo <= 8 * (chain + 2.0**-22) * q * size**2, (name, j)


# --- NaN, infinity, zeros -----------------------------------------------------------------------------------


def special(statistics: int, out: str, values: list[float], into: str = "fp32", **more: Any) -> Problem:
    x = np.array([values])
    inputs = {"x": x}
    if statistics != NONE:
        inputs["gamma"] = np.ones(len(values))
    if statistics == MEAN:
        inputs["beta"] = np.full(len(values), 0.25)
    return Problem(statistics, into, out, 1, len(values), inputs=inputs, **more)


INF, NONUMBER = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("problem", "y", "others"),
    [
        (special(SQUARE, "fp32", [1, INF, 2]), [0, NONUMBER, 0], {"inv": 0}),
        (special(SQUARE, "fp32", [1, NONUMBER, 2]), [NONUMBER] * 3, {"inv": NONUMBER}),
        (special(SQUARE, "fp32", [1e20, 1, -3]), [0, 0, 0], {"inv": 0}),  # 1e40 is infinite
        (special(SQUARE, "fp32", [0, 0, 0]), [0, 0, 0], {"inv": 1 / math.sqrt(1e-5)}),
        (special(SQUARE, "fp32", [0, 0, 0], epsilon=0.0), [NONUMBER] * 3, {"inv": INF}),
        (special(MEAN, "fp32", [1, INF, 2]), [NONUMBER] * 3, {"mean": INF, "inv": NONUMBER}),
        (special(MEAN, "fp32", [INF, -INF, 2]), [NONUMBER] * 3, {"mean": NONUMBER, "inv": NONUMBER}),
        (special(MEAN, "fp32", [1e20, -1e20, 0]), [0.25] * 3, {"mean": 0, "inv": 0}),
        (special(MEAN, "fp32", [3e38, 3e38, 3e38]), [NONUMBER] * 3, {"mean": INF, "inv": 0}),
        (special(NONE, "int8", [1, INF, -2]), [0, 0, 0], {"y_scale": INF}),
        (special(NONE, "e4m3", [1, INF, -2]), [0, NONUMBER, 0], {"y_scale": INF}),
        (special(NONE, "int8", [1, NONUMBER, -2]), [0, 0, 0], {"y_scale": NONUMBER}),
        (special(NONE, "e4m3", [1, NONUMBER, -2]), [NONUMBER] * 3, {"y_scale": NONUMBER}),
        (special(NONE, "int8", [0, -0.0, 0]), [0, 0, 0], {"y_scale": 0}),
        (special(NONE, "e4m3fnuz", [0, -0.0, 0]), [0, 0, 0], {"y_scale": 0}),
    ],
)
def test_rows_that_are_not_numbers(
    library: ctypes.CDLL, problem: Problem, y: list[float], others: dict[str, float]
) -> None:
    p = problem
    results = {name: np.array([value], np.float32) for name, value in others.items()}
    quiet = {"int8": 0, "e4m3": 0x7F, "e4m3fnuz": 0x80}

    def with_y(values: list[float]) -> dict[str, Any]:
        codes = codes_of(p.out, np.nan_to_num(np.array([values], np.float32)))
        if p.out in quiet:
            codes[0, np.isnan(values)] = quiet[p.out]
        else:
            codes = np.where(np.isnan(values), np.nan, codes).astype(codes.dtype)
        return results | {"y": codes}

    verdict = Reference(library, p, with_y(y)).check()
    assert verdict.wrong == 0 and verdict.unspecified == 0, verdict.first
    for j, value in enumerate(y):  # any other number there is noticed, and NaN in the place of a number
        other = list(y)
        other[j] = 1.0 if math.isnan(value) else value + 1
        assert Reference(library, p, with_y(other)).check().wrong == 1
    for name in results:
        broken = with_y(y)
        broken[name] = (
            broken[name] * np.float32(1.5) + np.float32(1e16)
            if np.isfinite(results[name][0])
            else np.float32([7])
        )
        assert Reference(library, p, broken).check().wrong == 1, name


def test_what_fp32_leaves_open(library: ctypes.CDLL) -> None:
    """A constant row's deviations are its mean's error, and without epsilon nothing else is there; y_scale
    below the least normal number has hardly a digit."""
    constant = special(MEAN, "fp32", [0.1] * 7, epsilon=0.0)
    answer = Reference(library, constant, {"y": np.zeros((1, 7), np.float32)}).answer(0)
    assert answer.inv.hi == INF and all(one.kind == ANYTHING for one in answer.y[:7])
    tiny = special(NONE, "int8", [1e-40, 2e-40, -3e-40])
    found = Reference(
        library, tiny, {"y": np.int8([[1, -128, 3]]), "y_scale": np.float32([3e-40 / 127])}
    ).check()
    assert (found.checked, found.unspecified, found.wrong) == (4, 3, 1)  # -128 is never right


def test_sources_of_experts(library: ctypes.CDLL) -> None:
    """Rows are those of slot 0, then those of slot 1; ids of no expert have none."""
    ids = np.array([[0, 2], [3, 1], [-1, 0]], np.int32)  # [tokens, topk], 3 experts
    rng = np.random.default_rng(3)
    x, smooth = rng.normal(0, 1, (3, 16)).astype(np.float32), rng.uniform(0.5, 2, (3, 16)).astype(np.float32)
    call = Call()
    call.out, call.quantized, call.m, call.n = TYPES["int8"], 1, 6, 16
    call.tokens, call.topk, call.experts = 3, 2, 3
    call.x_stride = call.y_stride = 16
    call.x, call.smooth, call.topk_ids = x.ctypes.data, smooth.ctypes.data, ids.ctypes.data
    library.rows_source.restype = ctypes.c_int64
    sources = [library.rows_source(ctypes.byref(call), ctypes.c_int64(row)) for row in range(6)]
    assert sources == [0, -1, -1, 0, 1, 2]
    z = np.stack([x[t] * smooth[e] for t, e in [(0, 0), (0, 0), (0, 0), (0, 2), (1, 1), (2, 0)]])
    y_scale = np.abs(z).max(axis=1) / np.float32(127)
    y = codes_of("int8", z / y_scale[:, None])
    y[1:3], y_scale[1:3] = -128, -1  # not looked at
    call.y, call.y_scale = y.ctypes.data, y_scale.ctypes.data
    verdict = Verdict()
    library.rows_check(ctypes.byref(call), ctypes.c_int64(0), ctypes.c_int64(6), 3, ctypes.byref(verdict))
    assert (verdict.checked, verdict.wrong) == (4 * 17, 0), verdict.first
