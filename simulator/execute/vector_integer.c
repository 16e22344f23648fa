// SPDX-License-Identifier: MIT
// Integer and bit instructions of the vector ALU.
#include "semantics.h"
#include "vector.h"

#define ONE(name, value) SIM_LANES1(name, sim_u32, sim_u32, value)
#define ONE_SIGNED(name, value) SIM_LANES1(name, sim_i32, sim_i32, value)
#define TWO(name, value) SIM_LANES2(name, sim_u32, sim_u32, sim_u32, value)
#define TWO_SIGNED(name, value) SIM_LANES2(name, sim_i32, sim_i32, sim_i32, value)
#define THREE(name, value) SIM_LANES3(name, sim_u32, sim_u32, sim_u32, sim_u32, value)
#define THREE_SIGNED(name, value) SIM_LANES3(name, sim_i32, sim_i32, sim_i32, sim_i32, value)

// ---- moves and bits

ONE(mov, a)
SIM_LANES1(mov64, sim_u64, sim_u64, a)
ONE(not_b32, ~a)

static inline uint32_t reverse(uint32_t v) {
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}
ONE(bfrev, reverse(a))
ONE(ffbh_u32, a ? (uint32_t)__builtin_clz(a) : UINT32_MAX)
ONE(ffbl, a ? (uint32_t)__builtin_ctz(a) : UINT32_MAX)
static inline uint32_t find_sign(uint32_t v) {
    const uint32_t change = v ^ (uint32_t)((int32_t)v >> 31);
    return change ? (uint32_t)__builtin_clz(change) : UINT32_MAX;
}
ONE(ffbh_i32, find_sign(a))
TWO(bcnt, (uint32_t)__builtin_popcount(a) + b)
TWO(and_b32, a &b)
TWO(or_b32, a | b)
TWO(xor_b32, a ^ b)
TWO(xnor_b32, ~(a ^ b))
TWO(lshlrev, b << (a & 31))
TWO(lshrrev, b >> (a & 31))
TWO(ashrrev, (uint32_t)((int32_t)b >> (a & 31)))
SIM_LANES2(lshlrev64, sim_u64, sim_u32, sim_u64, b << (a & 63))
SIM_LANES2(lshrrev64, sim_u64, sim_u32, sim_u64, b >> (a & 63))
SIM_LANES2(ashrrev64, sim_i64, sim_u32, sim_i64, b >> (a & 63))
TWO(bfm, ((1u << (a & 31)) - 1) << (b & 31))
static inline uint32_t field_u32(uint32_t v, uint32_t first, uint32_t width) {
    return width ? v >> first & (UINT32_MAX >> (32 - width)) : 0;
}
static inline uint32_t field_i32(uint32_t v, uint32_t first, uint32_t width) {
    if (width == 0) return 0;
    if (first + width >= 32) return (uint32_t)((int32_t)v >> first);
    return (uint32_t)((int32_t)(v << (32 - first - width)) >> (32 - width));
}
THREE(bfe_u32, field_u32(a, b & 31, c & 31))
THREE(bfe_i32, field_i32(a, b & 31, c & 31))
THREE(bfi, (a & b) | (~a & c))
THREE(and_or, (a & b) | c)
THREE(or3, a | b | c)
THREE(lshl_or, a << (b & 31) | c)
THREE(alignbit, (uint32_t)(((uint64_t)a << 32 | b) >> (c & 31)))
THREE(alignbyte, (uint32_t)(((uint64_t)a << 32 | b) >> 8 * (c & 3)))

static inline uint32_t permute_byte(uint64_t bytes, uint32_t select) {
    if (select > 12) return 0xff;
    if (select == 12) return 0;
    if (select >= 8) return bytes >> (16 * (select - 8) + 15) & 1 ? 0xff : 0; // fills a byte with the sign of a half
    return bytes >> 8 * select & 0xff;
}
static inline uint32_t permute(uint64_t bytes, uint32_t selects) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= permute_byte(bytes, selects >> 8 * i & 0xff) << 8 * i;
    return word;
}
THREE(perm, permute((uint64_t)a << 32 | b, c))

