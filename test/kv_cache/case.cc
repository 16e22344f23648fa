// SPDX-License-Identifier: MIT
#include "case.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "tessera/kernel/fmha_fwd.h"

// ---- memory

void Parts::add(size_t first, size_t bytes) {
    if (!all.empty() && first == all.back().end)
        all.back().end += bytes;
    else
        all.push_back({first, first + bytes});
}

std::vector<Part> Parts::joined() {
    std::sort(all.begin(), all.end(), [](const Part &a, const Part &b) { return a.first < b.first; });
    std::vector<Part> joined;
    for (const Part &part : all)
        if (!joined.empty() && part.first <= joined.back().end)
            joined.back().end = std::max(joined.back().end, part.end);
        else
            joined.push_back(part);
    return joined;
}

Guarded::Guarded(size_t wanted, unsigned char fill, size_t untouched) : bytes(wanted) {
    const auto unit = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped = (bytes + unit - 1) / unit * unit + 2 * unit;
    all = static_cast<unsigned char *>(
        mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (all == MAP_FAILED || mprotect(all + unit, mapped - 2 * unit, PROT_READ | PROT_WRITE) != 0)
        throw std::bad_alloc();
    data = all + mapped - unit - bytes;
    unsigned char *const first = untouched ? data + untouched : all + unit;
    std::memset(first, fill, static_cast<size_t>(all + mapped - unit - first));
}

void Guarded::allow_only(std::vector<Part> parts) {
    const auto unit = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    unsigned char *free = all + unit; // of the first page that no part so far needs
    const auto forbid_until = [&](const unsigned char *needed) {
        const size_t pages = needed > free ? static_cast<size_t>(needed - free) / unit : 0;
        if (pages > 0 && mprotect(free, pages * unit, PROT_NONE) != 0) throw std::bad_alloc();
    };
    for (const Part &part : parts) {
        forbid_until(data + part.first);
        free = std::max(free, all + (static_cast<size_t>(data - all) + part.end + unit - 1) / unit * unit);
    }
    forbid_until(all + mapped - unit);
    allowed = std::move(parts), restricted = true;
}

size_t Guarded::apart(size_t used) {
    const auto unit = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (used + unit - 1) / unit * unit + unit;
}

Guarded::~Guarded() { munmap(all, mapped); }

// ---- devices

void *Copies::place(size_t bytes) {
    const size_t unit = 256, whole = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
    if (whole <= left) {
        char *const here = next;
        next += whole, left -= whole;
        return here;
    }
    void *made = nullptr;
    if (tessera_device_malloc(device, std::max<size_t>(bytes, 1), &made) != TESSERA_SUCCESS) throw std::bad_alloc();
    owned.push_back(made);
    return made;
}

bool Copies::is_simulated() const {
    return is_needed && std::string(tessera_device_name(device)).compare(0, 4, "sim:") == 0;
}

// Calls an entry point of the HIP runtime that simulated GPUs are on.
template <typename... Parameters> static int hip(const char *name, Parameters... parameters) {
    int error = -1;
#ifdef TESSERA_SIM
    void *const library = dlopen(TESSERA_SIM, RTLD_NOW | RTLD_NOLOAD);
    const auto function = library ? reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name)) : nullptr;
    if (function) error = function(parameters...);
    if (library) dlclose(library);
#else
    (void)name, ((void)parameters, ...);
#endif
    return error;
}

void Copies::lend(const Guarded &x) {
    if (std::find(lenders.begin(), lenders.end(), x.as<void>()) != lenders.end()) return;
    lenders.push_back(x.as<void>());
    for (const Part &part : x.parts()) {
        void *const first = x.as<char>() + part.first;
        if (hip("hipHostRegister", first, part.end - part.first, 0U) != 0) throw std::runtime_error("hipHostRegister");
        lent.push_back(first);
    }
}

void *Copies::of(const Guarded &x) {
    if (!x.is_restricted() || !is_simulated()) return of(x.as<void>(), x.size());
    lend(x);
    return x.as<void>();
}

