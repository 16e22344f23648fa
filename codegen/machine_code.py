# SPDX-License-Identifier: MIT
"""CDNA machine code, decoded as far as counting needs: instructions, their kinds and their successors.

Encodings: AMD's ISA documents of CDNA 2, 3 and 4, chapter "Microcode Formats". Names and opcodes are those of
simulator/instructions/, and nowhere else.
"""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields

from codegen import Refused
from codegen.spec import ROOT

TABLES = ROOT / "simulator" / "instructions"
ARCHS = ("gfx90a", "gfx942", "gfx950")  # columns of the tables
NAMED = ("sop1", "sopk", "sopp", "vop1", "vop2", "vop3p", "mai")  # formats whose opcodes matter here

LITERAL, SDWA, DPP = 255, 249, 250  # codes of a source that a word follows
LD_SCALE = 0x2C  # opcode of the first half of a scaled MFMA
ACCVGPR_MOVES = ("v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32")
MOST_UNDER_WAY = 63  # operations on memory, as far as a wait counts
ENDS = ("s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done", "s_setpc_b64", "s_rfe_b64")


@dataclass(frozen=True)
class Instruction:
    """One instruction; places are bytes from the function's first."""

    place: int
    size: int
    format: str
    name: str  # "" for kinds whose name nothing needs
    branch: int | None = None  # where it may jump to
    to_lds: bool = False  # a load from memory to LDS
    under_way: int | None = None  # of a wait: so many operations on memory may still be,
    reads_under_way: int | None = None  # and so many on LDS

    @property
    def is_last(self) -> bool:
        """Whether the following instruction is not executed next."""
        return self.name in (*ENDS, "s_branch")

    @property
    def counts(self) -> Counts:
        """The counts that the instruction adds to."""
        if self.format == "mai":
            return Counts(mfma=1)
        if self.format.startswith("v"):
            return Counts(valu=1, accvgpr=int(self.name in ACCVGPR_MOVES))
        if self.format.startswith("s"):
            return Counts(scalar=1)
        return Counts(lds=1) if self.format == "ds" else Counts(memory=1)


@dataclass(frozen=True)
class Counts:
    """Instructions by kind."""

    mfma: int = 0
    valu: int = 0  # all other vector instructions,
    accvgpr: int = 0  # of which so many only move numbers from or to AGPRs
    scalar: int = 0  # branches, waits and barriers too
    lds: int = 0
    memory: int = 0

    def __add__(self, other: Counts) -> Counts:
        names = (field.name for field in fields(self))
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def total(self) -> int:
        """The number of instructions of all kinds."""
        return self.mfma + self.valu + self.scalar + self.lds + self.memory


# ---- decoding


@functools.cache
def _names(arch: str) -> dict[tuple[str, int], tuple[str, bool]]:
    """Format and opcode -> name, and whether the word behind the instruction is a part of it."""
    known = {}
    column = 1 + ARCHS.index(arch)
    try:
        for format_ in NAMED:
            for line in (TABLES / f"{format_}.txt").read_text(encoding="utf-8").splitlines():
                cells = line.partition("|")[0].split()
                if cells and cells[0] != "#" and cells[column] != "-":
                    takes_word = any("=literal:" in cell for cell in cells)
                    known[format_, int(cells[column])] = (cells[0], takes_word)
    except OSError as error:
        raise Refused(f"cannot read the tables of instructions: {error.filename}: {error.strerror}") from None
    return known


def _bits(word: int, low: int, count: int) -> int:
    return word >> low & ((1 << count) - 1)


def _short(word: int) -> tuple[str, int, bool]:
    """Format and opcode of a vector instruction of 4 bytes, and whether a source is the word behind it."""
    more = _bits(word, 0, 9) in (LITERAL, SDWA, DPP)
    if _bits(word, 25, 6) == 0x3F:
        return "vop1", _bits(word, 9, 8), more
    if _bits(word, 25, 6) == 0x3E:
        return "vopc", _bits(word, 17, 8), more
    return "vop2", _bits(word, 25, 6), more


def _scalar(word: int) -> tuple[str, int, bool]:
    """Format and opcode of a scalar instruction, and whether a word follows it."""
    first, second = (_bits(word, low, 8) == LITERAL for low in (0, 8))
    if _bits(word, 23, 9) == 0x17D:
        return "sop1", _bits(word, 8, 8), first
    if _bits(word, 23, 9) == 0x17E:
        return "sopc", _bits(word, 16, 7), first or second
    if _bits(word, 23, 9) == 0x17F:
        return "sopp", _bits(word, 16, 7), False
    if _bits(word, 28, 4) == 0xB:
        return "sopk", _bits(word, 23, 5), False
    return "sop2", _bits(word, 23, 7), first or second


# First six bits -> format of an instruction of 8 bytes.
LONG = {0x30: "smem", 0x34: "vop3", 0x36: "ds", 0x37: "flat", 0x38: "mubuf", 0x3A: "mtbuf"}


