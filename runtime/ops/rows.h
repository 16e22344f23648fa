// SPDX-License-Identifier: MIT
// What the operations on rows share: their calls describe one problem, whose tensors are checked and whose kernels are
// run the same way. An operation's own file says which of its traits and args the problem is made of.
#ifndef TESSERA_RUNTIME_OPS_ROWS_H
#define TESSERA_RUNTIME_OPS_ROWS_H

#include "op/typed.h"
#include "tessera/kernel/rows.h"

// A tensor that the call asks for: [count, columns], with a stride where it has a name for one.
struct tessera_rows_tensor {
    int bits; // of an element
    bool written;
    const char *name, *stride_name;
    const void *pointer;
    int64_t stride, count, columns;
};

// What a call of theirs begins with; check_sizes fills it in.
struct tessera_rows_call {
    struct tessera_rows_problem problem;
    tessera_fused_quant fused_quant;
    struct tessera_rows_tensor tensors[12];
    int tensor_count;
};

// Begins the problem: [m, n], of which the names are the caller's.
tessera_status tessera_rows_begin(struct tessera_rows_call *rows, const char *m_name, int32_t m, const char *n_name,
                                  int32_t n, tessera_type prec_i, tessera_type prec_o);
tessera_status tessera_rows_check_quantized(tessera_type prec_o); // 8 bits
tessera_status tessera_rows_check_fused(tessera_type prec_i, tessera_type prec_o, tessera_fused_add add,
                                        tessera_fused_quant quant);
tessera_status tessera_rows_check_flag(const char *name, int32_t value);
tessera_status tessera_rows_set_epsilon(struct tessera_rows_call *rows, float epsilon);

// Adds a tensor and returns its pointer: rows of n columns, one row, or a number for each of m rows.
void *tessera_rows_add(struct tessera_rows_call *rows, struct tessera_rows_tensor tensor);

// Of `a`, the args: the tensor that the problem `p` of `rows` calls `field`.
#define ROWS_TENSOR(field, type, written, ...)                                                                         \
    (p->field = tessera_rows_add(rows, (struct tessera_rows_tensor){tessera_type_bits(type), written, __VA_ARGS__}))
#define ROWS_READ(field, ptr, row_stride)                                                                              \
    (p->field##_stride = a->row_stride,                                                                                \
     ROWS_TENSOR(field, t->prec_i, false, #ptr, #row_stride, a->ptr, a->row_stride, p->m, p->n))
#define ROWS_WRITTEN(field, ptr, row_stride, type)                                                                     \
    (p->field##_stride = a->row_stride,                                                                                \
     ROWS_TENSOR(field, type, true, #ptr, #row_stride, a->ptr, a->row_stride, p->m, p->n))
#define ROWS_COLUMNS(field, ptr, type) ROWS_TENSOR(field, type, false, #ptr, NULL, a->ptr, 0, 1, p->n)
#define ROWS_NUMBERS(field, ptr) ROWS_TENSOR(field, TESSERA_TYPE_FP32, true, #ptr, NULL, a->ptr, 1, p->m, 1)

// All that selection reads of a call.
struct tessera_rows_shape {
    int64_t m, n;
};

// For the struct tessera_operation of each, which fills in the rest.
uint32_t tessera_rows_describe(const void *call, void *shape);
double tessera_rows_cost(const tessera_instance *row, const struct tessera_request *r);
int tessera_rows_list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]);
void tessera_rows_add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *limits);
uint32_t tessera_rows_count_ck(const struct tessera_request *r, const tessera_instance *row, const uint32_t *limits);
tessera_status tessera_rows_check_memory(const void *call, bool on_gpu, struct tessera_tensors *all);
tessera_status tessera_rows_add_steps(void *call, struct tessera_plan *plan);

#define TESSERA_ROWS_OPERATION(op)                                                                                     \
    TESSERA_CALL_OF(op),                                                                                               \
        .kernels = {.get_table = tessera_##op##_get_table,                                                             \
                    .describe = tessera_rows_describe,                                                                 \
                    .cost = tessera_rows_cost,                                                                         \
                    .list_starts = tessera_rows_list_starts,                                                           \
                    .add_ck_tile = tessera_rows_add_ck_tile,                                                           \
                    .count_ck = tessera_rows_count_ck},                                                                \
        .check_memory = tessera_rows_check_memory, .add_steps = tessera_rows_add_steps

#endif
