# SPDX-License-Identifier: MIT
"""The command line: every wrong use is one line on stderr that says what there is, and exit code 1."""

from __future__ import annotations

import csv
import io
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, refused, run, run_all
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import sample

from codegen.receipts import DEFAULT
from codegen.spec import SUFFIXES, cell
from codegen.targets import CK_DEFAULT


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        # an api, target, receipt, field, head dim, format, mask that there is not
        ("--count -d nope --targets cpu", "api 'nope' is unknown; there is: add_rmsnorm2d"),
        (
            "--count -d fwd,forward --targets cpu",
            "api 'forward' is unknown; there is: add_rmsnorm2d",
        ),
        ("--count -d fwd,fwd --targets cpu", "api 'fwd' is named twice"),
        ("--count --targets pdp-11", "unknown target 'pdp-11'; there is: portable, x86-64-v2,"),
        ("--count --targets x86-64-v9", "unknown target 'x86-64-v9'; there is: portable, x86-64-v2,"),
        ("--count --targets cpu,gfx1201", "target 'gfx1201' has no instances yet; there is: portable,"),
        ("--count --targets gfx908:xnack-", "target 'gfx908:xnack-' has no instances yet; there is:"),
        ("--count --targets gfx942:xnack", "target 'gfx942:xnack' has no instances yet; there is:"),
        ("--count --targets sm_100a", "target 'sm_100a' has no instances yet; there is: portable,"),
        (
            "--count -r 5 --targets cpu",
            "unknown receipt '5'; there is: all, ci, quickstart, 0 (default), 1 (padded)",
        ),
        ("--count -r -1 --targets cpu", "unknown receipt '-1'; there is: all, ci,"),
        ("--count --where colour=red", "unknown field 'colour'; the closest of "),
        ("--count --where dtype=int4", "unknown dtype 'int4'; there is: fp32, fp16,"),
        (
            "--count --where hdim_q=40",
            "unknown hdim_q '40'; there is: 32, 48, 64, 80, 96, 128, 192, 256, 512",
        ),
        ("--count --where hdim=513", "unknown hdim '513'; there is: 32, 48, 64, 80x96,"),
        ("--count --optdim 32,33", "unknown hdim_q '33'; there is: 32, 48,"),
        ("--count --where qscale=kvbs", "qscale 'kvbs' is refused: it belongs to batch_prefill alone"),
        ("--count --where dtype", "clause 'dtype' is not of the form field=value|value or field!=value"),
        ("--count --where bm0=7", "clause 'bm0=7' leaves no instance; bm0 is: "),
        (
            "--count --where dtype=fp32|fp16 -r 888 --targets cpu",
            "clause 'dtype=fp32|fp16' leaves no instance",
        ),
        ("--explain everything", "unknown explanation 'everything'; there is: reasons, all"),
        ("--table --format yaml", "unknown format 'yaml'; there is: text, json, csv"),
        ("--count -m fancy", "unknown mask 'fancy'; there is: simplified, generic"),
        ("--render nope --targets portable", "unknown instance 'nope'; there is: fmha_fwd__portable_b256"),
        ("--render nope", "unknown instance 'nope'; the closest of "),
        (
            "--render fmha_fwd_d64_bf16__gfx942_b128x64x64_w4_r",
            ": fmha_fwd_d64_bf16__gfx942_b128x64x64_w4_qr",
        ),
        # usage
        ("", "nothing to do; give one of --table, --count,"),
        ("--table --count", "--table and --count exclude each other"),
        ("--tab", "unrecognized arguments: --tab"),
        ("--count --rec 2", "unrecognized arguments: --rec 2"),
        ("--count extra", "unrecognized arguments: extra"),
        ("--count --receipt", "expected one argument"),
        ("--count --from /no/such/file", "cannot read /no/such/file"),
    ],
)
def test_refusals(arguments: str, says: str) -> None:
    words = arguments.split()
    if "--where" in words and "--targets" not in words:
        words += ["--targets", "x86-64"]
    assert says in refused(*words)


