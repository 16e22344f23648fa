# SPDX-License-Identifier: MIT
"""How other libraries do the operations on rows.

Each function makes ready for a problem and returns the library's version and the call that is timed. It runs
in the library's own environment, so that nothing is imported before it is needed.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[[], Any]
Problem = dict[str, Any]


# ---- torch: what fuses several operations is composed of its own


def quantize(torch: Any, p: Problem, z: Any) -> tuple[Any, Any]:
    """A row's numbers in 8 bits, and their scale."""
    q, kind = {"int8": (127.0, torch.int8), "e4m3": (448.0, torch.float8_e4m3fn)}[p["out"]]
    scale = z.abs().amax(dim=-1, keepdim=True) / q
    z = z / scale
    return (z.round().clamp(-q, q) if p["out"] == "int8" else z).to(kind), scale


def norm_of(torch: Any, p: Problem, tensors: dict[str, Any]) -> Callable[[Any], Any]:
    """layer_norm or rms_norm of rows."""
    functional, n = torch.nn.functional, (p["n"],)
    if p["op"] == "layernorm2d_fwd":
        return lambda x: functional.layer_norm(x, n, tensors["gamma"], tensors["beta"], 1e-5)
    return lambda x: functional.rms_norm(x, n, tensors["gamma"], 1e-5)


def formula(torch: Any, p: Problem, tensors: dict[str, Any]) -> Call:
    """The operation, in torch's words."""
    if p["op"] == "smoothquant":
        return lambda: quantize(torch, p, tensors["x"].float() * tensors["sm_scale"])
    if p["op"] == "moe_smoothquant":
        ids = tensors["ids"].t()  # slot by slot
        return lambda: quantize(torch, p, tensors["x"].float() * tensors["sm_scale"][ids])
    norm = norm_of(torch, p, tensors)

    def call() -> Any:
        x = tensors["x"]
        if "residual" in tensors:
            x = x + tensors["residual"]
        y = norm(x)
        if p["out"] != p["prec"]:
            z = y.float()
            y = quantize(torch, p, z * tensors["sm_scale"] if "sm_scale" in tensors else z)
        return y, x

    return call


def torch_tensors(torch: Any, p: Problem) -> dict[str, Any]:
    """Of a problem, all in 0.5 .. 1."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[p["prec"]]
    m, n, experts = p["m"], p["n"], p.get("experts", 0)

    def numbers(*sizes: int, dtype: Any) -> Any:  # rows are all the same
        return (torch.rand(sizes[-1]) / 2 + 0.5).to(dtype).expand(*sizes).contiguous()

    made = {"x": numbers(m, n, dtype=dtype)}
    if "norm" in p["op"]:
        made |= {name: numbers(n, dtype=dtype) for name in ("gamma", "beta")}
    if p["adds"]:
        made["residual"] = numbers(m, n, dtype=dtype)
    if p["smooths"]:
        made["sm_scale"] = numbers(*((experts, n) if experts else (n,)), dtype=torch.float32)
    if experts:
        made["ids"] = (torch.arange(m * p["topk"]) % experts).reshape(m, p["topk"])
    return made


def make_torch(p: Problem) -> tuple[Any, Call]:
    """The library, and the formula on tensors of its own."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    return torch, formula(torch, p, torch_tensors(torch, p))


def without_gradients(torch: Any, call: Call) -> Call:
    """The call as inference makes it."""

    def inferred() -> None:
        with torch.inference_mode():
            call()

    return inferred


def prepare_torch(p: Problem) -> tuple[str, Call]:
    """Operation by operation."""
    torch, call = make_torch(p)
    return torch.__version__, without_gradients(torch, call)


def prepare_compiled(p: Problem) -> tuple[str, Call]:
    """What torch.compile makes of the same, for these sizes."""
    torch, call = make_torch(p)
    torch.compiler.reset()
    return torch.__version__, without_gradients(torch, torch.compile(call, dynamic=False, fullgraph=True))


# ---- oneDNN, through its C API

