// SPDX-License-Identifier: MIT
// paged_attention against a reference that walks the tables by itself: types of caches and their scales, layouts of
// pages, several queries of a sequence, batches with sequences that are being prefilled.
#include "tessera/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

#include "case.h"
#include "paged_attention_reference.h"
#include "tessera/kernel/fmha_fwd.h"
#include "tessera/kernel/paged_attention.h"

namespace {

enum class Scales { kNone, kTensor, kPage, kToken };

struct Decode {
    tessera_fmha_dtype dtype = TESSERA_FMHA_BF16;
    tessera_kv_cache_dtype kv = TESSERA_KV_AUTO;
    tessera_kv_layout layout = TESSERA_KV_LINEAR;
    bool rows_first = true; // linear: [row, head, element] (NHD), not [head, row, element] (HND)
    Scales scales = Scales::kNone;
    int page = 16, heads = 8, heads_k = 2, hdim_q = 128, hdim_v = 128, window = 0, most = 1;
    std::vector<int> queries, keys; // of each sequence; all have `most` queries where `queries` is empty
    bool alibi = false, cap = false, lse = true, sink = false;
    int splits = 0;     // of keys; 0: the library's choice
    int first_page = 0; // pages below are nobody's
    int slack = 0;      // bytes behind a slot of turbo4
    bool apart = false; // nobody may touch what lies between pages, and what no key lies in
    std::string words() const {
        std::ostringstream out;
        out << tessera_fmha_dtype_string(dtype) << " kv " << tessera_kv_cache_dtype_string(kv) << " "
            << tessera_kv_layout_string(layout) << (rows_first ? " nhd" : " hnd") << " scales "
            << static_cast<int>(scales) << " page " << page << " heads " << heads << "/" << heads_k << " d " << hdim_q
            << "/" << hdim_v << " window " << window << " most " << most << " queries";
        for (const int n : queries) out << " " << n;
        out << " keys";
        for (const int n : keys) out << " " << n;
        out << " slack " << slack << " splits " << splits << " alibi " << alibi << " cap " << cap << " lse " << lse
            << " sink " << sink;
        return out.str();
    }
};

int pick(std::mt19937 &random, std::initializer_list<int> of) { return of.begin()[random() % of.size()]; }

Decode draw(std::mt19937 &random) {
    static const std::pair<int, int> heads[] = {{8, 1}, {4, 2}, {32, 8}, {5, 1}, {6, 6}, {16, 1}, {40, 2}};
    Decode c;
    c.dtype = static_cast<tessera_fmha_dtype>(random() % 3);
    c.kv = static_cast<tessera_kv_cache_dtype>(random() % TESSERA_KV_CACHE_DTYPE_COUNT);
    c.layout = static_cast<tessera_kv_layout>(random() % TESSERA_KV_LAYOUT_COUNT);
    c.rows_first = random() % 2;
    c.scales = c.kv == TESSERA_KV_AUTO ? Scales::kNone : static_cast<Scales>(random() % 4);
    c.page = pick(random, {1, 8, 16, 32, 64, 128, 1024});
    std::tie(c.heads, c.heads_k) = heads[random() % std::size(heads)];
    c.hdim_q = c.hdim_v = pick(random, {64, 80, 112, 128, 256});
    if (c.layout == TESSERA_KV_LINEAR && random() % 3 == 0)
        c.hdim_q = pick(random, {1, 40, 65, 200}), c.hdim_v = pick(random, {1, 33, 96});
    if (c.kv == TESSERA_KV_TURBO4) c.hdim_q += c.hdim_q % 2, c.hdim_v += c.hdim_v % 2;
    if (c.kv == TESSERA_KV_TURBO4) { // norms in slots or apart
        c.layout = TESSERA_KV_LINEAR;
        c.slack = pick(random, {0, 0, 6, 14, 1});
    }
    if (c.layout == TESSERA_KV_VECTORIZED) c.page = std::max(c.page, 16);
    c.window = pick(random, {0, 0, 1, 10, 128});
    c.most = pick(random, {1, 1, 2, 4, 8});
    const bool group = random() % 2;
    for (int n = pick(random, {1, 2, 5}); n > 0; n--) {
        c.keys.push_back(pick(random, {0, 1, 7, 26, 57, 66, 109, 128, 257, 282, 1100}));
        if (group) c.queries.push_back(pick(random, {0, 1, 1, c.most, c.most, c.most + 1, 70}));
    }
    c.alibi = random() % 3 == 0;
    c.cap = random() % 3 == 0;
    c.lse = random() % 2;
    c.sink = random() % 3 == 0;
    c.splits = pick(random, {0, 0, 0, 1, 3, 128});
    return c;
}

tessera_type type_of(const Decode &c) { return fmha_fwd_input_element(c.dtype, TESSERA_FP8_NONE); }
tessera_type cached_type(const Decode &c) {
    return c.kv == TESSERA_KV_AUTO ? type_of(c) : c.kv == TESSERA_KV_FP8_E4M3 ? TESSERA_TYPE_E4M3 : TESSERA_TYPE_INT8;
}
size_t bytes_of(tessera_type type) { return static_cast<size_t>(element_bits(type)) / 8; }
// What strides count: elements of a row of k or v, or bytes of a slot.
int row_of(const Decode &c, int hdim) {
    return c.kv == TESSERA_KV_TURBO4 ? hdim / 2 + (c.scales == Scales::kNone ? 2 : 0) + c.slack : hdim;
}
int sum_of(const std::vector<int> &list) { return std::accumulate(list.begin(), list.end(), 0); }
int batch_of(const Decode &c) { return static_cast<int>(c.keys.size()); }
// Where there is no query, there is room for one nevertheless: GPUs ask for it.
int tokens_of(const Decode &c) { return c.queries.empty() ? batch_of(c) * c.most : std::max(sum_of(c.queries), 1); }
int columns_of(const Decode &c) { return (*std::max_element(c.keys.begin(), c.keys.end()) + c.page - 1) / c.page; }
int pages_of(const Decode &c) { return c.first_page + batch_of(c) * columns_of(c) + 2; }
size_t rows_of(const Decode &c) { return static_cast<size_t>(pages_of(c)) * c.heads_k * c.page; }
// Bytes of a page, from one to the next, of all pages, and of those that are nobody's.
size_t bytes_of_page(const Decode &c, int hdim) {
    return static_cast<size_t>(c.heads_k) * c.page * row_of(c, hdim) * bytes_of(cached_type(c));
}
size_t distance_of(const Decode &c, int hdim) {
    return c.apart ? Guarded::apart(bytes_of_page(c, hdim)) : bytes_of_page(c, hdim);
}
size_t size_of(const Decode &c, int hdim) { return (pages_of(c) - 1) * distance_of(c, hdim) + bytes_of_page(c, hdim); }
size_t nobodys(const Decode &c, int hdim) { return c.first_page * distance_of(c, hdim); }
size_t scales_of(const Decode &c) {
    return c.scales == Scales::kToken  ? rows_of(c)
           : c.scales == Scales::kPage ? static_cast<size_t>(pages_of(c)) * c.heads_k
                                       : 1;
}

size_t scale_bytes(const Decode &c) { return c.kv == TESSERA_KV_TURBO4 ? sizeof(uint16_t) : sizeof(float); }

// The tensors of a case: none is longer than it must be, and nobody may touch what lies behind it.
struct Memory {
    Memory(const Decode &c, uint32_t seed);
    const Decode &c;
    Guarded q, k, v, o, lse, k_scale, v_scale, slopes, sinks, starts, lengths, table, centroids;
    tessera_paged_attention_traits traits = tessera_paged_attention_traits_init();
    tessera_paged_attention_args args = tessera_paged_attention_args_init();
    std::string wrong() const; // empty, or what is wrong
    void make_last_scales_infinite();
    void make_codes_nan();

