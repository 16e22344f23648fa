// SPDX-License-Identifier: MIT
// Matrix instructions: D = A * B + C in blocks of M x M x K, spread over all 64 lanes whatever EXEC says.
//
// mfma_sums.h has the order of sums. gfx90a flushes denormals of f16 and bf16 matrices and of their sums; the other
// architectures keep them. For f32 matrices A and B MODE decides; its FP16_OVFL keeps results finite.
#if defined(__GNUC__) && !defined(__clang__) // -O3 would unroll loops over columns before it vectorises them
#pragma GCC optimize("O2,tree-vectorize,vect-cost-model=dynamic,peel-loops")
#endif
#include "mfma_sums.h"
#include "semantics.h"
#include "vector.h"

enum type { F32, F16, BF16, XF32, FP8, BF8, I8, F64 };

enum { MAX_ROWS = 64, MAX_COLUMNS = SIM_MAX_COLUMNS, MAX_K = SIM_MAX_DEPTH };

// The shape of an instruction: `blocks` independent products of size x k by k x size matrices.
struct shape {
    unsigned size, k, blocks;
    enum type a, b;
};

#define SHAPE(size, k, blocks, a, b)                                                                                   \
    ((uint32_t)(size) | (k) << 8 | (blocks) << 16 | (uint32_t)(a) << 24 | (uint32_t)(b) << 28)
static struct shape read_shape(uint32_t detail) {
    return (struct shape){.size = detail & 0xff,
                          .k = detail >> 8 & 0xff,
                          .blocks = detail >> 16 & 0xff,
                          .a = (enum type)(detail >> 24 & 15),
                          .b = (enum type)(detail >> 28)};
}

// ---- A and B: a lane holds `each` values, neighbours in k; successive lanes go over rows (or columns), then blocks,
// ---- then k. Wide sparse matrices of gfx950 are two such halves, one after the other in k ("CDNA4", section 7.5.1.3)

static unsigned elements_of_lane(const struct shape *shape) {
    return shape->size * shape->k * shape->blocks / SIM_LANES;
}

// Cuts the mantissa to ten bits, as measured on hardware (microsoft/MMA-Sim, mmasim/simulator/amd.py).
static float cut_xf32(float v) { return isnan(v) ? v : sim_float(sim_bits(v) & ~0x1fffu); }

static float flush_denormal(float v, float least) { return fabsf(v) < least ? copysignf(0, v) : v; }

// Whether denormals of A and B become 0.
static bool flushes_denormals(const struct sim_wave *wave, enum type type) {
    if (type == F32) return !(wave->mode >> 4 & 1);
    return wave->code->inst.arch == SIM_GFX90A;
}

// Unpacks element `e` of all 64 lanes.
static void unpack(const sim_vgpr *registers, enum type type, enum sim_arch arch, bool flushes, unsigned e, float *to) {
    const struct sim_small_format fp8 = arch == SIM_GFX950 ? sim_e4m3_ocp : sim_e4m3_fnuz;
    const struct sim_small_format bf8 = arch == SIM_GFX950 ? sim_e5m2_ocp : sim_e5m2_fnuz;
    const uint32_t *words = registers[type == F32 || type == XF32 ? e : type == F16 || type == BF16 ? e / 2 : e / 4];
    const unsigned shift = type == F16 || type == BF16 ? 16 * (e & 1) : 8 * (e & 3);
    switch (type) {
    case F32:
        for (int i = 0; i < SIM_LANES; i++) to[i] = sim_float(words[i]);
        for (int i = 0; i < SIM_LANES && flushes; i++) to[i] = flush_denormal(to[i], 0x1p-126f);
        break;
    case XF32:
        for (int i = 0; i < SIM_LANES; i++) to[i] = cut_xf32(sim_float(words[i]));
        break;
    case F16:
        for (int i = 0; i < SIM_LANES; i++) to[i] = sim_half_to_float(words[i] >> shift & 0xffff);
        for (int i = 0; i < SIM_LANES && flushes; i++) to[i] = flush_denormal(to[i], 0x1p-14f);
        break;
    case BF16:
        for (int i = 0; i < SIM_LANES; i++) to[i] = sim_bf16_to_float(words[i] >> shift & 0xffff);
        for (int i = 0; i < SIM_LANES && flushes; i++) to[i] = flush_denormal(to[i], 0x1p-126f);
        break;
    case FP8:
        for (int i = 0; i < SIM_LANES; i++) to[i] = sim_small_to_float(fp8, words[i] >> shift & 0xff);
        break;
    case BF8:
        for (int i = 0; i < SIM_LANES; i++) to[i] = sim_small_to_float(bf8, words[i] >> shift & 0xff);
        break;
    case I8: // its values are exact as floats
        for (int i = 0; i < SIM_LANES; i++) to[i] = (float)(int8_t)(words[i] >> shift);
        break;
    case F64:
        break; // doubles have a loop of their own
    }
}

