# SPDX-License-Identifier: MIT
"""How torch does a step of training of attention. The other rivals of attention.py have no backward pass."""

from __future__ import annotations

import importlib
from typing import Any

from rivals.attention import Call, sdpa_inputs


def prepare_torch(p: dict[str, Any]) -> tuple[str, Call]:
    """torch.nn.functional.scaled_dot_product_attention, and the gradients of Q, K and V."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    tensors = [tensor.requires_grad_() for tensor in sdpa_inputs(torch, p)]
    attention = torch.nn.functional.scaled_dot_product_attention
    gqa, gradient = p["h"] != p["h_k"], torch.rand_like(tensors[0])

    def call() -> None:
        o = attention(*tensors, is_causal=p["causal"], enable_gqa=gqa)
        torch.autograd.grad(o, tensors, gradient)

    return torch.__version__, call


PREPARE = {"torch": prepare_torch}
