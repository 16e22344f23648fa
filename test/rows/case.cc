// SPDX-License-Identifier: MIT
#include "case.h"

#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>

#include "fill.h"

extern "C" {
extern const example_program layernorm2d_fwd_program, rmsnorm2d_fwd_program, add_rmsnorm2d_rdquant_program,
    smoothquant_program, moe_smoothquant_program;
}

// ---- a program with the arguments of tests

namespace {

// A problem is built, run and verified through a copy of its program, whose steps do more.
struct Test {
    const example_program &program; // the operation's own
    const Options &options;
    example_problem *problem;
};
Test *current; // the one that runs

rows_problem *rows_of(example_problem *problem) { return reinterpret_cast<rows_problem *>(problem); }

example_outcome settle(example_problem *problem, const void *, example_result *result) {
    const Options &o = current->options;
    rows_options rows = o.rows;
    const bool one_stride = o.inplace || &current->program == &add_rmsnorm2d_rdquant_program ||
                            &current->program == &moe_smoothquant_program;
    int32_t pad = 0;
    for (int32_t *stride : {&rows.x_stride, &rows.xr_stride, &rows.y_stride, &rows.yr_stride})
        *stride += pad = one_stride ? o.pad : pad + o.pad;
    problem->misalign = o.misalign;
    return current->program.settle(problem, &rows, result);
}

void put(example_problem *problem) {
    current->program.put(problem);
    if (current->options.bad_ids) spoil_ids(rows_of(problem));
}

void fill(example_problem *problem) {
    current->program.fill(problem);
    fill(rows_of(problem), current->options.fill);
}

// ---- outputs in place of inputs

struct Pair {
    rows_tensor output, input;
};

std::vector<Pair> pairs_in_place() {
    const int32_t inplace = current->options.inplace;
    const rows_problem *p = rows_of(current->problem);
    std::vector<Pair> wanted, pairs;
    if (inplace == 1) wanted = {{ROWS_Y, ROWS_X}, {ROWS_UNQUANTIZED, ROWS_X}, {ROWS_RESIDUAL_OUT, ROWS_RESIDUAL}};
    if (inplace == 2) wanted = {{ROWS_Y, ROWS_RESIDUAL}, {ROWS_RESIDUAL_OUT, ROWS_X}};
    for (const Pair &one : wanted)
        if (p->base.buffers[one.output].used && p->base.buffers[one.input].used &&
            p->shapes[one.output].type == p->shapes[one.input].type)
            pairs.push_back(one);
    return pairs;
}

// The call gets the inputs' pointers for those outputs.
tessera_status call(const tessera_device *device, const void *traits, const void *args) {
    const example_program &program = current->program;
    std::vector<std::max_align_t> copy(program.calls->args_bytes / sizeof(std::max_align_t) + 1);
    std::memcpy(copy.data(), args, program.calls->args_bytes);
    const auto pointer = [&](rows_tensor tensor) {
        return static_cast<void **>(example_field(copy.data(), program.tensors[tensor].pointer));
    };
    for (const Pair &one : pairs_in_place()) *pointer(one.output) = *pointer(one.input);
    return program.calls->call(device, traits, copy.data());
}

// What was computed in place goes where the program looks for it, and inputs become what they were.
class InPlace {
  public:
    InPlace() {
        for (const Pair &one : pairs_in_place())
            before.emplace_back(begin(one.input), begin(one.input) + bytes(one.input));
    }
    void restore() const {
        size_t n = 0;
        for (const Pair &one : pairs_in_place()) {
            std::memcpy(begin(one.output), begin(one.input), bytes(one.input));
            std::memcpy(begin(one.input), before[n].data(), before[n].size());
            n++;
        }
    }

  private:
    static uint8_t *begin(rows_tensor tensor) {
        return static_cast<uint8_t *>(example_pointer(current->problem, tensor));
    }
    static size_t bytes(rows_tensor tensor) { return static_cast<size_t>(current->problem->buffers[tensor].bytes); }

