// SPDX-License-Identifier: MIT
// Calls of operations on caches of keys and values, with random contents, and what they must give: the reference walks
// the tables by itself and asks that of fmha_fwd about the keys that it found.
#ifndef KV_CACHE_CASE_H
#define KV_CACHE_CASE_H

#include <algorithm>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../common/sampling.h"
#include "elements.h"
#include "fmha_fwd_reference.h"
#include "tessera/device.h"
#include "tessera/fmha_fwd.h"

// Where keys lie.
enum class Keys { kTokens, kSequences, kIndexed, kPages, kGappy };

struct Case {
    tessera_fmha_dtype dtype = TESSERA_FMHA_FP16;
    tessera_fp8_format fp8 = TESSERA_FP8_NONE; // the device's, which is OCP's where it has none of its own
    bool group = false;
    Keys keys = Keys::kPages;
    int page = 16;
    int first_block = 0; // pages, or sequences, of the cache below are nobody's, and there is no memory for them
    bool apart = false;  // nobody may touch what lies between pages, or sequences, and what no key lies in
    int batch = 2, heads = 4, heads_k = 2, hdim_q = 32, hdim_v = 32;
    std::vector<int> seqlen_q, seqlen_k; // of each sequence; batch mode: as many queries in all
    // Whether seqlen_k_ptr is given where it need not be: in group mode beside seqstart_k, which has room for more, or
    // with pages in its place; in batch mode where all have as many keys.
    bool lengths = false;
    tessera_mask mask = TESSERA_MASK_NONE;
    int left = -1, right = -1, sink_size = 0;
    bool sink = false, lse = true, cap = false, rows_first = false; // rows_first: [row, head, element], not [head, row]
    tessera_bias bias = TESSERA_BIAS_NONE;
    int splits = 1;
    float drop = 0; // fmha_batch_prefill: of dropout, by seed 7 and offset 9
    float scale = 0.25F;
    tessera_qscale scales =
        TESSERA_QSCALE_NONE; // fmha_batch_prefill of fp8: KV_BLOCK or TOKEN_HEAD in place of PER_TENSOR
    std::string words() const;
    tessera_type input() const { return fmha_fwd_input_element(dtype, fp8); }
    tessera_type output() const { return fmha_fwd_output_element(dtype, fp8); }
    // Of bytes that are NaN as inputs.
    unsigned char nan() const { return input() == TESSERA_TYPE_E4M3FNUZ ? 0x80 : 0xff; }
};

// A random one.
Case draw_case(std::mt19937 &random);

// Bytes of a tensor, from the first one to that before `end`.
struct Part {
    size_t first, end;
};

// Parts, in any order, of which those that touch become one.
class Parts {
  public:
    void add(size_t first, size_t bytes);
    std::vector<Part> joined();

  private:
    std::vector<Part> all;
};

// Memory that ends where a page that nobody may touch begins. Of the first `untouched` bytes there are addresses alone,
// so that they may be more than the machine has.
class Guarded {
  public:
    explicit Guarded(size_t bytes, unsigned char fill = 0xff, size_t untouched = 0);
    ~Guarded();
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;
    template <typename T> T *as() const { return reinterpret_cast<T *>(data); }
    size_t size() const { return bytes; }
    // From now on nobody may touch anything but these parts, which are in order. Simulated GPUs see that to the byte,
    // CPUs by whole pages of the machine.
    void allow_only(std::vector<Part> parts);
    bool is_restricted() const { return restricted; }
    const std::vector<Part> &parts() const { return allowed; }
    // Bytes from one block of a cache to the next, so that each ends where a page that nobody may touch begins.
    static size_t apart(size_t used);

  private:
    unsigned char *all, *data;
    size_t bytes, mapped;
    bool restricted = false;
    std::vector<Part> allowed;
};

