// SPDX-License-Identifier: MIT
// Words of sm_90a for work that goes on beside a warp's instructions: barriers in shared memory, copies of tiles, and
// what products of warpgroups need. The products themselves are emitted, since each shape has its own list of registers
// (codegen/ops/fmha_fwd/cuda_products.py).
//
// Shared memory is named by 32-bit addresses. Sources: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions",
// "Parallel Synchronization: mbarrier, barrier.cluster", "Data Movement: Tensor copy, mapa", "Miscellaneous:
// setmaxnreg"; CUTLASS, cute/arch/mma_sm90_desc.hpp, cute/arch/copy_sm90_tma.hpp, cute/arch/cluster_sm90.hpp,
// cutlass/arch/barrier.h.
#ifndef TESSERA_ISA_SM90_ASYNC_H
#define TESSERA_ISA_SM90_ASYNC_H

#include "tessera/isa/sm90.h"

#include "tessera/isa/gpu_philox.h"

#define ASSEMBLY __asm__ volatile                      // of emitted products
#define SAME_BITS(type, x) __builtin_bit_cast(type, x) // of types of one size

enum { WARPGROUP = 128 }; // threads, which a matrix product takes together

// The first lane's number in all lanes. The compiler then knows branches on it to be the same for the warp.
INLINE int of_first_lane(int x) {
    int y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, 0, 31, -1;" : "=r"(y) : "r"(x));
    return y;
}

// The number that a lane has, which may be another one for each lane.
INLINE uint32_t of_lane(uint32_t x, int lane) {
    uint32_t y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, -1;" : "=r"(y) : "r"(x), "r"(lane));
    return y;
}

INLINE uint64_t of_lane_64(uint64_t x, int lane) {
    const uint32_t low = of_lane((uint32_t)x, lane), high = of_lane((uint32_t)(x >> 32), lane);
    return (uint64_t)high << 32 | low;
}

// The number of the lane whose number differs in the bits of `mask`.
INLINE float other_lane(float x, int mask) {
    float y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(y) : "f"(x), "r"(mask));
    return y;
}
INLINE uint32_t other_lane_bits(uint32_t x, int mask) {
    uint32_t y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(y) : "r"(x), "r"(mask));
    return y;
}
INLINE int any_lane(int condition) {
    int any;
    __asm__ volatile("{\n\t"
                     ".reg .pred p, q;\n\t"
                     "setp.ne.s32 p, %1, 0;\n\t"
                     "vote.sync.any.pred q, p, -1;\n\t"
                     "selp.s32 %0, 1, 0, q;\n\t"
                     "}"
                     : "=r"(any)
                     : "r"(condition));
    return any;
}

// thread_id(), which is read anew: it and what is made of it take no registers in between.
INLINE int thread_id_again(void) {
    int id;
    __asm__ volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
    __builtin_assume(id >= 0); // so that it is divided by shifts
    return id;
}

// A number whose products are made behind this place: before a loop they would take registers in it.
INLINE int here(int x) {
    __asm__ volatile("" : "+r"(x));
    return x;
}

INLINE int workgroup_count(void) { return __nvvm_read_ptx_sreg_nctaid_x(); } // along x

// ---- arithmetic

INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); } // a b + c, rounded once
INLINE float product(float a, float b) {                                          // rounded, whatever is done with it
    float y;
    __asm__("mul.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

// 2^x by multiply-adds, within 2^-18 relatively, from x = -126 on: below it is 2^-126. NaN stays NaN.
INLINE float exp2_fused(float x) {
    const float one_and_half = 0x1.8p23f + 127.0f; // a sum with it ends in an exponent
    __asm__("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(-126.0f));
    const float sum = x + one_and_half, f = x - (sum - one_and_half);
    float y = fused(0.0095701f, f, 0.05591786f); // a minimax polynomial of 2^f, |f| <= 1/2
    y = fused(y, f, 0.24024745f);
    y = fused(y, f, 0.69312181f);
    y = fused(y, f, 0.99999926f);
    return y * AS_F32(AS_U32(sum) << 23);
}

// ---- registers of a warpgroup: all its warps leave or take them together

#define LEAVE_REGISTERS(count) __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count))
#define TAKE_REGISTERS(count) __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count))

// ---- shared memory

extern __attribute__((shared, aligned(1024))) unsigned char shared_memory[]; // as much as the launch asks for

// The address of its first byte, which products and tensor copies need to be a multiple of 1024.
INLINE uint32_t shared_base(void) {
    uint32_t address;
    __asm__("{\n\t"
            ".reg .u64 a;\n\t"
            "cvta.to.shared.u64 a, %1;\n\t"
            "cvt.u32.u64 %0, a;\n\t"
            "}"
            : "=r"(address)
            : "l"(shared_memory));
    return address;
}

INLINE void shared_store_16(uint32_t to, u32x4 x) {
    __asm__ volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                     : "memory");
}
INLINE u32x4 shared_load_16(uint32_t from) {
    uint32_t x, y, z, w;
    __asm__ volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                     : "r"(from)
                     : "memory");
    return (u32x4){x, y, z, w};
}

INLINE void shared_store_f32(uint32_t to, float x) {
    __asm__ volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
INLINE void shared_store_f32x2(uint32_t to, f32x2 x) {
    __asm__ volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x.x), "f"(x.y) : "memory");
}
INLINE uint32_t shared_load_4(uint32_t from) {
    uint32_t x;
    __asm__ volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}
