# SPDX-License-Identifier: MIT
"""tile_example_paged_attention from the outside: its line, JSON, exit codes."""

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
PROGRAM = BIN / "tile_example_paged_attention"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"it is not built in {BIN}")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], check=False, capture_output=True, text=True, timeout=300, env=os.environ
    )


def test_line_and_json(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = run(
        "-b=3", "-h=8", "-h_k=2", "-qlen=2", "-ctx=40", "-d=48", "-d_v=64", "-block_size=8",
        "-kv_cache_dtype=int8", "-kv_scale=token", "-kv_layout=hnd", "-mixed=1",
        "-window=9", "-warmup=0", "-repeat=1", "-json=1",
        f"-jsonfile={path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    want = "[bf16|int8|hnd] b:3, h:8/2, qlen:2, ctx:40, d:48/64, block_size:8, kv_scale:token, window:9, "
    want += "kv_bytes:120, "
    assert done.stdout.startswith(want)
    rest = done.stdout.removeprefix(want)
    assert re.fullmatch(r"paged_attention(_bf16)?__\w+, \d+\.\d{3} us, \d+\.\d{2} GB/s, valid:y\n", rest)
    result = json.loads(path.read_text())
    assert result["kv_scale"] == "token" and result["rows_wrong"] == 0
    assert result["rows_verified"] == 2 * 2 * 8  # the second sequence is in prefill


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ("", 512),
        ("-kv_cache_dtype=fp8_e4m3", 256),
        ("-kv_cache_dtype=turbo4", 132),
        ("-kv_cache_dtype=turbo4 -kv_scale=token", 132),
    ],
)
def test_bytes_of_a_token(arguments: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = run("-b=1", "-h=2", "-h_k=1", "-ctx=40", *arguments.split(), "-json=1", f"-jsonfile={path}")
    assert f", kv_bytes:{size}, " in done.stdout
    assert json.loads(path.read_text())["kv_bytes"] == size


def test_readme_has_the_help() -> None:
    done = run("-?")
    assert done.returncode == 0
    assert f"```\n{done.stdout}```\n" in (ROOT / "example/paged_attention/README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-b=0"], 1, "-b=0: at least 1"),
        (["-block_size=0"], 1, "-block_size=0: at least 1"),
        (["-block_size=24"], 1, "page_block_size is 24: a power of two"),
        (["-prec=fp8"], 1, "-prec=fp8: fp32, fp16 or bf16"),
        (
            ["-kv_cache_dtype=turbo4", "-kv_scale=page"],
            1,
            "-kv_scale=page: norms of turbo4 lie in slots (none)",
        ),
        (["-kv_cache_dtype=int3"], 1, "-kv_cache_dtype=int3: auto, fp8_e4m3"),
        (["-kv_scale=row"], 1, "-kv_scale=row: none, tensor, page or token"),
        (["-kv_layout=bhsd"], 1, "-kv_layout=bhsd: nhd, hnd, vllm or vectorized"),
        (["-kv_scale=token"], 1, "k_scale_ptr or v_scale_ptr is given: caches of auto have no scales"),
        (["-kv_layout=vllm", "-d=36"], 1, "hdim_q is 36: in vllm pages a multiple of 8"),
        (["-h=3", "-h_k=2"], 1, "nhead_q is 3: a multiple of nhead_k, which is 2"),
        (["-window=-1"], 1, "sliding_window is -1: 0 or more"),
        (["-num_splits=129"], 1, "num_splits is 129: 1 to 128, or 0 for as many as pay"),
        (["-instance=nobody"], 2, "nobody"),
    ],
)
def test_refusals(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code and says in done.stdout + done.stderr
    assert done.stderr.count("\n") <= 1


def test_the_widest_window_counts_all_keys() -> None:
    line = run("-window=2147483647", "-qlen=2", "-ctx=64").stdout
    assert "valid:y" in line
    assert all(float(number) > 0 for number in re.findall(r"(\S+) (?:TFlops|GB/s)", line)), line


def test_instances_of_both_operations() -> None:
    """-instance= names one of paged_attention, or one of fmha_fwd that attends."""
    small = ("-ctx=40", "-warmup=0", "-repeat=1", "-device=cpu")
    own = run(*small).stdout.split(", ")[-4]
    assert run(*small, f"-instance={own}").stdout.split(", ")[-4] == own
    other = next(name for name in (f"paged_attention__x86_64_v{n}_w1_pages" for n in (2, 3)) if name != own)
    done = run(*small, f"-instance={other}")
    assert done.returncode == 0 and other in done.stdout
    plain = (
        "-explain=1",
        "-h=8",
        "-s=1",
        "-s_k=40",
        "-d=128",
        "-prec=bf16",
        "-v=0",
        "-device=cpu",
        "-repeat=1",
    )
    command = [BIN / "tile_example_fmha_fwd", *plain]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^[* ] (fmha_fwd_\S+) +cost", listed, re.MULTILINE)
    assert names and all(
        run(*small, f"-instance={name}", "-num_splits=2").returncode == 0 for name in names[:2]
    )
    done = run(*small, "-d=64", "-instance=fmha_fwd_bf16__gfx950_b32x64x64_w1_qr_direct")
    assert done.returncode == 2


def test_pieces_of_too_few_keys() -> None:
    """Lanes of qr_pieces load 16 keys of a column of V, of which smaller pages of vLLM have fewer."""
    words = ("-ctx=40", "-kv_layout=vllm", "-kv_cache_dtype=int8", "-device=sim:gfx950", "-d=128")
    name = "-instance=fmha_fwd_d128_bf16__gfx950_b32x32x128_w1_qr_pieces_int8"
    done = run(*words, name, "-block_size=16")
    if "there is none" in done.stderr or done.returncode == 4:
        pytest.skip("this build has no such instance, or no simulated GPU")
    assert done.returncode == 0 and "valid:y" in done.stdout
    done = run(*words, name, "-block_size=8")
    assert done.returncode == 2 and "pages of 8 keys (at least 16)" in done.stdout + done.stderr
    assert run(*words, "-block_size=8").returncode == 0


def test_explain() -> None:
    done = run("-explain=1", "-warmup=0", "-repeat=1")
    assert done.returncode == 0 and "* paged_attention_" in done.stdout