  private:
    int64_t k_at(int64_t page, int64_t head, int64_t row, int64_t d) const; // which element of the tensor that is
    int64_t v_at(int64_t page, int64_t head, int64_t row, int64_t d) const;
    void set_args();
    void set_scales();
    bool lies(int64_t page, int64_t row) const; // whether a sequence's key does there
    void spoil_rest();
    void set_norms(std::mt19937 &random);
    void forbid_rest();
};

Memory::Memory(const Decode &of, uint32_t seed)
    : c(of), q(static_cast<size_t>(tokens_of(of)) * of.heads * of.hdim_q * bytes_of(type_of(of))),
      k(size_of(of, of.hdim_q), 0xff, nobodys(of, of.hdim_q)), v(size_of(of, of.hdim_v), 0xff, nobodys(of, of.hdim_v)),
      o(static_cast<size_t>(tokens_of(of)) * of.heads * of.hdim_v * bytes_of(type_of(of))),
      lse(static_cast<size_t>(tokens_of(of)) * of.heads * sizeof(float)), k_scale(scales_of(of) * scale_bytes(of)),
      v_scale(scales_of(of) * scale_bytes(of)), slopes(of.heads * sizeof(float)), sinks(of.heads * sizeof(float)),
      starts((of.keys.size() + 1) * sizeof(int32_t)), lengths(of.keys.size() * sizeof(int32_t)),
      table(of.keys.size() * columns_of(of) * sizeof(int32_t)), centroids(16 * sizeof(float)) {
    std::mt19937 random(seed);
    const auto uniform = [&] { return static_cast<double>(random()) / 2147483648.0 - 1; };
    const auto fill = [&](char *to, tessera_type type, double size, size_t bytes) {
        for (size_t i = 0; i < bytes / bytes_of(type); i++)
            element_store(type, to, static_cast<int64_t>(i), size * uniform());
    };
    const auto fill_pages = [&](const Guarded &to, int hdim) {
        const double size = c.kv == TESSERA_KV_AUTO ? 1 : c.scales == Scales::kNone ? 3 : 120;
        for (int page = c.first_page; page < pages_of(c); page++)
            fill(to.as<char>() + page * distance_of(c, hdim), cached_type(c), size, bytes_of_page(c, hdim));
    };
    fill(q.as<char>(), type_of(c), 1, q.size());
    fill_pages(k, c.hdim_q), fill_pages(v, c.hdim_v);
    for (size_t i = 0; i < scales_of(c) && c.kv != TESSERA_KV_TURBO4; i++) {
        k_scale.as<float>()[i] = static_cast<float>(0.02 + 0.015 * uniform());
        v_scale.as<float>()[i] = static_cast<float>(0.02 + 0.015 * uniform());
    }
    for (int h = 0; h < c.heads; h++) {
        slopes.as<float>()[h] = std::exp2(-8.0F * static_cast<float>(h + 1) / static_cast<float>(c.heads));
        sinks.as<float>()[h] = static_cast<float>(h % 3) - 1;
    }
    std::vector<int32_t> pages(static_cast<size_t>(pages_of(c) - c.first_page));
    std::iota(pages.begin(), pages.end(), c.first_page);
    std::shuffle(pages.begin(), pages.end(), random);
    starts.as<int32_t>()[0] = 0;
    const int columns = columns_of(c);
    for (int b = 0; b < batch_of(c); b++) {
        lengths.as<int32_t>()[b] = c.keys[b];
        starts.as<int32_t>()[b + 1] = starts.as<int32_t>()[b] + (c.queries.empty() ? c.most : c.queries[b]);
        for (int i = 0; i < columns; i++)
            table.as<int32_t>()[b * columns + i] = i * c.page < c.keys[b] ? pages[b * columns + i] : -7;
    }
    for (int i = 0; i < 16; i++) centroids.as<float>()[i] = static_cast<float>(uniform()); // in any order
    set_args();
    set_scales();
    if (c.kv == TESSERA_KV_TURBO4)
        set_norms(random);
    else
        spoil_rest();
    if (c.apart) forbid_rest();
}

// What the sequences' keys lie in may be touched, and of pages in pieces whole pieces of 16 bytes.
void Memory::forbid_rest() {
    const bool linear = c.layout == TESSERA_KV_LINEAR;
    const auto bytes = static_cast<int>(bytes_of(cached_type(c))), piece = 16 / bytes;
    const int norm = c.kv == TESSERA_KV_TURBO4 && c.scales == Scales::kNone ? 2 : 0;
    const auto numbers = [&](int hdim) { return c.kv == TESSERA_KV_TURBO4 ? hdim / 2 + norm : hdim; };
    const int k_numbers = linear ? numbers(c.hdim_q) : piece, v_numbers = linear ? numbers(c.hdim_v) : 1;
    const int v_rows = linear ? 1 : std::min(piece, c.page);
    Parts of_k, of_v, of_k_scale, of_v_scale, entries;
    for (int b = 0; b < batch_of(c); b++)
        for (int j = 0; j < c.keys[b]; j++) {
            const size_t entry = static_cast<size_t>(b) * columns_of(c) + j / c.page;
            const int64_t page = table.as<int32_t>()[entry], row = j % c.page;
            entries.add(entry * sizeof(int32_t), sizeof(int32_t));
            for (int g = 0; g < c.heads_k; g++) {
                const auto scale = [&](int64_t of_page, int64_t of_head, int64_t of_row) {
                    return static_cast<size_t>(page * of_page + g * of_head + row * of_row) * scale_bytes(c);
                };
                for (int d = 0; d < numbers(c.hdim_q); d += k_numbers)
                    of_k.add(static_cast<size_t>(k_at(page, g, row, d) * bytes), k_numbers * bytes);
                for (int d = 0; d < numbers(c.hdim_v) && row % v_rows == 0; d += v_numbers)
                    of_v.add(static_cast<size_t>(v_at(page, g, row, d) * bytes), v_numbers * v_rows * bytes);
                of_k_scale.add(scale(args.batch_stride_k_scale, args.nhead_stride_k_scale, args.stride_k_scale),
                               scale_bytes(c));
                of_v_scale.add(scale(args.batch_stride_v_scale, args.nhead_stride_v_scale, args.stride_v_scale),
                               scale_bytes(c));
            }
        }
    k.allow_only(of_k.joined()), v.allow_only(of_v.joined()), table.allow_only(entries.joined());
    k_scale.allow_only(of_k_scale.joined()), v_scale.allow_only(of_v_scale.joined());
}

bool Memory::lies(int64_t page, int64_t row) const {
    const int columns = columns_of(c);
    for (int b = 0; b < batch_of(c); b++)
        for (int i = 0; i < columns; i++)
            if (table.as<int32_t>()[b * columns + i] == page) return i * c.page + row < c.keys[b];
    return false;
}

int64_t Memory::k_at(int64_t page, int64_t head, int64_t row, int64_t d) const {
    const auto x = 16 / static_cast<int64_t>(bytes_of(cached_type(c)));
    const bool linear = c.layout == TESSERA_KV_LINEAR;
    return page * args.batch_stride_k + head * args.nhead_stride_k +
           (linear ? row * args.stride_k + d : (d / x * c.page + row) * x + d % x);
}

int64_t Memory::v_at(int64_t page, int64_t head, int64_t row, int64_t d) const {
    const auto x = 16 / static_cast<int64_t>(bytes_of(cached_type(c)));
    const int64_t piece = c.layout == TESSERA_KV_VLLM ? c.page : x;
    const bool linear = c.layout == TESSERA_KV_LINEAR;
    return page * args.batch_stride_v + head * args.nhead_stride_v +
           (linear ? row * args.stride_v + d : (row / piece * c.hdim_v + d) * piece + row % piece);
}

// Numbers of rows that no key lies in are NaN where the cache's type has that.
void Memory::spoil_rest() {
    const auto bytes = static_cast<int64_t>(bytes_of(cached_type(c)));
    for (int64_t page = c.first_page; page < pages_of(c); page++)
        for (int64_t r = 0; r < c.page; r++)
            for (int g = 0; g < c.heads_k && !lies(page, r); g++) {
                for (int64_t d = 0; d < c.hdim_q; d++)
                    std::memset(k.as<char>() + k_at(page, g, r, d) * bytes, 0xff, bytes);
                for (int64_t d = 0; d < c.hdim_v; d++)
                    std::memset(v.as<char>() + v_at(page, g, r, d) * bytes, 0xff, bytes);
            }
}

// Of FP8_E4M3: one number of a key of the first head of the first sequence, and every third column of a value of the
// last head of the second one; the third sequence has none.
void Memory::make_codes_nan() {
    const auto page = [&](int b, int j) { return table.as<int32_t>()[b * columns_of(c) + j / c.page]; };
    const int of_k = c.keys[0] - 1, of_v = c.keys[1] / 2, last = c.heads_k - 1;
    k.as<uint8_t>()[k_at(page(0, of_k), 0, of_k % c.page, c.hdim_q / 2 + 1)] = 0x7f;
    for (int d = 0; d < c.hdim_v; d += 3)
        v.as<uint8_t>()[v_at(page(1, of_v), last, of_v % c.page, d)] = d % 2 ? 0xff : 0x7f;
}

// Bytes are any; norms are numbers, in each slot or apart, and in slots that no key lies in NaN.
void Memory::set_norms(std::mt19937 &random) {
    const auto norm = [&] { return 0.1 + static_cast<double>(random() % 1000) / 1000; };
    args.centroids_ptr = centroids.as<void>();
    for (const auto &[side, hdim, apart] : {std::tuple(&k, c.hdim_q, &k_scale), std::tuple(&v, c.hdim_v, &v_scale)}) {
        for (int page = c.first_page; page < pages_of(c); page++)
            std::generate_n(side->as<uint8_t>() + page * distance_of(c, hdim), bytes_of_page(c, hdim),
                            [&] { return static_cast<uint8_t>(random()); });
        const bool in_slots = c.scales == Scales::kNone;
        for (size_t n = 0; n < (in_slots ? rows_of(c) : scales_of(c)); n++) {
            const size_t of_page = static_cast<size_t>(c.heads_k) * c.page, beside = c.rows_first ? c.heads_k : 1;
            const bool is_used = !in_slots || lies(n / of_page, n / beside % c.page);
            uint16_t half = 0;
            element_store(TESSERA_TYPE_FP16, &half, 0, is_used ? norm() : NAN);
            const size_t slot = n / of_page * distance_of(c, hdim) + n % of_page * row_of(c, hdim);
            std::memcpy(in_slots ? side->as<uint8_t>() + slot + hdim / 2 : apart->as<uint8_t>() + 2 * n, &half,
                        sizeof half);
        }
    }
}

// The scale, or norm, of v of each sequence's last key: each key has its own, apart from the slots.
void Memory::make_last_scales_infinite() {
    for (int b = 0; b < batch_of(c); b++)
        for (int g = 0; g < c.heads_k && c.keys[b] > 0; g++) {
            const int last = c.keys[b] - 1, page = table.as<int32_t>()[b * columns_of(c) + last / c.page];
            const int64_t at =
                page * args.batch_stride_v_scale + g * args.nhead_stride_v_scale + last % c.page * args.stride_v_scale;
            element_store(c.kv == TESSERA_KV_TURBO4 ? TESSERA_TYPE_FP16 : TESSERA_TYPE_FP32, v_scale.as<void>(), at,
                          HUGE_VAL);
        }
}

void Memory::set_args() {
    tessera_paged_attention_traits &t = traits;
    tessera_paged_attention_args &a = args;
    t.hdim_q = a.hdim_q = c.hdim_q, t.hdim_v = a.hdim_v = c.hdim_v;
    t.data_type = c.dtype, t.kv_cache_dtype = c.kv, t.kv_memory_layout = c.layout;
    t.is_group_mode = !c.queries.empty();
    t.has_logits_soft_cap = c.cap, t.has_lse = c.lse, t.has_sink = c.sink;
    t.bias_type = c.alibi ? TESSERA_BIAS_ALIBI : TESSERA_BIAS_NONE;
    a.q_ptr = q.as<void>(), a.k_ptr = k.as<void>(), a.v_ptr = v.as<void>(), a.o_ptr = o.as<void>();
    a.lse_ptr = lse.as<void>(), a.alibi_slopes_ptr = slopes.as<void>(), a.sink_ptr = sinks.as<void>();
    a.seqstart_q_ptr = starts.as<void>(), a.seqlen_k_ptr = lengths.as<void>(), a.block_table_ptr = table.as<void>();
    a.batch = batch_of(c), a.max_seqlen_q = c.most, a.max_seqlen_k = *std::max_element(c.keys.begin(), c.keys.end());
    a.nhead_q = c.heads, a.nhead_k = c.heads_k;
    a.num_total_pages = pages_of(c), a.page_block_size = c.page, a.batch_stride_block_table = columns_of(c);
    a.sliding_window = c.window, a.scale_s = 0.25F, a.logits_soft_cap = 3, a.num_splits = c.splits;
    a.nhead_stride_q = c.hdim_q, a.stride_q = a.nhead_stride_q * c.heads, a.batch_stride_q = a.stride_q * c.most;
    a.nhead_stride_o = c.hdim_v, a.stride_o = a.nhead_stride_o * c.heads, a.batch_stride_o = a.stride_o * c.most;
    a.nhead_stride_lse = tokens_of(c), a.batch_stride_lse = c.most;
    const bool by_rows = c.layout == TESSERA_KV_LINEAR && c.rows_first;
    const int row_k = row_of(c, c.hdim_q), row_v = row_of(c, c.hdim_v);
    a.nhead_stride_k = static_cast<int64_t>(by_rows ? 1 : c.page) * row_k;
    a.nhead_stride_v = static_cast<int64_t>(by_rows ? 1 : c.page) * row_v;
    a.stride_k = c.layout != TESSERA_KV_LINEAR ? -1 : by_rows ? c.heads_k * row_k : row_k;
    a.stride_v = c.layout != TESSERA_KV_LINEAR ? -1 : by_rows ? c.heads_k * row_v : row_v;
    a.batch_stride_k = static_cast<int64_t>(distance_of(c, c.hdim_q) / bytes_of(cached_type(c)));
    a.batch_stride_v = static_cast<int64_t>(distance_of(c, c.hdim_v) / bytes_of(cached_type(c)));
}

void Memory::set_scales() {
    tessera_paged_attention_args &a = args;
    if (c.scales == Scales::kNone) return;
    a.k_scale_ptr = k_scale.as<void>(), a.v_scale_ptr = v_scale.as<void>();
    if (c.scales == Scales::kPage) {
        a.batch_stride_k_scale = a.batch_stride_v_scale = c.heads_k;
        a.nhead_stride_k_scale = a.nhead_stride_v_scale = 1;
    }
    if (c.scales == Scales::kToken) { // [page, row, head], and [page, head, row]
        a.batch_stride_k_scale = a.batch_stride_v_scale = static_cast<int64_t>(c.heads_k) * c.page;
        a.stride_k_scale = c.heads_k, a.nhead_stride_k_scale = 1;
        a.stride_v_scale = 1, a.nhead_stride_v_scale = c.page;
    }
}

struct Found {
    const Memory &x;
    fmha_fwd_tolerance tolerance;
    std::vector<bool> computed; // [token][head]
    std::string wrong;
};

void visit(void *user, int64_t, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    auto &found = *static_cast<Found *>(user);
    const Decode &c = found.x.c;
    double error = 0;
    const void *const o = paged_attention_o_row(&found.x.traits, &found.x.args, row);
    const double ratio = fmha_fwd_compare_row(type_of(c), o, want, c.hdim_v, &found.tolerance, &error);
    const double other = c.lse ? fmha_fwd_compare_lse(*paged_attention_lse_of(&found.x.traits, &found.x.args, row),
                                                      want, &found.tolerance, &error)
                               : 0;
    const int first = c.queries.empty() ? row->batch * c.most : found.x.starts.as<int32_t>()[row->batch];
    found.computed[static_cast<size_t>(first + row->query) * c.heads + row->head] = true;
    if (ratio <= 1 && other <= 1) return;
    std::ostringstream out;
    out << (ratio <= 1 ? "lse" : "o") << " of sequence " << row->batch << " head " << row->head << " query "
        << row->query << " is " << std::max(ratio, other) << " times as far off as it may be";
    found.wrong = out.str();
}

std::string Memory::wrong() const {
    Found found{*this, fmha_fwd_tolerance_of(c.dtype, "cpu"),
                std::vector<bool>(static_cast<size_t>(tokens_of(c)) * c.heads), ""};
    if (paged_attention_reference(&traits, &args, visit, &found) < 0) return "no memory for the reference";
    const size_t bytes = c.hdim_v * bytes_of(type_of(c));
    for (size_t n = 0; n < found.computed.size(); n++) // rows that are left alone
        for (size_t i = 0; !found.computed[n] && i < bytes; i++)
            if (o.as<unsigned char>()[n * bytes + i] != 0xff) found.wrong = "a row that was to be left alone is not";
    return found.wrong;
}

class PagedAttention : public OnDevice {
  protected:
    void run(Memory &x) {
        tessera_paged_attention_args a = x.args;
        Copies to(device, is_gpu());
        const size_t before_k = nobodys(x.c, x.c.hdim_q), before_v = nobodys(x.c, x.c.hdim_v);
        if (before_k > 0) to.in_order(1 << 24);
#define PLACE(field, from)                                                                                             \
    if (a.field) a.field = static_cast<decltype(a.field)>(to.of(from))
        PLACE(q_ptr, x.q);
        a.k_ptr = to.of_rest(x.k, before_k), a.v_ptr = to.of_rest(x.v, before_v);
        PLACE(o_ptr, x.o);
        PLACE(centroids_ptr, x.centroids);
        PLACE(k_scale_ptr, x.k_scale);
        PLACE(v_scale_ptr, x.v_scale);
        PLACE(lse_ptr, x.lse);
        PLACE(alibi_slopes_ptr, x.slopes);
        PLACE(sink_ptr, x.sinks);
        PLACE(block_table_ptr, x.table);
        PLACE(seqstart_q_ptr, x.starts);
        PLACE(seqlen_k_ptr, x.lengths);
#undef PLACE
        run_call(to, x, x.traits, a, tessera_paged_attention_workspace_size, tessera_paged_attention);
    }
    // Runs equal calls by 1 and by 4 threads, whose results are to be the same to the bit.
    void expect_same_by_threads(Memory &one, Memory &four) {
        setenv("TESSERA_NUM_THREADS", "1", 1);
        run(one);
        setenv("TESSERA_NUM_THREADS", "4", 1);
        run(four);
        unsetenv("TESSERA_NUM_THREADS");
        EXPECT_EQ(std::memcmp(one.o.as<void>(), four.o.as<void>(), one.o.size()), 0) << one.c.words();
    }
    void check(const Decode &any, uint32_t seed) {
        const Decode c = fit_decode(any);
        Memory memory(c, seed);
        run(memory);
        if (is_served) {
            EXPECT_EQ(memory.wrong(), "") << c.words() << ", seed " << seed;
        }
    }
    // GPUs serve 16-bit types, those of AMD fp32 over caches as it is, and head dims that are multiples of 8, or 16
    // where caches are quantised. Pages in pieces have 8 rows at least.
    Decode fit_decode(Decode c) const {
        if (!is_gpu()) return c;
        c.apart = c.apart && is_simulated();
        const int unit = c.kv == TESSERA_KV_AUTO ? 8 : 16;
        if (c.dtype == TESSERA_FMHA_FP32 && (is_cuda() || c.kv != TESSERA_KV_AUTO)) c.dtype = TESSERA_FMHA_FP16;
        if (c.layout == TESSERA_KV_VLLM) c.page = std::max(c.page, 8);
        c.hdim_q = (c.hdim_q + unit - 1) / unit * unit, c.hdim_v = (c.hdim_v + unit - 1) / unit * unit;
        return c;
    }
};

TEST_P(PagedAttention, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(120, 4000) && !HasFailure(); n++) check(draw(random), seed + static_cast<uint32_t>(n));
}

