# SPDX-License-Identifier: MIT
"""What tiles of fmha_fwd on GPUs of all kinds have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol


class StoredAs(Protocol):
    """A type of q, k and v."""

    @property
    def dtypes(self) -> Mapping[str, str]:
        """For each type of o, the usual one first, what CK calls the data type."""


class GpuTile(ABC):
    """The part of a row that its data type and its short name are made of."""

    computes: ClassVar[Mapping[str, StoredAs]]  # all that the kind has
    compute: str
    o: str
    bm0: int
    bn0: int

    @property
    @abstractmethod
    def dq(self) -> int:
        """The head dim of q and k in products."""

    @property
    @abstractmethod
    def waves(self) -> int:
        """Waves of a workgroup that compute."""

    @property
    def bk0(self) -> int:
        """Columns of q and k that are in LDS at once: all."""
        return self.dq

    @property
    def block(self) -> str:
        """Block and waves in the short name."""
        return f"b{self.bm0}x{self.bn0}x{self.bk0}_w{self.waves}"

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Data types served."""
        return (self.computes[self.compute].dtypes[self.o_type],)

    @property
    def o_type(self) -> str:
        """The type that o is stored in."""
        return self.o or next(iter(self.computes[self.compute].dtypes))
