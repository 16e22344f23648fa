# SPDX-License-Identifier: MIT
"""Random C programs that mean the same on a GPU lane and on the host: nothing undefined, no order of lanes.

A program is a function of a work-item's number and some input words that fills output words. A source file
holds many; on the device each is a kernel, on the host a loop over work-items.
"""

from __future__ import annotations

import random
from pathlib import Path

ITEMS = 192  # work-items of a program: three waves, one of them in a workgroup of its own
BLOCK = 128
INPUTS = 8  # 32-bit words of a work-item
OUTPUTS = 16  # 64-bit words of a work-item

PRELUDE = (Path(__file__).parent / "programs" / "generated.h").read_text().replace("#pragma once\n", "")

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f16", "f32", "f64")
VECTORS = {"h2": ("f16", 2), "s2": ("i16", 2), "f2": ("f32", 2), "f4": ("f32", 4), "n4": ("i32", 4)}
WIDTH = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}


class _Program:
    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.name = name
        self.scope: list[tuple[str, str]] = []
        self.readonly: set[str] = set()
        self.count = 0
        self.helpers: list[tuple[str, str, list[str]]] = []  # name, result, parameters
        self.lines: list[str] = []
        kinds = [
            list(INTEGERS),
            list(FLOATS),
            ["i32", "u32", "f32"],
            [*INTEGERS, *FLOATS],
            ["i64", "u64", "f64"],
            ["f16", "i16", "u16", "f32"],
            [*VECTORS, "f32", "i32", "f16"],
        ]
        self.types = self.random.choice(kinds)

    # ---- expressions

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def literal(self, kind: str) -> str:
        r = self.random
        if kind in VECTORS:
            element, count = VECTORS[kind]
            return f"(({kind}){{" + ", ".join(self.literal(element) for _ in range(count)) + "})"
        if kind == "f16":
            value = r.choice([0.0, 1.0, -1.0, 0.5, 3.25, -17.0, 1000.0, 0.0001, round(r.uniform(-8, 8), 2)])
            return f"((f16){value}f)"
        if kind == "f32":
            value = r.choice([0.0, 1.0, -1.0, 0.5, 1e10, 1e-10, 3.4e38, 1e-38, round(r.uniform(-99, 99), 3)])
            return f"({value}f)"
        if kind == "f64":
            return f"({r.choice([0.0, 1.0, -0.25, 1e100, 1e-100, 1e-308, round(r.uniform(-99, 99), 5)])})"
        top = (1 << WIDTH[kind]) - 1
        edges = [0, 1, 2, 3, 7, 31, 64, 100, 255, 65535, top, top >> 1, (top >> 1) + 1, r.getrandbits(64)]
        return f"(({kind}){r.choice(edges) & top}ul)"

    def value(self, kind: str, depth: int) -> str:
        """An expression of type `kind`."""
        r = self.random
        names = [n for n, k in self.scope if k == kind]
        if depth <= 0 or r.random() < 0.15:
            return r.choice(names) if names and r.random() < 0.85 else self.literal(kind)
        if r.random() < 0.12:
            first, second = self.value(kind, depth - 1), self.value(kind, depth - 1)
            return f"({self.condition(depth - 1)} ? {first} : {second})"
        helpers = [h for h in self.helpers if h[1] == kind]
        if helpers and r.random() < 0.15:
            name, _, parameters = r.choice(helpers)
            return f"{name}(" + ", ".join(self.value(p, depth - 1) for p in parameters) + ")"
        if kind in VECTORS:
            return self.vector(kind, depth)
        return self.floating(kind, depth) if kind in FLOATS else self.integer(kind, depth)

    def vector(self, kind: str, depth: int) -> str:
        element, count = VECTORS[kind]
        if self.random.random() < 0.25:
            return f"(({kind}){{" + ", ".join(self.value(element, depth - 1) for _ in range(count)) + "})"
        operators = ("+", "-", "*", "&", "|", "^") if element in INTEGERS else ("+", "-", "*", "+", "*")
        return f"({self.value(kind, depth - 1)} {self.pick(*operators)} {self.value(kind, depth - 1)})"

    def integer(self, kind: str, depth: int) -> str:
        r = self.random
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        width = WIDTH[kind]
        choice = r.randrange(15)
        if choice < 5:
            return f"(({kind})({a} {self.pick('+', '-', '*', '&', '|', '^')} {b}))"
        if choice == 5:
            return f"(({kind})({a} {self.pick('<<', '>>')} ({b} & {width - 1})))"
        if choice == 6:
            numerator = f"({kind})opaque{64 if width == 64 else 32}(({'u64' if width == 64 else 'u32'}){a})"
            divisor = f"({kind})(({b} >> 1 & {(1 << (width - 1)) - 1}) | 1)"
            return f"(({kind})({numerator} {self.pick('/', '%')} {divisor}))"
        if choice == 7:
            return f"(({kind})({self.pick('~', '-')}{a}))"
        if choice == 8:
            return f"(({kind})({a} {self.pick('<', '>')} {b} ? {a} : {b}))"
        if choice == 9 and width == 64:
            return f"(({kind}){self.pick('__builtin_popcountl', '__builtin_bswap64')}((u64){a}))"
        if choice == 9:
            function = self.pick("popcount", "bswap32", "clz", "ctz", "bitreverse32")
            return f"(({kind})__builtin_{function}((u32){a} | {'1u' if 'z' in function else '0u'}))"
        if choice == 10:
            return f"(({kind})((u64)opaque32((u32){a}) * (u32){b} >> {r.choice([0, 16, 32])}))"
        if choice == 11:
            return f"(({kind})((u32){a} >> {r.randrange(0, 25)} & {(1 << r.randrange(1, 20)) - 1}))"
        if choice == 12:
            shift = r.randrange(1, 32)
            return f"(({kind})((u32){a} << {shift} | (u32){b} >> {32 - shift}))"
        return self.converted(kind, depth)

    def converted(self, kind: str, depth: int) -> str:
        """A value of another type, brought to this one."""
        other = self.random.choice([t for t in self.types if t not in VECTORS] or ["i32"])
        inner = self.value(other, depth - 1)
        if kind == "f16" and other in FLOATS:
            return f"half32((f32){inner})"
        if kind in FLOATS:
            return f"(({kind}){inner})"
        if other == "f16":
            return f"(({kind})half_int({inner}))"
        if other == "f32":
            return f"(({kind}){self.pick('int32', 'uint32')}({inner}))"
        if other == "f64":
            return f"(({kind}){'int64' if WIDTH[kind] == 64 else 'int32'}({inner}))"
        return f"(({kind}){inner})"

    def floating(self, kind: str, depth: int) -> str:
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        suffix = {"f16": "f16", "f32": "f", "f64": ""}[kind]
        choice = self.random.randrange(14)
        if choice < 6:
            return f"({a} {self.pick('+', '-', '*')} {b})"
        if choice == 6:
            return f"({a} / {b})"
        if choice == 7:
            return f"(-{a})"
        if choice == 8:
            function = self.pick("fabs", "floor", "ceil", "trunc", "rint")
            if kind == "f16":
                return f"half32(__builtin_{function}f((f32){a}))"
            return f"__builtin_{function}{suffix}({a})"
        if choice == 9 and kind != "f16":
            return f"__builtin_fma{suffix}({a}, {b}, {self.value(kind, depth - 1)})"
        if choice == 10:
            return f"({a} {self.pick('<', '>')} {b} ? {a} : {b})"
        if choice == 11 and kind == "f32":
            return f"sqrt32({a})"
        if choice == 12:
            size = {"f16": "16", "f32": "32", "f64": "64"}[kind]
            return f"make{size}((u{size})({self.value('u64' if 'u64' in self.types else 'u32', depth - 1)}))"
        return self.converted(kind, depth)

    def condition(self, depth: int) -> str:
        kinds = [t for t in self.types if t not in VECTORS]
        kind = self.random.choice(kinds)
        operator = self.pick("<", ">", "<=", ">=", "==", "!=")
        comparison = f"{self.value(kind, depth)} {operator} {self.value(kind, depth)}"
        if self.random.random() < 0.2 and depth > 0:
            return f"({comparison} {self.pick('&&', '||')} {self.condition(depth - 1)})"
        return f"({comparison})"

    # ---- statements

    def fresh(self, kind: str, prefix: str = "x") -> str:
        self.count += 1
        name = f"{prefix}{self.count}"
        self.scope.append((name, kind))
        return name

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def assign(self, indent: int) -> None:
        targets = [(n, k) for n, k in self.scope if n not in self.readonly]
        name, kind = self.random.choice(targets)
        if kind in VECTORS and self.random.random() < 0.3:
            element, count = VECTORS[kind]
            self.emit(indent, f"{name}[{self.random.randrange(count)}] = {self.value(element, 2)};")
        else:
            self.emit(indent, f"{name} = {self.value(kind, 3)};")

    def declare(self, indent: int) -> None:
        kind = self.random.choice(self.types)
        text = self.value(kind, 3)
        self.emit(indent, f"{kind} {self.fresh(kind)} = {text};")

    def array(self, indent: int) -> None:
        kind = self.random.choice([t for t in self.types if t not in VECTORS])
        self.count += 1
        name, size = f"a{self.count}", self.random.choice([4, 8, 16])
        values = ", ".join(self.value(kind, 1) for _ in range(size))
        self.emit(indent, f"{kind} {name}[{size}] = {{{values}}};")
        for _ in range(self.random.randint(1, 3)):
            index = f"(u32)({self.value('u32', 2)}) & {size - 1}"
            self.emit(indent, f"{name}[{index}] = {self.value(kind, 2)};")
        index = f"(u32)({self.value('u32', 2)}) & {size - 1}"
        self.emit(indent, f"{kind} {self.fresh(kind)} = {name}[{index}];")

    def block(self, indent: int, depth: int) -> None:
        before = len(self.scope)
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)
        del self.scope[before:]

    def branch(self, indent: int, depth: int) -> None:
        self.emit(indent, f"if {self.condition(2)} {{")
        self.block(indent + 1, depth - 1)
        if self.random.random() < 0.6:
            self.emit(indent, "} else {")
            self.block(indent + 1, depth - 1)
        self.emit(indent, "}")

    def loop(self, indent: int, depth: int) -> None:
        trips = self.random.choice(["5", f"((u32)({self.value('u32', 2)}) & 7) + 1"])
        index = self.fresh("u32", "loop")
        self.readonly.add(index)
        self.emit(indent, f"for (u32 {index} = 0, n{index} = {trips}; {index} < n{index}; {index}++) {{")
        self.block(indent + 1, depth - 1)
        if self.random.random() < 0.3:
            self.emit(indent + 1, f"if {self.condition(1)} {self.pick('break', 'continue')};")
        self.emit(indent, "}")
        self.scope = [s for s in self.scope if s[0] != index]

    def switch(self, indent: int, depth: int) -> None:
        self.emit(indent, f"switch ((u32)({self.value('u32', 2)}) & 3) {{")
        for case in range(self.random.randint(2, 4)):
            self.emit(indent, f"case {case}: {{")
            self.block(indent + 1, depth - 1)
            self.emit(indent, "}" + self.pick(" break;", ""))
        self.emit(indent, "default:;")
        self.emit(indent, "}")

    def statement(self, indent: int, depth: int) -> None:
        choice = self.random.randrange(12)
        if depth > 0 and choice in (0, 1):
            self.branch(indent, depth)
        elif depth > 0 and choice == 2:
            self.loop(indent, depth)
        elif depth > 0 and choice == 3:
            self.switch(indent, depth)
        elif choice == 4:
            self.array(indent)
        elif choice in (5, 6):
            self.declare(indent)
        else:
            self.assign(indent)

    # ---- a whole program

    def inputs(self) -> None:
        for index, kind in enumerate(self.random.sample(self.types * 2, k=min(5, len(self.types) * 2))):
            word = f"in[{index % INPUTS}]"
            wide = f"((u64){word} << 32 | in[{(index + 1) % INPUTS}])"
            makers = {"f16": f"make16((u16){word})", "f32": f"make32({word})", "f64": f"make64({wide})"}
            made = makers.get(kind)
            if kind in VECTORS:
                element, count = VECTORS[kind]
                parts = [f"({element})(i16)(in[{(index + k) % INPUTS}] >> {k})" for k in range(count)]
                made = f"({kind}){{{', '.join(parts)}}}"
            text = made or f"({kind}){wide if '64' in kind else word}"
            self.emit(1, f"{kind} {self.fresh(kind)} = {text};")
        self.emit(1, f"u32 {self.fresh('u32')} = item;")

    def helper(self, index: int) -> None:
        result = self.random.choice(self.types)
        parameters = [self.random.choice(self.types) for _ in range(self.random.randint(1, 3))]
        self.scope = []
        text = ", ".join(f"{k} {self.fresh(k, 'p')}" for k in parameters)
        name = f"{self.name}_h{index}"
        self.emit(0, f"static NOINLINE {result} {name}({text}) {{")
        for _ in range(self.random.randint(1, 3)):
            self.statement(1, 1)
        self.emit(1, f"return {self.value(result, 3)};")
        self.emit(0, "}")
        self.helpers.append((name, result, parameters))

    def outputs(self) -> None:
        slots = []
        for name, kind in self.scope:
            element, count = VECTORS.get(kind, (kind, 1))
            for k in range(count):
                part = f"{name}[{k}]" if kind in VECTORS else name
                slots.append(f"bits{element[1:]}({part})" if element in FLOATS else f"(u64){part}")
        for index, text in enumerate(slots[-OUTPUTS:]):
            self.emit(1, f"out[{index}] = {text};")

    def render(self) -> str:
        for index in range(self.random.choice([0, 0, 1, 2])):
            self.helper(index)
        self.scope = []
        parameters = "GLOBAL const u32 *in, GLOBAL u64 *out"
        self.emit(0, f"static inline void {self.name}_body(u32 item, {parameters}) {{")
        self.inputs()
        for _ in range(self.random.randint(4, 10)):
            self.statement(1, 2)
        self.outputs()
        self.emit(0, "}")
        body = f"{self.name}_body(item, in + item * {INPUTS}, out + item * {OUTPUTS})"
        self.emit(0, "#ifdef HOST")
        self.emit(0, f"void {self.name}(const u32 *in, u64 *out) {{")
        self.emit(1, f"for (u32 item = 0; item < {ITEMS}; item++) {body};")
        self.emit(0, "}")
        self.emit(0, "#else")
        self.emit(0, f"KERNEL {self.name}({parameters}) {{")
        item = f"__builtin_amdgcn_workgroup_id_x() * {BLOCK} + __builtin_amdgcn_workitem_id_x()"
        self.emit(1, f"u32 item = {item};")
        self.emit(1, f"{body};")
        self.emit(0, "}")
        self.emit(0, "#endif")
        return "\n".join(self.lines) + "\n"


def source(seeds: range) -> str:
    """A C file with one program for each seed, named p<seed>."""
    return PRELUDE + "".join(_Program(seed, f"p{seed}").render() for seed in seeds)


def inputs(seed: int) -> bytes:
    """Input words of all work-items: edge values and random ones."""
    r = random.Random(seed)
    text = """0 1 2 7f 80 ff 7fff 8000 ffff 7fffffff 80000000 ffffffff 3f800000 bf800000 7f800000 ff800000
        7fc00000 7fffff 800000 7f7fffff 3c003c00 7c00fc00"""
    edges = [int(word, 16) for word in text.split()]

    def word() -> int:
        return r.choice(edges) if r.random() < 0.3 else r.getrandbits(r.choice([32, 8, 16]))

    words = [word() for _ in range(ITEMS * INPUTS)]
    return b"".join(w.to_bytes(4, "little") for w in words)