// Of caches of any layout and type, their scales and tables, nothing but the sequences' keys and their entries is
// touched.
TEST_P(PagedAttention, PagesApart) {
    const uint32_t seed = test_seed() + 2;
    std::mt19937 random(seed);
    if (!sees_touches()) GTEST_SKIP() << "it does not say what is touched";
    for (int n = 0; n < count(40, 1000) && !HasFailure(); n++) {
        Decode c = draw(random);
        c.apart = true;
        check(c, seed + static_cast<uint32_t>(n));
    }
}

// Contexts that are cut into parts, whose scales are those of each part's rows.
TEST_P(PagedAttention, LongContexts) {
    for (int kv = 0; kv < TESSERA_KV_CACHE_DTYPE_COUNT; kv++)
        for (const Scales scales : {Scales::kNone, Scales::kTensor, Scales::kPage, Scales::kToken})
            for (const int most : {1, 4}) {
                if (kv == TESSERA_KV_AUTO && scales != Scales::kNone) continue;
                if (!is_due(5)) continue;
                Decode c;
                c.kv = static_cast<tessera_kv_cache_dtype>(kv);
                c.scales = scales;
                c.most = most;
                c.keys = {4097, 1};
                c.sink = true;
                check(c, 3);
            }
}

// Nothing past the last key makes NaN of an infinite scale: lengths are no multiples of a tile.
TEST_P(PagedAttention, InfiniteScalesOfTheLastKey) {
    for (const tessera_kv_cache_dtype kv : {TESSERA_KV_FP8_E4M3, TESSERA_KV_INT8, TESSERA_KV_TURBO4})
        for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP16})
            for (const int hdim : {64, 128, 256})
                for (const tessera_kv_layout layout : {TESSERA_KV_LINEAR, TESSERA_KV_VLLM, TESSERA_KV_VECTORIZED})
                    for (const int heads_k : {2, 8}) {
                        if (!is_due(7)) continue;
                        Decode any;
                        any.dtype = dtype, any.kv = kv, any.scales = Scales::kToken;
                        any.layout = kv == TESSERA_KV_TURBO4 ? TESSERA_KV_LINEAR : layout;
                        any.hdim_q = any.hdim_v = hdim, any.heads_k = heads_k;
                        any.keys = {1, 33, 100};
                        const Decode c = fit_decode(any);
                        Memory memory(c, 9);
                        memory.make_last_scales_infinite();
                        run(memory);
                        if (is_served) {
                            EXPECT_EQ(memory.wrong(), "") << c.words();
                        }
                    }
}

