# SPDX-License-Identifier: MIT
"""Decoding by OpenVINO's operator for paged attention, of a model that has no other."""

from __future__ import annotations

import importlib
from typing import Any

from rivals.attention import Call
from rivals.decoded import check

PAGE = 32  # rows, always
KINDS = {"bf16": "bf16", "int8": "u8", "turbo4": "u4"}  # 8 and 4 bits between numbers of its own


def compiled(p: dict[str, Any]) -> Any:
    """The model. Operands that are of no use are empty, or 0."""
    np: Any = importlib.import_module("numpy")
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset13")
    extension: Any = importlib.import_module("openvino.op")
    h, h_k, d = p["h"], p["h_k"], p["d"]
    kind, whole = ov.Type.bf16, ov.Type.i32
    tensors = {
        **{"q": ([-1, h * d], kind), "k": ([-1, h_k * d], kind), "v": ([-1, h_k * d], kind)},
        **{f"{x}_cache.0": ([-1, h_k, -1, d], ov.Type.dynamic) for x in ("key", "value")},
        **{x: ([-1], whole) for x in ("past_lens", "subsequence_begins", "block_indices")},
        **{"block_indices_begins": ([-1], whole), "max_context_len": ([], whole)},
    }
    named = {name: ops.parameter(shape, of, name=name) for name, (shape, of) in tensors.items()}
    for name, parameter in named.items():
        parameter.output(0).set_names({name})
    empty, none, bits = (ops.constant(np.zeros(0, of)) for of in (np.int32, np.float32, np.uint8))
    deltas, table = (ops.constant(np.zeros((0, 0), of)) for of in (np.int32, np.float32))
    scale = ops.constant(np.array(d**-0.5, np.float32))
    zero, block, stride = (ops.constant(np.array(x, np.int32)) for x in (0, 64, 8))
    operands = [
        *list(named.values())[:-1],
        *(scale, zero, none, named["max_context_len"], empty),  # no window, slopes nor scores
        *(empty, deltas, table, none, block, stride, none),  # no rotation, sparsity nor sinks
        *(zero, empty, empty, empty, empty, bits, empty),  # no eviction, types of tokens nor bias
    ]
    node = extension._PagedAttentionExtension([operand.output(0) for operand in operands])
    for name, value in {"num_k_heads": h_k, "num_v_heads": h_k, "k_head_size": d, "v_head_size": d}.items():
        node.get_rt_info()[name] = value
    hints = {
        **{"INFERENCE_NUM_THREADS": p["threads"], "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": kind},
        "KV_CACHE_PRECISION": getattr(ov.Type, KINDS[p["prec"]]),
    }
    return ov.Core().compile_model(ov.Model([node.output(0)], list(named.values())), "CPU", hints)


def floats(data: Any) -> Any:
    """bf16 as floats."""
    np: Any = importlib.import_module("numpy")
    return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def numbers_of(data: Any, bits: int) -> Any:
    """Those of rows of bytes: whole, or two halves, the upper one first."""
    np: Any = importlib.import_module("numpy")
    return data if bits == 8 else np.stack((data >> 4, data & 15), -1).reshape(*data.shape[:-1], -1)


