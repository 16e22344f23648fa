# SPDX-License-Identifier: MIT
"""The instances that a call asks for: receipt, --optdim, --where and --filter, over sets, never over lists.

An instance is selected when a combination that it serves passes all of them; what is selected is never
narrowed by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from codegen import Refused, unknown
from codegen.glob import Glob
from codegen.receipts import Receipt, cover
from codegen.space import Box, Clause, Region, bits, parse_clauses, region_meet, region_size
from codegen.spec import Instance, Operation, cell


class NameFilter:
    """A pattern that is held against the short name and against CK's names."""

    def __init__(self, op: Operation, pattern: str) -> None:
        self.op = op
        self.glob = Glob(pattern)
        self._heads: dict[Region, list[tuple[int, int, Box, int]]] = {}
        self._tails: dict[tuple[int, Box], int] = {}

    def count(self, instance: Instance, region: Region) -> int:
        """The number of combinations of a region whose names match."""
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
        """Whether the pattern matches a name."""
        return self.glob.matches(name)

    def _read_heads(self, region: Region) -> Iterator[tuple[int, int, Box, int]]:
        """States after the axes before the tile: (first axis's value, state, box of the tail, paths)."""
        start = self.glob.run(self.glob.start, f"{self.op.name}_")
        axes = self.op.space.axes
        for box in region:
            for first in bits(box[0]):
                states = {self.glob.run(start, _before(axes[0].tokens[first])): 1}
                for axis, mask in zip(axes[1 : self.op.head_axes], box[1:]):
                    reached: dict[int, int] = {}
                    for state, paths in states.items():
                        for value in bits(mask):
                            after = self.glob.run(state, _before(axis.tokens[value]))
                            reached[after] = reached.get(after, 0) + paths
                    states = reached
                for state, paths in states.items():
                    if state:
                        yield first, state, box[self.op.head_axes :], paths

    def _count_tail(self, state: int, tail: Box) -> int:
        """The number of name endings after the tile that match."""
        found = self._tails.get((state, tail))
        if found is None:
            if not tail:
                found = int(self.glob.accepts(state))
            else:
                found = 0
                axis = self.op.space.axes[-len(tail)]
                for value in bits(tail[0]):
                    token = axis.tokens[value]
                    after = self.glob.run(state, f"_{token}" if token else "")
                    if after:
                        found += self._count_tail(after, tail[1:])
            self._tails[state, tail] = found
        return found


def _before(token: str) -> str:
    """A token with what parts it from the next one."""
    return f"{token}_" if token else ""


Patterns = dict[str, str | None]  # by sub-kernel; None: nothing is wanted


def split_filter(text: str, ops: list[Operation]) -> list[Patterns]:
    """The patterns of each operation: parted by commas for the apis, and within an api by @ for sub-kernels.

    What is missing or empty is *. A blank part wants nothing: " ", or " @ " as AITER spells it. Of an api
    whose sub-kernels are operations, a pattern that is empty wants nothing of any of them, as in CK, since a
    call takes one of each.
    """
    apis: dict[str, list[Operation]] = {}
    for op in ops:
        apis.setdefault(op.asked_as, []).append(op)
    parts = text.split(",")
    if len(parts) > len(apis):
        raise Refused(f"filter '{text}' has {len(parts)} parts for {len(apis)} apis; give one for each")
    parts += [""] * (len(apis) - len(parts))
    patterns: list[Patterns] = []
    for (api, group), part in zip(apis.items(), parts):
        kernels = [kernel for op in group for kernel in op.kernels]
        words = part.split("@")
        if len(words) > len(kernels) and part.strip(" @"):
            raise Refused(
                f"filter '{part}' has {len(words)} parts between @ for the {len(kernels)} "
                f"of api '{api}': {'@'.join(kernels)}"
            )
        if len(group) > 1 and part and not all(word.strip() for word in words):
            words = [" "] * len(kernels)
        words += [" " if part and not part.strip() else ""] * (len(kernels) - len(words))
        wanted = {
            kernel: (word if word.strip() else None) if word else "*" for kernel, word in zip(kernels, words)
        }
        patterns += [{kernel: wanted[kernel] for kernel in op.kernels} for op in group]
    return patterns


@dataclass
class Match:
    """An instance and the combinations of it that were asked for."""

    instance: Instance
    region: Region  # the combinations that receipt, --optdim and --where leave
    matched: int  # how many of them the filter takes as well


@dataclass
class Selection:
    """The instances of one api that a call asks for."""

    op: Operation
    matches: list[Match]
    refused: list[tuple[Instance, str]]  # the others, with the condition that kept each out
    filters: dict[str, NameFilter] = field(default_factory=dict)  # by sub-kernel, where not all are taken
    available: int = 0
    about: str = ""

    @property
    def instances(self) -> list[Instance]:
        """The instances alone."""
        return [match.instance for match in self.matches]

    def summary(self) -> str:
        """One line about the selection."""
        served = sum(match.instance.combinations for match in self.matches)
        count = f"{len(self.matches)} of {self.available} instances"
        text = f"{self.op.api}: {self.about}: {count}, {served} names of CK"
        matched = sum(match.matched for match in self.matches)
        return text if matched == served else f"{text}, {matched} of them asked for"

    def ck_names(self) -> Iterator[str]:
        """CK's names that were asked for, one by one."""
        for match in self.matches:
            name_filter = self.filters.get(self.op.kernel_of(match.instance))
            everything = name_filter is None or name_filter.takes(match.instance.name)
            for name in match.instance.ck_names(match.region):
                if everything or (name_filter and name_filter.takes(name)):
                    yield name