// Rows of q of any size beside one another, of zeros, with a number far above the others, and with an infinite one or
// NaN; over one key, whose score is lse, and over many that weigh the same, or nearly nothing beside one of them.
TEST_P(PagedAttention, UnitsOfRows) {
    if (is_gpu()) GTEST_SKIP() << "units are those of CPUs";
    for (const tessera_kv_cache_dtype kv : {TESSERA_KV_INT8, TESSERA_KV_TURBO4, TESSERA_KV_FP8_E4M3})
        for (const int hdim : {64, 72, 512})
            for (const int heads : {1, 3, 8, 11})
                for (const int keys : {1, 64, 333}) {
                    if (!is_due(5)) continue;
                    Decode c;
                    c.dtype = TESSERA_FMHA_BF16, c.kv = kv, c.scales = Scales::kToken;
                    c.hdim_q = c.hdim_v = hdim, c.heads = heads, c.heads_k = 1, c.keys = {keys};
                    Memory memory(c, 11);
                    const float sizes[] = {1, 0, 0x1p-130F, 0x1p-60F, 8, 0x1p-20F, 1, 1};
                    for (int h = 0; h < heads; h++)
                        for (int d = 0; d < hdim; d++) {
                            const int64_t at = static_cast<int64_t>(h) * hdim + d;
                            const double x = element_load(TESSERA_TYPE_BF16, memory.q.as<void>(), at) * sizes[h % 8];
                            const double far = h % 8 == 5 ? 4 : h % 8 == 6 ? HUGE_VAL : NAN;
                            element_store(TESSERA_TYPE_BF16, memory.q.as<void>(), at, h % 8 > 4 && d == 5 ? far : x);
                        }
                    run(memory);
                    if (is_served) {
                        EXPECT_EQ(memory.wrong(), "") << c.words();
                    }
                }
}

