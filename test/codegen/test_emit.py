# SPDX-License-Identifier: MIT
"""Writing: the same bytes each time, nothing touched or removed without need, nothing written on an error."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, contents, refused, run, run_in, times

from codegen.emit import SOURCE_FOLDERS

FILES = ("{}_table.c", "tessera_{}_table.h", "{}_sources.txt")
COMPANION = {file.format("fmha_fwd_combine") for file in FILES} | {".tessera-fwd_combine.manifest"}
DISPATCH = {file.format("fmha_fwd") for file in FILES} | {".tessera-fwd.manifest"} | COMPANION


def emit(folder: Path, *arguments: object) -> str:
    result = run("--targets", "x86-64", "-o", folder, *arguments)
    assert result.code == 0, result.err
    return result.err


def names(*arguments: object) -> set[str]:
    return {line.split()[0] for line in run("--targets", "x86-64", "--table", *arguments).lines[1:]}


def test_twice_is_identical_and_touches_nothing(tmp_path: Path) -> None:
    assert "0 kept, 0 removed" in emit(tmp_path / "a")
    before = times(tmp_path / "a")
    folder = (tmp_path / "a").stat().st_mtime_ns
    assert "0 files written" in emit(tmp_path / "a")
    assert times(tmp_path / "a") == before
    assert (tmp_path / "a").stat().st_mtime_ns == folder
    emit(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert set(before) == {f"{name}.c" for name in names()} | DISPATCH


def test_the_list_of_sources_and_of_blobs(tmp_path: Path) -> None:
    emit(tmp_path)
    rows = [
        line.split("\t")
        for line in (tmp_path / "fmha_fwd_sources.txt").read_text().splitlines()
        if line[0] != "#"
    ]
    assert all(len(row) == 6 and (tmp_path / row[0]).is_file() for row in rows)
    assert {row[1] for row in rows} == {"host"} and [row[2] for row in rows].index("any") == len(rows) - 1
    flags = {row[2]: row[3] for row in rows}
    assert (
        flags["x86-64-v4-bf16"] == "-march=x86-64-v4 -mavx512bf16 -mavx512vbmi -mavx512vnni"
        and flags["any"] == ""
    )
    assert run("--targets", "gfx942", "-o", tmp_path / "device").code == 0
    lines = (tmp_path / "device" / "fmha_fwd_sources.txt").read_text().splitlines()
    devices = [line for line in lines if line[0] != "#"][:-1]
    assert devices
    for line in devices:
        assert line.split("\t")[1:4] == ["amdgcn", "gfx942", "-mcpu=gfx942 -mcode-object-version=4"]
    blobs = tmp_path / "blobs.txt"
    blobs.write_text("to be truncated\n" * 1000)
    result = run("--targets", "x86-64", "-l", blobs)
    assert result.code == 0 and result.out == ""
    files = ["fmha_fwd_combine_table.c", *(row[0] for row in rows)]
    assert blobs.read_text().splitlines() == [str(tmp_path.resolve() / file) for file in files]


def test_what_goes_along_is_emitted_for_targets_of_instances(tmp_path: Path) -> None:
    """It has no filter, no receipt and no rows of its own in another folder, and lists do not name it."""
    combine = "fmha_fwd_combine__sm_90a_b4_rows.c"
    targets = ("--targets", "x86-64-v3,sm_90a")
    for more, there in (((), True), (("--where", "target=x86-64-v3"), False), (("-f", "*m1"), True)):
        assert run(*targets, *more, "-o", tmp_path).code == 0
        assert (tmp_path / combine).exists() == there
        assert "# with fmha_fwd_combine" in (tmp_path / "fmha_fwd_sources.txt").read_text()
    assert "combine" not in run(*targets, "--table").out
    assert run("--render", Path(combine).stem).out == (tmp_path / combine).read_text()
    rows = tmp_path / "rows"
    rows.mkdir()
    for name in ("fmha_fwd", "receipts"):
        shutil.copy(ROOT / f"instances/{name}.toml", rows)
    assert run(*targets, "--instances", rows, "-o", tmp_path / "own").code == 0
    assert (tmp_path / "own" / combine).exists()


def test_the_list_wins_over_the_directory(tmp_path: Path) -> None:
    assert run("--targets", "x86-64", "-l", tmp_path / "list", "-o", tmp_path / "out").code == 0
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "list").read_text().splitlines()[-1] == str(
        tmp_path.resolve() / "out" / "fmha_fwd_table.c"
    )


def test_what_is_no_longer_selected_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "fmha_fwd_mine.c").write_text("mine")
    emit(tmp_path)
    before = times(tmp_path)
    assert re.search("[1-9][0-9]* removed", emit(tmp_path, "--where", "bm0=32"))
    few = {f"{name}.c" for name in names("--where", "bm0=32")}
    assert set(contents(tmp_path)) == few | DISPATCH | {"fmha_fwd_mine.c"}
    for file in few:
        assert times(tmp_path)[file] == before[file]
    emit(tmp_path, "-f", " ")
    assert set(contents(tmp_path)) == DISPATCH | {"fmha_fwd_mine.c"}


def test_a_file_that_was_edited_or_lost_is_restored(tmp_path: Path) -> None:
    emit(tmp_path)
    good = contents(tmp_path)
    kernels = sorted(set(good) - DISPATCH)
    (tmp_path / kernels[0]).write_text("edited")
    (tmp_path / kernels[1]).unlink()
    (tmp_path / "fmha_fwd_table.c").unlink()
    assert "3 files written" in emit(tmp_path)
    assert contents(tmp_path) == good
    (tmp_path / ".tessera-fwd.manifest").unlink()
    assert "0 files written" in emit(tmp_path)
    assert contents(tmp_path) == good


def test_a_call_that_was_cut_short_leaves_no_strays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace
    moved = []

    def replace(self: Path, target: Path) -> Path:
        moved.append(target)
        if len(moved) == 5:
            raise OSError(28, "No space left on device", str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    result = run("--targets", "x86-64", "-o", tmp_path)
    assert result.code == 1 and "No space left on device" in result.err and result.err.count("\n") == 1
    monkeypatch.undo()
    emit(tmp_path, "-f", " ")
    assert set(contents(tmp_path)) == DISPATCH


def test_on_an_error_nothing_is_written(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--targets", "x86-64", "-o", out)
    assert run_in(checkout, *arguments).returncode == 0
    before = contents(out), times(out)
    template = checkout / "templates" / "fmha_fwd" / "decode.cpu.c.j2"
    template.write_text(template.read_text() + "\n${i.tile.no_such_field}\n")
    failed = run_in(checkout, *arguments)
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
    assert "templates/fmha_fwd/decode.cpu.c.j2" in failed.stderr and "no_such_field" in failed.stderr
    assert (contents(out), times(out)) == before
    assert run_in(checkout, "--targets", "x86-64", "-o", tmp_path / "new" / "deep").returncode == 1
    assert not (tmp_path / "new").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tessera")]


def test_a_changed_template_changes_what_it_made(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_in(checkout, "--targets", "x86-64", "-o", out)
    template = checkout / "templates" / "fmha_fwd" / "decode.cpu.c.j2"
    template.write_text(template.read_text() + "// a last line\n")
    decode = sum("decode" in file for file in contents(out))
    diff = run_in(checkout, "--targets", "x86-64", "--diff", out)
    assert diff.returncode == 1
    assert diff.stdout.count("\n+// a last line") == decode == diff.stdout.count("\n+++ ")
    assert f"; {decode} files written" in run_in(checkout, "--targets", "x86-64", "-o", out).stderr
    assert run_in(checkout, "--targets", "x86-64", "--diff", out).returncode == 0


def test_diff_shows_what_would_come_and_go(tmp_path: Path) -> None:
    emit(tmp_path, "--where", "bm0=32")
    assert run("--targets", "x86-64", "--where", "bm0=32", "--diff", tmp_path).code == 0
    result = run("--targets", "x86-64", "--where", "bm0=16", "--diff", tmp_path)
    assert result.code == 1
    assert result.out.count("--- /dev/null") == len(names("--where", "bm0=16"))
    assert result.out.count("+++ /dev/null") == len(names("--where", "bm0=32"))
    assert "no directory" in refused("--targets", "x86-64", "--diff", tmp_path / "nowhere")


def test_many_files_by_several_processes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit(tmp_path / "one")
    monkeypatch.setattr("codegen.emit.WORKERS_FROM", 1)
    emit(tmp_path / "several")
    assert contents(tmp_path / "one") == contents(tmp_path / "several")


@pytest.mark.parametrize("line", ["not a manifest", "- - ../outside.c", "- - /etc/passwd", "- - .hidden"])
def test_a_manifest_that_is_not_ours_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / ".tessera-fwd.manifest").write_text(line + "\n")
    assert "is not a manifest" in refused("--targets", "x86-64", "-o", tmp_path)


def test_unwritable_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deep"):
        said = f"cannot write into {folder}: {tmp_path / 'file'} is no folder"
        assert refused("--targets", "x86-64", "-o", folder) == said
    assert "cannot write" in refused("--targets", "x86-64", "-l", tmp_path / "no" / "list")
    assert "cannot read" in refused("--targets", "x86-64", "--count", "--instances", tmp_path)


def test_sources_are_not_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(ROOT)
    monkeypatch.chdir(ROOT)
    for folder in (
        ".",
        ROOT,
        "codegen",
        ROOT / "test" / "new",
        tmp_path / "link" / "include",
        "docs/../docs",
    ):
        assert "the generator's sources are there" in refused("--targets", "x86-64", "-o", folder)
    for option in ("-o", "-l", "--diff", "--report", "--instances", "--from"):
        assert refused(option, "").endswith("the name is empty; --help lists the options")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no repository")
def test_every_folder_of_sources_is_known() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split("/")[0] for line in listed.splitlines() if "/" in line} | {".git"} == SOURCE_FOLDERS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("action", ["--table", "--help", "--render fmha_fwd__portable_b16x32x16_w1_decode"])
def test_output_that_is_lost_is_an_error(action: str) -> None:
    command = f"{sys.executable} {ROOT / 'generate.py'} {action}"
    for where, why in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        done = subprocess.run(
            f"{command} {where}", shell=True, stderr=subprocess.PIPE, text=True, check=False
        )
        *notes, said = done.stderr.splitlines()
        assert (done.returncode, said) == (1, f"generate.py: cannot write the output: {why}")
        assert all(note.startswith("fwd: ") for note in notes)
    assert subprocess.run(f"{command} 2>/dev/full >/dev/null", shell=True, check=False).returncode == 0


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A limit of files' sizes fails as a full disk does, without the name of the file."""
    out = tmp_path / "out"
    call = [sys.executable, str(ROOT / "generate.py"), "--targets", "portable", "-o", str(out)]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 8 && exec "$@"', "-", *call], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(rf"generate\.py: cannot write {out}/[\w.]+: File too large\n", done.stderr)
    assert not out.exists()


