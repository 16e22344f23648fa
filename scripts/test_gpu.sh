#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the library on a real GPU: the suites of simulated GPUs with guard zones, poisoned outputs and repeated launches whose
# bytes are compared, streams and graphs, the example programs' smoke matrices, and samples of these under
# compute-sanitizer where that is installed. Needs no network where a build is given. Writes a record to
# test/gpu/results and ends in "N passed, N failed".
#
# usage: scripts/test_gpu.sh [--build DIR] [--part N] [--only WORD] [--results DIR] [--pack DIR] [--no-apt] [--wheels DIR] [DEVICE]
#   DEVICE         cuda:N or hip:N; left out: the first of cuda:0 and hip:0 that there is
#   --build DIR    a finished build with tests, perhaps of another machine; left out: it is built
#   --part N       one in N of the problems
#   --only WORD    only the stages whose name contains WORD; no record is written
#   --results DIR  where the record goes
#   --pack DIR     runs nothing, but puts what a build has for --build on another machine into DIR
#   --no-apt       never call apt
#   --wheels DIR   take the Python wheels from DIR instead of an index
# environment: TESSERA_BUILD_DIR (default: build/ in the checkout), CC, PIP_INDEX_URL, https_proxy; TESSERA_CUDA_LIBRARY and
#   TESSERA_HIP_LIBRARY name another driver than that of the system
given=
for ((n = 1; n < $#; n++)); do # before common.sh, which makes folders in the build
    if [ "${!n}" = --build ]; then
        n=$((n + 1)) given=${!n}
        [ -x "$given/bin/gpu_device" ] || { echo "--build $given: it has no bin/gpu_device; build with -DTESSERA_BUILD_TESTS=ON" >&2; exit 1; }
        ! grep -qs '^TESSERA_CODE_PARTS:STRING=.' "$given/CMakeCache.txt" || { echo "--build $given: it has a part of the code objects alone, as scripts/test.sh builds it; leave --build out" >&2; exit 1; }
        export TESSERA_BUILD_DIR=$given
    fi
done
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '/^# usage/,/^# environment/s/^# //p' "${BASH_SOURCE[0]}"; }
device= part=1 only= pack= records=$root/test/gpu/results
while [ $# -gt 0 ]; do
    common_option "$@"
    if [ $shifted -gt 0 ]; then
        shift $shifted
        continue
    fi
    case $1 in
        --build) shift 2 ;;
        --part) part=${2-} && shift 2 ;;
        --only) only=${2-} && shift 2 ;;
        --results) records=${2-} && shift 2 ;;
        --pack) pack=${2:?--pack: a folder is missing} && shift 2 ;;
        cuda:* | hip:*) device=$1 && shift ;;
        -h | --help) usage && exit ;;
        *) echo "$1: no such option" >&2 && usage >&2 && exit 1 ;;
    esac
done
case $part in '' | *[!0-9]* | 0) echo "--part $part: a number from 1 on" >&2 && exit 1 ;; esac


began=$(date +%s)
longest=450 # seconds of all stages, so that the whole takes less than 8 minutes
programs=(benchmark_launch gpu_device gpu_streams_test gpu_cuda_test {fmha_fwd,rows}_{gpu,numerics}_test fmha_bwd_gpu_test kv_cache_{paged_attention,splitkv,pagedkv,append_first,batch_prefill,turbo4}_test tile_example_{fmha_fwd,kv_cache,layernorm2d_fwd}_smoke
    tile_{rmsnorm2d_fwd,add_rmsnorm2d_rdquant_fwd,smoothquant,example_moe_smoothquant}_smoke)

# ---- the build

if [ -n "$given" ]; then
    python=$(find_python)
else
    prepare_tools build test zig
    choose_compiler
    [ -n "$device" ] || { [ -e /dev/kfd ] && device=hip:0; } || device=cuda:0
    case $(uname -m) in x86_64) targets=x86-64-v3 ;; aarch64) targets=armv8-a ;; *) targets=portable ;; esac
    case $device in hip:*) targets+=,cdna ;; *) targets+=,sm_90a ;; esac
    step "configure" "$build_remedy" configure "$build" -DTESSERA_TARGETS=$targets -DTESSERA_RECEIPT=all -DTESSERA_BUILD_TESTS=ON -DTESSERA_BUILD_SIMULATOR=OFF \
        -DTESSERA_CODE_PARTS= -DTESSERA_BUILD_BENCHMARKS=ON -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON "-DTESSERA_GOOGLETEST_DIR=$build/tools/googletest/usr/src/googletest"
    if grep -q "No GoogleTest" "$build/log/configure.log"; then
        echo "no GoogleTest or no C++ compiler; Debian: apt-get install libgtest-dev g++" >&2
        exit 1
    fi
    step "build" "$build_remedy" ninja -C "$build" -j "$(jobs)" "${programs[@]}"
    began=$(date +%s)
