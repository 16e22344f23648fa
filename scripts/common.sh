# SPDX-License-Identifier: MIT
# Shared by quickstart.sh, test.sh and test_gpu.sh: options, steps with logs, counts of tests, the private tools, the
# compiler. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${TESSERA_BUILD_DIR:-$root/build}
mkdir -p "$build/log" "$build/tools" || { echo "cannot write to $build; set TESSERA_BUILD_DIR to a folder that is writable" >&2; exit 1; }
build=$(cd "$build" && pwd)
venv=$build/tools/venv
python=$venv/bin/python
wheels=
apt_allowed=1

# Nothing is written outside the build directory, except to a user's own pip cache where there is one.
# Python's caches are written even where the environment, as that of containers, says otherwise: that is meant for caches
# beside the sources, and without any each of a thousand processes compiles the standard library for itself.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$build/cache/pycache MYPY_CACHE_DIR=$build/cache/mypy RUFF_CACHE_DIR=$build/cache/ruff
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
if ! mkdir -p "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}" 2>/dev/null || [ ! -w "${XDG_CACHE_HOME:-$HOME/.cache}" ]; then
    export XDG_CACHE_HOME=$build/cache HOME=$build/cache/home
    mkdir -p "$HOME"
fi

# common_option "$@": handles an option that both scripts have; sets `shifted` to the words it took, 0 for none.
common_option() {
    shifted=1
    case $1 in
        --no-apt) apt_allowed= ;;
        --wheels)
            [ -d "${2-}" ] || { echo "--wheels ${2-}: no such folder; give one that holds the wheels of scripts/requirements-*.txt" >&2; exit 1; }
            wheels=$(cd "$2" && pwd)
            shifted=2
            ;;
        *) shifted=0 ;;
    esac
}

seconds_since() { echo "$(($(date +%s) - $1)) s"; }

# What bash's `time` prints: seconds, and how long processors worked in that time for the command and for the system.
TIMEFORMAT='%0R s (cores: %0U + %0S s)'

