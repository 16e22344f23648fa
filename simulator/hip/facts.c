// SPDX-License-Identifier: MIT
// The boards, and the table that properties and attributes are filled from.
#include "facts.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

// Memory, compute units and clocks are those of AMD's data sheets of the three boards.
static const struct hip_facts boards[] = {
    {
        .arch = "gfx90a",
        .arch_name = "gfx90a:sramecc+:xnack-",
        .name = "AMD Instinct MI210 (simulated)",
        .memory_bytes = 64 * GIB,
        .compute_units = 104,
        .clock_khz = 1700000,
        .memory_clock_khz = 1600000,
        .memory_bus_bits = 4096,
        .l2_bytes = 8 << 20,
        .lds_bytes = 64 << 10,
        .major = 9,
        .minor = 0,
        .gcn_arch = 910,
    },
    {
        .arch = "gfx942",
        .arch_name = "gfx942:sramecc+:xnack-",
        .name = "AMD Instinct MI300X (simulated)",
        .memory_bytes = 192 * GIB,
        .compute_units = 304,
        .clock_khz = 2100000,
        .memory_clock_khz = 1300000,
        .memory_bus_bits = 8192,
        .l2_bytes = 4 << 20,
        .lds_bytes = 64 << 10,
        .major = 9,
        .minor = 4,
        .gcn_arch = 942,
    },
    {
        .arch = "gfx950",
        .arch_name = "gfx950:sramecc+:xnack-",
        .name = "AMD Instinct MI355X (simulated)",
        .memory_bytes = 288 * GIB,
        .compute_units = 256,
        .clock_khz = 2400000,
        .memory_clock_khz = 2000000,
        .memory_bus_bits = 8192,
        .l2_bytes = 4 << 20,
        .lds_bytes = 160 << 10,
        .major = 9,
        .minor = 5,
        .gcn_arch = 950,
    },
};

const struct hip_facts *tessera_hip_find_facts(const char *arch) {
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (strcmp(boards[i].arch, arch) == 0) return &boards[i];
    return NULL;
}

// ---- places of the numbers

enum { ABSENT = -1 };

// The source of a row's number: a constant, a member of struct hip_facts, or the ordinal of the device.
enum source { CONSTANT, FACT, ORDINAL };

struct row {
    int attribute;    // hipDeviceAttribute_t, the same number in all versions; ABSENT
    int16_t old;      // offset in hipDeviceProp_t of version 5; ABSENT
    int16_t r0600;    // offset in that of versions 6 and 7; ABSENT
    int8_t bytes;     // 4 or 8
    int8_t source;    //
    int64_t constant; // the constant, or the member's offset in struct hip_facts
};

#define IS(number) CONSTANT, (number)
#define OF(member) FACT, offsetof(struct hip_facts, member)

