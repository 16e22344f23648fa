# SPDX-License-Identifier: MIT
"""Random C programs give the same on the simulator as on the host.

TESSERA_SIM_PROGRAMS sets how many there are of a kind (a compiler, an architecture, an optimization level),
TESSERA_SIM_SEED the first one's seed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import generator
import pytest
import toolchain
from sampling import sample_each
from sim import LANDINGS, ORDERS, Sim, SimError, pack

PROGRAMS = int(os.environ.get("TESSERA_SIM_PROGRAMS", "40"))
SEED = int(os.environ.get("TESSERA_SIM_SEED", "0"))
OUTPUT_BYTES = generator.ITEMS * generator.OUTPUTS * 8
UNTOUCHED = b"\xcd" * OUTPUT_BYTES

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)


class Suite:
    """One source file of programs, and what they give on the host."""

    def __init__(self, folder: Path, seeds: range) -> None:
        self.folder, self.seeds = folder, seeds
        self.source = folder / "programs.c"
        self.source.write_text(generator.source(seeds))
        host = ctypes.CDLL(str(toolchain.build_host(self.source, folder / "host.so")))
        self.expected = {}
        for seed in seeds:
            out = ctypes.create_string_buffer(UNTOUCHED, OUTPUT_BYTES)
            getattr(host, f"p{seed}")(generator.inputs(seed), out)
            self.expected[seed] = out.raw


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return Suite(tmp_path_factory.mktemp("generated"), range(SEED, SEED + PROGRAMS))


def _first_difference(got: bytes, expected: bytes) -> str:
    at = next(i for i in range(0, OUTPUT_BYTES, 8) if got[i : i + 8] != expected[i : i + 8])
    item, word = divmod(at // 8, generator.OUTPUTS)
    values = [hex(int.from_bytes(b[at : at + 8], "little")) for b in (got, expected)]
    return f"work-item {item}, output {word}: {values[0]}, on the host {values[1]}"


def _failures(suite: Suite, sim: Sim, image: bytes, seeds: range, **how: int) -> Iterator[str]:
    module = sim.load(image)
    for seed in seeds:
        given, out = sim.upload(generator.inputs(seed)), sim.upload(UNTOUCHED)
        grid, block, args = (generator.ITEMS, 1, 1), (generator.BLOCK, 1, 1), pack(given, out, layout="PP")
        try:
            sim.launch(module, f"p{seed}", grid, block, args, max_instructions=10_000_000, **how)
        except SimError as error:
            yield f"p{seed}: {error}"
            continue
        got = sim.download(out, OUTPUT_BYTES)
        if got != suite.expected[seed]:
            yield f"p{seed}: {_first_difference(got, suite.expected[seed])}"


def _kinds() -> list[tuple[toolchain.Compiler, str, str]]:
    levels = ("-O0", "-O1", "-O2", "-O3")
    kinds = [(c, arch, level) for c in toolchain.compilers() for arch in c.archs for level in levels]
    return sample_each(kinds, lambda kind: kind[1])


@pytest.mark.parametrize(("compiler", "arch", "level"), _kinds(), ids=lambda v: getattr(v, "name", v))
def test_same_as_host(
    suite: Suite, library: Path, compiler: toolchain.Compiler, arch: str, level: str
) -> None:
    output = suite.folder / f"{compiler.name}{arch}{level}.co"
    image = toolchain.build_device(compiler, suite.source, arch, [level], output)
    with Sim(library, arch) as sim:
        failures = list(_failures(suite, sim, image, suite.seeds))
    with Sim(library, arch, sanitize=True) as sim:  # and nothing to report, whatever the order
        for at, (order, landing) in enumerate(itertools.product(ORDERS.values(), LANDINGS.values())):
            some = suite.seeds[at :: len(ORDERS) * len(LANDINGS)]
            failures += _failures(suite, sim, image, some, order=order, landing=landing, seed=at)
    assert not failures, "\n".join(failures)


def test_generation_repeats() -> None:
    assert generator.source(range(3)) == generator.source(range(3))
