// SPDX-License-Identifier: MIT
#include "problem.h"

#include <cmath>
#include <stdexcept>

namespace {

// Storage of the floating-point dtypes: bytes of an element, and its value.
enum class Storage { fp32, fp16, bf16, e4m3 };

Storage input_storage(tessera_dtype dtype) {
    switch (dtype) {
    case TESSERA_FP32:
        return Storage::fp32;
    case TESSERA_FP16:
        return Storage::fp16;
    case TESSERA_BF16:
        return Storage::bf16;
    case TESSERA_FP8:
    case TESSERA_FP8BF16:
    case TESSERA_FP8FP32:
        return Storage::e4m3;
    default:
        throw std::invalid_argument("a dtype without elements of its own");
    }
}

Storage output_storage(tessera_dtype dtype) {
    switch (dtype) {
    case TESSERA_FP16:
        return Storage::fp16;
    case TESSERA_BF16:
    case TESSERA_FP8BF16:
        return Storage::bf16;
    case TESSERA_FP8:
        return Storage::e4m3;
    default:
        return Storage::fp32;
    }
}

Storage bias_storage(tessera_dtype dtype) {
    return dtype == TESSERA_FP16 ? Storage::fp16 : dtype == TESSERA_BF16 ? Storage::bf16 : Storage::fp32;
}

int64_t bytes_of(Storage storage) { return storage == Storage::fp32 ? 4 : storage == Storage::e4m3 ? 1 : 2; }

double load(Storage storage, const void *base, int64_t index) {
    switch (storage) {
    case Storage::fp32:
        return static_cast<const float *>(base)[index];
    case Storage::fp16:
        return fmha_fwd_decode_fp16(static_cast<const uint16_t *>(base)[index]);
    case Storage::bf16:
        return fmha_fwd_decode_bf16(static_cast<const uint16_t *>(base)[index]);
    default:
        return fmha_fwd_decode_e4m3(static_cast<const uint8_t *>(base)[index]);
    }
}

void store(Storage storage, const void *base, int64_t index, double value) {
    void *to = const_cast<void *>(base);
    switch (storage) {
    case Storage::fp32:
        static_cast<float *>(to)[index] = static_cast<float>(value);
        break;
    case Storage::fp16:
        static_cast<uint16_t *>(to)[index] = fmha_fwd_encode_fp16(value);
        break;
    case Storage::bf16:
        static_cast<uint16_t *>(to)[index] = fmha_fwd_encode_bf16(value);
        break;
    default:
        static_cast<uint8_t *>(to)[index] = fmha_fwd_encode_e4m3(value);
    }
}

} // namespace

double rounded_output(tessera_dtype dtype, double value) {
    uint32_t place = 0;
    store(output_storage(dtype), &place, 0, value);
    return load(output_storage(dtype), &place, 0);
}

Problem::Problem(const std::string &arguments) : options(arguments) {
    fmha_fwd_result result;
    if (fmha_fwd_build(&options.options(), &problem, &result) != FMHA_FWD_OK) throw std::runtime_error(result.message);
    traits = fmha_fwd_problem_traits(problem);
    args = fmha_fwd_problem_args(problem);
    device = fmha_fwd_problem_device(problem);
}

Problem::~Problem() { fmha_fwd_destroy(problem); }

tessera_status Problem::try_launch() {
    size_t bytes;
    tessera_status status = tessera_fmha_fwd_check(traits, args);
    if (status == TESSERA_SUCCESS) status = tessera_fmha_fwd_workspace_size(device, traits, args, &bytes);
    if (status != TESSERA_SUCCESS) return status;
    workspace.resize(bytes + 64);
    args->workspace_ptr = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
    args->workspace_size = bytes;
    return tessera_fmha_fwd(device, traits, args, nullptr);
}

void Problem::launch() { ASSERT_EQ(try_launch(), TESSERA_SUCCESS) << tessera_last_error(); }

int64_t Problem::index(char tensor, int b, int h, int token, int d) const {
    const tessera_fmha_fwd_args &a = *args;
    if (tensor == 'q') return b * a.batch_stride_q + h * a.nhead_stride_q + token * a.stride_q + d;
    if (tensor == 'k') return b * a.batch_stride_k + h * a.nhead_stride_k + token * a.stride_k + d;
    const int64_t head = b * a.batch_stride_v + h * a.nhead_stride_v;
    return traits->is_v_rowmajor ? head + token * a.stride_v + d : head + d * a.stride_v + token;
}