void *Copies::of(const void *host, size_t bytes) {
    if (!is_needed) return const_cast<void *>(host);
    void *&copy = there[host];
    if (copy) return copy;
    copy = place(bytes);
    if (tessera_device_copy_to(device, copy, host, bytes) != TESSERA_SUCCESS) throw std::bad_alloc();
    return copy;
}

void *Copies::of_workspace(const Guarded &x) {
    const char *const sanitized = std::getenv("TESSERA_SIM_SANITIZE");
    return is_simulated() && sanitized && sanitized == std::string("1") ? place(x.size()) : of(x);
}

void *Copies::of_rest(const Guarded &x, size_t bytes) {
    if (!is_needed || bytes == 0) return of(x);
    const auto copy = there.find(x.as<char>() + bytes);
    if (copy != there.end()) return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(copy->second) - bytes);
    if (tessera_device_get_facts(device)->targets >> TESSERA_TARGET_SM_90A & 1) {
        char *const whole = static_cast<char *>(place(x.size()));
        if (tessera_device_copy_to(device, whole + bytes, x.as<char>() + bytes, x.size() - bytes) != TESSERA_SUCCESS)
            throw std::bad_alloc();
        there[x.as<char>() + bytes] = whole + bytes;
        return whole;
    }
    char *const rest = static_cast<char *>(of(x.as<char>() + bytes, x.size() - bytes));
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(rest) - bytes);
}

void Copies::in_order(size_t bytes) {
    if (!is_needed || next) return;
    next = static_cast<char *>(place(bytes));
    left = bytes;
}

void Copies::get_rest(const Guarded &x, size_t bytes) {
    const auto copy = there.find(x.as<char>() + bytes);
    if (copy != there.end()) tessera_device_copy_from(device, x.as<char>() + bytes, copy->second, x.size() - bytes);
}

Copies::~Copies() {
    for (auto part = lent.rbegin(); part != lent.rend(); ++part) hip("hipHostUnregister", *part);
    for (void *const copy : owned) tessera_device_free(device, copy);
}

std::vector<const char *> test_devices() {
    const char *const given = std::getenv("TESSERA_TEST_DEVICE");
    if (given && *given) return {given};
    return {"cpu", "sim:gfx90a", "sim:gfx942", "sim:gfx950"};
}

bool OnDevice::is_sampled() const { return is_simulated() && !test_all(); }

bool OnDevice::is_due(int days) {
    const bool due = is_sampled() ? is_dealt(static_cast<uint32_t>(days)) : ::is_due();
    put_off += !due;
    return due;
}

bool OnDevice::is_dealt(uint32_t days) {
    std::vector<std::string> gpus;
    for (const std::string name : test_devices())
        if (name != "cpu") gpus.push_back(name);
    const uint32_t turn = test_seed() + asked++;
    return turn % days == 0 && gpus[turn / days % gpus.size()] == GetParam();
}

bool OnDevice::has_instances() const {
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++) {
        const auto *row = reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
        if (tessera_device_get_facts(device)->targets >> row->base.target & 1 && row->keys_in & TESSERA_KEYS_IN_PAGES)
            return true;
    }
    return false;
}