class Cache:
    """Keys or values in pages: codes, and what they mean, for each column of a page's keys, or each value."""

    def __init__(self, model: Any, name: str, pages: int, prec: str) -> None:
        np: Any = importlib.import_module("numpy")
        ov: Any = importlib.import_module("openvino")
        port = next(x for x in model.inputs if x.get_any_name() == name)
        shape = [pages, *(dimension.get_length() for dimension in list(port.get_partial_shape())[1:])]
        self.tensor, self.prec, self.of_keys = (
            ov.Tensor(port.get_element_type(), ov.Shape(shape)),
            prec,
            "key" in name,
        )
        self.bits = {"bf16": 16, "int8": 8, "turbo4": 4}[prec]
        self.bytes = self.tensor.data.view(np.uint8).reshape(pages, shape[1], -1)
        some = np.random.default_rng(1).standard_normal(1 << 18).astype(np.float32)
        drawn = np.ascontiguousarray(some.view(np.uint16)[1::2]).view(np.uint8)
        drawn = drawn if prec == "bf16" else some.view(np.uint8)[::4]
        for page in self.bytes:
            page[...] = np.resize(np.roll(drawn, 2 * np.random.randint(len(drawn) // 2)), page.shape)
        if prec == "bf16":
            return
        unit, zero = (1 / 64, 127.5) if prec == "int8" else (0.4, 7.5)
        if self.of_keys:
            columns = self.bytes[:, :, : 2 * 4 * shape[-1]].view(np.float32)
            columns[..., : shape[-1]], columns[..., shape[-1] :] = unit, zero
        else:
            rows = self.bytes.reshape(pages, shape[1], PAGE, -1)
            rows[..., :8].view(np.float32)[...] = (unit, zero)

    def rows(self, table: Any, d: int) -> Any:
        """Those of the first head in these pages."""
        np: Any = importlib.import_module("numpy")
        data = self.bytes[table, 0]
        if self.prec == "bf16":
            return floats(data).reshape(-1, d)
        if self.of_keys:
            meaning = data[:, : 8 * d].view(np.float32).reshape(-1, 2, 1, d)
            codes = numbers_of(data[:, 8 * d :], self.bits).reshape(-1, PAGE, d)
        else:
            data = data.reshape(len(table), PAGE, -1)
            meaning = data[..., :8].copy().view(np.float32).reshape(-1, PAGE, 2).transpose(0, 2, 1)[..., None]
            codes = numbers_of(data[..., 8:], self.bits)
        return ((codes - meaning[:, 1]) * meaning[:, 0]).reshape(-1, d)


def prepare_openvino(p: dict[str, Any]) -> tuple[str, Call]:
    """PagedAttentionExtension over pages of 32 rows of a head, whatever is asked for.

    It appends a token to each sequence, and attends to it, too.
    """
    np: Any = importlib.import_module("numpy")
    ov: Any = importlib.import_module("openvino")
    if p["prec"] not in KINDS:
        raise ValueError("bf16, and 8 and 4 bits between numbers of its own")
    b, h_k, d, ctx = p["b"], p["h_k"], p["d"], p["ctx"]
    model = compiled(p)
    request = model.create_infer_request()
    each = ctx // PAGE
    table = np.random.default_rng(1).permutation(b * each).astype(np.int32)
    caches = [Cache(model, f"{x}_cache.0", b * each, p["prec"]) for x in ("key", "value")]
    q, k, v = (
        np.random.default_rng(2).standard_normal((b, heads * d), np.float32) for heads in (p["h"], h_k, h_k)
    )
    whole = {
        "past_lens": np.full(b, ctx - 1, np.int32),
        "subsequence_begins": np.arange(b + 1, dtype=np.int32),
        "block_indices": table,
        "block_indices_begins": np.arange(b + 1, dtype=np.int32) * each,
        "max_context_len": np.array(ctx, np.int32),
    }
    given = {name: ov.Tensor(array) for name, array in whole.items()}
    given |= {f"{x}_cache.0": cache.tensor for x, cache in zip(("key", "value"), caches, strict=True)}
    for name, array in {"q": q, "k": k, "v": v}.items():
        given[name] = ov.Tensor(ov.Type.bf16, ov.Shape(array.shape))
        array.view(np.uint32)[...] &= 0xFFFF0000
        given[name].data[...] = (array.view(np.uint32) >> 16).astype(np.uint16).view(given[name].data.dtype)
    for name, tensor in given.items():
        request.set_tensor(name, tensor)
    request.infer()
    out = floats(request.get_output_tensor(0).data[0, :d])
    check(out, q[0, :d], *(cache.rows(table[:each], d) for cache in caches))
    return ov.__version__, request.infer