// ---- sums

static inline uint32_t clamp_u32(bool clamp, uint64_t wide) {
    return clamp && wide > UINT32_MAX ? UINT32_MAX : (uint32_t)wide;
}
static inline uint32_t clamp_i32(bool clamp, int64_t wide) {
    return (uint32_t)(!clamp ? wide : wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : wide);
}
#define CLAMP (alu->inst->clamp)
TWO(add_u32, CLAMP ? clamp_u32(true, (uint64_t)a + b) : a + b)
TWO(sub_u32, CLAMP ? (a > b ? a - b : 0) : a - b)
TWO(subrev_u32, CLAMP ? (b > a ? b - a : 0) : b - a)
TWO(add_i32, clamp_i32(CLAMP, (int64_t)(int32_t)a + (int32_t)b))
TWO(sub_i32, clamp_i32(CLAMP, (int64_t)(int32_t)a - (int32_t)b))
THREE(add3, a + b + c)
THREE(lshl_add, (a << (b & 31)) + c)
THREE(add_lshl, (a + b) << (c & 31))
THREE(xad, (a ^ b) + c)
SIM_LANES3(lshl_add_u64, sim_u64, sim_u64, sim_u32, sim_u64, (a << (b & 7)) + c)

// Sums and differences with carries, in one loop: a - b is a + ~b + 1.
static inline void carry_chain(struct sim_alu *alu, const sim_u32 *pa, const sim_u32 *pb, bool subtract,
                               uint64_t carry_in) {
    sim_u32 *restrict pd = alu->dst;
    uint64_t carry = 0;
    const uint32_t saturated = subtract ? 0 : UINT32_MAX;
    const bool clamp = CLAMP;
    for (int i = 0; i < SIM_LANES; i++) {
        const uint64_t in = carry_in >> i & 1;
        const uint64_t wide = subtract ? (uint64_t)pa[i] - pb[i] - in : (uint64_t)pa[i] + pb[i] + in;
        const uint64_t out = wide >> 32 & 1;
        carry |= out << i;
        pd[i] = clamp && out ? saturated : (uint32_t)wide;
    }
    alu->mask = carry;
}
static void add_co(struct sim_alu *alu) { carry_chain(alu, alu->src[0], alu->src[1], false, 0); }
static void sub_co(struct sim_alu *alu) { carry_chain(alu, alu->src[0], alu->src[1], true, 0); }
static void subrev_co(struct sim_alu *alu) { carry_chain(alu, alu->src[1], alu->src[0], true, 0); }
static void addc_co(struct sim_alu *alu) { carry_chain(alu, alu->src[0], alu->src[1], false, alu->mask); }
static void subb_co(struct sim_alu *alu) { carry_chain(alu, alu->src[0], alu->src[1], true, alu->mask); }
static void subbrev_co(struct sim_alu *alu) { carry_chain(alu, alu->src[1], alu->src[0], true, alu->mask); }

static void cndmask(struct sim_alu *alu) {
    const sim_u32 *pa = alu->src[0], *pb = alu->src[1];
    sim_u32 *restrict pd = alu->dst;
    for (int i = 0; i < SIM_LANES; i++) pd[i] = alu->mask >> i & 1 ? pb[i] : pa[i];
}

// ---- products

