#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs rivals of the benchmark, each in a virtual environment of its own, since their needs contradict each other:
#   benchmark/rivals.sh [--build DIR] [torch] [zentorch] [onnxruntime] [openvino] [onednn]     without: all
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${TESSERA_BUILD_DIR:-$root/build}
names=
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift ;;
    torch | zentorch | onnxruntime | openvino | onednn) names="$names $1" ;;
    *) echo "rivals.sh: '$1' is none of --build DIR, torch, zentorch, onnxruntime, openvino, onednn" >&2; exit 1 ;;
    esac
    shift
done

# Versions are those that results were measured with. zentorch works with one minor version of torch alone.
packages() {
    case $1 in
    torch) echo torch==2.15.0 ;;
    zentorch) echo zentorch==2.14.0.1 torch==2.14.1 ;;
    onnxruntime) echo onnxruntime==1.31.1 onnx numpy ;;
    openvino) echo openvino==2026.4.1 numpy ;;
    onednn) echo onednn-cpu-gomp==2023.2.0 ;; # 3.2, the last one that runs on OpenMP rather than SYCL
    esac
}

for name in ${names:-torch zentorch onnxruntime openvino onednn}; do
    echo "== $name: $(packages "$name")"
    python3 -m venv "$build/rivals/$name"
    # shellcheck disable=SC2046 # several words
    "$build/rivals/$name/bin/pip" install --quiet $(packages "$name")
done
