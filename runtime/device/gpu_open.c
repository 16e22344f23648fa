// SPDX-License-Identifier: MIT
// Opens GPUs by number or architecture, or the first that has instances.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu.h"
#include "guard.h"
#include "integers.h"
#include "library.h"

// ---- architectures

// The length without features: of "gfx942" in "gfx942:sramecc+:xnack-". Code is built for any features.
static size_t base_length(const char *arch) { return strcspn(arch, ":"); }

static bool same_base(const char *a, const char *b) {
    return base_length(a) == base_length(b) && strncmp(a, b, base_length(a)) == 0;
}

static bool is_of_kind(int target, const struct tessera_driver_kind *kind) {
    const char *const word = tessera_target_kinds[target];
    return word && strcmp(word, kind->targets) == 0;
}

static tessera_status refuse_arch(const struct tessera_driver_kind *kind, const char *name, const char *arch) {
    char list[256];
    struct tessera_text words = {list, sizeof list, 0};
    int left = 0;
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++) left += is_of_kind(target, kind);
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        if (is_of_kind(target, kind))
            tessera_text_add(&words, "%s%s", tessera_target_words[target], --left > 1 ? ", " : left ? " or " : "");
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s is of architecture %s: %s", name, arch, list);
}

static tessera_status find_target(const struct tessera_driver_kind *kind, const char *name, const char *arch,
                                  tessera_target *out) {
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        if (is_of_kind(target, kind) && same_base(arch, tessera_target_words[target])) {
            *out = (tessera_target)target;
            return TESSERA_SUCCESS;
        }
    return refuse_arch(kind, name, arch);
}

// ---- opening

static tessera_status attach(struct tessera_gpu *gpu, tessera_device_facts *facts) {
    const struct tessera_driver_calls *const calls = tessera_gpu_calls(gpu);
    *facts = (tessera_device_facts){.struct_size = sizeof *facts, .targets = 1u << gpu->target};
    TRY(calls->facts(&gpu->chip, facts));
    if (facts->compute_units < 1)
        return tessera_fail(TESSERA_ERROR_DEVICE, "%s has %d compute units", gpu->chip.name, facts->compute_units);
    return calls->attach ? calls->attach(&gpu->chip) : TESSERA_SUCCESS;
}

// Takes ownership of the chip's driver, even where it fails.
static tessera_status open_chip(const struct tessera_chip *chip, tessera_target target, struct tessera_gpu **out,
                                tessera_device_facts *facts) {
    struct tessera_gpu *const gpu = calloc(1, sizeof *gpu);
    if (!gpu) {
        tessera_driver_close(chip->driver);
        return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a device of %zu bytes", sizeof *gpu);
    }
    gpu->chip = *chip;
    gpu->target = target;
    pthread_mutex_init(&gpu->lock, NULL);
    const tessera_status status = attach(gpu, facts);
    if (status == TESSERA_SUCCESS)
        *out = gpu;
    else
        tessera_gpu_close(gpu);
    return status;
}

static tessera_status find_numbered(const struct tessera_driver_kind *kind, const struct tessera_chip *chip,
                                    tessera_target *target) {
    const struct tessera_driver *const driver = chip->driver;
    int count = 0;
    char arch[TESSERA_ARCH_BYTES];
    TRY(driver->calls->count(chip, &count));
    if (chip->ordinal >= count)
        return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s shows %d devices", chip->name, driver->origin, count);
    TRY(driver->calls->arch(chip, arch));
    return find_target(kind, chip->name, arch, target);
}

static tessera_status open_numbered(const struct tessera_driver_kind *kind, int ordinal, struct tessera_gpu **out,
                                    tessera_device_facts *facts) {
    struct tessera_chip chip = {.ordinal = ordinal};
    tessera_target target = TESSERA_TARGET_COUNT;
    snprintf(chip.name, sizeof chip.name, "%s:%d", kind->word, ordinal);
    TRY(tessera_driver_open(kind, chip.name, &chip.driver));
    const tessera_status status = find_numbered(kind, &chip, &target);
    if (status == TESSERA_SUCCESS) return open_chip(&chip, target, out, facts);
    tessera_driver_close(chip.driver);
    return status;
}

