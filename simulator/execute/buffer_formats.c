// SPDX-License-Identifier: MIT
// MTBUF, and the format loads and stores of MUBUF: elements with a data format and a number format.
// "AMD Instinct MI300 Instruction Set Architecture", chapter "Vector Memory Operations", tables of buffer data formats,
// of number formats, and of the place where an instruction finds them.
#include "vector_memory.h"

#include <math.h>
#include <string.h>

#include "float_formats.h"
#include "semantics.h"

// Bits of a row's detail.
enum {
    COMPONENTS = 7, // number of components
    D16 = 8,        // components have 16 bits, two in a register
    HIGH = 16,      // a single component, in the register's high half
};

enum number { UNORM, SNORM, USCALED, SSCALED, UINT, SINT, RESERVED, FLOAT };
static const char *const number_names[] = {"unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "reserved", "float"};

enum { CHANNELS = 4, MAX_ELEMENT = 16 };

// Widths of the channels of each data format; x has the lowest bits.
static const uint8_t layouts[16][CHANNELS] = {
    [1] = {8},
    [2] = {16},
    [3] = {8, 8},
    [4] = {32},
    [5] = {16, 16},
    [6] = {11, 11, 10}, // 10_11_11: names of formats start at the highest bits
    [7] = {10, 11, 11},
    [8] = {2, 10, 10, 10},
    [9] = {10, 10, 10, 2},
    [10] = {8, 8, 8, 8},
    [11] = {32, 32},
    [12] = {16, 16, 16, 16},
    [13] = {32, 32, 32},
    [14] = {32, 32, 32, 32},
};

// Values of dst_sel for a component: 0, 1, or a channel.
enum { SELECT_0 = 0, SELECT_1 = 1, SELECT_X = 4 };

struct format {
    const uint8_t *bits; // width of each channel
    enum number number;
    uint32_t bytes;           // size of an element
    uint8_t select[CHANNELS]; // dst_sel of each component
    bool whole_bytes;         // channels can be stored one by one
};

static bool has_number(const uint8_t *bits, enum number number) {
    switch (number) {
    case FLOAT:
        return bits[0] >= 16 || bits[0] == 11 || (bits[0] == 10 && bits[1] == 11);
    case UINT:
    case SINT:
        return true;
    case RESERVED:
        return false;
    default:
        return bits[0] < 32;
    }
}

// Finds the format. MTBUF names it in the instruction, and its components are the channels in order; MUBUF takes it
// from the descriptor.
static bool read_format(struct sim_wave *wave, const struct sim_inst *inst, struct format *out) {
    const uint32_t *words = tessera_sim_buffer_descriptor(wave, inst);
    if (!words) return false;
    const bool typed = inst->format == SIM_MTBUF;
    const uint32_t data = typed ? inst->dfmt : words[3] >> 15 & 15, number = typed ? inst->nfmt : words[3] >> 12 & 7;
    *out = (struct format){.bits = layouts[data], .number = (enum number)number};
    uint32_t sum = 0;
    out->whole_bytes = true;
    for (int i = 0; i < CHANNELS; i++) {
        sum += out->bits[i];
        out->whole_bytes &= out->bits[i] % 8 == 0;
        out->select[i] = typed ? (uint8_t)(SELECT_X + i) : words[3] >> 3 * i & 7;
    }
    out->bytes = sum / 8;
    if (data == 0 && !typed) return true; // no buffer is bound: nothing is in range
    if (sum != 0 && has_number(out->bits, out->number)) return true;
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "data format %u with number format %s", data,
                        number_names[number]);
    return false;
}

static uint32_t channel_bits(const struct format *format, const uint8_t *element, int channel) {
    unsigned at = 0;
    for (int i = 0; i < channel; i++) at += format->bits[i];
    uint64_t word = 0; // a channel does not cross a word
    memcpy(&word, element + at / 32 * 4, 4);
    return (uint32_t)(word >> at % 32 & ((UINT64_C(1) << format->bits[channel]) - 1));
}

static void set_channel_bits(const struct format *format, uint8_t *element, int channel, uint32_t value) {
    unsigned at = 0;
    for (int i = 0; i < channel; i++) at += format->bits[i];
    uint32_t word;
    memcpy(&word, element + at / 32 * 4, 4);
    word |= value << at % 32;
    memcpy(element + at / 32 * 4, &word, 4);
}

// Floats of 11 and 10 bits have no sign, five bits of exponent, and infinity.
static struct sim_small_format unsigned_float(unsigned bits) {
    return (struct sim_small_format){
        .exponent_bits = 5, .mantissa_bits = (uint8_t)(bits - 5), .bias = 15, .infinity = true};
}

static bool is_integer(enum number number) { return number == UINT || number == SINT; }