float Problem::at(char tensor, int b, int h, int token, int d) const {
    const void *base = tensor == 'q' ? args->q_ptr : tensor == 'k' ? args->k_ptr : args->v_ptr;
    return static_cast<float>(load(input_storage(traits->data_type), base, index(tensor, b, h, token, d)));
}

void Problem::each(char tensor, const std::function<float(int b, int h, int token, int d)> &value) {
    const void *base = tensor == 'q' ? args->q_ptr : tensor == 'k' ? args->k_ptr : args->v_ptr;
    const int32_t heads = tensor == 'q' ? args->nhead_q : args->nhead_k;
    const int32_t tokens = tensor == 'q' ? args->seqlen_q : args->seqlen_k;
    for (int32_t b = 0; b < args->batch; b++)
        for (int32_t h = 0; h < heads; h++)
            for (int32_t i = 0; i < tokens; i++)
                for (int32_t d = 0; d < (tensor == 'v' ? args->hdim_v : args->hdim_q); d++)
                    store(input_storage(traits->data_type), base, index(tensor, b, h, i, d), value(b, h, i, d));
}

void Problem::each_bias(const std::function<float(int i, int j)> &value) {
    for (int32_t i = 0; i < args->seqlen_q; i++)
        for (int32_t j = 0; j < args->seqlen_k; j++)
            store(bias_storage(traits->data_type), args->bias_ptr, i * args->stride_bias + j, value(i, j));
}

std::vector<fmha_fwd_row> Problem::rows(int64_t every) const {
    std::vector<fmha_fwd_row> chosen;
    int64_t n = 0;
    for (int32_t b = 0; b < args->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(traits, args, b);
        for (int32_t h = 0; h < args->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++)
                if (n++ % every == 0) chosen.push_back({b, h, i});
    }
    return chosen;
}

double Problem::o(const fmha_fwd_row &row, int32_t d) const {
    return load(output_storage(traits->data_type), fmha_fwd_o_row(traits, args, row), d);
}

Problem::Answer Problem::reference(const std::vector<fmha_fwd_row> &rows) const {
    Answer answer;
    answer.hdim = args->hdim_v;
    answer.all_o.resize(rows.size() * static_cast<size_t>(args->hdim_v));
    answer.all_lse.resize(rows.size());
    if (fmha_fwd_reference_rows(traits, args, rows.data(), static_cast<int64_t>(rows.size()), tessera_num_threads(),
                                answer.all_o.data(), answer.all_lse.data(), nullptr, 0) != 0)
        throw std::runtime_error("the reference ran out of memory");
    return answer;
}

void Problem::expect_rows_match(const std::vector<fmha_fwd_row> &rows, double greatest_score) const {
    const Answer want = reference(rows);
    fmha_fwd_tolerance tolerance = fmha_fwd_ck_tolerance(traits->data_type);
    const double score_error = 4 * 0x1p-24 * greatest_score, greatest_value = 6;
    tolerance.atol += score_error * greatest_value;
    tolerance.lse_atol += score_error;
    for (size_t n = 0; n < rows.size(); n++) {
        double error = 0, ratio = fmha_fwd_compare_row(traits->data_type, fmha_fwd_o_row(traits, args, rows[n]),
                                                       &want.all_o[n * static_cast<size_t>(want.hdim)], want.hdim,
                                                       &tolerance, &error);
        if (traits->has_lse)
            ratio = std::fmax(
                ratio, fmha_fwd_compare_lse(*fmha_fwd_lse_of(traits, args, rows[n]), want.lse(n), &tolerance, &error));
        ASSERT_LE(ratio, 1) << "sequence " << rows[n].batch << ", head " << rows[n].head << ", query " << rows[n].query
                            << ": off by " << error;
    }
}

std::vector<uint8_t> Problem::outputs() const {
    std::vector<uint8_t> bytes;
    const auto append = [&](const void *from, int64_t count) {
        const uint8_t *begin = static_cast<const uint8_t *>(from);
        bytes.insert(bytes.end(), begin, begin + count);
    };
    for (const fmha_fwd_row &row : rows()) {
        append(fmha_fwd_o_row(traits, args, row), args->hdim_v * bytes_of(output_storage(traits->data_type)));
        if (traits->has_lse) append(fmha_fwd_lse_of(traits, args, row), 4);
        if (!args->s_randval) continue;
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(traits, args, row.batch);
        append(static_cast<const uint8_t *>(args->rand_val_ptr) +
                   (traits->is_group_mode ? 0 : row.batch * args->batch_stride_randval) +
                   row.head * args->nhead_stride_randval + (s.token_q + row.query) * args->stride_randval,
               s.seqlen_k);
    }
    return bytes;
}
