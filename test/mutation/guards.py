#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weakens the library's guards one at a time: some test must fail each time.

A guard is a condition in runtime/ that ends a call with tessera_fail(). Mutants are each whole guard, each
operand of && in what GUARD() demands and of || in what an if refuses, and each side of within(). All are
compiled into one library, where the environment variable TESSERA_MUTANT picks the one that is alive: a mutant
costs a run of tests and no compilation. Tests that reach it are run first, and all others only where these
notice nothing. Each day a quarter of the mutants live (test/sampling.py). Exits 1 when one survives.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

import sampling  # noqa: E402

DAYS = 1 if sampling.ALL else 4
# No header is included, since sources say what they want of headers in their first lines.
ALIVE = """char *getenv(const char *name);
int atoi(const char *text);
extern unsigned char mutants_reached[];
static int weakened(int number) {
    mutants_reached[number] = 1;
    const char *alive = getenv("TESSERA_MUTANT");
    return alive && atoi(alive) == number;
}
"""


# What an if must lead to: any failure but that of malloc(), which no test can bring about.
FAILS = re.compile(r"\s*\{?\s*(return|\w+ =) tessera_fail\((?!TESSERA_ERROR_OUT_OF_MEMORY)")


@dataclass(frozen=True)
class Mutant:
    number: int
    file: str
    line: int
    text: str  # what is taken as true, or as false in an if


def closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the one at `start`; strings are skipped."""
    depth = 0
    for match in re.compile(r'"(?:\\.|[^"\\])*"|[()]').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    raise ValueError(f"no closing parenthesis: {text[start : start + 60]}")


def split(text: str, operator: str) -> list[str]:
    """Operands of the operator at the top level of an expression."""
    parts, depth, begin = [], 0, 0
    for match in re.compile(r'"(?:\\.|[^"\\])*"|[()]|' + re.escape(operator)).finditer(text):
        if match[0] == operator and depth == 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
        depth += {"(": 1, ")": -1}.get(match[0], 0)
    return [*parts, text[begin:]]


class Mutator:
    """Rewrites sources so that each guard asks whether it is the weakened one."""

    def __init__(self) -> None:
        self.mutants: list[Mutant] = []

    def weak(self, file: Path, line: int, text: str) -> str:
        self.mutants.append(Mutant(len(self.mutants), file.name, line, " ".join(text.split())))
        return f"weakened({len(self.mutants) - 1})"

    def demand(self, file: Path, line: int, text: str) -> str:
        """An expression that must hold, by its clauses: operands of && and sides of within()."""
        alternatives = split(text, "||")
        if len(alternatives) > 1:
            return " || ".join(self.demand(file, line, one) for one in alternatives)
        operands = split(text, "&&")
        if len(operands) > 1:
            return " && ".join(
                f"({self.weak(file, line, one)} || ({self.demand(file, line, one)}))" for one in operands
            )
        stripped = text.strip()
        if stripped.startswith("within("):
            value, least, most = split(stripped[len("within(") : -1], ",")
            low, high = (
                self.weak(file, line, f"{least} <= {value}"),
                self.weak(file, line, f"{value} <= {most}"),
            )
            return f"(({low} || ({least}) <= ({value})) && ({high} || ({value}) <= ({most})))"
        if stripped.startswith("(") and closing(stripped, 0) == len(stripped) - 1:
            return f"({self.demand(file, line, stripped[1:-1])})"
        return text

    def refuse(self, file: Path, line: int, text: str) -> str:
        """The condition of an if that fails."""
        operands = split(text, "||")
        if len(operands) == 1:
            return f"!{self.weak(file, line, text)} && ({text})"
        return " || ".join(f"(!{self.weak(file, line, one)} && ({one}))" for one in operands)

    def rewrite(self, file: Path) -> str:
        source = file.read_text(encoding="utf-8")
        out, at = [f'{ALIVE}#line 1 "{file}"\n'], 0
        for match in re.finditer(r"^(?!#define).*?\b(GUARD|if) ?\(", source, re.MULTILINE):
            opening = match.end() - 1
            if opening < at or source.startswith("(!(holds))", opening):  # GUARD's own definition
                continue
            end, line = closing(source, opening), source.count("\n", 0, opening) + 1
            inside = source[opening + 1 : end]
            if match[1] == "GUARD":
                condition = split(inside, ",")[0]
                rest = inside[len(condition) :]
                replaced = (
                    f"{self.weak(file, line, condition)} || ({self.demand(file, line, condition)}){rest}"
                )
            elif re.match(FAILS, source[end + 1 :]):
                replaced = self.refuse(file, line, inside)
            else:
                continue
            out += [source[at : opening + 1], replaced]
            at = end
        return "".join(out) + source[at:]


def ninja_commands(build: Path, *targets: str) -> list[str]:
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    ninja = re.search(r"^CMAKE_MAKE_PROGRAM:\w+=(.*)$", cache, re.MULTILINE)
    assert ninja, "CMakeCache.txt names no CMAKE_MAKE_PROGRAM"
    command = [ninja[1], "-C", str(build), "-t", "commands", *targets]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def compile_mutants(build: Path, mutator: Mutator, work: Path) -> list[str]:
    """Compiles the rewritten sources as the build compiles the real ones. Returns the objects."""
    commands = {
        shlex.split(line)[-1]: line for line in ninja_commands(build, "tessera_objects") if " -c " in line
    }
    objects = []
    for file in sorted((ROOT / "runtime").rglob("*.c")):
        if str(file) not in commands:  # of an operation that is not built
            continue
        known = len(mutator.mutants)
        text = mutator.rewrite(file)
        if len(mutator.mutants) == known:
            continue
        copy = work / file.name
        copy.write_text(text, encoding="utf-8")
        arguments = shlex.split(commands[str(file)])
        arguments[-1] = str(copy)
        arguments[arguments.index("-o") + 1] = str(copy.with_suffix(".o"))
        subprocess.run([*arguments, "-w"], check=True, cwd=build)
        objects.append(str(copy.with_suffix(".o")))
    return objects


def compile_reach(build: Path, count: int, work: Path) -> str:
    """Compiles reach.cc as the build compiles a test. Returns the object."""
    line = next(line for line in ninja_commands(build, "bin/runtime_status_test") if "status_test.cc" in line)
    arguments = shlex.split(line)
    arguments[-1] = str(Path(__file__).with_name("reach.cc"))
    arguments[arguments.index("-o") + 1] = str(work / "reach.o")
    subprocess.run([*arguments, f"-DMUTANTS={count}"], check=True, cwd=build)
    return str(work / "reach.o")


def link_tests(build: Path, objects: list[str], work: Path) -> list[Path]:
    """Links each test program of test/runtime/ with the mutants in front of the library."""
    targets: dict[str, str] = {}
    for test in sorted((ROOT / "test/runtime").glob("*_test.cc")):
        places = (f"runtime_{test.stem}", f"bin/runtime_{test.stem}")
        target = next((place for place in places if (build / place).exists()), None)
        if not target:
            sys.exit(f"guards.py: {build} has no runtime_{test.stem}: build it with -DTESSERA_BUILD_TESTS=ON")
        targets[target] = test.stem
    programs = []
    for line in ninja_commands(build, *targets):
        output = re.search(r" -o (\S+)", line)
        if not output or output[1] not in targets:
            continue
        arguments = shlex.split(re.sub(r"^: && | && :$", "", line))
        program = work / targets[output[1]]
        arguments[arguments.index("-o") + 1] = str(program)
        library = next(i for i, argument in enumerate(arguments) if argument.endswith("libtessera.a"))
        arguments[library:library] = objects
        subprocess.run(arguments, check=True, cwd=build)
        programs.append(program)
    return sorted(programs)


def likely(programs: list[Path], mutant: Mutant) -> list[Path]:
    """The program that is named after the mutant's file first, then that of the checks."""
    stem = Path(mutant.file).stem
    return sorted(
        programs, key=lambda program: (not program.name.startswith(stem), "check" not in program.name)
    )


