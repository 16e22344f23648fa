# SPDX-License-Identifier: MIT
"""Fragments of emitted files must take and define the names that they list; headers of phases stand alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import run_in
from device import compile_object, compile_ptx

from codegen import Refused
from codegen.render import HEADERS, check_needs, expanded

PARTS = sorted((HEADERS / "device").rglob("*.h"))
PART = "// A part.\n//\n// Takes BM, rows.\n"


def test_names_that_a_part_takes_stand_before_it() -> None:
    check_needs(f"enum {{ BM = 1 }};\nint rows;\n{PART}", "x")
    with pytest.raises(Refused, match="templates/x: nothing has said rows, which a part takes"):
        check_needs(f"enum {{ BM = 1 }};\n// rows\n{PART}int rows;\n", "x")
    long = "// Takes BM,\n// rows. Defines columns,\n// lines.\n"
    check_needs(f"int BM, rows;\n{long}int columns, lines;\n", "x")
    with pytest.raises(Refused, match="nothing says lines, which a part defines"):
        check_needs(f"int BM, rows, lines;\n{long}int columns; // lines\n", "x")


def test_headers_are_read_where_they_are_included_once() -> None:
    name = "device/attention/cdna/tiles.h"
    text = expanded(f'before\n#include "tessera/{name}"\n#include "tessera/{name}"\nafter\n', set())
    assert text.count("INLINE struct tiles find_tiles(") == text.count("INLINE buffer rows_of(") == 1
    assert text.startswith("before\n") and text.endswith("after\n")
    with pytest.raises(Refused, match=r"device/none\.h does not exist"):
        expanded('#include "tessera/device/none.h"\n', set())


def test_a_missing_parameter_is_refused(checkout: Path, tmp_path: Path) -> None:
    """The preprocessor would take it for 0."""
    template = checkout / "templates/attention/cdna/instance.c.j2"
    template.write_text(re.sub("#define V_COLUMNS.*\n", "", template.read_text()))
    failed = run_in(checkout, "--targets", "gfx942", "-o", tmp_path / "out")
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
    assert "templates/fmha_fwd/qr" in failed.stderr and "V_COLUMNS" in failed.stderr


# What an emitted file says, and how tiles get to LDS.
SAID = """
#include "tessera/isa/cdna.h"
#include "tessera/kernel/fmha_fwd_gpu.h"
enum { BM = 128, BN = 64, DQ = 128, DV = 128, WAVES = 4, PASSES = 1, P_SHIFT = 0 };
#define MMA_ROWS 32
#define BITS 16
#define OPERAND_CHUNKS 1
#define MX 0
#define DESCALED 0
#define MERGED 0
#define PAGED 0
#define PIECES 0
#define KV TESSERA_KV_AUTO
#define NUMBERS_OF_WORD fp16_of_int8
#define DIRECT 0
#define Q_BF16 1
#define TRANSPOSES_HEADS 0
#define V_COLUMNS 0
#define WHOLE_CHUNKS 1
#define BIAS_BITS 16
#define O_BITS 16
#define MMA_OF mma_bf16
#define TWO_OF_P pack_bf16
#define UNPACK unpack_bf16
#define TWO_OF_O pack_bf16
#define TRANSPOSING_READS 0
#define LDS_BANKS 32
#define LOAD 4
#define LOAD_TO_LDS load_to_lds_4
#define V_WORDS 2
enum { PARTS = 1, RING = 4 };
#define RAISE_BY 8.0f
#define MMA_PART(a, b, c, part) mma_part_bf16((a).chunk[0], (b).chunk[0], c, part)
typedef struct tessera_fmha_fwd_gpu_args args;
"""


# Of headers of the backward pass.
BWD_SAID = SAID.replace('"tessera/kernel/fmha_fwd_gpu.h"', '"tessera/kernel/fmha_bwd_gpu.h"').replace(
    "typedef struct tessera_fmha_fwd_gpu_args args;",
    "#define TWO_OF_S pack_bf16\n#define HEADS_FIRST 1\n"
    "enum { TILES_AHEAD = 2, STORES_DQ = 1, TASK_BYTES = 80 };\n"
    '#include "tessera/device/common/cdna/store.h"',
)


SAID_FOR_CUDA = """
#include "tessera/isa/sm90_async.h"
#include "tessera/kernel/fmha_fwd_cuda.h"
enum { BM = 128, BN = 128, KEYS = 128, DQ = 128, DV = 128, WARPGROUPS = 2, STAGES = 2, Q_STAGES = 2 };
#define KEYS_APART 0
#define V_COLUMNS 0
enum { TURNS = 1, P_SHIFT = 0, HEADROOM = 8, EARLY = 16, FUSED_EXP2 = 1 };
#define KEEPS 1
#define BITS 16
#define DESCALED 0
#define TURNED 0
#define GENERAL 1
#define BIAS_BITS 16
#define O_BITS 16
#define HEADS 1
#define STRIPS 1
#define PAIRS 1
#define MERGED 0
#define TWO_OF_P pack_bf16
#define UNPACK unpack_bf16
#define TWO_OF_O pack_bf16
#define PAGED 0
typedef struct tessera_fmha_fwd_cuda_args args;
"""
OF_CACHES = {"paged.h": 1, "spots.h": 1, "pieces.h": 2}  # headers that find keys in caches

SAID_FOR_PAGES = """
#include "tessera/isa/sm90_async.h"
#include "tessera/kernel/fmha_fwd_cuda.h"
enum { BM = 8, BN = 128, KEYS = 32, DQ = 128, DV = 128, WARPS = 4, STAGES = 3, KV = TESSERA_KV_TURBO4 };
enum { P_SHIFT = 6, HEADROOM = 8, EARLY = 0, FUSED_EXP2 = 1 };
#define KEYS_APART 1
#define V_COLUMNS 0
#define Q_BITS 16
#define Q_BF16 1
#define KEEPS 1
#define BITS 16
#define DESCALED 1
#define TURNED 1
#define GENERAL 1
#define BIAS_BITS 16
#define O_BITS 16
#define HEADS 1
#define STRIPS 0
#define MERGED 1
#define TWO_OF_P pack_fp16
#define UNPACK unpack_bf16
#define TWO_OF_O pack_bf16
#define PAGED 1
typedef struct tessera_fmha_fwd_cuda_args args;
"""


# The same of operations on rows, whose headers are for several kinds of GPUs.
ROWS_SAID = """
#include "tessera/kernel/rows.h"
enum { WAVES = 4, ROWS = 1, CHUNKS = 2 };
#define STATISTICS MEAN
#define VECTORS 1
#define IN_BITS 16
#define UNPACK unpack_bf16
#define PACK pack_bf16
#define ROUND(x) UNPACK(PACK(x, 0.0f))
typedef struct tessera_rows_problem problem;
"""


APPEND_SAID = "enum { ROW_LANES = 16 };\n#define VECTORS 1\n"
TURBO4_SAID = "enum { HDIM = 128 };\n#define VECTORS 1\n"
BACKWARD_SAID = "enum { SCALED = 1, IN_ORDER = 1, THREADS = 256, ROWS = 16 };\n#define VECTORS 1\n"


@pytest.mark.parametrize(
    "header", [part for part in PARTS if part.parent.name == "cpu"], ids=lambda path: path.stem
)
def test_a_header_for_cpus_compiles_alone(header: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.c"
    alone.write_text(
        '#include "tessera/isa/cpu_portable.h"\n#include "tessera/kernel/rows.h"\n'
        "enum { MEAN = 1, SQUARE = 0, BY_EXPERT = 0 };\ntypedef struct tessera_rows_problem problem;\n"
        f'#include "{header.relative_to(HEADERS.parent)}"\n'
    )
    words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS.parent}", "-fsyntax-only", alone]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Headers that take what one of several others has.
BEHIND = {
    **dict.fromkeys(("bundles.h", "raising.h", "standing.h"), "direct_v.h"),
    "bwd_bundles.h": "bwd_direct.h",
    "direct_products.h": "direct_halves.h",
}


@pytest.mark.parametrize(
    "header", [part for part in PARTS if part.parent.name == "cdna"], ids=lambda path: path.stem
)
def test_a_header_compiles_alone(header: Path, tmp_path: Path) -> None:
    """It compiles with only the names that it takes and its own includes."""
    own = f'#include "{header.relative_to(HEADERS.parent)}"\n'
    takes = re.search(r"// Takes ([\w, ]+)\.", header.read_text())
    before = ""
    if header.name.startswith("staged_") or (takes and "k_operand" in takes[1]):
        before = '#include "tessera/device/attention/cdna/staged.h"\n'
    if header.name in BEHIND:
        before = f'#include "tessera/device/attention/cdna/{BEHIND[header.name]}"\n'
    if takes and "store_four" in takes[1]:
        before = '#include "tessera/device/common/cdna/store.h"\n'
        before += "enum { STORES = 1 };\n" if "STORES" in takes[1].split(", ") else ""
    of_rows = header.parts[-3] == "rows" or header.name.startswith("row_")
    said = f'#include "tessera/isa/cdna.h"\n{ROWS_SAID}' if of_rows else SAID
    if header.name.startswith("bwd_"):
        said = BWD_SAID
    if header.name == "clusters.h":
        said = said.replace("TRANSPOSING_READS 0", "TRANSPOSING_READS 1")
    if header.name == "staged_scales.h":
        said = said.replace("MX 0", "MX 1").replace(
            "BITS 16\n#define OPERAND_CHUNKS", "BITS 8\n#define OPERAND_CHUNKS"
        )
    of_pieces = ("direct_pieces.h", "parts_of_8_bits.h")
    of_quantised_rows = ("numbers.h", "quantised.h", "direct_codes.h", *of_pieces)
    of_pages = ("paged.h", "scaled_rows.h", "direct_rows.h", "direct_linear.h", "direct_halves.h")
    of_pages += ("direct_products.h",)
    if header.name in ("merged_queries.h", *of_pages, *of_quantised_rows):
        said = said.replace("MERGED 0", "MERGED 1")
    if header.name in (*of_pages, *of_quantised_rows):
        said = said.replace("PAGED 0", "PAGED 1")
    if header.name in of_quantised_rows:
        said = said.replace("TESSERA_KV_AUTO", "TESSERA_KV_INT8")
    if header.name in of_pieces:
        said = said.replace("PIECES 0", "PIECES 1")
    if header.name == "staged_columns.h":
        said = said.replace("V_COLUMNS 0", "V_COLUMNS 1")
    target = "gfx942" if header.name == "parts_of_8_bits.h" else "gfx950"  # whose fp8 is FNUZ's
    try:
        compile_object(said + before + own, tmp_path / "alone.so", target, "-Wall", "-Wextra", "-Werror")
    except subprocess.CalledProcessError:
        pytest.fail(f"{header} does not compile alone")


KINDS = {"cdna": "cdna.h", "cuda": "sm90.h"}  # kinds of GPUs that share headers -> their vocabularies
EXCHANGES = {"cdna": "cdna_exchange.h", "cuda": "sm90_async.h"}  # their words for what lanes exchange


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "header", [part for part in PARTS if part.parent.name == "gpu"], ids=lambda path: path.stem
)
def test_a_header_for_gpus_compiles_alone(header: Path, kind: str, tmp_path: Path) -> None:
    """It compiles for each kind behind that kind's operands."""
    said = f'{BACKWARD_SAID}#include "tessera/device/attention/{kind}/row_sums.h"\n'
    said += f'#include "tessera/device/common/{kind}/reads.h"\n'
    if header.name == "append.h":
        said = APPEND_SAID
    elif header.name in ("hadamard.h", "turbo4.h"):
        said = f'#include "tessera/isa/{EXCHANGES[kind]}"\n{TURBO4_SAID}'
    elif header.parts[-3] != "attention":
        said = f'{ROWS_SAID}#include "tessera/device/rows/{kind}/operands.h"\n'
    own = f'#include "{header.relative_to(HEADERS.parent)}"\n'
    text = f'#include "tessera/isa/{KINDS[kind]}"\n{said}{own}'
    warnings = ("-Wall", "-Wextra", "-Werror")
    if kind == "cdna":
        compile_object(text, tmp_path / "alone.so", "gfx950", *warnings)
    else:
        compile_ptx(text, tmp_path / "alone.ptx", *warnings)


