// SPDX-License-Identifier: MIT
// DS: loads, stores and atomics of LDS.
#include "atomics.h"
#include "machine/access.h"
#include "narrow.h"
#include "semantics.h"
#include "vector.h"
#include "vector_memory.h"

// AMD's documents say M0[15:0], and M0[17:0] for gfx950.
uint32_t tessera_sim_m0_address(const struct sim_wave *wave) {
    const uint32_t mask = wave->group->launch->sim->arch == SIM_GFX950 ? 0x3ffff : 0xffff;
    return wave->sgpr[SIM_M0] & mask;
}

// Bits of a row's detail, beside those of narrow.h.
enum {
    PAIR = 1 << 8,     // two accesses, with offsets in elements
    STRIDE64 = 1 << 9, // with offsets in units of 64 elements
    RETURNS = 1 << 10,
    ATOMIC_SHIFT = 16,
};

static const uint32_t *addresses(struct sim_wave *wave, const struct sim_code *code) {
    sim_vgpr *registers = tessera_sim_registers(wave, &code->inst.op[SIM_ADDR], 1);
    return registers ? registers[0] : NULL;
}

// Writes the byte offsets of the one or two accesses, and returns their number.
static unsigned offsets(const struct sim_code *code, uint32_t *out) {
    const uint32_t unit = (code->detail & BYTES) * (code->detail & STRIDE64 ? 64 : 1);
    out[0] = (uint32_t)code->inst.offset;
    if (!(code->detail & PAIR)) return 1;
    out[0] = (uint32_t)(code->inst.offset & 0xff) * unit;
    out[1] = code->inst.offset1 * unit;
    return 2;
}

