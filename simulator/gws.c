// SPDX-License-Identifier: MIT
// ds_gws_*: global wave sync, 64 resources of the GPU that are semaphores or barriers. "Vega Instruction Set
// Architecture", the DS instructions' descriptions; later documents name them only.
#include "internal.h"
#include "semantics.h"

// The resource: M0[21:16] and the instruction's offset. What a driver gives a process starts at 0 here.
static unsigned resource_of(const struct sim_wave *wave, const struct sim_code *code) {
    return ((wave->sgpr[SIM_M0] >> 16) + (unsigned)code->inst.offset) % SIM_GWS_RESOURCES;
}

// The first active lane's value; false after a fault.
static bool read_count(struct sim_wave *wave, const struct sim_code *code, int32_t *count) {
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *data = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], 1);
    if (data) *count = (int32_t)data[0][exec ? __builtin_ctzll(exec) : 0];
    return data != NULL;
}

// The wave stays at this instruction and comes back to it with its next turn.
static void wait_here(struct sim_wave *wave) { wave->next_pc = wave->pc; }

// Waves of other workgroups may run at another time, or at the same time on another thread.
static bool is_alone(struct sim_wave *wave) {
    const uint64_t groups = wave->group->launch->group_count;
    if (groups > 1)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0,
                            "waits for waves of other workgroups: %llu of them run one after another",
                            (unsigned long long)groups);
    return groups == 1;
}

static void initialize(struct sim_wave *wave, const struct sim_code *code) {
    int32_t count;
    if (!read_count(wave, code, &count)) return;
    wave->group->launch->sim->gws[resource_of(wave, code)] = (struct sim_gws){.counter = count};
}

static void barrier(struct sim_wave *wave, const struct sim_code *code) {
    int32_t count;
    if (!is_alone(wave) || !read_count(wave, code, &count)) return;
    struct sim_gws *gws = &wave->group->launch->sim->gws[resource_of(wave, code)];
    if (!wave->gws_waits) { // the last one to come opens it and sets up the next one
        wave->gws_waits = true;
        wave->gws_flag = gws->flag;
        if (gws->counter <= 0) {
            gws->flag = !gws->flag;
            gws->counter = count;
        } else {
            gws->counter--;
        }
    }
    wave->gws_waits = gws->flag == wave->gws_flag;
    if (wave->gws_waits) wait_here(wave);
}

static void release_one(struct sim_wave *wave, const struct sim_code *code) {
    if (is_alone(wave)) wave->group->launch->sim->gws[resource_of(wave, code)].counter++;
}

static void release_many(struct sim_wave *wave, const struct sim_code *code) {
    int32_t count;
    if (is_alone(wave) && read_count(wave, code, &count))
        wave->group->launch->sim->gws[resource_of(wave, code)].counter += count;
}

// All that wait here go on.
static void release_all(struct sim_wave *wave, const struct sim_code *code) {
    if (is_alone(wave)) wave->group->launch->sim->gws[resource_of(wave, code)].released++;
}

static void acquire(struct sim_wave *wave, const struct sim_code *code) {
    if (!is_alone(wave)) return;
    struct sim_gws *gws = &wave->group->launch->sim->gws[resource_of(wave, code)];
    if (!wave->gws_waits) wave->gws_released = gws->released;
    wave->gws_waits = gws->counter <= 0 && gws->released == wave->gws_released;
    if (wave->gws_waits)
        wait_here(wave);
    else if (gws->counter > 0)
        gws->counter--;
}

#define ROW(op, execute)                                                                                               \
    { SIM_OP_DS_GWS_##op, execute, NULL, 0 }
static const struct sim_semantics rows[] = {
    ROW(INIT, initialize),
    ROW(BARRIER, barrier),
    ROW(SEMA_V, release_one),
    ROW(SEMA_BR, release_many),
    ROW(SEMA_RELEASE_ALL, release_all),
    ROW(SEMA_P, acquire),
};
const struct sim_semantics_list tessera_sim_gws_list = {rows, sizeof rows / sizeof *rows};