static inline int32_t low24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
TWO(mul_lo, a *b)
TWO(mul_hi_u32, (uint64_t)a *b >> 32)
TWO(mul_hi_i32, (uint32_t)((int64_t)(int32_t)a *(int32_t)b >> 32))
TWO(mul_u24_plain, (a & 0xffffff) * (b & 0xffffff))
TWO(mul_i24_plain, (uint32_t)((int64_t)low24(a) * low24(b)))
TWO(mul_u24_clamped, clamp_u32(true, (uint64_t)(a & 0xffffff) * (b & 0xffffff)))
TWO(mul_i24_clamped, clamp_i32(true, (int64_t)low24(a) * low24(b)))
static void mul_u24(struct sim_alu *alu) { (CLAMP ? mul_u24_clamped : mul_u24_plain)(alu); }
static void mul_i24(struct sim_alu *alu) { (CLAMP ? mul_i24_clamped : mul_i24_plain)(alu); }
TWO(mul_hi_u24, (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 32)
TWO(mul_hi_i24, (uint32_t)((int64_t)low24(a) * low24(b) >> 32))
THREE(mad_u24, clamp_u32(CLAMP, (uint64_t)(a & 0xffffff) * (b & 0xffffff) + c))
THREE(mad_i24, clamp_i32(CLAMP, (int64_t)low24(a) * low24(b) + (int32_t)c))
THREE(mad_u32_u16, clamp_u32(CLAMP, (uint64_t)(a & 0xffff) * (b & 0xffff) + c))
THREE(mad_i32_i16, clamp_i32(CLAMP, (int64_t)(int16_t)a *(int16_t)b + (int32_t)c))

static void mad_u64_u32(struct sim_alu *alu) {
    const sim_u32 *pa = alu->src[0], *pb = alu->src[1];
    const sim_u64 *pc = alu->src[2];
    sim_u64 *restrict pd = alu->dst;
    uint64_t carry = 0;
    for (int i = 0; i < SIM_LANES; i++) {
        carry |= (uint64_t)__builtin_add_overflow((uint64_t)pa[i] * pb[i], (uint64_t)pc[i], &pd[i]) << i;
    }
    alu->mask = carry;
}
static void mad_i64_i32(struct sim_alu *alu) {
    const sim_i32 *pa = alu->src[0], *pb = alu->src[1];
    const sim_u64 *pc = alu->src[2];
    sim_u64 *restrict pd = alu->dst;
    uint64_t carry = 0;
    for (int i = 0; i < SIM_LANES; i++) {
        const int64_t product = (int64_t)pa[i] * pb[i];
        int64_t sum;
        const bool overflow = __builtin_add_overflow(product, (int64_t)pc[i], &sum);
        carry |= (uint64_t)((sum < 0) != overflow) << i; // bit 64 of the sum
        pd[i] = (uint64_t)sum;
    }
    alu->mask = carry;
}

// ---- order

static inline uint32_t min_u(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline int32_t min_i(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t max_i(int32_t a, int32_t b) { return a > b ? a : b; }
TWO(min_u32, min_u(a, b))
TWO(max_u32, max_u(a, b))
TWO_SIGNED(min_i32, min_i(a, b))
TWO_SIGNED(max_i32, max_i(a, b))
THREE(min3_u32, min_u(min_u(a, b), c))
THREE(max3_u32, max_u(max_u(a, b), c))
THREE_SIGNED(min3_i32, min_i(min_i(a, b), c))
THREE_SIGNED(max3_i32, max_i(max_i(a, b), c))
THREE(med3_u32, max_u(min_u(a, b), min_u(max_u(a, b), c)))
THREE_SIGNED(med3_i32, max_i(min_i(a, b), min_i(max_i(a, b), c)))

// ---- 16 bits

#define TWO16(name, value)                                                                                             \
    static inline uint32_t name##_one(uint16_t a, uint16_t b, bool clamp) {                                            \
        (void)clamp;                                                                                                   \
        return (uint16_t)(value);                                                                                      \
    }                                                                                                                  \
    TWO(name, name##_one((uint16_t)a, (uint16_t)b, CLAMP))                                                             \
    __attribute__((unused)) TWO(pk_##name, name##_one((uint16_t)a, (uint16_t)b, CLAMP) |                               \
                                               name##_one((uint16_t)(a >> 16), (uint16_t)(b >> 16), CLAMP) << 16)
#define THREE16(name, value)                                                                                           \
    static inline uint32_t name##_one(uint16_t a, uint16_t b, uint16_t c, bool clamp) {                                \
        (void)clamp;                                                                                                   \
        return (uint16_t)(value);                                                                                      \
    }                                                                                                                  \
    THREE(name, name##_one((uint16_t)a, (uint16_t)b, (uint16_t)c, CLAMP))
#define PACKED3(name)                                                                                                  \
    THREE(pk_##name, name##_one((uint16_t)a, (uint16_t)b, (uint16_t)c, CLAMP) |                                        \
                         name##_one((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16), CLAMP) << 16)

static inline int clamp_u16(bool clamp, int64_t wide) {
    return (int)(!clamp ? wide : wide > 65535 ? 65535 : wide < 0 ? 0 : wide);
}
static inline int clamp_i16(bool clamp, int64_t wide) {
    return (int)(!clamp ? wide : wide > INT16_MAX ? INT16_MAX : wide < INT16_MIN ? INT16_MIN : wide);
}
TWO16(add_u16, clamp_u16(clamp, a + b))
TWO16(sub_u16, clamp_u16(clamp, a - b))
TWO16(subrev_u16, clamp_u16(clamp, b - a))
TWO16(add_i16, clamp_i16(clamp, (int16_t)a + (int16_t)b))
TWO16(sub_i16, clamp_i16(clamp, (int16_t)a - (int16_t)b))
TWO16(mul_lo_u16, (uint32_t)a *b)
TWO16(lshlrev_b16, (uint32_t)b << (a & 15))
TWO16(lshrrev_b16, b >> (a & 15))
TWO16(ashrrev_i16, (int16_t)b >> (a & 15))
TWO16(min_u16, a < b ? a : b)
TWO16(max_u16, a > b ? a : b)
TWO16(min_i16, (int16_t)a < (int16_t)b ? a : b)
TWO16(max_i16, (int16_t)a > (int16_t)b ? a : b)
THREE16(mad_u16, clamp_u16(clamp, (int64_t)a *b + c))
THREE16(mad_i16, clamp_i16(clamp, (int64_t)(int16_t)a *(int16_t)b + (int16_t)c))
PACKED3(mad_u16)
PACKED3(mad_i16)
THREE16(min3_u16, min_u(min_u(a, b), c))
THREE16(max3_u16, max_u(max_u(a, b), c))
THREE16(med3_u16, max_u(min_u(a, b), min_u(max_u(a, b), c)))
THREE16(min3_i16, min_i(min_i((int16_t)a, (int16_t)b), (int16_t)c))
THREE16(max3_i16, max_i(max_i((int16_t)a, (int16_t)b), (int16_t)c))
THREE16(med3_i16, max_i(min_i((int16_t)a, (int16_t)b), min_i(max_i((int16_t)a, (int16_t)b), (int16_t)c)))
ONE(sat_pk_u8_i16, (uint32_t)max_i(0, min_i(255, (int16_t)a)) | (uint32_t)max_i(0, min_i(255, (int16_t)(a >> 16))) << 8)

// ---- sums of absolute differences

static inline uint32_t byte_of(uint32_t v, int i) { return v >> 8 * i & 0xff; }
static inline uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
static inline uint32_t sad_bytes(uint32_t a, uint32_t b) {
    return distance(byte_of(a, 0), byte_of(b, 0)) + distance(byte_of(a, 1), byte_of(b, 1)) +
           distance(byte_of(a, 2), byte_of(b, 2)) + distance(byte_of(a, 3), byte_of(b, 3));
}
THREE(sad_u8, clamp_u32(CLAMP, (uint64_t)sad_bytes(a, b) + c))
THREE(sad_hi_u8, clamp_u32(CLAMP, ((uint64_t)sad_bytes(a, b) << 16) + c))
THREE(sad_u16, clamp_u32(CLAMP, (uint64_t)distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c))
THREE(sad_u32, clamp_u32(CLAMP, (uint64_t)distance(a, b) + c))
static inline uint32_t lerp_bytes(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= (byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) >> 1 << 8 * i;
    return word;
}
THREE(lerp_u8, lerp_bytes(a, b, c))

// The same, without bytes where b has 0.
static inline uint32_t masked_sad(uint32_t a, uint32_t b) {
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) sum += byte_of(b, i) ? distance(byte_of(a, i), byte_of(b, i)) : 0;
    return sum;
}
THREE(msad_u8, clamp_u32(CLAMP, (uint64_t)masked_sad(a, b) + c))
// Four 16-bit sums of absolute differences, each one byte further in a.
#define QUAD(name, sad)                                                                                                \
    static inline uint64_t name##_of(uint64_t a, uint32_t b, uint64_t c, bool clamp) {                                 \
        uint64_t sums = 0;                                                                                             \
        for (int i = 0; i < 4; i++) {                                                                                  \
            const uint32_t sum = sad((uint32_t)(a >> 8 * i), b) + (uint32_t)(c >> 16 * i & 0xffff);                    \
            sums |= (uint64_t)(clamp && sum > 0xffff ? 0xffff : sum & 0xffff) << 16 * i;                               \
        }                                                                                                              \
        return sums;                                                                                                   \
    }                                                                                                                  \
    SIM_LANES3(name, sim_u64, sim_u64, sim_u32, sim_u64, name##_of(a, b, c, CLAMP))
QUAD(qsad_pk_u16, sad_bytes)
QUAD(mqsad_pk_u16, masked_sad)
// The same with 32-bit sums, in four registers.
static void mqsad_u32(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    uint32_t space[3][SIM_LANES], sums[4][SIM_LANES];
    const uint32_t *low = tessera_sim_read_vector(wave, &inst->op[SIM_SRC0], 0, space[0]);
    const uint32_t *high = tessera_sim_read_vector(wave, &inst->op[SIM_SRC0], 1, space[1]);
    const uint32_t *reference = tessera_sim_read_vector(wave, &inst->op[SIM_SRC1], 0, space[2]);
    sim_vgpr *addends = tessera_sim_registers(wave, &inst->op[SIM_SRC2], 4);
    if (!low || !high || !reference || !addends) return;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < SIM_LANES; i++) {
            const uint32_t bytes = (uint32_t)((low[i] | (uint64_t)high[i] << 32) >> 8 * k);
            sums[k][i] = clamp_u32(inst->clamp, (uint64_t)masked_sad(bytes, reference[i]) + addends[k][i]);
        }
    for (unsigned k = 0; k < 4; k++) tessera_sim_write_vector(wave, &inst->op[SIM_DST], k, sim_exec(wave), sums[k]);
}

// ---- dot products

#define DOT_CLAMPED(sum) clamp_i32(CLAMP, (sum))
static inline int64_t dot_bytes(uint32_t a, uint32_t b) {
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) sum += (int8_t)byte_of(a, i) * (int8_t)byte_of(b, i);
    return sum;
}
static inline uint64_t dot_bytes_unsigned(uint32_t a, uint32_t b) {
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) sum += byte_of(a, i) * byte_of(b, i);
    return sum;
}
static inline int32_t nibble(uint32_t v, int i) { return (int32_t)(v << (28 - 4 * i)) >> 28; }
static inline int64_t dot_nibbles(uint32_t a, uint32_t b) {
    int64_t sum = 0;
    for (int i = 0; i < 8; i++) sum += nibble(a, i) * nibble(b, i);
    return sum;
}
static inline uint64_t dot_nibbles_unsigned(uint32_t a, uint32_t b) {
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) sum += (a >> 4 * i & 15) * (b >> 4 * i & 15);
    return sum;
}
static inline int64_t dot_halves(uint32_t a, uint32_t b) {
    return (int64_t)(int16_t)a * (int16_t)b + (int64_t)(int16_t)(a >> 16) * (int16_t)(b >> 16);
}
static inline uint64_t dot_halves_unsigned(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffff) * (b & 0xffff) + (uint64_t)(a >> 16) * (b >> 16);
}
THREE(dot4_i32_i8, DOT_CLAMPED(dot_bytes(a, b) + (int32_t)c))
THREE(dot4_u32_u8, clamp_u32(CLAMP, dot_bytes_unsigned(a, b) + c))
THREE(dot8_i32_i4, DOT_CLAMPED(dot_nibbles(a, b) + (int32_t)c))
THREE(dot8_u32_u4, clamp_u32(CLAMP, dot_nibbles_unsigned(a, b) + c))
THREE(dot2_i32_i16, DOT_CLAMPED(dot_halves(a, b) + (int32_t)c))
THREE(dot2_u32_u16, clamp_u32(CLAMP, dot_halves_unsigned(a, b) + c))

