# SPDX-License-Identifier: MIT
# GPU instances: each emitted source becomes a code object, those of an operation and target one pack, and packs a part
# of the library, or files beside it. No GPU SDK is needed: any clang that knows the target will do.

# Sets the commands up to what differs from file to file: tessera_device_compile, tessera_device_assemble where compiling
# ends in assembly, and tessera_device_link.
#
# The wheel's clang compiles the files as C. Others do so as HIP, since in C LLVM 19 refuses the attributes of kernels; to
# assembly, since they would link objects themselves, with the lld of their own.
function(tessera_find_device_compiler)
    set(flags -nogpulib -ffreestanding -O3 -Wall -Wextra -Werror "-I${PROJECT_SOURCE_DIR}/include")
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
    set(tessera_device_compile "${compile}" PARENT_SCOPE)
    set(tessera_device_assemble "${assemble}" PARENT_SCOPE)
    set(tessera_device_link "${link}" -shared PARENT_SCOPE)
endfunction()

# Refuses a clang that cannot compile a kernel for a target, with what it says.
function(tessera_try_device_compiler target)
    execute_process(
        COMMAND ${tessera_device_compile} ${ARGN} "${PROJECT_SOURCE_DIR}/cmake/kernel.c" -o /dev/null
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        list(GET tessera_device_compile 0 compiler)
        message(FATAL_ERROR "${compiler} does not compile for ${target}. A clang that does: ${tessera_python} -m pip "
                            "install ziglang, with TESSERA_CLANG empty.\n${output}")
    endif()
endfunction()

# tessera_add_code_object(FILE TARGET FLAG...): compiles an emitted file, and checks what the kernel takes.
function(tessera_add_code_object file target)
    get_filename_component(name "${file}" NAME_WE)
    set(source "${tessera_generated_dir}/${file}")
    set(made "${PROJECT_BINARY_DIR}/device/${target}/${name}")
    set(compiled "${made}.o")
    set(assemble)
    if(tessera_device_assemble)
        set(compiled "${made}.s")
        set(assemble COMMAND ${tessera_device_assemble} -mcpu=${target} "${made}.s" -o "${made}.o")
    endif()
    # Not -MF, which clang's driver has for the host's part of a HIP file alone since LLVM 21 (llvm-project#125646).
    set(depend -MD -Xclang -dependency-file -Xclang "${made}.d")
    add_custom_command(
        OUTPUT "${made}.co"
        COMMAND ${tessera_device_compile} ${ARGN} ${depend} -MQ "${made}.co" "${source}" -o "${compiled}"
        ${assemble}
        COMMAND ${tessera_device_link} "${made}.o" -o "${made}.linked"
        COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.resources
                --target ${target} "${made}.linked"
        COMMAND "${CMAKE_COMMAND}" -E rename "${made}.linked" "${made}.co"
        DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/codegen/resources.py"
        DEPFILE "${made}.d"
        COMMENT "Code object ${name}"
        VERBATIM)
endfunction()

# tessera_add_packs(PACKS OP LINE...): the packs of an operation, made of those lines of its list of sources that are for
# GPUs. Appends "OP TARGET" to PACKS for each.
function(tessera_add_packs packs_variable op)
    set(targets)
    set(made)
    foreach(line ${ARGN})
        string(REPLACE "\t" ";" columns "${line}")
        list(GET columns 0 file)
        list(GET columns 2 target)
        list(GET columns 3 flags)
        separate_arguments(flags)
        if(tessera_device_assemble)
            list(TRANSFORM flags REPLACE "^-mcpu=" "--offload-arch=") # HIP's word
        endif()
        if(NOT target IN_LIST targets)
            list(APPEND targets "${target}")
            tessera_try_device_compiler("${target}" ${flags})
            file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/packs" "${PROJECT_BINARY_DIR}/device/${target}")
        endif()
        tessera_add_code_object("${file}" "${target}" ${flags})
        get_filename_component(name "${file}" NAME_WE)
        list(APPEND objects_${target} "${PROJECT_BINARY_DIR}/device/${target}/${name}.co")
    endforeach()

    foreach(target ${targets})
        set(pack "${PROJECT_BINARY_DIR}/packs/${op}_${target}.pack")
        add_custom_command(
            OUTPUT "${pack}"
            COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.pack
                    --op ${op} --target ${target} --out "${pack}" ${objects_${target}}
            DEPENDS ${objects_${target}} "${PROJECT_SOURCE_DIR}/codegen/pack.py"
            COMMENT "Pack ${op}_${target}"
            VERBATIM)
        list(APPEND made "${op} ${target}")
    endforeach()
    set(${packs_variable} ${${packs_variable}} ${made} PARENT_SCOPE)
endfunction()

# tessera_place_packs(SOURCES PACK...): into the library, or beside it. Appends to SOURCES the list of those inside.
function(tessera_place_packs sources_variable)
    set(pack_files)
    set(inclusions)
    set(entries)
    foreach(pack ${ARGN})
        string(REPLACE " " ";" words "${pack}")
        list(GET words 0 op)
        list(GET words 1 target)
        set(file "${PROJECT_BINARY_DIR}/packs/${op}_${target}.pack")
        list(APPEND pack_files "${file}")
        if(TESSERA_EMBED_PACKS)
            set(symbol "tessera_pack_${op}_${target}")
            string(APPEND inclusions "INCLUDE_PACK(${symbol}, \"${file}\");\n")
            string(APPEND entries "    {\"${op}\", \"${target}\", ${symbol}_begin, ${symbol}_end},\n")
        endif()
    endforeach()
    set(source "${PROJECT_BINARY_DIR}/packs/packs.c")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/packs.c.in" "${source}" @ONLY)
    if(TESSERA_EMBED_PACKS)
        set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${pack_files}")
        set(${sources_variable} ${${sources_variable}} "${source}" ${pack_files} PARENT_SCOPE) # the packs too: whoever has them makes them
        return()
    endif()
    set(${sources_variable} ${${sources_variable}} "${source}" PARENT_SCOPE)
    add_custom_target(tessera_packs ALL DEPENDS ${pack_files})
    if(TESSERA_INSTALL AND pack_files)
        install(FILES ${pack_files} DESTINATION "${CMAKE_INSTALL_LIBDIR}/tessera")
    endif()
endfunction()