static inline int32_t sign_extend(uint32_t value, unsigned bits) {
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

// Converts a channel to what a register receives: a 32-bit integer or float.
static uint32_t decode(enum number number, unsigned bits, uint32_t raw) {
    const float top = (float)((UINT64_C(1) << bits) - 1), half = (float)((UINT64_C(1) << (bits - 1)) - 1);
    switch (number) {
    case UNORM:
        return sim_bits((float)raw / top);
    case SNORM: // the lowest code means -1, too
        return sim_bits(fmaxf((float)sign_extend(raw, bits) / half, -1.0f));
    case USCALED:
        return sim_bits((float)raw);
    case SSCALED:
        return sim_bits((float)sign_extend(raw, bits));
    case SINT:
        return (uint32_t)sign_extend(raw, bits);
    case FLOAT:
        if (bits == 16) return sim_bits(sim_half_to_float(raw));
        if (bits < 16) return sim_bits(sim_small_to_float(unsigned_float(bits), raw));
        return raw;
    default:
        return raw;
    }
}

// A float as an integer within [low, high], 0 for NaN. `round`: to the nearest, ties to even; else towards zero.
static int64_t quantize(float value, double low, double high, bool round) {
    if (value != value) return 0;
    const double clamped = value < low ? low : value > high ? high : (double)value;
    return (int64_t)(round ? rint(clamped) : trunc(clamped));
}

// Converts a register's value to a channel. Values out of range become the nearest one that the channel holds. The
// documents do not name the roundings: normalized values go to the nearest, scaled ones towards zero, like conversions
// to integers.
static uint32_t encode(enum number number, unsigned bits, uint32_t value) {
    const uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
    const double top = mask, half = (double)((UINT64_C(1) << (bits - 1)) - 1);
    const float real = sim_float(value);
    switch (number) {
    case UNORM:
        return (uint32_t)quantize((float)(fmin(fmax((double)real, 0.0), 1.0) * top), 0, top, true);
    case SNORM:
        return (uint32_t)quantize((float)(real * half), -half, half, true) & mask;
    case USCALED:
        return (uint32_t)quantize(real, 0, top, false);
    case SSCALED:
        return (uint32_t)quantize(real, -half - 1, half, false) & mask;
    case UINT:
        return value < mask ? value : mask;
    case SINT: {
        const int64_t most = (int64_t)half, wanted = (int32_t)value;
        return (uint32_t)(wanted < -most - 1 ? -most - 1 : wanted > most ? most : wanted) & mask;
    }
    case FLOAT:
        if (bits == 16) return sim_float_to_half(real);
        if (bits < 16) {
            const struct sim_small_format small = unsigned_float(bits);
            return sim_float_to_small(small, real < 0 ? 0.0f : fabsf(real), false) & mask;
        }
        return value;
    default:
        return value;
    }
}

// ---- loads and stores

static uint32_t component(const struct format *format, const uint8_t *element, uint32_t reachable, int which) {
    const unsigned select = format->select[which];
    if (select == SELECT_1) return is_integer(format->number) ? 1 : sim_bits(1.0f);
    if (select < SELECT_X || reachable < format->bytes) return 0;
    const int channel = (int)(select - SELECT_X);
    const unsigned bits = format->bits[channel];
    return bits ? decode(format->number, bits, channel_bits(format, element, channel)) : 0;
}

static uint32_t narrow(const struct format *format, uint32_t value) {
    return is_integer(format->number) ? value & 0xffff : sim_float_to_half(sim_float(value));
}

static uint32_t widen(const struct format *format, uint32_t half) {
    if (!is_integer(format->number)) return sim_bits(sim_half_to_float(half));
    return format->number == SINT ? (uint32_t)(int16_t)half : half;
}

// Loads an element, which is in range as a whole or not at all.
static bool load_element(struct sim_wave *wave, int lane, const struct sim_place *place, const struct format *format,
                         uint32_t components[CHANNELS]) {
    uint8_t element[MAX_ELEMENT] = {0};
    const bool inside = place->reachable >= format->bytes;
    if (inside && !tessera_sim_copy(wave, lane, place, element, format->bytes, false)) return false;
    for (int i = 0; i < CHANNELS; i++) components[i] = component(format, element, place->reachable, i);
    return true;
}

static void put_halves(sim_vgpr *registers, int lane, uint32_t detail, const struct format *format,
                       const uint32_t *components) {
    for (uint32_t i = 0; i < (detail & COMPONENTS); i++) {
        const uint32_t half = i + (detail & HIGH ? 1 : 0), shift = half % 2 * 16;
        uint32_t *word = &registers[half / 2][lane];
        *word = (*word & ~(0xffffu << shift)) | narrow(format, components[i]) << shift;
    }
}

static bool put_in_lds(struct sim_wave *wave, int lane, const struct sim_inst *inst, uint32_t word) {
    uint8_t *lds = tessera_sim_lds(wave, lane, tessera_sim_lds_target(wave, inst) + 4 * (uint32_t)lane, 4);
    if (lds) memcpy(lds, &word, 4);
    return lds != NULL;
}

static void load(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const uint32_t count = code->detail & COMPONENTS, halves = code->detail & D16;
    const uint64_t exec = sim_exec(wave);
    struct sim_place places[SIM_LANES];
    struct format format;
    if (exec == 0) return;
    sim_vgpr *registers =
        inst->lds ? NULL : tessera_sim_registers(wave, &inst->op[SIM_DST], halves ? (count + 1) / 2 : count);
    if ((!inst->lds && !registers) || !read_format(wave, inst, &format)) return;
    if (!tessera_sim_find_places(wave, inst, format.bytes, places)) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint32_t components[CHANNELS];
        if (!(exec >> lane & 1)) continue;
        if (!load_element(wave, lane, &places[lane], &format, components)) return;
        if (inst->lds) {
            if (!put_in_lds(wave, lane, inst, components[0])) return;
        } else if (halves) {
            put_halves(registers, lane, code->detail, &format, components);
        } else {
            for (uint32_t i = 0; i < count; i++) registers[i][lane] = components[i];
        }
    }
}

