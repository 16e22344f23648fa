# SPDX-License-Identifier: MIT
"""tile_example_fmha_fwd from the outside: arguments, output, JSON and exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sampling import sample

Done = subprocess.CompletedProcess[str]
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_fmha_fwd"
SMOKE = BIN / "tile_example_fmha_fwd_smoke"
SMALL = ["-b=2", "-h=2", "-s=50", "-d=32", "-warmup=0", "-repeat=1"]

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists() and "TESSERA_BIN_DIR" not in os.environ,
    reason=f"{PROGRAM} is not built, and TESSERA_BIN_DIR does not say where another is",
)


def start(program: Path, *arguments: str, env: dict[str, str] | None = None) -> Done:
    return subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=300, env=env
    )


def run(*arguments: str, env: dict[str, str] | None = None) -> Done:
    return start(PROGRAM, *arguments, env={**os.environ, **(env or {})})


def line_of(*arguments: str, code: int = 0) -> str:
    """The one line that a small problem prints."""
    done = run(*SMALL, *arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout


def result_of(tmp_path: Path, *arguments: str, code: int = 0, env: dict[str, str] | None = None) -> Any:
    path = tmp_path / "result.json"
    done = run(*SMALL, *arguments, "-json=1", f"-jsonfile={path}", env=env)
    assert done.returncode == code, done.stderr
    return json.loads(path.read_text())


# --- the line -----------------------------------------------------------------------------------------------

NUMBERS = r", \d+\.\d{3} ms, \d+\.\d{2} TFlops, \d+\.\d{2} GB/s"


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (
            [],
            "[fp16|batch|bhsd] b:2, h:2/2, s:50/50, d:32/32, scale_s:0.176777, bias:n, p_drop:0, lse:0, "
            "qscale:n, mask:n, v:r",
        ),
        (
            [
                "-prec=bf16",
                "-h_k=1",
                "-s_k=70",
                "-d_v=48",
                "-lse=1",
                "-mask=b:10,11",
                "-bias=e:2",
                "-p_drop=0.2",
            ],
            "[bf16|batch|bhsd] b:2, h:2/1, s:50/70, d:32/48, scale_s:0.176777, bias:e[2], p_drop:0.2, lse:1, "
            "qscale:n, mask:b(10:11), v:r",
        ),
        (
            ["-prec=fp8bf16", "-qscale=pt", "-iperm=0", "-operm=1", "-vlayout=c", "-bias=a", "-scale_s=0.5"],
            "[fp8bf16|batch|bshd-bhsd] b:2, h:2/2, s:50/50, d:32/32, scale_s:0.5, bias:alibi, p_drop:0, "
            "lse:0, qscale:pt, mask:n, v:c",
        ),
        (
            ["-mode=1", "-s=20,50", "-s_k=30,40", "-s_kpad=32,48", "-iperm=0", "-operm=0", "-mask=g:9,3"],
            "[fp16|group|bshd] b:2, h:2/2, s:20/30(32), d:32/32, scale_s:0.176777, bias:n, p_drop:0, lse:0, "
            "qscale:n, mask:g(9:3), v:r, q_logical:[20,50], k_logical:[30,40], k_padded:[32,48]",
        ),
        (
            ["-q_eff_lens=20,50", "-kv_eff_lens=7"],
            "[fp16|batch|bhsd] b:2, h:2/2, s:50/50, d:32/32, scale_s:0.176777, bias:n, p_drop:0, lse:0, "
            "qscale:n, mask:n, v:r, q_eff:[20,50], kv_eff:[7,7]",
        ),
    ],
)
def test_line_is_that_of_ck(arguments: list[str], want: str) -> None:
    assert re.fullmatch(re.escape(want) + NUMBERS + r", valid:y\n", line_of(*arguments))


def test_kernel_names_stand_before_the_time() -> None:
    short, full = line_of("-kname=1"), line_of("-kname=2", "-mask=1", "-lse=1")
    assert re.search(r", v:r, fmha_fwd\w*__\w+" + NUMBERS, short)
    assert re.search(r", v:r, fmha_fwd_d32_fp16_batch_b\w+_mask_lse_ndropout_\w+" + NUMBERS, full)


def test_levels_of_verification(tmp_path: Path) -> None:
    assert re.search(NUMBERS + r"\n$", line_of("-v=0"))
    assert ", valid:y (by the CPU's fp64 reference, as -v=1)" in line_of("-v=2")
    assert line_of("-v=3").endswith(", valid:y\n")
    # Above 2^37 FLOP: one row of each of 4096 parts and the edges of tiles; with -v=3 all.
    large = ["-b=1", "-h=2", "-s=16512", "-d=64"]
    path = tmp_path / "result.json"
    done = run(*SMALL, *large, "-json=1", f"-jsonfile={path}")
    sampled = json.loads(path.read_text())
    assert sampled["verification"] == "pass"
    assert 4096 <= sampled["rows_verified"] < sampled["rows"] == 2 * 16512
    assert f", valid:y ({sampled['rows_verified']} of 33024 rows checked)\n" in done.stdout


def test_flop_counts_what_the_mask_lets_through(tmp_path: Path) -> None:
    def flop(*arguments: str) -> float:
        perf = result_of(tmp_path, *arguments, "-v=0")["perf"]
        return float(perf["tflops"]) * float(perf["time"]) * 1e9

    area = 2 * 2 * 2 * (32 + 32)  # b, h, two operations, both products
    assert flop() == pytest.approx(area * 50 * 50, rel=1e-4)
    assert flop("-mask=1") == pytest.approx(area * 50 * 51 / 2, rel=1e-4)
    assert flop("-mask=b", "-s_k=60") == pytest.approx(area * (50 * 51 / 2 + 10 * 50), rel=1e-4)
    assert flop("-mask=t:3,0,2") == pytest.approx(area * (1 + 2 + 3 + 4 + 5 + 45 * 6 - 1 + 1), rel=1e-2)


def test_help_names_every_argument() -> None:
    done = run("-?")
    assert done.returncode == 0 and not done.stderr
    names = """v mode b h h_k s s_k s_knew s_qpad s_kpad d d_v scale_s qscale logits_soft_cap iperm operm bias
        prec mask vlayout lse kname init seed p_drop drop_seed drop_offset drop_prefs timer rotary_dim
        rotary_interleaved num_splits page_block_size cache_batch_idx warmup repeat json jsonfile q_eff_lens
        kv_eff_lens init_sink device threads explain"""
    for name in names.split():
        assert re.search(rf"^ +-{name} ", done.stdout, re.M), name
    assert run("-help").stdout == run("--help").stdout == done.stdout


def test_readme_has_the_help_and_no_placeholder() -> None:
    readme = (ROOT / "example/01_fmha/README.md").read_text()
    assert f"```\n{run('-?').stdout}```\n" in readme
    assert not re.search(r"@[A-Z_]+@", readme)


# --- the same thing in other words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["-bias=0"], ["-bias=n"]),
        (["-bias=1"], ["-bias=e"]),
        (["-bias=elementwise:1"], ["-bias=e:1"]),
        (["-bias=2"], ["-bias=a"]),
        (["-bias=alibi:1"], ["-bias=a:1"]),
        (["-mask=1"], ["-mask=t"]),
        (["-mask=t:-1,0"], ["-mask=t"]),
        (["-mask=xt:-1"], ["-mask=t"]),
        (["-mask=2"], ["-mask=b"]),
        (["-mask=b:-1,0"], ["-mask=b"]),
        (["-mask=xb:-1"], ["-mask=b"]),
        (["-mask=xt:4"], ["-mask=t:2,1"]),
        (["-mask=xb:7"], ["-mask=b:3,3"]),
        (["-mask=t:2,1,0"], ["-mask=t:2,1"]),
        (["-mask=n"], ["-mask=0"]),
        (["-prec=fp8bf16", "-qscale=0"], ["-prec=fp8bf16", "-qscale=n"]),
        (["-prec=fp8bf16", "-qscale=1"], ["-prec=fp8bf16", "-qscale=pt"]),
        (["-prec=fp8bf16", "-qscale=2"], ["-prec=fp8bf16", "-qscale=bs"]),
        (["-prec=mxfp8", "-qscale=4"], ["-prec=mxfp8", "-qscale=mx"]),
        (["-init=0"], ["-init=ui"]),
        (["-init=1"], ["-init=uf"]),
        (["-init=2"], ["-init=tf"]),
        (["-init=uf:q"], ["-init=3"]),
        (["-lse=true"], ["-lse=1"]),
        (["-iperm=f"], ["-iperm=0"]),
        (["-h_k=-1"], ["-h_k=2"]),
        (["-d_v=-1"], ["-d_v=32"]),
        (["-mode=1", "-s=40,50"], ["-mode=1", "-s=40,50", "-s_k=40,50"]),
        (["-mode=1", "-s=40,50", "-s_kpad=64"], ["-mode=1", "-s=40,50", "-s_kpad=64,64"]),
        (["-s=999", "-s=50"], ["-s=50"]),
    ],
)
def test_aliases(tmp_path: Path, one: list[str], other: list[str]) -> None:
    """Aliases give the same problem and inputs, hence the same line and greatest error, to the last bit."""
    head = lambda line: re.split(NUMBERS, line)[0]  # noqa: E731
    if "-init" not in one[0]:
        assert head(line_of(*one)) == head(line_of(*other))
    errors = [result_of(tmp_path, *arguments)["max_error"] for arguments in (one, other)]
    assert errors[0] == errors[1]


def test_dropout_by_pointer(tmp_path: Path) -> None:
    dropout = ["-drop_seed=10", "-drop_offset=1234"]
    line_of("-drop_prefs=1", *dropout)
    errors = [
        result_of(tmp_path, f"-drop_prefs={prefs}", "-p_drop=0.3", *rest)["max_error"]
        for prefs, rest in ((0, dropout), (1, dropout), (1, ["-drop_seed=10"]), (1, ["-drop_offset=1234"]))
    ]
    assert errors[0] == errors[1] and len(set(errors)) == 3


def test_distinct_spellings_are_distinct(tmp_path: Path) -> None:
    errors = {
        result_of(tmp_path, f"-init={init}")["max_error"] for init in ["ui", "ni", "uf", "nf", "tf", "3"]
    }
    assert len(errors) == 6
    # In fp32: the greatest errors of fp16 are all about half a step of its results.
    inputs = ("-seed=1", "-seed=2", "-bias=e:1", "-bias=e:2")
    assert len({result_of(tmp_path, "-prec=fp32", a)["max_error"] for a in inputs}) == 4


@pytest.mark.parametrize("prec", ["fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "mxfp8", "mxfp4"])
@pytest.mark.parametrize("mode", [0, 1])
def test_every_dtype_and_mode(prec: str, mode: int) -> None:
    scale = ["-qscale=mx"] if prec.startswith("mx") else []
    for more in (
        ["-vlayout=c"],
        ["-mask=t:20,3,2", "-init_sink=1", "-lse=1"],
        ["-logits_soft_cap=2", "-init=nf"],
    ):
        line_of(f"-prec={prec}", f"-mode={mode}", *scale, *more)


# --- group mode ---------------------------------------------------------------------------------------------


def lengths_of(line: str, name: str) -> list[int]:
    found = re.search(rf"{name}:\[([\d,]+)\]", line)
    assert found
    return [int(n) for n in found[1].split(",")]


def test_drawn_lengths() -> None:
    group = ["-mode=1", "-b=8", "-s=40", "-s_k=60"]
    line = line_of(*group)
    q, k = lengths_of(line, "q_logical"), lengths_of(line, "k_logical")
    assert sum(q) == 8 * 40 and sum(k) == 8 * 60 and min(q + k) >= 1
    assert len(set(q)) > 1 and len(set(k)) > 1
    assert lengths_of(line_of(*group), "q_logical") == q
    assert lengths_of(line_of(*group, "-seed=5"), "q_logical") != q
    capped = line_of(*group, "-s_qpad=42", "-s_kpad=61")
    assert max(lengths_of(capped, "q_logical")) <= 42 and max(lengths_of(capped, "k_logical")) <= 61
    same = line_of("-mode=1", "-b=8", "-s=40")
    assert lengths_of(same, "q_logical") == lengths_of(same, "k_logical")


def test_what_overflows_the_output_is_infinite() -> None:
    """Inputs of the whole range of fp16, which dropout makes greater."""
    assert ", valid:y" in line_of("-init=3", "-p_drop=0.5")


def test_any_seed() -> None:
    """-seed=0 draws others every time, and they are still right."""
    lines = {line_of("-mode=1", "-b=8", "-seed=0")[:200] for _ in range(3)}
    assert len(lines) > 1


# --- errors -------------------------------------------------------------------------------------------------

WRONG = [
    # arguments, what the line must name
    (["-foo=1"], ["-foo", "no such argument"]),
    (["b=2"], ["b=2", "-name=value"]),
    (["-s"], ["-s", "value is missing"]),
    (["-s="], ["-s=", "no value"]),
    (["-s=abc"], ["-s=abc", "32-bit integer"]),
    (["-s=12x"], ["-s=12x", "32-bit integer"]),
    (["-s=4294967296"], ["-s=4294967296", "32-bit integer"]),
    (["-s=0"], ["-s=0", "at least 1"]),
    (["-s_k=-2"], ["-s_k=-2", "at least 0"]),
    (["-s=1,2"], ["-s", "batch mode"]),
    (["-s_kpad=100,100"], ["-s_kpad", "batch mode"]),
    (["-s_kpad=0"], ["-s_kpad=0", "-1"]),
    (["-mode=1", "-s=1,2,3"], ["-s:", "3 values", "-b=2"]),
    (["-mode=1", "-s=1,,3"], ["-s=1,,3", "commas"]),
    (["-mode=1", "-s=1,2", "-s_k=5,6,7"], ["-s_k", "3 values", "-b=2"]),
    (["-mode=1", "-s=40,50", "-s_qpad=64,49"], ["-s", "50", "sequence 1", "49"]),
    (["-mode=1", "-s=64", "-s_qpad=32"], ["-s", "64", "32"]),
    (["-mode=1", "-q_eff_lens=5,6"], ["-q_eff_lens", "batch mode"]),
    (["-q_eff_lens=1,2,3"], ["-q_eff_lens", "3 values", "-b=2"]),
    (["-kv_eff_lens=5,51"], ["-kv_eff_lens", "51", "sequence 1", "50"]),
    (["-mode=2"], ["-mode=2", "0 (batch) or 1 (group)"]),
    (["-b=0"], ["-b=0", "at least 1"]),
    (["-h=0"], ["-h=0", "at least 1"]),
    (["-h=8", "-h_k=3"], ["-h_k=3", "-h=8"]),
    (["-h_k=0"], ["-h_k=0"]),
    (["-d=0"], ["-d=0", "1 to 512"]),
    (["-d=513"], ["-d=513", "1 to 512"]),
    (["-d_v=513"], ["-d_v=513", "1 to 512"]),
    (["-prec=mxfp4", "-qscale=mx", "-d=33"], ["-d=33", "even"]),
    (["-prec=fp64"], ["-prec=fp64", "mxfp4"]),
    (["-mask=q"], ["-mask=q", "t:l,r"]),
    (["-mask=t:1"], ["-mask=t:1", "t:l,r"]),
    (["-mask=t:1,2,-3"], ["-mask=t:1,2,-3", "sink"]),
    (["-mask=g:1,2,3"], ["-mask=g:1,2,3", "g:y,x"]),
    (["-mask=xt:w"], ["-mask=xt:w", "xt:w"]),
    (["-bias=e:3"], ["-bias=e:3", "e:2"]),
    (["-bias=a:2"], ["-bias=a:2", "a:1"]),
    (["-bias=n:0"], ["-bias=n:0"]),
    (["-bias=e", "-logits_soft_cap=1"], ["-logits_soft_cap=1", "-bias=e"]),
    (["-logits_soft_cap=-1"], ["-logits_soft_cap=-1"]),
    (["-qscale=kvbs"], ["-qscale=kvbs", "batch_prefill"]),
    (["-qscale=3"], ["-qscale=3", "batch_prefill"]),
    (["-qscale=th"], ["-qscale=th", "batch_prefill"]),
    (["-prec=fp8bf16", "-qscale=kvbs"], ["-qscale=kvbs with -api=fwd", "batch_prefill"]),
    (["-prec=fp8bf16", "-qscale=th", "-page_block_size=16"], ["-qscale=th with -api=pagedkv_prefill"]),
    (["-qscale=per"], ["-qscale=per", "pt"]),
    (["-qscale=pt"], ["-qscale=pt", "-prec=fp16"]),
    (["-qscale=mx"], ["-qscale=mx", "-prec=fp16"]),
    (["-prec=mxfp8"], ["-qscale=n", "-prec=mxfp8"]),
    (["-init=x"], ["-init=x", "nf"]),
    (["-init=3", "-prec=fp32"], ["-init=3", "-prec=fp32"]),
    (["-vlayout=x"], ["-vlayout=x", "r (", "c ("]),
    (["-lse=2"], ["-lse=2", "0 or 1"]),
    (["-iperm=yes"], ["-iperm=yes", "0 or 1"]),
    (["-p_drop=1"], ["-p_drop=1", "less than 1"]),
    (["-p_drop=-0.1"], ["-p_drop=-0.1"]),
    (["-p_drop=nan"], ["-p_drop=nan"]),
    (["-p_drop=x"], ["-p_drop=x", "a number"]),
    (["-scale_s=inf"], ["scale_s is inf", "-2^64 to 2^64"]),
    (["-scale_s=1e38"], ["scale_s is 1e+38", "-2^64 to 2^64"]),
    (["-seed=-1"], ["-seed=-1", "2^32"]),
    (["-drop_seed=18446744073709551616"], ["-drop_seed=18446744073709551616", "2^64"]),
    (["-v=4"], ["-v=4", "0 to 3"]),
    (["-repeat=0"], ["-repeat=0", "at least 1"]),
    (["-warmup=-1"], ["-warmup=-1"]),
    (["-timer=sundial"], ["-timer=sundial", "gpu or cpu"]),
    (["-kname=3"], ["-kname=3", "0, 1 or 2"]),
    (["-explain=3"], ["-explain=3", "0, 1 or 2"]),
    (["-threads=-1"], ["-threads=-1"]),
    (["-device=tpu"], ["-device", "tpu", "cpu"]),
    (["-device=nvidia:0"], ["-device", "nvidia:0", "hip:N"]),
    (["-device=cpu:z80"], ["-device", "z80", "portable"]),
    (["-json=1", "-jsonfile=/nonexistent/x.json"], ["-jsonfile=/nonexistent/x.json", "No such file"]),
    # of other operations
    (["-s_knew=-2"], ["-s_knew=-2", "at least -1"]),
    (["-rotary_dim=-16"], ["-rotary_dim=-16", "at least 0"]),
    (["-rotary_dim=24"], ["rotary_dim is 24: a multiple of 16 up to hdim_q"]),
    (["-s_k=8", "-s_knew=9"], ["-s_knew=9: at most -s_k, 8"]),
    (["-mode=1", "-s_knew=1"], ["-s_knew=1 -rotary_dim=0: in batch mode (-mode=0)"]),
    (["-prec=fp8bf16", "-qscale=pt", "-rotary_dim=16"], ["rope_type is inter: fp8 is not rotated"]),
    (["-num_splits=129"], ["-num_splits=129", "1 to 128, 0"]),
    (["-num_splits=-2"], ["-num_splits=-2", "1 to 128, 0 for"]),
    (["-page_block_size=-1"], ["-page_block_size=-1", "1 or more, or 0"]),
    (["-page_block_size=2147483647"], ["the buffers take"]),
    (
        ["-b=100000", "-h=1", "-d=1", "-s=30000", "-page_block_size=1"],
        ["-b=100000 -page_block_size=1: a cache of 3000000000 pages, at most 2147483647"],
    ),
    (["-api=forward"], ["-api=forward", "fwd, fwd_splitkv, pagedkv_prefill or batch_prefill"]),
    (["-api=fwd", "-page_block_size=16"], ["-api=fwd: it has no cache"]),
    (["-api=pagedkv_prefill", "-num_splits=2"], ["-num_splits=2 with -api=pagedkv_prefill"]),
    (["-num_splits=2", "-s_kpad=4000"], ["-api=fwd_splitkv: without pads"]),
    (["-cache_batch_idx=1", "-kv_eff_lens=9"], ["-api=pagedkv_prefill: without pads and effective lengths"]),
    (["-page_block_size=16", "-p_drop=0.2"], ["-p_drop=0.2 with -api=pagedkv_prefill"]),
    (["-page_block_size=16", "-prec=fp8", "-qscale=bs"], ["-qscale=bs with -api=pagedkv_prefill: n or pt"]),
    (["-page_block_size=16", "-vlayout=c"], ["-vlayout=c with -api=pagedkv_prefill: r"]),
    (["-cache_batch_idx=1", "-mode=1"], ["-cache_batch_idx=1: in batch mode"]),
    (["-api=batch_prefill"], ["-api=batch_prefill: group mode"]),
    # sizes
    (["-b=2000000000", "-h=2000000000", "-s=2000000000"], ["-b=2000000000", "overflow 64 bits"]),
    (["-b=2000000000", "-h=1", "-s=1", "-d=1"], ["-b=2000000000", "GB"]),
    (["-b=1000", "-s=1000000"], ["-s=1000000", "GB"]),
    (["-mode=1", "-h=1", "-d=1", "-s=2000000000,2000000000"], ["-b=2", "2147483647"]),
    (["-b=1", "-h=1", "-s=1000000", "-bias=e"], ["-s=1000000", "GB"]),
    (["-mode=1", "-b=4", "-h=1", "-d=1", "-s=1000000000"], ["-s=1000000000", "-b=4", "2147483647"]),
]


@pytest.mark.parametrize(("arguments", "names"), WRONG, ids=" ".join)
def test_wrong_arguments(arguments: list[str], names: list[str]) -> None:
    done = run(*SMALL, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("tile_example_fmha_fwd: ") and done.stderr.count("\n") == 1
    for name in names:
        assert name in done.stderr


def test_wrong_arguments_each_have_their_own_line() -> None:
    lines = {run(*SMALL, *arguments).stderr for arguments, _ in WRONG}
    assert len(lines) == len(WRONG)


@pytest.mark.parametrize("arguments", [["-s=10"], ["--help"], ["-s=10", "-explain=1"]], ids=" ".join)
def test_output_that_does_not_arrive(arguments: list[str]) -> None:
    for program, words in ((PROGRAM, arguments), (SMOKE, ["-list"])):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [program, *words], check=False, stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 4
        assert done.stderr == f"{program.name}: standard output cannot be written: No space left on device\n"


def test_a_failure_counts_for_more_than_the_output() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([PROGRAM, "-s=0"], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "-s=0" in done.stderr


def on_terminal(*arguments: str, kind: str = "xterm") -> str:
    """What the program writes to a terminal."""
    ours, its = os.openpty()
    with subprocess.Popen(
        [PROGRAM, *arguments], stdout=its, stderr=its, env={**os.environ, "TERM": kind}
    ) as done:
        os.close(its)
        written = b""
        try:
            while piece := os.read(ours, 4096):
                written += piece
        except OSError:  # the program has closed its end
            pass
    os.close(ours)
    assert done.returncode == 0
    return written.decode()


def test_progress_of_a_long_verification() -> None:
    """It is shown on the line below, and is gone in the end."""
    for heads in (2**n for n in range(10)):  # until it takes long enough to be shown
        words = [*SMALL[3:], "-s=1024", "-b=1", f"-h={heads}", "-threads=1"]
        text = on_terminal(*words)
        if "verified" in text:
            break
        assert "\x1b" not in text
    steps = re.findall(rf"\x1b7\r\nrows verified: (\d+) of {1024 * heads}\x1b\[K\x1b8", text)
    assert steps == sorted(steps, key=int) and int(steps[0]) >= 1
    assert text.endswith("\x1b7\r\n\x1b[K\x1b8, valid:y\r\n")
    assert "\x1b" not in on_terminal(*words, kind="dumb")


@pytest.mark.parametrize("splits", [0, 1])
def test_number_of_splits(splits: int) -> None:
    """Without a cache both are fmha_fwd's own choice; 0 asks CK for a heuristic."""
    line_of(f"-num_splits={splits}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-num_splits=3"], "num_splits:3, fmha_fwd_splitkv__"),
        (["-num_splits=0", "-cache_batch_idx=1"], "num_splits:0, cache_batch_idx:1, fmha_fwd_splitkv__"),
        (["-page_block_size=16"], "page_block_size:16, fmha_fwd_pagedkv__"),
        (["-page_block_size=16", "-mode=1"], "page_block_size:16, fmha_fwd_pagedkv__"),
        (["-page_block_size=16", "-num_splits=2", "-mode=1"], "page_block_size:16, fmha_fwd_splitkv__"),
        (
            ["-page_block_size=16", "-mode=1", "-api=batch_prefill"],
            "page_block_size:16, fmha_batch_prefill__",
        ),
        (
            ["-prec=fp8bf16", "-qscale=kvbs", "-page_block_size=16", "-mode=1", "-api=batch_prefill"],
            "page_block_size:16, fmha_batch_prefill__",
        ),
        (
            ["-prec=fp8fp32", "-qscale=th", "-page_block_size=16", "-mode=1", "-api=batch_prefill"],
            "page_block_size:16, fmha_batch_prefill__",
        ),
        (["-api=fwd_splitkv"], "num_splits:1, fmha_fwd_splitkv__"),
    ],
)
def test_operations_on_caches(arguments: list[str], says: str) -> None:
    """CK's order of kernels, unless -api names one."""
    assert says in line_of("-kname=1", *arguments)


