# SPDX-License-Identifier: MIT
"""Writing what was selected into a directory that other apis, and other calls, write into too.

Each api has its own manifest: a line for each file it wrote, with a key of all that the file was made from and a
digest of its bytes. A file whose key and digest still hold is neither rendered nor touched; only files that the
manifest lists are ever removed; nothing is written before everything has been rendered.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from codegen import Refused
from codegen.render import TEMPLATES, dispatch_sources, instance_source
from codegen.spec import ROOT, Instance, Operation

Progress = Callable[[int, int], None]  # files done, files in all


def digest(*parts: bytes) -> str:
    """A hash of some bytes."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        hasher.update(part)
    return hasher.hexdigest()


@lru_cache
def generator_digest() -> str:
    """A hash of this generator: its code and its templates."""
    files = sorted([*(ROOT / "codegen").rglob("*.py"), *TEMPLATES.rglob("*.j2")])
    return digest(*(part for file in files for part in (file.name.encode(), file.read_bytes())))


@dataclass(frozen=True)
class Entry:
    """A line of the manifest."""

    key: str
    digest: str


def manifest_path(folder: Path, api: str) -> Path:
    """An api's manifest."""
    return folder / f".tessera-{api}.manifest"


def read_manifest(path: Path) -> dict[str, Entry]:
    """What an earlier call wrote."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    entries = {}
    for line in lines:
        parts = line.split(" ")
        if len(parts) != 3 or "/" in parts[2] or "\\" in parts[2] or parts[2].startswith("."):
            raise Refused(f"{path} is not a manifest of this generator: line '{line}'; remove it to start afresh")
        entries[parts[2]] = Entry(parts[0], parts[1])
    return entries


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Replaces a file at once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sources(op: Operation, instances: list[Instance]) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Every file of an operation: its name, the key of all that it is made from, and how to render it."""
    keys = []
    for instance in instances:
        keys.append(digest(generator_digest().encode(), instance.record.encode()))
        yield instance.file, keys[-1], lambda instance=instance: instance_source(instance)  # type: ignore[misc]
    key = digest(generator_digest().encode(), op.describe().encode(), *(key.encode() for key in keys))
    rendered: dict[str, str] = {}

    def dispatch(file: str) -> str:
        if not rendered:
            rendered.update(dispatch_sources(op, instances))
        return rendered[file]

    for file in op.dispatch_files:
        yield file, key, lambda file=file: dispatch(file)  # type: ignore[misc]


@dataclass
class Report:
    """What a call did."""

    written: int = 0
    kept: int = 0
    removed: int = 0


def emit(op: Operation, instances: list[Instance], folder: Path, progress: Progress) -> Report:
    """Writes the files of an operation, and removes those it wrote before that are no longer among them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = manifest_path(folder, op.api)
        before = read_manifest(path)
        after: dict[str, Entry] = {}
        pending: dict[str, bytes] = {}
        for done, (file, key, source) in enumerate(sources(op, instances), 1):
            progress(done, len(instances) + len(op.dispatch_files))
            there = _read(folder / file)
            have = digest(there) if there is not None else ""
            if before.get(file) == Entry(key, have):
                after[file] = before[file]
                continue
            content = source().encode()
            after[file] = Entry(key, digest(content))
            if content != there:
                pending[file] = content
        gone = [file for file in before if file not in after]
        if pending or gone:
            # Until all is done the manifest lists old and new, so that a call that was cut short leaves no strays.
            unfinished = {file: before.get(file, Entry("-", "-")) for file in (*before, *pending)}
            _write(path, _manifest(unfinished))
        for file, content in pending.items():
            _write(folder / file, content)
        for file in gone:
            (folder / file).unlink(missing_ok=True)
        if after != before or pending or gone:
            _write(path, _manifest(after))
        return Report(len(pending), len(after) - len(pending), len(gone))
    except OSError as error:
        raise Refused(f"cannot write {error.filename or folder}: {error.strerror}") from None


def _manifest(entries: dict[str, Entry]) -> bytes:
    return "".join(f"{entry.key} {entry.digest} {file}\n" for file, entry in entries.items()).encode()


def diff(op: Operation, instances: list[Instance], folder: Path) -> Iterator[str]:
    """Lines of the difference between a folder and what would be written there. Renders all."""
    listed = dict.fromkeys(read_manifest(manifest_path(folder, op.api)))
    for file, _, source in sources(op, instances):
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