    std::vector<std::vector<uint8_t>> before;
};

// ---- rows of no expert

example_outcome check_untouched(example_result *result) {
    const rows_problem *p = rows_of(current->problem);
    rows_call with_ids = p->call;
    with_ids.topk_ids = static_cast<const int32_t *>(example_pointer(&p->base, ROWS_IDS));
    for (int64_t row = 0; row < p->call.m; row++)
        for (const rows_tensor tensor : {ROWS_Y, ROWS_Y_SCALE}) {
            const rows_shape &shape = p->shapes[tensor];
            const example_buffer &buffer = p->base.buffers[tensor];
            const auto *at = static_cast<const uint8_t *>(example_pointer(&p->base, tensor));
            if (rows_source(&with_ids, row) < 0 &&
                !example_all_bytes(at + row * shape.stride * buffer.element_bytes, shape.columns * buffer.element_bytes,
                                   buffer.unwritten)) {
                result->verification = EXAMPLE_INVALID;
                return example_fail(result, EXAMPLE_WRONG_RESULT, "row %d of %s, which is of no expert, was written",
                                    static_cast<int>(row), p->base.program->tensors[tensor].name);
            }
        }
    return EXAMPLE_OK;
}

// ---- the three steps

class Steps {
  public:
    Steps(const example_program *program, const void *values)
        : test{*program, *static_cast<const Options *>(values), nullptr}, wrapped(*program), calls(*program->calls) {
        current = &test;
        calls.call = call;
        wrapped.calls = &calls;
        wrapped.settle = settle;
        wrapped.put = put;
        wrapped.fill = fill;
    }
    ~Steps() { example_destroy(test.problem); }
    Steps(const Steps &) = delete;
    Steps &operator=(const Steps &) = delete;

    example_outcome build(example_result *result) {
        current = &test;
        if (example_build(&wrapped, &test.options, &test.problem, result) == EXAMPLE_OK) test.problem->bare = is_bare();
        return result->outcome;
    }
    example_outcome launch(example_result *result) {
        current = &test;
        const InPlace inputs;
        if (example_launch(test.problem, result) == EXAMPLE_OK) inputs.restore();
        return result->outcome;
    }
    example_outcome verify(example_result *result) {
        current = &test;
        if (example_verify(test.problem, result) == EXAMPLE_OK) check_untouched(result);
        return result->outcome;
    }
    example_problem *problem() const { return test.problem; }

  private:
    Test test;
    example_program wrapped;
    example_calls calls;
};

example_outcome run(const example_program *program, const void *values, example_result *result) {
    Steps steps(program, values);
    const auto launch = [&](example_result *into) { steps.launch(into); };
    if (steps.build(result) == EXAMPLE_OK && steps.launch(result) == EXAMPLE_OK && steps.verify(result) == EXAMPLE_OK &&
        is_on_real_gpu(steps.problem()))
        repeat(steps.problem(), launch, result);
    return result->outcome;
}

// ---- operations

Operation operation(const char *name, const example_program &program, rows_statistics statistics) {
    const auto integer = [](const char *argument, size_t offset) {
        return example_argument{argument, EXAMPLE_INTEGER, offset, 0, "0", ""};
    };
    return {name,
            {&program,
             {{"fill", EXAMPLE_TEXT, offsetof(Options, fill), 0, "plain", ""},
              integer("misalign", offsetof(Options, misalign)),
              integer("pad", offsetof(Options, pad)),
              integer("inplace", offsetof(Options, inplace)),
              integer("bad_ids", offsetof(Options, bad_ids))},
             sizeof(Options),
             "-v=1",
             run},
            statistics};
}

} // namespace

