// SPDX-License-Identifier: MIT
// Finds the places that the lanes of FLAT, GLOBAL, SCRATCH, MUBUF and MTBUF instructions access.
#include "vector_memory.h"

enum { EVERYTHING = 16 }; // at least the bytes of the widest access

// The scalar operands of a wave's addresses, and the registers of its lanes' own operands.
struct addressing {
    const uint32_t *low, *high;
    uint64_t base;
    int64_t offset;
};

static const uint32_t zeros[SIM_LANES];

static struct sim_place place_in_memory(uint64_t address) {
    return (struct sim_place){SIM_MEMORY, address, EVERYTHING, 0};
}

static bool flat_addressing(struct sim_wave *wave, const struct sim_inst *inst, struct addressing *out) {
    const struct sim_operand *address = &inst->op[SIM_ADDR], *base = &inst->op[SIM_BASE];
    *out = (struct addressing){zeros, zeros, 0, inst->offset};
    if (base->kind != SIM_ABSENT) out->base = tessera_sim_read_scalar(wave, base);
    if (address->kind == SIM_ABSENT) return true;
    sim_vgpr *registers = tessera_sim_registers(wave, address, address->bits > 32 ? 2 : 1);
    if (!registers) return false;
    out->low = registers[0];
    if (address->bits > 32) out->high = registers[1];
    return true;
}

static uint64_t flat_sum(const struct addressing *from, int lane) {
    return from->base + (from->low[lane] | (uint64_t)from->high[lane] << 32) + (uint64_t)from->offset;
}

static void flat_places(struct sim_wave *wave, const struct sim_inst *inst, struct sim_place *places) {
    struct addressing from;
    if (!flat_addressing(wave, inst, &from)) return;
    for (int lane = 0; lane < SIM_LANES; lane++) places[lane] = place_in_memory(flat_sum(&from, lane));
    if (inst->format != SIM_FLAT) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const uint64_t address = places[lane].address;
        const uint64_t aperture = address >> SIM_APERTURE_SHIFT << SIM_APERTURE_SHIFT;
        if (aperture == SIM_SHARED_APERTURE)
            places[lane] = (struct sim_place){SIM_LDS, (uint32_t)address, EVERYTHING, 0};
        if (aperture == SIM_PRIVATE_APERTURE)
            places[lane] = (struct sim_place){SIM_PRIVATE, (uint32_t)address, EVERYTHING, 0};
    }
}

static void scratch_places(struct sim_wave *wave, const struct sim_inst *inst, struct sim_place *places) {
    struct addressing from;
    if (!flat_addressing(wave, inst, &from)) return;
    for (int lane = 0; lane < SIM_LANES; lane++)
        places[lane] = (struct sim_place){SIM_PRIVATE, (uint32_t)flat_sum(&from, lane), EVERYTHING, 0};
}

// ---- buffers: "AMD Instinct MI300 Instruction Set Architecture", sections "Buffer Addressing" and "Range Checking"

// The fields of a buffer's descriptor, with what the instruction adds for all lanes.
struct buffer {
    uint64_t base; // base address, with the scalar offset
    uint64_t limit;
    uint32_t stride, index_stride;
    bool swizzle, add_lane;
    bool by_index; // the limit counts indices, not bytes
};

const uint32_t *tessera_sim_buffer_descriptor(struct sim_wave *wave, const struct sim_inst *inst) {
    const unsigned base = inst->op[SIM_BASE].index;
    if (inst->op[SIM_BASE].kind == SIM_SGPR && base + 4 <= SIM_SGPRS) return &wave->sgpr[base];
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "a buffer descriptor that is not in SGPRs");
    return NULL;
}

// The limit counts records if the instruction has an index, else bytes of the offset without the scalar one. Scratch
// has no bounds: there lanes add their numbers, and the instruction has no index.
static struct buffer read_buffer(const uint32_t *words, const struct sim_inst *inst, uint32_t scalar) {
    const uint32_t format = words[3] >> 15 & 15;
    struct buffer buffer = {
        .base = (words[0] | (uint64_t)(words[1] & 0xffff) << 32) + scalar,
        .stride = words[1] >> 16 & 0x3fff,
        .swizzle = words[1] >> 31,
        .index_stride = 8u << (words[3] >> 21 & 3),
        .add_lane = words[3] >> 23 & 1,
    };
    if (buffer.add_lane) buffer.stride |= format << 14; // then these bits belong to the stride
    buffer.by_index = inst->idxen && buffer.stride != 0;
    buffer.limit = buffer.add_lane && !inst->idxen ? UINT64_MAX : words[2];
    if (format == 0 && !buffer.add_lane) buffer.limit = 0; // an invalid data format: no buffer is bound
    return buffer;
}