@pytest.mark.parametrize(
    "header",
    [part for part in PARTS if part.parent.name == "cuda"],
    ids=lambda path: path.stem,
)
def test_a_header_for_cuda_compiles_alone(header: Path, tmp_path: Path) -> None:
    is_of_rows = header.name.startswith("row_") or header.parent.parent.name == "rows"
    said = f'#include "tessera/isa/sm90.h"\n{ROWS_SAID}' if is_of_rows else SAID_FOR_CUDA
    own = f'#include "{header.relative_to(HEADERS.parent)}"\n'
    said = said.replace("BITS 16", "BITS 8", 1) if header.stem.startswith("transpose") else said
    said = said.replace("PAGED 0", f"PAGED {OF_CACHES.get(header.name, 0)}", 1)
    if "store_pairs" in header.read_text() and header.parent.parent.name != "common":
        own = '#include "tessera/device/common/cuda/store.h"\n' + own
    compile_ptx(said + own, tmp_path / "alone.ptx", "-Wall", "-Wextra", "-Werror")


@pytest.mark.parametrize(
    "header",
    [part for part in PARTS if part.parent.name == "cuda_pages"],
    ids=lambda path: path.stem,
)
def test_a_header_for_quantised_caches_compiles_alone(header: Path, tmp_path: Path) -> None:
    own = f'#include "{header.relative_to(HEADERS.parent)}"\n'
    if "store_pairs" in header.read_text():
        own = '#include "tessera/device/common/cuda/store.h"\n' + own
    said = SAID_FOR_PAGES
    if header.name in ("products.h", "queries.h"):  # with 16 queries
        said = said.replace("TURNED 1", "TURNED 0").replace("BM = 8", "BM = 16").replace("TURBO4", "INT8")
    if header.name == "whole.h":
        said = (
            said.replace("HEADS 1", "HEADS 8")
            .replace("BN = 128", "BN = 64")
            .replace("WARPS = 4", "WARPS = 16")
        )
        boxes = said.replace("TURBO4", "INT8")
        compile_ptx(boxes + own, tmp_path / "boxes.ptx", "-Wall", "-Wextra", "-Werror")
    compile_ptx(said + own, tmp_path / "alone.ptx", "-Wall", "-Wextra", "-Werror")