void OnDevice::SetUp() {
    const tessera_status status = tessera_device_open(GetParam(), &device);
    if (GetParam()[0] == 's' && status != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    ASSERT_EQ(status, TESSERA_SUCCESS) << tessera_last_error();
    if (is_gpu() && !has_instances()) GTEST_SKIP() << "this build has no instance for it";
}

void OnDevice::TearDown() {
    tessera_device_close(device);
    if (!IsSkipped()) {
        EXPECT_GT(served + put_off, 0);
    }
}

// Scores of a case.
static int64_t scores_of(const Case &c) {
    const int64_t queries = std::accumulate(c.seqlen_q.begin(), c.seqlen_q.end(), 0);
    return queries * c.heads * *std::max_element(c.seqlen_k.begin(), c.seqlen_k.end());
}

// Of large cases, which take a simulated GPU a quarter of a minute: one key head of all, then half of the queries.
static void shrink(Case *c) {
    const int64_t most = 1 << 20;
    if (scores_of(*c) > most) c->heads /= c->heads_k, c->heads_k = 1;
    while (scores_of(*c) > most && *std::max_element(c->seqlen_q.begin(), c->seqlen_q.end()) > 1)
        for (int &queries : c->seqlen_q) queries = (queries + 1) / 2;
}

// GPUs serve types of 16 bits, those of AMD fp32, and with products of fp8 also these, results in fp32 on AMD's alone;
// head dims that are multiples of 8, and rows that begin at multiples of 16 bytes.
Case OnDevice::fit(Case c) const {
    if (!is_gpu()) return c;
    c.apart = c.apart && is_simulated();
    if (has_fp8()) c.fp8 = tessera_device_fp8_format(device);
    if (c.dtype == TESSERA_FMHA_FP32 && is_cuda()) c.dtype = TESSERA_FMHA_FP16;
    if (c.dtype >= TESSERA_FMHA_FP8 && !has_fp8()) c.dtype = TESSERA_FMHA_FP16;
    if (c.dtype == TESSERA_FMHA_FP8FP32 && is_cuda()) c.dtype = TESSERA_FMHA_FP8BF16;
    const int multiple = c.dtype >= TESSERA_FMHA_FP8 ? 16 : 8;
    c.hdim_q = (c.hdim_q + multiple - 1) / multiple * multiple;
    c.hdim_v = (c.hdim_v + multiple - 1) / multiple * multiple;
    if (is_sampled()) shrink(&c);
    return c;
}

// ---- cases

std::string Case::words() const {
    static const char *const names[] = {"tokens", "sequences", "indexed", "pages", "gappy"};
    std::ostringstream out;
    out << tessera_fmha_dtype_string(dtype) << (group ? " group " : " batch ") << names[static_cast<int>(keys)]
        << " page " << page << " from " << first_block << (apart ? " apart" : "") << " heads " << heads << "/"
        << heads_k << " d " << hdim_q << "/" << hdim_v << " sq";
    for (const int n : seqlen_q) out << " " << n;
    out << " sk";
    for (const int n : seqlen_k) out << " " << n;
    out << " lengths " << lengths << " mask " << tessera_mask_string(mask) << " " << left << "," << right << ","
        << sink_size << " bias " << tessera_bias_string(bias) << " cap " << cap << " sink " << sink << " lse " << lse
        << " rows_first " << rows_first << " splits " << splits << " drop " << drop << " scales "
        << tessera_qscale_string(scales);
    return out.str();
}

namespace {

int pick(std::mt19937 &random, std::initializer_list<int> of) { return of.begin()[random() % of.size()]; }

} // namespace

Case draw_case(std::mt19937 &random) {
    static const tessera_fmha_dtype dtypes[] = {TESSERA_FMHA_FP32, TESSERA_FMHA_FP16,    TESSERA_FMHA_BF16,
                                                TESSERA_FMHA_FP8,  TESSERA_FMHA_FP8BF16, TESSERA_FMHA_FP8FP32};
    Case c;
    c.dtype = dtypes[random() % 6];
    c.group = random() % 2;
    c.keys = c.group ? static_cast<Keys>(pick(random, {0, 3, 3, 4})) : static_cast<Keys>(pick(random, {1, 2, 3, 3}));
    c.page = pick(random, {1, 2, 3, 16, 24, 128, 1024});
    c.batch = pick(random, {1, 2, 5});
    c.heads_k = pick(random, {1, 2});
    c.heads = c.heads_k * pick(random, {1, 1, 4, 5, 16});
    c.hdim_q = pick(random, {1, 32, 40, 64, 128});
    c.hdim_v = pick(random, {33, 64, 128});
    const int queries = pick(random, {1, 1, 1, 3, 17, 130});
    for (int b = 0; b < c.batch; b++) {
        c.seqlen_q.push_back(c.group && random() % 2 ? static_cast<int>(random() % (queries + 1)) : queries);
        c.seqlen_k.push_back(pick(random, {0, 1, 15, 16, 31, 33, 127, 129, 200, 333, 700}));
    }
    c.lengths = random() % 2;
    c.mask = static_cast<tessera_mask>(random() % 4);
    c.left = c.mask == TESSERA_MASK_NONE ? -1 : pick(random, {-1, 0, 7, 40, 150});
    c.right = c.mask == TESSERA_MASK_NONE ? -1 : pick(random, {-1, 0, 0, 5});
    c.sink_size = c.mask != TESSERA_MASK_NONE && random() % 4 == 0 ? 3 : 0;
    c.sink = random() % 3 == 0;
    c.lse = random() % 4 != 0;
    c.bias = static_cast<tessera_bias>(random() % 3);
    c.cap = c.bias != TESSERA_BIAS_ELEMENTWISE && random() % 3 == 0;
    c.rows_first = random() % 2;
    c.splits = pick(random, {0, 1, 2, 3, 8, 31, 128});
    return c;
}

const char *const kNone = "this build has no instance for it";

int count_of_cases(int some, int all) {
    const int days = static_cast<int>(test_days());
    return test_all() ? all : (some + days - 1) / days;
}

// ---- tensors

namespace {

int bytes_of(tessera_type type) { return element_bits(type) / 8; }
tessera_type in_of(const Case &c) { return c.input(); }

int sum_of(const std::vector<int> &list) { return std::accumulate(list.begin(), list.end(), 0); }
int most_of(const std::vector<int> &list) { return *std::max_element(list.begin(), list.end()); }
bool paged(const Case &c) { return c.keys == Keys::kPages || c.keys == Keys::kGappy; }

// Rows behind a sequence's keys that are nobody's.
int rest_of(const Case &c) { return c.keys == Keys::kTokens && c.lengths ? 5 : 0; }
// Entries of the table for a sequence, and blocks of the cache, some of which no sequence has.
int columns_of(const Case &c) {
    const int keys = most_of(c.seqlen_k) + (c.keys == Keys::kGappy ? c.page - 1 : 0);
    return paged(c) ? (keys + c.page - 1) / c.page : 1;
}
int blocks_of(const Case &c) {
    if (c.keys == Keys::kTokens) return 1;
    return c.first_block + (paged(c) ? c.batch * columns_of(c) + 2 : c.batch + (c.keys == Keys::kIndexed ? 2 : 0));
}
int rows_of(const Case &c) {
    return paged(c)                  ? c.page
           : c.keys == Keys::kTokens ? sum_of(c.seqlen_k) + c.batch * rest_of(c)
                                     : most_of(c.seqlen_k);
}
// Elements of a block of the cache, and from one to the next.
int64_t elements_of(const Case &c, int hdim) { return static_cast<int64_t>(c.heads_k) * rows_of(c) * hdim; }
int64_t distance_of(const Case &c, int hdim) {
    const auto bytes = static_cast<size_t>(bytes_of(in_of(c)));
    const int64_t elements = elements_of(c, hdim);
    return c.apart ? static_cast<int64_t>(Guarded::apart(elements * bytes) / bytes) : elements;
}
size_t size_of(const Case &c, int hdim) {
    return static_cast<size_t>((blocks_of(c) - 1) * distance_of(c, hdim) + elements_of(c, hdim)) * bytes_of(in_of(c));
}
size_t queries_of(const Case &c) {
    return c.group ? static_cast<size_t>(sum_of(c.seqlen_q)) : static_cast<size_t>(c.batch * most_of(c.seqlen_q));
}

// Of a tensor of scales of rows.
size_t count_of_scales(const Case &c, char tensor) {
    const bool tokens = c.scales == TESSERA_QSCALE_TOKEN_HEAD;
    if (c.scales == TESSERA_QSCALE_NONE) return 0;
    if (tensor == 'q') return tokens ? queries_of(c) * c.heads : 1;
    if (tensor == 'v' && tokens) return c.heads_k;
    return static_cast<size_t>(blocks_of(c)) * c.heads_k * (tokens ? rows_of(c) : 1);
}

void fill(const Case &c, std::mt19937 &random, const Guarded &to, tessera_type type, size_t first, int count) {
    const double size = type == TESSERA_TYPE_E4M3 || type == TESSERA_TYPE_E4M3FNUZ ? 200 : 1;
    (void)c;
    for (int i = 0; i < count; i++)
        element_store(type, to.as<void>(), static_cast<int64_t>(first) + i,
                      size * (static_cast<double>(random()) / 2147483648.0 - 1));
}

} // namespace

Tensors::Tensors(const Case &of, uint32_t seed)
    : c(of), max_q(most_of(of.seqlen_q)), max_k(most_of(of.seqlen_k)), total_q(sum_of(of.seqlen_q)),
      blocks(blocks_of(of)), rows(rows_of(of)),
      columns(columns_of(of)), k_stride{distance_of(of, of.hdim_q),
                                        of.rows_first ? of.hdim_q : static_cast<int64_t>(rows) * of.hdim_q,
                                        of.rows_first ? static_cast<int64_t>(of.heads_k) * of.hdim_q : of.hdim_q},
      v_stride{distance_of(of, of.hdim_v), of.rows_first ? of.hdim_v : static_cast<int64_t>(rows) * of.hdim_v,
               of.rows_first ? static_cast<int64_t>(of.heads_k) * of.hdim_v : of.hdim_v},
      q(queries_of(of) * of.heads * of.hdim_q * bytes_of(in_of(of))),
      k(size_of(of, of.hdim_q), of.nan(), nobodys(k_stride)), v(size_of(of, of.hdim_v), of.nan(), nobodys(v_stride)),
      o(queries_of(of) * of.heads * of.hdim_v * bytes_of(of.output()), of.output() == of.input() ? of.nan() : 0xff),
      lse(queries_of(of) * of.heads * sizeof(float)),
      bias(of.bias == TESSERA_BIAS_ALIBI
               ? of.heads * sizeof(float)
               : queries_of(of) * of.heads * max_k * bytes_of(fmha_fwd_bias_element(of.dtype))),
      sinks(of.heads * sizeof(float)), table(static_cast<size_t>(of.batch) * columns * sizeof(int32_t)),
      descales(3 * sizeof(float)), q_scales(count_of_scales(of, 'q') * sizeof(float)),
      k_scales(count_of_scales(of, 'k') * sizeof(float)), v_scales(count_of_scales(of, 'v') * sizeof(float)) {
    std::mt19937 random(seed);
    start_q = start_k = {0};
    std::vector<int32_t> pages(static_cast<size_t>(blocks - c.first_block));
    std::iota(pages.begin(), pages.end(), c.first_block);
    std::shuffle(pages.begin(), pages.end(), random);
    for (int b = 0; b < c.batch; b++) {
        start_q.push_back(start_q.back() + c.seqlen_q[b]);
        start_k.push_back(start_k.back() + c.seqlen_k[b] + rest_of(c));
        length_k.push_back(c.seqlen_k[b]);
        offset.push_back(c.keys == Keys::kGappy ? static_cast<int>(random() % c.page) : 0);
        index.push_back(c.keys == Keys::kIndexed ? pages[b] : b);
        for (int i = 0; i < columns; i++)
            table.as<int32_t>()[b * columns + i] =
                paged(c) && i * c.page < offset[b] + c.seqlen_k[b] && c.seqlen_k[b] ? pages[b * columns + i] : -7;
    }
    fill(c, random, q, in_of(c), 0, static_cast<int>(q.size() / bytes_of(in_of(c))));
    for (int b = 0; b < c.batch; b++)
        for (int j = 0; j < c.seqlen_k[b]; j++)
            for (int g = 0; g < c.heads_k; g++) {
                const auto at = [&](const int64_t *s) {
                    return static_cast<size_t>(block_of(b, j) * s[0] + g * s[1] + row_of(b, j) * s[2]);
                };
                fill(c, random, k, in_of(c), at(k_stride), c.hdim_q);
                fill(c, random, v, in_of(c), at(v_stride), c.hdim_v);
            }
    const tessera_type bias_type = c.bias == TESSERA_BIAS_ALIBI ? TESSERA_TYPE_FP32 : fmha_fwd_bias_element(c.dtype);
    fill(c, random, bias, bias_type, 0, static_cast<int>(bias.size() / bytes_of(bias_type)));
    for (int h = 0; h < c.heads; h++) sinks.as<float>()[h] = static_cast<float>(h % 3) - 1;
    const float scales[] = {0.01F, 0.02F, 0.005F};
    std::copy_n(scales, 3, descales.as<float>());
    for (const Guarded *const of_rows : {&q_scales, &k_scales, &v_scales})
        for (size_t i = 0; i < of_rows->size() / sizeof(float); i++)
            of_rows->as<float>()[i] = 0.01F + 0.01F * static_cast<float>(random() % 1000) / 1000;
    if (c.apart) forbid_rest();
}

std::vector<Part> Tensors::linear_parts(const int64_t *stride, int hdim, const std::vector<int32_t> &first) const {
    const auto bytes = static_cast<size_t>(bytes_of(in_of(c)));
    Parts parts;
    for (int b = 0; b < c.batch; b++)
        for (int j = first.empty() ? 0 : first[b]; j < c.seqlen_k[b]; j++)
            for (int g = 0; g < c.heads_k; g++)
                parts.add(static_cast<size_t>(block_of(b, j) * stride[0] + g * stride[1] + row_of(b, j) * stride[2]) *
                              bytes,
                          static_cast<size_t>(hdim) * bytes);
    return parts.joined();
}

void Tensors::forbid_rest() {
    k.allow_only(linear_parts(k_stride, c.hdim_q)), v.allow_only(linear_parts(v_stride, c.hdim_v));
    table.allow_only(entries());
    if (c.scales == TESSERA_QSCALE_NONE) return;
    const bool tokens = c.scales == TESSERA_QSCALE_TOKEN_HEAD;
    const size_t heads = c.heads_k * sizeof(float);
    Parts scales;
    for (int b = 0; b < c.batch; b++)
        for (int j = 0; j < c.seqlen_k[b]; j++) {
            const auto block = static_cast<size_t>(block_of(b, j));
            scales.add((tokens ? block * rows + row_of(b, j) : block) * heads, heads);
        }
    k_scales.allow_only(scales.joined());
    if (!tokens) v_scales.allow_only(scales.joined());
}

std::vector<Part> Tensors::entries(const std::vector<int32_t> &first) const {
    Parts entries;
    for (int b = 0; b < c.batch && paged(c); b++)
        for (int j = first.empty() ? 0 : first[b]; j < c.seqlen_k[b]; j++)
            entries.add((static_cast<size_t>(b) * columns + (offset[b] + j) / c.page) * sizeof(int32_t),
                        sizeof(int32_t));
    return entries.joined();
}

std::vector<float> Tensors::scales_of_q() const {
    std::vector<float> all(c.scales == TESSERA_QSCALE_NONE ? 0 : queries_of(c) * c.heads);
    for (int h = 0; h < c.heads && !all.empty(); h++)
        for (int n = 0; n < total_q; n++)
            all[static_cast<size_t>(h) * total_q + n] =
                q_scales.as<float>()[c.scales == TESSERA_QSCALE_TOKEN_HEAD ? n * c.heads + h : 0];
    return all;
}

std::vector<float> Tensors::scales_of_k() const {
    std::vector<float> all(c.scales == TESSERA_QSCALE_NONE ? 0 : static_cast<size_t>(c.heads_k) * start_k.back());
    for (int g = 0; g < c.heads_k && !all.empty(); g++)
        for (int b = 0; b < c.batch; b++)
            for (int j = 0; j < c.seqlen_k[b]; j++) {
                const int block = block_of(b, j);
                const int row = c.scales == TESSERA_QSCALE_TOKEN_HEAD ? block * rows + row_of(b, j) : block;
                all[static_cast<size_t>(g) * start_k.back() + start_k[b] + j] =
                    k_scales.as<float>()[row * c.heads_k + g];
            }
    return all;
}

std::vector<float> Tensors::scales_of_v() const {
    std::vector<float> all(c.scales == TESSERA_QSCALE_NONE ? 0 : static_cast<size_t>(c.heads_k) * start_k.back());
    for (int g = 0; g < c.heads_k && !all.empty(); g++)
        for (int b = 0; b < c.batch; b++)
            for (int j = 0; j < c.seqlen_k[b]; j++) {
                const int block = c.scales == TESSERA_QSCALE_TOKEN_HEAD ? 0 : block_of(b, j);
                all[static_cast<size_t>(g) * start_k.back() + start_k[b] + j] =
                    v_scales.as<float>()[block * c.heads_k + g];
            }
    return all;
}

bool Tensors::are_equally_long() const {
    return std::all_of(c.seqlen_k.begin(), c.seqlen_k.end(), [&](int keys) { return keys == max_k; });
}

size_t Tensors::nobodys(const int64_t *stride) const {
    return static_cast<size_t>(c.first_block * stride[0]) * bytes_of(in_of(c));
}

int32_t Tensors::block_of(int b, int j) const {
    if (c.keys == Keys::kTokens) return 0;
    return paged(c) ? table.as<int32_t>()[b * columns + (offset[b] + j) / c.page] : index[b];
}

int Tensors::row_of(int b, int j) const {
    return c.keys == Keys::kTokens ? start_k[b] + j : paged(c) ? (offset[b] + j) % c.page : j;
}

void Tensors::make_last_keys_infinite() const {
    for (int b = 0; b < c.batch; b++)
        for (int g = 0; g < c.heads_k && c.seqlen_k[b] > 0; g++) {
            const int last = c.seqlen_k[b] - 1;
            const int64_t row = block_of(b, last) * v_stride[0] + g * v_stride[1] + row_of(b, last) * v_stride[2];
            for (int d = 0; d < c.hdim_v; d += 3)
                element_store(in_of(c), v.as<void>(), row + d, d % 2 ? HUGE_VAL : -HUGE_VAL);
        }
}

void Tensors::make_numbers_nan() const {
    const int of_k = c.seqlen_k[0] - 1, of_v = c.seqlen_k[1] / 2;
    const int64_t key = block_of(0, of_k) * k_stride[0] + row_of(0, of_k) * k_stride[2];
    const int64_t value =
        block_of(1, of_v) * v_stride[0] + (c.heads_k - 1) * v_stride[1] + row_of(1, of_v) * v_stride[2];
    k.as<unsigned char>()[key + c.hdim_q / 2 + 1] = c.nan();
    for (int d = 0; d < c.hdim_v; d += 3) v.as<unsigned char>()[value + d] = c.nan();
}

// ---- what is right

namespace {

struct Found {
    const Case &c;
    const Tensors &tensors;
    const tessera_fmha_fwd_traits &traits;
    const tessera_fmha_fwd_args &args;
    fmha_fwd_tolerance tolerance;
    std::string wrong;
};

void visit(void *user, int64_t, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    auto &found = *static_cast<Found *>(user);
    double error = 0;
    const auto type = found.c.output();
    const double ratio = fmha_fwd_compare_row(type, fmha_fwd_o_row(&found.traits, &found.args, *row), want,
                                              found.c.hdim_v, &found.tolerance, &error);
    const double other = found.c.lse ? fmha_fwd_compare_lse(*fmha_fwd_lse_of(&found.traits, &found.args, *row), want,
                                                            &found.tolerance, &error)
                                     : 0;
    if (ratio <= 1 && other <= 1) return;
    std::ostringstream out;
    out << (ratio <= 1 ? "lse" : "o") << " of sequence " << row->batch << " head " << row->head << " query "
        << row->query << " is " << std::max(ratio, other) << " times as far off as it may be";
    found.wrong = out.str();
}

} // namespace

// Keys one after the other, as fmha_fwd has them: in batch mode with room for the longest sequence.
std::string Tensors::wrong(const char *device) const {
    const auto size = static_cast<size_t>(bytes_of(in_of(c)));
    const int tokens = c.group ? start_k.back() : max_k;
    std::vector<unsigned char> keys(static_cast<size_t>(c.group ? 1 : c.batch) * c.heads_k * tokens * c.hdim_q * size);
    std::vector<unsigned char> values(keys.size() / c.hdim_q * c.hdim_v);
    for (int b = 0; b < c.batch; b++)
        for (int j = 0; j < c.seqlen_k[b]; j++)
            for (int g = 0; g < c.heads_k; g++) {
                const size_t row = c.group ? static_cast<size_t>(g) * tokens + start_k[b] + j
                                           : (static_cast<size_t>(b) * c.heads_k + g) * tokens + j;
                const auto from = [&](const int64_t *s) {
                    return block_of(b, j) * s[0] + g * s[1] + row_of(b, j) * s[2];
                };
                std::memcpy(&keys[row * c.hdim_q * size], k.as<unsigned char>() + from(k_stride) * size,
                            c.hdim_q * size);
                std::memcpy(&values[row * c.hdim_v * size], v.as<unsigned char>() + from(v_stride) * size,
                            c.hdim_v * size);
            }
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args args = TESSERA_FMHA_FWD_ARGS_INIT;
    Copies here(nullptr, false);
    put(here, traits, args);
    args.seqlen_q = max_q;
    traits.has_dropout = c.drop > 0;
    args.p_drop = c.drop, args.drop_seed = 7, args.drop_offset = 9;
    args.k_ptr = keys.data(), args.v_ptr = values.data();
    args.seqlen_k = max_k;
    args.seqstart_k_ptr = start_k.data();
    if (c.group) args.seqlen_k_ptr = length_k.data();
    if (!c.group) args.cu_seqlen_k_ptr = start_k.data();
    args.stride_k = c.hdim_q, args.nhead_stride_k = static_cast<int64_t>(tokens) * c.hdim_q;
    args.batch_stride_k = c.heads_k * args.nhead_stride_k;
    args.stride_v = c.hdim_v, args.nhead_stride_v = static_cast<int64_t>(tokens) * c.hdim_v;
    args.batch_stride_v = c.heads_k * args.nhead_stride_v;
    const std::vector<float> of_q = scales_of_q(), of_k = scales_of_k(), of_v = scales_of_v();
    if (c.scales != TESSERA_QSCALE_NONE) {
        traits.qscale_type = TESSERA_QSCALE_BLOCK;
        args.block_scale_size_q = args.block_scale_size_kv = 1;
        args.block_scale_seqstart_q_ptr = start_q.data(), args.block_scale_seqstart_k_ptr = start_k.data();
        args.q_descale_ptr = of_q.data(), args.k_descale_ptr = of_k.data(), args.v_descale_ptr = of_v.data();
        args.nhead_stride_q_descale = total_q;
        args.nhead_stride_k_descale = args.nhead_stride_v_descale = start_k.back();
    }
    std::vector<fmha_fwd_row> all;
    for (int b = 0; b < c.batch; b++)
        for (int h = 0; h < c.heads; h++)
            for (int i = 0; i < c.seqlen_q[b]; i++) all.push_back({b, h, i});
    Found found{c, *this, traits, args, fmha_fwd_tolerance_of(c.dtype, device), ""};
    if (fmha_fwd_reference(&traits, &args, c.fp8, fmha_fwd_cuts_products(c.dtype, device), all.data(),
                           static_cast<int64_t>(all.size()), 1, visit, &found) != 0)
        return "no memory for the reference";
    return found.wrong;
}
