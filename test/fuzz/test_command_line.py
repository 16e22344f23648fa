# SPDX-License-Identifier: MIT
"""Random command lines for tile_example_fmha_fwd: exit codes 0 to 4, and one line where it is not 0."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from sampling import ALL, SEED

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
PROGRAM = Path(os.environ.get("TESSERA_BIN_DIR") or BUILD / "bin") / "tile_example_fmha_fwd"
EXAMPLES = 20000 if ALL else 300
MEMORY = 8 << 30

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

SENSIBLE = {
    "mode": "0 1",
    "b": "1 2 3",
    "h": "1 2 4 6",
    "h_k": "-1 1 2 3",
    "s": "1 7 33 70 5,9 1,0,30",
    "s_k": "-1 0 1 40 129 20,30 3,4,5",
    "s_qpad": "-1 70 100 40,50",
    "s_kpad": "-1 64 200 30,30",
    "d": "1 8 32 40 64",
    "d_v": "-1 16 31 72",
    "scale_s": "0 0.1 -1",
    "qscale": "n pt bs mx 0 1 2 3 4 kvbs",
    "logits_soft_cap": "0 10 0.5",
    "iperm": "0 1",
    "operm": "0 1",
    "bias": "n e e:1 e:2 a a:1 0 1 2",
    "prec": "fp32 fp16 bf16 fp8 fp8bf16 fp8fp32 mxfp8 mxfp4",
    "mask": "0 1 2 t b t:3,5 b:10,11 t:2,0,2 xt:4 xb:-1 g:5,6",
    "vlayout": "r c",
    "lse": "0 1",
    "kname": "0 1 2",
    "init": "ui ni uf nf tf 3 uf:q 0 1 2",
    "seed": "0 1 4294967295",
    "p_drop": "0 0.2 0.9",
    "drop_prefs": "0 1",
    "q_eff_lens": "1,2 3 0,0",
    "kv_eff_lens": "1,2 3 0,0",
    "init_sink": "0 1",
    "device": "cpu auto cpu:x86-64-v2 cpu:portable",
    "threads": "0 1 3",
    "explain": "0 1 2",
    "v": "0 1 2 3",
}
NONSENSE = (
    "-1 0 -7 2147483647 2147483648 -2147483648 99999999999999999999 1e3 1.5 nan inf -inf 0x10 abc , "
    "1, ,1 1,2,3,4,5 t: t:1 t:1,2,3,4 b:-2,-3 xt: g:1 e:3 a:-1 : cpu: cpu:x hip:0 gpu %s %n ../x"
).split()
FIXED = ("-warmup=0", "-repeat=1", "-s=20", "-d=16", "-h=2")  # unless a later argument says otherwise


def names() -> list[str]:
    """Every argument that the program's help lists, so that a new one is thrown too."""
    text = subprocess.run([PROGRAM, "-?"], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^ *-(\w+)", text, re.MULTILINE)
    assert set(SENSIBLE) <= set(found)
    return sorted(set(found) - {"jsonfile", "repeat", "warmup"})


def arguments() -> st.SearchStrategy[list[str]]:
    if not PROGRAM.exists():
        return st.just([])
    name = st.sampled_from(names())
    sensible = st.sampled_from(
        [f"-{key}={value}" for key, values in SENSIBLE.items() for value in values.split()]
    )
    words = st.sampled_from(NONSENSE) | st.text(
        st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
    )
    strange = st.builds("-{}={}".format, name, words)
    broken = st.sampled_from(
        ["", "-", "--", "-=", "=", "-b", "b=1", "--b=1", "-b==1", "-nosuch=1", "-B=1", "-b =1"]
    )
    usual = st.lists(sensible, max_size=8)
    spoilt = st.lists(sensible | strange | broken, max_size=6)
    return usual | spoilt


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@given(arguments())
@seed(SEED)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_exit_codes_and_lines(words: list[str]) -> None:
    done = subprocess.run(
        [PROGRAM, *FIXED, *words],
        check=False,
        capture_output=True,
        timeout=120,
        preexec_fn=limit_memory,
    )
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    assert 0 <= done.returncode <= 4, f"exit code {done.returncode}\n{err}"
    assert done.returncode != 3, f"wrong result\n{out}\n{err}"
    if done.returncode == 0:
        assert err == ""
        assert "-?" in words or out.count("\n") >= 1
        assert ", valid:n" not in out
    else:
        assert err.startswith("tile_example_fmha_fwd: ")
        assert err.count("\n") == 1, err
