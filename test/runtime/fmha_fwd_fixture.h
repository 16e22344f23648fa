// SPDX-License-Identifier: MIT
// A valid call with its memory, and handwritten instances, for tests of the library's internal functions.
#ifndef TESSERA_TEST_FMHA_FWD_FIXTURE_H
#define TESSERA_TEST_FMHA_FWD_FIXTURE_H

#include <cstdint>
#include <string>
#include <vector>

extern "C" {
#include "op/call.h"
#include "ops/fmha_fwd_internal.h"
}

// A call with all features: b 2, h 4/2, s 6, s_k 10, d 8/16, and a pointer for every tensor that any trait may need.
struct Call {
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args args = tessera_fmha_fwd_args_init();

    Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    void group();                                                // sequences of 6 and 4 queries, 10 and 7 keys
    void dtype(tessera_fmha_dtype dtype, tessera_qscale qscale); // with strides that suit
    void set_strides();                                          // packed [batch, head, token, hdim], from sizes

    tessera_status check() { return tessera_fmha_fwd_check(&traits, &args); }
    tessera_fmha_fwd_call whole() const {
        tessera_fmha_fwd_call call{};
        call.traits = traits;
        call.args = args;
        return call;
    }

    // Room for each tensor, apart from the others.
    static constexpr size_t kRoom = 1 << 16;
    std::vector<unsigned char> memory;
    unsigned char *room(int number);

    std::vector<int32_t> seqstart_q{0, 6, 10}, seqstart_k{0, 10, 17}, seqlen_q{5, 4}, seqlen_k{9, 7}, cu_q{0, 5, 9},
        cu_k{0, 9, 16}, block_q{0, 1, 2}, block_k{0, 1, 2}, v_scale{0, 1, 2};
};

// A product that contains everything, for tests to narrow.
struct Served : tessera_served {
    Served();
    void hold(const std::string &trait, uint64_t values);
    tessera_range &hdim_q() { return ranges[0]; }
    tessera_range &hdim_v() { return ranges[1]; }
};

// An instance that serves everything on `target`, with a tile of bm0 x bn0 and a register tile of 16 x 8.
// The kernel of this build that combines parts of keys on a target, or NULL.
inline const tessera_instance *combining(tessera_target target) {
    const tessera_table *const table = tessera_fmha_fwd_combine_get_table();
    for (uint32_t i = 0; i < table->row_count; i++)
        if (tessera_row(table, i)->target == target) return tessera_row(table, i);
    return nullptr;
}

tessera_fmha_fwd_instance make_instance(const char *name, tessera_target target, const tessera_served *served,
                                        uint16_t bm0, uint16_t bn0, float macs_per_cycle = 10, float tile_cycles = 100);

// A table over rows, with slices as the generator makes them.
class Table {
  public:
    explicit Table(std::vector<tessera_fmha_fwd_instance> rows);
    const tessera_table *get() const { return &table; }
    const tessera_fmha_fwd_instance *row(size_t number) const { return &rows[number]; }

  private:
    std::vector<tessera_fmha_fwd_instance> rows;
    std::vector<uint32_t> buckets{32, 48, 64, 96, 128, 192, 256, 512};
    std::vector<tessera_slice> slices;
    std::vector<uint32_t> order;
    tessera_table table;
};

#endif