// Codes of NaN are NaN: for a query that sees such a key o and lse are, and the columns of o of such a value; others
// are numbers.
TEST_P(PagedAttention, NanOfCodes) {
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP16, TESSERA_FMHA_FP32})
        for (const tessera_kv_layout layout : {TESSERA_KV_LINEAR, TESSERA_KV_VLLM, TESSERA_KV_VECTORIZED})
            for (const int hdim : {64, 80, 128, 256})
                for (const int most : {1, 3}) {
                    if (!is_due(4)) continue;
                    Decode any;
                    any.dtype = dtype, any.kv = TESSERA_KV_FP8_E4M3, any.layout = layout, any.most = most;
                    any.hdim_q = any.hdim_v = hdim,
                    any.keys = {hdim == 64 ? 1033 : 33, 150, 70}; // 1033: cut into parts
                    const Decode c = fit_decode(any);
                    Memory memory(c, 10);
                    memory.make_codes_nan();
                    run(memory);
                    if (is_served) {
                        EXPECT_EQ(memory.wrong(), "") << c.words();
                    }
                }
}

// Slots of turbo4 that all begin as far behind a multiple of 16 bytes as others of their head, for more heads and
// queries than a product has columns, with lengths that end in each quarter of 128 keys, and norms apart, which shift
// rows.
TEST_P(PagedAttention, SlotsInStep) {
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP16})
        for (const int hdim : {64, 128, 256})
            for (const int slack : {0, 6, 14})
                for (const auto &[heads, heads_k] : {std::pair(8, 8), std::pair(32, 8), std::pair(20, 2)})
                    for (const Scales scales : {Scales::kNone, Scales::kToken}) {
                        if (!is_due(9)) continue;
                        Decode c;
                        c.dtype = dtype, c.kv = TESSERA_KV_TURBO4, c.scales = scales, c.slack = slack;
                        c.hdim_q = c.hdim_v = hdim, c.heads = heads, c.heads_k = heads_k;
                        c.most = heads == 32 ? 3 : 1;
                        c.keys = {1, 31, 33, 100, 120, 420};
                        check(c, 12);
                    }
}

