# SPDX-License-Identifier: MIT
"""Which instances a call asks for: receipt, --optdim, --where and --filter, over sets, never over lists.

An instance is selected when a combination that it serves passes all of them; what is selected is never
narrowed by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen import Refused, one_of
from codegen.glob import Glob
from codegen.receipts import Receipt, cover
from codegen.space import Box, Clause, Region, bits, parse_clauses, region_meet, region_size
from codegen.spec import Instance, Operation


class NameFilter:
    """A pattern that is held against the short name and against CK's names."""

    def __init__(self, op: Operation, pattern: str) -> None:
        self.op = op
        self.glob = Glob(pattern)
        self._heads: dict[Region, list[tuple[int, int, Box, int]]] = {}
        self._tails: dict[tuple[int, Box], int] = {}

    def count(self, instance: Instance, region: Region) -> int:
        """How many combinations of a region the pattern takes."""
        if self.glob.matches(instance.name):
            return region_size(region)
        if region not in self._heads:
            self._heads[region] = list(self._read_heads(region))
        middles: dict[tuple[int, int], int] = {}
        total = 0
        for first, state, tail, paths in self._heads[region]:
            reached = middles.get((first, state))
            if reached is None:
                reached = state
                for text in instance.ck_middle(first):
                    reached = self.glob.run(reached, text)
                middles[first, state] = reached
            if reached:
                total += paths * self._count_tail(reached, tail)
        return total

    def takes(self, name: str) -> bool:
        """Whether the pattern takes one name."""
        return self.glob.matches(name)

    def _read_heads(self, region: Region) -> Iterator[tuple[int, int, Box, int]]:
        """States after the axes before the tile: (first axis's value, state, box of the tail, paths)."""
        start = self.glob.run(self.glob.start, f"{self.op.name}_")
        axes = self.op.space.axes
        for box in region:
            for first in bits(box[0]):
                states = {self.glob.run(start, f"{axes[0].tokens[first]}_"): 1}
                for axis, mask in zip(axes[1 : self.op.head_axes], box[1:]):
                    reached: dict[int, int] = {}
                    for state, paths in states.items():
                        for value in bits(mask):
                            after = self.glob.run(state, f"{axis.tokens[value]}_")
                            reached[after] = reached.get(after, 0) + paths
                    states = reached
                for state, paths in states.items():
                    if state:
                        yield first, state, box[self.op.head_axes :], paths

    def _count_tail(self, state: int, tail: Box) -> int:
        """How many endings the pattern takes after the tile."""
        found = self._tails.get((state, tail))
        if found is None:
            if not tail:
                found = int(self.glob.accepts(state))
            else:
                found = 0
                axis = self.op.space.axes[-len(tail)]
                for value in bits(tail[0]):
                    after = self.glob.run(state, f"_{axis.tokens[value]}")
                    if after:
                        found += self._count_tail(after, tail[1:])
            self._tails[state, tail] = found
        return found


def split_filter(text: str, ops: list[Operation]) -> list[str | None]:
    """The pattern of each api; None where nothing is wanted: " ", or " @ " as AITER spells it.

    Filters are parted by commas, one for each api in order, and within it by @ for each sub-kernel; what is
    missing or empty is *.
    """
    parts = text.split(",")
    if len(parts) > len(ops):
        raise Refused(f"filter '{text}' has {len(parts)} parts for {len(ops)} apis; give one for each")
    parts += [""] * (len(ops) - len(parts))
    patterns: list[str | None] = []
    for op, part in zip(ops, parts):
        kernels = part.split("@")
        if len(kernels) > len(op.kernels) and part.strip(" @"):
            raise Refused(
                f"filter '{part}' has {len(kernels)} parts between @ for the {len(op.kernels)} "
                f"of api '{op.api}': {'@'.join(op.kernels)}"
            )
        nothing = " " in part and not part.strip(" @")
        patterns.append(None if nothing else kernels[0] or "*")
    return patterns


@dataclass
class Match:
    """An instance and what of it was asked for."""

    instance: Instance
    region: Region  # the combinations that receipt, --optdim and --where leave
    matched: int  # how many of them the filter takes as well


@dataclass
class Selection:
    """The instances of one api that a call asks for."""

    op: Operation
    matches: list[Match]
    refused: list[tuple[Instance, str]]  # the others, with the condition that kept each out
    name_filter: NameFilter | None
    available: int = 0
    about: str = ""

    @property
    def instances(self) -> list[Instance]:
        """The instances alone."""
        return [match.instance for match in self.matches]

    def summary(self) -> str:
        """What was selected, in one line."""
        served = sum(match.instance.combinations for match in self.matches)
        count = f"{len(self.matches)} of {self.available} instances"
        text = f"{self.op.api}: {self.about}: {count}, {served} names of CK"
        matched = sum(match.matched for match in self.matches)
        return text if matched == served else f"{text}, {matched} of them asked for"

    def ck_names(self) -> Iterator[str]:
        """CK's names that were asked for, one by one."""
        for match in self.matches:
            everything = self.name_filter is None or self.name_filter.takes(match.instance.name)
            for name in match.instance.ck_names(match.region):
                if everything or (self.name_filter and self.name_filter.takes(name)):
                    yield name


