# SPDX-License-Identifier: MIT
"""The build of GPU instances: packs do not depend on where they are built, and errors name what failed."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run
from device import ziglang
from sampling import sample_each
from test_pack import read

from codegen.nvptx import parts

pytestmark = pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
OPTIONS = ("-DGPU_TARGETS=gfx942", "-DTESSERA_EMBED_PACKS=OFF", f"-DTESSERA_PYTHON={sys.executable}")
LESS = ("-DTESSERA_BUILD_EXAMPLES=OFF", "-DTESSERA_BUILD_SIMULATOR=OFF", "-DCMAKE_BUILD_TYPE=Debug")
GENERATORS = [name for name, tool in (("Ninja", "ninja"), ("Unix Makefiles", "make")) if shutil.which(tool)]


def configure(source: Path, build: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["cmake", "-G", GENERATORS[0], "-S", source, "-B", build, *OPTIONS, *LESS, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make(build: Path, target: str = "tessera_packs") -> subprocess.CompletedProcess[str]:
    command = ["cmake", "--build", build, "--target", target]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def assert_nothing_is_left(build: Path) -> None:
    """What was made is not made again: its list of dependencies begins with its name, quoted. CMake
    before 4 reads several names where blanks are not."""
    again = make(build).stdout
    assert "Code object" not in again and "Image " not in again
    for made in (build / "device").rglob("*.co"):
        quoted = str(made).replace(" ", "\\ ")
        assert made.with_suffix(".d").read_text().startswith(f"{quoted}:")


def one_line(text: str) -> str:
    return " ".join(text.split())


def pack_of(build: Path, target: str = "gfx942") -> bytes:
    return (build / "packs" / f"fmha_fwd_{target}.pack").read_bytes()


class Few:
    """An instance of each target and pipeline, or of one, out of the receipt with all types and head dims."""

    def __init__(self, folder: Path, targets: str = "gfx942", pipeline: str = "") -> None:
        table = run("--targets", targets, "--table", "-r", "ci", "--format", "csv").lines
        rows = sample_each(csv.DictReader(table), lambda row: (row["target"], row["pipeline"]))
        self.names = [row["name"] for row in rows if pipeline in ("", row["pipeline"])]
        listed = folder / "instances.csv"
        listed.write_text("\n".join(line for line in table if line.split(",")[0] in ("name", *self.names)))
        self.option = f"-DTESSERA_INSTANCES={listed}"


@pytest.fixture
def few(tmp_path: Path) -> Few:
    return Few(tmp_path)


@pytest.fixture
def one(tmp_path: Path) -> Few:
    """An instance of qr."""
    return Few(tmp_path, pipeline="qr")


def test_packs_are_the_same_in_every_directory(checkout: Path, one: Few, tmp_path: Path) -> None:
    ziglang()
    places = [(ROOT, tmp_path / "one"), (checkout, tmp_path / "another one" / "and deeper")]
    builds = []
    for (source, build), generator in zip(places, itertools.cycle(GENERATORS)):
        configured = configure(source, build, one.option, "-G", generator)
        assert configured.returncode == 0, configured.stderr
        made = make(build)
        assert made.returncode == 0, made.stdout + made.stderr
        assert_nothing_is_left(build)
        builds.append(build)
    assert len({pack_of(build) for build in builds}) == 1
    op, target, entries = read(pack_of(builds[0]))
    assert (op, target) == ("fmha_fwd", "gfx942")
    assert [symbol for symbol, _, _ in entries] == sorted(
        f"tessera_k_{name.replace('__', '_')}" for name in one.names
    )
    assert all(content.startswith(b"\x7fELF") for _, _, content in entries)


def test_another_clang_makes_them_as_hip(checkout: Path, few: Few, tmp_path: Path) -> None:
    clang = next(filter(None, (shutil.which(f"clang-{version}") for version in range(17, 30))), None)
    if clang is None:
        pytest.skip("no clang of 17 to 29")
    lld = tmp_path / "ld.lld"
    lld.write_text(f'#!/bin/sh\nexec "{ziglang() / "zig"}" ld.lld "$@"\n')
    lld.chmod(0o755)
    for source, build in ((ROOT, tmp_path / "one"), (checkout, tmp_path / "another one")):
        configured = configure(source, build, few.option, f"-DTESSERA_CLANG={clang}", f"-DTESSERA_LLD={lld}")
        assert configured.returncode == 0, configured.stderr
        made = make(build)
        assert made.returncode == 0, made.stdout + made.stderr
        assert_nothing_is_left(build)
    assert pack_of(tmp_path / "one") == pack_of(tmp_path / "another one")
    assert len(read(pack_of(tmp_path / "one"))[2]) == len(few.names)


def test_packs_are_in_the_library_or_beside_it(tmp_path: Path) -> None:
    """Those of all targets of a build."""
    ziglang()
    targets = ("gfx90a", "gfx942")
    few = Few(tmp_path, ",".join(targets), pipeline="qr")
    build = tmp_path / "build"
    libraries = []
    for embed in ("ON", "OFF"):
        options = (few.option, f"-DGPU_TARGETS={';'.join(targets)}", f"-DTESSERA_EMBED_PACKS={embed}")
        assert configure(ROOT, build, *options).returncode == 0
        made = make(build, "all")
        assert made.returncode == 0, made.stdout + made.stderr
        libraries.append((build / "libtessera.so").read_bytes())
    for target in targets:
        assert [pack_of(build, target) in library for library in libraries] == [True, False]
    for name in few.names:
        assert all(name.encode() in library for library in libraries)  # the table
    prefix = tmp_path / "prefix"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], capture_output=True, check=True)
    installed = sorted(prefix.rglob("fmha_fwd_gfx*.pack"))
    assert [(path.parent.name, path.read_bytes()) for path in installed] == [
        ("tessera", pack_of(build, target)) for target in targets
    ]


def test_a_changed_header_makes_them_anew(checkout: Path, one: Few, tmp_path: Path) -> None:
    ziglang()
    assert configure(checkout, tmp_path / "build", one.option).returncode == 0
    assert make(tmp_path / "build").returncode == 0
    before = pack_of(tmp_path / "build")
    assert "Code object" not in make(tmp_path / "build").stdout
    header = checkout / "include" / "tessera" / "isa" / "cdna.h"
    text = header.read_text()
    header.write_text(text.replace("#define LN2 0x1.62e43p-1f", "#define LN2 0x1.62e44p-1f"))
    assert header.read_text() != text
    assert "Code object" in make(tmp_path / "build").stdout
    assert pack_of(tmp_path / "build") != before
    header.write_text(text)
    assert make(tmp_path / "build").returncode == 0
    assert pack_of(tmp_path / "build") == before


def test_an_instance_that_spills_fails_the_build_by_its_name(
    checkout: Path, one: Few, tmp_path: Path
) -> None:
    ziglang()
    template = checkout / "templates" / "fmha_fwd" / "qr.cdna.c.j2"
    text = template.read_text().replace(
        "WAVES_PER_SIMD(${t.occupancy})", "__attribute__((amdgpu_num_vgpr(32)))"
    )
    assert text != template.read_text()
    template.write_text(text)
    assert configure(checkout, tmp_path / "build", one.option).returncode == 0
    for _ in range(2):  # and again when it is tried again
        made = make(tmp_path / "build")
        assert made.returncode != 0
        said = made.stdout + made.stderr
        assert " spills " in said and any(name in said for name in one.names)
    assert not (tmp_path / "build" / "packs" / "fmha_fwd_gfx942.pack").exists()


def test_a_warning_fails_the_build(checkout: Path, one: Few, tmp_path: Path) -> None:
    ziglang()
    template = checkout / "templates" / "fmha_fwd" / "qr.cdna.c.j2"
    template.write_text(template.read_text() + "static int nobody_calls_this(void) { return 1; }\n")
    assert configure(checkout, tmp_path / "build", one.option).returncode == 0
    made = make(tmp_path / "build")
    assert made.returncode != 0 and "nobody_calls_this" in made.stdout + made.stderr


def test_without_a_clang_the_pip_command_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$2" in *ziglang*) exit 1 ;; esac\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    failed = configure(ROOT, tmp_path / "build", f"-DTESSERA_PYTHON={python}")
    assert failed.returncode != 0
    assert f"{python} -m pip install ziglang" in one_line(failed.stderr)


@pytest.mark.parametrize(
    ("python", "says"), [("/bin/false", "(1)"), ("/no/such/python", "(no such file or directory)")]
)
def test_what_is_no_python_is_named(python: str, says: str, tmp_path: Path) -> None:
    failed = configure(ROOT, tmp_path / "build", f"-DTESSERA_PYTHON={python}")
    assert failed.returncode != 0
    assert f"{python} does not run generate.py {says}: TESSERA_PYTHON is" in one_line(failed.stderr)


def test_what_is_no_sanitizer_is_named(tmp_path: Path) -> None:
    failed = configure(ROOT, tmp_path / "build", "-DTESSERA_SANITIZE=fine")
    assert failed.returncode != 0
    assert 'TESSERA_SANITIZE is "fine": ' in one_line(failed.stderr)


def test_a_clang_that_does_not_know_the_target_is_refused(tmp_path: Path) -> None:
    clang, lld = tmp_path / "clang", tmp_path / "ld.lld"
    clang.write_text("#!/bin/sh\necho \"error: unknown target CPU 'gfx942'\" >&2\nexit 1\n")
    lld.write_text("#!/bin/sh\nexit 1\n")
    clang.chmod(0o755)
    lld.chmod(0o755)
    failed = configure(ROOT, tmp_path / "build", f"-DTESSERA_CLANG={clang}")
    assert failed.returncode != 0
    assert f"{clang} does not compile for gfx942" in one_line(failed.stderr)
    assert "unknown target CPU 'gfx942'" in failed.stderr


# ---- images of NVIDIA GPUs

NVIDIA = ("-DGPU_TARGETS=sm_90a", "-DTESSERA_OPS=smoothquant", "-DTESSERA_RECEIPT=ci")
# A ptxas of a few lines of shell: $3 is the PTX, $5 the cubin. It says what ptxas says with -v.
PTXAS = """#!/bin/sh
name=$(sed -n 's/.*entry \\(.*\\)(.*/\\1/p' "$3")
echo "of $name" >"$5"
cat >&2 <<EOF
ptxas info    : Compiling entry function '$name' for 'sm_90a'
    0 bytes stack frame, SPILLED bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers
