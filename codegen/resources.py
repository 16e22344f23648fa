# SPDX-License-Identifier: MIT
"""Registers, LDS and scratch of built kernels, and the checks that they spill nothing and find room.

    python -m codegen.resources --target gfx942 OBJECT ...

checks code objects, or images for NVIDIA, each named after its instance; the build does so before it packs
them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from codegen import Refused, staggered, unknown
from codegen.elf import CodeObject
from codegen.machine_code import Counts, Instruction, clusters, gaps, instructions, main_loop
from codegen.ops.mla_prefill_cdna import CdnaTile
from codegen.ptxas import Assembled, is_image, read_assembled
from codegen.schedule import VALU, Law
from codegen.spec import symbol_of
from codegen.targets import TARGETS, CdnaTarget

# Pipelines whose main loop is planned, as names of instances have them, and cycles of the VALU port beyond a
# gap's room that the compiler may take, where it makes an address anew.
PLANNED = {"qr_bundled": 0, "kr_ktr_vr_bundled": VALU}
CLUSTERED = ("hk_prefill",)  # those whose main loop is in clusters
STAGGERED = re.compile(r"_staggered(_persistent1)?(_es\d)?(_qt(\d))?$")  # names of mla_prefill's
CLUSTERS = 8  # of a round: products and accesses in turns
TRANSCENDENTAL = re.compile("v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
WIDE = re.compile("v_mfma_(scale_)?f32_32x32x64_")  # products that take twice as long
PACKED = re.compile("v_pk_(fma|mul|add)_f32")


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel."""

    name: str  # its instance
    target: CdnaTarget
    vgprs: int  # AGPRs among them
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    threads: int
    code: bytes

    @cached_property
    def loop(self) -> Counts | None:
        """Instructions of one round of the main loop, if there is a loop with MFMA."""
        return main_loop(instructions(self.code, self.target.name))

    @property
    def waves(self) -> int:
        """The waves of a SIMD that registers and LDS leave room for."""
        granule = self.target.register_granule
        allocated = max(-(-self.vgprs // granule) * granule, granule)
        waves = self.threads // 64
        workgroups = self.target.workgroups(waves, self.target.registers // allocated, self.lds_bytes)
        return -(-workgroups * waves // self.target.simds)

    @property
    def row(self) -> dict[str, object]:
        """Of the report."""
        row: dict[str, object] = {
            "name": self.name,
            "target": self.target.name,
            "vgprs": self.vgprs,
            "agprs": self.agprs,
            "sgprs": self.sgprs,
            "lds": self.lds_bytes,
            "scratch": self.scratch_bytes,
            "code": len(self.code),
            "waves_per_simd": self.waves,
        }
        for field in fields(Counts):
            row[f"loop_{field.name}"] = None if self.loop is None else getattr(self.loop, field.name)
        return row

    def notes(self) -> list[str]:
        """What the report's reader may wonder at."""
        return [f"{self.name} has no loop with MFMA"] if self.loop is None else []

    def complaints(self) -> list[str]:
        """Faults of the kernel: spills, scratch, or no room."""
        found = []
        if self.vgpr_spills or self.sgpr_spills:
            found.append(f"spills {self.vgpr_spills} VGPRs and {self.sgpr_spills} SGPRs")
        if self.scratch_bytes:
            found.append(f"takes {self.scratch_bytes} bytes of scratch a thread")
        if self.lds_bytes > self.target.lds_bytes:
            found.append(
                f"takes {self.lds_bytes} bytes of LDS, {self.target.name} has {self.target.lds_bytes}"
            )
        return [*found, *self._broken_order(), *self._broken_clusters(), *self._broken_stagger()]

    def _broken_order(self) -> Iterator[str]:
        """Where the compiler has broken the order of a planned main loop."""
        planned = next((pipeline for pipeline in PLANNED if f"_{pipeline}" in self.name), None)
        if planned is None:
            return
        code = instructions(self.code, self.target.name)
        between = gaps(code)
        if not between:
            yield "has no main loop"
            return
        everything = [instruction for gap in between for instruction in gap]
        wide = any(WIDE.match(instruction.name) for instruction in code)
        law = Law(self.target.product * (2 if wide else 1), self.target.matrix_port, waves=1)
        room = law.shared_by(sum(map(self._port, everything)), len(between)).room + PLANNED[planned]
        for gap in between:
            port = sum(self._port(instruction) for instruction in gap)
            if port > room:
                at = f"{gap[0].place:#x}"
                yield f"holds the VALU port for {port} cycles at {at}, behind an MFMA that leaves {room}"
        if any(PACKED.match(instruction.name) for instruction in everything):
            yield "has packed fp32 instructions in its main loop, which wait for MFMA"
        # Where V goes straight to LDS, all loads are for the next step, and wait for one another once a step.
        if not self.target.transposing_reads and any(i.under_way == 0 for i in everything):
            yield "waits in its main loop until no load is under way"

    def _broken_clusters(self) -> Iterator[str]:
        """Where a main loop in clusters has an instruction in a cluster that is not for it."""
        if not any(f"_{pipeline}" in self.name for pipeline in CLUSTERED):
            return
        found = clusters(instructions(self.code, self.target.name))
        if len(found) != CLUSTERS:
            yield f"has {len(found)} clusters in its main loop, not {CLUSTERS}"
            return
        for n, cluster in enumerate(found):
            counts = sum((instruction.counts for instruction in cluster), Counts())
            waits = [instruction for instruction in cluster if instruction.name == "s_waitcnt"]
            if len(waits) != 1:
                yield f"has {len(waits)} waits in cluster {n}, not 1"
            if n % 2 == 0 and (not counts.mfma or counts.lds or counts.memory):
                yield (
                    f"has {counts.mfma} products, {counts.lds} accesses of LDS and {counts.memory} of memory "
                    f"in cluster {n}, which is for products alone"
                )
            if n % 2 and (counts.mfma or not counts.lds or not counts.memory):
                yield (
                    f"has {counts.mfma} products, {counts.lds} accesses of LDS and {counts.memory} of memory "
                    f"in cluster {n}, which is for accesses alone"
                )
            if any(wait.under_way == 0 for wait in waits):
                yield f"waits in cluster {n} until no load is under way"
            if any(PACKED.match(instruction.name) for instruction in cluster):
                yield f"has packed fp32 instructions in cluster {n}, which wait for MFMA"

    def _broken_stagger(self) -> Iterator[str]:
        """Where pipeline staggered has no room for its waves, or its loop is not made of its clusters."""
        if not (named := STAGGERED.search(self.name)):
            return
        if self.waves < CdnaTile.occupancy:
            yield f"takes {self.vgprs} registers, which leave room for {self.waves} waves of a SIMD"
        reads_v_early = named[4] == "1" if named[4] else not named[1]
        yield from staggered.complaints(instructions(self.code, self.target.name), reads_v_early)

    def _port(self, instruction: Instruction) -> int:
        """Cycles for which an instruction that is no MFMA holds the VALU port."""
        if TRANSCENDENTAL.match(instruction.name):
            return self.target.transcendental
        return VALU * instruction.counts.valu


def read_resources(file: Path, target: str = "") -> Resources:
    """The resources of the one kernel of a code object, which is named after its instance."""
    kernel = read_kernel(file, target)
    if isinstance(kernel, Assembled):
        raise Refused(f"{file} is an image for NVIDIA, no code object")
    return kernel


def read_kernel(file: Path, target: str = "") -> Resources | Assembled:
    """The one kernel of a code object or an image, which is named after its instance."""
    try:
        data = file.read_bytes()
        if is_image(data):
            return read_assembled(file, target)
        return _resources(file.stem, CodeObject(data), target)
    except OSError as error:
        raise Refused(f"cannot read {error.filename}: {error.strerror}") from None
    except Refused as refused:
        raise Refused(f"{file} {refused}") from None
    except (KeyError, TypeError, AttributeError):
        raise Refused(f"{file} has metadata of another form") from None


def _resources(name: str, code: CodeObject, target: str) -> Resources:
    made_for = str(code.metadata["amdhsa.target"]).rpartition("-")[2]
    page = TARGETS.get(target or made_for)
    if not isinstance(page, CdnaTarget):
        cdna = (name for name, page in TARGETS.items() if isinstance(page, CdnaTarget))
        raise Refused(unknown("target", target or made_for, cdna))
    if made_for != page.name:
        raise Refused(f"is for {made_for}, not for {page.name}")
    symbol = symbol_of(name)
    kernels: list[dict[str, Any]] = code.metadata["amdhsa.kernels"]
    if [kernel[".name"] for kernel in kernels] != [symbol]:
        there = ", ".join(str(kernel[".name"]) for kernel in kernels) or "none"
        raise Refused(f"must have the one kernel {symbol}; it has: {there}")
    (kernel,) = kernels
    return Resources(
        name,
        page,
        vgprs=kernel[".vgpr_count"],
        agprs=kernel[".agpr_count"],
        sgprs=kernel[".sgpr_count"],
        lds_bytes=kernel[".group_segment_fixed_size"],
        scratch_bytes=kernel[".private_segment_fixed_size"],
        vgpr_spills=kernel[".vgpr_spill_count"],
        sgpr_spills=kernel[".sgpr_spill_count"],
        threads=kernel[".max_flat_workgroup_size"],
        code=code.functions[symbol],
    )


def report(folder: Path, progress: Callable[[int, int], None]) -> tuple[list[dict[str, object]], list[str]]:
    """A row for each code object or image (*.co) in a folder and below it, and notes about the folder.

    It takes a while: `progress` gets the number of files done, and of all.
    """
    rows: list[dict[str, object]] = []
    notes = list(_differences(folder))
    files = sorted(folder.rglob("*.co"), key=lambda file: (file.parent, file.name))
    for done, file in enumerate(files, 1):
        kernel = read_kernel(file)
        try:
            rows.append(kernel.row)
        except Refused as refused:
            raise Refused(f"{file} {refused}") from None
        notes.extend(kernel.notes())
        progress(done, len(files))
    if not rows:
        raise Refused(f"there is no code object (*.co) in {folder}; a build leaves them in device/")
    return rows, notes


def _differences(folder: Path) -> Iterator[str]:
    """Notes where the code objects of a build are not those of its lists of sources."""
    listed: set[str] = set()
    for file in sorted(folder.rglob("*_sources.txt")):
        lines = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
        listed |= {Path(line[0]).stem for line in lines if line[1:2] not in ([], ["host"])}
    built = {file.stem for file in folder.rglob("*.co")}
    if listed:
        yield from (f"{name} is not built" for name in sorted(listed - built))
        yield from (f"{name} is left from an earlier build" for name in sorted(built - listed))


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(
        prog="codegen.resources", description="Checks code objects and images.", allow_abbrev=False
    )
    parser.add_argument("--target", required=True, help="what they must be for")
    parser.add_argument("objects", nargs="+", type=Path, metavar="OBJECT", help="named after its instance")
    options = parser.parse_args(arguments)
    status = 0
    for file in options.objects:
        try:
            complaints = read_kernel(file, options.target).complaints()
        except Refused as refused:
            complaints = [str(refused)]
        for complaint in complaints:
            print(f"{file.stem}: {complaint}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