INLINE f32x2 shared_load_f32x2(uint32_t from) {
    f32x2 x;
    __asm__ volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
    return x;
}

// Four matrices of 8 rows of 16 bytes, whose addresses lanes 8 m + row give. Read transposed, as pairs of bytes: x[m]
// is pair lane / 4 of rows 2 (lane % 4) and the next one. Else, and stored: x[m] is bytes 4 (lane % 4) and on of row
// lane / 4.
INLINE void read_transposed(uint32_t x[4], uint32_t from) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
}
INLINE void read_matrices(uint32_t x[4], uint32_t from) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
}
INLINE void store_matrices(uint32_t to, const uint32_t x[4]) {
    __asm__ volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]),
                     "r"(x[2]), "r"(x[3])
                     : "memory");
}
// Stores x, of which lanes have parts as of store_matrices(), as its transposed matrix of pairs of bytes.
INLINE void store_transposed(uint32_t to, const uint32_t x[4]) {
    __asm__ volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]),
                     "r"(x[1]), "r"(x[2]), "r"(x[3])
                     : "memory");
}
// Lets products and tensor copies see the lane's stores: to be followed by an arrival.
INLINE void finish_stores(void) { __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Bytes 0, 2 (1, 3) of a, then those of b.
INLINE uint32_t even_bytes(uint32_t a, uint32_t b) {
    uint32_t x;
    __asm__("prmt.b32 %0, %1, %2, 0x6420;" : "=r"(x) : "r"(a), "r"(b));
    return x;
}
INLINE uint32_t odd_bytes(uint32_t a, uint32_t b) {
    uint32_t x;
    __asm__("prmt.b32 %0, %1, %2, 0x7531;" : "=r"(x) : "r"(a), "r"(b));
    return x;
}

// ---- barriers in shared memory (mbarrier): one is passed, phase after phase, when `arrivals` threads have arrived and
// all bytes that were announced are there. `parity` is that of the phase to wait for: 0, 1, 0, ...

INLINE void start_barrier(uint32_t at, int arrivals) {
    __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
// After the last start_barrier(), before the workgroup's barrier(): copies see them too.
INLINE void publish_barriers(void) { __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

INLINE void arrive(uint32_t at) { __asm__ volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
INLINE void arrive_and_announce(uint32_t at, int bytes) {
    __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
// Whether wait_for() would not wait.
INLINE int has_passed(uint32_t at, uint32_t parity) {
    int passed;
    __asm__ volatile("{\n\t"
                     ".reg .pred passed;\n\t"
                     "mbarrier.test_wait.parity.shared::cta.b64 passed, [%1], %2;\n\t"
                     "selp.s32 %0, 1, 0, passed;\n\t"
                     "}"
                     : "=r"(passed)
                     : "r"(at), "r"(parity)
                     : "memory");
    return passed;
}
INLINE void wait_for(uint32_t at, uint32_t parity) {
    __asm__ volatile("{\n\t"
                     ".reg .pred passed;\n"
                     "again:\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 passed, [%0], %1;\n\t"
                     "@passed bra done;\n\t"
                     "bra again;\n"
                     "done:\n\t"
                     "}" ::"r"(at),
                     "r"(parity)
                     : "memory");
}

// ---- clusters: workgroups that run side by side and reach each other's shared memory, or one that is alone

INLINE int cluster_rank(void) { // the workgroup's number in its cluster
    int rank;
    __asm__("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// Waits for all threads of the cluster but those that have ended: each sees what the others wrote before.
INLINE void meet_cluster(void) {
    __asm__ volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Arrives at the barrier that workgroup `rank` has at this address. It says that shared memory of the lane's workgroup
// has been read, not what the lane stored: `.release.cluster` would, and waits for all of the GPU to see it.
INLINE void arrive_in(int rank, uint32_t at) {
    __asm__ volatile("{\n\t"
                     ".reg .b32 there;\n\t"
                     "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                     "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t"
                     "}" ::"r"(at),
                     "r"(rank)
                     : "memory");
}

// ---- copies of tiles by a tensor map: boxes of it go to shared memory, and announce their bytes there. What lies
// outside of the tensor arrives as zeros.

INLINE void copy_box(uint32_t to, const void *map, uint32_t barrier, int x, int y, int z, int w) {
    __asm__ volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                     "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                     : "memory");
}

// Likewise to the same place of workgroups 0 and 1 of the cluster, each of whose barriers is told.
INLINE void copy_box_to_both(uint32_t to, const void *map, uint32_t barrier, int x, int y, int z, int w) {
    __asm__ volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
                     "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "h"((uint16_t)3)
                     : "memory");
}

INLINE void copy_box_of_5(uint32_t to, const void *map, uint32_t barrier, int x, int y, int z, int w, int v) {
    __asm__ volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
                     "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
                     : "memory");
}

// ---- copies by the lanes: 16 bytes each, of which the first `bytes` are read and the others are zeros

INLINE void copy_16(uint32_t to, const void *from, int bytes) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// Waits for the lane's copies, and lets products and tensor copies see them: to be followed by an arrival.
INLINE void finish_copies(void) {
    __asm__ volatile("cp.async.wait_all;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
// Copies since the one before are a group. The second word waits until no more than `pending` of the lane's last groups
// are on their way; then the lane sees the others.
INLINE void commit_copies(void) { __asm__ volatile("cp.async.commit_group;" ::: "memory"); }
#define AWAIT_COPIES(pending) __asm__ volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

// Barriers 1 to 15 of a workgroup's 16, of each of which two warpgroups are members: one comes and goes on, the other
// one waits for it (PTX ISA, "Parallel Synchronization: barrier"; CUTLASS, cutlass/arch/barrier.h, NamedBarrier).
INLINE void wait_for_warpgroup(int barrier) { __asm__ volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory"); }
INLINE void tell_warpgroup(int barrier) { __asm__ volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory"); }
// The threads of a warpgroup, which share barrier `number`: each sees what the others wrote before.
#define MEET_WARPGROUP(number) __asm__ volatile("barrier.sync %0, %1;" ::"n"(number), "n"(WARPGROUP) : "memory")
// So many threads meet, a number that is known when the kernel is compiled: whole warps, all of them here.
#define MEET_ALIGNED_THREADS(barrier, threads)                                                                         \
    __asm__ volatile("barrier.sync.aligned %0, %1;" ::"n"(barrier), "n"(threads) : "memory")

INLINE void meet_lanes(void) { __asm__ volatile("bar.warp.sync -1;" ::: "memory"); }

// ---- products of a warpgroup

// An operand in shared memory: rows of 128 bytes, whose 16-byte pieces are swizzled by the row's number in groups of
// eight rows, which are 1024 bytes apart. `leading` is the distance in bytes of what lies 64 elements on along the
// other dimension, for an operand that is read across its rows. Addresses count 16 bytes, in 14 bits. (PTX ISA, "Matrix
// Descriptor Format"; CUTLASS, GmmaDescriptor.)
INLINE uint64_t operand(uint32_t address, uint32_t leading) {
    return (uint64_t)((address & 0x3ffff) >> 4 | leading >> 4 << 16) | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// Likewise with rows of 32 bytes, whose two pieces change places in every other four rows; 256 bytes are eight rows.
INLINE uint64_t narrow_operand(uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(256 >> 4) << 32 | (uint64_t)3 << 62;
}

INLINE uint32_t address_of(uint64_t operand) { return (uint32_t)(operand & 0x3fff) << 4; }

// ---- random bits

INLINE u32x4 philox(u32x4 counter, uint64_t seed) { return philox_rounds(counter, seed); } // Philox4x32-10

// ---- sums in memory

// Adds a number to one in memory, in one go.
INLINE void add_f32(float *to, float x) {
    __asm__ volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}

// Adds a box of fp32 in shared memory to that of a tensor map; what lies outside of the tensor is left alone. Hardware
// does it once the lane has committed it.
INLINE void add_box(const void *map, uint32_t from, int x, int y, int z) {
    __asm__ volatile(
        "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
        "r"(from), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// Stores a run of bytes, a multiple of 16.
INLINE void store_run(void *to, uint32_t from, int bytes) {
    __asm__ volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                     : "memory");
}
INLINE void commit_boxes(void) { __asm__ volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until shared memory was read, or all was done, of what this lane committed.
INLINE void await_boxes_read(void) { __asm__ volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
INLINE void await_boxes(void) { __asm__ volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ---- a counter in memory

// A warp takes the next number, from 0.
INLINE int take_number(uint32_t *counter) {
    int number = 0;
    if (lane_id() == 0)
        __asm__ volatile("atom.global.relaxed.gpu.add.u32 %0, [%1], 1;" : "=r"(number) : "l"(counter) : "memory");
    return of_first_lane(number);
}

// ---- turns: threads of any workgroups that do something to the same memory, one after the other, by a number there

// The number, which may have been read long before it is looked at.
INLINE uint32_t read_turn(const uint32_t *number) {
    uint32_t x;
    __asm__ volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(number) : "memory");
    return x;
}
// Waits until the number is `turn`: then the thread, and copies of boxes that it starts, come after what was done
// before let_on(). `seen`: what read_turn() gave, if let_on() was called since then, or any other number.
INLINE void await_turn(const uint32_t *number, uint32_t turn, uint32_t seen) {
    while (seen != turn) __asm__ volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(number) : "memory");
    __asm__ volatile("fence.proxy.async.global;" ::: "memory");
}
// Gives the turn on, after all that the thread has done, has seen done, or has awaited by await_boxes(); what it does
// from then on comes after what it has seen done.
INLINE void let_on(uint32_t *number, uint32_t turn) {
    __asm__ volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.u32 [%0], %1;" ::"l"(number), "r"(turn) : "memory");
}

#endif
