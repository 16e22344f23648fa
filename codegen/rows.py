# SPDX-License-Identifier: MIT
"""instances/<family>.toml: hand-edited rows, read into records. See docs/extending.md for the format."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codegen import Refused, unknown
from codegen.space import Region
from codegen.spec import Instance, Operation, Tile
from codegen.targets import TARGETS, there_is

Figures = dict[str, dict[str, float]]  # modelled, by names of instances


def figures_path(folder: Path, family: str) -> Path:
    """Where they stand."""
    return folder / f"{family}_modelled.toml"


def read_figures(folder: Path, family: str) -> Figures:
    """What the simulator's clock says of a family's instances, which codegen/figures.py writes."""
    path = figures_path(folder, family)
    figures: Figures = read_toml(path).get("instance", {}) if path.exists() else {}
    return figures


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file."""
    toml = _toml_module()
    try:
        document: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{path}: {error}") from None
    return document


def _toml_module() -> Any:
    for name in ("tomllib", "tomli"):  # Python 3.10 has none of its own
        if importlib.util.find_spec(name):
            return importlib.import_module(name)
    raise Refused("Python below 3.11 needs tomli: pip install tomli")


def read_instances(
    op: Operation, folder: Path, targets: tuple[str, ...], rounding: str = ""
) -> list[Instance]:
    """All instances of an operation for some targets, by target, then in the order of the rows."""
    path = folder / f"{op.family}.toml"
    document = read_toml(path)
    for key in document:
        if key not in ("default", "tile"):
            raise Refused(f"{path}: {unknown('table', key, ('default', 'tile'))}")
    figures = read_figures(folder, op.family)
    by_target: dict[str, list[Instance]] = {name: [] for name in targets}
    regions: dict[tuple[str, ...], Region] = {}
    for number, row in enumerate(document.get("tile", []), 1):
        try:
            for name in _row_targets(row):
                if name in by_target:
                    by_target[name].extend(
                        _with_figures(instance, figures, rounding)
                        for instance in _row_instances(op, row, name, document.get("default", {}), regions)
                    )
        except Refused as refused:
            raise Refused(f"{path}: tile {number}: {refused}") from None
    return [instance for name in targets for instance in by_target[name]]


def refuse_targets_without(ops: list[Operation], folder: Path, words: str, instances: list[Instance]) -> None:
    """Refuses those targets of a comma list that are named, not meant by a family, and have no instance."""
    served = {instance.target.name for instance in instances}
    for word in words.split(","):
        if word in TARGETS and word not in served:
            rows = [row for op in ops for row in read_toml(folder / f"{op.family}.toml").get("tile", [])]
            have = {name for row in rows for name in _row_targets(row)}
            there = there_is(name for name in TARGETS if name in have)
            names = " or ".join(op.name for op in ops)
            raise Refused(f"target '{word}' has no instances of {names} yet; {there}")


def _row_targets(row: dict[str, Any]) -> list[str]:
    names: list[str] = row.get("targets", [])
    if not isinstance(names, list) or not names:
        raise Refused("targets must be a list of at least one target")
    for name in names:
        if name not in TARGETS:
            raise Refused(unknown("target", name, TARGETS))
    return names


def _row_instances(
    op: Operation,
    row: dict[str, Any],
    target_name: str,
    defaults: dict[str, Any],
    regions: dict[tuple[str, ...], Region],
) -> Iterator[Instance]:
    """The instances of a row on one target: one for each choice out of the lists in it."""
    target = TARGETS[target_name]
    if target.kind not in op.tiles:
        raise Refused(
            f"{op.name} has no tiles for {target_name}; it has them for targets of kind {', '.join(op.tiles)}"
        )
    pipeline_default = defaults.get(row.get("pipeline", ""), {})
    default = {field: value for field, value in pipeline_default.items() if not isinstance(value, dict)}
    for table in (target.kind, target_name):
        default |= pipeline_default.get(table, {})
    said = default | row
    del said["targets"]
    lists = {field: value for field, value in said.items() if isinstance(value, list)}
    for choice in itertools.product(*lists.values()):
        tile = _tile(op.tiles[target.kind], said | dict(zip(lists, choice)))
        if complaint := tile.complaint(target):
            raise Refused(f"{target_name}: {complaint}")
        key = (target.kind, tile.pipeline, *tile.dtypes, tile.held, tile.serves)
        if key not in regions:
            regions[key] = op.served(tile)
        if not regions[key]:
            can = f"compute = '{tile.compute}'{' and ' if tile.held else ''}{tile.held}"
            raise Refused(f"serves = '{tile.serves}' leaves nothing that {can} can")
        yield Instance(op, target, tile, default, regions[key])


def _with_figures(instance: Instance, figures: Figures, rounding: str) -> Instance:
    """With what the model says of it, which then is not for the row to say, and with --rounding."""
    said = figures.get(instance.name, {}) if instance.modelled else {}
    defaults = {field.name: field.default for field in dataclasses.fields(instance.tile)}
    for field in said:
        if getattr(instance.tile, field) != defaults[field]:
            raise Refused(f"{field} of {instance.name} is modelled: take it out of the row")
    tile = dataclasses.replace(instance.tile, **said) if said else instance.tile
    if rounding:
        tile = instance.op.rounded(tile, instance.target, rounding)
    return instance if tile is instance.tile else dataclasses.replace(instance, tile=tile)


PYTHON_TYPES = {"str": (str,), "int": (int,), "float": (float, int)}


def _tile(record: type[Any], said: dict[str, Any]) -> Tile:
    """The record of a row."""
    fields = {field.name: field for field in dataclasses.fields(record)}
    for name, value in said.items():
        if name not in fields:
            raise Refused(unknown("field", name, ("targets", *fields)))
        kind = str(fields[name].type)
        if type(value) not in PYTHON_TYPES[kind]:
            raise Refused(f"{name} = {value!r} is not of type {kind}")
    for name, field in fields.items():
        if name not in said and field.default is dataclasses.MISSING:
            raise Refused(f"field {name} is missing")
    if not said["why"]:
        raise Refused("why is empty: say what the row is there for")
    tile: Tile = record(**said)
    return tile
