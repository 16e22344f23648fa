# SPDX-License-Identifier: MIT
"""Short names, symbols and CK's names."""

from __future__ import annotations

import re

import pytest
from conftest import run, run_all

from codegen.ops import operations
from codegen.rows import read_instances
from codegen.space import region_meet, region_size
from codegen.spec import NAME_LIMIT, ROOT, Instance
from codegen.targets import TARGETS

FWD = operations()["fwd"]
INSTANCES = read_instances(FWD, ROOT / "instances", tuple(TARGETS))

CK_NAME = re.compile(
    r"fmha_fwd_d(32|48|64|80|96|128|192|256|512)_(fp32|fp16|bf16|fp8|fp8bf16|fp8fp32|mxfp8|mxfp4)_(batch|group)"
    r"_b(\d+)x(\d+)x(\d+)x(\d+)x(\d+)x(\d+)_r(\d+)x(\d+)x(\d+)_r(\d+)x(\d+)x(\d+)"
    r"_w(\d+)x(\d+)x(\d+)_w(\d+)x(\d+)x(\d+)_(qr|qr_async|qr_bundled|qr_heads|qr_pages|qr_direct|qr_pieces|qr_tile|decode)"
    r"_v(r|c)_(npad|p(s)?(sk)?(d)?(dv)?)_(nlogits|logits)_(nbias|bias|alibi)_(nmask|mask)_(nlse|lse)"
    r"_(ndropout|dropout)_(nskip|skip)_(nqscale|pertensor|blockscale|mx)_ntrload_(nsink|sink)"
)
ONE_SHAPE = (
    "bm0=528 dtype=fp32 hdim=64 mode=batch vlayout=r lse=no skip=no sink=no dropout=no bias=no logits=no"
)
A_CORNER = "dtype=fp8bf16|mxfp4 pad=npad|psskddv vlayout=r lse=no skip=no sink=no dropout=no"


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_short_names(instance: Instance) -> None:
    assert re.fullmatch(r"fmha_fwd(_[a-z0-9]+)*__[a-z0-9]+(_[a-z0-9]+)*", instance.name)
    assert len(instance.name) <= NAME_LIMIT
    assert instance.target.tag in instance.name.split("__")[1]
    assert instance.symbol == "tessera_k_" + instance.name.replace("__", "_")
    assert instance.file == instance.name + ".c"


def test_names_are_unique() -> None:
    assert len({instance.name for instance in INSTANCES}) == len(INSTANCES)
    assert len({instance.symbol for instance in INSTANCES}) == len(INSTANCES)


def test_ck_names_have_the_form_of_ck() -> None:
    names = run_all("--expand", "--where", A_CORNER).lines
    assert names
    for name in names:
        assert CK_NAME.fullmatch(name), name
        bn1, bk0max = (int(CK_NAME.fullmatch(name)[group]) for group in (7, 9))  # type: ignore[index]
        hdim_q = int(name.split("_")[2][1:])
        assert (hdim_q, bn1) in [
            (32, 32),
            (48, 48),
            (64, 64),
            (80, 96),
            (96, 128),
            (128, 128),
            (192, 128),
            (192, 192),
            (256, 256),
            (512, 512),
        ]
        assert bk0max == hdim_q


def test_ck_names_of_one_instance_are_unique_and_counted() -> None:
    for instance in INSTANCES:
        region = region_meet(
            instance.region, FWD.space.where("dtype=bf16|mxfp8 hdim_q=80|192 sink=no skip=no")
        )
        names = list(instance.ck_names(region))
        assert len(names) == len(set(names)) == region_size(region)
    assert sum(1 for _ in INSTANCES[0].ck_names(INSTANCES[0].region)) == INSTANCES[0].combinations


def test_a_known_ck_name() -> None:
    """Every trait has its place, as CK's factory would print it."""
    where = (
        "target=x86-64-v4 pipeline=qr bm0=528 hdim=192x128 dtype=fp16 mode=group pad=pssk vlayout=r logits=no"
        " bias=alibi mask=mask lse=yes dropout=no skip=no sink=no"
    )
    assert run_all("--expand", "--where", where).lines == [
        "fmha_fwd_d192_fp16_group_b528x128x16x128x128x192_r1x1x1_r1x1x1_w48x8x1_w48x8x1_qr_vr_pssk_nlogits_alibi_mask"
        "_lse_ndropout_nskip_nqscale_ntrload_nsink"
    ]


def test_rules_hold_in_every_name() -> None:
    for name in run_all("--expand", "--where", A_CORNER).lines:
        assert not ("_logits_" in name and "_bias_" in name)
        assert ("_mxfp" in name) == ("_mx_n" in name)
        assert "_group_" not in name or "_pssk" in name


def test_generic_masks() -> None:
    where = ONE_SHAPE + " pad=npad"
    simplified = run("--expand", "--where", where).lines
    generic = run("--expand", "-m", "generic", "--where", where).lines
    assert re.findall("_(n?m(?:ask|[cg]))_", "".join(simplified)) == ["nmask", "mask"]
    assert re.findall("_(n?m(?:ask|[cg]))_", "".join(generic)) == ["nmask", "mc", "mg"]


def test_pad_tokens() -> None:
    where = ONE_SHAPE + " mask=no"
    pads = [name.split("_vr_")[1].split("_")[0] for name in run("--expand", "--where", where).lines]
    sides = [
        [side for side, on in zip(("s", "sk", "d", "dv"), f"{n:04b}"[::-1]) if on == "1"] for n in range(16)
    ]
    assert pads == ["p" + "".join(side) if side else "npad" for side in sides]
