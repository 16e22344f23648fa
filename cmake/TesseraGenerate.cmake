# SPDX-License-Identifier: MIT
# Runs generate.py while configuring, because it makes the list of sources. It writes only files that change, so a run
# without changes takes about a second and compiles nothing.

if(TESSERA_PYTHON)
    set(tessera_python "${TESSERA_PYTHON}")
else()
    find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
    set(tessera_python "${Python3_EXECUTABLE}")
endif()

# CMake runs again when a file that the generator reads changes, appears or disappears.
file(GLOB_RECURSE tessera_generator_inputs CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/codegen/*.py" "${PROJECT_SOURCE_DIR}/templates/*.j2" "${PROJECT_SOURCE_DIR}/instances/*.toml"
    "${PROJECT_SOURCE_DIR}/include/tessera/device/*.h")
list(APPEND tessera_generator_inputs # enumerations
    "${PROJECT_SOURCE_DIR}/include/tessera/device.h" "${PROJECT_SOURCE_DIR}/include/tessera/types.h")
file(GLOB tessera_kernel_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tessera/kernel/*.h") # what packs are of
if(TESSERA_ROWS)
    file(GLOB tessera_rows CONFIGURE_DEPENDS "${TESSERA_ROWS}/*.toml")
endif()
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/generate.py" ${tessera_generator_inputs} ${TESSERA_INSTANCES} ${tessera_rows})

# The architecture of the processor that is compiled for, by its name in generate.py --targets.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(tessera_default_targets x86-64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(tessera_default_targets aarch64)
else()
    set(tessera_default_targets portable)
endif()

# Columns of the source lists: file, compiler, target, flags of gcc and clang, flags of zig cc, vocabulary.
set(tessera_flags_column 3)
if(TESSERA_COMPILER_IS_ZIG)
    set(tessera_flags_column 4)
endif()

# tessera_generate(SOURCES): emits the instances and tables of TESSERA_OPS into tessera_generated_dir, sets SOURCES to
# the files of the library and gives each the flags of its target. tessera_source_lines keeps, for the tests, the lines of
# files that the host's compiler compiles.
set(tessera_generated_dir "${PROJECT_BINARY_DIR}/generated")
function(tessera_generate sources)
    list(TRANSFORM tessera_ops REPLACE "^fmha_" "" OUTPUT_VARIABLE api) # CK's word for it
    list(TRANSFORM api REPLACE "^fwd_pagedkv$" "pagedkv_prefill")
    set(targets "${TESSERA_TARGETS}")
    if(targets STREQUAL "")
        set(targets "${tessera_default_targets}")
    endif()

    set(arguments)
    foreach(option api targets receipt filter where optdim rounding instances rows)
        string(TOUPPER "TESSERA_${option}" variable)
        if(NOT DEFINED ${option})
            set(${option} "${${variable}}")
        endif()
        string(REPLACE ";" "," value "${${option}}")
        if(NOT value STREQUAL "")
            string(REPLACE "instances" "from" option "${option}")
            string(REPLACE "rows" "instances" option "${option}")
            list(APPEND arguments "--${option}" "${value}")
        endif()
    endforeach()

    execute_process(
        COMMAND "${tessera_python}" "${PROJECT_SOURCE_DIR}/generate.py" ${arguments}
                --output_dir "${tessera_generated_dir}"
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        if(output STREQUAL "")
            set(output "${tessera_python} does not run generate.py (${result}): TESSERA_PYTHON is Python 3.10 or newer with Jinja2")
        endif()
        message(FATAL_ERROR "${output}")
    endif()
    message(STATUS "${output}")

    set(files)
    set(host_lines)
    set(device_lines)
    set(all_ops) # with those that are parts of others
    foreach(op ${tessera_ops})
        file(STRINGS "${tessera_generated_dir}/${op}_sources.txt" parts REGEX "^# with ")
        list(TRANSFORM parts REPLACE "^# with " "")
        list(APPEND all_ops ${op} ${parts})
    endforeach()
    foreach(op ${all_ops})
        file(STRINGS "${tessera_generated_dir}/${op}_sources.txt" lines REGEX "^[^#]")
        set(lines_${op} ${lines})
        list(FILTER lines_${op} EXCLUDE REGEX "^[^\t]*\thost\t")
        list(FILTER lines INCLUDE REGEX "^[^\t]*\thost\t")
        list(APPEND host_lines ${lines})
        list(APPEND device_lines ${lines_${op}})
    endforeach()
    tessera_find_compilers(${device_lines})
    set(packs)
    foreach(op ${all_ops})
        tessera_add_packs(packs "${op}" ${lines_${op}})
    endforeach()
    tessera_say_left_out()
    foreach(line ${host_lines})
        string(REPLACE "\t" ";" columns "${line}")
        list(GET columns 0 file)
        list(GET columns ${tessera_flags_column} flags)
        separate_arguments(flags)
        if(CMAKE_C_FLAGS MATCHES TESSERA_EMULATE_HALVES) # on processors without (include/tessera/isa/cpu_avx512fp16.h)
            list(REMOVE_ITEM flags -mavx512fp16)
        endif()
        if(TESSERA_SANITIZE MATCHES undefined) # which takes a minute for each instance; other sanitizers stay on
            list(APPEND flags -fno-sanitize=undefined)
        endif()
        # Without a build type it would be -O0. What -O3 adds makes kernels no faster, since vectors and unrolled loops are
        # written out there, and takes as long again.
        list(APPEND flags "$<$<OR:$<CONFIG:Release>,$<STREQUAL:$<CONFIG>,>>:-O2>")
        list(APPEND files "${tessera_generated_dir}/${file}")
        set_source_files_properties("${tessera_generated_dir}/${file}" PROPERTIES COMPILE_OPTIONS "${flags}")
    endforeach()
    tessera_place_packs(files ${packs})

    set(library "${tessera_generated_dir}/tessera_library.c")
    string(REPLACE ";" "," api "${api}")
    add_custom_command(
        OUTPUT "${library}"
        COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.library
                --api "${api}" --out "${library}"
        DEPENDS "${PROJECT_SOURCE_DIR}/codegen/library.py" "${PROJECT_SOURCE_DIR}/codegen/targets.py"
                "${PROJECT_SOURCE_DIR}/codegen/pack.py" ${tessera_kernel_headers}
                "${PROJECT_SOURCE_DIR}/templates/dispatch/library.c.j2"
        COMMENT "List of targets and operations"
        VERBATIM)
    list(APPEND files "${library}")
    set(${sources} ${files} PARENT_SCOPE)
    set(tessera_source_lines "${host_lines}" PARENT_SCOPE)
endfunction()
