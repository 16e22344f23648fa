# SPDX-License-Identifier: MIT
"""torch's backends of attention on a GPU: each function returns a version and the call, on Q, K and V."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

Made = tuple[str, Callable[[], Any]]


def prepare(backend: str, torch: Any, q: Any, k: Any, v: Any, *, causal: bool) -> Made:
    """torch.nn.functional.scaled_dot_product_attention by one of its backends, or an error."""
    attention = importlib.import_module("torch.nn.attention")
    chosen = getattr(attention.SDPBackend, backend)
    grouped = q.shape[1] != k.shape[1]

    def call() -> Any:
        with attention.sdpa_kernel(chosen), torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=grouped
            )

    version = torch.__version__
    if backend == "CUDNN_ATTENTION":
        version += f", cuDNN {torch.backends.cudnn.version()}"
    return version, call


PREPARE = {
    "cudnn": partial(prepare, "CUDNN_ATTENTION"),
    "flash": partial(prepare, "FLASH_ATTENTION"),
}
