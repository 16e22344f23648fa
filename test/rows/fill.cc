// SPDX-License-Identifier: MIT
#include "fill.h"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What an element becomes. `narrow`: the type is fp16.
struct Element {
    double was;
    int64_t row, column, columns;
    bool narrow, residual;
};
using Edit = double (*)(const Element &at);

double last_is_great(const Element &at) { return at.column + 1 == at.columns && !at.residual ? 9 : at.was; }
double first_is_great(const Element &at) { return at.column == 0 && !at.residual ? -9 : at.was; }
double some_rows_are_zero(const Element &at) { return at.row % 2 ? at.was : 0; }

// Of fp16 near its greatest; of others some rows have a sum of squares that fp32 does not hold.
double huge(const Element &at) {
    return at.was * (at.narrow ? 65000 : std::ldexp(1, 60 + static_cast<int>(at.row % 8)));
}

// A mean that is large beside what varies.
double offset(const Element &at) { return at.was + (at.residual ? 0 : at.narrow ? 100 : 1000); }

// Denormal numbers, and what is little above them.
double tiny(const Element &at) { return std::ldexp(at.was, at.narrow ? -14 : -120 - static_cast<int>(at.row % 3) * 4); }

double constant(const Element &at) { return at.residual ? 0.25 : 0.75; }

// 20 powers of two in a row.
double spread(const Element &at) { return std::ldexp(at.was, -static_cast<int>((at.column * 7 + at.row) % 20)); }

// NaN and infinities in one or two places of most rows.
double special(const Element &at) {
    const bool here = at.column == (at.row * 7 + 3) % at.columns, last = at.column + 1 == at.columns;
    if (at.residual) return at.was;
    switch (at.row % 6) {
    case 0:
        return here ? std::numeric_limits<double>::quiet_NaN() : at.was;
    case 1:
        return here ? infinity : at.was;
    case 2:
        return here ? -infinity : last ? infinity : at.was;
    case 3:
        return last ? std::numeric_limits<double>::quiet_NaN() : at.was;
    case 4:
        return last ? -infinity : at.was;
    default:
        return at.was;
    }
}

const std::map<std::string, Edit> edits{
    {"last", last_is_great}, {"first", first_is_great}, {"zeros", some_rows_are_zero},
    {"huge", huge},          {"offset", offset},        {"tiny", tiny},
    {"constant", constant},  {"spread", spread},        {"special", special}};

} // namespace

const Axis fills_of_numbers{"-fill=last", "-fill=first", "-fill=offset", "-fill=spread"};
const Axis fills{"-fill=plain",  "-fill=last", "-fill=first",    "-fill=zeros",  "-fill=huge",
                 "-fill=offset", "-fill=tiny", "-fill=constant", "-fill=spread", "-fill=special"};

void fill(rows_problem *p, const std::string &name) {
    if (name == "plain") return;
    const auto edit = edits.find(name);
    if (edit == edits.end()) throw std::invalid_argument("-fill=" + name);
    for (const rows_tensor tensor : {ROWS_X, ROWS_RESIDUAL}) {
        const rows_shape &shape = p->shapes[tensor];
        void *const base = example_pointer(&p->base, tensor);
        for (int64_t row = 0; base && row < shape.rows; row++)
            for (int64_t column = 0; column < shape.columns; column++) {
                const int64_t index = row * shape.stride + column;
                element_store(shape.type, base, index,
                              edit->second({element_load(shape.type, base, index), row, column, shape.columns,
                                            shape.type == TESSERA_TYPE_FP16, tensor == ROWS_RESIDUAL}));
            }
    }
}

void spoil_ids(rows_problem *p) {
    auto *const ids = static_cast<int32_t *>(example_pointer(&p->base, ROWS_IDS));
    const int32_t bad[] = {-1, p->options.experts, std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()};
    const int64_t count = static_cast<int64_t>(p->options.m) * p->options.topk;
    for (int64_t i = 1; ids && i < count; i += 3) ids[i] = bad[i / 3 % 4];
}