// Properties and attributes without a row are 0: textures, surfaces, modes that only CUDA has.
static const struct row rows[] = {
    {0, 740, 580, 4, IS(1)},                       // ECC
    {2, ABSENT, 600, 4, IS(8)},                    // asynchronous engines
    {3, 388, 400, 4, IS(1)},                       // maps host memory
    {4, ABSENT, 684, 4, IS(1)},                    // maps it at the host's address
    {5, 308, 348, 4, OF(clock_khz)},               //
    {8, 360, 576, 4, IS(1)},                       // concurrent kernels
    {9, 780, 676, 4, IS(1)},                       // managed memory beside the host
    {10, 656, 688, 4, IS(0)},                      // cooperative launch
    {12, ABSENT, 384, 4, IS(0)},                   // overlap of copies and kernels
    {13, 776, 708, 4, IS(1)},                      // the host reads managed memory
    {15, ABSENT, 664, 4, IS(1)},                   // atomics between host and device
    {19, 340, 616, 4, OF(l2_bytes)},               //
    {23, 328, 360, 4, OF(major)},                  //
    {24, 772, 652, 4, IS(1)},                      // managed memory
    {25, ABSENT, 712, 4, IS(2)},                   // blocks of full size on a compute unit
    {26, 284, 324, 4, IS(1024)},                   // block, x
    {27, 288, 328, 4, IS(1024)},                   // y
    {28, 292, 332, 4, IS(1024)},                   // z
    {29, 296, 336, 4, IS(INT_MAX)},                // grid, x
    {30, 300, 340, 4, IS(UINT16_MAX)},             // y
    {31, 304, 344, 4, IS(UINT16_MAX)},             // z
    {56, 280, 320, 4, IS(1024)},                   // work-items of a block
    {57, 344, 624, 4, IS(2048)},                   // work-items on a compute unit
    {58, 712, 312, 8, IS(INT_MAX)},                // pitch
    {59, 316, 612, 4, OF(memory_bus_bits)},        //
    {60, 312, 608, 4, OF(memory_clock_khz)},       //
    {61, 332, 364, 4, OF(minor)},                  //
    {63, 336, 388, 4, OF(compute_units)},          //
    {68, 368, 584, 4, ORDINAL, 0},                 // PCI bus
    {70, ABSENT, 620, 4, OF(l2_bytes)},            // persisting L2
    {71, 272, 304, 4, IS(65536)},                  // registers of a block
    {72, ABSENT, 648, 4, IS(65536)},               // registers of a compute unit
    {74, 264, 296, 8, OF(lds_bytes)},              // LDS of a block
    {75, ABSENT, 696, 8, OF(lds_bytes)},           // LDS of a block that asks for more
    {76, ABSENT, 640, 8, OF(lds_bytes)},           // LDS of a compute unit
    {78, ABSENT, 628, 4, IS(1)},                   // stream priorities
    {79, ABSENT, 568, 8, IS(256)},                 // alignment of surfaces
    {81, 720, 368, 8, IS(256)},                    // alignment of textures
    {82, 728, 376, 8, IS(256)},                    // alignment of textures' pitch
    {83, 320, 352, 8, IS(INT_MAX)},                // constant memory
    {84, 256, 288, 8, OF(memory_bytes)},           //
    {85, ABSENT, 604, 4, IS(1)},                   // one address space
    {87, 276, 308, 4, IS(64)},                     // wave
    {88, ABSENT, 744, 4, IS(1)},                   // memory pools
    {90, ABSENT, 728, 4, IS(1)},                   // hipHostRegister
    {10000, 352, 1424, 4, IS(100000)},             // clock of clock()
    {10002, 376, 1416, 8, OF(lds_bytes)},          //
    {10011, 764, 1464, 4, IS(1)},                  // large BAR
    {10015, ABSENT, ABSENT, 4, OF(compute_units)}, // physical compute units
    {10016, ABSENT, ABSENT, 4, IS(1)},             // fine grain
    {10017, ABSENT, ABSENT, 4, IS(100000)},        // wall clock
    {ABSENT, 356, 1428, 4, IS(0x97ff)},            // hipDeviceArch_t: atomics, doubles, votes, fences, 3D grids
    {ABSENT, 392, ABSENT, 4, OF(gcn_arch)},        //
};

// Whether an attribute is known; it is 0 if it has no row.
static bool is_known_zero(int attribute) {
    return (attribute >= 0 && attribute <= 91) || (attribute >= 10000 && attribute <= 10017);
}

static int64_t row_value(const struct row *row, const struct hip_facts *facts, int device) {
    if (row->source == ORDINAL) return device;
    if (row->source == CONSTANT) return row->constant;
    int64_t value;
    memcpy(&value, (const char *)facts + row->constant, sizeof value);
    return value;
}

bool tessera_hip_attribute(const struct hip_facts *facts, int device, int attribute, int64_t *value) {
    if (!is_known_zero(attribute)) return false;
    *value = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].attribute == attribute) *value = row_value(&rows[i], facts, device);
    return true;
}

static void put(void *properties, const struct row *row, int offset, const struct hip_facts *facts, int device) {
    const int64_t value = row_value(row, facts, device);
    if (offset != ABSENT) memcpy((char *)properties + offset, &value, (size_t)row->bytes); // little-endian
}

static void put_text(void *properties, int offset, const char *text) {
    memcpy((char *)properties + offset, text, strlen(text) + 1);
}

void tessera_hip_fill_properties_old(const struct hip_facts *facts, int device, void *properties) {
    enum { SIZE = 792, NAME = 0, ARCH_NAME = 396 };
    memset(properties, 0, SIZE);
    put_text(properties, NAME, facts->name);
    put_text(properties, ARCH_NAME, facts->arch_name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) put(properties, &rows[i], rows[i].old, facts, device);
}

void tessera_hip_fill_properties_r0600(const struct hip_facts *facts, int device, void *properties) {
    enum { SIZE = 1472, NAME = 0, UUID = 256, ARCH_NAME = 1160 };
    memset(properties, 0, SIZE);
    put_text(properties, NAME, facts->name);
    put_text(properties, UUID, "tessera-sim");
    ((char *)properties)[UUID + 15] = (char)device;
    put_text(properties, ARCH_NAME, facts->arch_name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) put(properties, &rows[i], rows[i].r0600, facts, device);
}