// The lane of B that is read in place of `lane`, by blgp.
static unsigned grouped_lane(unsigned pattern, unsigned lane) {
    switch (pattern) {
    case 1:
        return lane & 31;
    case 2:
        return 32 | (lane & 31);
    case 3:
        return (lane + 16) & 63;
    case 4:
    case 5:
    case 6:
    case 7:
        return 16 * (pattern - 4) | (lane & 15);
    default:
        return lane;
    }
}

// cbsz and abid name the block of A that is read in place of `block`. A group of blocks may not exceed their number.
static bool may_broadcast(struct sim_wave *wave, const struct sim_inst *inst, const struct shape *shape) {
    if (1u << inst->cbsz <= shape->blocks) return true;
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "cbsz:%u where there are %u blocks", inst->cbsz,
                        shape->blocks);
    return false;
}
static unsigned broadcast_block(const struct sim_inst *inst, unsigned block) {
    const unsigned group = (1u << inst->cbsz) - 1;
    return (block & ~group) | (inst->abid & group);
}

typedef float matrix[MAX_K][MAX_ROWS]; // [k][block * size + row or column]

// Reads the registers of an operand as a matrix; runs of `run` elements of a lane are neighbours in k.
static bool read_matrix(struct sim_wave *wave, const struct sim_inst *inst, enum sim_slot slot,
                        const struct shape *shape, unsigned run, matrix *to) {
    const struct sim_operand *operand = &inst->op[slot];
    const enum type type = slot == SIM_SRC0 ? shape->a : shape->b;
    const unsigned each = elements_of_lane(shape), spread = shape->size * shape->blocks, groups = SIM_LANES / spread;
    const bool flushes = flushes_denormals(wave, type);
    const sim_vgpr *registers = tessera_sim_registers(wave, operand, operand->bits / 32);
    if (!registers) return false;
    for (unsigned e = 0; e < each; e++) {
        float values[SIM_LANES], moved[SIM_LANES];
        unpack(registers, type, (enum sim_arch)inst->arch, flushes, e, values);
        for (unsigned lane = 0; lane < SIM_LANES; lane++)
            moved[lane] = values[slot == SIM_SRC1 ? grouped_lane(inst->blgp, lane) : lane];
        for (unsigned group = 0; group < groups; group++)
            memcpy((*to)[(e / run * groups + group) * run + e % run], moved + group * spread, spread * sizeof(float));
    }
    return true;
}

static void broadcast_blocks(const struct sim_inst *inst, const struct shape *shape, matrix *a) {
    for (unsigned k = 0; k < shape->k; k++) {
        float row[MAX_ROWS];
        memcpy(row, (*a)[k], sizeof row);
        for (unsigned block = 0; block < shape->blocks; block++)
            memcpy(&(*a)[k][block * shape->size], &row[broadcast_block(inst, block) * shape->size],
                   shape->size * sizeof(float));
    }
}

// ---- C and D: the place where row i of a block starts

struct row_place {
    unsigned reg, lane;
};