def test_the_program_itself_never_prints_a_traceback() -> None:
    options = ["-d", "fwd", "--targets", "gfx951", "-o", "/nonexistent"]
    command = [sys.executable, str(ROOT / "generate.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("generate.py: target 'gfx951'")


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    import generate

    assert generate.main(["--help"]) == 0
    text = capsys.readouterr().out
    for option in (
        "-d --direction -a --api --targets -o --output_dir -l --list_blobs -f --filter -m --mask -r "
        "--receipt --optdim --table --format --count --expand --where --from --render --explain --diff "
        "--report --suffix --rounding --instances -w --working_path -g --gen_blobs"
    ).split():
        assert option in text
    said = " ".join(text.split())
    for default in ("fwd", ",".join(CK_DEFAULT), DEFAULT, SUFFIXES[0]):
        assert re.search(rf"(default:|-d or -r) {re.escape(default)}\b", said), default
    assert "with -d or -r gfx9,gfx950, as in CK" in " ".join(text.split())


def test_the_default_targets_are_those_of_this_machine() -> None:
    targets = {row["target"] for row in json.loads(run("--table", "--format", "json").out)}
    machine = platform.machine()
    if machine == "x86_64":
        levels = {f"x86-64-v{level}" for level in (2, 3, 4)}
        assert targets == levels | {
            "x86-64-v4-bf16",
            "x86-64-v4-vp2intersect",
            "x86-64-v4-amx",
            "x86-64-v4-fp16",
        }
    else:
        assert targets == ({"armv8-a"} if machine == "aarch64" else {"portable"})
    assert run("--table").out == run("--table", "--targets", "cpu").out


def test_the_default_targets_of_ck_s_options_are_ck_s() -> None:
    for options in (("-d", "fwd"), ("-r", "2")):
        targets = {row["target"] for row in json.loads(run("--table", "--format", "json", *options).out)}
        assert targets == {"gfx90a", "gfx942", "gfx950"}


def test_direction_and_api_are_one_option() -> None:
    for option in ("-d", "-a", "--direction", "--api"):
        assert run_all("--count", option, "fwd").out == run_all("--count").out


def test_targets_are_listed_in_one_order_and_once() -> None:
    assert (
        run("--table", "--targets", "x86-64-v4,x86-64-v2").out
        == run("--table", "--targets", "x86-64-v2,x86-64-v4,x86-64-v2").out
    )
    assert (
        run("--count", "--targets", "gfx90a:xnack-,gfx942:sramecc+:xnack-").out
        == run("--count", "--targets", "gfx90a,gfx942").out
    )
    exact = json.loads(run("--table", "--targets", "x86-64-v4", "--format", "json").out)
    assert {row["target"] for row in exact} == {"x86-64-v4"}


def test_table_forms_say_the_same() -> None:
    text, as_json, as_csv = (run_all("--table", "--format", form).out for form in ("text", "json", "csv"))
    typed = json.loads(as_json)
    rows = [{field: cell(value) for field, value in row.items()} for row in typed]
    assert list(csv.DictReader(io.StringIO(as_csv))) == rows
    header, *lines = text.splitlines()
    assert [dict(zip(header.split(), line.split())) for line in lines] == rows
    words = set("name api target pipeline epilogue compute rounding o v_layout kv traits".split())
    for row in typed:
        assert {field for field, value in row.items() if isinstance(value, str)} <= words
        numbers = {field for field, value in row.items() if type(value) in (int, float)}
        assert numbers.isdisjoint(words) and {"bm0", "efficiency", "macs_per_cycle", "ck_names"} <= numbers


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_from_is_exactly_what_table_printed(tmp_path: Path, form: str) -> None:
    listed = run_all("--table", "--format", form, "--where", "bm0!=32", "-f", "*_fp16_*")
    file = tmp_path / "list"
    file.write_text(listed.out)
    assert run("--from", file, "--table", "--format", form).out == listed.out
    out = tmp_path / "out"
    assert run("--from", file, "-o", out).code == 0
    kernels = [row["name"] for row in json.loads(run("--from", file, "--table", "--format", "json").out)]
    assert {path.stem for path in out.glob("*__*.c") if "combine" not in path.stem} == set(kernels)


def test_from_refuses_what_it_did_not_print(tmp_path: Path) -> None:
    file = tmp_path / "list"
    good = run_all("--table").out
    file.write_text(good.replace("  qr  ", "  qs  ", 1))
    assert "row 1: pipeline is 'qs', but" in refused("--from", file, "--count")
    file.write_text(good.replace("fmha_fwd__portable", "fmha_fwd__someone", 1))
    assert "row 1: there is no instance 'fmha_fwd__someone" in refused("--from", file, "--count")
    for text in ("", "[1, 2]", "{", "one two\nthree\n", '[{"name": 1}]', "[\n"):
        file.write_text(text)
        assert str(file) in refused("--from", file, "--count")
    file.write_text(good)
    assert "for the targets asked for" in refused("--from", file, "--count", "--targets", "x86-64-v3")


def test_render_prints_what_is_written(tmp_path: Path) -> None:
    run_all("-o", tmp_path)
    for row in sample(json.loads(run_all("--table", "--format", "json").out), 10):
        assert run("--render", row["name"]).out == (tmp_path / f"{row['name']}.c").read_text()


def test_provenance() -> None:
    name = json.loads(run("--table", "--targets", "x86-64-v4", "--format", "json").out)[0]["name"]
    head = run("--render", name).lines[:8]
    assert head[0] == "// SPDX-License-Identifier: MIT-0"
    assert head[1] == "// Generated by generate.py from templates/fmha_fwd/qr.cpu.c.j2. Do not edit."
    assert head[2].startswith(f"// {name} serves: all; ")
    assert any("Cost:" in line for line in head) and any("Needs:" in line for line in head)


def test_no_progress_bar_in_a_log_and_one_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import generate

    assert "\r" not in run_all("-o", tmp_path / "log").err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert generate.main(["--targets", "x86-64", "-o", str(tmp_path / "terminal")]) == 0
    steps = terminal.getvalue().split("\r")
    count = sum("combine" not in path.name for path in (tmp_path / "terminal").glob("[!.]*"))
    assert steps[1].startswith("[##") and steps[1].endswith(f"] 16/{count}")
    assert steps[-2:] == [
        "\033[K",
        f"\033[K{steps[-1].removeprefix(chr(27) + '[K')}",
    ]  # gone, then the summary
    assert steps[-1].count("\n") == 1


def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "jinja2.py").write_text("raise ModuleNotFoundError(name='jinja2')\n")
    for action, code in ((["--table"], 0), (["-o", str(tmp_path / "out")], 1)):
        command = [sys.executable, str(ROOT / "generate.py"), *action]
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == code, done.stderr
        assert done.stderr.count("\n") == 1
        assert ("pip install jinja2" in done.stderr) == bool(code)


WORDS = st.sampled_from(
    (
        "-d -a --targets -r -f --optdim --where -m --format --table --count --explain --render --from --none "
        "- -- -x fwd fwd,fwd bwd cpu x86-64 x86-64-v4, gfx9 portable all ci 0 2 801 * *_fp16_* [ [!a]*?] *@* "
        ", @ 32 -1 32,64 simplified generic text json csv dtype=fp16 mask!=no hdim_q=64|128 a=b = != "
        "dtype!= dtype=| bm0=32 /dev/null"
    ).split()
) | st.sampled_from([" ", " @ ", "", "mode=batch lse=1", "\0", "é", "a b"])


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=8))
def test_no_words_lead_to_a_traceback(words: list[str]) -> None:
    result = run(*words)
    assert result.code in (0, 1)
    if result.code == 1:
        assert result.out == "" and result.err.count("\n") == 1, result.err
