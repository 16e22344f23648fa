# SPDX-License-Identifier: MIT
"""Timing on a GPU, without one: turns, the pages' cases and bars, and calls through ctypes, made on a CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import page as pages  # noqa: E402
from gpu import GpuEntry, Probes, in_turns  # noqa: E402
from library import Call, Refused, Tessera  # noqa: E402
from pages import fmha_bwd_gpu, fmha_fwd_gpu, paged_attention_gpu, rows_gpu  # noqa: E402
from pages.fmha_fwd_gpu import GpuShape, least_ratio  # noqa: E402

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
built = pytest.mark.skipif(not (BUILD / "libtessera.so").exists(), reason="no libtessera.so is built")


class Tensor:
    """What calls need of torch's."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.ascontiguousarray(numbers)

    def data_ptr(self) -> int:
        return int(self.numbers.ctypes.data)

    def dim(self) -> int:
        return self.numbers.ndim

    def stride(self, axis: int) -> int:
        return self.numbers.strides[axis] // self.numbers.itemsize

    def reshape(self, *sizes: int) -> Tensor:
        return Tensor(self.numbers.reshape(*sizes))

    def __mod__(self, number: int) -> Tensor:
        return Tensor(self.numbers % number)

    def __add__(self, number: float) -> Tensor:
        return Tensor(self.numbers + np.float32(number))


class Cpu:
    """A CPU in the place of a GPU."""

    KINDS = {"float32": np.float32, "float16": np.float16, "int8": np.int8}
    torch_device = ""

    def __init__(self) -> None:
        self.tessera = Tessera(BUILD, "cpu")
        self.chance = np.random.default_rng(1)
        self.torch = SimpleNamespace(
            int32=np.int32,
            rand=lambda *sizes, device: Tensor(self.chance.random(sizes, np.float32)),
            arange=lambda n, device, dtype: Tensor(np.arange(n, dtype=dtype)),
            tensor=lambda numbers, device, dtype: Tensor(np.array(numbers, dtype)),
        )

    def tensor(self, *sizes: int, dtype: str) -> Tensor:
        return Tensor(self.chance.standard_normal(sizes).astype(self.KINDS[dtype]))

    def empty(self, *sizes: int, dtype: str) -> Tensor:
        made = Tensor(np.zeros(sizes, self.KINDS[dtype]))
        made.numbers.view(np.uint8)[...] = 0xFF
        return made

    def ready(self, call: Call, *kept: Any) -> tuple[str, Callable[[], str]]:
        return "", lambda: run(call)


def run(call: Call) -> str:
    room = np.zeros(call.workspace_bytes() + 64, np.uint8)
    call.set_workspace(room.ctypes.data + -room.ctypes.data % 64, call.workspace_bytes())
    instance = call.prepare()
    call()
    return instance


