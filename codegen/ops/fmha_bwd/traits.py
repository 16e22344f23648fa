# SPDX-License-Identifier: MIT
"""The traits of fmha_bwd and of its sub-kernels in the order of CK's names, and which do not go together."""

from __future__ import annotations

from codegen.ops.fmha_fwd.traits import BIAS_TYPE, MASK_AXES, MASK_TYPE, Hdims, hdim_axis
from codegen.schema import Size, Trait, flag
from codegen.space import Axis, Space
from codegen.spec import Rule

# The head dims (q, v) of CK's names. Any other pair is padded to the first that holds it.
HDIMS: Hdims = (
    (32, 32), (48, 48), (64, 64), (80, 96), (96, 96),
    (128, 128), (192, 128), (192, 192), (256, 256), (512, 512),
)  # fmt: skip
HDIMS_OF_ONE = tuple(sorted({hdim for pair in HDIMS for hdim in pair}))  # of sub-kernels that see one of them
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
DTYPES = tuple(BYTES)
DIVISORS = ("", "8", "1")  # of a head dim: that of the name exactly, multiples of 8, any


def _pads(sides: tuple[str, str], values: tuple[str, ...]) -> tuple[str, ...]:
    """Tokens of what is padded on two sides, the first one fastest."""
    pairs = ((a, b) for b in values for a in values)
    words = ("".join(f"{side}{value}" for side, value in zip(sides, pair) if value) for pair in pairs)
    return tuple(f"p{word}" if word else "npad" for word in words)


HDIM_PADS = _pads(("d", "dv"), DIVISORS)


def _row_pads(side: str) -> tuple[str, ...]:
    return ("npad", "ps", f"p{side}", f"ps{side}")


def _flag(name: str, no: str, yes: str) -> Axis:
    return Axis(name, ("no", "yes"), (no, yes), aliases={"0": ("no",), "1": ("yes",)})


def _one_hdim(view: str) -> Axis:
    words = tuple(str(hdim) for hdim in HDIMS_OF_ONE)
    return Axis(
        "hdim",
        words,
        tuple(f"d{word}" for word in words),
        views={view: {word: (word,) for word in words}},
        limits=tuple((hdim,) for hdim in HDIMS_OF_ONE),
    )


DTYPE = Axis("dtype", DTYPES, DTYPES)
MODE = Axis("mode", ("batch", "group"), ("batch", "group"))
OCCUPANCY = Axis("occupancy", ("1",), ("o1",))
DETERMINISTIC = _flag("deterministic", "ndeterministic", "deterministic")
DATA_TYPE = Trait("data_type", "dtype", DTYPES)
IS_GROUP_MODE = flag("is_group_mode", "mode", "batch", "group")
IS_DETERMINISTIC = flag("is_deterministic", "deterministic")

# In the order in which the reasons that an instance does not serve a call are told.
TRAITS = (
    DATA_TYPE,
    MASK_TYPE,
    BIAS_TYPE,
    IS_GROUP_MODE,
    flag("has_dbias", "dbias"),
    flag("has_dropout", "dropout"),
    flag("is_store_randval", "randval"),
    IS_DETERMINISTIC,
    flag("has_logits_soft_cap", "logits"),
    flag("is_dkv_reduced", "dkv", "q", "k"),
)
SIZES = (Size("hdim_q", fills=True), Size("hdim_v", fills=True))


def make_space(mask: str) -> Space:
    """The axes of dq_dk_dv in the order of CK's names, which say nothing of those that CK lacks while off."""
    return Space(
        (
            hdim_axis(HDIMS),
            DTYPE,
            MODE,
            Axis("dpads", HDIM_PADS, HDIM_PADS),
            Axis("bias", ("no", "bias", "alibi"), ("nbias", "bias", "alibi")),
            _flag("dbias", "ndbias", "dbias"),
            MASK_AXES[mask],
            Axis(
                "dropout",
                ("no", "yes"),
                ("ndropout", "dropout_wg16"),
                aliases={"0": ("no",), "1": ("yes",), "wg16": ("yes",)},
                refused={"wg32": "here bytes do not depend on a kernel's shape; the name is that of wg16"},
            ),
            _flag("randval", "", "storerandval"),
            DETERMINISTIC,
            Axis("trload", ("no",), ("ntrload",)),
            _flag("logits", "", "logits"),
            Axis("dkv", ("q", "k"), ("", "dkvk")),
        )
    )


def make_rules(space: Space) -> tuple[Rule, ...]:
    """Combinations that no instance serves, with reasons."""
    return (
        Rule(space.box(bias=("no", "alibi"), dbias=("yes",)), "dbias is the gradient of an elementwise bias"),
        Rule(space.box(dropout=("no",), randval=("yes",)), "the bytes that are stored are those of dropout"),
        Rule(space.box(logits=("yes",), bias=("bias", "alibi")), "a soft cap goes without a bias, as in CK"),
    )


def dot_do_o_space() -> Space:
    """The axes of dot_do_o."""
    return Space((_one_hdim("hdim_v"), DTYPE, MODE, OCCUPANCY, Axis("pad", _row_pads("dv"), _row_pads("dv"))))


def convert_dq_space() -> Space:
    """The axes of convert_dq, which do not say how dq_dk_dv cuts the keys."""
    pad = Axis("pad", _row_pads("d"), _row_pads("d"))
    return Space((_one_hdim("hdim_q"), DTYPE, MODE, OCCUPANCY, pad, DETERMINISTIC))
