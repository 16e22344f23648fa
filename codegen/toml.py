# SPDX-License-Identifier: MIT
"""Rows as TOML, as far as instances/*.toml use it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from codegen.spec import Instance


def value_text(value: object) -> str:
    """A value: text, a number, or a list or a table of values in a line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {value_text(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def table_text(head: str, values: Mapping[str, object]) -> str:
    """A table with its head, [default.qr] or [[tile]]."""
    return "".join([f"{head}\n", *(f"{key} = {value_text(value)}\n" for key, value in values.items())])


def row_text(instance: Instance, *, whole: bool = False) -> str:
    """An instance's row: what its defaults leave open or what differs from them, or all."""
    row: dict[str, object] = {"targets": [instance.target.name]}
    for field in dataclasses.fields(instance.tile):
        value = getattr(instance.tile, field.name)
        unsaid = instance.default.get(field.name, field.default)
        if field.name not in ("why", *instance.modelled) and (whole or value != unsaid):
            row[field.name] = value
    return table_text("[[tile]]", row | {"why": instance.tile.why})
