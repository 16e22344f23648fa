#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates kernel instances, their dispatch tables and the lists of their sources."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NoReturn, TextIO

from codegen import Refused, emit, rank, resources, show, tune, unknown
from codegen.check import check, check_renders
from codegen.ops import parse_apis
from codegen.ops.fmha_fwd.cdna import ROUNDINGS
from codegen.receipts import DEFAULT, find_receipt, read_receipts
from codegen.render import instance_source
from codegen.rows import read_instances, refuse_targets_without
from codegen.select import Match, Request, Selection, select, split_filter
from codegen.spec import ROOT, SUFFIXES
from codegen.targets import CK_DEFAULT, TARGETS, host_targets, parse_targets

BESIDE = Path()  # -l without a file
CLEAR = "\r\033[K"  # a terminal's line
EXPLANATIONS = ("reasons", "all")
ACTIONS = (
    "table", "count", "expand", "explain", "render", "diff", "report", "tune", "rank", "list_blobs",
    "output_dir",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """One line for a wrong argument, and exit code 1."""

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; --help lists the options")

    def print_help(self, file: object = None) -> None:
        put(self.format_help())


def path(text: str) -> Path:
    """The name of a file or folder. Path alone takes no name for the folder that is worked in."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return Path(text)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options."""
    parser = Parser(prog="generate.py", description=__doc__, allow_abbrev=False)
    what = parser.add_argument_group("what is selected")
    what.add_argument(
        "-d",
        "--direction",
        "-a",
        "--api",
        metavar="API",
        help="comma list of apis; default: fwd, with --from those of the file",
    )
    what.add_argument(
        "--targets",
        metavar="LIST",
        help="comma list of targets, families; default: this machine's CPU; "
        f"with -d or -r {','.join(CK_DEFAULT)}, as in CK; with --render or --from all",
    )
    what.add_argument(
        "-r",
        "--receipt",
        metavar="NAME|NUMBER",
        help=f"a selection of instances/receipts.toml; default: {DEFAULT}, which is everything",
    )
    what.add_argument(
        "-f",
        "--filter",
        default="",
        metavar="PATTERN",
        help='shell pattern on short or CK names; for each api, parted by commas; default: *; " " is none',
    )
    what.add_argument(
        "--optdim", default="-1", metavar="LIST", help="comma list of hdim_q; -1 (the default) is all"
    )
    what.add_argument(
        "--where",
        default="",
        metavar="CLAUSES",
        help='such as "hdim_q=128 dtype=fp16|bf16 mask!=no"; default: no condition',
    )
    what.add_argument(
        "--from", dest="from_file", type=path, metavar="FILE", help="only the instances that --table printed"
    )
    what.add_argument(
        "-m", "--mask", default="simplified", help="masks in CK's names: simplified (default) or generic"
    )
    what.add_argument(
        "--rounding",
        default="",
        metavar="MODE",
        help="how GPU kernels round p to bf16: rtne, rtna (halves up) or rtz; default: what is cheap there",
    )
    what.add_argument(
        "--instances", type=path, metavar="DIR", help="rows and receipts; default: instances/ beside this"
    )
    how = parser.add_argument_group("what is done with it (one of these; -l wins over -o)")
    how.add_argument("-o", "--output_dir", type=path, metavar="DIR", help="write the files")
    how.add_argument(
        "-l",
        "--list_blobs",
        type=path,
        nargs="?",
        const=BESIDE,
        metavar="FILE",
        help="list in a file where -o would write sources; without -o beside the list; without FILE in "
        "the folder of -w as API_blobs.txt",
    )
    how.add_argument(
        "-w",
        "--working_path",
        type=path,
        metavar="DIR",
        help="the folder of -g, and of -l without FILE, as CK's generators of norms have it",
    )
    how.add_argument("-g", "--gen_blobs", action="store_true", help="write the files into the folder of -w")
    how.add_argument(
        "--suffix",
        default=SUFFIXES[0],
        metavar="SUFFIX",
        help=f"of the sources that -o writes and -l lists, which are both C and C++: {', '.join(SUFFIXES)}; "
        f"default: {SUFFIXES[0]}",
    )
    how.add_argument("--table", action="store_true", help="print the instances")
    how.add_argument("--count", action="store_true", help="print how many instances and CK names there are")
    how.add_argument("--expand", action="store_true", help="print the CK names asked for, one a line")
    how.add_argument(
        "--explain",
        nargs="?",
        const=EXPLANATIONS[0],
        metavar="all",
        help="print what was selected at which cost, and how much each condition kept out; all: by name",
    )
    how.add_argument("--render", metavar="NAME", help="print one instance's source")
    how.add_argument(
        "--diff", type=path, metavar="DIR", help="render all and print what would change there; exit 1 if so"
    )
    how.add_argument(
        "--report",
        type=path,
        metavar="DIR",
        help="print what the GPU kernels take that a build made in DIR, and a round of their main loops",
    )
    how.add_argument(
        "--tune",
        action="store_true",
        help="model tiles that no row has, for what is selected, and print rows of those that are faster",
    )
    how.add_argument(
        "--rank",
        action="store_true",
        help="print what instances take for problems: modelled, and by the formula that the library ranks by",
    )
    model = parser.add_argument_group("what --tune and --rank model, for gfx90a, gfx942 and gfx950")
    model.add_argument(
        "--build",
        type=path,
        metavar="DIR",
        help="a build with the simulator and programs; results are kept there",
    )
    model.add_argument(
        "--shapes",
        metavar="LIST",
        help="problems, as the operation's program takes them: 'b=1 h=16 s=4096; b=1 h=16 s=1024 mask=b'",
    )
    model.add_argument(
        "--ray", metavar="ADDRESS", help="spread the work over a Ray cluster; local: one that is started here"
    )
    parser.add_argument(
        "--format",
        default="text",
        help="of --table, --count, --report and --rank: text (default), json or csv",
    )
    return parser.parse_args(arguments)


def place_blobs(options: argparse.Namespace) -> None:
    """What -w, -g and -l without a file say, in the other options."""
    asked = [
        word for word, given in (("-g", options.gen_blobs), ("-l", options.list_blobs is BESIDE)) if given
    ]
    if len(asked) > 1:
        raise Refused("-g and -l exclude each other: -g writes the files, -l lists them")
    if asked and options.working_path is None:
        raise Refused(
            f"{asked[0]} needs -w, the folder{'' if options.gen_blobs else ', or the name of a file'}"
        )
    if options.working_path is None:
        return
    if not asked:
        raise Refused("-w needs -g, which writes files there, or -l, which lists them there")
    if options.output_dir is not None:
        raise Refused("-w and -o exclude each other: both are the folder that is written")
    if options.gen_blobs:
        options.output_dir = options.working_path
        return
    apis = options.direction or "fwd"
    if "," in apis:
        raise Refused(f"-l without FILE is for one api, not '{apis}'")
    options.list_blobs = options.working_path / f"{apis}_blobs.txt"


def choose_action(options: argparse.Namespace) -> str:
    """The one action that the options ask for."""
    asked = [action for action in ACTIONS if getattr(options, action)]
    if asked == ["list_blobs", "output_dir"]:
        return "list_blobs"
    if len(asked) == 1:
        return asked[0]
    names = " and ".join(f"--{action}" for action in asked)
    one = ", ".join(f"--{action}" for action in ACTIONS)
    raise Refused(f"{names} exclude each other" if asked else f"nothing to do; give one of {one}")


def choose_targets(options: argparse.Namespace) -> tuple[str, ...]:
    """The targets to generate for."""
    if options.targets is not None:
        return parse_targets(options.targets)
    if options.render or options.from_file:
        return tuple(TARGETS)
    if options.direction is not None or options.receipt is not None:
        return parse_targets(",".join(CK_DEFAULT))
    return host_targets()


def choose_instances(options: argparse.Namespace) -> list[Selection]:
    """The selection of each api."""
    listed = show.parse_rows(options.from_file) if options.from_file else []
    apis = options.direction
    if apis is None:
        apis = ",".join(dict.fromkeys(row["api"] for row in listed)) or "fwd"
    if options.rounding not in ("", *ROUNDINGS):
        raise Refused(unknown("rounding", options.rounding, ROUNDINGS))
    if options.suffix not in SUFFIXES:
        raise Refused(unknown("suffix", options.suffix, SUFFIXES))
    ops = parse_apis(apis, options.mask)
    for op in ops:
        op.suffix = options.suffix
    targets = choose_targets(options)
    folder = options.instances or ROOT / "instances"
    receipt = find_receipt(read_receipts(folder), options.receipt or DEFAULT)
    request = Request(receipt, options.optdim, options.where)
    there = [read_instances(op, folder, targets, options.rounding) for op in ops]
    refuse_targets_without(ops, folder, options.targets or "", [i for instances in there for i in instances])
    selections = []
    for op, instances, pattern in zip(ops, there, split_filter(options.filter, ops)):
        check(op, instances)
        chosen = show.listed_instances(options.from_file, listed, op, instances) if listed else instances
        selections.append(select(op, chosen, request.of(op, ops), pattern))
    return selections


def add_companions(selections: list[Selection], rows: Path) -> list[Selection]:
    """The selections, each after what goes along with it: all there is for the targets of its instances."""
    together = []
    for selection in selections:
        targets = tuple(dict.fromkeys(instance.target.name for instance in selection.instances))
        for op in selection.op.companions:
            op.suffix = selection.op.suffix
            folder = rows if (rows / f"{op.family}.toml").exists() else ROOT / "instances"
            instances = read_instances(op, folder, targets)
            check(op, instances)
            matches = [Match(instance, instance.region, instance.combinations) for instance in instances]
            together.append(Selection(op, matches, []))
        together.append(selection)
    return together


def emit_all(selections: list[Selection], folder: Path, rows: Path) -> None:
    """Writes every file."""
    together = add_companions(selections, rows)
    for selection in together:
        check_renders(selection.instances)
    plans = [
        partial(emit.Plan, one.op, one.instances, folder, progress if one in selections else no_progress)
        for one in together
    ]
    for selection, done in zip(together, emit.emit(plans)):
        if selection in selections:
            say(f"{selection.summary()}; {done}")


def list_all(selections: list[Selection], options: argparse.Namespace) -> None:
    """Lists the sources in a file: kernels, then the table. As in CK, they lie beside the list by default."""
    folder = (options.output_dir or options.list_blobs.parent).resolve()
    together = add_companions(selections, options.instances or ROOT / "instances")
    files = [folder / file for selection in together for file in emit.compiled_files(selection)]
    for selection in together:
        check_renders(selection.instances)
    emit.write(options.list_blobs, "".join(f"{file}\n" for file in files).encode(), options.list_blobs)
    for selection in selections:
        say(selection.summary())


def render_one(selections: list[Selection], name: str, rows: Path) -> str:
    """One instance's source."""
    together = (*selections, *add_companions(selections, rows))
    instances = [instance for selection in together for instance in selection.instances]
    for instance in instances:
        if instance.name == name:
            return instance_source(instance)
    raise Refused(unknown("instance", name, dict.fromkeys(instance.name for instance in instances)))


def check_words(options: argparse.Namespace) -> None:
    """Refuses what is none of an option's words."""
    if options.format not in show.FORMATS:
        raise Refused(unknown("format", options.format, show.FORMATS))
    if options.explain not in (None, *EXPLANATIONS):
        raise Refused(unknown("explanation", options.explain, EXPLANATIONS))


def run(options: argparse.Namespace) -> int:
    """Carries out the options. Returns the exit code."""
    place_blobs(options)
    action = choose_action(options)
    check_words(options)
    if action == "report":
        return print_report(options.report, options.format)
    selections = choose_instances(options)
    if action in ("tune", "rank"):
        return model(selections, action, options)
    if action == "output_dir":
        emit_all(selections, options.output_dir, options.instances or ROOT / "instances")
    elif action == "list_blobs":
        list_all(selections, options)
    elif action == "render":
        put(render_one(selections, options.render, options.instances or ROOT / "instances"))
    elif action == "diff":
        together = add_companions(selections, options.instances or ROOT / "instances")
        return print_all(line for selection in together for line in emit.diff(selection, options.diff))
    elif action == "explain":
        print_all(line for selection in selections for line in show.explain(selection, options.explain))
    else:
        for selection in selections:
            say(selection.summary())
        if action == "expand":
            print_all(f"{name}\n" for selection in selections for name in selection.ck_names())
        elif action == "count":
            put(show.print_rows([show.count_row(selection) for selection in selections], options.format))
        else:
            rows = [
                show.instance_row(instance) for selection in selections for instance in selection.instances
            ]
            put(show.print_rows(rows, options.format))
    return 0


def model(selections: list[Selection], action: str, options: argparse.Namespace) -> int:
    """Models candidates, or what there is."""
    if options.build is None or options.shapes is None:
        raise Refused(f"--{action} needs --build, a folder that CMake builds in, and --shapes")
    how = tune.How(
        options.build, tune.parse_shapes(options.shapes), options.ray, partial(progress, step=1), say
    )
    for selection in selections:
        if action == "tune":
            print_all(tune.tune(selection, how))
            continue
        targets = dict.fromkeys(instance.target.name for instance in selection.instances)
        ranked = rank.rank(selection.op, list(targets), how)
        put(show.print_rows(list(rank.report(ranked)), options.format))
        say(rank.summary(ranked))
    return 0


def print_report(folder: Path, form: str) -> int:
    """Prints the resources of a build's kernels, and on stderr notes about them."""
    rows, notes = resources.report(folder, progress)
    put(show.print_rows(rows, form))
    for note in notes:
        say(f"generate.py: note: {note}")
    return 0


def print_all(lines: Iterable[str]) -> int:
    """Prints lines as they come; 1 if there were any."""
    some = False
    for line in lines:
        put(line)
        some = True
    return int(some)


def put(text: str) -> None:
    """Writes to stdout."""
    if sys.stdout is None:  # it was closed by the caller
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.write(text)


def say(line: str) -> None:
    """One line beside the output."""
    try:
        print(f"{CLEAR if on_terminal() else ''}{line}", file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Forgets what a stream could not write: Python would try again in the end."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def on_terminal() -> bool:
    """Whether a person sees stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def progress(done: int, total: int, step: int = 16) -> None:
    """A bar on a terminal until all is done, nothing in a log."""
    if on_terminal() and (done == total or done % step == 0):
        width = 40 * done // total
        print(
            CLEAR if done == total else f"\r[{'#' * width}{'.' * (40 - width)}] {done}/{total}",
            end="",
            file=sys.stderr,
            flush=True,
        )


def no_progress(done: int, total: int) -> None:
    """Of what is not worth a bar."""


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    try:
        try:
            code = run(parse(arguments))
        except SystemExit:  # after --help
            code = 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except Refused as refused:
        say(f"generate.py: {refused}")
        return 1
    except BrokenPipeError:  # the reader has seen enough
        drop(sys.stdout)
        return 0
    except OSError as error:
        drop(sys.stdout)
        say(f"generate.py: cannot write {error.filename or 'the output'}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
