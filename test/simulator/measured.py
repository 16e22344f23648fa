# SPDX-License-Identifier: MIT
"""Micro-kernels, and the cycles that somebody measured of them on a GPU, or that two documents say.

pyhip is tingqli/pyhip, tests/flydsl/attn_4wave/tools/mfma-valu-coissue.md and vmem-fifo.md, and
docs/mem_latency.md; gcnasm is carlushuang/gcnasm, ubench/README.md. Both measured an MI308X. MT4G is
caps-tum/mt4g, sample_results, which measured an MI210 and an MI300X.
"""

from __future__ import annotations

from collections.abc import Iterator

from micro_kernels import Micro

COISSUE = "pyhip mfma-valu-coissue.md"
CALCULATOR = "amd_matrix_instruction_calculator, LLVM SISchedule.td"
MFMA = "v_mfma_f32_16x16x16_bf16 v[8:11], v[4:5], v[6:7], v[8:11]"
MFMA950 = "v_mfma_f32_32x32x16_bf16 v[16:31], v[4:7], v[8:11], v[16:31]"
WAIT_SLOT = 4  # of the s_waitcnt that a latency is measured with


def valu(name: str, count: int) -> str:
    """Independent instructions."""
    operands = {
        "v_add_f32": "v{0}, v40, v41",
        "v_fma_f32": "v{0}, v40, v41, v42",
        "v_exp_f32": "v{0}, v40",
        "v_pk_mul_f32": "v[{0}:{1}], v[40:41], v[42:43]",
        "v_cvt_pk_bf16_f32": "v{0}, v40, v41",
        "v_mul_lo_u32": "v{0}, v40, v41",
    }[name]
    return "\n".join(f"{name} {operands.format(50 + 2 * (i % 4), 51 + 2 * (i % 4))}" for i in range(count))


def shapes() -> Iterator[Micro]:
    """Matrix instructions one after another."""
    sixteen = "v[16:31], v[4:5], v[6:7], v[16:31]"
    wide = "v[16:31], v[4:7], v[8:11], v[16:31]"
    rows = [
        ("32x32x8_bf16", f"v_mfma_f32_32x32x8bf16_1k {sixteen}", ("gfx90a",), 64),
        ("32x32x8_f16", f"v_mfma_f32_32x32x8f16 {sixteen}", ("gfx90a",), 64),
        ("16x16x16_f16", "v_mfma_f32_16x16x16f16 v[8:11], v[4:5], v[6:7], v[8:11]", ("gfx90a",), 32),
        ("32x32x8_bf16", f"v_mfma_f32_32x32x8_bf16 {sixteen}", ("gfx942", "gfx950"), 32),
        ("16x16x16_bf16", MFMA, ("gfx942", "gfx950"), 16),
        ("32x32x16_fp8", f"v_mfma_f32_32x32x16_fp8_fp8 {sixteen}", ("gfx942",), 32),
        ("32x32x16_bf16", f"v_mfma_f32_32x32x16_bf16 {wide}", ("gfx950",), 32),
        ("16x16x32_bf16", "v_mfma_f32_16x16x32_bf16 v[12:15], v[4:7], v[8:11], v[12:15]", ("gfx950",), 16),
        ("32x32x4_bf16", "v_mfma_f32_32x32x4bf16 v[16:31], v4, v6, v[16:31]", ("gfx90a",), 64),
        ("32x32x2_f32", "v_mfma_f32_32x32x2f32 v[16:31], v4, v6, v[16:31]", ("gfx90a",), 64),
        ("4x4x4_f16", "v_mfma_f32_4x4x4f16 v[8:11], v[4:5], v[6:7], v[8:11]", ("gfx90a",), 8),
        ("16x16x4_f64", "v_mfma_f64_16x16x4f64 v[16:23], v[4:5], v[6:7], v[16:23]", ("gfx90a",), 32),
        ("32x32x2_f32", "v_mfma_f32_32x32x2_f32 v[16:31], v4, v6, v[16:31]", ("gfx942", "gfx950"), 64),
        (
            "32x32x64_fp8",
            "v_mfma_f32_32x32x64_f8f6f4 v[16:31], v[32:39], v[40:47], v[16:31]",
            ("gfx950",),
            64,
        ),
        (
            "16x16x128_fp8",
            "v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[32:39], v[40:47], v[8:11]",
            ("gfx950",),
            32,
        ),
        (
            "32x32x64_fp4",
            "v_mfma_f32_32x32x64_f8f6f4 v[16:31], v[32:35], v[40:43], v[16:31] cbsz:4 blgp:4",
            ("gfx950",),
            32,
        ),
    ]
    for name, text, archs, cycles in rows:
        yield Micro(f"{name} of {archs[0]}", text, cycles, CALCULATOR, archs=archs)