// Copies on a device of what lies on the host, each made when it is first asked for; for CPUs there are none. A
// simulated GPU is lent the parts of tensors that are restricted: these are not copied.
class Copies {
  public:
    Copies(const tessera_device *to, bool copies) : device(to), is_needed(copies) {}
    ~Copies();
    Copies(const Copies &) = delete;
    Copies &operator=(const Copies &) = delete;
    void *of(const void *host, size_t bytes);
    void *of(const Guarded &x);
    // Of what lies behind the first `bytes`: an address so far before its copy. NVIDIA's tensor maps are of memory that
    // is there from its first byte on (CUDA's driver API, cuTensorMapEncodeTiled): there is room for all.
    void *of_rest(const Guarded &x, size_t bytes);
    // From the first call on copies lie one behind the other in so many bytes: outputs, which overlap nothing, not even
    // what lies before the rest of a tensor, come last.
    void in_order(size_t bytes);
    const int32_t *of(const std::vector<int32_t> &x) {
        return static_cast<const int32_t *>(of(x.data(), x.size() * sizeof(int32_t)));
    }
    void get(const Guarded &x) { get_rest(x, 0); } // what a call has left
    void get_rest(const Guarded &x, size_t bytes);
    // Of a workspace, which under the simulator's sanitizer stays undefined: a call may use only what it wrote itself.
    void *of_workspace(const Guarded &x);
    const tessera_device *const device;

  private:
    void *place(size_t bytes);
    bool is_simulated() const;
    void lend(const Guarded &x);
    const bool is_needed;
    std::map<const void *, void *> there;
    std::vector<void *> owned, lent;
    std::vector<const void *> lenders;
    char *next = nullptr; // of those in order
    size_t left = 0;
};

// The tensors of a case. What no key of a sequence lies in is NaN, and entries of the table past its keys are no pages;
// where pages are apart, nobody may touch them.
struct Tensors {
    Tensors(const Case &c, uint32_t seed);
    const Case &c;
    int max_q = 0, max_k = 0, total_q = 0, blocks = 0, rows = 0, columns = 0;
    int64_t k_stride[3], v_stride[3]; // block, head, row
    std::vector<int32_t> start_q, length_k, start_k, offset, index;
    Guarded q, k, v, o, lse, bias, sinks, table, descales;
    Guarded q_scales, k_scales, v_scales; // of Case::scales

    // The fields that the args of all operations share.
    template <typename Traits, typename Args> void put(Copies &to, Traits &t, Args &a) const;
    // Empty where o and lse are as right as a device must have them, else what is wrong.
    std::string wrong(const char *device = "cpu") const;
    bool are_equally_long() const;
    // Bytes of k or v that are nobody's.
    size_t nobodys(const int64_t *stride) const;
    // Where the sequences' rows from `first` of each on lie in a linear cache.
    std::vector<Part> linear_parts(const int64_t *stride, int hdim, const std::vector<int32_t> &first = {}) const;
    // The same of all rows of one whose pieces have so many numbers of so many rows: number d of a row of a head of a
    // block is where at(block, head, row, d) says.
    template <typename At> std::vector<Part> parts_in_pieces(int hdim, At at, int numbers, int of_rows) const;
    // Of the table: those of such rows.
    std::vector<Part> entries(const std::vector<int32_t> &first = {}) const;
    // Where key j of sequence b lies.
    int32_t block_of(int b, int j) const;
    int row_of(int b, int j) const;
    // Every third column of v of each sequence's last key becomes infinite.
    void make_last_keys_infinite() const;
    // Of 8 bits: one number of the first head's last key of the first sequence, and every third column of a value of
    // the last head of the second sequence become NaN.
    void make_numbers_nan() const;

  private:
    void forbid_rest();
    // The scales of rows one after the other, as blocks of one row are given to fmha_fwd.
    std::vector<float> scales_of_q() const, scales_of_k() const, scales_of_v() const;
};

template <typename At> std::vector<Part> Tensors::parts_in_pieces(int hdim, At at, int numbers, int of_rows) const {
    const auto bytes = static_cast<size_t>(element_bits(c.input())) / 8;
    Parts parts;
    for (int b = 0; b < c.batch; b++)
        for (int j = 0; j < c.seqlen_k[b]; j += of_rows)
            for (int g = 0; g < c.heads_k; g++)
                for (int d = 0; d < hdim; d += numbers)
                    parts.add(static_cast<size_t>(at(block_of(b, j), g, row_of(b, j), d)) * bytes,
                              static_cast<size_t>(numbers * of_rows) * bytes);
    return parts.joined();
}