static struct row_place place_of_row(const struct shape *shape, unsigned block, unsigned i) {
    if (shape->size == 32) return (struct row_place){16 * block + 4 * (i / 8) + i % 4, 32 * (i / 4 % 2)};
    if (shape->size == 16) return (struct row_place){4 * block + i % 4, 16 * (i / 4)};
    return (struct row_place){i, 4 * block};
}

typedef uint32_t sums[MAX_ROWS][MAX_COLUMNS] __attribute__((aligned(64))); // [block * size + row][column], bits

static bool read_sums(struct sim_wave *wave, const struct sim_operand *operand, const struct shape *shape, sums *to) {
    const unsigned size = shape->size;
    if (operand->kind == SIM_CONST || operand->kind == SIM_LITERAL) {
        for (unsigned i = 0; i < size * shape->blocks; i++)
            for (unsigned j = 0; j < size; j++) (*to)[i][j] = (uint32_t)operand->value;
        return true;
    }
    const sim_vgpr *registers = tessera_sim_registers(wave, operand, operand->bits / 32);
    if (!registers) return false;
    for (unsigned i = 0; i < size * shape->blocks; i++) {
        const struct row_place place = place_of_row(shape, i / size, i % size);
        memcpy((*to)[i], &registers[place.reg][place.lane], size * sizeof(uint32_t));
    }
    return true;
}

static void write_sums(struct sim_wave *wave, const struct sim_inst *inst, const struct shape *shape, sums *from) {
    const struct sim_operand *operand = &inst->op[SIM_DST];
    const unsigned size = shape->size;
    sim_vgpr *registers = tessera_sim_registers(wave, operand, operand->bits / 32);
    if (!registers) return;
    for (unsigned i = 0; i < size * shape->blocks; i++) {
        const struct row_place place = place_of_row(shape, i / size, i % size);
        memcpy(&registers[place.reg][place.lane], (*from)[i], size * sizeof(uint32_t));
    }
}

// ---- products

typedef uint8_t places[MAX_COLUMNS][MAX_K]; // of sparse A: the k that each value of each row belongs to

// How products are added to the sum, and how many in a step. FLOATS: all products are exact as floats; SMALL: products
// of 8-bit values.
struct addition {
    enum { IN_TURN, TREES, FUSED, FUSED_FLOATS, FUSED_SMALL, FUSED_SMALL_FLOATS } how;
    unsigned step;
};

typedef int32_t exponents[MAX_K][MAX_ROWS];

// The matrices that an instruction multiplies. Exponents are set where products are added fused.
struct operands {
    matrix a, b;
    exponents a_exponents, b_exponents;
    places places;
    bool sparse;
};

// Finds the exponents of a matrix, for fused sums, and the range of the exponents of values other than 0.
struct range {
    int32_t least, greatest;
};
static struct range find_exponents(const matrix *of, enum type type, enum sim_arch arch, unsigned depth,
                                   unsigned spread, exponents *to) {
    const bool ocp = arch == SIM_GFX950;
    const int32_t least = type == F16 ? -14 : type == FP8 ? (ocp ? -6 : -7) : type == BF8 ? (ocp ? -14 : -15) : -126;
    int32_t lowest = INT16_MAX, greatest = INT16_MIN;
    for (unsigned k = 0; k < depth; k++) {
        const float *restrict row = (*of)[k];
        int32_t *restrict exponents_of_row = (*to)[k];
        for (unsigned i = 0; i < spread; i++) {
            const int32_t exponent = sim_exponent(row[i], least), zero = row[i] == 0 ? 1 << 16 : 0;
            exponents_of_row[i] = exponent;
            lowest = sim_lesser(lowest, exponent + zero);
            greatest = sim_greater(greatest, exponent - zero);
        }
    }
    return (struct range){lowest, greatest};
}

