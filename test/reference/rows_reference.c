// SPDX-License-Identifier: MIT
#include "rows_reference.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static const double unit = 0x1p-24, least_step = 0x1p-150; // half of a step: at 1, and of the denormal numbers

// --- ranges ----------------------------------------------------------------------------------------------------------

static rows_range number(double lo, double hi) { return (rows_range){lo, hi, ROWS_NUMBER}; }
static rows_range nothing_known(void) { return (rows_range){-INFINITY, INFINITY, ROWS_ANYTHING}; }

static rows_range exactly(double value) {
    return isnan(value) ? (rows_range){NAN, NAN, ROWS_NAN} : number(value, value);
}

static int is_point(rows_range a) { return a.lo == a.hi; }
static int holds_zero(rows_range a) { return a.lo <= 0 && a.hi >= 0; }
static int has_infinity(rows_range a) { return isinf(a.lo) || isinf(a.hi); }

// NaN of either is NaN of the result; anything else that is not known stays so.
static rows_range not_numbers(rows_range a, rows_range b) {
    return a.kind == ROWS_NAN || b.kind == ROWS_NAN ? exactly(NAN) : nothing_known();
}

// What fp32 may make of the range: off by `relative` and `absolute`, infinite from where it rounds to that.
static rows_range widened(rows_range a, double relative, double absolute) {
    const double infinite = 0x1.ffffffp127;
    if (a.kind != ROWS_NUMBER) return a;
    if (!isinf(a.lo)) a.lo -= fabs(a.lo) * relative + (a.lo ? absolute : 0);
    if (!isinf(a.hi)) a.hi += fabs(a.hi) * relative + (a.hi ? absolute : 0);
    if (a.lo >= infinite) a.lo = INFINITY;
    if (a.lo <= -infinite) a.lo = -INFINITY;
    if (a.hi >= infinite) a.hi = INFINITY;
    if (a.hi <= -infinite) a.hi = -INFINITY;
    return a;
}

static rows_range sum_of(rows_range a, rows_range b) {
    if (a.kind != ROWS_NUMBER || b.kind != ROWS_NUMBER) return not_numbers(a, b);
    if ((a.hi == INFINITY && b.lo == -INFINITY) || (a.lo == -INFINITY && b.hi == INFINITY))
        return is_point(a) && is_point(b) ? exactly(NAN) : nothing_known();
    return widened(number(a.lo + b.lo, a.hi + b.hi), unit, 0);
}