@dataclass
class Request:
    """The conditions of a call, for any api."""

    receipt: Receipt
    optdim: str = "-1"
    where: str = ""

    def of(self, op: Operation, ops: list[Operation]) -> Request:
        """What is asked of one of several apis: conditions on what it lacks are for those that have it."""
        others = [other for other in ops if other is not op]
        optdim, where = self.optdim, []
        if op.optdim_field is None and any(other.optdim_field for other in others):
            optdim = "-1"
        for clause in parse_clauses(self.where):
            if clause.field in op.fields or not any(clause.field in other.fields for other in others):
                where.append(clause.text)
        return Request(self.receipt.of(op, ops), optdim, " ".join(where))


def select(op: Operation, instances: list[Instance], request: Request, patterns: Patterns) -> Selection:
    """The instances that a request asks for. One that leaves none is refused, unless it says so."""
    selection = Selection(op, [], [], available=len(instances), about=f"receipt {request.receipt}")
    _drop_unwanted(selection, instances, request, patterns)
    label = f"receipt {request.receipt}"
    if request.receipt.cover:
        whole = [i for i in selection.instances if i.target.kind not in request.receipt.cover]
        rest = [i for i in selection.instances if i.target.kind in request.receipt.cover]
        chosen = set(map(id, whole + cover(rest)))
        selection.refused += [
            (match.instance, label) for match in selection.matches if id(match.instance) not in chosen
        ]
        selection.matches = [match for match in selection.matches if id(match.instance) in chosen]
    elif selection.matches:
        _narrow(selection, label, request.receipt.region(op))
    for label, region in _optdim(op, request.optdim):
        _narrow(selection, label, region)
    for clause in parse_clauses(request.where):
        if clause.field in op.space.fields:
            _narrow(selection, f"clause '{clause.text}'", (op.space.clause(clause),))
        else:
            _keep(selection, clause)
    for kernel, pattern in patterns.items():
        if pattern not in (None, "*"):
            _filter(selection, kernel, pattern)
    return selection


def _drop_unwanted(
    selection: Selection, instances: list[Instance], request: Request, patterns: Patterns
) -> None:
    """Begins with all but what is asked for explicitly to be left out."""
    by_receipt = request.receipt.selects_none(selection.op)
    who = selection.about if by_receipt else "the filter"
    for instance in instances:
        if by_receipt or patterns[selection.op.kernel_of(instance)] is None:
            selection.refused.append((instance, f"{who}, which asks for none"))
        else:
            selection.matches.append(Match(instance, instance.region, instance.combinations))
    if not selection.matches:
        selection.about = f"{who} asks for none"


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
        raise Refused(unknown("field", clause.field, [*selection.op.space.fields, *fields]))
    kept = []
    for match in selection.matches:
        if (cell(fields[clause.field](match.instance)) in clause.words) != clause.negated:
            kept.append(match)
        else:
            selection.refused.append((match.instance, f"clause '{clause.text}'"))
    values = dict.fromkeys(cell(fields[clause.field](match.instance)) for match in selection.matches)
    _replace(
        selection, kept, f"clause '{clause.text}' leaves no instance; {clause.field} is: {', '.join(values)}"
    )


def _filter(selection: Selection, kernel: str, pattern: str) -> None:
    """Keeps the instances of a sub-kernel that a pattern takes."""
    op = selection.op
    name_filter = selection.filters[kernel] = NameFilter(op, pattern)
    tried = [match for match in selection.matches if op.kernel_of(match.instance) == kernel]
    for match in tried:
        match.matched = name_filter.count(match.instance, match.region)
        if not match.matched:
            selection.refused.append((match.instance, f"filter '{pattern}'"))
    if tried and not any(match.matched for match in tried):
        token = _culprit(op, tried, pattern)
        raise Refused(f"filter '{pattern}' selects nothing of api '{op.api}': '{token}' matches nothing")
    selection.matches = [match for match in selection.matches if match.matched]


def _culprit(op: Operation, matches: list[Match], pattern: str) -> str:
    """The first part of a pattern, between stars, that nothing matches after the parts before it."""
    parts = list(Glob(pattern).beginnings())
    for token, beginning in parts:
        tried = NameFilter(op, beginning)
        if not any(tried.count(match.instance, match.region) for match in matches):
            return token
    return parts[-1][0]  # there are names that go on after it


def _replace(selection: Selection, kept: list[Match], complaint: str) -> None:
    if selection.matches and not kept:
        raise Refused(f"{complaint}; api '{selection.op.api}'")
    selection.matches = kept
