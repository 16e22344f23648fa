# SPDX-License-Identifier: MIT
"""Writing what was selected into a directory that other apis, and other calls, write into too.

Each api has its own manifest: a line for each file it wrote, with a key of all that the file was made from
and a digest of its bytes. A file whose key and digest still hold is neither rendered nor touched; only files
that the manifest lists are ever removed; nothing is written before everything has been rendered, in a hidden
folder there. A call that was killed leaves that folder to the next one, which removes it.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import multiprocessing
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from codegen import Refused
from codegen.render import HEADERS, TEMPLATES, instance_source
from codegen.select import Selection
from codegen.spec import ROOT, Instance, Operation
from codegen.table import dispatch_sources

try:
    import fcntl
except ImportError:  # not on Windows, where hidden folders of killed calls stay
    fcntl = None  # type: ignore[assignment]

Progress = Callable[[int, int], None]  # files done, files in all
# The folders of a checkout: nothing is generated into them.
SOURCE_FOLDERS = frozenset(
    ".ci .git benchmark cmake codegen docs example include instances runtime scripts simulator templates "
    "test".split()
)


def digest(*parts: bytes) -> str:
    """A hash of some bytes."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        hasher.update(part)
    return hasher.hexdigest()


@lru_cache
def generator_digest() -> str:
    """A hash of this generator: its code, its templates, the headers that it reads."""
    headers = (*HEADERS.glob("*.h"), *(HEADERS / "device").rglob("*.h"))
    files = sorted([*(ROOT / "codegen").rglob("*.py"), *TEMPLATES.rglob("*.j2"), *headers])
    return digest(*(part for file in files for part in (file.name.encode(), file.read_bytes())))


@dataclass(frozen=True)
class Entry:
    """A line of the manifest."""

    key: str
    digest: str


def manifest_path(folder: Path, api: str) -> Path:
    """An api's manifest."""
    return folder / f".tessera-{api}.manifest"


# A key, a digest, and a name that cannot lead out of the folder.
MANIFEST_LINE = re.compile(r"([0-9a-f]{32}|-) ([0-9a-f]{32}|-) (\w[\w.-]*)")


def read_manifest(path: Path) -> dict[str, Entry]:
    """The entries that an earlier call wrote."""
    entries = {}
    for line in (_read(path) or b"").decode(errors="replace").splitlines():
        parts = MANIFEST_LINE.fullmatch(line)
        if not parts:
            raise Refused(
                f"{path} is not a manifest of this generator: line '{line}'; remove it to start afresh"
            )
        entries[parts[3]] = Entry(parts[1], parts[2])
    return entries


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None


def write(path: Path, content: bytes, named: Path) -> None:
    """Writes a file. Where a disk is full the system does not say which one it was."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Refused(f"cannot write {named}: {error.strerror}") from None


Source = tuple[str, str, Callable[[], str]]  # file, key of all that it is made from, how to render it
Todo = list[tuple[str, str, Callable[[], str]]]  # file, digest of what is there, how to render it


def sources(op: Operation, instances: list[Instance]) -> Iterator[Source]:
    """Every file of an operation."""
    keys = []
    for instance in instances:
        keys.append(digest(generator_digest().encode(), instance.record.encode()))
        if instance.emitted:
            yield instance.file, keys[-1], partial(instance_source, instance)
    key = digest(generator_digest().encode(), op.describe().encode(), *(key.encode() for key in keys))
    rendered: dict[str, str] = {}

    def dispatch(file: str) -> str:
        if not rendered:
            rendered.update(dispatch_sources(op, instances))
        return rendered[file]

    for file in op.dispatch_files:
        yield file, key, partial(dispatch, file)


class Plan:
    """What one api's part of a call will do to a folder. Renders into a hidden folder; commit() moves it."""

    def __init__(self, op: Operation, instances: list[Instance], folder: Path, progress: Progress) -> None:
        _refuse_folder(folder)
        _remove_left(folder)
        self.folder = folder
        self.manifest = manifest_path(folder, op.api)
        self.before = read_manifest(self.manifest)
        self.after: dict[str, Entry] = {}
        self.pending: list[str] = []
        self.staging: Staging | None = None
        todo = self._stale(sources(op, instances))
        self.gone = [file for file in self.before if file not in self.after]
        if todo or self.gone:
            self.staging = Staging(folder, op.api)
            try:
                self._render(todo, self.staging.path, progress)
            except BaseException:
                self.drop()
                raise

    def _stale(self, files: Iterable[Source]) -> Todo:
        """The files that may have changed: made from something else, or no longer what was written."""
        todo = []
        for file, key, source in files:
            there = _read(self.folder / file)
            have = digest(there) if there is not None else ""
            self.after[file] = Entry(key, have)
            if self.before.get(file) != self.after[file]:
                todo.append((file, have, source))
        return todo

    def _render(self, todo: Todo, staging: Path, progress: Progress) -> None:
        """Renders stale files, and notes those that did change."""
        for done, (file, new) in enumerate(_render_all(todo, staging), 1):
            progress(done, len(todo))
            if new:
                self.after[file] = Entry(self.after[file].key, new)
                self.pending.append(file)

    def commit(self) -> str:
        """Moves what was rendered, removes what is no longer listed, and returns a summary of both."""
        if self.staging:
            if self.pending or self.gone:
                # Until all is done the manifest lists old and new: a call that is cut short leaves no strays.
                unfinished = dict.fromkeys((*self.before, *self.pending), Entry("-", "-"))
                self.staging.replace(self.manifest, _manifest(unfinished))
            for file in self.pending:
                (self.staging.path / file).replace(self.folder / file)
            for file in self.gone:
                (self.folder / file).unlink(missing_ok=True)
            self.staging.replace(self.manifest, _manifest(self.after))
        kept = len(self.after) - len(self.pending)
        return f"{len(self.pending)} files written, {kept} kept, {len(self.gone)} removed"

    def drop(self) -> None:
        """Removes files that were rendered and not moved."""
        if self.staging:
            self.staging.remove()