// A function of three bits, given by its truth table.
static inline uint32_t bitop3_of(uint32_t a, uint32_t b, uint32_t c, unsigned table) {
    uint32_t word = 0;
    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1) word |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return word;
}
THREE(bitop3, bitop3_of(a, b, c, alu->inst->bitop3))
THREE(bitop3_half, bitop3_of(a, b, c, alu->inst->bitop3) & 0xffff)

// Saturates a value to 8 bits.
static inline uint32_t saturate_byte(int32_t v, int32_t least, int32_t most) {
    return (uint32_t)(v < least ? least : v > most ? most : v) & 0xff;
}
THREE(ashr_pk_i8, saturate_byte((int32_t)a >> (c & 31), -128, 127) | saturate_byte((int32_t)b >> (c & 31), -128, 127)
                                                                         << 8)
THREE(ashr_pk_u8, saturate_byte((int32_t)a >> (c & 31), 0, 255) | saturate_byte((int32_t)b >> (c & 31), 0, 255) << 8)
ONE(prng, a << 1 ^ (a >> 31 ? 197 : 0))

// ---- lane counts: bits of a mask below this lane

static void mbcnt(struct sim_alu *alu, int first) {
    const sim_u32 *pa = alu->src[0], *pb = alu->src[1];
    sim_u32 *restrict pd = alu->dst;
    for (int i = 0; i < SIM_LANES; i++) {
        const int below = i < first ? 0 : i - first > 31 ? 32 : i - first;
        const uint32_t lanes = below == 32 ? UINT32_MAX : (1u << below) - 1;
        pd[i] = (uint32_t)__builtin_popcount(pa[i] & lanes) + pb[i];
    }
}
static void mbcnt_lo(struct sim_alu *alu) { mbcnt(alu, 0); }
static void mbcnt_hi(struct sim_alu *alu) { mbcnt(alu, 32); }

