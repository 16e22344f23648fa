// SPDX-License-Identifier: MIT
// DS: loads, stores and atomics of LDS.
#include "atomics.h"
#include "machine/access.h"
#include "narrow.h"
#include "semantics.h"
#include "vector.h"
#include "vector_memory.h"

// AMD's documents say M0[15:0], and of gfx950 M0[17:0].
uint32_t tessera_sim_m0_address(const struct sim_wave *wave) {
    const uint32_t mask = wave->group->launch->sim->arch == SIM_GFX950 ? 0x3ffff : 0xffff;
    return wave->sgpr[SIM_M0] & mask;
}

// detail of a row, beside what narrow.h has
enum {
    PAIR = 1 << 8,     // two accesses, offsets in elements
    STRIDE64 = 1 << 9, // in 64s of them
    RETURNS = 1 << 10,
    ATOMIC_SHIFT = 16,
};

static const uint32_t *addresses(struct sim_wave *wave, const struct sim_code *code) {
    sim_vgpr *registers = tessera_sim_registers(wave, &code->inst.op[SIM_ADDR], 1);
    return registers ? registers[0] : NULL;
}

// Byte offsets of the one or two accesses.
static unsigned offsets(const struct sim_code *code, uint32_t *out) {
    const uint32_t unit = (code->detail & BYTES) * (code->detail & STRIDE64 ? 64 : 1);
    out[0] = (uint32_t)code->inst.offset;
    if (!(code->detail & PAIR)) return 1;
    out[0] = (uint32_t)(code->inst.offset & 0xff) * unit;
    out[1] = code->inst.offset1 * unit;
    return 2;
}

// Whether all lanes are active and their accesses of whole words lie within LDS, so that no more is to be asked of any.
// Then puts where they are into `at`.
static bool all_at_hand(const struct sim_wave *wave, const struct sim_code *code, const uint32_t *address,
                        uint32_t at[2][SIM_LANES]) {
    const uint32_t size = wave->group->lds_bytes, bytes = code->detail & BYTES;
    uint32_t offset[2], outside = 0;
    const unsigned count = offsets(code, offset);
    if (bytes & 3 || size < bytes || sim_exec(wave) != UINT64_MAX || wave->checks) return false;
    for (unsigned k = 0; k < count; k++)
        for (int lane = 0; lane < SIM_LANES; lane++) {
            at[k][lane] = address[lane] + offset[k];
            outside |= at[k][lane] > size - bytes;
        }
    return !outside;
}

static void read(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, words = (bytes + 3) / 4;
    const uint64_t exec = sim_exec(wave);
    uint32_t offset[2], at[2][SIM_LANES];
    const unsigned count = offsets(code, offset);
    if (exec == 0) return;
    const uint32_t *address = addresses(wave, code);
    sim_vgpr *to = tessera_sim_registers(wave, &code->inst.op[SIM_DST], words * count);
    if (!address || !to) return;
    if (all_at_hand(wave, code, address, at)) {
        for (unsigned k = 0; k < count; k++)
            for (int lane = 0; lane < SIM_LANES; lane++)
                get_words(to + k * words, lane, wave->group->lds + at[k][lane], words);
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint32_t data[8] = {0};
        if (!(exec >> lane & 1)) continue;
        for (unsigned k = 0; k < count; k++) {
            const uint8_t *lds = tessera_sim_lds(wave, lane, address[lane] + offset[k], bytes);
            if (!lds) return;
            memcpy(&data[k * words], lds, bytes);
        }
        if (bytes < 4) data[0] = merge(code->detail, to[0][lane], extend(code->detail, data[0]));
        for (uint32_t k = 0; k < words * count; k++) to[k][lane] = data[k];
    }
}