// What finds rows, and lists scales of several heads, may be of another target than what attends: all of both.
TEST_P(PagedAttention, TargetsOfBothKinds) {
    if (is_gpu()) GTEST_SKIP() << "tasks of CPUs";
    const tessera_table *const finding = tessera_paged_attention_get_table();
    const tessera_table *const attending = tessera_fmha_fwd_get_table();
    for (const auto kv : {TESSERA_KV_FP8_E4M3, TESSERA_KV_INT8, TESSERA_KV_TURBO4})
        for (const auto dtype : {TESSERA_FMHA_FP32, TESSERA_FMHA_FP16, TESSERA_FMHA_BF16})
            for (uint32_t n = 0; n < finding->row_count * attending->row_count; n++) {
                const tessera_instance *const finds = tessera_row(finding, n / attending->row_count);
                const tessera_instance *const attends = tessera_row(attending, n % attending->row_count);
                if (attends->pipeline != std::string("decode")) continue;
                Decode c;
                c.dtype = dtype, c.kv = kv, c.scales = Scales::kToken, c.hdim_q = c.hdim_v = 64;
                c.heads = c.heads_k = 8, c.keys = {1, 31, 33, 37, 70, 100};
                Memory memory(c, 12);
                memory.args.instance = reinterpret_cast<const tessera_paged_attention_instance *>(finds);
                memory.args.attends = reinterpret_cast<const tessera_fmha_fwd_instance *>(attends);
                run(memory);
                if (!is_served) continue;
                EXPECT_EQ(memory.wrong(), "") << c.words() << " " << finds->name << " " << attends->name;
            }
    EXPECT_GT(served, 0);
}