static struct addition find_addition(const struct shape *shape, enum sim_arch arch, unsigned each, struct range a,
                                     struct range b) {
    enum { INFINITE = 128 };
    if (shape->a == F32) return (struct addition){IN_TURN, 1};
    if (arch == SIM_GFX90A) return (struct addition){TREES, each}; // as many as a lane holds
    const bool floats = a.greatest < INFINITE && b.greatest < INFINITE && a.least + b.least >= SIM_LEAST_PRODUCT &&
                        a.greatest + b.greatest <= SIM_GREATEST_PRODUCT - 1;
    if (shape->a == FP8 || shape->a == BF8) return (struct addition){floats ? FUSED_SMALL_FLOATS : FUSED_SMALL, 16};
    return (struct addition){floats ? FUSED_FLOATS : FUSED, shape->a == XF32 ? 4 : 8};
}

static inline __attribute__((always_inline)) void
add_row(const struct addition *addition, const struct sim_products *row, float *sums, unsigned size, unsigned depth) {
    switch (addition->how) {
    case IN_TURN:
        sim_add_in_turn(row, sums, size, depth);
        break;
    case TREES:
        if (addition->step == 2)
            sim_add_trees(row, sums, size, depth, 2);
        else
            sim_add_trees(row, sums, size, depth, 4);
        break;
    case FUSED:
        sim_add_fused(row, sums, size, depth, addition->step, false, false);
        break;
    case FUSED_FLOATS:
        sim_add_fused(row, sums, size, depth, addition->step, false, true);
        break;
    case FUSED_SMALL:
        sim_add_fused(row, sums, size, depth, 16, true, false);
        break;
    case FUSED_SMALL_FLOATS:
        sim_add_fused(row, sums, size, depth, 16, true, true);
        break;
    }
}

static inline __attribute__((always_inline)) void multiply_rows(const struct addition *addition,
                                                                const struct operands *of, sums *sum, unsigned rows,
                                                                unsigned size, unsigned depth) {
    for (unsigned i = 0; i < rows; i++) {
        const unsigned first = i / size * size;
        struct sim_products row;
        for (unsigned k = 0; k < depth; k++) {
            const unsigned from = of->sparse ? of->places[i][k] : k;
            row.a[k] = of->a[k][i];
            row.b[k] = &of->b[from][first];
            row.b_exponents[k] = &of->b_exponents[from][first];
        }
        for (unsigned k = 0; k < depth && addition->how >= FUSED; k++) row.a_exponents[k] = of->a_exponents[k][i];
        float added[MAX_COLUMNS];
        memcpy(added, (*sum)[i], size * sizeof(float));
        add_row(addition, &row, added, size, depth);
        memcpy((*sum)[i], added, size * sizeof(float));
    }
}

static inline __attribute__((always_inline)) void multiply_integers(const struct operands *of, sums *sum, unsigned rows,
                                                                    unsigned size, unsigned depth) {
    for (unsigned i = 0; i < rows; i++) {
        const unsigned first = i / size * size;
        for (unsigned k = 0; k < depth; k++) {
            const float *b = &of->b[of->sparse ? of->places[i][k] : k][first];
            for (unsigned j = 0; j < size; j++) (*sum)[i][j] += (uint32_t)(int32_t)(of->a[k][i] * b[j]);
        }
    }
}

// `each`: values of A in a lane; `depth`: values of A along k.
static void multiply(const struct shape *shape, enum sim_arch arch, unsigned each, unsigned depth, struct operands *of,
                     sums *sum) {
    const unsigned size = shape->size, rows = size * shape->blocks;
    if (shape->a == I8) {
        if (size == 32)
            multiply_integers(of, sum, rows, 32, depth);
        else if (size == 16)
            multiply_integers(of, sum, rows, 16, depth);
        else
            multiply_integers(of, sum, rows, 4, depth);
        return;
    }
    struct range a = {0, 0}, b = {0, 0};
    if (arch != SIM_GFX90A && shape->a != F32) {
        a = find_exponents(&of->a, shape->a, arch, depth, rows, &of->a_exponents);
        b = find_exponents(&of->b, shape->b, arch, shape->k, rows, &of->b_exponents);
    }
    const struct addition addition = find_addition(shape, arch, each, a, b);
    if (size == 32)
        multiply_rows(&addition, of, sum, rows, 32, depth);
    else if (size == 16)
        multiply_rows(&addition, of, sum, rows, 16, depth);
    else
        multiply_rows(&addition, of, sum, rows, 4, depth);
}