#define ROW(op, lanes)                                                                                                 \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, 0 }
#define WITH(op, lanes, detail)                                                                                        \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, detail }
static const struct sim_semantics rows[] = {
    ROW(v_mov_b32, mov),
    ROW(v_accvgpr_read_b32, mov),
    ROW(v_accvgpr_write_b32, mov),
    ROW(v_accvgpr_mov_b32, mov),
    ROW(v_mov_b64, mov64),
    ROW(v_not_b32, not_b32),
    ROW(v_bfrev_b32, bfrev),
    ROW(v_ffbh_u32, ffbh_u32),
    ROW(v_ffbl_b32, ffbl),
    ROW(v_ffbh_i32, ffbh_i32),
    ROW(v_bcnt_u32_b32, bcnt),
    ROW(v_and_b32, and_b32),
    ROW(v_or_b32, or_b32),
    ROW(v_xor_b32, xor_b32),
    ROW(v_xnor_b32, xnor_b32),
    ROW(v_lshlrev_b32, lshlrev),
    ROW(v_lshrrev_b32, lshrrev),
    ROW(v_ashrrev_i32, ashrrev),
    ROW(v_lshlrev_b64, lshlrev64),
    ROW(v_lshrrev_b64, lshrrev64),
    ROW(v_ashrrev_i64, ashrrev64),
    ROW(v_bfm_b32, bfm),
    ROW(v_bfe_u32, bfe_u32),
    ROW(v_bfe_i32, bfe_i32),
    ROW(v_bfi_b32, bfi),
    ROW(v_and_or_b32, and_or),
    ROW(v_or3_b32, or3),
    ROW(v_lshl_or_b32, lshl_or),
    ROW(v_alignbit_b32, alignbit),
    ROW(v_alignbyte_b32, alignbyte),
    ROW(v_perm_b32, perm),
    ROW(v_add_u32, add_u32),
    ROW(v_sub_u32, sub_u32),
    ROW(v_subrev_u32, subrev_u32),
    ROW(v_add_i32, add_i32),
    ROW(v_sub_i32, sub_i32),
    ROW(v_add3_u32, add3),
    ROW(v_lshl_add_u32, lshl_add),
    ROW(v_add_lshl_u32, add_lshl),
    ROW(v_xad_u32, xad),
    ROW(v_lshl_add_u64, lshl_add_u64),
    WITH(v_add_co_u32, add_co, SIM_MASK_OUT),
    WITH(v_sub_co_u32, sub_co, SIM_MASK_OUT),
    WITH(v_subrev_co_u32, subrev_co, SIM_MASK_OUT),
    WITH(v_addc_co_u32, addc_co, SIM_MASK_IN | SIM_MASK_OUT),
    WITH(v_subb_co_u32, subb_co, SIM_MASK_IN | SIM_MASK_OUT),
    WITH(v_subbrev_co_u32, subbrev_co, SIM_MASK_IN | SIM_MASK_OUT),
    WITH(v_cndmask_b32, cndmask, SIM_MASK_IN | SIM_MOVES),
    ROW(v_mul_lo_u32, mul_lo),
    ROW(v_mul_hi_u32, mul_hi_u32),
    ROW(v_mul_hi_i32, mul_hi_i32),
    ROW(v_mul_u32_u24, mul_u24),
    ROW(v_mul_i32_i24, mul_i24),
    ROW(v_mul_hi_u32_u24, mul_hi_u24),
    ROW(v_mul_hi_i32_i24, mul_hi_i24),
    ROW(v_mad_u32_u24, mad_u24),
    ROW(v_mad_i32_i24, mad_i24),
    ROW(v_mad_u32_u16, mad_u32_u16),
    ROW(v_mad_i32_i16, mad_i32_i16),
    WITH(v_mad_u64_u32, mad_u64_u32, SIM_MASK_OUT),
    WITH(v_mad_i64_i32, mad_i64_i32, SIM_MASK_OUT),
    ROW(v_min_u32, min_u32),
    ROW(v_max_u32, max_u32),
    ROW(v_min_i32, min_i32),
    ROW(v_max_i32, max_i32),
    ROW(v_min3_u32, min3_u32),
    ROW(v_max3_u32, max3_u32),
    ROW(v_min3_i32, min3_i32),
    ROW(v_max3_i32, max3_i32),
    ROW(v_med3_u32, med3_u32),
    ROW(v_med3_i32, med3_i32),
    ROW(v_add_u16, add_u16),
    ROW(v_sub_u16, sub_u16),
    ROW(v_subrev_u16, subrev_u16),
    ROW(v_add_i16, add_i16),
    ROW(v_sub_i16, sub_i16),
    ROW(v_mul_lo_u16, mul_lo_u16),
    ROW(v_lshlrev_b16, lshlrev_b16),
    ROW(v_lshrrev_b16, lshrrev_b16),
    ROW(v_ashrrev_i16, ashrrev_i16),
    ROW(v_min_u16, min_u16),
    ROW(v_max_u16, max_u16),
    ROW(v_min_i16, min_i16),
    ROW(v_max_i16, max_i16),
    WITH(v_mad_u16, mad_u16, SIM_KEEP_HIGH),
    WITH(v_mad_i16, mad_i16, SIM_KEEP_HIGH),
    ROW(v_mad_legacy_u16, mad_u16),
    ROW(v_mad_legacy_i16, mad_i16),
    ROW(v_min3_u16, min3_u16),
    ROW(v_max3_u16, max3_u16),
    ROW(v_med3_u16, med3_u16),
    ROW(v_min3_i16, min3_i16),
    ROW(v_max3_i16, max3_i16),
    ROW(v_med3_i16, med3_i16),
    ROW(v_pk_add_u16, pk_add_u16),
    ROW(v_pk_sub_u16, pk_sub_u16),
    ROW(v_pk_add_i16, pk_add_i16),
    ROW(v_pk_sub_i16, pk_sub_i16),
    ROW(v_pk_mul_lo_u16, pk_mul_lo_u16),
    ROW(v_pk_lshlrev_b16, pk_lshlrev_b16),
    ROW(v_pk_lshrrev_b16, pk_lshrrev_b16),
    ROW(v_pk_ashrrev_i16, pk_ashrrev_i16),
    ROW(v_pk_min_u16, pk_min_u16),
    ROW(v_pk_max_u16, pk_max_u16),
    ROW(v_pk_min_i16, pk_min_i16),
    ROW(v_pk_max_i16, pk_max_i16),
    ROW(v_pk_mad_u16, pk_mad_u16),
    ROW(v_pk_mad_i16, pk_mad_i16),
    ROW(v_sat_pk_u8_i16, sat_pk_u8_i16),
    ROW(v_sad_u8, sad_u8),
    ROW(v_sad_hi_u8, sad_hi_u8),
    ROW(v_sad_u16, sad_u16),
    ROW(v_sad_u32, sad_u32),
    ROW(v_lerp_u8, lerp_u8),
    ROW(v_msad_u8, msad_u8),
    ROW(v_qsad_pk_u16_u8, qsad_pk_u16),
    ROW(v_mqsad_pk_u16_u8, mqsad_pk_u16),
    {SIM_OP_v_mqsad_u32_u8, mqsad_u32, NULL, 0},
    ROW(v_dot4_i32_i8, dot4_i32_i8),
    ROW(v_dot4_u32_u8, dot4_u32_u8),
    ROW(v_dot8_i32_i4, dot8_i32_i4),
    ROW(v_dot8_u32_u4, dot8_u32_u4),
    ROW(v_dot2_i32_i16, dot2_i32_i16),
    ROW(v_dot2_u32_u16, dot2_u32_u16),
    WITH(v_dot4c_i32_i8, dot4_i32_i8, SIM_ACCUMULATE),
    WITH(v_dot8c_i32_i4, dot8_i32_i4, SIM_ACCUMULATE),
    WITH(v_dot2c_i32_i16, dot2_i32_i16, SIM_ACCUMULATE),
    ROW(v_bitop3_b32, bitop3),
    WITH(v_ashr_pk_i8_i32, ashr_pk_i8, SIM_KEEP_HIGH),
    WITH(v_ashr_pk_u8_i32, ashr_pk_u8, SIM_KEEP_HIGH),
    ROW(v_prng_b32, prng),
    WITH(v_bitop3_b16, bitop3_half, SIM_KEEP_HIGH),
    ROW(v_mbcnt_lo_u32_b32, mbcnt_lo),
    ROW(v_mbcnt_hi_u32_b32, mbcnt_hi),
};
const struct sim_semantics_list tessera_sim_vector_integer = {rows, sizeof rows / sizeof *rows};