fi

# The library and the programs, without symbols, and the commit that they are of, which records say.
if [ -n "$pack" ]; then
    mkdir -p "$pack/bin"
    cp -P "$build"/libtessera.so* "$pack"
    for program in "${programs[@]}"; do cp "$build/bin/$program" "$pack/bin"; done
    strip "$pack"/libtessera.so.*.* "$pack"/bin/*
    git -C "$root" describe --always --dirty=+ '--exclude=*' >"$pack/version" 2>/dev/null || rm -f "$pack/version"
    du -sh "$pack"
    exit
fi

# ---- the device

results=$build/test/gpu
rm -rf "$results"
mkdir -p "$results"
for candidate in ${device:-cuda:0 hip:0}; do
    "$build/bin/gpu_device" "$candidate" >"$results/device.json" 2>>"$results/no-device" || continue
    device=$candidate
    break
done
if [ ! -s "$results/device.json" ]; then
    sed 's/^/no GPU: /' "$results/no-device" >&2
    exit 4
fi
cat "$results/device.json"
export TESSERA_TEST_DEVICE=$device TESSERA_TEST_DAYS=$part TESSERA_NUM_THREADS=${TESSERA_NUM_THREADS:-1}
export TESSERA_TEST_SEED=${TESSERA_TEST_SEED:-$(date -u +%Y%m%d)}

# ---- stages

# stage NAME SECONDS COMMAND...: runs tests for at most so long, with their output in a log.
stage() {
    local name=$1 seconds=$2 id=${1//[^a-zA-Z0-9]/-} log start status counts refused
    shift 2
    case $name in *"$only"*) ;; *) return 0 ;; esac
    log=$results/$id.log xml=$results/$id
    mkdir -p "$xml"
    printf '%-34s' "$name"
    start=$(date +%s)
    limit=$((longest - start + began))
    [ $limit -lt "$seconds" ] || limit=$seconds
    if [ $limit -lt 5 ]; then
        printf 'not run: no time is left\n'
        failed=$((failed + 1))
        return 0
    fi
    set +e
    (set -e && "$@") >"$log" 2>&1
    status=$?
    set -e
    [ $status -ne 124 ] && [ $status -ne 137 ] || echo "ended after $limit s" >>"$log"
    if [ $status -eq 77 ]; then
        printf 'not run: %s\n' "$(tail -n 1 "$log")"
        return 0
    fi
    count_tests "$status" "$xml" "$log"
    refused=$(awk '/^[0-9]+ problems of the covers have no instance/ {n += $1} /^[0-9]+ passed, .* not served$/ {n += $5} END {print n + 0}' "$log")
    report $counts "$(seconds_since "$start")$([ "$refused" = 0 ] || echo ", $refused without an instance refused by name")"
    echo "$name|${counts// /|}|$refused|$(($(date +%s) - start))" >>"$results/stages"
    [ "$(echo "$counts" | cut -d' ' -f2)" = 0 ] || show_failures "$xml" "$log"
}

# in_parts COMMAND: as many at once as there are processors, or as `parts` says, with the part's number after it.
in_parts() {
    local n status=0 ended
    local pids=() parts=${parts:-$(jobs)}
    for ((n = 0; n < parts; n++)); do
        "$@" $n >"$xml/$n.log" 2>&1 &
        pids+=($!)
    done
    for ((n = 0; n < parts; n++)); do
        ended=0
        wait "${pids[n]}" || ended=$?
        cat "$xml/$n.log"
        [ $ended -eq 0 ] || { echo "part $n of $parts ended with status $ended" && status=$ended; }
    done
    return $status
}

whole() { timeout -k 5 "$limit" "$@" "--gtest_output=xml:$xml/all.xml"; }

# suites COMMAND...: a GoogleTest program, perhaps under a tool.
suite_part() {
    local n=${!#}
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$n timeout -k 5 "$limit" "${@:1:$#-1}" "--gtest_output=xml:$xml/part$n.xml"
}
suites() { in_parts suite_part "$@"; }

# Suites of caches, one after the other: each has a test for a device, whose cases are drawn from the day's seed.
cached() {
    local program status=0
    for program in "$@"; do
        timeout -k 5 "$limit" "$program" "--gtest_output=xml:$xml/${program##*/}.xml" || status=$?
    done
    return $status
}

