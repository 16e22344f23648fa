# SPDX-License-Identifier: MIT
"""What the generator prints: tables, counts, explanations. And what it reads back: a table."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from codegen import Refused
from codegen.render import instance_words
from codegen.select import Selection
from codegen.space import region_size
from codegen.spec import Instance, Operation, cell

FORMATS = ("text", "json", "csv")
Row = dict[str, object]  # None: it has no such thing


def print_rows(rows: list[Row], form: str) -> str:
    """Rows as a table. As text no cell is empty or holds a blank, so that each form can be read back."""
    if form == "json":
        return json.dumps(rows, indent=1) + "\n"
    header = list(
        dict.fromkeys(field for row in rows for field in row)
    )  # operations have fields of their own
    lines = [header, *([cell(row.get(field)) for field in header] for row in rows)]
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        return text.getvalue()
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in lines
    )


def parse_rows(path: Path) -> list[dict[str, str]]:
    """Instances that print_rows printed, in any of its forms."""
    rows = _parse_table(path)
    if not rows:
        raise Refused(f"{path} lists no instance")
    if any("api" not in row for row in rows):
        raise Refused(f"{path} is not a table that --table printed")
    return rows


def _parse_table(path: Path) -> list[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
        if text.lstrip().startswith("["):
            return [{str(key): cell(value) for key, value in row.items()} for row in json.loads(text)]
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, AttributeError):
        raise Refused(f"{path} is not a table that --table printed") from None
    lines = text.splitlines()
    cells = (
        list(csv.reader(lines))
        if lines and "," in lines[0]
        else [line.split() for line in lines if line.strip()]
    )
    if any(len(line) != len(cells[0]) for line in cells):
        raise Refused(f"{path} is not a table that --table printed")
    return [dict(zip(cells[0], line)) for line in cells[1:]]


def instance_row(instance: Instance) -> Row:
    """An instance in the table."""
    row: Row = {"name": instance.name, "api": instance.op.asked_as}
    row |= {field: value(instance) for field, value in instance.op.instance_fields.items()}
    row["macs_per_cycle"] = round(instance.macs_per_cycle, 3)
    row["tile_cycles"] = round(instance.tile_cycles, 1)
    row["ck_names"] = instance.combinations
    row["traits"] = instance.op.traits_words(instance.region)
    return row


def count_row(selection: Selection) -> Row:
    """A selection in numbers."""
    return {
        "api": selection.op.api,
        "instances": len(selection.matches),
        "ck_names": sum(match.instance.combinations for match in selection.matches),
        "ck_names_asked_for": sum(match.matched for match in selection.matches),
    }


def listed_instances(
    path: Path, rows: list[dict[str, str]], op: Operation, instances: list[Instance]
) -> list[Instance]:
    """The instances of a printed table; refused where a row would now be printed differently."""
    known = {instance.name: instance for instance in instances}
    listed = []
    for number, row in enumerate(rows, 1):
        siblings = op.parts or op.part_of
        if row["api"] != op.asked_as or (siblings and not op.owns(row.get("name", ""))):
            continue
        instance = known.get(row.get("name", ""))
        if instance is None:
            name = row.get("name", "")
            raise Refused(f"{path}: row {number}: there is no instance '{name}' for the targets asked for")
        for field, value in instance_row(instance).items():
            now = cell(value)
            if row.get(field) != now:
                raise Refused(
                    f"{path}: row {number}: {field} is '{row.get(field)}', but {instance.name} has '{now}'"
                )
        listed.append(instance)
    return listed


def explain(selection: Selection, how: str) -> Iterator[str]:
    """What is selected at which cost, how many each condition kept out (all: and which), and the rules."""
    op = selection.op
    yield f"{selection.summary()}\n"
    for match in selection.matches:
        words = instance_words(match.instance)
        yield f"  + {words[0]}\n"
        for line in words[1:]:
            yield f"      {line}\n"
    if how == "all":
        for instance, reason in selection.refused:
            yield f"  - {instance.name}: kept out by {reason}\n"
    else:
        for reason, kept_out in Counter(reason for _, reason in selection.refused).items():
            yield f"  - {kept_out} kept out by {reason}\n"
    count, left = region_size((op.space.full,)), region_size(op.everything)
    yield f"Rules of {op.name}; of {count} combinations they leave {left}:\n"
    for rule in op.rules:
        yield f"  not {op.space.describe(rule.box)}: {rule.reason}\n"
