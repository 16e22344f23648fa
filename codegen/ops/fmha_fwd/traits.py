# SPDX-License-Identifier: MIT
"""The traits of fmha_fwd in the order of CK's names, and which of them do not go together."""

from __future__ import annotations

from codegen.schema import Size, Trait, flag
from codegen.space import Axis, Space
from codegen.spec import Rule

Hdims = tuple[tuple[int, int], ...]  # of q and v

# The head dims (q, v) of CK's names. Any other pair is padded to the first that holds it.
HDIMS: Hdims = (
    (32, 32), (48, 48), (64, 64), (80, 96), (96, 128),
    (128, 128), (192, 128), (192, 192), (256, 256), (512, 512),
)  # fmt: skip

FP8 = ("fp8", "fp8bf16", "fp8fp32")
MX = ("mxfp8", "mxfp4")
DTYPES = ("fp32", "fp16", "bf16", *FP8, *MX)
QSCALES = ("no", "pt", "bs", "kvbs", "mx", "th")
CACHE_TYPES = ("auto", "fp8_e4m3", "int8", "turbo4")  # of caches; "auto": that of q


PAD_SIDES = ("s", "sk", "d", "dv")
PADS = (
    "npad",
    *("p" + "".join(side for i, side in enumerate(PAD_SIDES) if sides >> i & 1) for sides in range(1, 16)),
)
PADS_OF_GROUP = ("pssk", "psskd", "psskdv", "psskddv")


def hdim_word(q: int, v: int) -> str:
    """A pair of head dims as --where spells it."""
    return f"{q}" if q == v else f"{q}x{v}"


def _hdim_view(hdims: Hdims, side: int) -> dict[str, tuple[str, ...]]:
    words: dict[str, tuple[str, ...]] = {}
    for hdim in hdims:
        words[f"{hdim[side]}"] = (*words.get(f"{hdim[side]}", ()), hdim_word(*hdim))
    return words


def flag_axis(name: str, token: str) -> Axis:
    """An axis of no and yes, which CK spells nTOKEN and TOKEN."""
    return Axis(name, ("no", "yes"), (f"n{token}", token), aliases={"0": ("no",), "1": ("yes",)})


MASK_AXES = {
    "simplified": Axis(
        "mask",
        ("no", "mask"),
        ("nmask", "mask"),
        aliases=dict.fromkeys(("causal", "window", "generic"), ("mask",)),
    ),
    "generic": Axis(
        "mask",
        ("no", "causal", "generic"),
        ("nmask", "mc", "mg"),
        aliases={"window": ("generic",), "mask": ("causal", "generic")},
    ),
}


MASKS = ("no", "top_left", "bottom_right", "generic")
MASK_TYPE = Trait("mask_type", "mask", MASKS, {"mask": MASKS[1:], "causal": MASKS[1:3], "generic": MASKS[1:]})
BIAS_TYPE = Trait("bias_type", "bias", ("no", "bias", "alibi"))
# In the order in which the reasons that an instance does not serve a call are told.
TRAITS = (
    Trait("data_type", "dtype", DTYPES),
    MASK_TYPE,
    BIAS_TYPE,
    Trait("qscale_type", "qscale", QSCALES),
    flag("is_group_mode", "mode", "batch", "group"),
    flag("is_v_rowmajor", "vlayout", "c", "r"),
    flag("has_logits_soft_cap", "logits"),
    flag("has_lse", "lse"),
    flag("has_dropout", "dropout"),
    flag("skip_min_seqlen_q", "skip"),
    flag("has_sink", "sink"),
)
SIZES = (Size("hdim_q", fills=True), Size("hdim_v", fills=True))


def hdim_axis(hdims: Hdims = HDIMS) -> Axis:
    """Pairs of head dims."""
    return Axis(
        "hdim",
        tuple(hdim_word(*hdim) for hdim in hdims),
        tuple(f"d{q}" for q, _ in hdims),
        short=tuple(f"d{hdim_word(*hdim)}" for hdim in hdims),
        views={"hdim_q": _hdim_view(hdims, 0), "hdim_v": _hdim_view(hdims, 1)},
        limits=hdims,
    )


def make_space(mask: str) -> Space:
    """The axes in the order of CK's names."""
    return Space(
        (
            hdim_axis(),
            Axis("dtype", DTYPES, DTYPES),
            Axis("mode", ("batch", "group"), ("batch", "group")),
            Axis("vlayout", ("r", "c"), ("vr", "vc")),
            Axis("pad", PADS, PADS),
            flag_axis("logits", "logits"),
            Axis("bias", ("no", "bias", "alibi"), ("nbias", "bias", "alibi")),
            MASK_AXES[mask],
            flag_axis("lse", "lse"),
            flag_axis("dropout", "dropout"),
            flag_axis("skip", "skip"),
            Axis(
                "qscale",
                ("no", "pt", "bs", "mx"),
                ("nqscale", "pertensor", "blockscale", "mx"),
                refused={
                    "kvbs": "it belongs to batch_prefill alone",
                    "kv_blockscale": "it belongs to batch_prefill alone",
                    "th": "it belongs to batch_prefill alone",
                },
            ),
            Axis("trload", ("no",), ("ntrload",)),
            flag_axis("sink", "sink"),
        )
    )


def make_rules(space: Space) -> tuple[Rule, ...]:
    """Combinations that no instance serves, with reasons."""
    return (
        Rule(
            space.box(logits=("yes",), bias=("bias",)),
            "a soft cap goes without an elementwise bias, as in CK",
        ),
        Rule(
            space.box(qscale=("pt", "bs"), dtype=(d for d in DTYPES if d not in FP8)),
            "descales for a tensor or for blocks belong to fp8 inputs",
        ),
        Rule(
            space.box(qscale=("mx",), dtype=(d for d in DTYPES if d not in MX)),
            "E8M0 scales belong to the mx types",
        ),
        Rule(
            space.box(qscale=("no", "pt", "bs"), dtype=MX),
            "the mx types always carry E8M0 scales",
        ),
        Rule(
            space.box(mode=("group",), pad=(pad for pad in PADS if pad not in PADS_OF_GROUP)),
            "sequences of a group end anywhere, so both of their sides are padded",
        ),
    )