def beside_one_wave() -> Iterator[Micro]:
    """A matrix instruction, and behind it others of the same wave."""
    more = {
        "v_add_f32": (0.020, 0.024, 0.028, 4.028),
        "v_fma_f32": (0.020, 0.025, 0.029, 4.029),
        "v_exp_f32": (4.028, 20.028, 36.028, 52.028),
        "v_pk_mul_f32": (12.012, 16.012, 20.013, 24.013),
    }
    for name, cycles in more.items():
        for count, extra in enumerate(cycles, 1):
            text = f"{MFMA}\n{valu(name, count)}"
            yield Micro(f"MFMA and {count} {name}", text, 16.026 + extra, COISSUE)


LENGTH = 100  # of a text of beside_another_wave()


def in_turn(first: str, second: str) -> str:
    """Waves 0 to 3 run the first text while waves 4 to 7, on the same SIMDs, run the second one, and so on in
    turn. The second text begins 4 bytes behind a multiple of 8, as in what was measured."""
    return f".p2align 3\n{(first + chr(10)) * LENGTH}s_barrier\n{(second + chr(10)) * LENGTH}s_barrier"


# Lets waves 4 to 7 begin with the second text.
SHIFT = """
    v_readfirstlane_b32 s13, v0
    s_cmp_lt_u32 s13, 256
    s_cbranch_scc1 1f
    s_barrier
1:  s_barrier"""

# Lets waves 0 to 3 wait for the second text of waves 4 to 7.
DRAIN = """
    s_cmp_lt_u32 s13, 256
    s_cbranch_scc0 2f
    s_barrier
2:"""


def beside_another_wave() -> Iterator[Micro]:
    """Two waves of a SIMD: one runs matrix instructions or v_exp while the other one runs others."""
    more = {
        "v_add_f32": (-0.014, -0.012, -0.010, 3.966),
        "v_fma_f32": (-0.014, -0.011, -0.009, 4.968),
        "v_exp_f32": (3.990, 19.966, 35.966, 51.966),
        "v_pk_mul_f32": (4.964, 9.964, 14.964, 19.965),
    }
    for name, cycles in more.items():
        for count in (1, 2, 3, 4):
            text = in_turn(MFMA, valu(name, count))
            time = 16.026 + cycles[count - 1]
            label = f"MFMA beside {count} {name} of another wave"
            yield Micro(
                label, text, time, COISSUE, setup=SHIFT, finish=DRAIN, waves=8, repeat=2, groups=2 * LENGTH
            )
    for name, cycle in {
        "v_add_f32": 20.008,
        "v_fma_f32": 20.511,
        "v_exp_f32": 32.008,
        "v_pk_mul_f32": 20.510,
    }.items():
        text = in_turn(valu("v_exp_f32", 1), valu(name, 1))
        label = f"v_exp_f32 beside {name} of another wave"
        yield Micro(
            label, text, cycle, COISSUE, setup=SHIFT, finish=DRAIN, waves=8, repeat=2, groups=2 * LENGTH
        )


