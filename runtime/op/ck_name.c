// SPDX-License-Identifier: MIT
// CK's name of the traits and tile of one call. The generator spells the names of all traits that an instance serves
// (Instance.ck_names in codegen/spec.py); a test compares the two.
#include "op/select.h"

static bool all_hold(const uint32_t *limits, const struct tessera_request *r, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (r->sizes[i] > limits[i]) return false;
    return true;
}

// The first value of an axis whose limits hold the call's sizes. The last value holds all sizes that are served.
static uint32_t first_limits(const tessera_ck_axis *axis, const struct tessera_request *r) {
    const uint32_t count = r->table->schema->size_count;
    uint32_t i = 0;
    while (i + 1 < axis->count && !all_hold(&axis->limits[(size_t)i * count], r, count)) i++;
    return i;
}

static const uint32_t *limits_of(const struct tessera_request *r) {
    const tessera_schema *const schema = r->table->schema;
    for (uint32_t i = 0; i < schema->axis_count; i++)
        if (schema->axes[i].limits)
            return &schema->axes[i].limits[(size_t)first_limits(&schema->axes[i], r) * schema->size_count];
    return NULL;
}

void tessera_add_ck_name(struct tessera_text *out, const struct tessera_request *r, const tessera_instance *row) {
    const tessera_schema *const schema = r->table->schema;
    const uint32_t *const limits = limits_of(r);
    tessera_text_add(out, "%s", schema->operation);
    for (uint32_t i = 0;; i++) {
        if (i == schema->head_axes) r->kernels->add_ck_tile(out, row, limits);
        if (i == schema->axis_count) return;
        const tessera_ck_axis *const axis = &schema->axes[i];
        uint32_t number = 0;
        if (axis->trait >= 0)
            number = tessera_member(r->traits, schema->traits[axis->trait].offset);
        else if (axis->limits)
            number = first_limits(axis, r);
        else if (axis->count > 1)
            number = r->kernels->count_ck(r, row, limits);
        if (*axis->tokens[number]) tessera_text_add(out, "_%s", axis->tokens[number]);
    }
}
