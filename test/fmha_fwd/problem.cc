// SPDX-License-Identifier: MIT
#include "problem.h"

#include <cmath>
#include <mutex>
#include <stdexcept>

Problem::Problem(const std::string &arguments) : options(fmha_fwd, arguments) {
    example_result result;
    if (example_build(&fmha_fwd_program, options.values(), &problem, &result) != EXAMPLE_OK)
        throw std::runtime_error(result.message);
    traits = static_cast<tessera_fmha_fwd_traits *>(problem->traits);
    args = static_cast<tessera_fmha_fwd_args *>(problem->args);
    device = problem->device;
    fp8 = tessera_device_fp8_format(device);
}

Problem::~Problem() { example_destroy(problem); }

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

void Problem::launch() {
    example_result result;
    if (!example_on_cpu(problem)) // copies what is here to the device, and back
        ASSERT_EQ(example_launch(problem, &result), EXAMPLE_OK) << result.message;
    else
        ASSERT_EQ(try_launch(), TESSERA_SUCCESS) << tessera_last_error();
}

int64_t Problem::index(char tensor, int b, int h, int token, int d) const {
    const tessera_fmha_fwd_args &a = *args;
    if (tensor == 'q') return b * a.batch_stride_q + h * a.nhead_stride_q + token * a.stride_q + d;
    if (tensor == 'k') return b * a.batch_stride_k + h * a.nhead_stride_k + token * a.stride_k + d;
    const int64_t head = b * a.batch_stride_v + h * a.nhead_stride_v;
    return traits->is_v_rowmajor ? head + token * a.stride_v + d : head + d * a.stride_v + token;
}

float Problem::at(char tensor, int b, int h, int token, int d) const {
    const void *base = tensor == 'q' ? args->q_ptr : tensor == 'k' ? args->k_ptr : args->v_ptr;
    return static_cast<float>(element_load(input(), base, index(tensor, b, h, token, d)));
}

void Problem::each(char tensor, const std::function<float(int b, int h, int token, int d)> &value) {
    void *base = const_cast<void *>(tensor == 'q' ? args->q_ptr : tensor == 'k' ? args->k_ptr : args->v_ptr);
    const int32_t heads = tensor == 'q' ? args->nhead_q : args->nhead_k;
    const int32_t tokens = tensor == 'q' ? args->seqlen_q : args->seqlen_k;
    for (int32_t b = 0; b < args->batch; b++)
        for (int32_t h = 0; h < heads; h++)
            for (int32_t i = 0; i < tokens; i++)
                for (int32_t d = 0; d < (tensor == 'v' ? args->hdim_v : args->hdim_q); d++)
                    element_store(input(), base, index(tensor, b, h, i, d), value(b, h, i, d));
}

void Problem::each_bias(const std::function<float(int i, int j)> &value) {
    for (int32_t i = 0; i < args->seqlen_q; i++)
        for (int32_t j = 0; j < args->seqlen_k; j++)
            element_store(fmha_fwd_bias_element(traits->data_type), const_cast<void *>(args->bias_ptr),
                          i * args->stride_bias + j, value(i, j));
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
    return element_load(output(), fmha_fwd_o_row(traits, args, row), d);
}

Problem::Answer Problem::reference(const std::vector<fmha_fwd_row> &rows) const {
    Answer answer;
    answer.hdim = args->hdim_v;
    answer.all_o.resize(rows.size() * static_cast<size_t>(args->hdim_v));
    answer.all_lse.resize(rows.size());
    if (fmha_fwd_reference_rows(traits, args, fp8, rows.data(), static_cast<int64_t>(rows.size()),
                                tessera_num_threads(), answer.all_o.data(), answer.all_lse.data(), nullptr, 0) != 0)
        throw std::runtime_error("the reference ran out of memory");
    return answer;
}

void Problem::expect_rows_match(const std::vector<fmha_fwd_row> &rows) const {
    struct Worst {
        const Problem &problem;
        std::mutex lock;
        fmha_fwd_row row = {};
        double ratio = 0, error = 0;
    } worst{*this, {}};
    const auto visit = [](void *user, int64_t, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
        Worst &worst = *static_cast<Worst *>(user);
        const Problem &p = worst.problem;
        const fmha_fwd_tolerance tolerance = fmha_fwd_tolerance_of(p.traits->data_type, tessera_device_name(p.device));
        double error = 0, ratio = fmha_fwd_compare_row(p.output(), fmha_fwd_o_row(p.traits, p.args, *row), want,
                                                       p.args->hdim_v, &tolerance, &error);
        if (p.traits->has_lse)
            ratio = std::fmax(ratio,
                              fmha_fwd_compare_lse(*fmha_fwd_lse_of(p.traits, p.args, *row), want, &tolerance, &error));
        const std::lock_guard<std::mutex> guard(worst.lock);
        if (ratio > worst.ratio) worst.row = *row, worst.ratio = ratio, worst.error = error;
    };
    const int cuts = fmha_fwd_cuts_products(traits->data_type, tessera_device_name(device));
    if (fmha_fwd_reference(traits, args, fp8, cuts, rows.data(), static_cast<int64_t>(rows.size()),
                           tessera_num_threads(), visit, &worst) != 0)
        throw std::runtime_error("the reference ran out of memory");
    ASSERT_LE(worst.ratio, 1) << "sequence " << worst.row.batch << ", head " << worst.row.head << ", query "
                              << worst.row.query << ": off by " << worst.error;
}

double Problem::rounded_output(double value) const {
    uint32_t place = 0;
    element_store(output(), &place, 0, value);
    return element_load(output(), &place, 0);
}

std::vector<uint8_t> Problem::outputs() const {
    std::vector<uint8_t> bytes;
    const auto append = [&](const void *from, int64_t count) {
        const uint8_t *begin = static_cast<const uint8_t *>(from);
        bytes.insert(bytes.end(), begin, begin + count);
    };
    for (const fmha_fwd_row &row : rows()) {
        append(fmha_fwd_o_row(traits, args, row), args->hdim_v * element_bits(output()) / 8);
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
