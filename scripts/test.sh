#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds everything and runs every test, each stage with its count and time; ends in "N passed, N failed". A stage that
# passed in this build directory is not repeated while all files that it depends on are the same.
#
# usage: scripts/test.sh [--all] [--again] [--only WORD] [--no-apt] [--wheels DIR]
#   --all         whole products of test axes instead of pairwise covers and of the day's samples
#   --again       repeat stages that have passed
#   --only WORD   only the stages whose name contains WORD, whether or not they have passed
#   --no-apt      never call apt (it fetches GoogleTest's sources, unpacked in the build directory, where there are none;
#                 and for root, as in a container, it installs hipcc and qemu-user: 80 MB to fetch, 450 MB on disk)
#   --wheels DIR  take the Python wheels from DIR instead of an index
# environment: TESSERA_BUILD_DIR (default: build/ in the checkout), CC, PIP_INDEX_URL, https_proxy;
#   TESSERA_TEST_SEED (default: the date) repeats the samples of another day
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '/^# usage/,/^# environment/s/^# //p' "${BASH_SOURCE[0]}"; }
all= only= again=
while [ $# -gt 0 ]; do
    common_option "$@"
    if [ $shifted -gt 0 ]; then
        shift $shifted
    elif [ "$1" = --all ]; then
        all=1
        shift
    elif [ "$1" = --again ]; then
        again=1
        shift
    elif [ "$1" = --only ] && [ -n "${2-}" ]; then
        only=$2 again=1
        shift 2
    elif [ "$1" = -h ] || [ "$1" = --help ]; then
        usage
        exit
    else
        echo "$1: no such option" >&2
        usage >&2
        exit 1
    fi
done

began=$(date +%s)
results=$build/test/stages
mkdir -p "$results"
not_run=()

at_once=1  # stages
pending=() # names of stages that were started and not reported, in their order
declare -A fingerprints
announced= # the one of them that the line begins with
trap 'for group in $(builtin jobs -p); do kill -- "-$group" || true; done 2>/dev/null' EXIT

# stage NAME COMMAND...: runs tests with their output in a log, perhaps beside other stages; reports keep the order.
# Status 77: could not run here, and the last line says why.
stage() {
    local name=$1 id=${1//[^a-zA-Z0-9]/-} log xml
    shift
    case $name in *"$only"*) ;; *) return ;; esac
    report_stages $((at_once - 1))
    log=$build/log/test-$id.log
    xml=$results/$id
    fingerprints[$name]=$(grep -E "$reach" "$results/files" | grep -vE "$but" | cat - "$results/machine" | sha256sum)
    pending+=("$name")
    [ $at_once -gt 1 ] || { announced=$name && printf '%-34s' "$name"; }
    if [ -n "$again" ] || [ "$(sed -n 1p "$xml.done" 2>/dev/null)" != "${fingerprints[$name]}" ]; then
        rm -rf "$xml" "$xml.done" "$xml.ended"
        mkdir -p "$xml"
        set -m # a process group for each, which can be ended as a whole
        run_stage "$@" </dev/null &
        set +m
    fi
    [ $at_once -gt 1 ] || report_stages 0
}

# run_stage COMMAND...: leaves its status and the time that it took.
run_stage() {
    local status
    set +e
    { time { (set -e && "$@") >"$log" 2>&1; }; } 2>"$xml.time"
    status=$?
    echo "$status $(cat "$xml.time")" >"$xml.ending"
    mv "$xml.ending" "$xml.ended"
}

