# SPDX-License-Identifier: MIT
# Compiles images of NVIDIA GPUs: to PTX by any clang that knows the target, and to a cubin where there is a ptxas. No
# toolkit is needed: without a cubin the driver compiles the PTX when a kernel is loaded, which takes part of a second.
#
# The files are compiled as CUDA, since in C clang drops the attributes of kernels that ptxas must see.

# Sets the commands without the arguments that differ between files: tessera_nvptx_compile, and tessera_nvptx_finish, which
# makes an image of PTX.
function(tessera_nvptx_find)
    set(flags -x cuda -std=c++17 --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version -ffreestanding -O3
        -ffp-contract=fast-honor-pragmas -Wall -Wextra -Werror "-I${PROJECT_SOURCE_DIR}/include" -S)
    if(TESSERA_CLANG)
        set(compile "${TESSERA_CLANG}")
    else()
        execute_process(
            COMMAND "${tessera_python}" -c "import os, ziglang; print(os.path.dirname(ziglang.__file__))"
            RESULT_VARIABLE result OUTPUT_VARIABLE zig ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT result EQUAL 0)
            message(FATAL_ERROR
                "GPU instances need a clang. One comes in a wheel: ${tessera_python} -m pip install ziglang\n"
                "Or TESSERA_CLANG names one that knows the target.")
        endif()
        set(compile "${zig}/zig" clang -nostdinc -isystem "${zig}/lib/include")
    endif()
    set(tessera_nvptx_compile ${compile} ${flags} PARENT_SCOPE)
    tessera_nvptx_find_ptxas(ptxas)
    set(finish "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.nvptx)
    if(ptxas)
        list(APPEND finish --ptxas "${ptxas}")
    endif()
    set(tessera_nvptx_finish "${finish}" PARENT_SCOPE)
endfunction()

# The ptxas that TESSERA_PTXAS names, else that on the path, of a toolkit, or of a wheel.
function(tessera_nvptx_find_ptxas variable)
    if("${TESSERA_PTXAS}" STREQUAL "")
        execute_process(
            COMMAND "${tessera_python}" -c
                "import nvidia; [print(f'{p}/{d}/bin') for p in nvidia.__path__ for d in ('cuda_nvcc', 'cu13', 'cu12')]"
            OUTPUT_VARIABLE wheels ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        string(REPLACE "\n" ";" wheels "${wheels}")
        find_program(tessera_nvptx_ptxas NAMES ptxas PATHS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda ${wheels}
                     PATH_SUFFIXES bin NO_CACHE)
    else()
        set(tessera_nvptx_ptxas "${TESSERA_PTXAS}")
    endif()
    if(tessera_nvptx_ptxas)
        message(STATUS "NVIDIA GPU instances: PTX and cubins, by ${tessera_nvptx_ptxas}")
        set(${variable} "${tessera_nvptx_ptxas}" PARENT_SCOPE)
    else()
        message(STATUS "NVIDIA GPU instances: PTX alone; a ptxas adds cubins: ${tessera_python} -m pip install "
                       "nvidia-cuda-nvcc-cu12")
        set(${variable} "" PARENT_SCOPE)
    endif()
endfunction()

# Refuses a clang that cannot compile a kernel for a target, or a ptxas, with the text of its error.
function(tessera_nvptx_try target)
    set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/nvptx_probe_${target}")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/CMakeFiles")
    execute_process(
        COMMAND ${tessera_nvptx_compile} ${ARGN} "${PROJECT_SOURCE_DIR}/cmake/compilers/nvptx.c" -o "${probe}.ptx"
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        list(GET tessera_nvptx_compile 0 compiler)
        message(FATAL_ERROR "${compiler} does not compile for ${target}. A clang that does: ${tessera_python} -m pip "
                            "install ziglang, with TESSERA_CLANG empty.\n${output}")
    endif()
    execute_process(
        COMMAND ${tessera_nvptx_finish} --target ${target} --out "${probe}.image" "${probe}.ptx"
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${output}\nA ptxas that compiles for ${target}: ${tessera_python} -m pip install "
                            "nvidia-cuda-nvcc-cu12; TESSERA_PTXAS=OFF does without.")
    endif()
endfunction()

# Adds the command that makes MADE.co from a source, with MADE.ptx and what ptxas says in MADE.ptxas.txt beside it.
function(tessera_nvptx_add made source target)
    get_filename_component(name "${made}" NAME)
    # Not -MF: since LLVM 21 clang's driver applies it only to the host's part of a CUDA file (llvm-project#125646).
    set(depend -MD -Xclang -dependency-file -Xclang "${made}.d")
    add_custom_command(
        OUTPUT "${made}.co"
        COMMAND ${tessera_nvptx_compile} ${ARGN} ${depend} -MQ "${made}.co" "${source}" -o "${made}.ptx"
        COMMAND ${tessera_nvptx_finish} --target ${target} --out "${made}.co" "${made}.ptx"
        DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/codegen/nvptx.py"
        DEPFILE "${made}.d"
        COMMENT "Image ${name}"
        VERBATIM)
endfunction()

# The command that checks images before they are packed, by what ptxas said of them.
function(tessera_nvptx_check command_variable target)
    set(${command_variable} "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.resources
        --target ${target} ${ARGN} PARENT_SCOPE)
endfunction()