EOF
"""


def images_of(build: Path) -> dict[str, tuple[bytes, bytes]]:
    """PTX and cubin by symbol."""
    op, target, entries = read((build / "packs" / "smoothquant_sm_90a.pack").read_bytes())
    assert (op, target) == ("smoothquant", "sm_90a")
    return {symbol: parts(content) for symbol, _, content in entries}


def stand_in(folder: Path, text: str) -> Path:
    path = folder / "ptxas"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_images_are_ptx_where_there_is_no_ptxas(checkout: Path, tmp_path: Path) -> None:
    ziglang()
    places = [(ROOT, tmp_path / "one"), (checkout, tmp_path / "another one" / "and deeper")]
    builds = []
    for (source, build), generator in zip(places, itertools.cycle(GENERATORS)):
        configured = configure(source, build, *NVIDIA, "-DTESSERA_PTXAS=OFF", "-G", generator)
        assert configured.returncode == 0, configured.stderr
        made = make(build)
        assert made.returncode == 0, made.stdout + made.stderr
        assert_nothing_is_left(build)
        builds.append(build)
    assert len({(build / "packs" / "smoothquant_sm_90a.pack").read_bytes() for build in builds}) == 1
    images = images_of(builds[0])
    assert images
    for symbol, (ptx, cubin) in images.items():
        assert f".visible .entry {symbol}(".encode() in ptx and b".target sm_90a" in ptx and not cubin
        assert b".maxntid" in ptx, "the workgroup's threads, which the registers of a thread depend on"


def test_parts_have_each_image_once(tmp_path: Path) -> None:
    ziglang()

    def configure_part(part: str) -> subprocess.CompletedProcess[str]:
        rules = f"-DTESSERA_CODE_PARTS=_none_=0/9;__sm_90a={part};_fp16__=0/1"  # the first match counts
        return configure(ROOT, tmp_path / part, *NVIDIA, "-DTESSERA_PTXAS=OFF", rules)

    found: list[str] = []
    for part in ("0/3", "1/3", "2/3"):
        configured = configure_part(part)
        assert configured.returncode == 0, configured.stderr
        assert make(tmp_path / part).returncode == 0
        pack = tmp_path / part / "packs" / "smoothquant_sm_90a.pack"  # not made without any image
        made = [*images_of(tmp_path / part)] if pack.exists() else []
        found += made
        sources = [path.stem for path in (tmp_path / part / "generated").glob("smoothquant_*__sm_90a_*.c")]
        assert set(made) <= {f"tessera_k_{name.replace('__', '_')}" for name in sources}
        assert f"GPU instances: {len(made)} of {len(sources)} are compiled" in configured.stdout
    assert len(found) == len(set(found)) == len(sources)
    failed = configure_part("3/3")
    assert failed.returncode != 0
    assert "TESSERA_CODE_PARTS: __sm_90a=3/3: must be REGEX=N/M, such as" in one_line(failed.stderr)


def test_images_have_what_ptxas_makes_unless_it_spills(tmp_path: Path) -> None:
    ziglang()
    build = tmp_path / "build"
    ptxas = stand_in(tmp_path, PTXAS.replace("SPILLED", "12"))
    configured = configure(ROOT, build, *NVIDIA, f"-DTESSERA_PTXAS={ptxas}")
    assert configured.returncode == 0, configured.stderr
    for _ in range(2):  # and again when it is tried again
        made = make(build)
        assert made.returncode != 0
        assert re.search(r"^smoothquant_\w+: spills 12 bytes of registers$", made.stdout + made.stderr, re.M)
    stand_in(tmp_path, PTXAS.replace("SPILLED", "0"))
    for image in (build / "device" / "sm_90a").glob("*.co"):
        image.unlink()
    made = make(build)
    assert made.returncode == 0, made.stdout + made.stderr
    images = images_of(build)
    assert images
    for symbol, (ptx, cubin) in images.items():
        assert b".target sm_90a" in ptx and cubin == f"of {symbol}\n".encode()


def test_a_ptxas_that_does_not_know_the_target_is_refused(tmp_path: Path) -> None:
    ziglang()
    ptxas = stand_in(
        tmp_path, "#!/bin/sh\necho \"ptxas fatal   : Value 'sm_90a' is not defined\" >&2; exit 1\n"
    )
    failed = configure(ROOT, tmp_path / "build", *NVIDIA, f"-DTESSERA_PTXAS={ptxas}")
    assert failed.returncode != 0
    assert "Value 'sm_90a' is not defined" in failed.stderr
    assert "TESSERA_PTXAS=OFF does without" in one_line(failed.stderr)


def test_a_changed_vocabulary_makes_images_anew(checkout: Path, tmp_path: Path) -> None:
    ziglang()
    build = tmp_path / "build"
    assert configure(checkout, build, *NVIDIA, "-DTESSERA_PTXAS=OFF").returncode == 0
    assert make(build).returncode == 0
    before = images_of(build)
    header = checkout / "include" / "tessera" / "isa" / "sm90.h"
    text = header.read_text()
    header.write_text(text.replace("launch_bounds(threads)", "launch_bounds(threads, 1)"))
    assert header.read_text() != text
    assert "Image " in make(build).stdout
    assert images_of(build) != before