@dataclass
class Request:
    """What was asked for, of any api."""

    receipt: Receipt
    optdim: str = "-1"
    where: str = ""


def select(op: Operation, instances: list[Instance], request: Request, pattern: str | None) -> Selection:
    """The instances that a request asks for. One that leaves none is refused, unless it says so."""
    selection = Selection(op, [], [], None, len(instances), f"receipt {request.receipt}")
    if pattern is None or request.receipt.selects_none(op):
        who = "the filter" if pattern is None else selection.about
        selection.about = f"{who} asks for none"
        selection.refused = [(instance, f"{who}, which asks for none") for instance in instances]
        return selection
    selection.matches = [Match(instance, instance.region, instance.combinations) for instance in instances]
    label = f"receipt {request.receipt}"
    if request.receipt.cover:
        chosen = set(map(id, cover(instances)))
        selection.refused = [(instance, label) for instance in instances if id(instance) not in chosen]
        selection.matches = [match for match in selection.matches if id(match.instance) in chosen]
    else:
        _narrow(selection, label, request.receipt.region(op))
    for label, region in _optdim(op, request.optdim):
        _narrow(selection, label, region)
    for clause in parse_clauses(request.where):
        if clause.field in op.space.fields:
            _narrow(selection, f"clause '{clause.text}'", (op.space.clause(clause),))
        else:
            _keep(selection, clause)
    if pattern != "*":
        _filter(selection, pattern)
    return selection


def _narrow(selection: Selection, label: str, region: Region) -> None:
    """Keeps the instances that serve something of a region."""
    met: dict[Region, Region] = {}
    kept = []
    for match in selection.matches:
        if match.region not in met:
            met[match.region] = region_meet(match.region, region)
        if met[match.region]:
            kept.append(Match(match.instance, met[match.region], region_size(met[match.region])))
        else:
            selection.refused.append((match.instance, label))
    _replace(selection, kept, f"{label} leaves no instance")


def _optdim(op: Operation, text: str) -> Iterator[tuple[str, Region]]:
    """CK's --optdim: a list of hdim_q; -1 is all."""
    if text != "-1":
        if op.optdim_field is None:
            raise Refused(f"--optdim {text}: api '{op.api}' has no head dims")
        words = tuple(word.strip() for word in text.split(","))
        yield f"--optdim {text}", (op.space.clause(Clause(text, op.optdim_field, False, words)),)


def _keep(selection: Selection, clause: Clause) -> None:
    """Keeps the instances whose own field a clause names."""
    fields = selection.op.instance_fields
    if clause.field not in fields:
        raise one_of("field", clause.field, [*selection.op.space.fields, *fields])
    kept = []
    for match in selection.matches:
        if (fields[clause.field](match.instance) in clause.words) != clause.negated:
            kept.append(match)
        else:
            selection.refused.append((match.instance, f"clause '{clause.text}'"))
    values = dict.fromkeys(fields[clause.field](match.instance) for match in selection.matches)
    _replace(
        selection, kept, f"clause '{clause.text}' leaves no instance; {clause.field} is: {', '.join(values)}"
    )


def _filter(selection: Selection, pattern: str) -> None:
    """Keeps the instances that a pattern takes."""
    name_filter = NameFilter(selection.op, pattern)
    kept = []
    for match in selection.matches:
        match.matched = name_filter.count(match.instance, match.region)
        if match.matched:
            kept.append(match)
        else:
            selection.refused.append((match.instance, f"filter '{pattern}'"))
    selection.name_filter = name_filter
    if not kept:
        token = _culprit(selection, pattern)
        raise Refused(
            f"filter '{pattern}' selects nothing of api '{selection.op.api}': '{token}' matches nothing"
        )
    selection.matches = kept


def _culprit(selection: Selection, pattern: str) -> str:
    """The first part of a pattern, between stars, that nothing matches after the parts before it."""
    parts = list(Glob(pattern).beginnings())
    for token, beginning in parts:
        tried = NameFilter(selection.op, beginning)
        if not any(tried.count(match.instance, match.region) for match in selection.matches):
            return token
    return parts[-1][0]  # there are names that go on after it


def _replace(selection: Selection, kept: list[Match], complaint: str) -> None:
    if selection.matches and not kept:
        raise Refused(f"{complaint}; api '{selection.op.api}'")
    selection.matches = kept