// Rows, or slots of turbo4, of several heads that are copied together, in pages of any size: scales, windows, sinks and
// all else, and contexts that are cut into parts.
TEST_P(PagedAttention, HeadsBeside) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(12, 1800) && !HasFailure(); n++) {
        Decode c = draw(random);
        c.kv = static_cast<tessera_kv_cache_dtype>(TESSERA_KV_FP8_E4M3 + random() % 3);
        c.layout = TESSERA_KV_LINEAR, c.rows_first = c.kv == TESSERA_KV_TURBO4 || random() % 4 != 0;
        c.scales = c.kv == TESSERA_KV_TURBO4 ? Scales::kNone : static_cast<Scales>(random() % 4), c.slack = 0;
        c.heads_k = pick(random, {8, 8, 8, 2, 4, 16}), c.heads = c.heads_k * pick(random, {1, 3, 4, 9});
        c.hdim_q = c.hdim_v = pick(random, {64, 128, 128, 256});
        c.page = pick(random, {1, 2, 8, 16, 16, 64, 256});
        if (random() % 4 == 0) c.keys[0] = 4100;
        check(c, seed + static_cast<uint32_t>(n));
    }
}

// As many queries of a key head as products have columns, and one more; lengths at the edges of tiles and of what a
// lane has of them.
TEST_P(PagedAttention, EdgesOfProducts) {
    if (!is_gpu()) GTEST_SKIP() << "products of GPUs";
    static const std::pair<int, int> rows[] = {{1, 1}, {8, 1}, {8, 2}, {16, 1}, {17, 1}, {5, 3}, {32, 1}, {11, 3}};
    std::mt19937 random(test_seed());
    for (int kv = TESSERA_KV_FP8_E4M3; kv < TESSERA_KV_CACHE_DTYPE_COUNT; kv++)
        for (const tessera_kv_layout layout : {TESSERA_KV_LINEAR, TESSERA_KV_VLLM, TESSERA_KV_VECTORIZED})
            for (const int hdim : {64, 80, 128, 256})
                for (const auto &[heads, most] : rows) {
                    if (!is_due(10)) continue;
                    Decode c;
                    c.dtype = random() % 2 ? TESSERA_FMHA_BF16 : TESSERA_FMHA_FP16;
                    c.kv = static_cast<tessera_kv_cache_dtype>(kv);
                    c.layout = kv == TESSERA_KV_TURBO4 ? TESSERA_KV_LINEAR : layout;
                    c.rows_first = random() % 2, c.apart = random() % 2;
                    c.scales = random() % 2 ? Scales::kToken : Scales::kNone;
                    c.heads = 2 * heads, c.heads_k = 2, c.most = most, c.hdim_q = c.hdim_v = hdim;
                    c.keys = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
                    c.page = pick(random, {c.layout == TESSERA_KV_VECTORIZED ? 16 : 8, 16, 64});
                    c.window = pick(random, {0, 0, 1, 70});
                    c.alibi = random() % 3 == 0, c.cap = random() % 3 == 0, c.sink = random() % 3 == 0;
                    c.splits = pick(random, {0, 1, 2});
                    check(c, test_seed() + static_cast<uint32_t>(heads));
                }
}

