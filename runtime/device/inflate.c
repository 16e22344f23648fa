// SPDX-License-Identifier: MIT
// Inflate (RFC 1951), so that packs of code objects need no other library. It is written to be short, not fast: code
// objects are small, and each is unpacked once.
#include "device/inflate.h"

#include <stdint.h>
#include <string.h>

enum { MAX_LENGTH = 15, LITERALS = 288, DISTANCES = 32, END_OF_BLOCK = 256 };

struct stream {
    const unsigned char *in, *in_end;
    unsigned char *out, *out_begin, *out_end;
    uint32_t bits; // read from `in` and not taken yet, the next one lowest
    int bit_count;
    bool failed; // the input is malformed or too short
};

// ---- bits

static uint32_t take(struct stream *s, int count) {
    while (s->bit_count < count) {
        if (s->in == s->in_end) {
            s->failed = true;
            return 0;
        }
        s->bits |= (uint32_t)*s->in++ << s->bit_count;
        s->bit_count += 8;
    }
    const uint32_t value = s->bits & ((1u << count) - 1);
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

// ---- Huffman codes

// Codes of one length are consecutive numbers. `symbols` lists their symbols in that order, those of the shortest codes
// first.
struct code {
    uint16_t count[MAX_LENGTH + 1];
    uint16_t symbols[LITERALS];
};

// Returns false where there are more codes of some length than can exist. Fewer are allowed, as for a single distance.
static bool make_code(struct code *code, const uint8_t *lengths, int symbols) {
    uint16_t next[MAX_LENGTH + 2] = {0};
    int room = 1;
    memset(code->count, 0, sizeof code->count);
    for (int i = 0; i < symbols; i++) code->count[lengths[i]]++;
    code->count[0] = 0;
    for (int length = 1; length <= MAX_LENGTH; length++) {
        room = 2 * room - code->count[length];
        if (room < 0) return false;
        next[length + 1] = (uint16_t)(next[length] + code->count[length]);
    }
    for (int i = 0; i < symbols; i++)
        if (lengths[i]) code->symbols[next[lengths[i]]++] = (uint16_t)i;
    return true;
}

static int decode(struct stream *s, const struct code *code) {
    int value = 0, first = 0, index = 0; // the code so far; the first code of its length and that one's symbol
    for (int length = 1; length <= MAX_LENGTH; length++) {
        value |= (int)take(s, 1);
        const int count = code->count[length];
        if (value - first < count) return code->symbols[index + value - first];
        index += count;
        first = 2 * (first + count);
        value *= 2;
    }
    s->failed = true;
    return END_OF_BLOCK;
}

// ---- blocks

static void copy_stored(struct stream *s) {
    s->bits = 0; // skips to a whole byte
    s->bit_count = 0;
    const size_t left = (size_t)(s->in_end - s->in);
    const size_t size = left < 4 ? 0 : (size_t)(s->in[0] | s->in[1] << 8);
    if (left < 4 || (size ^ (size_t)(s->in[2] | s->in[3] << 8)) != 0xffff || size > left - 4 ||
        size > (size_t)(s->out_end - s->out)) {
        s->failed = true;
        return;
    }
    memcpy(s->out, s->in + 4, size);
    s->in += 4 + size;
    s->out += size;
}

static void repeat(struct stream *s, size_t length, size_t distance) {
    if (distance > (size_t)(s->out - s->out_begin) || length > (size_t)(s->out_end - s->out)) {
        s->failed = true;
        return;
    }
    for (; length > 0; length--, s->out++) *s->out = s->out[-(ptrdiff_t)distance]; // they may overlap
}

static void inflate_block(struct stream *s, const struct code *literals, const struct code *distances) {
    static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                             31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                            2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    while (!s->failed) {
        const int symbol = decode(s, literals);
        if (symbol == END_OF_BLOCK) return;
        if (symbol < END_OF_BLOCK) {
            if (s->out == s->out_end) s->failed = true;
            if (!s->failed) *s->out++ = (unsigned char)symbol;
            continue;
        }
        const int which = symbol - END_OF_BLOCK - 1;
        if (which >= 29) s->failed = true;
        if (s->failed) return;
        const size_t length = length_base[which] + take(s, length_bits[which]);
        // From code 4 on there are two distance codes for each number of extra bits, beginning with 1 bit.
        const int step = decode(s, distances), extra = step < 4 ? 0 : step / 2 - 1;
        if (step >= 30) s->failed = true;
        if (s->failed) return;
        const size_t distance = 1 + (step < 4 ? (size_t)step : (size_t)(2 + step % 2) << extra) + take(s, extra);
        repeat(s, length, distance);
    }
}

static void inflate_fixed(struct stream *s) {
    uint8_t lengths[LITERALS], fives[DISTANCES];
    struct code literals, distances;
    for (int i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(fives, 5, sizeof fives);
    make_code(&literals, lengths, LITERALS);
    make_code(&distances, fives, DISTANCES);
    inflate_block(s, &literals, &distances);
}

// Reads the lengths of `count` codes, which are themselves coded.
static void read_lengths(struct stream *s, const struct code *code, uint8_t *lengths, int count) {
    for (int n = 0; n < count && !s->failed;) {
        const int symbol = decode(s, code);
        int times = 1;
        uint8_t length = (uint8_t)symbol;
        if (symbol > 15) {
            length = symbol == 16 && n > 0 ? lengths[n - 1] : 0;
            s->failed |= symbol == 16 && n == 0;
            times = symbol == 16 ? 3 + (int)take(s, 2) : symbol == 17 ? 3 + (int)take(s, 3) : 11 + (int)take(s, 7);
        }
        if (symbol > 18 || times > count - n) s->failed = true;
        if (s->failed) return;
        memset(lengths + n, length, (size_t)times);
        n += times;
    }
}

static void inflate_dynamic(struct stream *s) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const int literal_count = 257 + (int)take(s, 5), distance_count = 1 + (int)take(s, 5),
              order_count = 4 + (int)take(s, 4);
    uint8_t lengths[LITERALS + DISTANCES] = {0};
    struct code code, literals, distances;
    for (int i = 0; i < order_count; i++) lengths[order[i]] = (uint8_t)take(s, 3);
    if (literal_count > LITERALS - 2 || !make_code(&code, lengths, 19)) s->failed = true;
    if (s->failed) return;
    memset(lengths, 0, sizeof lengths);
    read_lengths(s, &code, lengths, literal_count + distance_count);
    if (s->failed || lengths[END_OF_BLOCK] == 0 || !make_code(&literals, lengths, literal_count) ||
        !make_code(&distances, lengths + literal_count, distance_count))
        s->failed = true;
    else
        inflate_block(s, &literals, &distances);
}

bool tessera_inflate(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes) {
    enum { HEAD = 2, DEFLATE = 8, DICTIONARY = 0x20 };
    if (in_bytes < HEAD || (in[0] * 256 + in[1]) % 31 != 0 || in[0] % 16 != DEFLATE || in[1] & DICTIONARY) return false;
    struct stream s = {in + HEAD, in + in_bytes, out, out, out + out_bytes, 0, 0, false};
    for (bool last = false; !last && !s.failed;) {
        last = take(&s, 1);
        switch (take(&s, 2)) {
        case 0:
            copy_stored(&s);
            break;
        case 1:
            inflate_fixed(&s);
            break;
        case 2:
            inflate_dynamic(&s);
            break;
        default:
            s.failed = true;
        }
    }
    return !s.failed && s.out == s.out_end;
}