STAGING = re.compile(r"\.tessera-\w+-\w{8}")


class Staging:
    """A hidden folder in the one that is written: the same file system, so moving is renaming.

    Its process holds a lock of it. It is made under a lock of the folder around it, so that one that can be
    locked under that lock is nobody's.
    """

    def __init__(self, folder: Path, api: str) -> None:
        self.made = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        around = _lock(folder)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f".tessera-{api}-", dir=folder))
            self.lock = _lock(self.path)
        except OSError:
            self._remove_made()
            raise
        finally:
            _unlock(around)

    def replace(self, path: Path, content: bytes) -> None:
        """Replaces a file at once."""
        write(self.path / path.name, content, path)
        (self.path / path.name).replace(path)

    def remove(self) -> None:
        """Removes it with what is left in it, and the folder around it if that is new and empty."""
        shutil.rmtree(self.path, ignore_errors=True)
        _unlock(self.lock)
        self._remove_made()

    def _remove_made(self) -> None:
        with contextlib.suppress(OSError):
            for place in self.made:
                place.rmdir()


def _remove_left(folder: Path) -> None:
    """Removes what calls that were killed have left in a folder."""
    if not folder.is_dir():
        return
    around = _lock(folder)
    for path in folder.iterdir():
        if STAGING.fullmatch(path.name) and path.is_dir():
            lock = _lock(path, wait=False)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                _unlock(lock)
    _unlock(around)


def _lock(folder: Path, *, wait: bool = True) -> int | None:
    """Locks a folder until its process ends, if not before; None where that cannot be."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


WORKERS_FROM = 400  # files from which starting further processes pays


def _render_all(todo: Todo, staging: Path) -> Iterator[tuple[str, str]]:
    """Renders files into a folder: each file's name, and the digest of its content where that is new."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(todo) < WORKERS_FROM or cpus == 1 or "fork" not in multiprocessing.get_all_start_methods():
        for file, have, source in todo:
            yield file, _stage(file, have, source, staging)
        return
    global _shared
    _shared = (todo, staging)  # what forked processes inherit
    with multiprocessing.get_context("fork").Pool(min(cpus, 8)) as pool:
        yield from pool.imap(_stage_number, range(len(todo)), chunksize=64)


_shared: tuple[Todo, Path]


def _stage_number(number: int) -> tuple[str, str]:
    todo, staging = _shared
    file, have, source = todo[number]
    return file, _stage(file, have, source, staging)


def _stage(file: str, have: str, source: Callable[[], str], staging: Path) -> str:
    content = source().encode()
    new = digest(content)
    if new == have:
        return ""
    write(staging / file, content, staging.parent / file)
    return new


def _refuse_folder(folder: Path) -> None:
    """Refuses a path that is no folder, and folders of the sources."""
    there = next(place for place in (folder, *folder.parents, Path(".")) if place.exists())
    if not there.is_dir():
        raise Refused(f"cannot write into {folder}: {there} is no folder")
    real = Path(os.path.realpath(folder))
    if real == ROOT or (real.is_relative_to(ROOT) and real.relative_to(ROOT).parts[0] in SOURCE_FOLDERS):
        raise Refused(f"cannot write into {folder}: the generator's sources are there; give another folder")


def emit(plans: Sequence[Callable[[], Plan]]) -> list[str]:
    """Carries out the plans of all apis of a call, or none of them. Returns a summary of each."""
    made: list[Plan] = []
    try:
        for plan in plans:
            made.append(plan())
        return [plan.commit() for plan in made]
    except OSError as error:
        raise Refused(f"cannot write {error.filename}: {error.strerror}") from None
    finally:
        for done in made:
            done.drop()


def _manifest(entries: dict[str, Entry]) -> bytes:
    return "".join(f"{entry.key} {entry.digest} {file}\n" for file, entry in entries.items()).encode()


def compiled_files(selection: Selection) -> list[str]:
    """The files that a compiler is given: kernels, then the table."""
    kernels = (instance.file for instance in selection.instances if instance.emitted)
    return [*kernels, *list(selection.op.dispatch_files)[:1]]


def diff(selection: Selection, folder: Path) -> Iterator[str]:
    """Lines of the difference between a folder and what would be written there. Renders all."""
    if not folder.is_dir():
        raise Refused(f"cannot compare with {folder}: it is no directory")
    listed = dict.fromkeys(read_manifest(manifest_path(folder, selection.op.api)))
    for file, _, source in sources(selection.op, selection.instances):
        listed.pop(file, None)
        there = _read(folder / file)
        yield from _unified(file, there, source())
    for file in listed:
        yield from _unified(file, _read(folder / file), None)


def _unified(file: str, old: bytes | None, new: str | None) -> Iterator[str]:
    before = old.decode(errors="replace").splitlines(keepends=True) if old is not None else []
    after = new.splitlines(keepends=True) if new is not None else []
    names = (f"a/{file}" if old is not None else "/dev/null", f"b/{file}" if new is not None else "/dev/null")
    return difflib.unified_diff(before, after, *names)
