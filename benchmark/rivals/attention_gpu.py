# SPDX-License-Identifier: MIT
"""torch's backends of attention on a GPU: each function returns a version and the call, on tensors."""

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


def prepare_backward(backend: str, torch: Any, inputs: list[Any], gradient: Any, *, causal: bool) -> Made:
    """The gradients of Q, K and V, of a result that is there."""
    attention = importlib.import_module("torch.nn.attention")
    q, k, v = (x.detach().requires_grad_() for x in inputs)
    with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
        o = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
        )
    version = prepare(backend, torch, q, k, v, causal=causal)[0]
    return version, lambda: torch.autograd.grad(o, (q, k, v), gradient, retain_graph=True)


BACKWARD = {
    "cudnn": partial(prepare_backward, "CUDNN_ATTENTION"),
    "flash": partial(prepare_backward, "FLASH_ATTENTION"),
}
PREPARE = {
    "cudnn": partial(prepare, "CUDNN_ATTENTION"),
    "flash": partial(prepare, "FLASH_ATTENTION"),
}