# A call that stops while it renders, says so, and waits.
STOPS = """
import sys, time, generate, codegen.emit
def stop(*_):
    print("rendering", flush=True)
    time.sleep(60)
codegen.emit._stage = stop
generate.main(sys.argv[1:])
"""


def test_a_killed_call_leaves_nothing_to_the_next_but_one(tmp_path: Path) -> None:
    def hidden() -> set[str]:
        return {path.name for path in tmp_path.iterdir() if path.is_dir()}

    def stopped() -> subprocess.Popen[bytes]:
        call = [sys.executable, "-c", STOPS, "--targets", "x86-64", "-o", str(tmp_path)]
        process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout and process.stdout.readline() == b"rendering\n"
        return process

    (tmp_path / ".tessera-fwd-backup").mkdir()  # somebody's own
    living = stopped()
    theirs = hidden()
    assert len(theirs) == 2
    killed = stopped()
    assert len(hidden()) == 3
    killed.kill()
    killed.communicate()
    emit(tmp_path)
    assert hidden() == theirs
    living.kill()
    living.communicate()
    assert "0 files written" in emit(tmp_path)
    assert hidden() == {".tessera-fwd-backup"}
    assert set(contents(tmp_path / ".tessera-fwd-backup")) == set()


# --- AITER calls the generator several times, for several apis, into one directory. The second is made up.

