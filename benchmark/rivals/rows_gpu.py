# SPDX-License-Identifier: MIT
"""torch's operations on rows on a GPU: those of rivals/rows.py, on tensors that are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rivals.rows import Problem, formula, without_gradients

Made = tuple[str, Callable[[], Any]]


def prepare_torch(torch: Any, p: Problem, tensors: dict[str, Any]) -> Made:
    """Operation by operation."""
    return torch.__version__, without_gradients(torch, formula(torch, p, tensors))


def prepare_compiled(torch: Any, p: Problem, tensors: dict[str, Any]) -> Made:
    """What torch.compile makes of the same, for these sizes."""
    torch.compiler.reset()
    call = torch.compile(formula(torch, p, tensors), dynamic=False, fullgraph=True)
    return torch.__version__, without_gradients(torch, call)


PREPARE = {"torch": prepare_torch, "torch.compile": prepare_compiled}
