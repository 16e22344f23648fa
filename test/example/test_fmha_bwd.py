# SPDX-License-Identifier: MIT
"""tile_example_fmha_bwd from the outside: arguments, output and JSON, which are CK's, and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_fmha_bwd"
SMALL = ["-device=cpu", "-b=2", "-h=2", "-s=50", "-d=32", "-warmup=0", "-repeat=1"]
NUMBERS = r", \d+\.\d{3} ms, \d+\.\d{2} TFlops, \d+\.\d{2} GB/s"

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists() and "TESSERA_BIN_DIR" not in os.environ,
    reason=f"{PROGRAM} is not built, and TESSERA_BIN_DIR does not say where another is",
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], check=False, capture_output=True, text=True, timeout=300)


def line_of(*arguments: str) -> str:
    """The one line that a small problem prints."""
    done = run(*SMALL, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout


def result_of(tmp_path: Path, *arguments: str) -> Any:
    path = tmp_path / "result.json"
    done = run(*SMALL, *arguments, "-json=1", f"-jsonfile={path}")
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text())


# What CK's program prints of the same problems (fmha_bwd_runner.hpp of rocm-libraries, 01740229).
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            [],
            r"\[fp16\|batch\|bhsd\] b:2, h:2/2, s:50/50, d:32/32, scale:0\.176777, bias:n, dbias:0, "
            rf"p_drop:0, s_randval:0, deterministic:0, mask:n{NUMBERS}, valid:y",
        ),
        (
            ["-v=0", "-prec=fp32", "-iperm=0", "-scale=0.5", "-p_drop=0.25", "-mask=1"],
            r"\[fp32\|batch\|bshd-bhsd\] .*, scale:0\.5, bias:n, dbias:0, p_drop:0\.25, s_randval:0, "
            rf"deterministic:0, mask:t\(-1:0\){NUMBERS}",
        ),
        (
            ["-p_drop=0.25", "-bias=e", "-dbias=1", "-mask=b:3,4"],
            r"\[fp16.*, bias:e, dbias:1, p_drop:0\.25, s_randval:1, deterministic:0, "
            rf"mask:b\(3:4\){NUMBERS}, valid:y",
        ),
        (
            ["-deterministic=1", "-sink_grad=1", "-prec=bf16", "-h=4", "-h_k=2", "-bias=a"],
            r"\[bf16\|.*, h:4/2, .*, bias:alibi, dbias:0, p_drop:0, sink:\(rand\[30,60\], grad\), "
            rf"s_randval:0, deterministic:1, workspace:1MiB\|1splits, mask:n{NUMBERS}, valid:y",
        ),
        (
            ["-mode=1", "-s=50,7", "-s_k=60,9", "-operm=0", "-d_v=24"],
            r"\[fp16\|group\|bhsd-bshd\] b:2, h:2/2, s:50/60, d:32/24, .*, mask:n, q_logical:\[50,7\], "
            rf"k_logical:\[60,9\]{NUMBERS}, valid:y",
        ),
    ],
)
def test_line(arguments: list[str], line: str) -> None:
    assert re.fullmatch(line + "\n", line_of(*arguments))


def test_kernels_by_name() -> None:
    """All three in the order of their launches, as CK prints them."""
    name = r"fmha_bwd{}\w*__\w+"
    names = "@".join(name.format(kernel) for kernel in ("_dot_do_o", "", "_convert_dq"))
    assert re.search(rf", mask:n, {names}{NUMBERS}", line_of("-kname=1"))


def test_help_names_every_argument_of_ck_with_its_default() -> None:
    done = run("-?")
    assert done.returncode == 0 and not done.stderr
    defaults = """v=1 mode=0 b=2 h=8 h_k=-1 s=3328 s_qpad=-1 s_k=-1 s_kpad=-1 d=128 d_v=-1 scale=0 iperm=1
        operm=1 bias=n dbias=0 prec=fp16 mask=0 kname=0 init=uf seed=11939 p_drop=0 drop_seed=1 drop_offset=0
        drop_prefs=0 timer=gpu warmup=5 repeat=20 deterministic=0 json=0 jsonfile=fmha_bwd.json"""
    said = dict(re.findall(r"^ +-(\w+) .*?\(default: (.*?)\)$", done.stdout, re.M | re.S))
    for argument in defaults.split():
        name, default = argument.split("=")
        assert said[name] == default, name


def test_json_has_the_fields_of_ck(tmp_path: Path) -> None:
    result = result_of(
        tmp_path,
        "-mode=1",
        "-s=50,30",
        "-bias=e",
        "-dbias=1",
        "-mask=b:4,2",
        "-p_drop=0.5",
        "-deterministic=1",
    )
    for key, value in {
        "name": "fmha_bwd",
        "prec": "fp16",
        "mode": "group",
        "i_perm": "true",
        "o_perm": "true",
        "batch": 2,
        "nhead": 2,
        "nhead_k": 2,
        "seqlen_q": 50,
        "seqlen_k": 50,
        "hdim_q": 32,
        "hdim_v": 32,
        "bias": "elementwise_bias",
        "use_dbias": True,
        "p_drop": 0.5,
        "s_randval": True,
        "deterministic": "true",
        "mask": "mask_bottom_right",
        "mask_left": 4,
        "mask_right": 2,
        "workspace_size": 1,
        "verification": "pass",
    }.items():
        assert result[key] == value, key
    assert result["scale"] == pytest.approx(32**-0.5)
    assert set(result["perf"]) == {"time", "tflops", "gb/s"} and all(v > 0 for v in result["perf"].values())
    assert 0 < result["max_error_over_bound"] <= 1


@pytest.mark.parametrize(
    ("mask", "name", "left", "right"),
    [
        ("0", "no_mask", -1, -1),
        ("t", "mask_top_left", -1, 0),
        ("2", "mask_bottom_right", -1, 0),
        ("g:9,5", "window_generic", 9, 5),
    ],
)
def test_masks_in_json(mask: str, name: str, left: int, right: int, tmp_path: Path) -> None:
    result = result_of(tmp_path, f"-mask={mask}")
    assert (result["mask"], result["mask_left"], result["mask_right"]) == (name, left, right)
    assert result["deterministic"] == "false"


# Flops of five products of all pairs, whatever the mask.
def test_flops(tmp_path: Path) -> None:
    perf = result_of(tmp_path, "-d_v=24", "-mask=1")["perf"]
    flop = perf["tflops"] * perf["time"] * 1e9
    assert flop == pytest.approx(2 * 2 * 2 * 50 * 50 * (3 * 32 + 2 * 24), rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-prec=fp8"], 1, ["-prec=fp8", "fp32, fp16 or bf16"]),
        (["-dbias=1"], 1, ["-dbias=1", "elementwise"]),
        (["-dbias=1", "-bias=a"], 1, ["-dbias=1", "-bias=a"]),
        (["-h=4", "-h_k=3"], 1, ["-h_k=3"]),
        (["-p_drop=1"], 1, ["-p_drop=1"]),
        (["-dkv_heads=v"], 1, ["-dkv_heads=v"]),
        (["-init=xy"], 1, ["-init=xy"]),
        (["-mask=q"], 1, ["-mask=q"]),
        (["-nonsense=1"], 1, ["-nonsense"]),
        (["-d=513"], 1, ["-d=513"]),
        (["-device=cpu:x86-64-v9"], 1, ["x86-64-v9"]),
        (["-device=cuda:77"], 4, ["cuda:77"]),
        (["-json=1", "-jsonfile=/nonexistent/x.json"], 1, ["/nonexistent/x.json"]),
    ],
)
def test_refusals(arguments: list[str], code: int, words: list[str]) -> None:
    done = run(*SMALL, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_no_instance() -> None:
    """Another data type than an instance's."""
    kernel = re.search(r"@(fmha_bwd\w+)@", line_of("-prec=bf16", "-kname=1"))
    assert kernel
    if "bf16" not in kernel[1]:
        pytest.skip(f"{kernel[1]} serves all data types")
    done = run(*SMALL, f"-instance={kernel[1]}")
    assert done.returncode == 2
    assert ", not supported yet" in done.stdout
    assert "data_type" in done.stderr
