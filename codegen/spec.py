# SPDX-License-Identifier: MIT
"""The records that everything is generated from. Names are made here and nowhere else."""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from codegen import Refused
from codegen.schema import Range, Size, Trait
from codegen.space import Box, Region, Space, bits, held_values, region_meet, region_minus, region_size
from codegen.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parent.parent
NAME_LIMIT = 96
# Of emitted sources, which are C11 and C++17: builds choose a compiler's language by it.
SUFFIXES = (".c", ".cpp", ".cu", ".hip")
Point = tuple[str, int]  # of launches that figures are made of: how units are filled, and a length


def symbol_of(name: str) -> str:
    """The C symbol of the kernel of a short name."""
    return f"tessera_k_{name.replace('__', '_')}"


@dataclass(frozen=True)
class Rule:
    """Combinations that no instance serves, and why."""

    box: Box
    reason: str


class Tile(Protocol):
    """What a row of instances/<family>.toml says; each operation has a record of this shape for a kind."""

    name_tokens: ClassVar[dict[str, str]]  # field -> what stands before its value in the short name
    pipeline: str
    epilogue: str
    compute: str
    why: str
    serves: str

    @property
    def dtypes(self) -> tuple[str, ...]: ...  # data types served

    @property
    def held(self) -> str: ...  # clauses, as for --where, on what the kernel is compiled for

    @property
    def block(self) -> str: ...  # block and warps in the short name: "b192x128x16_w1"

    def ck_tile(self, target: Any) -> dict[str, int]: ...  # CK's fields; 0: that of the call's head dims

    def cycles(self, target: Any) -> float: ...  # estimated for a tile, beside its multiply-adds

    def needs(self, target: Any) -> str: ...  # what the machine and a call must bring, in words

    def numerics(self, target: Any) -> str: ...  # how numbers are rounded, functions approximated

    def complaint(self, target: Any) -> str: ...  # why the tile does not fit the target, or ""


@dataclass(frozen=True, eq=False)
class Instance:
    """operation x traits x target x tile x pipeline x epilogue: one file, one row of the table, one name."""

    op: Operation
    target: Target
    tile: Any  # a Tile
    default: dict[str, object]  # the pipeline's default row, which names leave unsaid
    region: Region  # the trait combinations served

    @cached_property
    def name(self) -> str:
        """The short name: left of `__` what is computed, right of it how."""
        unsaid = self.op.compiled_tokens(self.op.space.where(str(self.default.get("serves", ""))))
        what = [self.op.name, *(t for t in self.op.compiled_tokens(self.region) if t not in unsaid)]
        how = [self.target.tag, self.tile.block, self.tile.pipeline]
        for field, token in self.tile.name_tokens.items():
            value = getattr(self.tile, field)
            if value != self.default.get(field, getattr(type(self.tile), field, None)):
                how.append(f"{token}{value}")
        return f"{'_'.join(what)}__{'_'.join(how)}"

    @cached_property
    def symbol(self) -> str:
        """The C symbol of the kernel."""
        return symbol_of(self.name)

    def entry(self, entry: str) -> str:
        """The C symbol of one of the operation's entries."""
        return self.symbol if entry == "run" else f"{self.symbol}_{entry}"

    @property
    def emitted(self) -> bool:
        """Whether it has code of its own: instances of another operation may do the work."""
        return getattr(self.tile, "emitted", True)

    @property
    def file(self) -> str:
        """The emitted file."""
        return f"{self.name}{self.op.suffix}"

    @property
    def cflags(self) -> tuple[str, ...]:
        """What the compiler is told beside the target's flags."""
        flags: tuple[str, ...] = getattr(self.tile, "cflags", ())
        return flags

    @property
    def template(self) -> str:
        """The template, relative to templates/."""
        return f"{self.op.family}/{self.tile.pipeline}.{self.target.kind}.c.j2"

    @property
    def compute(self) -> str:
        """The type that products are computed in."""
        return str(self.tile.compute)

    @property
    def macs_per_cycle(self) -> float:
        """Estimated multiply-adds a cycle of one compute unit in the main loop.

        The peak where rows say nothing: memory is the limit, and they are ranked by what else they take.
        """
        return self.target.macs[self.compute] * float(getattr(self.tile, "efficiency", 1))

    @property
    def macs_per_cycle_fp16(self) -> float:
        """The same on CPUs that run the target x86-64-v4-fp16, too; 0: no other."""
        efficiency = float(getattr(self.tile, "efficiency_fp16", 0))
        return TARGETS["x86-64-v4-fp16"].macs[self.compute] * efficiency if efficiency else 0.0

    @property
    def modelled(self) -> tuple[str, ...]:
        """The fields of the tile that are the simulator's clock's to say."""
        fields: tuple[str, ...] = getattr(self.tile, "modelled", ())
        return fields

    @property
    def tile_cycles(self) -> float:
        """Estimated cycles that one tile takes beside its multiply-adds."""
        return float(self.tile.cycles(self.target))

    @cached_property
    def combinations(self) -> int:
        """How many names of CK this instance covers."""
        return region_size(self.region)

    @cached_property
    def record(self) -> str:
        """All that this instance is made from, as text: what the manifest's hash is taken of."""
        return f"{self.name} {self.target!r} {self.tile!r} {self.region}"

    def ck_names(self, region: Region) -> Iterator[str]:
        """CK's names of the combinations of a region, by box, the last axis fastest."""
        head, tail = self.op.space.axes[: self.op.head_axes], self.op.space.axes[self.op.head_axes :]
        for box in region:
            sets = [[axis.tokens[v] for v in bits(mask)] for axis, mask in zip(self.op.space.axes, box)]
            for first in bits(box[0]):
                sets[0] = [head[0].tokens[first]]
                middle = "".join(self.ck_middle(first))
                for left in itertools.product(*sets[: len(head)]):
                    for right in itertools.product(*sets[len(head) :][: len(tail)]):
                        yield "_".join(filter(None, (self.op.name, *left, middle, *right)))

    def ck_middle(self, first: int) -> tuple[str, ...]:
        """The tile's part of CK's names for value number `first` of the first axis, in pieces that recur."""
        return self.op.ck_middle(self, first)


