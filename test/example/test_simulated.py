# SPDX-License-Identifier: MIT
"""tile_example_fmha_fwd on simulated GPUs, by the simulator itself and as a HIP runtime."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_fmha_fwd"
SMOKE = BIN / "tile_example_fmha_fwd_smoke"
STANDIN = BIN.parent / "standin"
SMALL = ["-b=1", "-h=2", "-s=70", "-d=64"]
SIM = "-device=sim:gfx942"
MODELLED = r"simulated in \d+\.\d\d s of this machine, modelled \d+ cycles, \d+\.\d{3} ms \+-\d+ %"
SPEED = r", \d+\.\d\d TFlops, \d+\.\d\d GB/s"
LINE = re.compile(rf"^\[.*\].*, v:r.*, {MODELLED}{SPEED}, valid:y\n$")


def start(program: Path, *arguments: str, **variables: str) -> Done:
    env = {**os.environ, **variables}
    return subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=600, env=env
    )


def run(*arguments: str, **variables: str) -> Done:
    return start(PROGRAM, *arguments, **variables)


@pytest.fixture(scope="module", autouse=True)
def _simulator() -> None:
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    done = run(*SMALL, SIM, "-v=0")
    if done.returncode == 4 and "the simulator is not there" in done.stderr:
        pytest.skip("this build has no simulator")
    if done.returncode == 2 and "has none for gfx942" in done.stderr:
        pytest.skip("this build has no instances for gfx942")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("parts", [1, 3, 4, 8])
def test_parts_leave_no_workgroup_without_work(parts: int, tmp_path: Path) -> None:
    """Nor a die, to which hardware deals workgroups in turns, be there fewer parts than dies."""
    stats = tmp_path / "stats.jsonl"
    sizes = (
        "-b=1",
        "-h=16",
        "-h_k=8",
        "-s=1",
        "-s_k=1024",
        "-d=128",
        "-prec=bf16",
        "-page_block_size=16",
        "-api=fwd_splitkv",
    )
    done = run(*sizes, f"-num_splits={parts}", SIM, "-v=1", TESSERA_SIM_STATS=str(stats))
    assert done.returncode == 0 and ", valid:y" in done.stdout, done.stderr
    first = json.loads(stats.read_text().splitlines()[0])
    waves = re.search(r"_w(\d+)_", first["kernel"])
    assert waves and first["waves"] == 8 * parts * int(waves[1])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-prec=bf16"],
        ["-d=128", "-lse=1"],
        ["-s=1", "-s_k=300"],
        ["-s=257", "-s_k=1"],
        ["-s=40", "-s_k=0", "-lse=1"],
        ["-s=200", "-h=6", "-h_k=2", "-mask=t"],
        ["-s=130", "-s_k=190", "-mask=b", "-lse=1"],
        ["-s=190", "-s_k=130", "-mask=b:20,7"],
        ["-s=150", "-mask=t:33,-1", "-prec=bf16", "-d=128"],
        ["-s=100", "-mask=g:30,-20", "-lse=1"],
        ["-iperm=0", "-operm=0", "-b=2"],
        ["-mode=1", "-b=3", "-s=5,130,0", "-s_k=40,7,9", "-lse=1"],
        ["-mode=1", "-b=2", "-s=50,60", "-s_qpad=64,90", "-s_kpad=70,61", "-mask=b", "-lse=1", "-d=128"],
        ["-b=2", "-s=140", "-q_eff_lens=139,3", "-kv_eff_lens=64,65", "-lse=1"],
        ["-scale_s=-0.3", "-init=nf", "-lse=1"],
        ["-scale_s=1e-44", "-init=nf"],
        ["-scale_s=1e19", "-init=nf", "-lse=1"],
        ["-init=3", "-lse=1"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("sanitize", ["0", "1"])
def test_valid(arguments: list[str], sanitize: str) -> None:
    done = run(*SMALL, SIM, *arguments, TESSERA_SIM_SANITIZE=sanitize)
    assert done.returncode == 0, done.stderr
    assert LINE.match(done.stdout), done.stdout


@pytest.mark.parametrize("order", ["forward", "backward", "alternate", "random:7"])
def test_orders(order: str) -> None:
    done = run("-b=1", "-h=1", "-s=300", "-d=128", "-mask=t", SIM, TESSERA_SIM_ORDER=order)
    assert done.returncode == 0, done.stderr


def test_runs_once_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for arguments, runs in (([], 1), (["-repeat=3"], 3)):
        done = run(*SMALL, SIM, "-json=1", f"-jsonfile={path}", *arguments)
        assert done.returncode == 0, done.stderr
        result = json.loads(path.read_text())
        assert result["runs"] == runs
        assert result["device"] == "sim:gfx942"
        assert result["kernel"].startswith("fmha_fwd_d64_fp16__gfx942_")
        assert result["simulation"]["host_seconds"] > 0
        modelled = result["simulation"]["modelled"]
        assert modelled["time"] == pytest.approx(modelled["cycles"] / modelled["mhz"] / 1e3, rel=1e-3)
        assert sum(modelled["shares"].values()) == pytest.approx(1, abs=1e-3)
        assert "perf" not in result  # what is modelled is not measured


def test_packs(tmp_path: Path) -> None:
    pack, broken = BIN.parent / "packs/fmha_fwd_gfx942.pack", tmp_path / "broken.pack"
    assert run(*SMALL, SIM, f"-pack={pack}").returncode == 0
    broken.write_bytes(pack.read_bytes()[:-1])
    for file, says in ((broken, ", outside of the "), (tmp_path / "none", "No such file")):
        done = run(*SMALL, SIM, f"-pack={file}")
        assert done.returncode == 1
        assert str(file) in done.stderr and says in done.stderr and done.stderr.count("\n") == 1


def test_features_are_read_over() -> None:
    assert run(*SMALL, "-device=sim:gfx942:sramecc+:xnack-").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-d=33"], 2, "hdim_q 33 (serves "),
        (["-prec=mxfp8", "-qscale=mx"], 2, "data_type mxfp8 (serves "),
        (["-prec=fp8", "-vlayout=c"], 2, "is_v_rowmajor 0 (serves 1)"),
        (["-device=sim:gfx906"], 4, "sim:gfx906 is of architecture gfx906: gfx90a, gfx942 or gfx950"),
        (["-device=sim:"], 4, "gfx90a, gfx942 or gfx950"),
    ],
)
def test_refused(arguments: list[str], code: int, says: str) -> None:
    done = run(*SMALL, SIM, *arguments)
    assert done.returncode == code
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_device_that_is_not_shown() -> None:
    done = run(*SMALL, SIM, TESSERA_SIM_DEVICES="gfx90a,gfx950")
    assert done.returncode == 4
    assert "none of the 2 devices" in done.stderr


def test_smoke_counts_what_is_not_served() -> None:
    some = "-filter=*-prec=fp16*-mode=0*-bias=[ne]*-p_drop=0.0*-lse=1*-iperm=1*"
    done = start(SMOKE, some, "-count=27", "-extra=-device=sim:gfx90a")
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"\d+ passed, 0 failed(, \d+ not served)?\n", done.stdout)
    assert int(done.stdout.split()[0]) > 0
    none = start(SMOKE, "-filter=*-prec=fp8bf16*", "-count=3", "-extra=-device=sim:gfx90a")
    assert none.returncode == 2 and none.stdout == "0 passed, 0 failed, 3 not served\n"


# --- the same code through libamdhip64, which the stand-in takes the place of -------------------------------


@pytest.mark.parametrize("major", [5, 6, 7])
def test_hip(major: int) -> None:
    library = STANDIN / f"libamdhip64.so.{major}"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    done = run(*SMALL, "-device=hip:1", "-repeat=1", "-kname=1", TESSERA_HIP_LIBRARY=str(library))
    assert done.returncode == 0, done.stderr
    assert "fmha_fwd_d64_fp16__gfx942_" in done.stdout and ", valid:y\n" in done.stdout
    done = run(*SMALL, "-device=hip:7", TESSERA_HIP_LIBRARY=str(library))
    assert done.returncode == 4
    assert f"hip:7: {library} shows 3 devices" in done.stderr


@pytest.mark.parametrize(("devices", "device"), [("gfx90a,gfx942", "hip:0"), ("gfx942", "hip:0")])
def test_auto_is_the_first_gpu_that_has_instances(tmp_path: Path, devices: str, device: str) -> None:
    library, path = STANDIN / "libamdhip64.so.6", tmp_path / "result.json"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    variables = {"TESSERA_HIP_LIBRARY": str(library), "TESSERA_SIM_DEVICES": devices}
    done = run(*SMALL, "-repeat=1", "-json=1", f"-jsonfile={path}", **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["device"] == device
    assert done.stderr == ""


def test_profile_and_sample() -> None:
    done = run(*SMALL, SIM, "-profile=1")
    assert done.returncode == 0, done.stderr
    line, *profile = done.stdout.splitlines()
    assert LINE.match(line + "\n")
    assert [text.split(":")[0] for text in profile[1:]] == [
        "cycles of a SIMD",
        "cycles an MFMA",
        "VALU busy",
        "waves a SIMD",
        "LDS",
        "MB by level",
    ]
    long = ["-b=1", "-h=8", "-s=512", "-d=64"]
    cycles = [
        re.search(r"modelled (\d+) cycles", run(*long, SIM, "-v=0", *more).stdout)
        for more in ([], ["-sample=1"])
    ]
    assert cycles[0] and cycles[1]
    assert int(cycles[1][1]) == pytest.approx(int(cycles[0][1]), rel=0.02)  # caches depend on addresses


def test_annotation_and_trace(tmp_path: Path) -> None:
    """An annotation is printed behind the line, or written; files begin anew."""
    note, trace, temporary = tmp_path / "note.txt", tmp_path / "trace.json", tmp_path / "temporary"
    temporary.mkdir()
    done = run(*SMALL, SIM, "-annotate=1", TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    line, *annotation = done.stdout.splitlines()
    assert LINE.match(line + "\n")
    assert re.fullmatch(r"# tessera_k_fmha_fwd_d64_fp16_gfx942_\S+ on gfx942, modelled: .*", annotation[0])
    assert any(text.startswith("# loop") for text in annotation)
    lines = "TESSERA_GPU_LINES:BOOL=ON" in (BIN.parent / "CMakeCache.txt").read_text()
    assert any(text.startswith("# no lines of C: ") for text in annotation) != lines
    # Calls of the emitted file, with that file's text, and lines of headers below.
    assert any(re.match(r"; fmha_fwd_\S+\.c:\d+: .*\(.*\)", text) for text in annotation) == lines
    assert any(re.match(r"; cdna\.h:\d+: INLINE ", text) for text in annotation) == lines
    assert not list(temporary.iterdir())
    for _ in range(2):
        done = run(*SMALL, SIM, f"-annotate={note}", f"-trace={trace}")
        assert done.returncode == 0 and LINE.match(done.stdout), done
    assert len(note.read_text().splitlines()) == len(annotation)
    events = json.loads(trace.read_text())
    assert any(event["name"].startswith("v_mfma_") for event in events)
    assert sum(event["name"] == "s_endpgm" for event in events) == len(
        {(event["pid"], event["args"]["wave"]) for event in events if event["name"] == "thread_name"}
    )
    assert "# loop" not in run(*SMALL, SIM, "-annotate=0").stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-device=cpu", "-profile=1"], "-profile=1: only simulated devices have a profile, not cpu"),
        (["-device=cpu", "-sample=1", "-v=0"], "-sample=1: only simulated devices take samples, not cpu"),
        ([SIM, "-sample=1"], "-sample=1: results are missing, so that it needs -v=0"),
        (["-device=cpu", "-annotate=1"], "-annotate=1: only simulated devices have cycles, not cpu"),
        (["-device=cpu", "-trace=file"], "-trace=file: only simulated devices have cycles, not cpu"),
        ([SIM, "-annotate=/none/file"], "-annotate=/none/file: cannot be written: No such file"),
        ([SIM, "-trace=/none/file"], "-trace=/none/file: cannot be written: No such file"),
    ],
)
def test_model_is_refused(arguments: list[str], line: str) -> None:
    done = run(*SMALL, *arguments)
    assert done.returncode == 1 and line in done.stderr


def test_verbose_calls_are_timed() -> None:
    done = run(*SMALL, SIM, "-v=0", TESSERA_VERBOSE="1")
    assert re.fullmatch(
        r"tessera: fmha_fwd sim:gfx942 \S+ -prec=fp16 -mode=0 .* \d+\.\d{3} ms\n", done.stderr
    )
