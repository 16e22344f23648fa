# SPDX-License-Identifier: MIT
# Compiles code objects of AMD GPUs. No SDK is needed: any clang that knows the target works.
#
# The wheel's clang compiles the files as C. Other clangs compile them as HIP, since LLVM 19 refuses the attributes of
# kernels in C, and to assembly, since in HIP they would also link the object, with their own lld.

# Sets the commands without the arguments that differ between files: tessera_amdgcn_compile, tessera_amdgcn_assemble where
# compiling ends in assembly, and tessera_amdgcn_link.
function(tessera_amdgcn_find)
    set(flags -nogpulib -ffreestanding -O3 -Wall -Wextra -Werror "-I${PROJECT_SOURCE_DIR}/include")
    if(TESSERA_GPU_LINES) # without columns and the tree of inlined calls: a fifth of the size and not twice that
        list(APPEND flags -gline-directives-only -gno-column-info)
    endif()
    if(TESSERA_CLANG)
        get_filename_component(directory "${TESSERA_CLANG}" REALPATH)
        get_filename_component(directory "${directory}" DIRECTORY)
        find_program(TESSERA_LLD NAMES ld.lld HINTS "${directory}" DOC "Linker for GPU instances")
        if(NOT TESSERA_LLD)
            message(FATAL_ERROR "TESSERA_CLANG=${TESSERA_CLANG}: there is no ld.lld beside it; set TESSERA_LLD")
        endif()
        set(compile "${TESSERA_CLANG}" -x hip -std=c++17 --cuda-device-only -nogpuinc -fuse-cuid=none ${flags} -S)
        set(assemble "${TESSERA_CLANG}" -x assembler --target=amdgcn-amd-amdhsa -c)
        set(link "${TESSERA_LLD}")
    else()
        execute_process(
            COMMAND "${tessera_python}" -c "import os, ziglang; print(os.path.dirname(ziglang.__file__))"
            RESULT_VARIABLE result OUTPUT_VARIABLE zig ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT result EQUAL 0)
            message(FATAL_ERROR
                "GPU instances need a clang. One comes in a wheel: ${tessera_python} -m pip install ziglang\n"
                "Or TESSERA_CLANG names one that knows the target, such as /opt/rocm/llvm/bin/clang.")
        endif()
        set(compile "${zig}/zig" clang -nostdinc -isystem "${zig}/lib/include" -x c -std=c11
            --target=amdgcn-amd-amdhsa ${flags} -c)
        set(assemble)
        set(link "${zig}/zig" ld.lld)
    endif()
    set(tessera_amdgcn_compile "${compile}" PARENT_SCOPE)
    set(tessera_amdgcn_assemble "${assemble}" PARENT_SCOPE)
    set(tessera_amdgcn_link "${link}" -shared PARENT_SCOPE)
endfunction()

# Translates flags of the list of sources for this clang: in HIP the flag of the target has another name.
function(tessera_amdgcn_flags flags_variable)
    set(flags "${ARGN}")
    if(tessera_amdgcn_assemble)
        list(TRANSFORM flags REPLACE "^-mcpu=" "--offload-arch=")
    endif()
    set(${flags_variable} "${flags}" PARENT_SCOPE)
endfunction()

# Refuses a clang that cannot compile a kernel for a target, with the text of its error.
function(tessera_amdgcn_try target)
    tessera_amdgcn_flags(flags ${ARGN})
    execute_process(
        COMMAND ${tessera_amdgcn_compile} ${flags} "${PROJECT_SOURCE_DIR}/cmake/compilers/amdgcn.c" -o /dev/null
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        list(GET tessera_amdgcn_compile 0 compiler)
        message(FATAL_ERROR "${compiler} does not compile for ${target}. A clang that does: ${tessera_python} -m pip "
                            "install ziglang, with TESSERA_CLANG empty.\n${output}")
    endif()
endfunction()

# Adds the command that makes MADE.co from a source.
function(tessera_amdgcn_add made source target)
    tessera_amdgcn_flags(flags ${ARGN})
    get_filename_component(name "${made}" NAME)
    set(compiled "${made}.o")
    set(assemble)
    if(tessera_amdgcn_assemble)
        set(compiled "${made}.s")
        set(assemble COMMAND ${tessera_amdgcn_assemble} -mcpu=${target} "${made}.s" -o "${made}.o")
    endif()
    # Not -MF: since LLVM 21 clang's driver applies it only to the host's part of a HIP file (llvm-project#125646).
    set(depend -MD -Xclang -dependency-file -Xclang "${made}.d")
    add_custom_command(
        OUTPUT "${made}.co"
        COMMAND ${tessera_amdgcn_compile} ${flags} ${depend} -MQ "${made}.co" "${source}" -o "${compiled}"
        ${assemble}
        COMMAND ${tessera_amdgcn_link} "${made}.o" -o "${made}.co"
        DEPENDS "${source}"
        DEPFILE "${made}.d"
        COMMENT "Code object ${name}"
        VERBATIM)
endfunction()

# The command that checks the resources of code objects' kernels, for a whole pack at once: one process for each took
# longer than compiling most of them.
function(tessera_amdgcn_check command_variable target)
    set(${command_variable} "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.resources
        --target ${target} ${ARGN} PARENT_SCOPE)
endfunction()
