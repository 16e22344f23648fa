# SPDX-License-Identifier: MIT
"""tile_example_kv_cache_serving from the outside: every type of cache, swapping, JSON, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_kv_cache_serving"
SEED = 1 + int(os.environ.get("TESSERA_TEST_SEED") or 0) % 1000

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


@pytest.mark.parametrize("prec", ["bf16", "fp16"])
@pytest.mark.parametrize("kv", ["auto", "fp8_e4m3", "int8", "turbo4"])
@pytest.mark.parametrize(
    "cache", ["-pages=60", "-pages=9", "-pages=40 -page_block_size=4", "-pages=101 -page_block_size=1"]
)
def test_every_token_is_right(kv: str, prec: str, cache: str, tmp_path: Path) -> None:
    """64 sequences share pages for fewer, so that some are swapped out; all tokens are compared."""
    path = tmp_path / "result.json"
    done = run(
        f"-kv_cache_dtype={kv}",
        f"-prec={prec}",
        f"-seed={SEED}",
        *cache.split(),
        "-json=1",
        f"-jsonfile={path}",
    )
    assert done.returncode == 0, done.stderr
    line = re.match(
        rf"\[{prec}\|{kv}\] sequences:64, h:8/2, d:64, page_block_size:\d+, pages:\d+, steps:(\d+), "
        r"tokens:(\d+), most_running:(\d+), swaps:(\d+), \d+\.\d{3} ms a step, valid:y\n$",
        done.stdout,
    )
    assert line
    steps, tokens, running, swaps = map(int, line.groups())
    result = json.loads(path.read_text())
    assert tokens == result["tokens"] == result["tokens_verified"] >= 64
    assert swaps == result["swaps"] > 0 and running == result["most_running"] > 1 and steps == result["steps"]
    assert result["verification"] == "pass" and 0 < result["max_error_over_bound"] < 1


@pytest.mark.parametrize("api", ["fwd_splitkv", "paged_attention"])
def test_operations_by_themselves(api: str) -> None:
    done = run(f"-api={api}", "-h=32", "-h_k=8", "-d=128", "-threads=2", f"-seed={SEED}")
    assert done.returncode == 0 and ", valid:y" in done.stdout, done.stderr


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("kv", ["auto", "fp8_e4m3", "int8", "turbo4"])
def test_simulated_gpus(kv: str, arch: str) -> None:
    small = ["-sequences=6", "-gap=1", "-prompt=20", "-tokens=9", "-pages=4", f"-seed={SEED}"]
    done = run(*small, f"-kv_cache_dtype={kv}", f"-device=sim:{arch}", TESSERA_SIM_SANITIZE="1")
    if done.returncode in (1, 2) and ("libtessera_sim" in done.stderr or "no instance" in done.stderr):
        pytest.skip("this build has no simulator, or no instance")
    assert done.returncode == 0 and ", valid:y" in done.stdout, done.stderr


def test_readme_has_the_help() -> None:
    done = run("-?")
    assert done.returncode == 0
    assert f"```\n{done.stdout}```\n" in (ROOT / "example/kv_cache/README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-sequences=0"], 1, "-sequences=0: 1 to 1048576"),
        (["-d=513"], 1, "-d=513: 1 to 512"),
        (["-h=3"], 1, "-h_k=2: a number that divides -h=3"),
        (["-prec=fp32"], 1, "-prec=fp32: fp16 or bf16"),
        (["-kv_cache_dtype=int3"], 1, "-kv_cache_dtype=int3: auto, fp8_e4m3, int8 or turbo4"),
        (["-api=fwd"], 1, "-api=fwd: fwd_splitkv or paged_attention"),
        (["-kv_cache_dtype=int8", "-api=fwd_splitkv"], 1, "it has caches of q's type"),
        (["-pages=7"], 1, "-pages=7: more than the longest sequence has, 7"),
        (["-page_block_size=24"], 1, "page_block_size is 24: a power of two"),
        (["-device=tpu"], 1, 'device "tpu" is unknown'),
        (
            ["-json=1", "-jsonfile=/nonexistent/x.json"],
            1,
            "-jsonfile=/nonexistent/x.json: it cannot be written",
        ),
    ],
)
def test_refusals(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code and says in done.stdout + done.stderr
    assert done.stderr.count("\n") <= 1