# Problems that take a processor long: half as many at once as there are processors, each with two threads.
large() {
    local parts=$((($(jobs) + 1) / 2))
    TESSERA_NUM_THREADS=2 GTEST_FILTER='*Large.*' suites "$@"
}
small() { GTEST_FILTER='-*Large.*' suites "$@"; }

# smoke PROGRAM...: a part may have nothing but cases that are not served, and ends with 2 then.
smoke_part() {
    local program status
    for program in "${@:1:$#-1}"; do
        status=0
        timeout -k 5 "$limit" "$program" -extra="-device=$device" -every=$((parts * part)) -from="${!#}" || status=$?
        [ $status -eq 0 ] || [ $status -eq 2 ] || return $status
    done
}
smoke() { in_parts smoke_part "$@"; }

find_sanitizer() {
    command -v compute-sanitizer && return
    local file
    for file in "${CUDA_HOME:-/usr/local/cuda}"/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer; do
        if [ -x "$file" ]; then echo "$file" && return; fi
    done
    return 1
}

# watched TOOL DAYS PROGRAM...: a sample of the problems under a tool of compute-sanitizer, which sees accesses beside
# allocations where there are no guard zones.
watched() {
    local tool=$1 program file
    case $device in cuda:*) ;; *) echo "compute-sanitizer is for GPUs of NVIDIA" && exit 77 ;; esac
    local sanitizer
    sanitizer=$(find_sanitizer) || { echo "compute-sanitizer is not installed" && exit 77; }
    export TESSERA_TEST_BARE=1 TESSERA_TEST_DAYS=$(($2 * part)) GTEST_FILTER='-*Large.*'
    for program in "${@:3}"; do
        "$program" --gtest_list_tests >/dev/null || continue # it has no instances
        suites "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 5 "$program"
        for file in "$xml"/part*.xml; do mv "$file" "$xml/${program##*/}.${file##*/}"; done
    done
}

bin=$build/bin
stage "fmha_fwd, matrix" 150 small "$bin/fmha_fwd_gpu_test"
stage "fmha_fwd, large problems" 150 large "$bin/fmha_fwd_gpu_test"
stage "fmha_bwd, matrix" 60 suites "$bin/fmha_bwd_gpu_test"
stage "rows, matrix" 90 suites "$bin/rows_gpu_test"
stage "caches, decoding" 60 cached "$bin"/kv_cache_{paged_attention,turbo4}_test
stage "caches, prefill and splits" 60 cached "$bin"/kv_cache_{splitkv,pagedkv,append_first,batch_prefill}_test
stage "numerics of fmha_fwd" 60 suites "$bin/fmha_fwd_numerics_test"
stage "numerics of rows" 60 suites "$bin/rows_numerics_test"
stage "streams, graphs, threads" 60 whole "$bin/gpu_streams_test"
stage "NVIDIA's driver" 60 whole "$bin/gpu_cuda_test"
stage "CK's smoke matrix of fmha_fwd" 120 smoke "$bin/tile_example_fmha_fwd_smoke"
stage "CK's smoke matrix of appendkv" 60 smoke "$bin/tile_example_kv_cache_smoke"
stage "CK's smoke matrices of rows" 60 smoke "$bin"/tile_{example_layernorm2d_fwd,rmsnorm2d_fwd,add_rmsnorm2d_rdquant_fwd,smoothquant,example_moe_smoothquant}_smoke
stage "compute-sanitizer memcheck" 90 watched memcheck 40 "$bin"/{fmha_fwd,rows}_gpu_test
stage "compute-sanitizer racecheck" 60 watched racecheck 200 "$bin"/{fmha_fwd,rows}_gpu_test
stage "compute-sanitizer synccheck" 60 watched synccheck 200 "$bin"/{fmha_fwd,rows}_gpu_test

echo
[ -n "$only" ] || "$python" "$root/scripts/record_gpu.py" "$records" "$results" "$part"
echo "time: $(seconds_since "$began")"
echo "$passed passed, $failed failed"
[ $((passed + failed)) -gt 0 ] || { echo "--only $only: no stage has that in its name" >&2 && exit 1; }
[ "$failed" = 0 ]
