// SPDX-License-Identifier: MIT
#include "case.h"

#include <cstring>
#include <set>
#include <stdexcept>

#include "tessera/kernel/fmha_bwd.h"

static example_argument beyond(const char *name, size_t offset) { return {name, EXAMPLE_INTEGER, offset, 0, "0", ""}; }

// Calls that are not deterministic may give other bytes on a real GPU when they are launched again.
static example_outcome run(const example_program *program, const void *values, example_result *result) {
    if (static_cast<const fmha_bwd_arguments *>(values)->deterministic) return run_case(program, values, result);
    example_problem *problem;
    if (example_build(program, values, &problem, result) != EXAMPLE_OK) return result->outcome;
    problem->bare = is_bare();
    if (example_launch(problem, result) == EXAMPLE_OK) example_verify(problem, result);
    example_destroy(problem);
    return result->outcome;
}

const Tested fmha_bwd{&fmha_bwd_program,
                      {beyond("cu_seqlen", offsetof(fmha_bwd_arguments, forward.options.cu_seqlen)),
                       beyond("misalign", offsetof(fmha_bwd_arguments, forward.options.misalign))},
                      0,
                      "-v=3",
                      run};

const Place cpus{false, "", [](const std::string &arguments) { expect_valid(fmha_bwd, arguments); }},
    gpus{true, "Gpu", [](const std::string &arguments) { expect_valid_or_refused(fmha_bwd, arguments); }};

// Whether a row of the target serves the data type, whatever the other traits.
static bool serves(const tessera_table *table, tessera_target target, tessera_fmha_dtype dtype) {
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *row = tessera_row(table, i);
        for (uint32_t n = 0; row->target == target && n < row->served_count; n++)
            if (tessera_set_of(&row->served[n], &table->schema->traits[0]) >> dtype & 1) return true;
    }
    return false;
}

Axis kinds(const Place &on, const Axis &precs) {
    const tessera_table *table = tessera_fmha_bwd_get_table();
    Axis all;
    for (const std::string &prec : precs) {
        tessera_fmha_dtype dtype;
        if (tessera_fmha_dtype_from_string(prec.c_str(), &dtype) != TESSERA_SUCCESS) throw std::invalid_argument(prec);
        for (const Device &device : devices(on, table))
            if (serves(table, device.target, dtype)) all.push_back("-prec=" + prec + " " + device.argument());
    }
    return all;
}

Problem::Problem(const std::string &arguments) : options(fmha_bwd, arguments) {
    example_result result;
    if (example_build(&fmha_bwd_program, options.values(), &problem, &result) != EXAMPLE_OK)
        throw std::runtime_error(result.message);
    traits = static_cast<tessera_fmha_bwd_traits *>(problem->traits);
    args = static_cast<tessera_fmha_bwd_args *>(problem->args);
    device = problem->device;
}

Problem::~Problem() { example_destroy(problem); }

void Problem::poison() {
    for (int n = problem->program->first_output; n < problem->program->tensor_count; n++)
        if (problem->buffers[n].used)
            std::memset(example_pointer(problem, n), EXAMPLE_UNWRITTEN_BYTE,
                        static_cast<size_t>(problem->buffers[n].bytes));
}

void Problem::launch(bool verified) {
    example_result result;
    poison();
    ASSERT_EQ(example_launch(problem, &result), EXAMPLE_OK) << result.message;
    if (!verified) return;
    ASSERT_EQ(example_verify(problem, &result), EXAMPLE_OK) << result.message;
}

std::vector<uint8_t> Problem::outputs() const {
    std::vector<uint8_t> all;
    for (int n = problem->program->first_output; n < problem->program->tensor_count; n++) {
        if (!problem->buffers[n].used) continue;
        const uint8_t *bytes = static_cast<uint8_t *>(example_pointer(problem, n));
        all.insert(all.end(), bytes, bytes + problem->buffers[n].bytes);
    }
    return all;
}