# step NAME REMEDY COMMAND...: runs it with its output in a log; a failure shows the log's end and the remedy, and ends
# the script.
step() {
    local name=$1 remedy=$2 log status
    shift 2
    log=$build/log/${name//[^a-zA-Z0-9]/-}.log
    printf '%-34s' "$name"
    set +e # so that -e holds inside; it does not in the condition of an if
    { time { (set -e && "$@") >"$log" 2>&1; }; } 2>"$log.time"
    status=$?
    set -e
    if [ $status -eq 0 ]; then
        cat "$log.time"
        return
    fi
    printf 'FAILED\n'
    tail -n 25 "$log" | sed 's/^/    /' >&2
    printf 'step:   %s\nlog:    %s\nremedy: %s\n' "$name" "$log" "$remedy" >&2
    exit 1
}

# count_tests STATUS XML LOG: sets `counts` to PASSED FAILED SKIPPED of a command that ended with that status: of the JUnit
# files that it left in the folder XML, else of the lines "N passed, N failed" in its log, else it is one test.
count_tests() {
    local status=$1
    rm -f "$2.counts"
    if [ -n "$(find "$2" -name '*.xml')" ]; then
        "$python" "$root/scripts/count_tests.py" "$2"/*.xml >"$2.counts"
        counts=$(head -n 1 "$2.counts")
    else
        counts=$(awk '/^[0-9]+ passed, [0-9]+ failed/ {p += $1; f += $3} END {print p + 0, f + 0, 0}' "$3")
    fi
    if [ "$counts" = "0 0 0" ] && [ "$status" -eq 0 ]; then counts="1 0 0"; fi
    case $counts in
        "0 0 "[1-9]*) echo "all tests were skipped" >>"$3" && status=1 ;;
    esac
    if [ "$status" -ne 0 ] && [ "$(echo "$counts" | cut -d' ' -f2)" = 0 ]; then # it ended in another way than by its tests
        counts=$(echo "$counts" | awk '{print $1, 1, $3}')
    fi
}

# report PASSED FAILED SKIPPED REMARK: the end of a stage's line, and the sums.
passed=0 failed=0 skipped=0
report() {
    printf '%6d passed %4d failed %4d skipped  %s\n' "$1" "$2" "$3" "$4"
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# show_failures XML LOG: what failed, or the end of the log.
show_failures() {
    { grep '^failed' "$1.counts" 2>/dev/null || tail -n 15 "$2"; } | head -n 15 | sed 's/^/    /'
    echo "    log: $2"
}

# Parallel jobs: what affinity, the cgroup's quota and the memory (512 MB a compiler) allow.
jobs() {
    local n memory quota period value group
    n=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
    memory=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
    for group in "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)" /sys/fs/cgroup; do
        if read -r quota period 2>/dev/null <"$group/cpu.max" && [ "$quota" != max ]; then
            value=$(((quota + period - 1) / period))
            [ "$value" -ge "$n" ] || n=$value
        fi
        if read -r value 2>/dev/null <"$group/memory.max" && [ "$value" != max ]; then
            value=$((value / 1048576))
            [ "$value" -ge "$memory" ] || memory=$value
        fi
    done
    value=$((memory / 512))
    [ "$value" -ge "$n" ] || n=$value
    echo $((n > 1 ? n : 1))
}

# apt_install PACKAGE...: for what nothing else can give. Prints the line, and runs it only when that asks nobody.
apt_install() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    local line="${sudo:+$sudo }apt-get install -y --no-install-recommends $*"
    if [ -z "$apt_allowed" ] || ! command -v apt-get >/dev/null || { [ -n "$sudo" ] && ! $sudo true 2>/dev/null; }; then
        echo "missing: $*. As root: apt-get install -y $*" >&2
        return 1
    fi
    echo "$line"
    $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $line
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

make_venv() {
    rm -rf "$venv"
    find_python >/dev/null || apt_install python3 ca-certificates
    "$(find_python)" -m venv "$venv" && return
    echo "no ensurepip: fetching the pip wheel of requirements-pip.txt"
    rm -rf "$venv"
    "$(find_python)" -m venv --without-pip "$venv" || { apt_install python3-venv && "$(find_python)" -m venv --without-pip "$venv"; }
    local pip
    pip=$("$python" "$root/scripts/fetch_pip.py" "$build/tools" ${wheels:+--wheels "$wheels"})
    "$python" "$pip/pip" install --no-index --no-deps "$pip"
}

# install KIND: the wheels of requirements-KIND.txt, once.
install_wheels() {
    local list=$root/scripts/requirements-$1.txt stamp=$venv/$1.installed
    cmp -s "$list" "$stamp" && return
    "$python" -m pip install --require-hashes --only-binary :all: ${wheels:+--no-index --find-links "$wheels"} -r "$list"
    cp "$list" "$stamp"
}

pip_remedy="check the network, or PIP_INDEX_URL and proxies; offline: --wheels DIR with the wheels of scripts/requirements-*.txt"

# prepare_tools KIND...: Python, CMake, Ninja and more in a private environment under the build directory.
prepare_tools() {
    local kind
    "$python" -c 'import sys' 2>/dev/null && "$python" -m pip --version >/dev/null 2>&1 ||
        step "python environment" "install Python 3.10 or newer (Debian: apt-get install python3-venv); else $pip_remedy" make_venv
    for kind; do
        cmp -s "$root/scripts/requirements-$kind.txt" "$venv/$kind.installed" || step "wheels: $kind" "$pip_remedy" install_wheels "$kind"
    done
    export PATH=$venv/bin:$PATH
}

compiles() {
    local directory flags=()
    case $(uname -m) in x86_64 | amd64) flags=(-march=x86-64-v4 -mavx512bf16 -mavx512vnni -mavx512fp16) ;; esac
    directory=$(mktemp -d "$build/tools/compiler.XXXXXX")
    printf '#include <pthread.h>\n#include <stdatomic.h>\n#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$directory/a.c"
    local status=0
    "$@" "${flags[@]}" -pthread "$directory/a.c" -o "$directory/a" -lm >/dev/null 2>&1 || status=1
    rm -rf "$directory"
    return $status
}

# Sets compiler_options for CMake. CC and CXX are obeyed; else the system's compiler; else zig's, from a wheel.
choose_compiler() {
    local candidate
    compiler_options=()
    for candidate in ${CC:-cc gcc clang}; do
        if compiles "$candidate"; then
            compiler_options=("-DCMAKE_C_COMPILER=$(command -v "$candidate")")
            return
        fi
    done
    if [ -n "${CC:-}" ]; then
        echo "CC=$CC: does not compile a C11 program for x86-64-v4; gcc 12, clang 14 and newer do. Unset CC to use what is found." >&2
        exit 1
    fi
    prepare_tools zig
    zig_tools
    compiler_options=("-DCMAKE_C_COMPILER=$build/tools/zig-cc" "-DCMAKE_CXX_COMPILER=$build/tools/zig-c++"
        "-DCMAKE_AR=$build/tools/zig-ar" "-DCMAKE_RANLIB=$build/tools/zig-ranlib")
}

# Scripts that CMake can take for compilers: $build/tools/zig-cc, zig-c++, zig-ar, zig-ranlib, zig-aarch64.
zig_tools() {
    local zig tool
    zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
    for tool in cc c++ ar ranlib; do
        printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$build/tools/zig-$tool"
    done
    printf '#!/bin/sh\nexec "%s" cc -target aarch64-linux-musl "$@"\n' "$zig" >"$build/tools/zig-aarch64"
    chmod +x "$build"/tools/zig-*
}

build_remedy="read the log; a full disk or too little memory is the usual cause (TESSERA_BUILD_DIR moves the build)"

# configure DIRECTORY OPTION...
configure() {
    local directory=$1
    shift
    cmake -S "$root" -B "$directory" -G Ninja "-DTESSERA_PYTHON=$python" "${compiler_options[@]}" "$@"
}
