# SPDX-License-Identifier: MIT
# Runs generate.py while configuring, because the list of sources is its result. It writes only what changed, so a run
# that changes nothing costs about a second and compiles nothing.

if(TESSERA_PYTHON)
    set(tessera_python "${TESSERA_PYTHON}")
else()
    find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
    set(tessera_python "${Python3_EXECUTABLE}")
endif()

# Whatever the generator reads makes CMake run again when it changes, appears or goes.
file(GLOB_RECURSE tessera_generator_inputs CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/codegen/*.py" "${PROJECT_SOURCE_DIR}/templates/*.j2" "${PROJECT_SOURCE_DIR}/instances/*.toml")
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/generate.py" ${tessera_generator_inputs} ${TESSERA_INSTANCES})

# The processor that is compiled for, as generate.py --targets names it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(tessera_default_targets x86-64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(tessera_default_targets aarch64)
else()
    set(tessera_default_targets portable)
endif()

# tessera_generate(SOURCES): emits the instances and tables of TESSERA_OPS into tessera_generated_dir, sets SOURCES to
# the files and gives each the flags of its target.
set(tessera_generated_dir "${PROJECT_BINARY_DIR}/generated")
function(tessera_generate sources)
    set(arguments)
    foreach(pair "OPS api" "TARGETS targets" "RECEIPT receipt" "FILTER filter" "WHERE where" "OPTDIM optdim"
                 "INSTANCES from")
        separate_arguments(pair)
        list(GET pair 0 variable)
        list(GET pair 1 option)
        set(value "${TESSERA_${variable}}")
        if(variable STREQUAL "TARGETS" AND value STREQUAL "")
            set(value ${tessera_default_targets})
        endif()
        string(REPLACE ";" "," value "${value}")
        if(NOT value STREQUAL "")
            list(APPEND arguments "--${option}" "${value}")
        endif()
    endforeach()

    execute_process(
        COMMAND "${tessera_python}" -B "${PROJECT_SOURCE_DIR}/generate.py" ${arguments}
                --output_dir "${tessera_generated_dir}"
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "generate.py: ${output}")
    endif()
    message(STATUS "${output}")

    set(files)
    string(REPLACE "," ";" ops "${TESSERA_OPS}")
    foreach(op ${ops})
        file(STRINGS "${tessera_generated_dir}/tessera_${op}_sources.txt" lines)
        foreach(line ${lines})
            separate_arguments(fields UNIX_COMMAND "${line}")
            list(POP_FRONT fields path target)
            set(file "${tessera_generated_dir}/${path}")
            list(APPEND files "${file}")
            set_source_files_properties("${file}" DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES COMPILE_OPTIONS "${fields}")
        endforeach()
    endforeach()
    set(${sources} ${files} PARENT_SCOPE)
endfunction()