static tessera_status find_simulated(const char *wanted, struct tessera_chip *chip) {
    const struct tessera_driver *const driver = chip->driver;
    int count = 0;
    char arch[TESSERA_ARCH_BYTES];
    TRY(driver->calls->count(chip, &count));
    for (chip->ordinal = 0; chip->ordinal < count; chip->ordinal++) {
        TRY(driver->calls->arch(chip, arch));
        if (same_base(arch, wanted)) return TESSERA_SUCCESS;
    }
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: none of the %d devices of %s is of that architecture", chip->name,
                        count, driver->origin);
}

static tessera_status open_simulated(const struct tessera_driver_kind *kind, const char *arch, struct tessera_gpu **out,
                                     tessera_device_facts *facts) {
    struct tessera_chip chip = {.ordinal = 0};
    tessera_target target = TESSERA_TARGET_COUNT;
    const int length = (int)tessera_min(base_length(arch), 16);
    snprintf(chip.name, sizeof chip.name, "%s:%.*s", kind->word, length, arch);
    TRY(find_target(kind, chip.name, arch, &target));
    TRY(tessera_driver_open(kind, chip.name, &chip.driver));
    const tessera_status status = find_simulated(arch, &chip);
    if (status == TESSERA_SUCCESS) return open_chip(&chip, target, out, facts);
    tessera_driver_close(chip.driver);
    return status;
}

static tessera_status check_number(const char *word, const char *rest) {
    char *end;
    const long ordinal = strtol(rest, &end, 10);
    GUARD(*rest >= '0' && !*end && ordinal <= INT16_MAX,
          "device \"%s:%s\": %s:N with the number of a GPU, such as %s:0", word, rest, word, word);
    return TESSERA_SUCCESS;
}

tessera_status tessera_gpu_open(const struct tessera_driver_kind *kind, const char *rest, struct tessera_gpu **out,
                                tessera_device_facts *facts) {
    TRY(kind->check ? kind->check(rest) : check_number(kind->word, rest));
    return kind->is_simulated ? open_simulated(kind, rest, out, facts) : open_numbered(kind, atoi(rest), out, facts);
}

static int count_devices(const struct tessera_driver_kind *kind) {
    struct tessera_chip chip = {.name = "auto"};
    int count = 0;
    if (tessera_driver_open(kind, chip.name, &chip.driver) != TESSERA_SUCCESS) return 0;
    if (chip.driver->calls->count(&chip, &count) != TESSERA_SUCCESS) count = 0;
    tessera_driver_close(chip.driver);
    return count;
}

void tessera_gpu_open_first(bool accepts(tessera_target target), struct tessera_gpu **out,
                            tessera_device_facts *facts) {
    *out = NULL;
    for (const struct tessera_driver_kind *const *kind = tessera_driver_kinds; *kind; kind++) {
        const int count = (*kind)->is_simulated ? 0 : count_devices(*kind);
        for (int ordinal = 0; ordinal < count; ordinal++) {
            if (open_numbered(*kind, ordinal, out, facts) == TESSERA_SUCCESS && accepts((*out)->target)) return;
            tessera_gpu_close(*out);
            *out = NULL;
        }
    }
}

void tessera_gpu_close(struct tessera_gpu *gpu) {
    if (!gpu) return;
    tessera_gpu_unload_all(gpu);
    if (tessera_gpu_calls(gpu)->detach) tessera_gpu_calls(gpu)->detach(&gpu->chip);
    pthread_mutex_destroy(&gpu->lock);
    tessera_driver_close(gpu->chip.driver);
    free(gpu);
}
