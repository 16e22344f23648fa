# SPDX-License-Identifier: MIT
"""The page of paged_attention: decoding over pages, beside reading memory and other libraries.

Types are those of the cache; queries are bf16. int8 has a scale for each token and head, fp8 one of the
tensor, turbo4 a norm for each token and head. Quantised caches are timed beside the same problem in bf16.

torch gathers pages; vLLM (bf16, fp8) and OpenVINO have pages of rows of a head, OpenVINO of 32 rows; SGLang
finds rows of all heads one by one; ggml has no pages: its caches are whole, and of fp16. The 8 and 4 bits of
OpenVINO and ggml are of formats of their own of about that size, and stand beside int8 and turbo4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from page import Case, Page
from pages._decode import HEADS, Decode, DecodeCase

SCALES = {"bf16": "none", "fp8_e4m3": "tensor", "int8": "token", "turbo4": "none"}
GIB = 2.0**30


class Pages(Decode):
    """A problem of paged_attention."""

    def words(self, kv: str) -> list[str]:
        """For tile_example_paged_attention."""
        return [
            *(f"-b={self.b}", f"-h={self.h}", f"-h_k={self.h_k}", f"-ctx={self.ctx}", f"-d={self.d}"),
            *(f"-block_size={self.page}", f"-kv_layout={self.layout}", f"-kv_scale={SCALES[kv]}"),
            f"-kv_cache_dtype={'auto' if kv == 'bf16' else kv}",
        ]


SUITES: dict[str, tuple[Pages, ...]] = {
    "table": tuple(
        Pages(b, *heads, ctx, page, layout)
        for b, ctx, heads in (
            (1, 8192, HEADS[1]),
            (1, 65536, HEADS[1]),
            *((8, 8192, heads) for heads in HEADS),
            (64, 1024, HEADS[1]),
        )
        for page, layout in ((16, "nhd"), (128, "hnd"))
    ),
    "all": tuple(
        shape
        for b, ctx, heads, page, layout in product(
            (1, 8, 64), (1024, 8192, 65536), HEADS, (16, 128), ("nhd", "hnd")
        )
        if (shape := Pages(b, *heads, ctx, page, layout)).kv_bytes("bf16") <= 8 * GIB
    ),
}


class PagedAttention(Page):
    """paged_attention."""

    name = "paged_attention"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = tuple(SCALES)
    programs = ("tile_example_paged_attention",)
    rivals = {"torch": "torch", "vllm": "vllm", "sglang": "vllm", "openvino": "openvino", "ggml": "ggml"}
    rival_module = "paged_attention"
    pictured = ("table",)

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Each problem in each type."""
        return [DecodeCase(self.programs[0], shape, kv) for shape in SUITES[suite] for kv in precs]


PAGE = PagedAttention()
