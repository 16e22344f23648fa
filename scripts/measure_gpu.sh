#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures an MI200, MI300 or MI350 beside what the simulator's clock models of it (docs/simulator.md): micro-kernels in
# cycles of the GPU's own clock, and attention in milliseconds. Takes five minutes, needs no root and no SDK, and prints
# tables to paste into a report; they are in measure_gpu.md in the build, too.
#
# usage: scripts/measure_gpu.sh [--build DIR] [--match PATTERN] [--quick] [--no-apt] [--wheels DIR] [DEVICE]
#   DEVICE         hip:N; left out: hip:0
#   --build DIR    a finished build with instances for the GPU, the simulator and tile_example_fmha_fwd; the Python on the
#                  path needs ziglang then. Left out: it is built
#   --match PATTERN  only the micro-kernels whose names match it
#   --quick        one small problem of attention
#   --no-apt       never call apt
#   --wheels DIR   take the Python wheels from DIR instead of an index
# environment: TESSERA_BUILD_DIR (default: build/ in the checkout), CC, PIP_INDEX_URL, https_proxy; TESSERA_HIP_LIBRARY names
#   another HIP runtime than that of the system
given=
for ((n = 1; n < $#; n++)); do # before common.sh, which makes folders in the build
    if [ "${!n}" = --build ]; then
        n=$((n + 1)) given=${!n}
        [ -x "$given/bin/tile_example_fmha_fwd" ] || { echo "--build $given: it has no bin/tile_example_fmha_fwd" >&2; exit 1; }
        export TESSERA_BUILD_DIR=$given
    fi
done
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '/^# usage/,/^# environment/s/^# //p' "${BASH_SOURCE[0]}"; }
device=hip:0 options=()
while [ $# -gt 0 ]; do
    common_option "$@"
    if [ $shifted -gt 0 ]; then
        shift $shifted
        continue
    fi
    case $1 in
        --build) shift 2 ;;
        --match) options+=(--match "${2?--match: a pattern is missing}") && shift 2 ;;
        --quick) options+=(--quick) && shift ;;
        hip:*) device=$1 && shift ;;
        -h | --help) usage && exit ;;
        *) echo "$1: no such option" >&2 && usage >&2 && exit 1 ;;
    esac
done

if [ -n "$given" ]; then
    python=$(find_python)
else
    prepare_tools build zig
    choose_compiler
    step "configure" "$build_remedy" configure "$build" -DTESSERA_TARGETS=cdna -DTESSERA_OPS=fmha_fwd -DTESSERA_RECEIPT=all \
        "-DTESSERA_WHERE=dtype=bf16 hdim_q=64|128 vlayout=r"
    step "build" "$build_remedy" ninja -C "$build" -j "$(jobs)" tessera_sim tile_example_fmha_fwd
fi
"$python" "$root/benchmark/measure.py" --build "$build" "${options[@]}" "$device" | tee "$build/measure_gpu.md"