def instructions(code: bytes, arch: str) -> list[Instruction]:
    """The instructions of a function."""
    found: list[Instruction] = []
    place = 0
    while place < len(code):
        try:
            found.append(_instruction(code, place, arch))
        except struct.error:
            raise Refused(f"ends within the instruction at {place:#x}") from None
        place += found[-1].size
    return found


def _instruction(code: bytes, place: int, arch: str) -> Instruction:
    (word,) = struct.unpack_from("<I", code, place)
    if word >> 30 == 3:
        return _long(code, place, arch)
    format_, opcode, more = _scalar(word) if word >> 31 else _short(word)
    name, takes_word = _name(arch, format_, opcode, place)
    size = 8 if more or takes_word else 4
    if name == "s_waitcnt":
        on_memory = _bits(word, 14, 2) << 4 | _bits(word, 0, 4)
        return Instruction(place, size, format_, name, under_way=on_memory, reads_under_way=_bits(word, 8, 4))
    if not name.startswith(("s_branch", "s_cbranch")) or format_ != "sopp":
        return Instruction(place, size, format_, name)
    (words,) = struct.unpack_from("<h", code, place)
    return Instruction(place, size, format_, name, place + 4 + 4 * words)


def _long(code: bytes, place: int, arch: str) -> Instruction:
    word, _ = struct.unpack_from("<II", code, place)
    format_ = LONG.get(word >> 26)
    if format_ is None:
        raise Refused(f"has an unknown instruction at {place:#x}")
    if format_ != "vop3" or _bits(word, 23, 9) != 0x1A7:
        return Instruction(place, 8, format_, "", to_lds=format_ == "mubuf" and _bits(word, 16, 1) == 1)
    opcode = _bits(word, 16, 7)
    if arch == "gfx950" and opcode == LD_SCALE:
        (word,) = struct.unpack_from("<8xI4x", code, place)
        return Instruction(place, 16, "mai", _name(arch, "mai", _bits(word, 16, 7), place)[0])
    format_ = "mai" if ("mai", opcode) in _names(arch) else "vop3p"
    return Instruction(place, 8, format_, _name(arch, format_, opcode, place)[0])


def _name(arch: str, format_: str, opcode: int, place: int) -> tuple[str, bool]:
    if format_ not in NAMED:
        return "", False
    if (format_, opcode) not in _names(arch):
        raise Refused(f"has an unknown {format_} instruction at {place:#x}: opcode {opcode}")
    return _names(arch)[format_, opcode]


# ---- loops


class Flow:
    """The basic blocks of a function: numbers in the order of a depth-first search, 0 the entry."""

    def __init__(self, code: list[Instruction]) -> None:
        blocks = _blocks(code)
        after = {begin: _successors(block) & blocks.keys() for begin, block in blocks.items()}
        order = _reverse_postorder(after)
        number = {begin: i for i, begin in enumerate(order)}
        self.blocks = [blocks[begin] for begin in order]
        self.after = [sorted(number[next_] for next_ in after[begin]) for begin in order]
        self.before: list[list[int]] = [[] for _ in order]
        for block, nexts in enumerate(self.after):
            for next_ in nexts:
                self.before[next_].append(block)
        self.dominators = self._find_dominators()

    def _find_dominators(self) -> list[set[int]]:
        """The blocks that every path to a block passes, for each block."""
        everything = set(range(len(self.blocks)))
        found = [{0}, *([everything] * (len(self.blocks) - 1))]
        changed = True
        while changed:
            changed = False
            for block in range(1, len(self.blocks)):
                meet = set.intersection(*(found[before] for before in self.before[block])) | {block}
                changed = changed or meet != found[block]
                found[block] = meet
        return found

    def loops(self) -> dict[int, set[int]]:
        """Natural loops: header -> blocks."""
        found: dict[int, set[int]] = {}
        for block, nexts in enumerate(self.after):
            for header in nexts:
                if header in self.dominators[block]:
                    body = found.setdefault(header, {header})
                    waiting = [block]
                    while waiting:
                        member = waiting.pop()
                        if member not in body:
                            body.add(member)
                            waiting.extend(self.before[member])
        return found

    def plain_round(self, header: int, body: set[int]) -> Round:
        """The shortest path round a loop, of those that meet most MFMA.

        It is what a call executes that asks for nothing that stands behind a branch.
        """
        best: dict[int, Round] = {}
        for block in sorted(body):
            ways = [best[before] for before in self.before[block] if before in best and before < block]
            way = Round((), Counts()) if block == header else max(ways, key=_rank, default=None)
            if way:
                best[block] = Round((*way.blocks, block), way.counts + _sum(self.blocks[block]))
        return max((best[block] for block in best if header in self.after[block]), key=_rank)

    def main_loop(self) -> tuple[set[int], Round] | None:
        """The innermost loop with most MFMA and its plain round; None if no loop has MFMA."""
        loops = self.loops()
        rounds = {header: self.plain_round(header, body) for header, body in loops.items()}
        with_mfma = [header for header in loops if rounds[header].counts.mfma]
        innermost = [
            header
            for header in with_mfma
            if not any(other != header and other in loops[header] for other in with_mfma)
        ]
        main = max(innermost, key=lambda header: _rank(rounds[header]), default=None)
        return None if main is None else (loops[main], rounds[main])


