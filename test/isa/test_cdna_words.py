# SPDX-License-Identifier: MIT
"""Every word of the CDNA vocabulary, in the simulator, against a statement of its meaning."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/simulator"))

from sim import ARCHS, Sim, find_library  # noqa: E402
from toolchain import ZIGLANG  # noqa: E402

SOURCE = ROOT / "test/isa/cdna_words.c"
T = 128  # threads
Words = np.ndarray  # of uint32
Run = Callable[..., Words]

FLAGS = (
    "-x c -std=c11 --target=amdgcn-amd-amdhsa -nogpulib -ffreestanding -nostdinc -O3 -Wall -Wextra -Werror"
)


@pytest.fixture(scope="module", params=ARCHS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a word's kernel on one workgroup; returns `count` words, which were 0xcdcdcdcd before."""
    library = find_library()
    if ZIGLANG is None or library is None:
        pytest.skip("needs the ziglang package and libtessera_sim.so")
    arch = request.param
    out = tmp_path_factory.mktemp("cdna_words")
    zig = str(ZIGLANG / "zig")
    include = ("-isystem", str(ZIGLANG / "lib/include"), "-I", str(ROOT / "include"))
    compile_ = [
        zig,
        "clang",
        *FLAGS.split(),
        f"-mcpu={arch}",
        *include,
        "-c",
        str(SOURCE),
        "-o",
        str(out / "a.o"),
    ]
    subprocess.run(compile_, check=True)
    subprocess.run([zig, "ld.lld", "-shared", str(out / "a.o"), "-o", str(out / "a.co")], check=True)
    with Sim(library, arch) as sim:
        module = sim.load((out / "a.co").read_bytes())

        def run_word(
            name: str, words: Words, count: int = T, groups: tuple[int, int, int] = (1, 1, 1)
        ) -> Words:
            source = sim.upload(np.ascontiguousarray(words, dtype=np.uint32).tobytes())
            grid = (T * groups[0], groups[1], groups[2])
            result = sim.upload(b"\xcd" * (4 * count))
            sim.launch(module, f"word_{name}", grid, (T, 1, 1), struct.pack("=QQ", source, result))
            answer = np.frombuffer(sim.download(result, 4 * count), np.uint32)
            sim.free(source)
            sim.free(result)
            return answer

        run_word.arch = arch  # type: ignore[attr-defined]
        yield run_word


def arch_of(run: Run) -> str:
    """The architecture that words are run on."""
    return str(run.arch)  # type: ignore[attr-defined]


def floats(*values: float) -> Words:
    """2 T numbers: those given, and random ones of all magnitudes."""
    rng = np.random.default_rng(7)
    x = (rng.standard_normal(2 * T) * 2.0 ** rng.integers(-20, 20, 2 * T)).astype(np.float32)
    x[: len(values)] = values
    x[T : T + len(values)] = values[::-1]
    return x


def bits(x: Words) -> Words:
    """The bits of fp32 numbers."""
    return np.asarray(x, np.float32).view(np.uint32)


def numbers(x: Words) -> Words:
    """The fp32 numbers with these bits."""
    return x.view(np.float32)


def bf16(x: Words) -> Words:
    """Numbers rounded to bf16, to nearest even, as 16 bits."""
    u = bits(x).astype(np.uint64)
    rounded = ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), (u >> 16 | 0x40).astype(np.uint16), rounded)


THREADS = np.arange(T, dtype=np.uint32)
IN = np.random.default_rng(3).integers(0, 2**32, 32 * T, dtype=np.uint32)


def test_every_word_has_a_test() -> None:
    """The vocabulary's functions are those of cdna_words.c, but for what only these are made of."""
    headers = "".join(
        (ROOT / f"include/tessera/isa/{name}.h").read_text()
        for name in ("cdna", "cdna_exchange", "cdna_quantised")
    )
    words = set(re.findall(r"^INLINE [\w ]+?[ *](\w+)\(", headers, re.M))
    helpers = {"AS_F32", "AS_U32", "make_buffer", "as_half4", "as_short4", "bf16_round"}
    helpers |= {"as_long", "as_i32x8"}
    helpers |= {"add_bits_f32", "sum_bits_of_lanes", "int8_of"}
    helpers |= {"one_after_the_other", "at_hand"}  # they change nothing but the order of instructions
    helpers |= {"await_launch_before", "let_next_launch_begin"}  # they do nothing
    helpers |= {"mma_part_fp16", "mma_part_bf16", "mma_part_fp8"}  # of which products are made
    helpers |= {
        "fp16_of_two_e4m3",
        "bytes_of_four",
        "codebook_of",
    }  # of which those of quantised rows are made
    helpers |= {"any_f32x16", "any_u32"}  # what it gives is not to be looked at
    tested = set(
        re.findall(
            r"(?:WORD\(word_|OF_FLOAT\(|OF_GRID\(|OF_TWO_FLOATS\(|OF_TWO_WORDS\(|PRODUCT\()(\w+)[,)]",
            SOURCE.read_text(),
        )
    )
    assert words - helpers == tested - {"component", "name", "##name"}