// Whether all lanes are active and all their accesses are of whole words within LDS, so that no lane needs further
// checks; in that case sets `at` to the places of the accesses.
static bool all_at_hand(const struct sim_wave *wave, const struct sim_code *code, const uint32_t *address,
                        uint32_t at[2][SIM_LANES]) {
    const uint32_t size = wave->group->lds_bytes, bytes = code->detail & BYTES;
    uint32_t offset[2], outside = 0;
    const unsigned count = offsets(code, offset);
    if (bytes & 3 || size < bytes || sim_exec(wave) != UINT64_MAX || wave->access) return false;
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

// What MODE flushes: it has a setting for floats, and one for halves and doubles.
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
            // cmpst, mskor: the first operand is what is compared, or the mask; the second is the value. Each access of
            // a pair has an operand of its own.
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

// ds_read_addtid_b32 and ds_write_addtid_b32: the lanes' words lie side by side.
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

// ds_append and ds_consume: a counter grows or shrinks by the number of active lanes, which all receive its old value.
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

// ds_condxchg32_rtn_b64: exchanges each of two words whose new value has its highest bit set, and clears that bit.
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

// detail: the bytes of a lane, and above them the bits of an element. AMD's document does not speak of inactive lanes:
// here they supply zeros and receive nothing, as in ds_bpermute.
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
    { SIM_OP_##op, read, NULL, detail }
#define WRITE(op, detail)                                                                                              \
    { SIM_OP_##op, write, NULL, detail }
#define ATOMIC_DETAIL(what, detail) ((uint32_t)SIM_ATOMIC_##what << ATOMIC_SHIFT | (detail))
#define ATOMIC(op, returning, what, bytes)                                                                             \
    {SIM_OP_##op, atomic, NULL, ATOMIC_DETAIL(what, bytes)}, {                                                         \
        SIM_OP_##returning, atomic, NULL, ATOMIC_DETAIL(what, (bytes) | RETURNS)                                       \
    }
#define RETURNING(op, what, detail)                                                                                    \
    { SIM_OP_##op, atomic, NULL, ATOMIC_DETAIL(what, (detail) | RETURNS) }
static const struct sim_semantics rows[] = {
    READ(ds_read_b32, 4),
    READ(ds_read_b64, 8),
    READ(ds_read_b96, 12),
    READ(ds_read_b128, 16),
    READ(ds_read_u8, 1),
    READ(ds_read_i8, 1 | SIGNED),
    READ(ds_read_u16, 2),
    READ(ds_read_i16, 2 | SIGNED),
    READ(ds_read_u8_d16, 1 | D16),
    READ(ds_read_u8_d16_hi, 1 | D16_HIGH),
    READ(ds_read_i8_d16, 1 | SIGNED | D16),
    READ(ds_read_i8_d16_hi, 1 | SIGNED | D16_HIGH),
    READ(ds_read_u16_d16, 2 | D16),
    READ(ds_read_u16_d16_hi, 2 | D16_HIGH),
    READ(ds_read2_b32, 4 | PAIR),
    READ(ds_read2_b64, 8 | PAIR),
    READ(ds_read2st64_b32, 4 | PAIR | STRIDE64),
    READ(ds_read2st64_b64, 8 | PAIR | STRIDE64),
    WRITE(ds_write_b8, 1),
    WRITE(ds_write_b16, 2),
    WRITE(ds_write_b8_d16_hi, 1 | D16_HIGH),
    WRITE(ds_write_b16_d16_hi, 2 | D16_HIGH),
    WRITE(ds_write_b32, 4),
    WRITE(ds_write_b64, 8),
    WRITE(ds_write_b96, 12),
    WRITE(ds_write_b128, 16),
    WRITE(ds_write2_b32, 4 | PAIR),
    WRITE(ds_write2_b64, 8 | PAIR),
    WRITE(ds_write2st64_b32, 4 | PAIR | STRIDE64),
    WRITE(ds_write2st64_b64, 8 | PAIR | STRIDE64),
    ATOMIC(ds_add_u32, ds_add_rtn_u32, ADD, 4),
    ATOMIC(ds_sub_u32, ds_sub_rtn_u32, SUB, 4),
    ATOMIC(ds_rsub_u32, ds_rsub_rtn_u32, RSUB, 4),
    ATOMIC(ds_inc_u32, ds_inc_rtn_u32, INC, 4),
    ATOMIC(ds_dec_u32, ds_dec_rtn_u32, DEC, 4),
    ATOMIC(ds_min_i32, ds_min_rtn_i32, SMIN, 4),
    ATOMIC(ds_max_i32, ds_max_rtn_i32, SMAX, 4),
    ATOMIC(ds_min_u32, ds_min_rtn_u32, UMIN, 4),
    ATOMIC(ds_max_u32, ds_max_rtn_u32, UMAX, 4),
    ATOMIC(ds_and_b32, ds_and_rtn_b32, AND, 4),
    ATOMIC(ds_or_b32, ds_or_rtn_b32, OR, 4),
    ATOMIC(ds_xor_b32, ds_xor_rtn_b32, XOR, 4),
    ATOMIC(ds_mskor_b32, ds_mskor_rtn_b32, MSKOR, 4),
    ATOMIC(ds_cmpst_b32, ds_cmpst_rtn_b32, CMPSWAP, 4),
    ATOMIC(ds_cmpst_f32, ds_cmpst_rtn_f32, CMPSWAP_F, 4),
    ATOMIC(ds_add_f32, ds_add_rtn_f32, ADD_F, 4),
    ATOMIC(ds_min_f32, ds_min_rtn_f32, MIN_F, 4),
    ATOMIC(ds_max_f32, ds_max_rtn_f32, MAX_F, 4),
    ATOMIC(ds_add_u64, ds_add_rtn_u64, ADD, 8),
    ATOMIC(ds_sub_u64, ds_sub_rtn_u64, SUB, 8),
    ATOMIC(ds_rsub_u64, ds_rsub_rtn_u64, RSUB, 8),
    ATOMIC(ds_inc_u64, ds_inc_rtn_u64, INC, 8),
    ATOMIC(ds_dec_u64, ds_dec_rtn_u64, DEC, 8),
    ATOMIC(ds_min_i64, ds_min_rtn_i64, SMIN, 8),
    ATOMIC(ds_max_i64, ds_max_rtn_i64, SMAX, 8),
    ATOMIC(ds_min_u64, ds_min_rtn_u64, UMIN, 8),
    ATOMIC(ds_max_u64, ds_max_rtn_u64, UMAX, 8),
    ATOMIC(ds_and_b64, ds_and_rtn_b64, AND, 8),
    ATOMIC(ds_or_b64, ds_or_rtn_b64, OR, 8),
    ATOMIC(ds_xor_b64, ds_xor_rtn_b64, XOR, 8),
    ATOMIC(ds_mskor_b64, ds_mskor_rtn_b64, MSKOR, 8),
    ATOMIC(ds_cmpst_b64, ds_cmpst_rtn_b64, CMPSWAP, 8),
    ATOMIC(ds_cmpst_f64, ds_cmpst_rtn_f64, CMPSWAP_F, 8),
    ATOMIC(ds_add_f64, ds_add_rtn_f64, ADD_F, 8),
    ATOMIC(ds_min_f64, ds_min_rtn_f64, MIN_F, 8),
    ATOMIC(ds_max_f64, ds_max_rtn_f64, MAX_F, 8),
    ATOMIC(ds_pk_add_f16, ds_pk_add_rtn_f16, PK_ADD_F16, 4),
    ATOMIC(ds_pk_add_bf16, ds_pk_add_rtn_bf16, PK_ADD_BF16, 4),
    RETURNING(ds_wrxchg_rtn_b32, SWAP, 4),
    RETURNING(ds_wrxchg_rtn_b64, SWAP, 8),
    RETURNING(ds_wrxchg2_rtn_b32, SWAP, 4 | PAIR),
    RETURNING(ds_wrxchg2_rtn_b64, SWAP, 8 | PAIR),
    RETURNING(ds_wrxchg2st64_rtn_b32, SWAP, 4 | PAIR | STRIDE64),
    RETURNING(ds_wrxchg2st64_rtn_b64, SWAP, 8 | PAIR | STRIDE64),
    RETURNING(ds_wrap_rtn_b32, WRAP, 4),
    {SIM_OP_ds_read_addtid_b32, add_lane, NULL, 0},
    {SIM_OP_ds_write_addtid_b32, add_lane, NULL, 1},
    {SIM_OP_ds_consume, count_lanes, NULL, 0},
    {SIM_OP_ds_append, count_lanes, NULL, 1},
    {SIM_OP_ds_condxchg32_rtn_b64, exchange_marked, NULL, 0},
    {SIM_OP_ds_read_b64_tr_b16, read_transposed, NULL, 8 | 16 << ATOMIC_SHIFT},
    {SIM_OP_ds_read_b64_tr_b8, read_transposed, NULL, 8 | 8 << ATOMIC_SHIFT},
    {SIM_OP_ds_read_b64_tr_b4, read_transposed, NULL, 8 | 4 << ATOMIC_SHIFT},
    {SIM_OP_ds_read_b96_tr_b6, read_transposed, NULL, 12 | 6 << ATOMIC_SHIFT},
    {SIM_OP_ds_nop, nothing, NULL, 0},
};
const struct sim_semantics_list tessera_sim_lds_list = {rows, sizeof rows / sizeof *rows};