static void write(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, words = (bytes + 3) / 4;
    const uint64_t exec = sim_exec(wave);
    uint32_t offset[2], at[2][SIM_LANES];
    const unsigned count = offsets(code, offset);
    if (exec == 0) return;
    const uint32_t *address = addresses(wave, code);
    sim_vgpr *from[2] = {tessera_sim_registers(wave, &code->inst.op[SIM_DATA], words), NULL};
    if (count == 2) from[1] = tessera_sim_registers(wave, &code->inst.op[SIM_DATA2], words);
    if (!address || !from[0] || (count == 2 && !from[1])) return;
    if (all_at_hand(wave, code, address, at)) {
        for (int lane = 0; lane < SIM_LANES; lane++)
            for (unsigned k = 0; k < count; k++) put_words(from[k], lane, wave->group->lds + at[k][lane], words);
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        for (unsigned k = 0; k < count; k++) {
            uint32_t data[4];
            for (uint32_t w = 0; w < words; w++) data[w] = from[k][w][lane];
            if (code->detail & D16_HIGH) data[0] >>= 16;
            uint8_t *lds = tessera_sim_lds(wave, lane, address[lane] + offset[k], bytes);
            if (!lds) return;
            memcpy(lds, data, bytes);
        }
    }
}

static uint64_t lane_value(sim_vgpr *registers, int lane, uint32_t words) {
    if (!registers) return 0;
    return words == 1 ? registers[0][lane] : registers[0][lane] | (uint64_t)registers[1][lane] << 32;
}

// MODE's denormals: of floats, and of halves and doubles.
static unsigned flushes(const struct sim_wave *wave, enum sim_atomic what, uint32_t bytes) {
    const bool half = what == SIM_ATOMIC_PK_ADD_F16 || what == SIM_ATOMIC_PK_ADD_BF16;
    const uint32_t kept = wave->mode >> (half || bytes == 8 ? 6 : 4);
    return (kept & 1 ? 0 : SIM_FLUSH_SOURCES) | (kept & 2 ? 0 : SIM_FLUSH_RESULT);
}

static void atomic(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const enum sim_atomic what = (enum sim_atomic)(code->detail >> ATOMIC_SHIFT);
    const uint32_t bytes = code->detail & BYTES, words = bytes / 4;
    const unsigned flush = flushes(wave, what, bytes);
    const uint64_t exec = sim_exec(wave);
    uint32_t offset[2];
    const unsigned count = offsets(code, offset);
    if (exec == 0) return;
    const uint32_t *address = addresses(wave, code);
    const bool second = inst->op[SIM_DATA2].kind != SIM_ABSENT, returns = code->detail & RETURNS;
    sim_vgpr *first_data = tessera_sim_registers(wave, &inst->op[SIM_DATA], words);
    sim_vgpr *second_data = second ? tessera_sim_registers(wave, &inst->op[SIM_DATA2], words) : NULL;
    sim_vgpr *to = returns ? tessera_sim_registers(wave, &inst->op[SIM_DST], words * count) : NULL;
    if (!address || !first_data || (second && !second_data) || (returns && !to)) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        uint64_t data[2] = {lane_value(first_data, lane, words), lane_value(second_data, lane, words)}, old[2] = {0};
        for (unsigned k = 0; k < count; k++) {
            const uint32_t at = address[lane] + offset[k];
            uint8_t *lds = tessera_sim_lds(wave, lane, at, bytes);
            if (!lds) return;
            if (at % bytes != 0) {
                tessera_sim_trouble(wave, TESSERA_SIM_FAULT_MISALIGNED, lane, at, "an atomic of %u bytes at LDS %u",
                                    bytes, at);
                return;
            }
            memcpy(&old[k], lds, bytes);
            // cmpst and mskor: the first operand is compared or the mask, the second the value. Pairs have one each.
            const uint64_t value = count == 2 ? data[k] : second ? data[1] : data[0], other = data[0];
            const uint64_t fresh =
                words == 1 ? tessera_sim_atomic32(what, (uint32_t)old[k], (uint32_t)value, (uint32_t)other, flush)
                           : tessera_sim_atomic64(what, old[k], value, other, flush);
            memcpy(lds, &fresh, bytes);
        }
        for (unsigned k = 0; to && k < count; k++) {
            to[k * words][lane] = (uint32_t)old[k];
            if (words == 2) to[k * words + 1][lane] = (uint32_t)(old[k] >> 32);
        }
    }
}

