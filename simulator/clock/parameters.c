// SPDX-License-Identifier: MIT
#include "parameters.h"

#include <stdlib.h>
#include <string.h>

const struct sim_parameter tessera_sim_parameters[] = {
#define P(name, gfx90a, gfx942, gfx950, unit, meaning, source, fit)                                                    \
    {#name, offsetof(struct sim_parameters, name), {gfx90a, gfx942, gfx950}, unit, meaning, source, fit},
#include "parameters.def"
#undef P
};
const size_t tessera_sim_parameter_count = sizeof tessera_sim_parameters / sizeof *tessera_sim_parameters;

static uint32_t *value_of(struct sim_parameters *page, const struct sim_parameter *row) {
    return (uint32_t *)((char *)page + row->offset);
}

struct sim_parameters tessera_sim_page(enum sim_arch arch) {
    struct sim_parameters page;
    for (size_t i = 0; i < tessera_sim_parameter_count; i++)
        *value_of(&page, &tessera_sim_parameters[i]) = tessera_sim_parameters[i].value[arch];
    return page;
}

static const struct sim_parameter *find_row(const char *name, size_t length) {
    for (size_t i = 0; i < tessera_sim_parameter_count; i++)
        if (strlen(tessera_sim_parameters[i].name) == length &&
            strncmp(tessera_sim_parameters[i].name, name, length) == 0)
            return &tessera_sim_parameters[i];
    return NULL;
}

bool tessera_sim_change_page(struct sim_parameters *page, const char *text) {
    while (*text) {
        const size_t length = strcspn(text, "=,");
        const struct sim_parameter *row = find_row(text, length);
        if (!row || text[length] != '=' || text[length + 1] < '0' || text[length + 1] > '9') return false;
        char *end;
        const unsigned long value = strtoul(text + length + 1, &end, 10);
        if ((*end && *end != ',') || value > UINT32_MAX / 2) return false;
        *value_of(page, row) = (uint32_t)value;
        text = *end ? end + 1 : end;
    }
    return true;
}