def issue() -> Iterator[Micro]:
    every = ("gfx90a", "gfx942", "gfx950")
    exp = "v_exp_f32 v50, v40"
    three = valu("v_add_f32", 3)
    yield Micro("v_add_f32", valu("v_add_f32", 1), 4.012, COISSUE, archs=every)
    yield Micro("v_fma_f32", valu("v_fma_f32", 1), 4.016, COISSUE, archs=every)
    yield Micro(
        "v_fma_f32 at PC mod 8 = 4", valu("v_fma_f32", 1), 5.012, COISSUE, archs=every, lead="s_nop 0"
    )
    yield Micro("v_pk_mul_f32", valu("v_pk_mul_f32", 1), 4.008, COISSUE)
    yield Micro("v_pk_mul_f32 at PC mod 8 = 4", valu("v_pk_mul_f32", 1), 5.004, COISSUE, lead="s_nop 0")
    yield Micro("v_exp_f32", exp, 16.000, COISSUE, archs=("gfx90a", "gfx942"))
    yield Micro("v_exp_f32 of gfx950", exp, 8, "CDNA4 white paper", archs=("gfx950",))
    half = 4.012 * 6.218 / 3.205
    yield Micro(
        "v_mul_lo_u32", valu("v_mul_lo_u32", 1), half, "gcnasm measure_ips_bench, of an MI50", archs=every
    )
    yield Micro("v_exp_f32 and v_add_f32", f"{exp}\n{valu('v_add_f32', 1)}", 20.036, COISSUE)
    yield Micro("MFMA, 3 v_add_f32, MFMA, v_exp_f32", f"{MFMA}\n{three}\n{MFMA}\n{exp}", 36.053, COISSUE)
    yield Micro("MFMA, MFMA, 3 v_add_f32, v_exp_f32", f"{MFMA}\n{MFMA}\n{three}\n{exp}", 48.052, COISSUE)
    wide = "v_mfma_f32_32x32x8_bf16 v[16:31], v[4:5], v[6:7], v[16:31]"
    for count, cycles in ((7, 32), (8, 36)):
        text = f"{wide}\n{valu('v_add_f32', count)}"
        yield Micro(f"MFMA of 32 and {count} v_add_f32", text, cycles, f"{COISSUE}; AITER places 7")
    for count, cycles in ((3, 32), (4, 40)):
        text = f"{MFMA950}\n{valu('v_exp_f32', count)}"
        source = "CDNA4 white paper; AITER places 3"
        yield Micro(f"MFMA and {count} v_exp_f32 of gfx950", text, cycles, source, archs=("gfx950",))
    text = f"{MFMA950}\n{valu('v_cvt_pk_bf16_f32', 6)}"
    yield Micro(
        "MFMA and 6 v_cvt_pk_bf16_f32", text, 32, "LLVM Write32Bit; AITER places 6", archs=("gfx950",)
    )
    for count, cycles in ((6, 32), (7, 36)):
        text = f"{MFMA950}\n{valu('v_add_f32', count)}"
        yield Micro(
            f"MFMA and {count} v_add_f32", text, cycles, "LLVM PR 184084; AITER places 6", archs=("gfx950",)
        )
    yield Micro("s_nop", "s_nop 7", 32, "ISA: 8 wait states", archs=every)
    for arch, states in (("gfx942", 11), ("gfx950", 12)):
        text = f"{wide}\ns_nop {states - 1}\nv_add_f32 v50, v16, v41"
        source = "wait states until VALU reads a result of 8 passes: LLVM PR 126132"
        yield Micro(f"MFMA and its reader on {arch}", text, 4 * (1 + states + 1), source, archs=(arch,))