const std::vector<Operation> &operations() {
    static const std::vector<Operation> all{operation("Layernorm", layernorm2d_fwd_program, ROWS_MEAN),
                                            operation("Rmsnorm", rmsnorm2d_fwd_program, ROWS_SQUARE),
                                            operation("AddRmsnorm", add_rmsnorm2d_rdquant_program, ROWS_SQUARE),
                                            operation("Smoothquant", smoothquant_program, ROWS_NONE),
                                            operation("MoeSmoothquant", moe_smoothquant_program, ROWS_NONE)};
    return all;
}

std::string Operation::spelled(const std::string &arguments) const {
    std::map<std::string, std::string> names;
    if (tested.program == &add_rmsnorm2d_rdquant_program) names = {{"-prec_i", "-prec"}, {"-prec_o", "-quant"}};
    if (tested.program == &smoothquant_program) names = {{"-prec_i", "-prec"}};
    if (tested.program == &moe_smoothquant_program) names = {{"-m", "-t"}, {"-n", "-h"}};
    std::istringstream words(arguments);
    std::string all;
    for (std::string word; words >> word;) {
        const size_t end = word.find('=');
        const auto found = names.find(word.substr(0, end));
        all += (all.empty() ? "" : " ") + (found == names.end() ? word : found->second + word.substr(end));
    }
    return all;
}

Place cpus(const Operation &op) {
    return {false, op.name, [&op](const std::string &said) { expect_valid(op.tested, op.spelled(said)); }};
}

Place gpus(const Operation &op) {
    return {true, "Gpu" + op.name,
            [&op](const std::string &said) { expect_valid_or_refused(op.tested, op.spelled(said)); }};
}

Axis devices(const Place &on, const Operation &op) {
    Axis all;
    for (const Device &device : devices(on, op.table())) all.push_back(device.argument());
    return all;
}

Axis kinds(const Place &on, const Operation &op) {
    return times({"-prec_i=fp32", "-prec_i=fp16", "-prec_i=bf16"}, devices(on, op));
}

// ---- a problem

struct Problem::Inside {
    Case options;
    Steps steps;
    Inside(const Operation &op, const std::string &arguments)
        : options(op.tested, op.spelled(arguments)), steps(op.tested.program, options.values()) {}
};

Problem::Problem(const Operation &op, const std::string &arguments) : inside(new Inside(op, arguments)) {
    if (inside->steps.build(&result) != EXAMPLE_OK) throw std::runtime_error(result.message);
}

Problem::~Problem() = default;

rows_problem *Problem::rows() const { return rows_of(inside->steps.problem()); }

double Problem::at(rows_tensor tensor, int64_t row, int64_t column) const {
    const rows_shape &shape = rows()->shapes[tensor];
    return element_load(shape.type, example_pointer(&rows()->base, tensor), row * shape.stride + column);
}

void Problem::each(rows_tensor tensor, const std::function<double(int64_t row, int64_t column)> &value) {
    const rows_shape &shape = rows()->shapes[tensor];
    for (int64_t row = 0; row < shape.rows; row++)
        for (int64_t column = 0; column < shape.columns; column++)
            element_store(shape.type, example_pointer(&rows()->base, tensor), row * shape.stride + column,
                          value(row, column));
    rows()->base.input_sum = example_input_sum(&rows()->base);
}

void Problem::launch() { ASSERT_EQ(inside->steps.launch(&result), EXAMPLE_OK) << result.message; }

std::string Problem::verify() {
    example_result verdict{};
    inside->steps.verify(&verdict);
    return verdict.message;
}

std::vector<uint8_t> Problem::outputs() const {
    std::vector<uint8_t> bytes;
    for (int tensor = ROWS_Y; tensor < ROWS_TENSORS; tensor++) {
        const auto *const begin = static_cast<const uint8_t *>(example_pointer(&rows()->base, tensor));
        if (begin) bytes.insert(bytes.end(), begin, begin + rows()->base.buffers[tensor].bytes);
    }
    return bytes;
}