// ---- with MODE's FP16_OVFL too large results become the greatest number, but not on gfx90a ("CDNA3", section 7.1.2)

static bool all_finite(const matrix *a, unsigned depth, unsigned at) {
    bool finite = true;
    for (unsigned k = 0; k < depth; k++) finite &= !isinf((*a)[k][at]);
    return finite;
}

// Clamps a 32-bit sum that has wrapped. Its sign shows that, because what was added is far smaller than 2^31.
static uint32_t clamp_integer(uint32_t before, uint32_t after) {
    const int32_t added = (int32_t)(after - before);
    const int64_t exact = (int64_t)(int32_t)before + added;
    return exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? (uint32_t)INT32_MIN : after;
}

static void clamp_sums(const struct shape *shape, unsigned depth_a, const matrix *a, const matrix *b,
                       const sums *before, sums *sum) {
    const unsigned size = shape->size;
    for (unsigned i = 0; i < size * shape->blocks; i++)
        for (unsigned j = 0; j < size; j++) {
            uint32_t *bits = &(*sum)[i][j];
            const float was = sim_float((*before)[i][j]), value = sim_float(*bits);
            if (shape->a == I8)
                *bits = clamp_integer((*before)[i][j], *bits);
            else if (isinf(value) && !isinf(was) && all_finite(a, depth_a, i) &&
                     all_finite(b, shape->k, i / size * size + j))
                *bits = sim_bits(copysignf(0x1.fffffep127f, value));
        }
}

static bool clamps(const struct sim_wave *wave) {
    return wave->mode & SIM_MODE_FP16_OVFL && wave->code->inst.arch != SIM_GFX90A;
}

static void mfma(struct sim_wave *wave, const struct sim_code *code) {
    const struct shape shape = read_shape(code->detail);
    const enum sim_arch arch = (enum sim_arch)code->inst.arch;
    struct operands of;
    of.sparse = false;
    sums sum, before;
    if (!may_broadcast(wave, &code->inst, &shape)) return;
    const unsigned each = elements_of_lane(&shape);
    if (!read_matrix(wave, &code->inst, SIM_SRC0, &shape, each, &of.a)) return;
    if (!read_matrix(wave, &code->inst, SIM_SRC1, &shape, each, &of.b)) return;
    if (!read_sums(wave, &code->inst.op[SIM_SRC2], &shape, &sum)) return;
    if (code->inst.cbsz) broadcast_blocks(&code->inst, &shape, &of.a);
    if (clamps(wave)) memcpy(before, sum, sizeof sum);
    multiply(&shape, arch, each, shape.k, &of, &sum);
    if (clamps(wave)) clamp_sums(&shape, shape.k, &of.a, &of.b, &before, &sum);
    write_sums(wave, &code->inst, &shape, &sum);
}

// ---- sparse: of four neighbours in k, A holds two

// A lane holds A's values in pairs. The index has two bits for each value, which say at which of the four places it
// stands. A register can hold several indices: with cbsz 0 abid chooses one, else it is the first.
static unsigned place_of_pair(const struct sim_inst *inst, unsigned each, const uint32_t *index, unsigned lane,
                              unsigned e) {
    const unsigned set = inst->cbsz == 0 ? inst->abid * 2 * each % 32 : 0;
    return index[lane] >> (set + 2 * e) % 32 & 3;
}