// ---- addresses from M0, and a counter

static uint32_t m0_offset(const struct sim_wave *wave, const struct sim_code *code) {
    return tessera_sim_m0_address(wave) + (uint32_t)code->inst.offset;
}

// ds_read_addtid_b32 and ds_write_addtid_b32: the lanes' words stand side by side.
static void add_lane(struct sim_wave *wave, const struct sim_code *code) {
    const bool store = code->detail;
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *words = tessera_sim_registers(wave, &code->inst.op[store ? SIM_DATA : SIM_DST], 1);
    if (!words) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        uint8_t *lds = tessera_sim_lds(wave, lane, m0_offset(wave, code) + 4 * (uint32_t)lane, 4);
        if (!lds) return;
        memcpy(store ? (void *)lds : &words[0][lane], store ? &words[0][lane] : (void *)lds, 4);
    }
}

// ds_append and ds_consume: one counter for the wave grows or shrinks by the number of active lanes, which all get
// its old value.
static void count_lanes(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t exec = sim_exec(wave);
    const uint32_t lanes = (uint32_t)__builtin_popcountll(exec);
    if (exec == 0) return;
    uint8_t *lds = tessera_sim_lds(wave, -1, m0_offset(wave, code), 4);
    uint32_t old, result[SIM_LANES];
    if (!lds) return;
    memcpy(&old, lds, 4);
    for (int lane = 0; lane < SIM_LANES; lane++) result[lane] = old;
    const uint32_t fresh = code->detail ? old + lanes : old - lanes;
    memcpy(lds, &fresh, 4);
    tessera_sim_write_vector(wave, &code->inst.op[SIM_DST], 0, exec, result);
}

// ds_condxchg32_rtn_b64: of two words those are exchanged whose new value has its highest bit set, which is cleared.
static void exchange_marked(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t mark = 1u << 31;
    const uint64_t exec = sim_exec(wave);
    if (exec == 0) return;
    const uint32_t *address = addresses(wave, code);
    sim_vgpr *data = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], 2);
    sim_vgpr *to = tessera_sim_registers(wave, &code->inst.op[SIM_DST], 2);
    if (!address || !data || !to) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        uint8_t *lds = tessera_sim_lds(wave, lane, (address[lane] + (uint32_t)code->inst.offset) & ~7u, 8);
        if (!lds) return;
        for (int i = 0; i < 2; i++) {
            const uint32_t fresh = data[i][lane];
            memcpy(&to[i][lane], lds + 4 * i, 4);
            if (fresh & mark) memcpy(lds + 4 * i, &(uint32_t){fresh & ~mark}, 4);
        }
    }
}

// ---- transposing reads: sixteen lanes read rows of sixteen elements, and each gets a column

enum { COLUMNS = 16, MAX_BYTES = 12 };

static uint32_t element_at(const uint32_t *words, unsigned index, unsigned bits) {
    const unsigned at = index * bits;
    const uint64_t two = words[at / 32] | (uint64_t)words[at / 32 + 1] << 32;
    return (uint32_t)(two >> at % 32) & ((1u << bits) - 1);
}

