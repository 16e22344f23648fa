# SPDX-License-Identifier: MIT
"""Traits that operations on rows are made of, and which of them do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.schema import Trait
from codegen.space import Axis, Space
from codegen.spec import Rule

# The values of tessera_type; a test compares them with the header's.
TYPES = (
    "fp32", "fp16", "bf16", "e4m3", "e2m1", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0", "int8", "int4", "int32",
)  # fmt: skip
SCALES = ("no", "both", "y")  # of smoothing and of y
INPUTS = ("fp32", "fp16", "bf16")
BYTES = ("e4m3", "e4m3fnuz", "int8")  # what results are quantized to

PREC_I, PREC_O = Trait("prec_i", "prec_i", TYPES), Trait("prec_o", "prec_o", TYPES)
NUMBERS = ("0", "1", "2")  # CK's words for kinds of fused things
FUSED_ADD = Trait("fused_add", "fadd", NUMBERS, {"no": ("0",), "store": ("1",), "add": ("2",)})
FUSED_QUANT = Trait("fused_quant", "fquant", NUMBERS, {"no": ("0",), "smooth": ("1",), "dynamic": ("2",)})


def input_axis() -> Axis:
    """prec_i."""
    return Axis("prec_i", INPUTS, INPUTS)


def output_axis(int8: str) -> Axis:
    """prec_o of an operation that always quantizes. CK's names say fp8 for the device's own."""
    return Axis("prec_o", BYTES, ("fp8", "fp8", int8), short=BYTES)


def any_output_axis() -> Axis:
    """prec_o: that of the input, of which CK's names say nothing, or 8 bits."""
    values = (*INPUTS, *BYTES)
    return Axis("prec_o", values, ("", "", "", "fp8", "fp8", "int8"), short=values)


def scales_axis() -> Axis:
    """Types of scales, as CK's names say them in front of the tile; they follow from fquant."""
    return Axis("scales", SCALES, ("", "sxfp32_syfp32", "syfp32"), short=("nscales", "sxsy", "sy"))


def add_axis() -> Axis:
    """fused_add."""
    return Axis(
        "fadd",
        ("no", "store", "add"),
        ("", "pras", "pra"),
        short=("nadd", "pras", "pra"),
        aliases={"0": ("no",), "1": ("store",), "2": ("add",)},
    )


def quant_axis() -> Axis:
    """fused_quant."""
    return Axis(
        "fquant",
        ("no", "smooth", "dynamic"),
        ("", "smdqt", "dqt"),
        short=("nquant", "smdqt", "dqt"),
        aliases={"0": ("no",), "1": ("smooth",), "2": ("dynamic",)},
    )


def flag_axis(name: str, token: str, no: str = "") -> Axis:
    """An axis of no and yes; CK's names say the token, or where there is one that of no."""
    return Axis(
        name,
        ("no", "yes"),
        (no, token),
        short=(no or f"n{token}", token),
        aliases={"0": ("no",), "1": ("yes",)},
    )


def padding_axis() -> Axis:
    """Rows end anywhere."""
    return Axis("pad", ("yes",), ("pn",))


def make_rules(space: Space) -> tuple[Rule, ...]:
    """What does not go together."""
    rules: list[Rule] = []
    if "fquant" in space.index:
        rules += _quant_rules(space)
    if "save_unquant" in space.index:
        unsaid = "without fquant y itself is what save_unquant stores"
        rules.append(Rule(space.box(fquant=("no",), save_unquant=("yes",)), unsaid))
    return tuple(rules)


def _quant_rules(space: Space) -> Iterator[Rule]:
    """Types of results and of scales, where quantization may be fused."""
    yield Rule(
        space.box(fquant=("smooth", "dynamic"), prec_o=INPUTS),
        "a quantized result has 8 bits: prec_o is int8 or fp8",
    )
    yield Rule(
        space.box(fquant=("no",), prec_o=BYTES),
        "8 bits hold a result that is divided by y_scale: fquant is smooth or dynamic",
    )
    for prec in INPUTS:
        others = (other for other in INPUTS if other != prec)
        yield Rule(
            space.box(fquant=("no",), prec_i=(prec,), prec_o=others),
            "a result that is not quantized has the type of the input",
        )
    for quant, scales in (("no", "no"), ("smooth", "both"), ("dynamic", "y")):
        others = (other for other in SCALES if other != scales)
        yield Rule(space.box(fquant=(quant,), scales=others), "scales follow from fquant")
