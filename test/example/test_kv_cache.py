# SPDX-License-Identifier: MIT
"""tile_example_kv_cache from the outside: its line, JSON, exit codes, and CK's matrix on simulated GPUs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from sampling import sample

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_kv_cache"
SEED = int(os.environ.get("TESSERA_TEST_SEED") or 0)

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"it is not built in {BIN}")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )


def test_line_and_json(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = run(
        "-b=3", "-h=4", "-h_k=2", "-s=5", "-s_k=40", "-s_knew=7", "-d=48", "-d_v=64", "-page_block_size=8",
        "-rotary_dim=32", "-warmup=0", "-repeat=1", "-json=1", f"-jsonfile={path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    want = "[fp16|bhsd] b:3, h:4/2, s:5, s_k:40, s_knew:7, d:48/64, page_block_size:8, rotary_dim:32(inter), "
    assert done.stdout.startswith(want)
    assert re.search(
        r", fmha_fwd_appendkv__\w+, \d+\.\d{3} us, \d+\.\d{2} GB/s, valid:y\n$",
        done.stdout.replace(want, ", "),
    )
    result = json.loads(path.read_text())
    assert result["s_knew"] == 7 and result["elements_wrong"] == 0
    assert result["elements_verified"] == 3 * (7 * 2 * (48 + 64) + 5 * 4 * 48)


def test_readme_has_the_help() -> None:
    done = run("-?")
    assert done.returncode == 0
    assert f"```\n{done.stdout}```\n" in (ROOT / "example/kv_cache/README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-b=0"], 1, "-b=0: at least 1"),
        (["-prec=mxfp4"], 1, "-prec=mxfp4: fp32, fp16"),
        (["-page_block_size=16", "-cache_batch_idx=1"], 1, "-cache_batch_idx=1: without -page_block_size"),
        (["-s_k=3", "-s_knew=4"], 1, "-s_knew=4: at most -s_k, 3"),
        (["-page_block_size=2147483647"], 1, "the buffers take"),
        (
            ["-s_k=2147483640", "-page_block_size=16"],
            1,
            "-s_k=2147483640 -page_block_size=16: positions, rows of",
        ),
        (
            ["-b=65536", "-s_k=65536", "-page_block_size=1"],
            1,
            "-b=65536 -s=1 -s_k=65536 -page_block_size=1: positions",
        ),
        (["-s_k=2147483647"], 1, "positions, rows of a sequence and pages are at most 2147483645"),
        (["-rotary_dim=24"], 1, "rotary_dim is 24: a multiple of 16 up to hdim_q, 128"),
        (["-prec=fp8", "-rotary_dim=16"], 1, "rope_type is inter: fp8 is not rotated"),
        (["-h=3", "-h_k=2"], 1, "nhead_q is 3: a multiple of nhead_k, 2"),
        (["-instance=nobody"], 2, "nobody"),
    ],
)
def test_refusals(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code and says in done.stdout + done.stderr
    assert done.stderr.count("\n") <= 1


@pytest.mark.parametrize("target", ["x86_64_v2", "x86_64_v3"])
@pytest.mark.parametrize(
    ("program", "operation", "arguments"),
    [
        ("tile_example_kv_cache", "fmha_fwd_appendkv__{}_w1_rows", []),
        (
            "tile_example_fmha_fwd",
            "fmha_fwd_splitkv__{}_w1_pages",
            ["-api=fwd_splitkv", "-page_block_size=16"],
        ),
        (
            "tile_example_fmha_fwd",
            "fmha_fwd_pagedkv__{}_w1_pages",
            ["-api=pagedkv_prefill", "-page_block_size=16"],
        ),
    ],
)
def test_instances_that_are_named(program: str, operation: str, arguments: list[str], target: str) -> None:
    if not (BIN / program).exists():
        pytest.skip(f"{program} is not built")
    name = operation.format(target)
    once = ("-device=cpu", "-kname=1", f"-instance={name}", "-warmup=0", "-repeat=1")
    done = subprocess.run(
        [BIN / program, "-b=1", "-h=2", "-s=1", "-s_k=64", "-d=64", *arguments, *once],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 2 and "there is none" in done.stderr:
        pytest.skip(f"this build has no {name}")
    assert done.returncode == 0 and name in done.stdout, done.stderr


@pytest.mark.parametrize("order", sample(["forward", "random:1"], 1))
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("program", "every"), [("kv_cache", 293), ("fmha_fwd_cache", 797)])
def test_matrix_on_simulated_gpus(program: str, every: int, arch: str, order: str) -> None:
    """The append alone, and before attention, under the simulator's sanitizer; in time all cases run."""
    if run("-s_k=2", f"-device=sim:{arch}").returncode:
        pytest.skip("this build has no simulator, or no instance")
    smoke = BIN / f"tile_example_{program}_smoke"
    done = subprocess.run(
        [smoke, "-filter=*s_knew*", f"-extra=-device=sim:{arch}", f"-every={every}", f"-from={SEED % every}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TESSERA_SIM_SANITIZE": "1", "TESSERA_SIM_ORDER": order},
    )
    assert done.returncode == 0 and " passed, 0 failed" in done.stdout, done.stdout