@built
@pytest.mark.parametrize("deterministic", [0, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d_v", [0, 24])
def test_backward_through_ctypes(d_v: int, causal: bool, deterministic: int) -> None:
    cpu: Any = Cpu()
    shape = fmha_bwd_gpu.Backward(2, 3, 3, 33, 33, 16, causal, d_v)
    tensors = fmha_bwd_gpu.tensors_of(cpu, shape, "fp16")
    assert "fmha_bwd" in run(fmha_bwd_gpu.backward_of(cpu, shape, "fp16", tensors, deterministic))
    q, k, v, o, do = (tensors[name].numbers.astype(np.float64) for name in ("q", "k", "v", "o", "do"))
    p = np.exp(q @ k.swapaxes(2, 3) / 4 - tensors["lse"].numbers[..., None])
    if causal:
        p *= np.tri(33)
    ds = p * (do @ v.swapaxes(2, 3) - (do * o).sum(-1, keepdims=True)) / 4
    wanted = {"dq": ds @ k, "dk": ds.swapaxes(2, 3) @ q, "dv": p.swapaxes(2, 3) @ do}
    for name, want in wanted.items():
        assert np.abs(tensors[name].numbers - want).max() < 0.02 * np.abs(want).max(), name


@built
@pytest.mark.parametrize("causal", [False, True])
def test_attention_through_ctypes(causal: bool) -> None:
    cpu: Any = Cpu()
    shape = GpuShape(2, 4, 2, 33, 33, 16, causal, 24)
    tensors = fmha_fwd_gpu.tensors_of(cpu, shape, "fp16")
    assert "fmha_fwd" in run(fmha_fwd_gpu.call_of(cpu, shape, "fp16", tensors))
    q, k, v, o = (tensors[name].numbers.astype(np.float64) for name in "qkvo")
    k, v = (x.repeat(2, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) / 4
    if causal:
        scores[..., ~np.tri(33, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    want = weights / weights.sum(axis=-1, keepdims=True) @ v
    assert np.linalg.norm(o - want) < 2e-3 * np.linalg.norm(want)


FEATURES = [f.name for f in fmha_fwd_gpu.features() if f.prec == "bf16"]


@built
@pytest.mark.parametrize("name", FEATURES)
def test_features_through_ctypes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has all that the library asks for, and every output is written."""
    cpu: Any = Cpu()
    monkeypatch.setattr(fmha_fwd_gpu, "PLAIN", GpuShape(2, 4, 4, 40, 40, 32))
    monkeypatch.setattr(fmha_fwd_gpu, "RAGGED", (40, 1, 17))
    call, tensors = fmha_fwd_gpu.with_feature(cpu, fmha_fwd_gpu.Feature(name, "fp16", "fp16"))
    run(call)
    for output in {"o", "lse"} & set(tensors):
        assert np.isfinite(tensors[output].numbers.astype(np.float64)).all()


@built
@pytest.mark.parametrize("suite", sorted(rows_gpu.SHAPES))
def test_rows_through_ctypes(suite: str) -> None:
    """Every call has all that the library asks for, and every output is written."""
    cpu: Any = Cpu()
    names = set()
    for problem in rows_gpu.problems(suite, "fp16"):
        if problem.out == "e4m3":
            continue
        small = type(problem)(**{**vars(problem), "m": 5, "n": 64})
        outputs = rows_gpu.outputs_of(cpu, small)
        tensors = rows_gpu.tensors_of(cpu, small) | outputs  # a call knows addresses alone
        names.add(run(rows_gpu.call_of(cpu, small, tensors)).split("__")[0])
        for name, tensor in outputs.items():
            assert np.isfinite(tensor.numbers.astype(np.float64)).all(), (problem, name)
            assert not (tensor.numbers.view(np.uint8) == 0xFF).all(), (problem, name)
    assert len(names) == (2 if suite == "fused" else 5)


@built
def test_what_the_library_refuses() -> None:
    tessera = Tessera(BUILD, "cpu")
    with pytest.raises(Refused, match="device"):
        Tessera(BUILD, "no_such")
    with pytest.raises(Refused, match="hdim"):
        Call(tessera, "fmha_fwd", {"hdim_q": 1000, "hdim_v": 64}, {})()
    with pytest.raises(ValueError, match="tessera_fmha_fwd_args has no typo"):
        Call(tessera, "fmha_fwd", {}, {"typo": 1})


class Clock:
    """A contestant that notes its turns."""

    def __init__(self, name: str, ms: float, log: list[tuple[str, int]]) -> None:
        self.name, self.ms, self.log = name, ms, log

    def prepare(self, threads: int) -> str:
        return self.name

    def time(self, count: int) -> float:
        self.log.append((self.name, count))
        return self.ms

    def close(self) -> None:
        """Nothing runs."""


def entries_of(times: dict[str, float], log: list[tuple[str, int]]) -> list[GpuEntry]:
    return [GpuEntry(Clock(name, ms, log), f"what {name}", 100) for name, ms in times.items()]


def in_turns_of(times: dict[str, float]) -> tuple[list[GpuEntry], list[tuple[str, int]]]:
    log: list[tuple[str, int]] = []
    entries = entries_of(times, log)
    gpu: Any = SimpleNamespace(
        meter=SimpleNamespace(watch=lambda into: nullcontext(into.append((1700.0, 600.0))))
    )
    in_turns(gpu, entries, 3)
    return entries, log


def test_turns() -> None:
    """Everybody has as many, bursts first, and orders vary."""
    entries, log = in_turns_of({"a": 1.0, "b": 2.0, "c": 3.0})
    assert all(len(e.bursts) == len(e.milliseconds) == len(e.readings) == 3 for e in entries)
    bursts = [name for name, count in log if count == 25][:9]
    assert {*bursts[:3]} == {*bursts[3:6]} == {*bursts[6:]} == {"a", "b", "c"}
    assert len({tuple(bursts[n : n + 3]) for n in (0, 3, 6)}) > 1
    record = entries[1].record(entries[0])
    assert record == {
        **{"rival": "b", "what": "what b", "ms": 2.0, "burst_ms": 2.0, "ratio": 2.0, "burst_ratio": 2.0},
        **{"mhz": 1700.0, "watts": 600.0},
    }


PROBE = {"product": 7e5, "copy": 4000.0, "read": 4500.0}


def test_a_shape_is_judged_beside_the_best_rival_and_its_limit() -> None:
    case = fmha_fwd_gpu.ShapeCase(GpuShape(4, 32, 32, 4096, 4096, 128), "bf16")
    work = 4.0 * 4 * 32 * 4096 * 4096 * 128
    assert case.shape.flop == work
    entries, _ = in_turns_of({"tessera": 1.0, "product": 2.0, "cudnn": 1.1, "flash": 2.5})
    ours, product, cudnn, flash = case.records(entries, [PROBE])
    assert ours["share"] == pytest.approx(work / 1.0 / (2.0 * Probes.SIDE**3 / 2.0))
    assert product["share"] == 1.0 and flash["ratio"] == 2.5 and cudnn["limit"] == "product"
    assert [bar["what"] for bar in ours["bars"]] == ["times the best rival"]
    assert ours["bars"][0]["value"] == pytest.approx(1.1) and ours["bars"][0]["met"]
    assert "at 1700 MHz, 600 W" in case.line([ours, product, cudnn, flash])


def test_decoding_is_judged_by_reading() -> None:
    case = fmha_fwd_gpu.ShapeCase(fmha_fwd_gpu.SUITES["decode"][0], "bf16")
    entries, _ = in_turns_of({"tessera": 1.0, "read": 0.9})
    ours, _ = case.records(entries, [PROBE])
    assert ours["share"] == pytest.approx(0.9) and not ours["bars"][0]["met"]
    assert ours["gbytes"] == pytest.approx(64 * 8 * 8192 * 128 * 2 * 2 / 1e6)


@pytest.mark.parametrize(
    "shape, least",
    [
        (GpuShape(4, 32, 32, 4096, 4096, 128), 1.08),
        (GpuShape(4, 32, 32, 4096, 4096, 128, True), 1.15),
        (GpuShape(16, 32, 32, 1024, 1024, 128, True), 1.05),
        (GpuShape(2, 8, 8, 3328, 3328, 128), 1.05),
        (GpuShape(4, 32, 8, 4096, 4096, 128, True), 1.10),
        (GpuShape(4, 32, 32, 4096, 4096, 64, True), 1.05),
        (GpuShape(4, 16, 16, 4096, 4096, 256), 1.0),
        (GpuShape(4, 16, 16, 4096, 4096, 192, True, 128), 1.0),
        (GpuShape(64, 32, 8, 1, 8192, 128), None),
    ],
)
def test_what_is_asked(shape: GpuShape, least: float | None) -> None:
    assert least_ratio(shape, "bf16") == least and least_ratio(shape, "fp16") is None


def test_sequences_of_different_lengths_are_as_much_work_as_the_plain_call() -> None:
    assert 0.99 < fmha_fwd_gpu.RAGGED_WORK < 1.01
    ragged = next(f for f in fmha_fwd_gpu.features() if f.name == "ragged")
    entries, _ = in_turns_of({"tessera": 1.05, "plain": 1.0})
    (record,) = fmha_fwd_gpu.FeatureCase(ragged).records(entries, [PROBE])
    assert record["rate"] == pytest.approx(fmha_fwd_gpu.RAGGED_WORK / 1.05) and record["bars"][0]["met"]


def test_rows_are_judged_beside_a_copy() -> None:
    problem = rows_gpu.problems("table", "bf16")[1]
    case = rows_gpu.RowsCase(problem)
    entries, _ = in_turns_of({"tessera": 1.0, "copy": 0.95, "torch": 1.3})
    ours, *_ = case.records(entries, [PROBE])
    assert ours["share"] == pytest.approx(0.95) and all(bar["met"] for bar in ours["bars"])
    assert case.moved == 2 * 2048 * 8192 * 2 + 8192 * 2


PAGES = ["fmha_bwd_gpu", "fmha_fwd_gpu", "paged_attention_gpu", "rows_gpu"]


def test_deterministic_calls_are_judged_beside_others() -> None:
    case = fmha_bwd_gpu.BackwardCase(fmha_bwd_gpu.SUITES["table"][0], "bf16")
    entries, _ = in_turns_of(
        {"tessera": 1.0, "product": 1.0, "deterministic": 1.25, "cudnn": 1.2, "flash": 2.0}
    )
    ours, *_ = case.records(entries, [PROBE])
    assert [(bar["value"], bar["met"]) for bar in ours["bars"]] == [(1.2, True), (0.8, False)]


def test_quantised_caches_are_judged_beside_bf16() -> None:
    """A row of turbo4 has 66 bytes of 256, and may take a fifth more of the time."""
    shape = next(s for s in paged_attention_gpu.SUITES["table"] if (s.b, s.ctx) == (64, 8192))
    least = 256 / 66 * 0.8
    entries, _ = in_turns_of({"tessera": 1.0, "read": 0.9, "bf16": least + 0.1})
    ours, _, plain = paged_attention_gpu.DecodeGpuCase(shape, "turbo4").records(entries, [PROBE])
    assert ours["share"] == pytest.approx(0.9)
    assert plain["share"] == pytest.approx(0.9 * 256 / 66 / (least + 0.1))
    (bar,) = ours["bars"]
    assert (bar["value"], bar["met"]) == (pytest.approx(least + 0.1), True)
    assert bar["least"] == pytest.approx(least)
    entries, _ = in_turns_of({"tessera": 1.0, "read": 0.94})
    ours, _ = paged_attention_gpu.DecodeGpuCase(shape, "bf16").records(entries, [PROBE])
    (bar,) = ours["bars"]
    assert (bar["value"], bar["met"]) == (pytest.approx(0.94), False)


def test_pages_of_gpus_say_so() -> None:
    assert [name for name in pages.names() if pages.load(name).on_gpu] == PAGES