static rows_range product_of(rows_range a, rows_range b) {
    if (a.kind != ROWS_NUMBER || b.kind != ROWS_NUMBER) return not_numbers(a, b);
    if ((holds_zero(a) && has_infinity(b)) || (holds_zero(b) && has_infinity(a)))
        return is_point(a) && is_point(b) ? exactly(NAN) : nothing_known();
    const double corners[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    rows_range all = number(corners[0], corners[0]);
    for (int n = 1; n < 4; n++) {
        all.lo = fmin(all.lo, corners[n]);
        all.hi = fmax(all.hi, corners[n]);
    }
    return widened(all, unit, least_step);
}

static rows_range magnitude_of(rows_range a) {
    if (a.kind != ROWS_NUMBER) return a;
    const double greatest = fmax(fabs(a.lo), fabs(a.hi));
    return number(holds_zero(a) ? 0 : fmin(fabs(a.lo), fabs(a.hi)), greatest);
}

static double rounded_value(tessera_type type, double value) {
    union {
        float f;
        uint16_t h;
        uint8_t b;
    } place;
    element_store(type, &place, 0, value);
    return element_load(type, &place, 0);
}

static rows_range rounded_to(tessera_type type, rows_range a) {
    if (a.kind == ROWS_NUMBER) a = number(rounded_value(type, a.lo), rounded_value(type, a.hi));
    return a;
}

// --- a row -----------------------------------------------------------------------------------------------------------

int64_t rows_source(const rows_call *call, int64_t row) {
    if (!call->topk_ids) return row;
    const int64_t token = row % call->tokens, slot = row / call->tokens;
    const int32_t expert = call->topk_ids[token * call->topk + slot];
    return expert < 0 || expert >= call->experts ? -1 : token;
}

static double load_or_zero(tessera_type type, const void *base, int64_t index) {
    return base ? element_load(type, base, index) : 0;
}

// x + bias + residual, in any order.
static rows_range added(const rows_call *c, int64_t source, int64_t row, int64_t j) {
    const double x = element_load(c->in, c->x, source * c->x_stride + j), b = load_or_zero(c->in, c->bias, j);
    const double r = load_or_zero(c->in, c->residual, row * c->residual_stride + j), all = x + b + r;
    const int terms = 1 + (c->bias != NULL) + (c->residual != NULL);
    if (terms == 1 || !isfinite(all)) return exactly(all);
    const double partial = terms == 2 ? 0 : fmax(fabs(x + b), fmax(fabs(x + r), fabs(b + r)));
    if (partial > FLT_MAX) return nothing_known();
    const double error = unit * partial;
    return widened(number(all - error, all + error), unit, 0);
}

// Sums over a row of s whose terms are numbers.
typedef struct row_sums {
    double sum, magnitudes, errors; // of s, |s| and what s may be off by
    double squares, crossed;        // of (s - middle)^2 and |s - middle| times its error
    double errors_squared, nonzero; // and the number of terms that are not zero
} row_sums;

static double middle_of(rows_range s) { return (s.lo + s.hi) / 2; }

static row_sums sums_of(const rows_range *s, int64_t n, int around_mean) {
    row_sums all = {0};
    for (int64_t j = 0; j < n; j++) {
        all.sum += middle_of(s[j]);
        all.magnitudes += fabs(middle_of(s[j]));
        all.errors += (s[j].hi - s[j].lo) / 2;
    }
    const double mean = around_mean ? all.sum / (double)n : 0;
    for (int64_t j = 0; j < n; j++) {
        const double away = middle_of(s[j]) - mean, error = (s[j].hi - s[j].lo) / 2;
        all.squares += away * away;
        all.crossed += fabs(away) * error;
        all.errors_squared += error * error;
        all.nonzero += away != 0 || error != 0;
    }
    return all;
}

// u times the additions of the longest chain.
static double chain(int64_t n) {
    const double longest = fmin((double)n, (double)n / 4 + 16);
    return unit * (longest - 1);
}

static rows_range mean_of(const row_sums *sums, int64_t n) {
    const double error = chain(n) * (sums->magnitudes + sums->errors) + sums->errors;
    if (sums->magnitudes > FLT_MAX) // some sum on the way overflows, or does not
        return fabs(sums->sum) == sums->magnitudes && fabs(sums->sum) - error > FLT_MAX
                   ? exactly(copysign(INFINITY, sums->sum))
                   : nothing_known();
    const rows_range sum = number(sums->sum - error, sums->sum + error);
    return widened(number(sum.lo / (double)n, sum.hi / (double)n), 2 * unit, least_step);
}

// 1 / sqrt(squares / n + epsilon) of a sum of squares.
static rows_range inverse_root(rows_range squares, int64_t n, double epsilon) {
    rows_range v = widened(squares, 0, 0); // fp32 may overflow
    v = widened(number(v.lo / (double)n, v.hi / (double)n), 2 * unit, least_step);
    v = widened(number(v.lo + epsilon, v.hi + epsilon), unit, 0);
    if (is_point(v)) return exactly(1 / sqrt(v.lo)); // of nothing but zeros, or infinite
    if (v.lo < FLT_MIN) v.lo = 0;
    return widened(number(1 / sqrt(v.hi), 1 / sqrt(v.lo)), 4 * unit, 0);
}

// The sum of squares of deviations from a mean that may be off, whose rounding errors are d.
static rows_range inverse_deviation(const row_sums *sums, rows_range mean, int64_t n, double epsilon) {
    const double d = (mean.hi - mean.lo) / 2, crossed = 2 * (sums->crossed + d * sums->errors);
    const double relative = chain(n) + 4 * unit, tiny = least_step * (double)n;
    const double greatest = sums->squares + (double)n * d * d + crossed + sums->errors_squared;
    const double least = fmax(0, (sums->squares - crossed) * (1 - relative) - tiny);
    if (greatest == 0) return inverse_root(exactly(0), n, epsilon);
    return inverse_root(number(least, greatest * (1 + relative) + tiny), n, epsilon);
}

static rows_range inverse_rms(const row_sums *sums, int64_t n, double epsilon) {
    const double relative = chain(n) + 2 * unit, tiny = least_step * sums->nonzero, crossed = 2 * sums->crossed;
    if (sums->nonzero == 0) return inverse_root(exactly(0), n, epsilon);
    const double least = fmax(0, (sums->squares - crossed) * (1 - relative) - tiny);
    const double greatest = (sums->squares + crossed + sums->errors_squared) * (1 + relative) + tiny;
    return inverse_root(number(least, greatest), n, epsilon);
}

// Mean and inverse of a row with a NaN, an infinity or what is not known.
static void find_special_statistics(const rows_call *c, rows_answer *a) {
    int any = 0;
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < c->n; j++) {
        any |= a->s[j].kind == ROWS_ANYTHING || (has_infinity(a->s[j]) && !is_point(a->s[j]));
        if (a->s[j].kind == ROWS_NAN || has_infinity(a->s[j])) {
            sum += a->s[j].lo;
            squares += a->s[j].lo * a->s[j].lo;
        }
    }
    a->mean = any && !isnan(sum) ? nothing_known() : exactly(sum);
    if (c->statistics == ROWS_MEAN) a->inv = any && !isnan(sum) ? nothing_known() : exactly(NAN);
    if (c->statistics == ROWS_SQUARE) a->inv = any && !isnan(squares) ? nothing_known() : exactly(1 / sqrt(squares));
}

