#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a bare checkout to attention that runs: builds the few instances that one problem needs, runs and verifies it,
# then builds everything else: all instances for CPUs, of those for AMD GPUs the few in which everything occurs, and the
# simulator that runs them here. Needs no root; run it again after an interruption or a change and it goes on from there.
#
# usage: scripts/quickstart.sh [--all] [--no-gpu] [--no-apt] [--wheels DIR]
#   --all         all instances for GPUs: some minutes
#   --no-gpu      the CPU's instances alone: GPU instances need a clang, which comes in a wheel of 100 MB
#   --no-apt      never call apt (it is called only for Python, and only where that asks nobody)
#   --wheels DIR  take the Python wheels from DIR instead of an index
# environment: TESSERA_BUILD_DIR (default: build/ in the checkout), CC, PIP_INDEX_URL, https_proxy
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '/^# usage/,/^# environment/s/^# //p' "${BASH_SOURCE[0]}"; }
gpu=1 receipt=quickstart
while [ $# -gt 0 ]; do
    common_option "$@"
    if [ $shifted -gt 0 ]; then
        shift $shifted
    elif [ "$1" = --all ]; then
        receipt=all
        shift
    elif [ "$1" = --no-gpu ]; then
        gpu=
        shift
    elif [ "$1" = -h ] || [ "$1" = --help ]; then
        usage
        exit
    else
        echo "$1: no such option" >&2
        usage >&2
        exit 1
    fi
done

prepare_tools build
choose_compiler

# native_target [CPUINFO]: the targets that have the instances for fp16 that are best on this processor, which is enough
# for one problem. x86-64-v4-bf16 has none; a system may refuse AMX's registers to a process, hence x86-64-v4 beside it.
native_target() {
    local facts targets needs need
    facts=" $(uname -m) $(sed -n '/^flags/{s/.*://p;q}' "${1:-/proc/cpuinfo}") "
    while read -r targets needs; do
        for need in $needs; do [[ $facts == *" $need "* ]] || continue 2; done
        echo "$targets"
        return
    done <<'TABLE'
x86-64-v4-amx,x86-64-v4 x86_64 avx512bw avx512vl avx512_bf16 avx512vbmi amx_bf16 amx_tile amx_int8
x86-64-v4 x86_64 avx512bw avx512vl
x86-64-v3 x86_64 fma avx2
x86-64-v2 x86_64 sse4_2
armv8-a aarch64
portable
TABLE
}

program=$build/bin/tile_example_fmha_fwd
if [ ! -e "$build/everything.built" ]; then
    step "configure, one problem" "$build_remedy" configure "$build" "-DTESSERA_TARGETS=$(native_target)" -DTESSERA_RECEIPT=ci -DTESSERA_BUILD_SIMULATOR=OFF
    step "build, one problem" "$build_remedy" ninja -C "$build" -j "$(jobs)" tile_example_fmha_fwd
    "$program"
fi
everything=(-DTESSERA_TARGETS=cpu -DTESSERA_BUILD_SIMULATOR=OFF)
if [ -n "$gpu" ]; then
    prepare_tools zig
    everything=(-DTESSERA_TARGETS=cpu,cdna -DTESSERA_BUILD_SIMULATOR=ON -DTESSERA_GPU_LINES=ON)
fi
step "configure" "$build_remedy" configure "$build" "-DTESSERA_RECEIPT=$receipt" "${everything[@]}"
step "build" "$build_remedy" ninja -C "$build" -j "$(jobs)"
if [ -e "$build/everything.built" ]; then
    "$program"
fi
[ -z "$gpu" ] || "$program" -device=sim:gfx942 -b=1 -h=1 -s=512
touch "$build/everything.built"

grep -h "instances" "$build/log/configure.log" | sed 's/^-- //'
[ -z "$gpu" ] || [ $receipt = all ] || echo "of GPU instances those of receipt ci; all: scripts/quickstart.sh --all"
echo "library: $build/libtessera.so    programs: $build/bin    tests: scripts/test.sh"
