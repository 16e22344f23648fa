# SPDX-License-Identifier: MIT
"""The words of the CDNA vocabulary for numbers of 8 and 4 bits; test_cdna_words.py tests the others."""

from __future__ import annotations

import numpy as np
import pytest
from test_cdna_words import IN, THREADS, Run, T, Words, arch_of, bits, numbers, run

__all__ = ["run"]  # the fixture

LANE = THREADS % 64


def e4m3(flavour: str) -> Words:
    """The numbers that all 256 bytes stand for."""
    byte = np.arange(256)
    exponent, mantissa, sign = byte >> 3 & 15, byte & 7, np.where(byte < 128, 1.0, -1.0)
    bias = 7 if flavour == "ocp" else 8
    x = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - bias - 3), mantissa * 2.0 ** (-bias - 2))
    x = x * sign
    x[[0x7F, 0xFF] if flavour == "ocp" else [0x80]] = np.nan
    return x


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def flavour_of(run: Run) -> str:
    """The format of the target's fp8; gfx90a has none."""
    return {"gfx942": "fnuz", "gfx950": "ocp"}.get(arch_of(run), "")


def test_bytes_and_nibbles(run: Run) -> None:
    """Bytes and halves of bytes of two words are interleaved."""
    a, b = (IN[n * T : (n + 1) * T].view(np.uint8).reshape(T, 4) for n in range(2))
    pairs = np.stack([a, b], axis=2).reshape(T, 8)
    assert (run("low_bytes", IN).view(np.uint8).reshape(T, 4) == pairs[:, :4]).all()
    assert (run("high_bytes", IN).view(np.uint8).reshape(T, 4) == pairs[:, 4:]).all()
    assert (run("even_nibbles", IN).view(np.uint8).reshape(T, 4) == (a & 15 | b << 4)).all()
    assert (run("odd_nibbles", IN).view(np.uint8).reshape(T, 4) == (a >> 4 | b & 0xF0)).all()