# report_stages N: waits until at most N stages run, and reports those that have ended, up to the first that has not.
report_stages() {
    local running xml
    while [ ${#pending[@]} -gt 0 ]; do
        xml=$results/${pending[0]//[^a-zA-Z0-9]/-}
        if [ -e "$xml.ended" ] || [ -e "$xml.done" ]; then
            [ "$announced" = "${pending[0]}" ] || printf '%-34s' "${pending[0]}"
            report_stage "${pending[0]}" "$xml"
            pending=("${pending[@]:1}")
            continue
        fi
        running=($(builtin jobs -rp))
        if [ ${#running[@]} -gt "$1" ]; then
            sleep 0.2
        elif [ ${#running[@]} -gt 0 ] || [ -e "$xml.ended" ]; then
            return
        else
            echo "1 0 s" >"$xml.ended" # it was killed
        fi
    done
}

# report_stage NAME XML
report_stage() {
    local name=$1 xml=$2 log=$build/log/test-${2##*/}.log status seconds counts
    if [ -e "$xml.done" ]; then
        counts=$(sed -n 2p "$xml.done")
        report $counts "passed before, nothing that it depends on has changed"
        return
    fi
    read -r status seconds <"$xml.ended"
    if [ "$status" -eq 77 ]; then
        printf 'not run: %s\n' "$(tail -n 1 "$log")"
        not_run+=("$name: $(tail -n 1 "$log")")
        return
    fi
    count_tests "$status" "$xml" "$log"
    grep '^skipped' "$xml.counts" 2>/dev/null | sed "s/^/$name: /" >>"$results/skipped" || true
    report $counts "$seconds"
    if [ "$(echo "$counts" | cut -d' ' -f2)" = 0 ]; then
        printf '%s\n%s\n' "${fingerprints[$name]}" "$counts" >"$xml.done"
    else
        show_failures "$xml" "$log"
    fi
}

cannot() { echo "$*" && exit 77; }

# ---- tools

prepare_tools build test zig
choose_compiler
export TESSERA_BUILD_DIR=$build
c_compiler=${compiler_options[0]#*=}
export CC=$c_compiler
[ -z "$all" ] || export TESSERA_TEST_ALL=1
export TESSERA_TEST_SEED=${TESSERA_TEST_SEED:-$(date -u +%Y%m%d)}

# A stage depends on the files whose names `reach` matches, `but` not these, on the compiler and the processor, and on the
# day's samples.
(cd "$root" && find . \( -name .git -o -path ./build -o -name '*_cache' -o -name __pycache__ -o -name '.?*' -type d \) -prune \
    -o -type f -print0 | sort -z | xargs -0 sha256sum) >"$results/files"
{ "$c_compiler" --version && uname -m && grep -m1 -E '^(flags|Features)' /proc/cpuinfo || true; echo "$all $TESSERA_TEST_SEED"; } >"$results/machine"
rm -f "$results/skipped"

# ---- building

# Debian's package, fetched and unpacked as any user may: nothing is installed.
unpack_googletest() {
    local apt=(apt-get -o Debug::NoLocking=1 -o APT::Sandbox::User= -o "Dir::State=$googletest/state"
        -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$googletest/cache")
    mkdir -p "$googletest/state/lists/partial" "$googletest/cache/archives/partial"
    cd "$googletest"
    "${apt[@]}" update
    "${apt[@]}" download googletest
    dpkg-deb -x googletest_*.deb .
    rm -rf state cache
}

# For programs that run on the stand-in for the HIP runtime, and for other processors. Their tests say that they were
# skipped where these are missing, so that a failure here ends nothing.
get_packages() {
    apt_install "$@" || echo "not to be had: $*; tests that need them will be skipped"
}

packages=()
command -v hipcc >/dev/null || packages+=(hipcc)
command -v qemu-x86_64 >/dev/null || command -v qemu-x86_64-static >/dev/null || packages+=(qemu-user)
if [ ${#packages[@]} -gt 0 ] && [ -n "$apt_allowed" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    step "packages: ${packages[*]}" "--no-apt to go without" get_packages "${packages[@]}"
fi

googletest=$build/tools/googletest
test_options=(-DTESSERA_TARGETS=cpu,cdna,cuda -DTESSERA_RECEIPT=all -DTESSERA_BUILD_TESTS=ON -DTESSERA_BUILD_SIMULATOR=ON -DTESSERA_GPU_LINES=ON -DTESSERA_BUILD_BENCHMARKS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON "-DTESSERA_GOOGLETEST_DIR=$googletest/usr/src/googletest")
# Nothing here runs NVIDIA GPU instances, whose PTX alone would take a sixth of the build's time: in 14 days each is
# compiled, and what is compiled pytest assembles.
day=$((10#$TESSERA_TEST_SEED))
code=("-DTESSERA_CODE_PARTS=__sm_90a=$((day % 14))/14" -DTESSERA_PTXAS=OFF)
[ -z "$all" ] || code=(-DTESSERA_CODE_PARTS= -DTESSERA_PTXAS=)
build_options=("${test_options[@]}" "${code[@]}")
step "configure" "$build_remedy" configure "$build" "${build_options[@]}"
if grep -q "No GoogleTest" "$build/log/configure.log" && [ -n "$apt_allowed" ] && command -v apt-get >/dev/null; then
    step "googletest sources" "apt-get install libgtest-dev, or --no-apt to go without" unpack_googletest
    step "configure" "$build_remedy" configure "$build" "${build_options[@]}"
fi
if grep -q "No GoogleTest" "$build/log/configure.log"; then
    not_run+=("C++ tests: no GoogleTest or no C++ compiler; apt-get install libgtest-dev g++")
fi
step "build" "$build_remedy" ninja -C "$build" -j "$(jobs)"

# ---- stages

python_lint() {
    cd "$root"
    ruff check .
    mypy
}

c_format() {
    cd "$root"
    find include runtime simulator example test \( -name '*.[ch]' -o -name '*.cc' \) -print0 | xargs -0 clang-format --dry-run -Werror
    # Of emitted kernels pytest formats a sample.
    find "$build/generated" -name '*.[ch]' ! -name '*__*' -print0 | xargs -0 clang-format --dry-run -Werror --style="file:$root/.clang-format"
}

# A run for each folder: files of the same name may stand in several. As many at once as there are processors, the largest
# folders first, each one's output in one piece.
python_tests() {
    cd "$root"
    export xml build
    find test -name 'test_*.py' -exec dirname {} + | sort | uniq -c | sort -rn | awk '{print $2}' | xargs -P "$(jobs)" -I{} bash -c '
        name=${1//\//-} status=0
        pytest "$1" -o "cache_dir=$build/cache/pytest-$name" --junit-xml="$xml/pytest-$name.xml" >"$xml/$name.log" 2>&1 || status=1
        cat "$xml/$name.log"
        exit $status' -- {}
}

# ctest_in DIRECTORY OPTION...
ctest_in() {
    local directory=$1
    shift
    rm -rf "$directory/test/results"
    local status=0
    ctest --test-dir "$directory" -j "$(jobs)" --output-on-failure --output-junit "$xml/ctest.xml" "$@" || status=$?
    cp "$directory"/test/results/*.xml "$xml" 2>/dev/null || true
    return $status
}

# In seven days each problem has been run; of the 23,000 over caches, in seven weeks.
days_part=(-every=7 "-from=$((day % 7))")
caches_part=(-every=49 "-from=$((day % 49))")
[ -z "$all" ] || days_part=() caches_part=()
smoke() {
    "$build/bin/tile_example_fmha_fwd_smoke" "${days_part[@]}"
    "$build/bin/tile_example_fmha_bwd_smoke" "${days_part[@]}"
    "$build/bin/tile_example_fmha_fwd_cache_smoke" "${caches_part[@]}"
    "$build/bin/tile_example_paged_attention_smoke" "${caches_part[@]}"
    rows_smoke "$build" "${days_part[@]}"
}

# rows_smoke DIRECTORY ARGUMENT...: the smoke programs of the operations on rows that are built there, under an emulator
# where "under" is one.
under=()
rows_smoke() {
    local program
    for program in "$1"/bin/*_smoke; do
        case $program in *_fmha_* | *_paged_attention_*) ;; *) "${under[@]}" "$program" "${@:2}" ;; esac
    done
}

smoke_simulated() {
    [ -n "$all" ] || cannot "with --all alone; \"programs\" runs a pairwise cover of more"
    "$build/bin/tile_example_fmha_fwd_smoke" -extra="-device=sim:$1"
    "$build/bin/tile_example_fmha_bwd_smoke" -extra="-device=sim:$1"
    rows_smoke "$build" -extra="-device=sim:$1"
}

# build_tests DIRECTORY WORDS: the library, the programs with names that match, and those of CK's smoke matrix.
build_tests() {
    local programs
    mapfile -t programs < <(ninja -C "$1" -t targets all | sed -n 's#^\(bin/[^:]*\): .*#\1#p' | grep -E "$2|_smoke\$")
    ninja -C "$1" -j "$(jobs)" tessera "${programs[@]}"
}

# The same bytes from two directories, of some instances of an operation of each family.
same_bytes() {
    local directory
    for directory in "$build"/test/{one,other}; do
        configure "$directory" -DTESSERA_OPS=fmha_fwd,rmsnorm2d_fwd -DTESSERA_TARGETS=x86-64-v3,gfx950 -DTESSERA_RECEIPT=ci '-DTESSERA_FILTER=*_d128_fp16_*,*_bf16_*' -DTESSERA_BUILD_EXAMPLES=OFF -DTESSERA_BUILD_SIMULATOR=OFF \
            -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1
        ninja -C "$directory" -j "$(jobs)"
    done
    local file
    for file in libtessera.so libtessera.a packs/fmha_fwd_gfx950.pack; do cmp "$build"/test/{one,other}/"$file"; done
}

other_compiler() {
    case $("$c_compiler" --version) in *clang*) cannot "the build itself is clang's" ;; esac
    command -v clang >/dev/null || cannot "no clang"
    local targets=cpu some=(portable x86-64-v2 x86-64-v4 x86-64-v4-bf16 x86-64-v4-vp2intersect x86-64-v4-fp16 x86-64-v4-amx)
    # Templates are the same for all targets: their words are what the day's has of its own.
    [ -n "$all" ] || [ "$(uname -m)" != x86_64 ] || targets=x86-64-v3,${some[$((day % ${#some[@]}))]}
    cmake -S "$root" -B "$build/test/clang" -G Ninja "-DTESSERA_PYTHON=$python" "-DTESSERA_TARGETS=$targets" -DTESSERA_RECEIPT=ci -DTESSERA_SIM_VARIANTS=OFF -DCMAKE_C_COMPILER=clang -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
    ninja -C "$build/test/clang" -j "$(jobs)"
    "$build/test/clang/bin/tile_example_fmha_fwd_smoke" -filter='*-s=33 *' "${days_part[@]}"
    rows_smoke "$build/test/clang" "${days_part[@]}"
}

# A processor without AVX, and one without AVX-512: nothing but what it has may run.
emulated() {
    local qemu
    qemu=$(command -v qemu-x86_64 || command -v qemu-x86_64-static) || cannot "no qemu-x86_64; apt-get install qemu-user"
    [ "$(uname -m)" = x86_64 ] || cannot "instances for x86-64 are not built here"
    "$qemu" -cpu "$1" "$build/bin/tile_example_fmha_fwd_smoke" -filter="$emulated_cases" "${days_part[@]}"
    under=("$qemu" -cpu "$1")
    rows_smoke "$build" -filter="$emulated_rows" "${days_part[@]}"
    local line
    line=$("$qemu" -cpu "$1" "$build/bin/tile_example_fmha_fwd" -s=100 -d=40 -kname=1)
    echo "$line"
    case $line in *"__$2"*valid:y) ;; *) return 1 ;; esac
}

# The instances for AMX and for AVX-512 FP16 on a processor without these, which takes AVX-512 with BF16: tiles in vectors
# and halves in floats, under the address sanitizer.
emulated_words() {
    local directory=$build/test/emulated flags='-DTESSERA_EMULATE_TILES -DTESSERA_EMULATE_HALVES'
    grep -w avx512_bf16 /proc/cpuinfo | grep -w avx512vbmi | grep -qw avx512_vnni || cannot "this processor has no AVX-512 with BF16, VBMI and VNNI"
    ! grep -q "No GoogleTest" "$build/log/configure.log" || cannot "no GoogleTest"
    configure "$directory" "${test_options[@]}" -DTESSERA_OPS=fmha_fwd,fmha_bwd -DTESSERA_TARGETS=x86-64-v4-amx,x86-64-v4-fp16 -DTESSERA_RECEIPT=ci -DTESSERA_SANITIZE=address -DTESSERA_SANITIZE_CALLS=ON "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_CXX_FLAGS=$flags" \
        -DTESSERA_BUILD_EXAMPLES=OFF -DTESSERA_BUILD_SIMULATOR=OFF
    ninja -C "$directory" -j "$(jobs)" runtime_device_test fmha_{fwd,bwd}_{matrix,numerics}_test
    ctest_in "$directory" -R 'runtime\.device_test|fmha_(fwd|bwd)\.(matrix|numerics)_test'
}

neon() {
    local directory=$build/test/aarch64 qemu word
    qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || cannot "no qemu-aarch64; apt-get install qemu-user"
    zig_tools
    cmake -S "$root" -B "$directory" -G Ninja "-DTESSERA_PYTHON=$python" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        "-DCMAKE_C_COMPILER=$build/tools/zig-aarch64" "-DCMAKE_AR=$build/tools/zig-ar" "-DCMAKE_RANLIB=$build/tools/zig-ranlib" \
        "-DCMAKE_CROSSCOMPILING_EMULATOR=$qemu" -DTESSERA_BUILD_TESTS=ON -DTESSERA_BUILD_SIMULATOR=OFF -DCMAKE_CXX_COMPILER=NOTFOUND
    ninja -C "$directory" -j "$(jobs)"
    for word in "$directory"/bin/cpu_words_*; do "$qemu" "$word"; done
    "$qemu" "$directory/bin/tile_example_fmha_fwd_smoke" -filter="$emulated_cases" "${days_part[@]}"
    under=("$qemu")
    rows_smoke "$directory" -filter="$emulated_rows" "${days_part[@]}"
}
emulated_cases='*-s=3 *' emulated_rows='*=599 *'
[ -z "$all" ] || emulated_cases='*' emulated_rows='*'

# for_sanitizers LEVEL: sets `watched`. Reports need lines; more of debugging would take the compiler longer. No sanitizer looks
# into code objects, which the build has made.
for_sanitizers() {
    watched=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_C_FLAGS_RELWITHDEBINFO=$1 -g1" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=$1 -g1" "-DTESSERA_CODE_FROM=$build")
}

references=() # of tests, which sanitizers watch, too
[ -z "$all" ] || references=(-DTESSERA_SANITIZE_REFERENCES=ON)

# sanitized SANITIZER TESTS CASES: the tests whose name matches, and a part of the smoke matrix. Templates of CPU kernels are
# the same for all targets but AMX, which "AMX and FP16, emulated" watches.
sanitized() {
    local directory=$build/test/${1%%,*} watched
    for_sanitizers -O1 # compiles in two thirds of the time
    configure "$directory" "${test_options[@]}" -DTESSERA_SANITIZE="$1" -DTESSERA_TARGETS=x86-64-v3,gfx942 -DTESSERA_RECEIPT=ci -DTESSERA_BUILD_SIMULATOR=OFF -DTESSERA_BUILD_BENCHMARKS=OFF "${watched[@]}" "${references[@]}"
    build_tests "$directory" "$2"
    export UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$root/test/leaks.txt
    if [ "$1" = thread ]; then # two count threads, of which the sanitizer has one of its own; one is long and has one thread
        export GTEST_FILTER=-Library.PrepareStartsTheThreads:Library.RunsAndUnloads:ChooseFmhaFwd.IsAsChosenAnew
    fi
    "$directory/bin/tile_example_fmha_fwd_smoke" -filter="$3"
    rows_smoke "$directory" "${days_part[@]}"
    local program
    for program in fmha_fwd_cache paged_attention; do
        "$directory/bin/tile_example_${program}_smoke" -every=490 "-from=$((day % 490))"
    done
    ctest_in "$directory" -R "$2"
}

# The tests of the runtime, of determinism and of concurrency whose sources speak of threads; the smoke programs have calls on several.
tests_of_threads() {
    (cd "$root/test" && grep -lE 'std::thread|pthread|_threads|Threads' runtime/*_test.cc */{determinism,concurrency}_test.cc) | sort -u | sed 's#/#.#; s#\.cc$##' | paste -sd'|'
}

# Of the simulator's own sanitizer a part, which is all of its code, on one head dim: "programs" has the rest.
simulator_sanitized() {
    local directory=$build/test/simulator watched
    for_sanitizers -O2
    configure "$directory" "${test_options[@]}" -DTESSERA_OPS=fmha_fwd -DTESSERA_TARGETS=gfx942 -DTESSERA_WHERE=hdim_q=128 -DTESSERA_SANITIZE=address,undefined -DTESSERA_SIM_VARIANTS=OFF "${watched[@]}"
    ninja -C "$directory" -j "$(jobs)" fmha_fwd_gpu_test tessera_sim
    export UBSAN_OPTIONS=print_stacktrace=1 GTEST_FILTER=-GpuInstances.*:GpuLanded*.*
    ctest_in "$directory" -R 'fmha_fwd\.gpu_test(\.sanitized_forward)?$'
}

echo
at_once=2
reach='\.(py|toml)$' but='^$'
stage "ruff, mypy" python_lint
reach='\.(c|h|cc|j2|py|toml|clang-format)$'
stage "clang-format" c_format
# These keep all processors at work, and one of the programs measures speed.
at_once=1
reach=.
stage "python tests" python_tests
prose='\.md$|\./docs/|\./benchmark/results/' pytests='\./test/.*/(test_\w+|conftest)\.py$'
but="$prose|$pytests"
stage "programs" ctest_in "$build"

# Each of these configures, links and ends with one processor at work. The longest come first.
at_once=2
stage "CK's smoke matrix" smoke
for arch in gfx90a gfx942 gfx950; do stage "CK's smoke matrix on $arch" smoke_simulated $arch; done
stage "simulator, sanitizers" simulator_sanitized
stage "address, undefined sanitizers" sanitized address,undefined . '*-s=55 *'
stage "thread sanitizer" sanitized thread "$(tests_of_threads)" '*-s=100 *-prec=bf16 -mode=1*'
stage "AMX and FP16, emulated" emulated_words
stage "same bytes elsewhere" same_bytes
but="$but|\./simulator/|\./test/(simulator|runtime|mutation|fmha_fwd|rows|fuzz|common)/"
stage "qemu: NEON" neon
stage "clang, warnings are errors" other_compiler
stage "qemu: Nehalem" emulated Nehalem x86_64_v2
stage "qemu: Haswell" emulated Haswell x86_64_v3
report_stages 0

echo
sort -u "$results/skipped" 2>/dev/null || true
[ ${#not_run[@]} -eq 0 ] || printf 'not run: %s\n' "${not_run[@]}"
[ $((passed + failed + ${#not_run[@]})) -gt 0 ] || { echo "--only $only: no stage has that in its name" >&2 && exit 1; }
grep -oE 'GPU instances: [0-9]+ of [0-9]+ are compiled' "$build/log/configure.log" || true
[ -n "$all" ] || echo "samples of TESSERA_TEST_SEED=$TESSERA_TEST_SEED"
echo "time: $(seconds_since "$began")"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
