# SPDX-License-Identifier: MIT
"""The program of example/00_integrate, built in each of its three ways, outside the build tree, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))

BUILT = (BUILD / "CMakeCache.txt").exists()
pytestmark = pytest.mark.skipif(not BUILT, reason=f"nothing is built in {BUILD}")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def cache_entry(name: str) -> str:
    """A value of the build's CMake cache."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split("=", 1)[1]
    raise KeyError(name)


def same_tools() -> list[str]:
    """Options that make another CMake project use the compiler and the Python of the build."""
    names = ["CMAKE_C_COMPILER", "CMAKE_AR", "CMAKE_RANLIB", "TESSERA_PYTHON"]
    return ["-G", "Ninja", *(f"-D{name}={cache_entry(name)}" for name in names)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example in a folder whose name has a space."""
    copy = tmp_path_factory.mktemp("with space") / "integrate"
    shutil.copytree(ROOT / "example/00_integrate", copy)
    return copy


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed Tessera, moved away from where it was installed to."""
    first = tmp_path_factory.mktemp("installed") / "first"
    run("cmake", "--install", BUILD, "--prefix", first, cwd=ROOT)
    moved = first.with_name("moved here")
    first.rename(moved)
    return moved


# The build's instances for GPUs run in its simulator.
SOURCES = BUILD / "generated/fmha_fwd_sources.txt"
ARCH = "gfx90a"
SIMULATED = (
    SOURCES.exists() and f"\t{ARCH}\t" in SOURCES.read_text() and (BUILD / "libtessera_sim.so").exists()
)


def assert_right(output: str, device: str = "cpu") -> None:
    assert f" on {device} runs " in output and output.rstrip().endswith("right"), output


def assert_finds_the_simulator(program: Path) -> None:
    """It is found in the installation without being told where that is."""
    if SIMULATED:
        assert_right(run(program, f"sim:{ARCH}", cwd=program.parent), f"sim:{ARCH}")


@pytest.fixture(scope="module")
def found(project: Path, prefix: Path) -> Path:
    """The program that find_package() gave the shared library."""
    folder = project / "find_package"
    run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", *same_tools(), cwd=folder)
    run("cmake", "--build", "build", cwd=folder)
    return folder / "build/integrate"


def test_find_package(found: Path) -> None:
    assert_right(run(found, cwd=found.parent))


@pytest.mark.skipif(not SIMULATED, reason=f"no instances for {ARCH} or no simulator in {BUILD}")
def test_on_a_gpu(found: Path, prefix: Path) -> None:
    """As on a machine with a GPU, "auto" takes it, and it reads no memory of the host."""
    (hip,) = prefix.rglob("libamdhip64.so.7")
    machine = {"TESSERA_HIP_LIBRARY": str(hip), "TESSERA_SIM_DEVICES": ARCH}
    assert_right(run(found, cwd=found.parent, **machine), "hip:0")


def test_programs_and_licence(prefix: Path) -> None:
    programs = [prefix / "bin/tile_example_fmha_fwd", prefix / "bin/tile_example_fmha_fwd_smoke"]
    if not (BUILD / "bin" / programs[0].name).exists():
        pytest.skip(f"no programs in {BUILD}")
    built, installed = (
        {program.name for program in (folder / "bin").glob("tile_*")} for folder in (BUILD, prefix)
    )
    assert built == installed
    run(programs[0], "-b=1", "-h=1", "-s=64", "-d=32", cwd=prefix)
    run(programs[1], "-filter=*-s=3 *", cwd=prefix)
    assert (prefix / "share/doc/tessera/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (prefix / "share/doc/tessera/THIRD_PARTY.md").exists()


def test_find_package_static(project: Path, prefix: Path) -> None:
    folder = project / "find_package"
    lists = folder / "CMakeLists.txt"
    text = lists.read_text()
    lists.write_text(text.replace("tessera::tessera m)", "tessera::tessera_static m)"))
    try:
        run("cmake", "-B", "static", f"-DCMAKE_PREFIX_PATH={prefix}", *same_tools(), cwd=folder)
        run("cmake", "--build", "static", cwd=folder)
    finally:
        lists.write_text(text)
    assert_right(run(folder / "static/integrate", cwd=folder))
    assert_finds_the_simulator(folder / "static/integrate")


def test_add_subdirectory(project: Path) -> None:
    folder = project / "add_subdirectory"
    options = [f"-DTESSERA_SOURCE_DIR={ROOT}", "-DTESSERA_TARGETS=portable", "-DTESSERA_OPS=fmha_fwd"]
    options += same_tools()
    run("cmake", "-B", "build", *options, cwd=folder)
    targets = run("ninja", "-C", "build", "-t", "targets", "all", cwd=folder)
    assert "tile_example" not in targets and "gtest" not in targets
    cache = (folder / "build/CMakeCache.txt").read_text()
    assert "GTest" not in cache
    run("cmake", "--build", "build", cwd=folder)
    assert_right(run(folder / "build/integrate", cwd=folder))


@pytest.mark.skipif(not (shutil.which("pkg-config") and shutil.which("make")), reason="no pkg-config or make")
def test_pkg_config(project: Path, prefix: Path) -> None:
    folder = project / "pkg_config"
    (pc,) = prefix.rglob("tessera.pc")
    moved = prefix.with_name("plain")
    prefix.rename(moved)  # make and the shell of pkg-config's users cannot take spaces
    try:
        path = str(moved / pc.parent.relative_to(prefix))
        make = ["make", f"CC={cache_entry('CMAKE_C_COMPILER')}", "integrate", "integrate_static"]
        run(*make, cwd=folder, PKG_CONFIG_PATH=path)
        assert_right(run(folder / "integrate", cwd=folder, LD_LIBRARY_PATH=str(Path(path).parent)))
        assert_right(run(folder / "integrate_static", cwd=folder))
        assert_finds_the_simulator(folder / "integrate_static")
    finally:
        moved.rename(prefix)


def test_only_operations_that_are_asked_for(tmp_path: Path) -> None:
    """Two of them: their tables, the runtime's files of theirs, the headers that are installed."""
    asked = {"smoothquant", "layernorm2d_fwd"}
    options = [f"-DTESSERA_OPS={', '.join(sorted(asked))}", "-DTESSERA_TARGETS=portable", *same_tools()]
    run("cmake", "-S", ROOT, "-B", "build", *options, cwd=tmp_path)
    build = tmp_path / "build"
    assert {table.stem.removesuffix("_table") for table in build.glob("generated/*_table.c")} == asked
    commands = run("ninja", "-C", "build", "-t", "commands", "tessera_objects", cwd=tmp_path)
    compiled = re.findall(r"runtime/ops/(\w+)\.c$", commands, re.MULTILINE)
    shared = {"rows", "turbo4"} | {
        f"attention{what}" for what in ("", "_cache", "_gpu", "_kv_types", "_sequence")
    }
    assert set(compiled) == asked | shared
    installed = set(re.findall(r"include/tessera/(\w+)\.h\"", (build / "cmake_install.cmake").read_text()))
    others = {"fmha_fwd", "rmsnorm2d_fwd", "moe_smoothquant"}
    assert installed & (asked | others | {"device"}) == asked | {"device"}


def test_refusals(tmp_path: Path) -> None:
    """What the generator refuses, CMake shows: GPU targets by name, and what does not exist."""
    for option, named in {
        "-DGPU_TARGETS=gfx942;gfx1201": "gfx1201",
        "-DTESSERA_TARGETS=x86-64-v9": "x86-64-v9",
        "-DTESSERA_OPS=": "TESSERA_OPS is empty; there is: ",
        "-DTESSERA_OPS=fmha_fwd;fmha_none": "fmha_none",
        "-DTESSERA_OPS=fmha_fwd;fmha_fwd_splitkv": "fmha_fwd_appendkv, whose",
        "-DTESSERA_RECEIPT=12345": "12345",
        "-DTESSERA_WHERE=hdim_q=5000": "5000",
        "-DTESSERA_FILTER=*nothing*": "*nothing*",
        "-DGPU_TARGETS=gfx942 -DTESSERA_CLANG=/bin/false": "TESSERA_CLANG",
    }.items():
        command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "--fresh", *option.split(), *same_tools()]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode != 0, option
        assert named in result.stderr and "Traceback" not in result.stderr, result.stderr
