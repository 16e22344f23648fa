// SPDX-License-Identifier: MIT
// ds_gws_*: global wave sync, 64 resources of the GPU that are semaphores or barriers. "Vega Instruction Set
// Architecture", the DS instructions' descriptions; later documents name them only.
#include "machine/launch.h"
#include "operands.h"
#include "semantics.h"

// Reads the value of the first active lane; false after a fault.
static bool read_count(struct sim_wave *wave, const struct sim_code *code, int32_t *count) {
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *data = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], 1);
    if (data) *count = (int32_t)data[0][exec ? __builtin_ctzll(exec) : 0];
    return data != NULL;
}

// Makes the wave repeat this instruction in its next turn.
static void wait_here(struct sim_wave *wave) { wave->next_pc = wave->pc; }

// Whether the workgroup is the launch's only one: waves of others run at other times, or on other threads.
static bool is_alone(struct sim_wave *wave) {
    const uint64_t groups = wave->group->launch->group_count;
    if (groups > 1)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0,
                            "waits for waves of other workgroups: %llu of them run one after another",
                            (unsigned long long)groups);
    return groups == 1;
}

static void barrier(struct sim_wave *wave, struct sim_gws *gws, int32_t count) {
    if (!wave->gws_waits) { // the last wave to come opens the barrier and sets up the next one
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

static void acquire(struct sim_wave *wave, struct sim_gws *gws) {
    if (!wave->gws_waits) wave->gws_released = gws->released;
    wave->gws_waits = gws->counter <= 0 && gws->released == wave->gws_released;
    if (wave->gws_waits)
        wait_here(wave);
    else if (gws->counter > 0)
        gws->counter--;
}

enum { INIT, BARRIER, RELEASE_ONE, RELEASE_MANY, RELEASE_ALL, ACQUIRE }; // a row's detail

static void operate(struct sim_wave *wave, struct sim_gws *gws, uint32_t operation, int32_t count) {
    switch (operation) {
    case INIT:
        *gws = (struct sim_gws){.counter = count};
        break;
    case BARRIER:
        barrier(wave, gws, count);
        break;
    case RELEASE_ONE:
        gws->counter++;
        break;
    case RELEASE_MANY:
        gws->counter += count;
        break;
    case RELEASE_ALL:
        gws->released++;
        break;
    case ACQUIRE:
        acquire(wave, gws);
        break;
    }
}

// The resource's number is M0[21:16] plus the instruction's offset; the base that a driver would add is 0 here.
static void synchronize(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim *sim = wave->group->launch->sim;
    const unsigned resource = ((wave->sgpr[SIM_M0] >> 16) + (unsigned)code->inst.offset) % SIM_GWS_RESOURCES;
    int32_t count = 0;
    if (code->inst.op[SIM_DATA].kind != SIM_ABSENT && !read_count(wave, code, &count)) return;
    if (code->detail != INIT && !is_alone(wave)) return;
    pthread_mutex_lock(&sim->lock);
    operate(wave, &sim->gws[resource], code->detail, count);
    pthread_mutex_unlock(&sim->lock);
}

#define ROW(op, detail)                                                                                                \
    { SIM_OP_##op, synchronize, NULL, detail }
static const struct sim_semantics rows[] = {
    ROW(ds_gws_init, INIT),
    ROW(ds_gws_barrier, BARRIER),
    ROW(ds_gws_sema_v, RELEASE_ONE),
    ROW(ds_gws_sema_br, RELEASE_MANY),
    ROW(ds_gws_sema_release_all, RELEASE_ALL),
    ROW(ds_gws_sema_p, ACQUIRE),
};
const struct sim_semantics_list tessera_sim_gws_list = {rows, sizeof rows / sizeof *rows};
