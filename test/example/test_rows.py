# SPDX-License-Identifier: MIT
"""The programs of the operations on rows from the outside: arguments, output, JSON, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
LAYERNORM, RMSNORM = "tile_example_layernorm2d_fwd", "tile_rmsnorm2d_fwd"
RDQUANT, SMOOTHQUANT = "tile_add_rmsnorm2d_rdquant_fwd", "tile_smoothquant"
MOE = "tile_example_moe_smoothquant"
FOLDERS = {
    LAYERNORM: "02_layernorm2d",
    RMSNORM: "10_rmsnorm2d",
    RDQUANT: "11_add_rmsnorm2d_rdquant",
    SMOOTHQUANT: "12_smoothquant",
    MOE: "14_moe_smoothquant",
}
PROGRAMS = list(FOLDERS)
NUMBERS = r", \d+\.\d{3} us, \d+\.\d{2} GB/s"

pytestmark = pytest.mark.skipif(
    not all((BIN / program).exists() for program in PROGRAMS), reason=f"they are not all built in {BIN}"
)


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )


def small(program: str, m: int = 5, n: int = 70) -> list[str]:
    sizes = [f"-t={m}", f"-h={n}", "-e=3", "-k=2"] if program == MOE else [f"-m={m}", f"-n={n}"]
    return [*sizes, "-warmup=0", "-repeat=1"]


def line_of(program: str, *arguments: str) -> str:
    done = run(program, *small(program), *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout


def result_of(folder: Path, program: str, *arguments: str, code: int = 0, **variables: str) -> Any:
    path = folder / "result.json"
    done = run(program, *small(program), *arguments, "-json=1", f"-jsonfile={path}", **variables)
    assert done.returncode == code, done.stderr
    return json.loads(path.read_text())


# --- the line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "arguments", "want"),
    [
        (LAYERNORM, [], "[fp16] m:5, n:70, x_stride:70, xr_stride:70, y_stride:70, yr_stride:70"),
        (
            LAYERNORM,
            ["-prec_i=bf16", "-prec_o=int8", "-fquant=1", "-x_stride=80", "-xr_stride=0", "-y_stride=71"],
            "[bf16|int8(fp32)] m:5, n:70, x_stride:80, xr_stride:0, y_stride:71, yr_stride:70",
        ),
        (LAYERNORM, ["-prec_i=fp32", "-prec_o=fp32"], "[fp32] m:5"),
        (
            RMSNORM,
            ["-prec_o=fp8", "-fquant=2", "-s=1", "-save_unquant=t"],
            "[fp16|fp8] m:5, n:70, x_stride:70, xr_stride:70, y_stride:70, yr_stride:70, s:1",
        ),
        (RDQUANT, ["-stride=72"], "[fp16, int8] m:5, n:70, stride:72"),
        (RDQUANT, ["-prec=bf16", "-quant=fp8", "-save_x=0"], "[bf16, fp8] m:5, n:70, stride:70"),
        (SMOOTHQUANT, ["-x_stride=99"], "[fp16] m:5, n:70, x_stride:99, y_stride:70"),
        (MOE, ["-stride=75"], "[fp16-int8] tokens:5, hidden_size:70, stride:75, experts:3, topk:2"),
    ],
)
def test_line_is_that_of_ck(program: str, arguments: list[str], want: str) -> None:
    name = r", (add_rmsnorm2d_rdquant|\w+norm2d_fwd|(moe_)?smoothquant)\w*__\w+"
    line = line_of(program, *arguments)
    assert line.startswith(want) and re.search(name + NUMBERS + r", valid:y\n$", line), line


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernel_names(program: str) -> None:
    none, full = line_of(program, "-kname=0", "-v=0"), line_of(program, "-kname=2", "-v=0")
    assert "smoothquant" not in none and "norm2d" not in none and "__" not in full
    assert re.search(r", \w+(norm2d_fwd|quant)_\w+" + NUMBERS + r"\n$", full), full


@pytest.mark.parametrize("program", PROGRAMS)
def test_readme_has_the_help(program: str) -> None:
    done = run(program, "-?")
    assert done.returncode == 0 and not done.stderr
    assert f"```\n{done.stdout}```\n" in (ROOT / "example" / FOLDERS[program] / "README.md").read_text()


def test_defaults_are_those_of_ck(tmp_path: Path) -> None:
    for program, want in {
        LAYERNORM: "[fp16] m:3328, n:4096, x_stride:4096, xr_stride:4096, y_stride:4096, yr_stride:4096",
        RMSNORM: "[fp16] m:3328, n:4096, x_stride:4096, xr_stride:4096, y_stride:4096, yr_stride:4096, s:0",
        RDQUANT: "[fp16, int8] m:3328, n:4096, stride:4096",
        SMOOTHQUANT: "[fp16] m:3328, n:4096, x_stride:4096, y_stride:4096",
        MOE: "[fp16-int8] tokens:3328, hidden_size:4096, stride:4096, experts:32, topk:5",
    }.items():
        path = tmp_path / program
        done = run(program, "-v=0", "-warmup=0", "-repeat=1", "-json=1", f"-jsonfile={path}")
        assert done.returncode == 0 and done.stdout.startswith(want + ", "), done
        result = json.loads(path.read_text())
        assert result["verification"] == "skipped" and "elements_wrong" not in result
        assert result.get("e", 1e-5) == pytest.approx(1e-5) or program == MOE


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "arguments", "names"),
    [
        (LAYERNORM, ["-stride=80"], ["-stride", "no such argument"]),
        (LAYERNORM, ["-m=-1"], ["-m=-1", "0 or more"]),
        (LAYERNORM, ["-n=0"], ["-n=0", "at least 1"]),
        (LAYERNORM, ["-n=7x"], ["-n=7x", "32-bit integer"]),
        (LAYERNORM, ["-fadd=3"], ["-fadd=3", "0, 1 or 2"]),
        (LAYERNORM, ["-fquant=-1"], ["-fquant=-1", "0, 1 or 2"]),
        (LAYERNORM, ["-v=2"], ["-v=2", "0 or 1"]),
        (LAYERNORM, ["-prec_i=int8"], ["-prec_i=int8", "bf16"]),
        (LAYERNORM, ["-prec_o=fp64"], ["-prec_o=fp64", "int8", "auto"]),
        (LAYERNORM, ["-prec_o=bf16"], ["prec_o is bf16", "fp16"]),
        (LAYERNORM, ["-fquant=1"], ["prec_o is fp16", "int8"]),
        (LAYERNORM, ["-prec_sm=fp16"], ["-prec_sm=fp16", "fp32"]),
        (LAYERNORM, ["-prec_sy=fp16"], ["-prec_sy=fp16", "fp32"]),
        (LAYERNORM, ["-e=nan"], ["epsilon is nan"]),
        (LAYERNORM, ["-e=-1"], ["epsilon is -1"]),
        (LAYERNORM, ["-x_stride=-2"], ["-x_stride=-2", "-1"]),
        (LAYERNORM, ["-y_stride=69"], ["y_stride is 69", "70"]),
        (LAYERNORM, ["-fadd=1", "-yr_stride=0"], ["yr_stride is 0", "70"]),
        (LAYERNORM, ["-m=2000000000", "-n=2000000000"], ["-m=2000000000 -n=2000000000", "64 bits"]),
        (LAYERNORM, ["-m=100000000", "-n=4096"], ["-m=100000000", "GB"]),
        (RMSNORM, ["-save_unquant=1"], ["save_unquant is 1", "fused_quant"]),
        (RMSNORM, ["-s=2"], ["-s=2", "0 or 1"]),
        (RMSNORM, ["-xbias=1"], ["-xbias", "no such argument"]),
        (RDQUANT, ["-prec=fp8"], ["-prec=fp8", "bf16"]),
        (RDQUANT, ["-quant=fp16"], ["-quant=fp16", "int8"]),
        (RDQUANT, ["-stride=69"], ["is 69", "70"]),
        (SMOOTHQUANT, ["-prec_o=fp16"], ["-prec_o=fp16", "int8"]),
        (MOE, ["-k=4"], ["-k=4", "-e=3"]),
        (MOE, ["-k=0"], ["-k=0", "-e=3"]),
        (MOE, ["-e=0"], ["-e=0", "at least 1"]),
        (MOE, ["-t=-1"], ["-t=-1"]),
        (MOE, ["-h=0"], ["-h=0"]),
        (MOE, ["-t=2000000000"], ["-t=2000000000", "2147483647"]),
    ],
    ids=" ".join,
)
def test_wrong_arguments(program: str, arguments: list[str], names: list[str]) -> None:
    done = run(program, *small(program), *arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"{program}: ") and done.stderr.count("\n") == 1
    for name in names:
        assert name in done.stderr, done.stderr


def test_other_exit_codes() -> None:
    done = run(LAYERNORM, *small(LAYERNORM), "-instance=nobody")
    assert done.returncode == 2 and "-instance=nobody" in done.stderr
    none = {"TESSERA_HIP_LIBRARY": "/nonexistent/hip"}
    assert run(LAYERNORM, *small(LAYERNORM), "-device=hip:0", **none).returncode == 4


# --- sizes and strides --------------------------------------------------------------------------------------


def test_no_rows_and_one_column() -> None:
    for program in PROGRAMS:
        for m, n in ((0, 70), (1, 1), (3, 1)):
            done = run(program, *small(program, m, n))
            assert done.returncode == 0 and ", valid:y\n" in done.stdout, done


def test_json(tmp_path: Path) -> None:
    quantized = ["-fquant=1", "-prec_o=int8", "-fadd=1", "-y_stride=80"]
    result = result_of(tmp_path, RMSNORM, *quantized, "-save_rms=1", "-save_unquant=1", "-seed=3")
    for key, value in {
        "name": "rmsnorm2d_fwd",
        "m": 5,
        "n": 70,
        "x_stride": 70,
        "y_stride": 80,
        "prec_i": "fp16",
        "prec_o": "int8",
        "fadd": 1,
        "fquant": 1,
        "save_rms": 1,
        "verification": "pass",
        "rows": 5,
        "rows_verified": 5,
        "elements_verified": 5 * (3 * 70 + 2),  # y, y_residual, y_unquant, y_scale and inv_rms
        "elements_wrong": 0,
        "message": "",
        "runs": 1,
    }.items():
        assert result[key] == value, key
    assert result["kernel"].startswith("rmsnorm2d_fwd__") and result["ck_name"].startswith("rmsnorm2d_fwd_")


@pytest.mark.parametrize(
    ("program", "arguments", "want"),
    [
        (LAYERNORM, ["-x_stride=100"], 5 * 70 * 2 * 2 + 2 * 70 * 2),
        (LAYERNORM, ["-xbias=1", "-fadd=1", "-save_mv=1"], 5 * 70 * 2 * 4 + 3 * 70 * 2 + 2 * 5 * 4),
        (RMSNORM, ["-fquant=1", "-prec_o=fp8"], 5 * 70 * 3 + 70 * 2 + 70 * 4 + 5 * 4),
        (RDQUANT, [], 5 * 70 * 7 + 70 * 2 + 5 * 4),
        (SMOOTHQUANT, ["-prec=fp32"], 5 * 70 * 5 + 70 * 4 + 5 * 4),
        (MOE, ["-k=3"], 5 * 70 * 2 + 3 * 70 * 4 + 5 * 3 * 4 + 15 * 70 + 15 * 4),
    ],
)
def test_bytes_are_those_that_move(tmp_path: Path, program: str, arguments: list[str], want: int) -> None:
    perf = result_of(tmp_path, program, *arguments)["perf"]
    assert perf["gb/s"] * perf["time"] * 1e6 == pytest.approx(want, rel=1e-4)


def test_seeds(tmp_path: Path) -> None:
    """Another seed is another problem, and a right one."""
    for program in PROGRAMS:
        for seed in (0, 1):
            assert result_of(tmp_path, program, f"-seed={seed}")["elements_wrong"] == 0


def test_explanation_and_a_kernel_by_its_name() -> None:
    done = run(LAYERNORM, *small(LAYERNORM), "-explain=1")
    chosen = re.match(r"\* (\S+) +cost ", done.stdout)
    assert chosen and f", {chosen[1]}, " in done.stdout
    last = re.findall(r"^[* ] (\S+) +cost ", done.stdout, re.M)[-1]
    assert f", {last}, " in line_of(LAYERNORM, f"-instance={last}")


def test_a_call_can_be_repeated_from_its_line() -> None:
    for program in PROGRAMS:
        done = run(program, *small(program), TESSERA_VERBOSE="1")
        told = re.fullmatch(r"tessera: \w+ cpu (\S+) (-.*) \d+\.\d{3} ms\n", done.stderr)
        assert told, done.stderr
        again = run(program, "-warmup=0", "-repeat=1", *told[2].split(), TESSERA_VERBOSE="1")
        assert again.returncode == 0 and f"{told[1]} {told[2]} " in again.stderr, again.stderr


# --- simulated GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
def test_simulated(program: str) -> None:
    for arguments in ([], ["-prec_o=fp8" if program == MOE else "-seed=2"]):
        words = [*small(program, n=72), "-device=sim:gfx942", *arguments]
        done = run(program, *words, TESSERA_SIM_SANITIZE="1")
        if (done.returncode == 4 and "simulator is not there" in done.stderr) or (
            done.returncode == 2 and "has none for gfx942" in done.stderr
        ):
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        modelled = r"modelled \d+ cycles, \d+\.\d{3} us \+-\d+ %, \d+\.\d\d GB/s"
        line = rf"__gfx942_\w+, simulated in \d+\.\d\d s of this machine, {modelled}, valid:y\n$"
        assert re.search(line, done.stdout)


def test_what_no_kernel_serves_is_said_as_ck_says_it() -> None:
    done = run(SMOOTHQUANT, *small(SMOOTHQUANT), "-prec_o=e4m3fnuz", "-device=cpu")
    assert done.returncode == 2 and done.stdout.endswith("y_stride:70 not supported!\n"), done
    assert "prec_o" in done.stderr


# --- what goes wrong inside ---------------------------------------------------------------------------------

# Stands between program and library: does what FAULT says to the result.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "tessera/layernorm2d_fwd.h"
#include "tessera/moe_smoothquant.h"

static int fault(const char *name) { const char *f = getenv("FAULT"); return f && strcmp(f, name) == 0; }

tessera_status tessera_layernorm2d_fwd(const tessera_device *d, const tessera_layernorm2d_fwd_traits *t,
                                       const tessera_layernorm2d_fwd_args *a, void *s) {
    tessera_status (*real)(const tessera_device *, const tessera_layernorm2d_fwd_traits *,
                           const tessera_layernorm2d_fwd_args *, void *);
    *(void **)&real = dlsym(RTLD_NEXT, "tessera_layernorm2d_fwd");
    tessera_status status = real(d, t, a, s);
    unsigned char *y = a->y_ptr, *sum = a->y_residual_ptr;
    if (fault("y")) y[141] ^= 1;
    if (fault("y_residual")) sum[2] ^= 1;
    if (fault("y_scale")) ((float *)a->y_scale_ptr)[3] *= 1.00001f;
    if (fault("mean")) ((float *)a->mean_ptr)[0] += 1e-5f;
    if (fault("invstd")) ((float *)a->invstd_ptr)[4] *= 1.0001f;
    if (fault("behind")) y[a->y_stride - 1] = 0;
    if (fault("guard")) y[-1] = 0;
    if (fault("input")) *(unsigned char *)(size_t)a->x_ptr ^= 1;
    return status;
}

tessera_status tessera_moe_smoothquant(const tessera_device *d, const tessera_moe_smoothquant_traits *t,
                                       const tessera_moe_smoothquant_args *a, void *s) {
    tessera_status (*real)(const tessera_device *, const tessera_moe_smoothquant_traits *,
                           const tessera_moe_smoothquant_args *, void *);
    *(void **)&real = dlsym(RTLD_NEXT, "tessera_moe_smoothquant");
    tessera_status status = real(d, t, a, s);
    if (fault("order")) { /* rows by token, as if slots came last */
        unsigned char row[256];
        unsigned char *q = a->qy_ptr;
        memcpy(row, q + a->y_stride, 70);
        memcpy(q + a->y_stride, q + 2 * a->y_stride, 70);
        memcpy(q + 2 * a->y_stride, row, 70);
    }
    return status;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    command = [*compiler.split(), "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", str(library)]
    subprocess.run([*command, str(folder / "shim.c"), "-ldl"], check=True)
    env = {"LD_PRELOAD": str(library)}
    if run(LAYERNORM, *small(LAYERNORM), FAULT="guard", **env).returncode == 0:
        pytest.skip("the program has the library inside, so that nothing can come between them")
    return env


@pytest.mark.parametrize(
    ("fault", "command", "says"),
    [
        ("y", [LAYERNORM], "row 1"),
        ("y_residual", [LAYERNORM, "-fadd=1"], "row 0"),
        ("y_scale", [LAYERNORM, "-fquant=2", "-prec_o=int8"], "row 3"),
        ("mean", [LAYERNORM, "-save_mv=1"], "row 0"),
        ("invstd", [LAYERNORM, "-save_mv=1"], "row 4"),
        ("behind", [LAYERNORM, "-y_stride=80", "-fquant=2", "-prec_o=int8"], "behind row 0 of y was written"),
        ("guard", [LAYERNORM], "guard zone next to y"),
        ("input", [LAYERNORM], "an input"),
        ("order", [MOE], "row 1"),
    ],
)
def test_wrong_results_are_seen(
    tmp_path: Path, shim: dict[str, str], fault: str, command: list[str], says: str
) -> None:
    program, *arguments = command
    done = run(program, *small(program), *arguments, FAULT=fault, **shim)
    assert done.returncode == 3 and done.stdout.endswith(", valid:n\n"), done
    assert says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    result = result_of(tmp_path, program, *arguments, code=3, FAULT=fault, **shim)
    assert result["verification"] == "fail" and says in result["message"]


# --- the smoke programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
def test_smoke(program: str) -> None:
    smoke = f"{program}_smoke"
    cases = run(smoke, "-list").stdout.splitlines()
    assert len(set(cases)) == len(cases) and len(cases) % (30 * 3) == 0
    assert all(re.match(rf"\d+: {program} -[mt]=\d+ -[nh]=\d+ ", case) for case in cases)
    assert sum("stride=818 " in case for case in cases) == len(cases) // 30
    some = run(smoke, f"-filter={program} *=599 *", "-every=3")
    assert some.returncode == 0 and re.fullmatch(r"\d+ passed, 0 failed\n", some.stdout), some