SECOND_API = """
# SPDX-License-Identifier: MIT
from codegen.ops import fmha_fwd

class Second(fmha_fwd.FmhaFwd):
    api = "fwd_second"
    name = family = "fmha_second"
    kernels = ("combine", "main")

    def kernel_of(self, instance):
        return "combine" if instance.tile.pipeline == "decode" else "main"

def operation(mask):
    return Second(mask)
"""


@pytest.fixture
def two_apis(checkout: Path) -> Path:
    (checkout / "codegen" / "ops" / "fmha_second.py").write_text(SECOND_API)
    (checkout / "templates" / "fmha_second").symlink_to("fmha_fwd")
    (checkout / "instances" / "fmha_second.toml").symlink_to("fmha_fwd.toml")
    receipts = checkout / "instances" / "receipts.toml"
    receipts.write_text(re.sub("^(fwd)( = .*)$", r"\1\2\nfwd_second\2", receipts.read_text(), flags=re.M))
    return checkout


def test_sequences_of_calls_as_aiter_makes_them(two_apis: Path, tmp_path: Path) -> None:
    out = tmp_path / "blob"

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        result = run_in(two_apis, *arguments, "--targets", "x86-64", "--output_dir", out)
        assert result.returncode == 0, result.stderr
        return result

    both = "fwd,fwd_second"
    call(
        "-d",
        "fwd",
        "--receipt",
        "100",
        "--filter",
        "*_fp16*_nlogits*_nbias*_mask*_nlse*_ndropout*_nskip*_nqscale*",
    )
    first = contents(out)
    call("-d", "fwd_second", "--receipt", "200", "--filter", "*@*")
    # A second api neither removes nor touches what the first one wrote.
    assert {file: bytes_ for file, bytes_ in contents(out).items() if file in first} == first
    second = {
        file for file in contents(out) if "fmha_second" in file or file == ".tessera-fwd_second.manifest"
    }
    assert set(contents(out)) == set(first) | second and len(second) > 4

    # The explicit none for one of two apis: its table stays, with no rows; its kernels go.
    none = call("-d", both, "--receipt", "100", "--filter", "*_fp16*, @ ")
    assert "fwd_second: the filter asks for none" in none.stderr
    assert {file for file in contents(out) if "fmha_second" in file} == {
        "fmha_second_table.c",
        "tessera_fmha_second_table.h",
        "fmha_second_sources.txt",
    }

    # Parts of a filter belong to sub-kernels; a missing part is *.
    def second_kernels(pattern: str) -> tuple[int, int]:
        call("-d", both, "--filter", f",{pattern}")
        files = [file for file in contents(out) if file.startswith("fmha_second") and "__" in file]
        return sum("decode" in file for file in files), sum("qr" in file for file in files)

    combine, main = second_kernels("*")
    assert combine and main
    assert second_kernels("*@*") == second_kernels("@") == second_kernels("*__*") == (combine, main)
    assert second_kernels(" @*") == (0, main) and second_kernels("*@ ") == (combine, 0)
    assert second_kernels("*x86_64_v2*@*_b32x*")[0] == 1
    # Both at once, and one by one, end in the same.
    call("-d", both)
    together = contents(out)
    call("-d", "fwd_second", "--filter", " ")
    call("-d", "fwd")
    call("-d", "fwd_second")
    assert contents(out) == together


def test_an_error_in_the_second_api_leaves_the_first_alone(two_apis: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("-d", "fwd,fwd_second", "--targets", "x86-64", "-o", out)
    failed = run_in(two_apis, *arguments, "-f", "*,*_no_such_*")
    assert failed.returncode == 1 and "'_no_such_' matches nothing" in failed.stderr
    assert not out.exists()
    rows = two_apis / "instances" / "fmha_second.toml"
    rows.unlink()
    rows.write_text(
        (ROOT / "instances" / "fmha_fwd.toml")
        .read_text()
        .replace('"qr"', '"no_template"')
        .replace("qr]", "no_template]")
    )
    failed = run_in(two_apis, *arguments)
    assert failed.returncode == 1 and "no_template" in failed.stderr and failed.stderr.count("\n") == 1
    assert not out.exists()


def test_readers_of_a_pipe_may_leave(tmp_path: Path) -> None:
    command = f"{sys.executable} {ROOT / 'generate.py'} --expand --targets x86-64 | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("fmha_fwd_d32_") and "Traceback" not in done.stderr
