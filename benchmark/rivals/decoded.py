# SPDX-License-Identifier: MIT
"""What a rival has decoded, compared with fp64: libraries are timed at what they do right."""

from __future__ import annotations

import importlib
from typing import Any

WRONG = 0.03  # of the greatest result, or of what so many values average to: what types leave is below


def check(out: Any, q: Any, k: Any, v: Any) -> None:
    """Refuses a row of results that is not that of a query over keys and values, all arrays of NumPy."""
    np: Any = importlib.import_module("numpy")
    scores = k.astype(np.float64) @ q.astype(np.float64) * len(q) ** -0.5
    p = np.exp(scores - scores.max())
    want = p @ v.astype(np.float64) / p.sum()
    error = np.abs(out - want).max()
    if not error <= WRONG * max(np.abs(want).max(), np.abs(v).max() * len(v) ** -0.5):
        raise ValueError(f"results are wrong by {error:.3g} of {np.abs(want).max():.3g}")