def test_splits_that_the_instance_cannot_make() -> None:
    done = run(*SMALL, "-num_splits=2", "-api=fwd", "-device=cpu")
    assert done.returncode == 1
    assert re.search(r"num_splits is 2: fmha_fwd_\w+ does not cut keys into parts", done.stderr)


def test_cache_arguments_at_their_defaults() -> None:
    line_of(
        "-s_knew=0",
        "-rotary_dim=0",
        "-rotary_interleaved=1",
        "-page_block_size=0",
        "-cache_batch_idx=0",
    )


@pytest.mark.parametrize("device", ["hip:0", "sim:gfx942"])
def test_device_errors(device: str) -> None:
    nowhere = {"TESSERA_HIP_LIBRARY": "/nonexistent/hip", "TESSERA_SIM_LIBRARY": "/nonexistent/sim"}
    done = run(*SMALL, f"-device={device}", env=nowhere)
    assert done.returncode == 4
    assert device in done.stderr and done.stderr.count("\n") == 1


# --- JSON ---------------------------------------------------------------------------------------------------


def test_json_has_the_fields_of_ck(tmp_path: Path) -> None:
    result = result_of(tmp_path, "-mode=1", "-s_kpad=90", "-lse=1", "-bias=a", "-mask=t:4,2", "-p_drop=0.5")
    for key, value in {
        "name": "fmha_fwd",
        "prec": "fp16",
        "mode": "group",
        "io_layout": "bhsd",
        "batch": 2,
        "nhead": 2,
        "nhead_k": 2,
        "seqlen_kpads": 90,
        "hdim_q": 32,
        "hdim_v": 32,
        "p_drop": 0.5,
        "lse": True,
        "qscale": "no_scale",
        "bias": "alibi",
        "vlayout": "r",
        "verification": "pass",
        "mask": "t:4,2",
        "message": "",
        "runs": 1,
    }.items():
        assert result[key] == value, key
    assert result["seqlen_q"] > 0 and result["seqlen_k"] > 0
    assert result["scale_s"] == pytest.approx(32**-0.5)
    assert re.match(r"fmha_fwd\w*__", result["kernel"])
    assert result["ck_name"].startswith("fmha_fwd_d32_fp16_group_")
    assert set(result["perf"]) == {"time", "tflops", "gb/s"} and all(v > 0 for v in result["perf"].values())
    assert result["rows"] == result["rows_verified"] == 2 * 2 * 50
    assert 0 < result["max_error_over_bound"] <= 1