def lds() -> Iterator[Micro]:
    zero = "v_mov_b32 v1, 0\ns_mov_b64 exec, 1"
    for width, (read, write) in {1: (32, 39), 2: (44, 48), 4: (48, 60)}.items():
        data = f"v[8:{7 + width}]" if width > 1 else "v8"
        wait = "s_waitcnt lgkmcnt(0)"
        bits = 32 * width
        source = "gcnasm: with one lane"
        yield Micro(
            f"latency of ds_read_b{bits}",
            f"ds_read_b{bits} {data}, v1\n{wait}",
            read + WAIT_SLOT,
            source,
            zero,
        )
        yield Micro(
            f"latency of ds_write_b{bits}",
            f"ds_write_b{bits} v1, {data}\n{wait}",
            write + WAIT_SLOT,
            source,
            zero,
        )
    way = "pyhip mem_latency.md"
    wide, narrow = "ds_read_b128 v[8:11], v1", "ds_read_b32 v8, v1"
    yield Micro("ds_read_b128 of one wave", wide, 16, way, "v_lshlrev_b32 v1, 4, v1")
    yield Micro("ds_read_b32 of one wave", narrow, 4, way, "v_lshlrev_b32 v1, 2, v1")
    yield Micro("ds_read_b32 of words 8 apart", narrow, 16, way, "v_lshlrev_b32 v1, 5, v1")
    yield Micro("ds_read_b32 of words 32 apart", narrow, 64, way, "v_lshlrev_b32 v1, 7, v1")
    yield Micro(
        "ds_read_b128 of four waves", wide, 40, "Triton PR 11365: 80 %", "v_lshlrev_b32 v1, 4, v1", waves=4
    )
    # Lanes 0 to 3 and 4 to 7 ask the same banks for other words; they are of different phases.
    apart = """
        v_and_b32 v2, 3, v1
        v_lshrrev_b32 v3, 4, v1
        v_and_b32 v3, 1, v3
        v_lshlrev_b32 v3, 2, v3
        v_add_u32 v2, v2, v3
        v_lshlrev_b32 v2, 4, v2
        v_lshrrev_b32 v3, 2, v1
        v_lshl_add_u32 v1, v3, 7, v2"""
    phases = "phases: Triton PR 11365, amd-shark-ai, HipKittens"
    yield Micro("ds_read_b128 by its phases", wide, 40, phases, apart, waves=4)
    yield Micro(
        "ds_read_b128 of gfx950",
        wide,
        20,
        "CDNA4 white paper: 256 bytes a cycle; 80 % as gfx942",
        "v_lshlrev_b32 v1, 4, v1",
        waves=4,
        archs=("gfx950",),
    )
    yield Micro(
        "ds_read_b64_tr_b16 of gfx950",
        "ds_read_b64_tr_b16 v[8:9], v1",
        8,
        "CDNA4 white paper: 256 bytes a cycle; HipKittens: two phases",
        "v_lshlrev_b32 v1, 3, v1",
        waves=4,
        archs=("gfx950",),
    )
    # Groups of four lanes whose numbers have an even count of ones are of one phase; neighbours meet.
    apart = """
        v_and_b32 v2, 3, v1
        v_bfe_u32 v3, v1, 3, 2
        v_lshl_add_u32 v2, v3, 2, v2
        v_lshlrev_b32 v2, 4, v2
        v_bfe_u32 v3, v1, 2, 1
        v_lshrrev_b32 v6, 5, v1
        v_lshl_add_u32 v3, v6, 1, v3
        v_lshl_add_u32 v1, v3, 8, v2"""
    yield Micro("ds_read_b128 by gfx950's phases", wide, 20, phases, apart, waves=4, archs=("gfx950",))
    double = "ds_read_b64 v[8:9], v1"
    peak = "128 bytes a cycle; gfx950 256: white papers"
    yield Micro("ds_read_b64 of four waves", double, 16, peak, "v_lshlrev_b32 v1, 3, v1", waves=4)
    yield Micro(
        "ds_read_b64 of gfx950", double, 8, peak, "v_lshlrev_b32 v1, 3, v1", waves=4, archs=("gfx950",)
    )
    # Lanes 8 (gfx950: 16) apart ask the same banks for other words, in the same phase.
    for arch, lanes, cycles in (("gfx942", 3, 32), ("gfx950", 4, 16)):
        twice = f"""
        v_and_b32 v2, {2**lanes - 1}, v1
        v_lshrrev_b32 v3, {lanes}, v1
        v_lshlrev_b32 v2, 3, v2
        v_lshl_add_u32 v1, v3, {lanes + 4}, v2"""
        name = f"ds_read_b64 of two-way conflicts on {arch}"
        yield Micro(name, double, cycles, phases, twice, waves=4, archs=(arch,))
    store, banks = "ds_write_b64 v1, v[8:9]", "stores have 32 banks: HipKittens"
    both = ("gfx942", "gfx950")
    yield Micro(
        "ds_write_b64 of four waves", store, 16, banks, "v_lshlrev_b32 v1, 3, v1", waves=4, archs=both
    )