def test_what_lanes_exchange(run: Run) -> None:
    """Within a wave, byte by byte, and in memory."""
    first = THREADS // 64 * 64  # of the wave
    assert (run("of_lane", IN) == IN[:T][first + IN[T + THREADS].astype(int) % 64]).all()
    of_rows = run("of_row", IN, 16 * T).reshape(16, T)
    assert (of_rows == [IN[:T][THREADS // 16 * 16 + lane] for lane in range(16)]).all()
    assert (run("meet_lanes", IN) == IN[:T][THREADS ^ 1]).all()
    swapped, upper = run("swap_halves", IN, 2 * T).reshape(2, T), THREADS % 64 >= 32
    assert (swapped[0] == np.where(upper, IN[T:][THREADS ^ 32], IN[:T])).all()
    assert (swapped[1] == np.where(upper, IN[T : 2 * T], IN[:T][THREADS ^ 32])).all()
    others = run("other_lane_bits", IN, 5 * T).reshape(5, T)
    assert (others == [IN[:T][THREADS ^ (1 << bit)] for bit in range(5)]).all()
    a, b, selector = (IN[n * T : (n + 1) * T].copy().view(np.uint8).reshape(T, 4) for n in range(3))
    picked = np.take_along_axis(np.hstack([a, b]), selector & 7, axis=1)
    assert (run("pick_bytes", IN) == picked.copy().view(np.uint32).ravel()).all()
    x = floats(1.5, 2.0**-130, -0.0)
    sums = numbers(run("buffer_add_f32", bits(x), count=2 * T))
    assert (sums[:T] == x[:T] + x[T:])[np.abs(x[:T]) > 2.0**-100].all() and (sums[T:] == x[:T]).all()


def test_lanes_and_waves(run: Run) -> None:
    """Numbers of lanes and waves, and values that cross lanes."""
    assert (run("lane_id", IN) == THREADS % 64).all()
    assert (run("wave_id", IN) == THREADS // 64).all()
    assert (run("thread_id", IN) == THREADS).all()
    assert (run("uniform", IN) == IN[THREADS // 64 * 64]).all()
    assert (run("here_f32", IN) == IN[:T]).all()
    assert (run("uniform_here", IN) == IN[THREADS // 64 * 64]).all()
    assert (run("pointer_here", IN) == IN[:T]).all()
    one = np.zeros(T, np.uint32)
    one[100] = 2
    assert (run("any_lane", one) == THREADS // 64).all()
    assert (run("other_half", IN) == IN[THREADS ^ 32]).all()
    assert (run("barrier", IN) == IN[THREADS ^ 64]).all()
    assert (run("meet", IN, 2 * T).reshape(2, T) == IN[THREADS ^ 64]).all()


def test_over_lanes(run: Run) -> None:
    """The sum of a wave's lanes, each counted once, and the greatest."""
    whole = np.random.default_rng(5).integers(-(2**17), 2**17, T).astype(np.float32)  # sums are exact
    want = whole.reshape(-1, 64).sum(1)
    assert (numbers(run("sum_of_lanes", bits(whole))) == want[THREADS // 64]).all()
    for lane in range(T):
        one = np.zeros(T, np.uint32)
        one[lane] = 0x80000000
        assert (run("greatest_of_lanes", one) == (lane // 64 == THREADS // 64) * 0x80000000).all()
    assert (run("greatest_of_lanes", IN) == IN[:T].reshape(-1, 64).max(1)[THREADS // 64]).all()


def test_workgroups(run: Run) -> None:
    """Where a workgroup is in a grid along one axis."""
    for axis, count in enumerate((2, 3, 5)):
        groups = (*(1,) * axis, count, *(1,) * (2 - axis))
        got = run(f"workgroup_{'xyz'[axis]}", IN, count * T, groups).reshape(count, T)
        assert (got == IN[:T] + np.arange(count, dtype=np.uint32)[:, None]).all()


@pytest.mark.parametrize("size", [0, 4, 100, 508, 512, 515])
def test_buffers(run: Run, size: int) -> None:
    """Words wholly within the buffer are read and written, others read as zero and stay."""
    whole = size // 4
    data = IN[: 4 + T + 4].copy()
    data[0] = size
    loaded = run("buffer_load_16", data, 4 * T).reshape(T, 4)
    place = THREADS[:, None] + np.arange(4)
    assert (loaded == np.where(place < whole, data[4 + np.minimum(place, T + 3)], 0)).all()
    assert (run("buffer_load_4", data) == np.where(whole > THREADS, data[4 : 4 + T], 0)).all()
    for name, each in (("buffer_store_16", 4), ("buffer_store_8", 2), ("buffer_store_4", 1)):
        stored = run(name, data, 4 * T)
        index = np.arange(4 * T)
        assert (stored == np.where((index < whole) & (index < each * T), index // each + 1, 0xCDCDCDCD)).all()


@pytest.mark.parametrize("size", [0, 2, 6, 100, 126, 256])
def test_narrow_buffers(run: Run, size: int) -> None:
    """Elements are in range as a whole, each of two words by itself, and bytes."""
    data = IN[: 4 + 2 * T].copy()
    data[0] = size
    halves = data[4:].view(np.uint16)
    offset = 2 * THREADS
    assert (run("buffer_load_2", data) == np.where(offset + 2 <= size, halves[THREADS], 0)).all()
    assert (run("buffer_load_1", data) == np.where(size > THREADS, data[4:].view(np.uint8)[:T], 0)).all()
    place = THREADS[:, None] + np.arange(2)
    pairs = run("buffer_load_8", data, 2 * T).reshape(T, 2)
    assert (pairs == np.where(4 * place + 4 <= size, data[4 + place], 0)).all()
    stored = run("buffer_store_2", data, T).view(np.uint16)
    index = np.arange(2 * T)
    assert (stored == np.where((2 * index + 2 <= size) & (index < T), index, 0xCDCD)).all()
    stored = run("buffer_store_1", data, T).view(np.uint8)
    index = np.arange(4 * T)
    assert (stored == np.where((index < size) & (index < T), index, 0xCD)).all()


def loads_to_lds(run: Run) -> list[int]:
    """Bytes of the loads that there are: 16 on gfx950 alone."""
    return [4, 16] if arch_of(run) == "gfx950" else [4]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.75, 1.0])
def test_loads_to_lds(run: Run, share: float) -> None:
    """Lanes choose what they load; bytes outside of the buffer are zero; other waves see them all."""
    for size in loads_to_lds(run):
        words = size // 4
        bytes_ = int(share * 96 * size) // 4 * 4
        data = IN[: 4 + 96 * words].copy()
        data[0] = bytes_
        given = np.where(np.arange(96 * words) < bytes_ // 4, data[4:], 0).reshape(96, words)
        want = given[63 - THREADS % 64 + THREADS // 64 * 32][THREADS ^ 64]
        assert (run(f"load_to_lds_{size}", data, words * T).reshape(T, words) == want).all()
        if size == 16 and share == 1:  # how much further is not compared with the buffer's end
            assert (run("load_further_to_lds_16", data, words * T).reshape(T, words) == want).all()
    both = run("barrier_after_loads", IN, 2 * T)
    assert (both == np.concatenate([IN[THREADS ^ 64], IN[T + (THREADS ^ 64)]])).all()


def test_transposing_reads(run: Run) -> None:
    """Of 16 lanes, lane 4 k + j reads elements 4 j to 4 j + 3 of row k; lane c gets column c."""
    if arch_of(run) != "gfx950":
        return  # it alone has them
    rows = IN[: 2 * T].reshape(T, 2)[THREADS ^ 1].reshape(T // 16, 4, 8).view(np.uint16)  # [k][16 columns]
    want = np.ascontiguousarray(rows.transpose(0, 2, 1)).view(np.uint32).reshape(T, 2)
    assert (run("read_transposed", IN, 2 * T).reshape(T, 2) == want).all()
    # Of 8 bits: lane 2 k + j reads elements 8 j to 8 j + 7 of row k (CDNA 4 ISA, 11.4; IREE,
    # ROCDLLoadToTransposeLoad.cpp).
    bytes_ = IN[: 2 * T].reshape(T, 2)[THREADS ^ 1].reshape(T // 16, 8, 4).view(np.uint8)  # [k][16 columns]
    want = np.ascontiguousarray(bytes_.transpose(0, 2, 1)).view(np.uint32).reshape(T, 2)
    assert (run("read_transposed_8", IN, 2 * T).reshape(T, 2) == want).all()


@np.errstate(divide="ignore", invalid="ignore")
def test_functions(run: Run) -> None:
    """Within an ulp and a bit of the fp64 result, special values exactly."""
    special = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 127.5, -126.0, 3.0)
    x = floats(*special)[:T]
    in_range = np.clip(x, -125, 127)
    denormal = np.abs(x) * np.float32(2.0**-120)
    for name, given, want in (
        ("exp2_fast", in_range, np.exp2(in_range.astype(np.float64))),
        ("log2_fast", np.abs(x), np.log2(np.maximum(np.abs(x).astype(np.float64), 0))),
        ("reciprocal", x, 1 / x.astype(np.float64)),
        ("inverse_sqrt", x, 1 / np.sqrt(x.astype(np.float64))),
        ("inverse_sqrt", denormal, 1 / np.sqrt(denormal.astype(np.float64))),
    ):
        got = numbers(run(name, bits(given)))
        close = np.abs(got - want) <= 1.01 * np.spacing(np.abs(want).astype(np.float32)) + 2e-7 * (
            name == "log2_fast"
        )
        assert (close | (got == want) | (np.isnan(got) & np.isnan(want))).all(), name
    assert numbers(run("exp2_fast", bits(np.full(T, -np.inf)))).tolist() == [0.0] * T


def test_extremes(run: Run) -> None:
    """Maximum and minimum; a NaN loses against a number."""
    x = floats(np.nan, -np.inf, np.inf, 0.0, 5.0)
    assert (numbers(run("max_f32", bits(x))) == np.fmax(x[:T], x[T:])).all()
    assert (numbers(run("min_f32", bits(x))) == np.fmin(x[:T], x[T:])).all()
    signed = IN.view(np.int32)
    assert (run("min_i32", IN).view(np.int32) == np.minimum(signed[:T], signed[T : 2 * T])).all()
    assert (run("max_u32", IN) == np.maximum(IN[:T], IN[T : 2 * T])).all()
    assert (run("max_i32", IN).view(np.int32) == np.maximum(signed[:T], signed[T : 2 * T])).all()


def test_trailing_zeros(run: Run) -> None:
    x = np.array([1 << n | above << 31 for n in range(32) for above in range(2)], np.uint32)
    assert (run("trailing_zeros", np.resize(x, T)) == np.resize(np.arange(64) // 2, T)).all()


def test_halves(run: Run) -> None:
    """Halves of words, and rounding to 16 bits."""
    a, b = IN[:T], IN[T : 2 * T]
    assert (run("low_halves", IN) == (a & 0xFFFF | b << 16)).all()
    assert (run("high_halves", IN) == (a >> 16 | b & 0xFFFF0000)).all()
    assert (run("multiply_high", IN) == (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)).all()
    assert (run("component", IN) == b).all()
    x = floats(0.0, -0.0, np.inf, -np.inf, 65520.0, 1.00390625, 1.01171875, 2.0**-25, 3e38)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).view(np.uint16).astype(np.uint32)
    assert (run("pack_fp16", bits(x)) == (half[:T] | half[T:] << 16)).all()
    short = bf16(x).astype(np.uint32)
    assert (run("pack_bf16", bits(x)) == (short[:T] | short[T:] << 16)).all()
    packed = run("pack_bf16", bits(np.full(2 * T, np.nan)))
    assert ((packed & 0x7FFF) > 0x7F80).all() and ((packed >> 16 & 0x7FFF) > 0x7F80).all()


def test_integers_of_8_bits(run: Run) -> None:
    """Numbers from -128 to 127 become the nearest integers, ties to even; any NaN becomes 0."""
    x = np.random.default_rng(5).uniform(-128, 127, 4 * T).astype(np.float32)
    x[:9] = -128.0, 127.0, 0.5, 1.5, -0.5, -2.5, 126.5, 127.25, -0.0
    given = bits(x).copy()
    given[9:12] = 0x7FC00000, 0xFFFFFFFF, 0x7F800055
    want = np.rint(np.where(np.isnan(numbers(given)), 0, numbers(given))).astype(np.int8).reshape(4, T)
    got = run("pack_int8", given)
    assert (got.view(np.int8).reshape(T, 4) == want.T).all()


def test_rounding_of_probabilities(run: Run) -> None:
    """p >= 0: to nearest even, to nearest with halves up, towards zero."""
    p = np.abs(np.random.default_rng(5).random(2 * T)).astype(np.float32)
    p[:6] = 0.0, 1.0, 2.0**-130, 0.501953125, 0.505859375, 0.99999994  # the fourth and the fifth are halves
    up, down = (bits(p) + 0x8000) >> 16, bits(p) >> 16
    for rounding, short in (("rtne", bf16(p).astype(np.uint32)), ("rtna", up), ("rtz", down)):
        assert (run(f"pack_p_bf16_{rounding}", bits(p)) == (short[:T] | short[T:] << 16)).all(), rounding
    assert ((bf16(p) == up) | (bits(p) & 0xFFFF == 0x8000)).all()


def test_unpacking(run: Run) -> None:
    """Every number of 16 bits is unpacked from the low half of a word."""
    half = np.concatenate([np.float16([0, -0.0, 1, -2, 6e-8, 65504, np.inf, -np.inf]).view(np.uint16)] * 16)
    given = half.astype(np.uint32) | IN[:T] << 16
    assert (numbers(run("unpack_fp16", given)) == half.view(np.float16).astype(np.float32)).all()
    assert (run("unpack_bf16", IN) == IN[:T] << 16).all()


def philox(counter: list[int], seed: int) -> list[int]:
    """Philox4x32-10, as its authors state it."""
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        low = 0xFFFFFFFF
        counter = [b >> 32 ^ counter[1] ^ keys[0], b & low, a >> 32 ^ counter[3] ^ keys[1], a & low]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return counter


def test_random_bits(run: Run) -> None:
    """Compared with the statement above, which gives the authors' known answer."""
    known = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([0] * 4, 0) == known
    given = IN[: 6 * T].copy()
    given[::T] = 0
    got = run("philox", given, 4 * T).reshape(4, T).T.tolist()
    words = given.reshape(6, T).T
    seeds = words[THREADS // 64 * 64, 4:]  # a wave's is the same in all lanes
    want = [philox(w[:4].tolist(), int(s[0]) | int(s[1]) << 32) for w, s in zip(words, seeds, strict=True)]
    assert got == want and got[0] == known


def test_what_stays_in_place(run: Run) -> None:
    """Words that only hold the compiler back return the argument's address and the number as they were."""
    assert (run("kernel_argument", IN) == 1).all()
    assert (run("here", IN) == IN[:T]).all()
    assert (run("pinned", IN, 16 * T) == IN[: 16 * T]).all()


@pytest.mark.parametrize("word", ["fp32", "fp16", "bf16", "small_fp16", "small_bf16"])
def test_products(run: Run, word: str) -> None:
    """c + a b of small integers is exact in every order of summing."""
    rng = np.random.default_rng(11)
    kind, rows = word.removeprefix("small_"), 16 if word.startswith("small_") else 32
    each = 4 if kind == "fp32" else 8  # elements of a lane
    k = 64 // rows * each
    a, b = rng.integers(-8, 9, (rows, k)), rng.integers(-8, 9, (k, rows))
    c = rng.integers(-100, 101, (rows, rows))
    lane = THREADS % 64
    elements = lane[:, None] // rows * each + np.arange(each)

    def pack(x: Words) -> Words:
        of_kind = {"fp32": lambda: x.astype(np.float32), "fp16": lambda: x.astype(np.float16)}
        number = of_kind.get(kind, lambda: bf16(x.astype(np.float32)))()
        return np.ascontiguousarray(number).view(np.uint32).T  # [4][T]

    element = np.arange(rows * rows // 64)
    row = 256 // rows * (element // 4) + 4 * (lane[:, None] // rows) + element % 4
    column = (lane % rows)[:, None]
    given = np.concatenate(
        [pack(a[column, elements]), pack(b[elements, column]), bits(c[row, column].astype(np.float32)).T]
    )
    got = numbers(run(f"mma_{word}", given, len(element) * T)).reshape(len(element), T).T
    assert (got == (a @ b + c)[row, column]).all()