static void smfmac(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const struct shape shape = read_shape(code->detail);
    struct shape pairs = shape;
    pairs.k /= 2;
    const unsigned each = elements_of_lane(&pairs), size = shape.size, groups = SIM_LANES / size;
    const unsigned run = inst->op[SIM_SRC0].bits == 128 ? each / 2 : each;
    uint32_t space[SIM_LANES];
    struct operands of;
    of.sparse = true;
    sums sum, before;
    const uint32_t *index = tessera_sim_read_vector(wave, &inst->op[SIM_SRC2], 0, space);
    if (!index || !read_matrix(wave, inst, SIM_SRC0, &pairs, run, &of.a) ||
        !read_matrix(wave, inst, SIM_SRC1, &shape, 2 * run, &of.b))
        return;
    if (!read_sums(wave, &inst->op[SIM_DST], &shape, &sum)) return;
    if (clamps(wave)) memcpy(before, sum, sizeof sum);
    for (unsigned i = 0; i < size; i++)
        for (unsigned p = 0; p < pairs.k; p++) {
            const unsigned lane = p / run % groups * size + i, e = p / (run * groups) * run + p % run;
            of.places[i][p] = (uint8_t)(p / 2 * 4 + place_of_pair(inst, each, index, lane, e));
        }
    multiply(&shape, (enum sim_arch)inst->arch, each, pairs.k, &of, &sum);
    if (clamps(wave)) clamp_sums(&shape, pairs.k, &of.a, &of.b, &before, &sum);
    write_sums(wave, inst, &shape, &sum);
}

// ---- doubles: a lane holds one value of A and of B; rows of D lie over four lane groups

static double lane_double(const sim_vgpr *registers, unsigned which, unsigned lane) {
    return sim_double(registers[2 * which][lane] | (uint64_t)registers[2 * which + 1][lane] << 32);
}

static void mfma_f64(struct sim_wave *wave, const struct sim_code *code) {
    const struct shape shape = read_shape(code->detail);
    const struct sim_inst *inst = &code->inst;
    const unsigned spread = shape.size * shape.blocks, signs = inst->arch == SIM_GFX90A ? 0 : inst->blgp;
    const unsigned pattern = inst->arch == SIM_GFX90A ? inst->blgp : 0;
    const struct sim_operand *c_operand = &inst->op[SIM_SRC2];
    const bool constant = c_operand->kind == SIM_CONST || c_operand->kind == SIM_LITERAL;
    const sim_vgpr *a = tessera_sim_registers(wave, &inst->op[SIM_SRC0], 2);
    const sim_vgpr *b = tessera_sim_registers(wave, &inst->op[SIM_SRC1], 2);
    const sim_vgpr *c = constant ? NULL : tessera_sim_registers(wave, c_operand, c_operand->bits / 32);
    sim_vgpr *d = tessera_sim_registers(wave, &inst->op[SIM_DST], inst->op[SIM_DST].bits / 32);
    double result[4][SIM_LANES];
    if (!may_broadcast(wave, inst, &shape)) return;
    if (!a || !b || !d || (!constant && !c)) return;
    const unsigned count = shape.size / 4; // number of D's rows in a lane
    for (unsigned r = 0; r < count; r++)
        for (unsigned lane = 0; lane < SIM_LANES; lane++) {
            const unsigned i = 4 * r + lane / 16, j = lane % shape.size, block = lane / shape.size % shape.blocks;
            double sum = constant ? sim_double(c_operand->value) : lane_double(c, r, lane);
            if (signs & 4) sum = -sum;
            for (unsigned k = 0; k < shape.k; k++) {
                const unsigned base = spread * k;
                const double x = lane_double(a, 0, base + broadcast_block(inst, block) * shape.size + i);
                const double y = lane_double(b, 0, grouped_lane(pattern, base + block * shape.size + j));
                sum = fma(signs & 1 ? -x : x, signs & 2 ? -y : y, sum);
            }
            result[r][lane] = sum;
        }
    for (unsigned r = 0; r < count; r++)
        for (unsigned lane = 0; lane < SIM_LANES; lane++) {
            d[2 * r][lane] = (uint32_t)sim_bits64(result[r][lane]);
            d[2 * r + 1][lane] = (uint32_t)(sim_bits64(result[r][lane]) >> 32);
        }
}