def _tile_field(name: str, instance: Instance) -> object:
    value = getattr(instance.tile, name, None)
    return None if value == "" else value


def cell(value: object) -> str:
    """A value where all is text: in a table, and in a clause of --where."""
    return "-" if value is None else str(value)


class Operation(ABC):
    """What a caller asks for. One module of codegen/ops each, which names its object OPERATION."""

    api: str  # word for --api
    name: str  # word in names of files and symbols
    family: str  # word for what alike operations share: templates, types of entries
    kernels: tuple[str, ...]  # sub-kernels, in the order of the parts of a filter
    parts: tuple[Operation, ...] = ()  # operations that serve steps of its calls, with tables of their own
    part_of: str = ""  # the api that it is a part of
    companions: tuple[Operation, ...] = ()  # the same, but not to be asked for: all there is goes along
    entries: ClassVar[dict[str, str]]  # field of the table's row -> entry of the kernel
    space: Space  # its first axis decides the tile's part of CK's names
    head_axes: int  # axes that stand before the tile in CK's names
    traits: tuple[Trait, ...]  # the first one splits the index of the C table
    sizes: tuple[Size, ...] = ()
    buckets: tuple[int, ...] = (2**32 - 1,)  # of the greatest size, which split the index further
    rules: tuple[Rule, ...]
    tiles: ClassVar[dict[str, type[Any]]]  # for each kind of target a dataclass that is a Tile
    optdim_field: str | None  # what CK's --optdim restricts
    suffix: str = SUFFIXES[0]  # of emitted sources
    program: ClassVar[str] = ""  # of example/ that runs its problems; "": none whose times are modelled
    checks: ClassVar[tuple[tuple[str, ...], ...]] = ()  # its arguments for problems that check results

    @property
    def asked_as(self) -> str:
        """The word for --api, and in receipts, by which it is asked for."""
        return self.part_of or self.api

    def owns(self, name: str) -> bool:
        """Whether a short name is that of an instance of its own, not of a part."""
        return name.startswith(f"{self.name}_") and not any(part.owns(name) for part in self.parts)

    @cached_property
    def everything(self) -> Region:
        """All combinations that the rules leave."""
        return region_minus((self.space.full,), (rule.box for rule in self.rules))

    def kernel_of(self, instance: Instance) -> str:
        """The sub-kernel that an instance is one of."""
        return self.kernels[0]

    @abstractmethod
    def served(self, tile: Any) -> Region:
        """What the kernel of a tile computes, of `everything`."""

    @abstractmethod
    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one's estimated cost is at most the other's for every size."""

    def rounded(self, tile: Any, target: Any, rounding: str) -> Any:
        """The tile with what --rounding says, if that changes it."""
        return tile

    def program_of(self, instance: Instance) -> str:
        """The program that runs an instance's problems."""
        return self.program

    def problem(self, instance: Instance) -> tuple[str, ...]:
        """The arguments of that program that an instance is compiled for."""
        raise Refused(f"problems of {self.name} are not modelled yet")

    def figure_problems(self, instance: Instance) -> dict[Point, tuple[str, ...]]:
        """The arguments of launches that the clock makes its figures of; none: its row has all there are."""
        return {}

    def figures_of(self, instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
        """The fields of the tile that are modelled, from the cycles of those launches."""
        raise NotImplementedError

    def variants(self, instance: Instance) -> Iterator[Any]:
        """Tiles that serve what an instance does, in all shapes, whether or not they fit."""
        raise Refused(f"{self.name} has no variants to try on {instance.target.name}")

    def cost_words(self, instance: Instance) -> str:
        """What is known of an instance's speed."""
        rate = "memory's rate"
        if hasattr(instance.tile, "efficiency"):
            share, peak = instance.tile.efficiency, instance.target.macs[instance.compute]
            macs = f"{instance.macs_per_cycle:.1f} multiply-adds"
            rate = f"{macs} a cycle ({share:.0%} of the peak of {peak:g})"
        return ", ".join(filter(None, (rate, self.block_words(instance))))

    def block_words(self, instance: Instance) -> str:
        """What a block costs beside its multiply-adds or memory; "": nothing."""
        return f"{instance.tile_cycles:.0f} cycles a block" if instance.tile_cycles else ""

    @abstractmethod
    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]: ...

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """What a box serves of the sizes: parts of it, and the range of each size there."""
        yield box, ()

    def row_fields(self, instance: Instance) -> dict[str, str]:
        """The fields of a row in C that are the operation's own, beside the tile."""
        if instance.target.kind != "cpu":
            return {}
        return {field: instance.entry(entry) for field, entry in self.entries.items()}

    def describe(self) -> str:
        """The operation's own part in the dispatch table, as text: what a hash is taken of."""
        return (
            f"{self.name} {self.suffix} {[(axis.name, axis.values) for axis in self.space.axes]} {self.rules}"
        )

    @property
    def dispatch_files(self) -> dict[str, str]:
        """The emitted files beside the instances, with their templates: C source, header, list of sources."""
        return {
            f"{self.name}_table{self.suffix}": "dispatch/table.c.j2",
            f"tessera_{self.name}_table.h": "dispatch/table.h.j2",
            f"{self.name}_sources.txt": "dispatch/sources.txt.j2",
        }

    def traits_words(self, region: Region) -> str:
        """What a region holds, axis by axis where that is not all."""
        held = []
        for i, axis in enumerate(self.space.axes):
            mask = held_values(region, i)
            if mask != self.space.full[i]:
                held.append(f"{axis.name}={'|'.join(axis.values[v] for v in bits(mask))}")
        return ",".join(held) or "all"

    @cached_property
    def instance_fields(self) -> dict[str, Callable[[Instance], object]]:
        """What --where may name beside traits, and --table prints."""
        fields: dict[str, Callable[[Instance], object]] = {"target": lambda instance: instance.target.name}
        for tile in self.tiles.values():
            for field in dataclasses.fields(tile):
                if field.name not in ("why", "serves"):
                    fields[field.name] = partial(_tile_field, field.name)
        return fields

    @property
    def fields(self) -> list[str]:
        """All that --where may name."""
        return [*self.space.fields, *self.instance_fields]

    def compiled_tokens(self, region: Region) -> tuple[str, ...]:
        """Short tokens of axes that a region holds to one value, unless the axes before imply it."""
        if region not in self._compiled:
            tokens = []
            rest = self.everything
            for i, axis in enumerate(self.space.axes):
                mask = held_values(region, i)
                if mask.bit_count() == 1 and held_values(rest, i) != mask:
                    tokens.append((axis.short or axis.tokens)[mask.bit_length() - 1])
                    rest = region_meet(rest, (self.space.held(i, mask),))
            self._compiled[region] = tuple(tokens)
        return self._compiled[region]

    @cached_property
    def _compiled(self) -> dict[Region, tuple[str, ...]]:
        return {}