@dataclass(frozen=True)
class Round:
    """A path round a loop."""

    blocks: tuple[int, ...]
    counts: Counts


def main_loop(code: list[Instruction]) -> Counts | None:
    """The instructions of a plain round of the main loop, if there is a loop with MFMA."""
    found = Flow(code).main_loop()
    return None if found is None else found[1].counts


def _plain_round(code: list[Instruction]) -> list[Instruction]:
    """The instructions of a plain round of the main loop, if there is a loop with MFMA."""
    flow = Flow(code)
    found = flow.main_loop()
    return [] if found is None else [i for block in found[1].blocks for i in flow.blocks[block]]


def loop_body(code: list[Instruction]) -> list[Instruction]:
    """All instructions of the main loop, also those that a plain round branches around."""
    flow = Flow(code)
    found = flow.main_loop()
    return [] if found is None else [i for block in sorted(found[0]) for i in flow.blocks[block]]


def gaps(code: list[Instruction]) -> list[list[Instruction]]:
    """What stands between the MFMAs of a plain round of the main loop; the last gap goes round."""
    round_ = _plain_round(code)
    if not round_:
        return []
    between: list[list[Instruction]] = [[]]
    for instruction in round_:
        if instruction.counts.mfma:
            between.append([])
        else:
            between[-1].append(instruction)
    return [*between[1:-1], between[-1] + between[0]]


def clusters(code: list[Instruction]) -> list[list[Instruction]]:
    """What stands up to each barrier of a plain round of the main loop, the barrier too; it goes round."""
    found: list[list[Instruction]] = [[]]
    for instruction in _plain_round(code):
        found[-1].append(instruction)
        if instruction.name == "s_barrier":
            found.append([])
    rest = found.pop()
    return [rest + found[0], *found[1:]] if found else []


def early_waits(code: list[Instruction]) -> list[Instruction]:
    """Waits in steps of the main loop for loads that only the next step needs.

    A step ends in a wait with a barrier behind it, and only there is it waited for what every step loads:
    to LDS, and in plain rounds. A wait before that leaves as many operations under way as were issued in the
    step, unless the way to it has other ones, such as loads of a bias.
    """
    flow = Flow(code)
    found = flow.main_loop()
    if found is None:
        return []
    body, round_ = found
    early: set[Instruction] = set()
    issued = dict.fromkeys(body, -1)  # up to the block, on ways without other operations; -1: there are none
    changed = {min(body)}
    issued[min(body)] = 0
    while changed:
        block = changed.pop()
        count = _issued_behind(flow.blocks[block], issued[block], block in round_.blocks, early)
        for next_ in body.intersection(flow.after[block]):
            if count > issued[next_]:
                issued[next_] = count
                changed.add(next_)
    return sorted(early, key=lambda instruction: instruction.place)


def _issued_behind(block: list[Instruction], issued: int, plain: bool, early: set[Instruction]) -> int:
    """The number of operations issued up to the end of a block; adds its early waits."""
    for instruction, next_ in itertools.zip_longest(block, block[1:]):
        if instruction.under_way is not None:
            if next_ is not None and next_.name == "s_barrier":
                issued = 0
            elif instruction.under_way < issued:
                early.add(instruction)
                issued = instruction.under_way
        elif instruction.counts.memory and issued >= 0:
            issued = min(issued + 1, MOST_UNDER_WAY) if plain or instruction.to_lds else -1
    return issued


def _rank(round_: Round) -> tuple[int, int]:
    return round_.counts.mfma, -round_.counts.total


def _sum(block: list[Instruction]) -> Counts:
    return functools.reduce(operator.add, (instruction.counts for instruction in block), Counts())


def _blocks(code: list[Instruction]) -> dict[int, list[Instruction]]:
    """Basic blocks by the places where they begin."""
    begins = {0, *(instruction.branch for instruction in code)}
    begins |= {i.place + i.size for i in code if i.branch is not None or i.is_last}
    blocks: dict[int, list[Instruction]] = {}
    for instruction in code:
        if instruction.place in begins:
            block = blocks[instruction.place] = []
        block.append(instruction)
    return blocks


def _successors(block: list[Instruction]) -> set[int]:
    """The places where execution may go on after a block."""
    last = block[-1]
    nexts = set() if last.is_last else {last.place + last.size}
    return nexts if last.branch is None else nexts | {last.branch}


def _reverse_postorder(after: dict[int, set[int]]) -> list[int]:
    """The blocks that the entry leads to, each before those that it leads to, backward jumps aside."""
    done: list[int] = []
    seen = {0}
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(sorted(after[0])))]
    while stack:
        block, nexts = stack[-1]
        for next_ in nexts:
            if next_ not in seen:
                seen.add(next_)
                stack.append((next_, iter(sorted(after[next_]))))
                break
        else:
            done.append(block)
            stack.pop()
    return done[::-1]