// An offset in a swizzled buffer, where `index_stride` indices are interleaved word by word.
static uint64_t swizzled(const struct buffer *buffer, uint64_t index, uint64_t offset) {
    const uint64_t group = index / buffer->index_stride, member = index % buffer->index_stride;
    return (group * buffer->stride + (offset & ~UINT64_C(3))) * buffer->index_stride + member * 4 + (offset & 3);
}

// The bytes from a place in the buffer to its end, at most those of the widest access.
static uint32_t reachable(const struct buffer *buffer, uint64_t at) {
    const uint64_t left = buffer->limit > at ? buffer->limit - at : 0;
    return left < EVERYTHING ? (uint32_t)left : EVERYTHING;
}

static struct sim_place buffer_place(const struct buffer *buffer, uint64_t index, uint64_t offset) {
    const uint64_t at = buffer->swizzle ? swizzled(buffer, index, offset) : index * buffer->stride + offset;
    struct sim_place place = place_in_memory(buffer->base + at);
    if (buffer->by_index)
        place.reachable = index < buffer->limit ? EVERYTHING : 0;
    else
        place.reachable = reachable(buffer, at);
    return place;
}

static void buffer_places(struct sim_wave *wave, const struct sim_inst *inst, uint32_t bytes,
                          struct sim_place *places) {
    const struct sim_operand *address = &inst->op[SIM_ADDR];
    const unsigned count = (unsigned)inst->idxen + inst->offen;
    const uint32_t *words = tessera_sim_buffer_descriptor(wave, inst);
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *registers = count ? tessera_sim_registers(wave, address, count) : NULL;
    if (!words || (count && !registers)) return;
    const uint32_t scalar =
        inst->op[SIM_OFFSET].kind == SIM_ABSENT ? 0 : (uint32_t)tessera_sim_read_scalar(wave, &inst->op[SIM_OFFSET]);
    const struct buffer buffer = read_buffer(words, inst, scalar);
    const uint32_t *indices = inst->idxen ? registers[0] : zeros;
    const uint32_t *offsets = inst->offen ? registers[inst->idxen] : zeros;
    if (buffer.stride == 0 && !buffer.swizzle) { // the common kind of buffer
        for (int lane = 0; lane < SIM_LANES; lane++) {
            const uint64_t at = (uint64_t)offsets[lane] + (uint64_t)inst->offset;
            places[lane] = (struct sim_place){SIM_MEMORY, buffer.base + at, reachable(&buffer, at), 0};
        }
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const uint64_t offset = (uint64_t)offsets[lane] + (uint64_t)inst->offset;
        const uint64_t index = (uint64_t)indices[lane] + (buffer.add_lane ? (unsigned)lane : 0);
        const uint32_t first = 4 - (uint32_t)(offset & 3);
        places[lane] = buffer_place(&buffer, index, offset);
        if (!buffer.swizzle || bytes <= first || !(exec >> lane & 1)) continue;
        if (bytes > 4) { // the documents do not say which bytes such an access reaches
            tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, lane, 0,
                                "%u bytes at offset %llu of a swizzled buffer: more than a word", bytes,
                                (unsigned long long)offset);
            return;
        }
        // The words of an index lie apart. Compilers reach scratch in this way, and also with unaligned offsets.
        const struct sim_place next = buffer_place(&buffer, index, offset + first);
        places[lane].second = next.address;
        if (next.reachable < bytes - first) places[lane].reachable = 0;
    }
}

bool tessera_sim_find_places(struct sim_wave *wave, const struct sim_inst *inst, uint32_t bytes,
                             struct sim_place *places) {
    switch (inst->format) {
    case SIM_FLAT:
    case SIM_GLOBAL:
        flat_places(wave, inst, places);
        break;
    case SIM_SCRATCH:
        scratch_places(wave, inst, places);
        break;
    case SIM_MUBUF:
    case SIM_MTBUF:
        buffer_places(wave, inst, bytes, places);
        break;
    default:
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "this format's addresses");
    }
    return wave->state == SIM_RUNNING;
}