def test_loads_from_any_address(run: Run) -> None:
    """Thread t loads bytes from t on."""
    given = IN.view(np.uint8)
    for size in 16, 8, 4, 2, 1:
        got = run(f"load_{size}", IN, max(size // 4, 1) * T).view(np.uint8).reshape(T, -1)
        assert (got[:, :size] == given[THREADS[:, None] + np.arange(size)]).all() and not got[:, size:].any()


def test_words_in_a_row(run: Run) -> None:
    """Thread t loads 1, 2, 4 and 8 of them from word 16 t on."""
    data = np.arange(16 * T, dtype=np.uint32) * 2654435761
    assert (run("load_words", data, 15 * T).reshape(T, 15) == data.reshape(T, 16)[:, :15]).all()


def as_fp32(words: Words, of: str) -> Words:
    """Numbers of fp16 or bf16."""
    return (
        words.view(np.float16)
        if of == "fp16"
        else (words.view(np.uint16) * np.uint32(65536)).view(np.float32)
    )


@pytest.mark.parametrize("of", ["fp16", "bf16"])
def test_every_byte_as_16_bits(run: Run, of: str) -> None:
    """Integers and numbers of OCP's E4M3, on every target: exactly, and NaN stays NaN."""
    every = np.tile(np.arange(256, dtype=np.uint8), 2)  # T words
    got = as_fp32(run(f"{of}_of_int8", every.view(np.uint32), 2 * T), of)
    assert (got == every.view(np.int8)).all()
    got, want = as_fp32(run(f"{of}_of_e4m3", every.view(np.uint32), 2 * T), of), e4m3("ocp")[every]
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()
    assert (np.signbit(got) == (every >= 128))[~np.isnan(want)].all()


def test_every_byte_as_fnuz(run: Run) -> None:
    """Numbers of OCP's E4M3 over 2, where products take FNUZ's; NaN is at first only noticed."""
    if flavour_of(run) != "fnuz":
        pytest.skip("the target has no e4m3, or OCP's")
    every = np.tile(np.arange(256, dtype=np.uint8), 2)
    given, ocp, fnuz = every.view(np.uint32), e4m3("ocp")[every], e4m3("fnuz")
    got = run("fnuz_of_e4m3", given, 2 * T)
    numbers_of, is_nan = (got[n::2].copy().view(np.uint8) for n in range(2))
    assert ((is_nan >= 128) == np.isnan(ocp)).all()
    assert (fnuz[numbers_of] * 2 == ocp)[~np.isnan(ocp)].all()
    got = fnuz[run("fnuz_with_nan", given).view(np.uint8)] * 2
    assert ((got == ocp) | (np.isnan(got) & np.isnan(ocp))).all()
    low, high = (run(f"unpack_fp8{of}", given, 2 * T).view(np.float32).reshape(T, 2) for of in ("", "_high"))
    got, want = np.hstack([low, high]).ravel(), fnuz[every]
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()


def test_fp16_as_bf16(run: Run) -> None:
    """The upper halves of the numbers' fp32."""
    want = IN[:T].view(np.float16).astype(np.float32).view(np.uint32) >> 16
    got = run("bf16_of_fp16", IN).view(np.uint16)
    nan = np.isnan(IN[:T].view(np.float16))
    assert (got == want)[~nan].all() and ((got[nan] & 0x7FFF) > 0x7F80).all()


def test_nibbles_by_a_codebook(run: Run) -> None:
    """Each four bits of a word, the low ones of a byte first, become one of 16 numbers of 16 bits."""
    book, packed = IN[:8].view(np.uint16), IN[8 : 8 + T].view(np.uint8)
    want = book[np.stack([packed & 15, packed >> 4], axis=1).ravel()]
    assert (run("numbers_of_nibbles", IN, 4 * T).view(np.uint16) == want).all()


def test_rounding_to_fp8(run: Run) -> None:
    """To nearest even; numbers that are too large become NaN, or the greatest one after saturate()."""
    if not (flavour := flavour_of(run)):
        return
    table = e4m3(flavour)
    finite = np.flatnonzero(~np.isnan(table))
    most = np.nanmax(table)
    rng = np.random.default_rng(13)
    x = (rng.standard_normal(4 * T) * 2.0 ** rng.integers(-12, 8, 4 * T)).clip(-most, most).astype(np.float32)
    middle = np.unique(table[finite])
    x[: len(middle) - 1] = (middle[1:] + middle[:-1]) / 2  # halves, exactly
    x[-5:] = np.nan, np.inf, 2 * most, -2 * most, 0.0
    distance = np.abs(x[:, None].astype(np.float64) - table[finite])
    with np.errstate(invalid="ignore"):
        nearest = finite[np.argmin(distance + 1e-12 * (finite & 1), axis=1)]
    given = np.concatenate([bits(x), IN[:T]])  # pack_fp8_over packs over the last
    for word, too_large in (("pack_fp8", np.nan), ("pack_fp8_over", np.nan), ("saturate", most)):
        want = table[nearest].copy()
        want[-5:] = np.nan, too_large, too_large, -too_large, 0.0
        got = table[run(word, given).view(np.uint8).reshape(T, 4).T.ravel()]
        assert ((got == want) | (np.isnan(got) & np.isnan(want))).all(), word


def codes(x: Words, table: Words) -> Words:
    """The codes of numbers that a table of all codes has."""
    order = np.argsort(table)  # NaN last
    return order[np.searchsorted(table, x, sorter=order)].astype(np.uint8)


ELEMENT = np.arange(16)
ROW, COLUMN = 8 * (ELEMENT // 4) + 4 * (LANE[:, None] // 32) + ELEMENT % 4, (LANE % 32)[:, None]  # of c


def lanes_of(x: Words, each: int, together: int) -> Words:
    """[32][2 * each], of which a lane has `each` of a row: the halves of the wave take runs in turns."""
    element = np.arange(each)
    return x[COLUMN, (2 * (element // together) + LANE[:, None] // 32) * together + element % together]


def as_words(codes_of_lanes: Words, width: int) -> Words:
    """[8][T], the low element first."""
    if width == 4:
        codes_of_lanes = codes_of_lanes[:, ::2] | codes_of_lanes[:, 1::2] << 4
    words = np.ascontiguousarray(codes_of_lanes).view(np.uint32).T
    return np.concatenate([words, np.zeros((8 - len(words), T), np.uint32)])


def test_products_of_fp8(run: Run) -> None:
    """c + a b of small integers is exact."""
    if not (flavour := flavour_of(run)):
        return
    table, rng = e4m3(flavour), np.random.default_rng(17)
    a, b = rng.integers(-8, 9, (32, 32)), rng.integers(-8, 9, (32, 32))  # b: [column][k]
    c = rng.integers(-100, 101, (32, 32))
    sums = bits(c[ROW, COLUMN].astype(np.float32)).T
    words = [as_words(lanes_of(codes(x, table), 16, 8), 8)[:4] for x in (a, b)]
    got = numbers(run("mma_fp8", np.concatenate([*words, sums]), 16 * T)).reshape(16, T).T
    assert (got == (a @ b.T + c)[ROW, COLUMN]).all()


@pytest.mark.parametrize(
    ("word", "widths"),
    [("mma_wide_fp8", (8, 8)), ("mma_mxfp8", (8, 8)), ("mma_mxfp4", (4, 4)), ("mma_mxfp4_mxfp8", (4, 8))],
)
def test_wide_products(run: Run, word: str, widths: tuple[int, int]) -> None:
    """The same, each 32 in k times their power of two; one scale of a and one of b are NaN.

    A lane's elements are a run of 32 in k of fp4 and two of 16 of fp8, but the scale that it brings is that
    of 32 neighbours: test/simulator/test_values_matrix.py names the sources.
    """
    if arch_of(run) != "gfx950":
        return
    assert (run("settled", IN, 16 * T) == IN[: 16 * T]).all()
    rng = np.random.default_rng(19)
    tables = [e4m3("ocp") if width == 8 else FP4[:15] for width in widths]  # a zero of each sign
    small = [np.unique(table[np.abs(table) <= 8]) for table in tables]
    a, b = (rng.choice(numbers_, (32, 64)) for numbers_ in small)
    a, b = np.round(2 * a) / 2, np.round(2 * b) / 2
    c = rng.integers(-100, 101, (32, 32))
    scale_a, scale_b = (rng.integers(124, 131, (32, 2)) for _ in range(2))
    scale_a[5, 1] = scale_b[9, 0] = 255
    words = [
        as_words(lanes_of(codes(x, table), 32, 128 // width), width)
        for x, table, width in zip((a, b), tables, widths)
    ]
    sums = bits(c[ROW, COLUMN].astype(np.float32)).T
    scales = [x[LANE % 32, LANE // 32] | IN[:T] << 8 for x in (scale_a, scale_b)]  # byte 0 alone counts
    got = numbers(run(word, np.concatenate([*words, sums, scales]).astype(np.uint32), 16 * T))
    if word != "mma_wide_fp8":
        a = a * np.where(scale_a < 255, 2.0 ** (scale_a - 127), np.nan).repeat(32, axis=1)
        b = b * np.where(scale_b < 255, 2.0 ** (scale_b - 127), np.nan).repeat(32, axis=1)
    want = (a @ b.T + c)[ROW, COLUMN]
    assert np.isnan(want).any() == (word != "mma_wide_fp8")
    assert np.array_equal(got.reshape(16, T).T, want.astype(np.float32), equal_nan=True)