def fails(program: Path, number: int, cwd: Path, timeout: float = 15, **environment: str) -> bool:
    """Whether the program does, or does not end, while this mutant is alive (none is, at -1)."""
    litter = dict.fromkeys(("TMPDIR", "TEST_TMPDIR"), str(cwd / "tmp"))  # of programs that mutants end
    try:
        run = subprocess.run(
            [str(program), "--gtest_brief=1", "--gtest_fail_fast"],
            env={**os.environ, **litter, "TESSERA_MUTANT": str(number), **environment},
            cwd=cwd,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return run.returncode != 0


Reach = dict[Path, dict[int, list[str]]]  # the tests of a program that reach a mutant


def reach_of(program: Path, cwd: Path) -> dict[int, list[str]]:
    """Runs the program without any mutant."""
    file = program.with_suffix(".reach")
    file.unlink(missing_ok=True)
    if fails(program, -1, cwd, timeout=300, TESSERA_MUTANT_REACH=str(file)):
        sys.exit(f"guards.py: {program.name} fails without any mutant")
    found: dict[int, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        test, *numbers = line.split()
        for number in numbers:
            found.setdefault(int(number), []).append(test)
    return found


def passes_alone(one: tuple[Path, tuple[str, ...]], cwd: Path) -> bool:
    """Whether tests of a program pass without its others, and without any mutant."""
    program, tests = one
    return not fails(program, -1, cwd, GTEST_FILTER=":".join(tests))


def killer(programs: list[Path], reach: Reach, number: int, cwd: Path) -> str | None:
    """The test program that fails while this mutant is alive."""
    for program in programs:
        tests = reach[program].get(number)
        if tests and fails(program, number, cwd, GTEST_FILTER=":".join(tests)):
            return program.name
    # Tests may reach it in another way than they did alone.
    return next((program.name for program in programs if fails(program, number, cwd)), None)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="a Ninja build directory with its tests built")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    arguments = parser.parse_args()

    build = arguments.build.resolve()
    work = build / "test" / "mutation"
    shutil.rmtree(work / "tmp", ignore_errors=True)
    (work / "tmp").mkdir(parents=True)
    mutator = Mutator()
    objects = compile_mutants(build, mutator, work)
    if arguments.list:
        for mutant in mutator.mutants:
            print(f"{mutant.number:4}  {mutant.file}:{mutant.line}  {mutant.text}")
        return 0
    objects.append(compile_reach(build, len(mutator.mutants), work))
    programs = link_tests(build, objects, work)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        reach = dict(zip(programs, pool.map(lambda program: reach_of(program, work), programs)))
        alive = [one for one in mutator.mutants if (one.number + sampling.SEED) % DAYS == 0]
        alone = {
            (program, tuple(reach[program][one.number]))
            for program in programs
            for one in alive
            if one.number in reach[program]
        }
        for (program, tests), passes in zip(alone, pool.map(lambda one: passes_alone(one, work), alone)):
            if not passes:
                sys.exit(f"guards.py: {program.name} fails with these tests alone: {':'.join(tests)}")
        killers = list(pool.map(lambda one: killer(likely(programs, one), reach, one.number, work), alive))
    survivors = [mutant for mutant, by in zip(alive, killers) if by is None]
    for mutant in survivors:
        print(f"survived: {mutant.file}:{mutant.line}: {mutant.text}")
    print(f"{len(alive)} of {len(mutator.mutants)} guards and clauses weakened, {len(survivors)} survived")
    print(sampling.about())
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