static void find_statistics(const rows_call *c, rows_answer *a) {
    for (int64_t j = 0; j < c->n; j++)
        if (a->s[j].kind != ROWS_NUMBER || has_infinity(a->s[j])) {
            find_special_statistics(c, a);
            return;
        }
    const row_sums sums = sums_of(a->s, c->n, c->statistics == ROWS_MEAN);
    if (c->statistics == ROWS_SQUARE) a->inv = inverse_rms(&sums, c->n, c->epsilon);
    if (c->statistics != ROWS_MEAN) return;
    a->mean = mean_of(&sums, c->n);
    if (a->mean.kind != ROWS_NUMBER)
        a->inv = a->mean;
    else // deviations from an infinite mean are infinite
        a->inv = has_infinity(a->mean) ? exactly(0) : inverse_deviation(&sums, a->mean, c->n, c->epsilon);
}

static rows_range normalized(const rows_call *c, const rows_answer *a, rows_range inv, int64_t j) {
    rows_range z = a->s[j];
    if (c->statistics == ROWS_MEAN) {
        const rows_range minus_mean = {-a->mean.hi, -a->mean.lo, a->mean.kind};
        z = sum_of(z, minus_mean);
    }
    if (c->statistics != ROWS_NONE) z = product_of(z, inv);
    if (c->rounds_twice) z = rounded_to(c->in, z);
    if (c->gamma) z = product_of(z, exactly(element_load(c->in, c->gamma, j)));
    if (c->beta) z = sum_of(z, exactly(element_load(c->in, c->beta, j)));
    return c->rounds_twice ? rounded_to(c->in, z) : z;
}

// The greatest magnitude of a row.
static rows_range greatest_of(const rows_range *z, int64_t n) {
    rows_range greatest = exactly(0);
    for (int64_t j = 0; j < n && greatest.kind != ROWS_NAN; j++) {
        const rows_range one = magnitude_of(z[j]);
        if (one.kind != ROWS_NUMBER || greatest.kind != ROWS_NUMBER)
            greatest = not_numbers(one, greatest);
        else
            greatest = number(fmax(greatest.lo, one.lo), fmax(greatest.hi, one.hi));
    }
    return greatest;
}

static double greatest_code(tessera_type out) {
    return out == TESSERA_TYPE_INT8 ? 127 : out == TESSERA_TYPE_E4M3FNUZ ? 240 : 448;
}

// z / greatest * q
static rows_range quotient_of(rows_range z, rows_range greatest, double q) {
    if (greatest.kind != ROWS_NUMBER || z.kind != ROWS_NUMBER) return not_numbers(z, greatest);
    if (greatest.hi == 0) return exactly(0);
    if (greatest.lo == INFINITY) {
        if (!has_infinity(z)) return exactly(0);
        return is_point(z) ? exactly(NAN) : nothing_known();
    }
    if (greatest.hi == INFINITY || greatest.lo < q * FLT_MIN) return nothing_known();
    const double lo = z.lo / (z.lo < 0 ? greatest.lo : greatest.hi), hi = z.hi / (z.hi < 0 ? greatest.hi : greatest.lo);
    return widened(number(lo * q, hi * q), 8 * unit, least_step);
}

// z of the whole row is there. A factor that all of its elements have, which is inv without a mean and with one
// rounding, does not change the quotients, so that they are of z without it.
static void quantize(const rows_call *c, const float *smooth, rows_answer *a) {
    const double q = greatest_code(c->out);
    const int cancels = c->statistics == ROWS_SQUARE && !c->rounds_twice && a->inv.kind == ROWS_NUMBER &&
                        a->inv.lo > 0 && a->inv.hi < INFINITY;
    for (int64_t j = 0; j < c->n; j++) {
        const rows_range factor = exactly(smooth ? (double)smooth[j] : 1);
        a->work[j] = smooth ? product_of(a->z[j], factor) : a->z[j];
        a->y[j] = a->work[j];
        if (cancels) a->y[j] = product_of(normalized(c, a, exactly(1), j), factor);
    }
    const rows_range greatest = greatest_of(a->work, c->n), divisor = greatest_of(a->y, c->n);
    a->y_scale = greatest;
    if (greatest.kind == ROWS_NUMBER)
        a->y_scale = widened(number(greatest.lo / q, greatest.hi / q), 3 * unit, least_step);
    const int tiny = greatest.kind == ROWS_NUMBER && greatest.lo < q * FLT_MIN && greatest.hi > 0;
    for (int64_t j = 0; j < c->n; j++) a->y[j] = tiny ? nothing_known() : quotient_of(a->y[j], divisor, q);
}

