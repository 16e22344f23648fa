# SPDX-License-Identifier: MIT
"""Tasks: what is done is kept, failures are not, and a Ray cluster does the same."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from codegen import Refused
from codegen.tasks import Runner, Task, hash_of

# Writes its number, says so, and how often it ran; fails on seven.
PROGRAM = """#!/bin/sh
for word; do
    case $word in
    -jsonfile=*) file=${word#*=} ;;
    -n=*) n=${word#*=} ;;
    -log=*) log=${word#*=} ;;
    esac
done
echo "$n" >> "$log"
[ "$n" != 7 ] || { echo "no sevens" >&2; exit 3; }
echo "{\\"n\\": $n}" > "$file"
echo "it is $n"
"""


class Kit:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "kit"
        self.folder.mkdir()
        self.log = folder / "log"
        self.results = folder / "results" / "file.jsonl"
        self.progress: list[tuple[int, int]] = []
        (self.folder / "program").write_text(PROGRAM)

    def run(self, *numbers: int, ray: str | None = None) -> dict[str, dict[str, object]]:
        runner = Runner(self.folder, self.results, lambda done, of: self.progress.append((done, of)), ray)
        return runner.run([Task(f"key {n}", ("program", f"-n={n}", f"-log={self.log}")) for n in numbers])

    @property
    def ran(self) -> list[str]:
        return sorted(self.log.read_text().split())


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def test_results_by_keys(kit: Kit) -> None:
    assert kit.run(1, 2, 1) == {f"key {n}": {"n": n, "printed": f"it is {n}\n"} for n in (1, 2)}
    assert kit.progress == [(1, 2), (2, 2)]


def test_what_is_done_is_not_done_again(kit: Kit) -> None:
    first = kit.run(1, 2)
    kit.progress.clear()
    assert kit.run(2, 3, 1)["key 2"] == first["key 2"]
    assert kit.ran == ["1", "2", "3"] and kit.progress == [(3, 3)]


def test_a_line_that_was_cut_off_is_done_again(kit: Kit) -> None:
    kit.run(1, 2)
    lines = kit.results.read_text().splitlines()
    kit.results.write_text(f"{lines[0]}\n{lines[1][:20]}")
    kit.run(1, 2)
    assert len(kit.ran) == 3
    kit.run(1, 2)
    assert len(kit.ran) == 3


def test_failures_are_told_and_tried_again(kit: Kit) -> None:
    for count in (1, 2):
        assert kit.run(7, 8)["key 7"] == {"failed": "no sevens"}
        assert kit.ran.count("7") == count and kit.ran.count("8") == 1


def test_keys_are_of_all_parts() -> None:
    parts: list[tuple[str | bytes, ...]] = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", b"d")]
    assert len({hash_of(*part) for part in parts}) == len(parts)
    assert hash_of("ab", b"c") == hash_of("ab", "c")


def test_without_ray(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Refused, match=r"which is not installed: pip install ray==\d"):
        kit.run(1, ray="local")


def test_a_cluster_that_does_not_start(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises plain exceptions, of many lines."""

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nThis could happen")

    cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)
    ray = SimpleNamespace(init=init, cloudpickle=cloudpickle)
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"^--ray local: The current node timed out during startup\.$"):
        kit.run(1, ray="local")


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="no ray: pip install ray==2.60.0")
def test_a_ray_cluster(kit: Kit) -> None:
    there = kit.run(1)
    assert kit.run(1, 2, 7, ray="local") == {
        **there,
        "key 2": {"n": 2, "printed": "it is 2\n"},
        "key 7": {"failed": "no sevens"},
    }
    assert kit.ran == ["1", "2", "7"]
