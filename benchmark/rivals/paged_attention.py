# SPDX-License-Identifier: MIT
"""How torch decodes over caches: it attends to whole ones in place.

Pages, for which it has no operator on CPUs, it gathers.
"""

from __future__ import annotations

import importlib
from typing import Any

from rivals.attention import Call


def prepare_torch(p: dict[str, Any]) -> tuple[str, Call]:
    """Indexing, a conversion where the cache is quantised, and scaled_dot_product_attention."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    attention = torch.nn.functional.scaled_dot_product_attention
    b, h_k, d, page = p["b"], p["h_k"], p["d"], p["page"] or p["ctx"]
    each = p["ctx"] // page
    q = torch.rand(b, p["h"], 1, d, dtype=torch.float16 if p["prec"] == "fp16" else torch.bfloat16)
    table = torch.randperm(b * each).view(b, each)
    by_rows = p["layout"] == "nhd"
    shape = (b * each, page, h_k, d) if by_rows else (b * each, h_k, page, d)
    dtype = {"fp8_e4m3": torch.float8_e4m3fn, "int8": torch.int8}.get(p["prec"], q.dtype)
    caches = [torch.randint(-1, 2, shape).to(torch.bfloat16).to(dtype) for _ in range(2)]
    scale = torch.rand(*shape[:3], 1, dtype=torch.bfloat16) if p["prec"] == "int8" else torch.tensor(0.5)

    def gathered(cache: Any) -> Any:
        if not p["page"]:
            return cache.transpose(1, 2) if by_rows else cache
        pages = cache.view(torch.uint8)[table].view(dtype) if dtype == torch.float8_e4m3fn else cache[table]
        if dtype == torch.int8:
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


PREPARE = {"torch": prepare_torch}
