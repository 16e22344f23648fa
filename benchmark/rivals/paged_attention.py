# SPDX-License-Identifier: MIT
"""How others decode over caches. torch attends to whole ones in place.

Pages, for which it has no operator on CPUs, it gathers.
"""

from __future__ import annotations

import importlib
from typing import Any

from rivals.attention import Call
from rivals.decode_ggml import prepare_ggml
from rivals.decode_openvino import prepare_openvino
from rivals.decode_vllm import prepare_sglang, prepare_vllm


def prepare_torch(p: dict[str, Any]) -> tuple[str, Call]:
    """Indexing, a conversion where the cache is quantised, and scaled_dot_product_attention."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    attention = torch.nn.functional.scaled_dot_product_attention
    b, h_k, d, page, kv = p["b"], p["h_k"], p["d"], p["page"] or p["ctx"], p["prec"]
    each = p["ctx"] // page
    q = torch.rand(b, p["h"], 1, d, dtype=torch.float16 if kv == "fp16" else torch.bfloat16)
    table = torch.randperm(b * each).view(b, each)
    by_rows = p["layout"] == "nhd"
    rows = (b * each, page, h_k) if by_rows else (b * each, h_k, page)
    dtype = {"fp8_e4m3": torch.float8_e4m3fn, "int8": torch.int8, "turbo4": torch.uint8}.get(kv, q.dtype)
    columns = d // 2 if kv == "turbo4" else d
    caches = [torch.randint(-1, 2, (*rows, columns)).to(torch.bfloat16).to(dtype) for _ in range(2)]
    # int8's of each row, turbo4's norms; fp8 has one of the tensor
    scale = torch.rand(*rows, 1, dtype=torch.bfloat16)
    centroids = torch.rand(16, dtype=torch.bfloat16)

    def gathered(cache: Any) -> Any:
        if not p["page"]:
            return cache.transpose(1, 2) if by_rows else cache
        pages = cache.view(torch.uint8)[table].view(dtype) if kv == "fp8_e4m3" else cache[table]
        if kv == "turbo4":
            pages = centroids[torch.stack((pages & 15, pages >> 4), -1).flatten(-2).int()] * scale[table]
        elif kv == "int8":
            pages = pages.to(torch.bfloat16) * scale[table]
        elif dtype != q.dtype:
            pages = pages.to(torch.bfloat16)
        if by_rows:
            return pages.view(b, each * page, h_k, d).transpose(1, 2)
        return pages.transpose(1, 2).reshape(b, h_k, each * page, d)

    def call() -> None:
        with torch.no_grad():
            attention(q, *map(gathered, caches), enable_gqa=p["h"] != h_k)

    return torch.__version__, call


PREPARE = {
    "torch": prepare_torch,
    "vllm": prepare_vllm,
    "sglang": prepare_sglang,
    "openvino": prepare_openvino,
    "ggml": prepare_ggml,
}