// detail: bytes of a lane, bits of an element above. Lanes that are off give zeros and get nothing, as with
// ds_bpermute; AMD's document does not say.
static void read_transposed(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, bits = code->detail >> ATOMIC_SHIFT, each = 8 * bytes / bits;
    const uint32_t *address = addresses(wave, code);
    sim_vgpr *to = tessera_sim_registers(wave, &code->inst.op[SIM_DST], bytes / 4);
    const uint64_t exec = sim_exec(wave);
    uint32_t given[SIM_LANES][MAX_BYTES / 4 + 1] = {0};
    if (!address || !to) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        const uint8_t *lds = tessera_sim_lds(wave, lane, address[lane] + (uint32_t)code->inst.offset, bytes);
        if (!lds) return;
        memcpy(given[lane], lds, bytes);
    }
    for (uint32_t lane = 0; lane < SIM_LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        const uint32_t group = lane / COLUMNS * COLUMNS, column = lane % COLUMNS;
        uint32_t made[MAX_BYTES / 4 + 1] = {0};
        for (uint32_t row = 0; row < each; row++) {
            const uint32_t holder = group + row * (COLUMNS / each) + column / each;
            const uint64_t element = (uint64_t)element_at(given[holder], column % each, bits) << row * bits % 32;
            made[row * bits / 32] |= (uint32_t)element;
            made[row * bits / 32 + 1] |= (uint32_t)(element >> 32);
        }
        for (uint32_t k = 0; k < bytes / 4; k++) to[k][lane] = made[k];
    }
}

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