KINDS = {"fp16": (1, 2), "bf16": (2, 2), "fp32": (3, 4)}  # dnnl_data_type_t, bytes
CPU, INFERENCE, USE_SCALE, USE_SHIFT = 1, 96, 2, 4
SRC, DST, SCALE, SHIFT = 1, 17, 51, 52
HALVES = {"fp16": b"\x00\x3a", "bf16": b"\x40\x3f", "fp32": b"\x00\x00\x40\x3f"}  # 0.75


class Argument(ctypes.Structure):
    """dnnl_exec_arg_t."""

    _fields_ = [("number", ctypes.c_int), ("memory", ctypes.c_void_p)]


class OneDnn:
    """The library of the wheel onednn-cpu-gomp, which lies beside this Python."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(Path(sys.prefix) / "lib/libdnnl.so.3"))
        self.engine = self.made("dnnl_engine_create", ctypes.c_int(CPU), ctypes.c_size_t(0))
        self.stream = self.made("dnnl_stream_create", self.engine, ctypes.c_uint(1))
        self.kept: list[Any] = []

    def do(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise ValueError(f"{name}: status {status}")

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """What a function makes."""
        thing = ctypes.c_void_p()
        self.do(name, ctypes.byref(thing), *arguments)
        return thing

    def version(self) -> str:
        """Three numbers."""
        self.library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int * 3)
        return ".".join(map(str, self.library.dnnl_version()[0]))

    def description(self, kind: int, *sizes: int) -> ctypes.c_void_p:
        """Of a packed tensor."""
        dims = ctypes.c_int64 * 12
        strides = dims(*([sizes[1], 1] if len(sizes) == 2 else [1]))
        return self.made(
            "dnnl_memory_desc_create_with_strides", ctypes.c_int(len(sizes)), dims(*sizes), kind, strides
        )

    def memory(self, description: ctypes.c_void_p, pattern: bytes, count: int) -> ctypes.c_void_p:
        """Of so many numbers."""
        room = ctypes.create_string_buffer(len(pattern) * count + 64)
        start = ctypes.addressof(room) + -ctypes.addressof(room) % 64
        block = pattern * min(count, 1 << 16)
        for at in range(0, len(pattern) * count, len(block)):
            ctypes.memmove(start + at, block, min(len(block), len(pattern) * count - at))
        self.kept.append(room)
        return self.made("dnnl_memory_create", description, self.engine, ctypes.c_void_p(start))


def prepare_onednn(p: Problem) -> tuple[str, Call]:
    """The primitive layer_normalization."""
    if p["op"] != "layernorm2d_fwd" or p["out"] != p["prec"] or p["adds"]:
        raise ValueError("it has layer_normalization alone")
    dnn, (kind, _), (m, n) = OneDnn(), KINDS[p["prec"]], (p["m"], p["n"])
    rows, scales = dnn.description(kind, m, n), dnn.description(KINDS["fp32"][0], n)  # whatever the rows are
    descriptor = dnn.made(
        "dnnl_layer_normalization_forward_primitive_desc_create",
        *(dnn.engine, ctypes.c_int(INFERENCE), rows, rows, None),
        *(ctypes.c_float(1e-5), ctypes.c_uint(USE_SCALE | USE_SHIFT), None),
    )
    primitive = dnn.made("dnnl_primitive_create", descriptor)
    tensors = {
        SRC: dnn.memory(rows, HALVES[p["prec"]], m * n),
        DST: dnn.memory(rows, HALVES[p["prec"]], m * n),
        SCALE: dnn.memory(scales, HALVES["fp32"], n),
        SHIFT: dnn.memory(scales, HALVES["fp32"], n),
    }
    arguments = (Argument * len(tensors))(*(Argument(*tensor) for tensor in tensors.items()))
    execute, wait = dnn.library.dnnl_primitive_execute, dnn.library.dnnl_stream_wait

    def call() -> None:
        if execute(primitive, dnn.stream, len(tensors), arguments) or wait(dnn.stream):
            raise ValueError("dnnl_primitive_execute failed")

    return dnn.version(), call


PREPARE = {"torch": prepare_torch, "torch.compile": prepare_compiled, "onednn": prepare_onednn}