def memory() -> Iterator[Micro]:
    wait = "s_waitcnt vmcnt(0)"

    def line(i: int) -> str:
        return f"global_load_dword v8, v[2:3], off offset:{128 * i - 4096}\n{wait}"

    one = "s_mov_b64 exec, 1"
    # Brings the lines into L2, and 64 KB more, which drive them out of L1.
    fill = "\n".join(
        f"v_lshlrev_b32 v6, 7, v1\nv_add_u32 v6, {8192 * i}, v6\nglobal_load_dword v8, v6, s[6:7]\n{wait}"
        for i in range(7)
    )
    near = f"s_sub_u32 s6, s4, 0x1000\ns_subb_u32 s7, s5, 0\n{fill}\n{one}"
    again = f"{line(0)}\n{one}"
    yield Micro("latency of L1", lambda _: line(0), 100 + WAIT_SLOT, "gcnasm", again)
    yield Micro("latency of L2", line, 291 + WAIT_SLOT, "gcnasm", near)
    yield Micro("latency of Infinity Cache", line, 485 + WAIT_SLOT, "MT4G: L2 and its miss", one)
    old, timers = ("gfx90a",), 12
    yield Micro("latency of L1, MI210", lambda _: line(0), 124 - timers + WAIT_SLOT, "MT4G", again, archs=old)
    yield Micro("latency of L2, MI210", line, 292 - timers + WAIT_SLOT, "MT4G", near, archs=old)
    yield Micro("latency of HBM, MI210", line, 684 - timers + WAIT_SLOT, "MT4G", one, archs=old)
    queue = "pyhip vmem-fifo.md"
    lane = "v_lshlrev_b32 v6, 4, v1"

    def load(i: int) -> str:
        return f"global_load_dwordx4 v[8:11], v6, s[4:5] offset:{1024 * (i % 7) - 3072}"

    def store(i: int) -> str:
        return f"global_store_dwordx4 v6, v[8:11], s[4:5] offset:{1024 * (i % 7) - 3072}"

    yield Micro("each of the first 16 loads", load, 4, f"{queue}: 4 or 8 cycles", lane, repeat=8)
    yield Micro("a load of 1 KB", load, 16, queue, lane)
    yield Micro("a store of 1 KB", store, 16, queue, lane)
    yield Micro("each of the first 8 stores", store, 16, queue, lane, repeat=4)


def scalar_memory() -> Iterator[Micro]:
    """As MT4G measures it, with its timer and two waits."""

    def load(offset: int) -> str:
        wait = "s_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)"
        return f"s_memtime s[20:21]\ns_load_dword s22, s[4:5], {offset}\n{wait}"

    both = ("gfx90a", "gfx942")
    yield Micro("a scalar load", load(0), 48, "MT4G", "s_load_dword s22, s[4:5], 0", archs=both)
    for arch, miss in {"gfx90a": 126.9, "gfx942": 123.9}.items():
        name = f"a scalar load that misses on {arch}"
        lines = "v_lshlrev_b32 v6, 6, v1\nglobal_load_dword v8, v6, s[4:5]\ns_waitcnt vmcnt(0)"
        yield Micro(name, lambda i: load(64 * i), 48 + miss, "MT4G", lines, archs=(arch,))


KERNELS = [
    *shapes(),
    *beside_one_wave(),
    *beside_another_wave(),
    *issue(),
    *lds(),
    *memory(),
    *scalar_memory(),
]