def test_json_of_a_skipped_verification(tmp_path: Path) -> None:
    result = result_of(tmp_path, "-v=0")
    assert result["verification"] == "skipped"
    assert result["rows_verified"] == 0 and "max_error" not in result


def test_repeat_is_met(tmp_path: Path) -> None:
    assert result_of(tmp_path, "-warmup=2", "-repeat=7")["runs"] == 7


def test_timing_stops_after_three_seconds(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = run("-b=1", "-h=4", "-s=8192", "-d=128", "-prec=fp32", "-v=0", "-json=1", f"-jsonfile={path}")
    assert done.returncode == 0, done.stderr
    result = json.loads(path.read_text())
    assert result["runs"] * result["perf"]["time"] < 3000 + result["perf"]["time"]


# --- what goes wrong inside ---------------------------------------------------------------------------------

# Stands between program and library: does what FAULT says to the call or to its result.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "tessera/fmha_fwd.h"

static int fault(const char *name) { const char *f = getenv("FAULT"); return f && strcmp(f, name) == 0; }

typedef const tessera_device_facts *facts;
typedef const tessera_fmha_fwd_traits *traits;
typedef const tessera_fmha_fwd_args *args;
typedef const tessera_fmha_fwd_instance *instance;

tessera_status tessera_fmha_fwd_select(facts f, traits t, args a, instance *out) {
    if (fault("no_instance")) return TESSERA_ERROR_NO_INSTANCE;
    tessera_status (*real)(facts, traits, args, instance *);
    *(void **)&real = dlsym(RTLD_NEXT, "tessera_fmha_fwd_select");
    return real(f, t, a, out);
}

tessera_status tessera_fmha_fwd(const tessera_device *d, traits t, args a, void *s) {
    tessera_status (*real)(const tessera_device *, traits, args, void *);
    if (fault("device")) return TESSERA_ERROR_DEVICE;
    *(void **)&real = dlsym(RTLD_NEXT, "tessera_fmha_fwd");
    tessera_status status = real(d, t, a, s);
    unsigned char *o = a->o_ptr;
    size_t o_bytes = 2u * (size_t)a->batch * (size_t)a->batch_stride_o;
    if (fault("o")) o[1] ^= 0x40;
    if (fault("nan")) memset(o + 20, 0xff, 2);
    if (fault("lse")) ((float *)a->lse_ptr)[3] += 0.01f;
    if (fault("randval")) ((unsigned char *)a->rand_val_ptr)[5] ^= 1;
    if (fault("before_o")) o[-1] = 0;
    if (fault("after_o")) o[o_bytes + 255] = 0;
    if (fault("q")) *(unsigned char *)(size_t)a->q_ptr ^= 1;
    if (fault("before_k")) ((unsigned char *)(size_t)a->k_ptr)[-256] = 0;
    if (fault("past_length")) o[o_bytes - 1] = 0;
    if (fault("workspace")) ((unsigned char *)a->workspace_ptr)[a->workspace_size] = 0;
    return status;
}
"""


@pytest.fixture(scope="session")
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
    if run(*SMALL, env={**env, "FAULT": "no_instance"}).returncode == 0:
        pytest.skip("the program has the library inside, so that nothing can come between them")
    return env


@pytest.mark.parametrize(
    ("fault", "arguments", "says"),
    [
        ("o", [], "o of sequence 0, head 0, query 0"),
        ("nan", [], "o of sequence 0, head 0, query 0"),
        ("lse", ["-lse=1"], "lse of sequence 0, head 0, query 3"),
        ("randval", ["-p_drop=0.3"], "rand_val of sequence 0, head 0, query 0 is wrong: the byte of key 5"),
        ("before_o", [], "guard zone"),
        ("after_o", [], "guard zone"),
        ("q", [], "an input"),
        ("before_k", [], "an input, or a guard zone around one"),
        ("past_length", ["-q_eff_lens=50,49"], "query 49 of sequence 1, which is past the logical length"),
        ("workspace", [], "workspace"),
    ],
)
def test_wrong_results_are_seen(
    tmp_path: Path, shim: dict[str, str], fault: str, arguments: list[str], says: str
) -> None:
    env = {**shim, "FAULT": fault}
    done = run(*SMALL, *arguments, env=env)
    assert done.returncode == 3
    assert ", valid:n\n" in done.stdout and "valid:y" not in done.stdout
    assert says in done.stderr and done.stderr.count("\n") == 1
    result = result_of(tmp_path, *arguments, code=3, env=env)
    assert result["verification"] == "fail" and says in result["message"]


def test_without_a_fault_the_shim_changes_nothing(shim: dict[str, str]) -> None:
    assert run(*SMALL, env=shim).returncode == 0


def test_no_instance(tmp_path: Path, shim: dict[str, str]) -> None:
    env = {**shim, "FAULT": "no_instance"}
    done = run(*SMALL, env=env)
    assert done.returncode == 2
    assert done.stdout.endswith(", v:r, not supported yet\n")
    assert result_of(tmp_path, code=2, env=env)["verification"] == "skipped"


def test_device_failure_in_the_call(tmp_path: Path, shim: dict[str, str]) -> None:
    result = result_of(tmp_path, code=4, env={**shim, "FAULT": "device"})
    assert result["verification"] == "skipped"


# --- our own arguments --------------------------------------------------------------------------------------


def test_explain_lists_kernels_before_the_line() -> None:
    done = run(*SMALL, "-explain=1", "-kname=1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) > 1
    chosen = re.search(r"fmha_fwd\w*__\w+", lines[-1])
    assert chosen and lines[0].startswith(f"* {chosen[0]} ") and " cost " in lines[0]


def test_levels_of_explanation() -> None:
    """There is a line for each reason or for each kernel; each kernel is counted once, or named once."""
    brief, full = (run(*SMALL, f"-explain={level}").stdout.splitlines()[:-1] for level in (1, 2))
    candidates = [line for line in brief if " cost " in line]
    assert [line[:2] for line in candidates] == ["* "] + ["  "] * (len(candidates) - 1)
    counts = [int(line.split()[1]) for line in brief if line.startswith("- ")]
    assert len(brief) == len(candidates) + len(counts) and len(full) == len(candidates) + sum(counts)
    others = [line.split()[1] for line in full if line.startswith("- ")]
    assert len(set(others)) == len(others) == sum(counts)
    assert all("  no: " in line for line in full[len(candidates) :])


def test_results_do_not_depend_on_threads(tmp_path: Path) -> None:
    results = [result_of(tmp_path, "-s=300", f"-threads={n}")["max_error"] for n in (1, 2, 5)]
    assert results[0] == results[1] == results[2]


def test_device_narrows_the_choice() -> None:
    targets = re.findall(r"^[* -] fmha_fwd\w*__(\w+?)_b\d", run(*SMALL, "-explain=2").stdout, re.M)
    names = {"x86_64_v2": "x86-64-v2", "x86_64_v3": "x86-64-v3", "armv8_a": "armv8-a", "portable": "portable"}
    tried = 0
    for target in sorted(set(targets) & set(names)):
        done = run(*SMALL, "-kname=1", f"-device=cpu:{names[target]}")
        if done.returncode == 0:
            assert f"__{target}_" in done.stdout and "valid:y" in done.stdout
            tried += 1
    assert tried > 0


# --- examples of the manual, and the smoke program ----------------------------------------------------------

EXAMPLES = [
    ["-b=1", "-h=16", "-s=16384", "-d=128"],
    ["-b=1", "-h=8", "-s=16384", "-d=64", "-drop_prefs=1", "-drop_seed=10", "-drop_offset=1234"],
    [
        "-mode=1",
        "-b=2",
        "-h=8",
        "-s=1024,2048",
        "-s_k=1024,2048",
        "-s_qpad=1536,3072",
        "-s_kpad=1536,3072",
        "-d=128",
    ],
    [
        "-mode=0",
        "-b=2",
        "-h=8",
        "-s=2048",
        "-s_k=2048",
        "-d=128",
        "-q_eff_lens=1024,1536",
        "-kv_eff_lens=1024,1536",
    ],
]


@pytest.mark.parametrize("number", [1, 2, *sample([3, 4], 1)])
def test_examples_of_ck(number: int) -> None:
    if number < 3 and os.environ.get("TESSERA_TEST_ALL") != "1":
        pytest.skip("half a minute; TESSERA_TEST_ALL=1 runs it")
    done = run(*EXAMPLES[number - 1])
    assert done.returncode == 0, done.stderr
    assert ", valid:y" in done.stdout


def test_smoke_counts_filters_and_resumes() -> None:
    cases = start(SMOKE, "-list").stdout.splitlines()
    assert sum("-p_drop=" in case for case in cases) == 3456
    assert len(cases) == 3456 + 6 + 30 + 28 + 82
    assert len(set(cases)) == len(cases)
    some = start(SMOKE, "-filter=*-s=99 *-prec=bf16*-bias=a*", "-from=5", "-count=7")
    assert some.returncode == 0 and some.stdout == "7 passed, 0 failed\n"
    parts = [start(SMOKE, "-list", "-every=7", f"-from={day}").stdout.splitlines() for day in range(7)]
    assert sorted(case for part in parts for case in part) == sorted(cases)
    none = start(SMOKE, "-filter=nothing")
    assert none.returncode == 1 and "-filter=nothing" in none.stderr
    # A failure is printed as a command that repeats it.
    broken = start(SMOKE, "-filter=*-s=3 *-prec=fp16*", "-count=1", "-extra=-device=hip:0")
    assert broken.returncode == 3
    assert re.match(r"0: tile_example_fmha_fwd -b=.*\n.*\n0 passed, 1 failed\n", broken.stdout)
