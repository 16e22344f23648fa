# SPDX-License-Identifier: MIT
"""libtessera_sim from Python: what tests need of include/tessera/simulator.h."""

from __future__ import annotations

import ctypes as c
import os
import struct
from dataclasses import dataclass
from pathlib import Path

ARCHS = ("gfx90a", "gfx942", "gfx950")
ORDERS = {"forward": 1, "backward": 2, "alternate": 3, "random": 4}  # tessera_sim_order
LANDINGS = {"late": 1, "at-once": 2, "random": 3}  # tessera_sim_landing


class SimError(Exception):
    """A call into the library failed; the text is its last error."""


class _Report(c.Structure):
    _fields_ = [
        ("fault", c.c_int),
        ("kernel", c.c_char_p),
        ("workgroup", c.c_uint32 * 3),
        ("wave", c.c_uint32),
        ("lane", c.c_int32),
        ("pc", c.c_uint64),
        ("function", c.c_char_p),
        ("function_offset", c.c_uint64),
        ("instruction", c.c_char_p),
        ("address", c.c_uint64),
        ("text", c.c_char_p),
    ]


class _LaunchArgs(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("grid", c.c_uint32 * 3),
        ("block", c.c_uint32 * 3),
        ("dynamic_lds_bytes", c.c_uint32),
        ("stack_bytes", c.c_uint32),
        ("kernarg", c.c_char_p),
        ("kernarg_bytes", c.c_size_t),
        ("max_instructions", c.c_uint64),
        ("order", c.c_int),
        ("landing", c.c_int),
        ("seed", c.c_uint64),
    ]


class _Stats(c.Structure):
    _fields_ = [
        (name, c.c_uint64)
        for name in ("waves", "instructions", "scalar", "vector", "matrix", "lds", "memory")
    ]


CLOCKS = {"off": 0, "on": 1, "sample": 2}  # tessera_sim_clock
OUTPUTS = ("timing", "annotation", "timeline")  # tessera_sim_output
CAUSES = ("mfma", "valu", "transcendental", "lds", "memory", "barrier", "issue", "idle")  # tessera_sim_cause
LEVELS = ("l1", "l2", "mall", "hbm")  # tessera_sim_level


class Timing(c.Structure):
    """tessera_sim_timing."""

    _fields_ = [
        ("launches", c.c_uint64),
        *((name, c.c_double) for name in ("cycles", "ms", "ms_band", "clock_mhz", "sampling_error")),
        ("share", c.c_double * len(CAUSES)),
        *((name, c.c_double) for name in ("valu_busy", "matrix", "cycles_a_matrix", "waves_a_simd")),
        *((name, c.c_double) for name in ("lds_cycles", "lds_conflicts")),
        ("bytes", c.c_double * len(LEVELS)),
    ]

    def share_of(self, cause: str) -> float:
        return float(self.share[CAUSES.index(cause)])

    def bytes_of(self, level: str) -> float:
        return float(self.bytes[LEVELS.index(level)])


class _Parameter(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("value", c.c_uint32),
        *((name, c.c_char_p) for name in ("unit", "meaning", "source", "fit")),
    ]


@dataclass(frozen=True)
class Parameter:
    """tessera_sim_parameter."""

    name: str
    value: int
    unit: str
    meaning: str
    source: str
    fit: str


_ReportFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(_Report))


@dataclass(frozen=True)
class Report:
    """A fault, as tessera_sim_report tells it."""

    fault: str
    kernel: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    pc: int
    function: str
    instruction: str
    address: int
    text: str


def find_library() -> Path | None:
    """The built library: TESSERA_SIM_LIBRARY, or in the build directory."""
    named = os.environ.get("TESSERA_SIM_LIBRARY")
    if named:
        return Path(named)
    root = Path(__file__).resolve().parents[2]
    built = os.environ.get("TESSERA_BUILD_DIR")
    folders = [Path(built)] if built else sorted(root.glob("build*"))
    return next((file for folder in folders if (file := folder / "libtessera_sim.so").exists()), None)