#define READ(op, detail)                                                                                               \
    { SIM_OP_DS_READ##op, read, NULL, detail }
#define WRITE(op, detail)                                                                                              \
    { SIM_OP_DS_WRITE##op, write, NULL, detail }
#define ATOMIC_DETAIL(what, detail) ((uint32_t)SIM_ATOMIC_##what << ATOMIC_SHIFT | (detail))
#define ATOMIC(name, type, what, bytes)                                                                                \
    {SIM_OP_DS_##name##_##type, atomic, NULL, ATOMIC_DETAIL(what, bytes)}, {                                           \
        SIM_OP_DS_##name##_RTN_##type, atomic, NULL, ATOMIC_DETAIL(what, (bytes) | RETURNS)                            \
    }
#define RETURNING(name, what, detail)                                                                                  \
    { SIM_OP_DS_##name, atomic, NULL, ATOMIC_DETAIL(what, (detail) | RETURNS) }
static const struct sim_semantics rows[] = {
    READ(_B32, 4),
    READ(_B64, 8),
    READ(_B96, 12),
    READ(_B128, 16),
    READ(_U8, 1),
    READ(_I8, 1 | SIGNED),
    READ(_U16, 2),
    READ(_I16, 2 | SIGNED),
    READ(_U8_D16, 1 | D16),
    READ(_U8_D16_HI, 1 | D16_HIGH),
    READ(_I8_D16, 1 | SIGNED | D16),
    READ(_I8_D16_HI, 1 | SIGNED | D16_HIGH),
    READ(_U16_D16, 2 | D16),
    READ(_U16_D16_HI, 2 | D16_HIGH),
    READ(2_B32, 4 | PAIR),
    READ(2_B64, 8 | PAIR),
    READ(2ST64_B32, 4 | PAIR | STRIDE64),
    READ(2ST64_B64, 8 | PAIR | STRIDE64),
    WRITE(_B8, 1),
    WRITE(_B16, 2),
    WRITE(_B8_D16_HI, 1 | D16_HIGH),
    WRITE(_B16_D16_HI, 2 | D16_HIGH),
    WRITE(_B32, 4),
    WRITE(_B64, 8),
    WRITE(_B96, 12),
    WRITE(_B128, 16),
    WRITE(2_B32, 4 | PAIR),
    WRITE(2_B64, 8 | PAIR),
    WRITE(2ST64_B32, 4 | PAIR | STRIDE64),
    WRITE(2ST64_B64, 8 | PAIR | STRIDE64),
    ATOMIC(ADD, U32, ADD, 4),
    ATOMIC(SUB, U32, SUB, 4),
    ATOMIC(RSUB, U32, RSUB, 4),
    ATOMIC(INC, U32, INC, 4),
    ATOMIC(DEC, U32, DEC, 4),
    ATOMIC(MIN, I32, SMIN, 4),
    ATOMIC(MAX, I32, SMAX, 4),
    ATOMIC(MIN, U32, UMIN, 4),
    ATOMIC(MAX, U32, UMAX, 4),
    ATOMIC(AND, B32, AND, 4),
    ATOMIC(OR, B32, OR, 4),
    ATOMIC(XOR, B32, XOR, 4),
    ATOMIC(MSKOR, B32, MSKOR, 4),
    ATOMIC(CMPST, B32, CMPSWAP, 4),
    ATOMIC(CMPST, F32, CMPSWAP_F, 4),
    ATOMIC(ADD, F32, ADD_F, 4),
    ATOMIC(MIN, F32, MIN_F, 4),
    ATOMIC(MAX, F32, MAX_F, 4),
    ATOMIC(ADD, U64, ADD, 8),
    ATOMIC(SUB, U64, SUB, 8),
    ATOMIC(RSUB, U64, RSUB, 8),
    ATOMIC(INC, U64, INC, 8),
    ATOMIC(DEC, U64, DEC, 8),
    ATOMIC(MIN, I64, SMIN, 8),
    ATOMIC(MAX, I64, SMAX, 8),
    ATOMIC(MIN, U64, UMIN, 8),
    ATOMIC(MAX, U64, UMAX, 8),
    ATOMIC(AND, B64, AND, 8),
    ATOMIC(OR, B64, OR, 8),
    ATOMIC(XOR, B64, XOR, 8),
    ATOMIC(MSKOR, B64, MSKOR, 8),
    ATOMIC(CMPST, B64, CMPSWAP, 8),
    ATOMIC(CMPST, F64, CMPSWAP_F, 8),
    ATOMIC(ADD, F64, ADD_F, 8),
    ATOMIC(MIN, F64, MIN_F, 8),
    ATOMIC(MAX, F64, MAX_F, 8),
    ATOMIC(PK_ADD, F16, PK_ADD_F16, 4),
    ATOMIC(PK_ADD, BF16, PK_ADD_BF16, 4),
    RETURNING(WRXCHG_RTN_B32, SWAP, 4),
    RETURNING(WRXCHG_RTN_B64, SWAP, 8),
    RETURNING(WRXCHG2_RTN_B32, SWAP, 4 | PAIR),
    RETURNING(WRXCHG2_RTN_B64, SWAP, 8 | PAIR),
    RETURNING(WRXCHG2ST64_RTN_B32, SWAP, 4 | PAIR | STRIDE64),
    RETURNING(WRXCHG2ST64_RTN_B64, SWAP, 8 | PAIR | STRIDE64),
    RETURNING(WRAP_RTN_B32, WRAP, 4),
    {SIM_OP_DS_READ_ADDTID_B32, add_lane, NULL, 0},
    {SIM_OP_DS_WRITE_ADDTID_B32, add_lane, NULL, 1},
    {SIM_OP_DS_CONSUME, count_lanes, NULL, 0},
    {SIM_OP_DS_APPEND, count_lanes, NULL, 1},
    {SIM_OP_DS_CONDXCHG32_RTN_B64, exchange_marked, NULL, 0},
    {SIM_OP_DS_READ_B64_TR_B16, read_transposed, NULL, 8 | 16 << ATOMIC_SHIFT},
    {SIM_OP_DS_READ_B64_TR_B8, read_transposed, NULL, 8 | 8 << ATOMIC_SHIFT},
    {SIM_OP_DS_READ_B64_TR_B4, read_transposed, NULL, 8 | 4 << ATOMIC_SHIFT},
    {SIM_OP_DS_READ_B96_TR_B6, read_transposed, NULL, 12 | 6 << ATOMIC_SHIFT},
    {SIM_OP_DS_NOP, nothing, NULL, 0},
};
const struct sim_semantics_list tessera_sim_lds_list = {rows, sizeof rows / sizeof *rows};