template <typename Traits, typename Args> void Tensors::put(Copies &to, Traits &t, Args &a) const {
    const int tokens_q = c.group ? total_q : max_q;
    t.hdim_q = a.hdim_q = c.hdim_q, t.hdim_v = a.hdim_v = c.hdim_v;
    t.data_type = c.dtype;
    t.is_group_mode = c.group;
    t.has_logits_soft_cap = c.cap;
    t.mask_type = a.mask_type = c.mask;
    t.bias_type = c.bias;
    t.has_lse = c.lse;
    t.qscale_type = c.dtype >= TESSERA_FMHA_FP8 ? TESSERA_QSCALE_PER_TENSOR : TESSERA_QSCALE_NONE;
    t.has_sink = c.sink || c.sink_size;
    const float *const scales = static_cast<float *>(to.of(descales));
    if (c.first_block) to.in_order(1 << 24);
    a.q_ptr = to.of(q), a.k_ptr = to.of_rest(k, nobodys(k_stride)), a.v_ptr = to.of_rest(v, nobodys(v_stride));
    a.o_ptr = to.of(o);
    a.lse_ptr = static_cast<decltype(a.lse_ptr)>(to.of(lse)), a.bias_ptr = to.of(bias);
    a.q_descale_ptr = scales, a.k_descale_ptr = scales + 1, a.v_descale_ptr = scales + 2;
    a.sink_ptr = static_cast<decltype(a.sink_ptr)>(c.sink ? to.of(sinks) : nullptr);
    a.seqstart_q_ptr = to.of(start_q);
    a.max_seqlen_q = max_q;
    a.batch = c.batch, a.nhead_q = c.heads, a.nhead_k = c.heads_k;
    a.scale_s = c.scale, a.logits_soft_cap = 3;
    a.stride_q = c.hdim_q, a.nhead_stride_q = static_cast<int64_t>(tokens_q) * c.hdim_q;
    a.batch_stride_q = c.heads * a.nhead_stride_q;
    a.stride_o = c.hdim_v, a.nhead_stride_o = static_cast<int64_t>(tokens_q) * c.hdim_v;
    a.batch_stride_o = c.heads * a.nhead_stride_o;
    a.nhead_stride_lse = tokens_q, a.batch_stride_lse = static_cast<int64_t>(c.heads) * tokens_q;
    a.stride_bias = c.bias == TESSERA_BIAS_ALIBI ? 0 : max_k;
    a.nhead_stride_bias = static_cast<int64_t>(tokens_q) * max_k, a.batch_stride_bias = c.heads * a.nhead_stride_bias;
    a.batch_stride_k = k_stride[0], a.nhead_stride_k = k_stride[1], a.stride_k = k_stride[2];
    a.batch_stride_v = v_stride[0], a.nhead_stride_v = v_stride[1], a.stride_v = v_stride[2];
    a.window_size_left = c.left, a.window_size_right = c.right, a.sink_size = c.sink_size;
}

// The fields that say where the keys of operations with CK's arguments for caches lie.
template <typename Traits, typename Args> void put_cache(const Tensors &x, Copies &to, Traits &t, Args &a) {
    const Case &c = x.c;
    const bool pages = c.keys == Keys::kPages || c.keys == Keys::kGappy;
    x.put(to, t, a);
    a.seqlen_q = x.max_q;
    a.seqlen_k = x.max_k;
    a.cache_blocks = x.blocks;
    if (pages) a.block_table_ptr = to.of(x.table), a.batch_stride_block_table = x.columns;
    a.page_block_size = c.page;
    if (c.keys == Keys::kIndexed) a.cache_batch_idx = to.of(x.index);
    a.is_gappy = c.keys == Keys::kGappy;
    if (!c.group || a.is_gappy || c.lengths) a.seqlen_k_ptr = to.of(x.length_k);
    if (!c.group && !c.lengths && x.are_equally_long()) a.seqlen_k_ptr = nullptr;
    if (c.keys != Keys::kPages || !c.lengths) a.seqstart_k_ptr = to.of(a.is_gappy ? x.offset : x.start_k);
}