class Sim:
    """A simulated GPU. Buffers live as long as it does."""

    def __init__(self, library: Path, arch: str, threads: int = 1, sanitize: bool | None = None) -> None:
        self._lib = c.CDLL(str(library))
        for name in ("last_error", "fault_string"):
            getattr(self._lib, f"tessera_sim_{name}").restype = c.c_char_p
        self._lib.tessera_sim_kernel_find.restype = c.c_void_p
        self._lib.tessera_sim_parameter_at.restype = c.c_bool
        self._sim = c.c_void_p()
        self._check(self._lib.tessera_sim_open(arch.encode(), c.byref(self._sim)))
        self._check(self._lib.tessera_sim_set_threads(self._sim, threads))
        if sanitize is not None:  # else what the environment says
            self.set_sanitize(sanitize)
        self.reports: list[Report] = []
        self._callback = _ReportFn(self._on_report)
        self._lib.tessera_sim_set_report(self._sim, self._callback, None)
        self.instructions = 0

    def __enter__(self) -> Sim:
        return self

    def __exit__(self, *_: object) -> None:
        self._lib.tessera_sim_close(self._sim)

    def _check(self, status: int) -> None:
        if status != 0:
            raise SimError(self._lib.tessera_sim_last_error().decode(errors="replace"))

    def _on_report(self, _user: c.c_void_p, report: object) -> None:
        r = report.contents  # type: ignore[attr-defined]
        self.reports.append(
            Report(
                fault=self._lib.tessera_sim_fault_string(r.fault).decode(errors="replace"),
                kernel=r.kernel.decode(errors="replace"),
                workgroup=tuple(r.workgroup),
                wave=r.wave,
                lane=r.lane,
                pc=r.pc,
                function=r.function.decode(errors="replace"),
                instruction=r.instruction.decode(errors="replace"),
                address=r.address,
                text=r.text.decode(errors="replace"),
            )
        )

    def set_sanitize(self, on: bool) -> None:
        self._lib.tessera_sim_set_sanitize(self._sim, c.c_bool(on))

    def set_trace(self, path: Path | None) -> None:
        self._check(self._lib.tessera_sim_set_trace(self._sim, str(path).encode() if path else None))

    def set_clock(self, mode: str) -> None:
        self._check(self._lib.tessera_sim_set_clock(self._sim, CLOCKS[mode]))

    def set_output(self, output: str, path: Path | None) -> None:
        text = str(path).encode() if path else None
        self._check(self._lib.tessera_sim_set_output(self._sim, OUTPUTS.index(output), text))

    def take_timing(self) -> Timing:
        timing = Timing()
        self._lib.tessera_sim_take_timing(self._sim, c.byref(timing))
        return timing

    def parameters(self) -> list[Parameter]:
        """The clock's table."""
        rows: list[Parameter] = []
        row = _Parameter()
        while self._lib.tessera_sim_parameter_at(self._sim, c.c_size_t(len(rows)), c.byref(row)):
            texts = (text.decode() for text in (row.unit, row.meaning, row.source, row.fit))
            rows.append(Parameter(row.name.decode(), row.value, *texts))
        return rows

    def malloc(self, size: int) -> int:
        out = c.c_void_p()
        self._check(self._lib.tessera_sim_malloc(self._sim, c.c_size_t(size), c.byref(out)))
        return out.value or 0

    def free(self, address: int) -> None:
        self._check(self._lib.tessera_sim_free(self._sim, c.c_void_p(address)))

    def upload(self, data: bytes) -> int:
        address = self.malloc(len(data))
        self.write(address, data)
        return address

    def write(self, address: int, data: bytes) -> None:
        c.memmove(address, data, len(data))
        self._lib.tessera_sim_mark_defined(self._sim, c.c_void_p(address), c.c_size_t(len(data)))

    def download(self, address: int, size: int) -> bytes:
        return c.string_at(address, size)

    def load(self, image: bytes) -> c.c_void_p:
        out = c.c_void_p()
        self._check(self._lib.tessera_sim_load(self._sim, image, c.c_size_t(len(image)), c.byref(out)))
        return out

    def unload(self, module: c.c_void_p) -> None:
        self._lib.tessera_sim_unload(module)

    def find_global(self, module: c.c_void_p, name: str) -> tuple[int, int]:
        address, size = c.c_void_p(), c.c_size_t()
        self._check(self._lib.tessera_sim_global(module, name.encode(), c.byref(address), c.byref(size)))
        return address.value or 0, size.value

    def launch(
        self,
        module: c.c_void_p,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        kernarg: bytes,
        *,
        dynamic_lds: int = 0,
        max_instructions: int = 0,
        order: int = 0,
        landing: int = 0,
        seed: int = 0,
    ) -> dict[str, int]:
        """What it issued, by classes."""
        found = self._lib.tessera_sim_kernel_find(module, kernel.encode())
        if not found:
            raise SimError(f"no kernel {kernel}")
        args = _LaunchArgs(
            struct_size=c.sizeof(_LaunchArgs),
            grid=(c.c_uint32 * 3)(*grid),
            block=(c.c_uint32 * 3)(*block),
            dynamic_lds_bytes=dynamic_lds,
            kernarg=kernarg,
            kernarg_bytes=len(kernarg),
            max_instructions=max_instructions,
            order=order,
            landing=landing,
            seed=seed,
        )
        stats = _Stats()
        status = self._lib.tessera_sim_launch(c.c_void_p(found), c.byref(args), c.byref(stats))
        self.instructions += stats.instructions
        self._check(status)
        return {name: int(getattr(stats, name)) for name, _ in _Stats._fields_}


def pack(*values: int | float, layout: str) -> bytes:
    """Kernel arguments: one letter of `struct` each, aligned as C aligns them."""
    return struct.pack("@" + layout, *values)