// So many sequences that AMD's GPUs are full, where a wave reads rows of a linear page by itself.
TEST_P(PagedAttention, ManySequences) {
    if (!is_gpu()) GTEST_SKIP() << "tasks of GPUs";
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(12, 300) && !HasFailure(); n++) {
        if (!is_due(1)) continue;
        Decode c = draw(random);
        c.dtype = random() % 2 ? TESSERA_FMHA_BF16 : TESSERA_FMHA_FP16;
        c.kv = static_cast<tessera_kv_cache_dtype>(TESSERA_KV_FP8_E4M3 + random() % 3);
        c.layout = TESSERA_KV_LINEAR;
        c.heads_k = 4, c.heads = 4 * pick(random, {1, 2, 4, 7});
        c.hdim_q = c.hdim_v = pick(random, {64, 80, 128, 128, 256});
        c.page = pick(random, {1, 2, 4, 16, 16, 64});
        c.most = pick(random, {1, 1, 1, 2});
        c.queries.clear(), c.keys.resize(320);
        for (int &keys : c.keys) keys = pick(random, {0, 1, 7, 31, 32, 33, 57, 66});
        check(c, seed + static_cast<uint32_t>(n));
    }
}

// So many tasks that on a CPU each has rows of several key heads: of all types of caches, with lengths that end
// anywhere in a block, and contexts that are cut into parts. Bits do not depend on threads.
TEST_P(PagedAttention, HeadsShareTasks) {
    if (is_gpu()) GTEST_SKIP() << "tasks of CPUs";
    std::mt19937 random(test_seed());
    for (int kv = 0; kv < TESSERA_KV_CACHE_DTYPE_COUNT; kv++)
        for (const bool is_long : {false, true}) {
            if (!is_due(2)) continue;
            Decode c;
            c.kv = static_cast<tessera_kv_cache_dtype>(kv);
            c.scales = kv == TESSERA_KV_AUTO || random() % 2 ? Scales::kNone : Scales::kToken;
            c.heads_k = pick(random, {6, 8}), c.heads = c.heads_k * (is_long ? 1 : pick(random, {1, 2, 4, 7}));
            c.page = pick(random, {1, 8, 16, 64, 128});
            c.hdim_q = pick(random, {64, 72, 128}), c.hdim_v = pick(random, {64, 80, 128});
            c.most = is_long ? 1 : pick(random, {1, 2}), c.window = pick(random, {0, 0, 40});
            c.alibi = random() % 3 == 0, c.sink = random() % 3 == 0;
            if (is_long) c.keys = {4200, 5};
            for (int n = 0; n < 12 && !is_long; n++) c.keys.push_back(pick(random, {1, 31, 63, 64, 65, 128, 150}));
            Memory one(c, 21), four(c, 21);
            expect_same_by_threads(one, four);
            EXPECT_EQ(one.wrong(), "") << c.words();
        }
}

// A mixed batch: nothing of a sequence that is being prefilled is read but where its queries are.
TEST_P(PagedAttention, LeavesPrefillAlone) {
    Decode c;
    c.most = 2;
    c.queries = {1, 9, 2, 3}, c.keys = {40, 50, 60, 70};
    Memory x(c, 4);
    for (const int b : {1, 3}) {
        x.lengths.as<int32_t>()[b] = -5;
        std::fill_n(x.table.as<int32_t>() + b * columns_of(c), columns_of(c), 1 << 30);
    }
    run(x);
    if (is_served) {
        EXPECT_EQ(x.wrong(), "");
    }
}

// Numbers of pages that 16 bits do not hold.
TEST_P(PagedAttention, ManyPages) {
    for (const tessera_kv_layout layout : {TESSERA_KV_LINEAR, TESSERA_KV_VLLM}) {
        Decode c;
        c.kv = TESSERA_KV_FP8_E4M3, c.layout = layout;
        c.page = 8, c.heads = c.heads_k = 1, c.hdim_q = c.hdim_v = 16;
        c.keys = {100, 40};
        c.first_page = 70000;
        check(c, 5);
    }
}

// Numbers of elements, and of bytes, that 32 bits do not hold.
TEST_P(PagedAttention, LargeCaches) {
    for (const tessera_kv_layout layout : {TESSERA_KV_LINEAR, TESSERA_KV_VLLM, TESSERA_KV_VECTORIZED})
        for (const tessera_kv_cache_dtype kv : {TESSERA_KV_AUTO, TESSERA_KV_INT8}) {
            Decode c;
            c.kv = kv, c.layout = layout;
            c.heads = 4, c.heads_k = 1; // 2048 elements in a page
            c.keys = {100, 0, 17};
            c.first_page = (1 << 21) + 1;
            check(c, 8);
        }
}

TEST_P(PagedAttention, BitsDoNotDependOnThreads) {
    std::mt19937 random(6);
    for (int n = 0; n < count(20, 60); n++) {
        const Decode c = fit_decode(draw(random));
        Memory one(c, 7), four(c, 7);
        expect_same_by_threads(one, four);
    }
}

ON_DEVICES(PagedAttention);

} // namespace