#define ROW(op, size, k, blocks, type)                                                                                 \
    { SIM_OP_##op, mfma, NULL, SHAPE(size, k, blocks, type, type) }
#define MIXED(op, size, k, a, b)                                                                                       \
    { SIM_OP_##op, mfma, NULL, SHAPE(size, k, 1, a, b) }
#define SPARSE(op, size, k, a, b)                                                                                      \
    { SIM_OP_##op, smfmac, NULL, SHAPE(size, k, 1, a, b) }
static const struct sim_semantics rows[] = {
    ROW(v_mfma_f32_32x32x1_2b_f32, 32, 1, 2, F32),
    ROW(v_mfma_f32_16x16x1_4b_f32, 16, 1, 4, F32),
    ROW(v_mfma_f32_4x4x1_16b_f32, 4, 1, 16, F32),
    ROW(v_mfma_f32_32x32x2_f32, 32, 2, 1, F32),
    ROW(v_mfma_f32_16x16x4_f32, 16, 4, 1, F32),
    ROW(v_mfma_f32_32x32x4_2b_f16, 32, 4, 2, F16),
    ROW(v_mfma_f32_16x16x4_4b_f16, 16, 4, 4, F16),
    ROW(v_mfma_f32_4x4x4_16b_f16, 4, 4, 16, F16),
    ROW(v_mfma_f32_32x32x8_f16, 32, 8, 1, F16),
    ROW(v_mfma_f32_16x16x16_f16, 16, 16, 1, F16),
    ROW(v_mfma_f32_32x32x16_f16, 32, 16, 1, F16),
    ROW(v_mfma_f32_16x16x32_f16, 16, 32, 1, F16),
    ROW(v_mfma_f32_32x32x2bf16, 32, 2, 2, BF16),
    ROW(v_mfma_f32_16x16x2bf16, 16, 2, 4, BF16),
    ROW(v_mfma_f32_4x4x2bf16, 4, 2, 16, BF16),
    ROW(v_mfma_f32_32x32x4bf16, 32, 4, 1, BF16),
    ROW(v_mfma_f32_16x16x8bf16, 16, 8, 1, BF16),
    ROW(v_mfma_f32_32x32x4_2b_bf16, 32, 4, 2, BF16),
    ROW(v_mfma_f32_16x16x4_4b_bf16, 16, 4, 4, BF16),
    ROW(v_mfma_f32_4x4x4_16b_bf16, 4, 4, 16, BF16),
    ROW(v_mfma_f32_32x32x8_bf16, 32, 8, 1, BF16),
    ROW(v_mfma_f32_16x16x16_bf16, 16, 16, 1, BF16),
    ROW(v_mfma_f32_32x32x16_bf16, 32, 16, 1, BF16),
    ROW(v_mfma_f32_16x16x32_bf16, 16, 32, 1, BF16),
    ROW(v_mfma_f32_32x32x4_xf32, 32, 4, 1, XF32),
    ROW(v_mfma_f32_16x16x8_xf32, 16, 8, 1, XF32),
    ROW(v_mfma_i32_32x32x4_2b_i8, 32, 4, 2, I8),
    ROW(v_mfma_i32_16x16x4_4b_i8, 16, 4, 4, I8),
    ROW(v_mfma_i32_4x4x4_16b_i8, 4, 4, 16, I8),
    ROW(v_mfma_i32_32x32x8i8, 32, 8, 1, I8),
    ROW(v_mfma_i32_16x16x16i8, 16, 16, 1, I8),
    ROW(v_mfma_i32_32x32x16_i8, 32, 16, 1, I8),
    ROW(v_mfma_i32_16x16x32_i8, 16, 32, 1, I8),
    ROW(v_mfma_i32_32x32x32_i8, 32, 32, 1, I8),
    ROW(v_mfma_i32_16x16x64_i8, 16, 64, 1, I8),
    MIXED(v_mfma_f32_32x32x16_fp8_fp8, 32, 16, FP8, FP8),
    MIXED(v_mfma_f32_32x32x16_fp8_bf8, 32, 16, FP8, BF8),
    MIXED(v_mfma_f32_32x32x16_bf8_fp8, 32, 16, BF8, FP8),
    MIXED(v_mfma_f32_32x32x16_bf8_bf8, 32, 16, BF8, BF8),
    MIXED(v_mfma_f32_16x16x32_fp8_fp8, 16, 32, FP8, FP8),
    MIXED(v_mfma_f32_16x16x32_fp8_bf8, 16, 32, FP8, BF8),
    MIXED(v_mfma_f32_16x16x32_bf8_fp8, 16, 32, BF8, FP8),
    MIXED(v_mfma_f32_16x16x32_bf8_bf8, 16, 32, BF8, BF8),
    SPARSE(v_smfmac_f32_16x16x32_f16, 16, 32, F16, F16),
    SPARSE(v_smfmac_f32_16x16x32_bf16, 16, 32, BF16, BF16),
    SPARSE(v_smfmac_f32_32x32x16_f16, 32, 16, F16, F16),
    SPARSE(v_smfmac_f32_32x32x16_bf16, 32, 16, BF16, BF16),
    SPARSE(v_smfmac_f32_16x16x64_f16, 16, 64, F16, F16),
    SPARSE(v_smfmac_f32_16x16x64_bf16, 16, 64, BF16, BF16),
    SPARSE(v_smfmac_f32_32x32x32_f16, 32, 32, F16, F16),
    SPARSE(v_smfmac_f32_32x32x32_bf16, 32, 32, BF16, BF16),
    SPARSE(v_smfmac_f32_16x16x64_fp8_fp8, 16, 64, FP8, FP8),
    SPARSE(v_smfmac_f32_16x16x64_fp8_bf8, 16, 64, FP8, BF8),
    SPARSE(v_smfmac_f32_16x16x64_bf8_fp8, 16, 64, BF8, FP8),
    SPARSE(v_smfmac_f32_16x16x64_bf8_bf8, 16, 64, BF8, BF8),
    SPARSE(v_smfmac_i32_16x16x64_i8, 16, 64, I8, I8),
    SPARSE(v_smfmac_f32_32x32x32_fp8_fp8, 32, 32, FP8, FP8),
    SPARSE(v_smfmac_f32_32x32x32_fp8_bf8, 32, 32, FP8, BF8),
    SPARSE(v_smfmac_f32_32x32x32_bf8_fp8, 32, 32, BF8, FP8),
    SPARSE(v_smfmac_f32_32x32x32_bf8_bf8, 32, 32, BF8, BF8),
    SPARSE(v_smfmac_i32_32x32x32_i8, 32, 32, I8, I8),
    SPARSE(v_smfmac_f32_16x16x128_fp8_fp8, 16, 128, FP8, FP8),
    SPARSE(v_smfmac_f32_16x16x128_fp8_bf8, 16, 128, FP8, BF8),
    SPARSE(v_smfmac_f32_16x16x128_bf8_fp8, 16, 128, BF8, FP8),
    SPARSE(v_smfmac_f32_16x16x128_bf8_bf8, 16, 128, BF8, BF8),
    SPARSE(v_smfmac_i32_16x16x128_i8, 16, 128, I8, I8),
    SPARSE(v_smfmac_f32_32x32x64_fp8_fp8, 32, 64, FP8, FP8),
    SPARSE(v_smfmac_f32_32x32x64_fp8_bf8, 32, 64, FP8, BF8),
    SPARSE(v_smfmac_f32_32x32x64_bf8_fp8, 32, 64, BF8, FP8),
    SPARSE(v_smfmac_f32_32x32x64_bf8_bf8, 32, 64, BF8, BF8),
    SPARSE(v_smfmac_i32_32x32x64_i8, 32, 64, I8, I8),
    {SIM_OP_v_mfma_f64_16x16x4_f64, mfma_f64, NULL, SHAPE(16, 4, 1, F64, F64)},
    {SIM_OP_v_mfma_f64_4x4x4_4b_f64, mfma_f64, NULL, SHAPE(4, 4, 4, F64, F64)},
};
const struct sim_semantics_list tessera_sim_matrix = {rows, sizeof rows / sizeof *rows};