// How many of `some` or all random cases tests try: a third of some under the address sanitizer.
int count_of_cases(int some, int all);

// Runs a call with a workspace of just the size that it needs. Empty, or the error; kNone where this build has no
// instance that serves it.
extern const char *const kNone;
template <typename Traits, typename Args, typename Size, typename Run>
std::string run_with_workspace(Copies &to, const Traits &t, Args &a, Size size, Run run) {
    size_t bytes = 0;
    const tessera_status status = size(to.device, &t, &a, &bytes);
    if (status != TESSERA_SUCCESS) return status == TESSERA_ERROR_NO_INSTANCE ? kNone : tessera_last_error();
    const Guarded workspace((bytes + 63) / 64 * 64);
    a.workspace_ptr = to.of_workspace(workspace), a.workspace_size = bytes;
    if (run(to.device, &t, &a, nullptr) != TESSERA_SUCCESS) return tessera_last_error();
    return tessera_device_synchronize(to.device) == TESSERA_SUCCESS ? "" : tessera_last_error();
}

// Tests of an operation on a device: some case must be served, or be another day's. Devices are the CPU and simulated
// GPUs, where this build has such, or the one that TESSERA_TEST_DEVICE names.
std::vector<const char *> test_devices();
class OnDevice : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override;
    void TearDown() override;
    bool is_gpu() const { return GetParam() != std::string("cpu"); }
    bool has_fp8() const { return tessera_device_fp8_format(device) != TESSERA_FP8_NONE; }
    bool is_cuda() const { return std::string(GetParam()).compare(0, 4, "cuda") == 0; }
    // Whether this build has what is to be tested: here an instance of fmha_fwd that finds keys in pages.
    virtual bool has_instances() const;
    // As many of the cases as there is time for; and a case as GPUs take it.
    int count(int some, int all) const {
        return std::max(1, count_of_cases(some, all) / (is_sampled() ? 6 : is_gpu() ? 3 : 1));
    }
    Case fit(Case c) const;
    // Whether the next case is to be tried: by TESSERA_TEST_DAYS, but of cases for simulated GPUs one in `days` each
    // day, on one of them, and the next time on another.
    bool is_due(int days);
    bool is_simulated() const { return std::string(GetParam()).compare(0, 4, "sim:") == 0; }
    bool is_sampled() const; // whether the device is a simulated one and cases are few and small
    // Whether somebody sees what is touched that nobody may.
    bool sees_touches() const { return !is_gpu() || is_simulated(); }
    // Tensors::wrong(). Probabilities that GPUs multiply in 8 bits are further off than any that CPUs do.
    std::string wrong(const Tensors &x) const { return x.wrong(element_bits(x.c.input()) == 8 ? GetParam() : "cpu"); }
    // Runs a call, and gets what it has left in the tensors.
    template <typename Traits, typename Args, typename Size, typename Run, typename Memory>
    void run_call(Copies &to, const Memory &x, const Traits &t, Args &a, Size size, Run run) {
        const std::string failed = run_with_workspace(to, t, a, size, run);
        is_served = failed != kNone;
        served += is_served;
        to.get(x.o), to.get(x.lse);
        if (is_served) {
            ASSERT_EQ(failed, "") << x.c.words();
        }
    }
    bool is_dealt(uint32_t days);
    tessera_device *device = nullptr;
    bool is_served = false; // the last case
    int served = 0;         // of all
    int put_off = 0;        // to other days
    uint32_t asked = 0;     // whether it is due
};
#define ON_DEVICES(suite)                                                                                              \
    INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::ValuesIn(test_devices()), [](const auto &of) {                   \
        const std::string name = of.param;                                                                             \
        const bool simulated = name.compare(0, 4, "sim:") == 0;                                                        \
        return simulated ? name.substr(4) : name.substr(0, name.find(':'));                                            \
    })

#endif