// The number of bytes of an element that a store of `count` components writes. Channels that it does not name keep
// their values if they consist of whole bytes, and become 0 if they share bytes with others.
static uint32_t stored_bytes(const struct format *format, uint32_t count) {
    uint32_t bits = 0;
    if (!format->whole_bytes) return format->bytes;
    for (uint32_t i = 0; i < count; i++) bits += format->bits[i];
    return bits / 8;
}

// Whether dst_sel leaves channels in order: its effect on stores is documented for that case only.
static bool is_in_order(struct sim_wave *wave, const struct format *format) {
    for (int i = 0; i < CHANNELS && format->bits[i]; i++) {
        if (format->select[i] == SELECT_X + i) continue;
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0,
                            "a store of which dst_sel moves the channels: component %d is %u", i, format->select[i]);
        return false;
    }
    return true;
}

static void store(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const uint32_t count = code->detail & COMPONENTS, halves = code->detail & D16;
    const uint64_t exec = sim_exec(wave);
    struct sim_place places[SIM_LANES];
    struct format format;
    if (exec == 0) return;
    sim_vgpr *registers = tessera_sim_registers(wave, &inst->op[SIM_DATA], halves ? (count + 1) / 2 : count);
    if (!registers || !read_format(wave, inst, &format) || !is_in_order(wave, &format)) return;
    if (!tessera_sim_find_places(wave, inst, format.bytes, places)) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint8_t element[MAX_ELEMENT] = {0};
        if (!(exec >> lane & 1) || places[lane].reachable < format.bytes) continue;
        for (uint32_t i = 0; i < count && format.bits[i]; i++) {
            const uint32_t half = i + (code->detail & HIGH ? 1 : 0);
            const uint32_t value =
                halves ? widen(&format, registers[half / 2][lane] >> half % 2 * 16 & 0xffff) : registers[i][lane];
            set_channel_bits(&format, element, (int)i, encode(format.number, format.bits[i], value));
        }
        if (!tessera_sim_copy(wave, lane, &places[lane], element, stored_bytes(&format, count), true)) return;
    }
}

#define ROW(op, execute, detail)                                                                                       \
    { SIM_OP_##op, execute, NULL, detail }
#define ROWS2(of_buffer, of_tbuffer, execute, detail) ROW(of_buffer, execute, detail), ROW(of_tbuffer, execute, detail)
static const struct sim_semantics rows[] = {
    ROWS2(buffer_load_format_x, tbuffer_load_format_x, load, 1),
    ROWS2(buffer_load_format_d16_x, tbuffer_load_format_d16_x, load, D16 | 1),
    ROWS2(buffer_store_format_x, tbuffer_store_format_x, store, 1),
    ROWS2(buffer_store_format_d16_x, tbuffer_store_format_d16_x, store, D16 | 1),
    ROWS2(buffer_load_format_xy, tbuffer_load_format_xy, load, 2),
    ROWS2(buffer_load_format_d16_xy, tbuffer_load_format_d16_xy, load, D16 | 2),
    ROWS2(buffer_store_format_xy, tbuffer_store_format_xy, store, 2),
    ROWS2(buffer_store_format_d16_xy, tbuffer_store_format_d16_xy, store, D16 | 2),
    ROWS2(buffer_load_format_xyz, tbuffer_load_format_xyz, load, 3),
    ROWS2(buffer_load_format_d16_xyz, tbuffer_load_format_d16_xyz, load, D16 | 3),
    ROWS2(buffer_store_format_xyz, tbuffer_store_format_xyz, store, 3),
    ROWS2(buffer_store_format_d16_xyz, tbuffer_store_format_d16_xyz, store, D16 | 3),
    ROWS2(buffer_load_format_xyzw, tbuffer_load_format_xyzw, load, 4),
    ROWS2(buffer_load_format_d16_xyzw, tbuffer_load_format_d16_xyzw, load, D16 | 4),
    ROWS2(buffer_store_format_xyzw, tbuffer_store_format_xyzw, store, 4),
    ROWS2(buffer_store_format_d16_xyzw, tbuffer_store_format_d16_xyzw, store, D16 | 4),
    ROW(buffer_load_format_d16_hi_x, load, D16 | HIGH | 1),
    ROW(buffer_store_format_d16_hi_x, store, D16 | HIGH | 1),
};
const struct sim_semantics_list tessera_sim_buffer_formats = {rows, sizeof rows / sizeof *rows};