void rows_answer_of(const rows_call *c, int64_t row, rows_answer *a) {
    const int64_t source = rows_source(c, row);
    for (int64_t j = 0; j < c->n; j++) a->s[j] = added(c, source, row, j);
    a->mean = a->inv = a->y_scale = exactly(0);
    if (c->statistics != ROWS_NONE) find_statistics(c, a);
    for (int64_t j = 0; j < c->n; j++) a->y[j] = a->z[j] = normalized(c, a, a->inv, j);
    if (!c->quantized) return;
    const float *smooth = c->smooth;
    if (c->topk_ids) smooth += c->n * c->topk_ids[source * c->topk + row / c->tokens];
    quantize(c, smooth, a);
}

// --- comparison ------------------------------------------------------------------------------------------------------

static const char *kind_text(rows_kind kind) { return kind == ROWS_NAN ? "NaN" : "anything"; }

static void compare(rows_verdict *v, const char *name, int64_t row, int64_t j, tessera_type type, const void *base,
                    int64_t index, rows_range want) {
    const double got = element_load(type, base, index);
    int right = got >= (want = rounded_to(type, want)).lo && got <= want.hi;
    if (want.kind == ROWS_NAN) right = type == TESSERA_TYPE_INT8 ? got == 0 : isnan(got);
    if (want.kind == ROWS_ANYTHING) right = type != TESSERA_TYPE_INT8 || got >= -127;
    v->checked++;
    v->unspecified += want.kind == ROWS_ANYTHING;
    v->wrong += !right;
    if (right || v->first[0]) return;
    char range[80];
    if (want.kind == ROWS_NUMBER)
        snprintf(range, sizeof range, is_point(want) ? "%.9g" : "%.9g .. %.9g", want.lo, want.hi);
    else
        snprintf(range, sizeof range, "%s", kind_text(want.kind));
    snprintf(v->first, sizeof v->first, "%s of row %lld, column %lld is %.9g instead of %s", name, (long long)row,
             (long long)j, got, range);
}

static void compare_row(const rows_call *c, int64_t row, const rows_answer *a, rows_verdict *v) {
    for (int64_t j = 0; j < c->n; j++) {
        if (c->residual_out)
            compare(v, "y_residual", row, j, c->in, c->residual_out, row * c->residual_out_stride + j, a->s[j]);
        if (c->unquantized) compare(v, "y_unquant", row, j, c->in, c->unquantized, row * c->y_stride + j, a->z[j]);
        compare(v, "y", row, j, c->out, c->y, row * c->y_stride + j, a->y[j]);
    }
    if (c->mean) compare(v, "mean", row, 0, TESSERA_TYPE_FP32, c->mean, row, a->mean);
    if (c->inv) compare(v, "inverse", row, 0, TESSERA_TYPE_FP32, c->inv, row, a->inv);
    if (c->quantized) compare(v, "y_scale", row, 0, TESSERA_TYPE_FP32, c->y_scale, row, a->y_scale);
}

typedef struct check {
    const rows_call *call;
    int64_t begin; // of the rows that are checked
    struct {
        rows_verdict verdict;
        int failed;
    } parts[MOST_PARTS];
} check;

static void check_part(void *context, int part, int64_t begin, int64_t end) {
    check *const self = context;
    const rows_call *const call = self->call;
    const size_t n = (size_t)call->n;
    rows_range *arrays = malloc(4 * n * sizeof *arrays);
    self->parts[part].failed = !arrays;
    rows_answer answer = {.s = arrays, .z = arrays + n, .y = arrays + 2 * n, .work = arrays + 3 * n};
    for (int64_t row = self->begin + begin; arrays && row < self->begin + end; row++) {
        if (rows_source(call, row) < 0) continue;
        rows_answer_of(call, row, &answer);
        compare_row(call, row, &answer, &self->parts[part].verdict);
    }
    free(arrays);
}

int rows_check(const rows_call *call, int64_t begin, int64_t end, int threads, rows_verdict *verdict) {
    memset(verdict, 0, sizeof *verdict);
    if (end <= begin) return 0;
    check *const self = calloc(1, sizeof *self);
    if (!self) return -1;
    self->call = call;
    self->begin = begin;
    do_in_parts(end - begin, threads, check_part, self);
    int failed = 0;
    for (int n = 0; n < MOST_PARTS; n++) {
        const rows_verdict *const one = &self->parts[n].verdict;
        failed |= self->parts[n].failed;
        verdict->checked += one->checked;
        verdict->wrong += one->wrong;
        verdict->unspecified += one->unspecified;
        if (!verdict->first[0]) memcpy(verdict->first, one->first, sizeof verdict->first);
    }
    free(self);
    return failed ? -1 : 0;
}
