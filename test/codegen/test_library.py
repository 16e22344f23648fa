# SPDX-License-Identifier: MIT
"""The data about targets and operations that is generated for the runtime."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen import Refused, library
from codegen.ops import operations
from codegen.table import target_enumerators
from codegen.targets import TARGETS


def array(text: str, name: str) -> dict[str, str]:
    body = re.search(rf"\b{name}\[\w+\] = \{{\n(.*?)\}};", text, re.S)
    assert body
    return dict(re.findall(r"\[(\w+)\] = (.*),", body[1]))


def test_every_target_has_its_word_and_each_page_its_kind() -> None:
    text = library.library_source("fwd")
    words = array(text, "tessera_target_words")
    assert sorted(words) == sorted(target_enumerators())
    assert sorted(words.values()) == sorted(f'"{name}"' for name in TARGETS)
    assert array(text, "tessera_target_kinds") == {t.enum: f'"{t.kind}"' for t in TARGETS.values()}
    formats = array(text, "tessera_target_fp8")
    assert list(formats) == list(array(text, "tessera_target_kinds"))
    assert {formats[TARGETS[name].enum] for name in ("gfx942",)} == {"TESSERA_E4M3FNUZ"}
    assert formats[TARGETS["sm_90a"].enum] == "TESSERA_E4M3FN"


def test_rates_of_memory() -> None:
    """Bytes a cycle, from figures in GB/s and MHz that are typed here a second time."""
    rates = array(library.library_source("fwd"), "tessera_target_rates")
    assert rates[TARGETS["gfx942"].enum] == "{64.0, 2523.81, 268435456, 8}"  # 5.3 TB/s at 2.1 GHz; 8 XCDs
    assert rates[TARGETS["sm_90a"].enum] == "{64.0, 2622.95, 52428800, 1}"  # 4.8 TB/s at 1.83 GHz
    cpus = {rates[target.enum] for target in TARGETS.values() if target.kind == "cpu"}
    assert len(cpus) == 1, "two pages that one machine can run say different things of its memory"
    assert len(rates) == len(TARGETS)


def test_operations_are_those_asked_for(tmp_path: Path) -> None:
    known = operations()
    apis = [*reversed(known)]
    file = tmp_path / "library.c"
    assert library.main(["--api", ",".join(apis), "--out", str(file)]) == 0
    listed = re.findall(r"^    tessera_(\w+)_get_table,$", file.read_text(), re.M)
    assert listed == [
        op.name for api in apis for op in (*known[api].parts, *known[api].companions, known[api])
    ]
    assert f"tessera_table_count = {len(listed)};" in file.read_text()


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused, match="api 'nothing' is unknown"):
        library.library_source("nothing")
    assert library.main(["--api", "fwd", "--out", str(tmp_path / "none" / "library.c")]) == 1
    assert "codegen.library: cannot write" in capsys.readouterr().err
