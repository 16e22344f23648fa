# SPDX-License-Identifier: MIT
"""Decoding by ggml, the library of llama.cpp, whose caches are whole: pages it has none."""

from __future__ import annotations

import ctypes
import importlib
import sys
import weakref
from pathlib import Path
from typing import Any

from rivals.attention import Call
from rivals.decoded import check

F32 = 0
KINDS = {"bf16": 1, "int8": 8, "turbo4": 2}  # F16, llama.cpp's usual one; Q8_0, Q4_0: 32 numbers have a scale
SHARE = 1 << 20  # bytes of a context beside its tensors


class Parameters(ctypes.Structure):
    """struct ggml_init_params."""

    _fields_ = (("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("only_shapes", ctypes.c_bool))


class Ggml:
    """Its functions, by their names without `ggml_`: pointers are returned unless something else is said."""

    def __init__(self) -> None:
        folder = Path(sys.prefix) / "lib"
        names = ("libggml-base.so", "libggml-cpu.so")
        self.libraries = [ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL) for name in names]

    def __call__(self, name: str, *arguments: Any, gives: Any = ctypes.c_void_p) -> Any:
        for library in self.libraries:
            if hasattr(library, f"ggml_{name}"):
                function = getattr(library, f"ggml_{name}")
                function.restype = gives
                return function(*arguments)
        raise AttributeError(name)


def numbers_of(data: Any, prec: str, d: int) -> Any:
    """Those of rows of bytes: halves, or blocks of a scale and 32 numbers."""
    np: Any = importlib.import_module("numpy")
    if prec == "bf16":
        return data.view(np.float16).reshape(-1, d).astype(np.float32)
    blocks = data.reshape(-1, 34 if prec == "int8" else 18)
    codes = blocks[:, 2:].view(np.int8)
    if prec == "turbo4":
        halves = blocks[:, 2:]
        codes = np.concatenate((halves & 15, halves >> 4), 1).astype(np.float32) - 8
    scales = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
    return (codes * scales).reshape(-1, d)


def prepare_ggml(p: dict[str, Any]) -> tuple[str, Call]:
    """ggml_flash_attn_ext over whole caches, rows of a head one after the other, whatever is asked for."""
    np: Any = importlib.import_module("numpy")
    if p["prec"] not in KINDS:
        raise ValueError("fp16, and 8 and 4 bits in blocks of 32")
    ggml = Ggml()
    b, h, h_k, d, ctx, kind = p["b"], p["h"], p["h_k"], p["d"], p["ctx"], KINDS[p["prec"]]
    row = int(ggml("row_size", kind, ctypes.c_int64(d), gives=ctypes.c_size_t))
    size = 2 * b * h_k * ctx * row + 8 * b * h * d + SHARE
    ggml("cpu_init", gives=None)
    context = ctypes.c_void_p(ggml("init", Parameters(size, None, False)))

    def tensor(of: int, *shape: int) -> tuple[ctypes.c_void_p, Any]:
        """A tensor, and its bytes."""
        made = ctypes.c_void_p(ggml("new_tensor_4d", context, of, *map(ctypes.c_int64, shape)))
        count = ggml("nbytes", made, gives=ctypes.c_size_t)
        data = (ctypes.c_uint8 * count).from_address(ggml("get_data", made))
        return made, np.frombuffer(data, np.uint8)

    draw = np.random.default_rng(1)
    q, of_q = tensor(F32, d, 1, h, b)
    of_q.view(np.float32)[...] = draw.standard_normal(b * h * d, np.float32)
    caches = [tensor(kind, d, ctx, h_k, b) for _ in range(2)]
    for _, data in caches:
        numbers = draw.standard_normal(ctx * d, np.float32)
        pointer, to = numbers.ctypes.data_as(ctypes.c_void_p), data.ctypes.data_as(ctypes.c_void_p)
        counts = map(ctypes.c_int64, (0, ctx, d))
        ggml("quantize_chunk", kind, pointer, to, *counts, None, gives=ctypes.c_size_t)
        heads = data.reshape(b * h_k, -1)
        heads[1:] = heads[0]
    factors = map(ctypes.c_float, (d**-0.5, 0, 0))
    out = ctypes.c_void_p(ggml("flash_attn_ext", context, q, *(cache for cache, _ in caches), None, *factors))
    graph = ctypes.c_void_p(ggml("new_graph", context))
    ggml("build_forward_expand", graph, out, gives=None)
    backend = ctypes.c_void_p(ggml("backend_cpu_init"))
    ggml("backend_cpu_set_n_threads", backend, p["threads"], gives=None)

    def call() -> None:
        if ggml("backend_graph_compute", backend, graph, gives=ctypes.c_int) != 0:
            raise ValueError("the graph failed")

    weakref.finalize(call, ggml, "free", context, gives=None)
    weakref.finalize(call, ggml, "backend_free", backend, gives=None)
    call()
    row_of_out = (ctypes.c_float * d).from_address(ggml("get_data", out))
    head = slice(ctx * row)
    k, v = (numbers_of(data[head], p["prec"], d) for _, data in caches)
    check(np.frombuffer(row_of_out, np.float32), of_q.view(np.float32)[:d], k, v)
    return str(ggml("version", gives=ctypes.c_char_p).decode()), call
