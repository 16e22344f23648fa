# SPDX-License-Identifier: MIT
# GPU instances: each emitted source becomes a code object, all code objects of an operation and target become a pack, and
# packs become a part of the library or files beside it.
#
# Each line of a list of sources names its compiler. compilers/NAME.cmake defines four functions: tessera_NAME_find()
# sets variables that the others read, tessera_NAME_try(TARGET FLAG...) refuses a compiler that does not know the target,
# tessera_NAME_add(MADE SOURCE TARGET FLAG...) adds the command that makes MADE.co, and
# tessera_NAME_check(COMMAND TARGET OBJECT...) sets COMMAND to the command that checks code objects before they are packed.

# tessera_find_compilers(LINE...): finds the compilers that lines of lists of sources name, and tries them for each target.
macro(tessera_find_compilers)
    set(targets)
    foreach(line ${ARGN})
        string(REPLACE "\t" ";" columns "${line}")
        list(GET columns 1 compiler)
        list(GET columns 2 target)
        if(NOT target IN_LIST targets)
            list(APPEND targets "${target}")
            list(GET columns 3 flags)
            separate_arguments(flags)
            if(NOT COMMAND tessera_${compiler}_find)
                include("${PROJECT_SOURCE_DIR}/cmake/compilers/${compiler}.cmake")
                cmake_language(CALL tessera_${compiler}_find)
            endif()
            cmake_language(CALL tessera_${compiler}_try "${target}" ${flags})
        endif()
    endforeach()
endmacro()

# tessera_is_left_out(LEFT_OUT INSTANCE): whether packs are made without an instance. Tests run in turns what takes long to
# compile: of the instances whose name matches a REGEX=N/M of TESSERA_CODE_PARTS, the first that it matches, part N of M is
# compiled.
function(tessera_is_left_out variable instance)
    set(${variable} OFF PARENT_SCOPE)
    foreach(rule ${TESSERA_CODE_PARTS})
        if(NOT rule MATCHES "^(.+)=([0-9]+)/([1-9][0-9]*)$" OR NOT CMAKE_MATCH_2 LESS CMAKE_MATCH_3)
            message(FATAL_ERROR "TESSERA_CODE_PARTS: ${rule}: must be REGEX=N/M, such as __sm_90a=0/7 to __sm_90a=6/7")
        endif()
        set(regex "${CMAKE_MATCH_1}")
        set(part "${CMAKE_MATCH_2}")
        set(parts "${CMAKE_MATCH_3}")
        if(instance MATCHES "${regex}")
            string(MD5 hash "${instance}")
            string(SUBSTRING "${hash}" 0 7 hash)
            math(EXPR its "0x${hash} % ${parts}")
            if(NOT its EQUAL part)
                set(${variable} ON PARENT_SCOPE)
            endif()
            return()
        endif()
    endforeach()
endfunction()

# tessera_say_left_out(): says how many instances packs are made without, if any.
function(tessera_say_left_out)
    get_property(all GLOBAL PROPERTY tessera_device_instances)
    get_property(compiled GLOBAL PROPERTY tessera_device_compiled)
    list(LENGTH all count)
    list(LENGTH compiled with)
    if(with LESS count)
        message(STATUS "GPU instances: ${with} of ${count} are compiled, the part of TESSERA_CODE_PARTS=${TESSERA_CODE_PARTS}")
    endif()
endfunction()

# tessera_take_code(TAKEN MADE OBJECT FILE): adds the command that copies MADE.co from the build TESSERA_CODE_FROM, where that
# has made it of the same source.
function(tessera_take_code variable made object file)
    set(${variable} OFF PARENT_SCOPE)
    set(other "${TESSERA_CODE_FROM}/generated/${file}")
    if(TESSERA_CODE_FROM AND EXISTS "${TESSERA_CODE_FROM}/${object}" AND EXISTS "${other}")
        file(SHA256 "${other}" theirs)
        file(SHA256 "${tessera_generated_dir}/${file}" ours)
        if(theirs STREQUAL ours)
            add_custom_command(
                OUTPUT "${made}.co"
                COMMAND "${CMAKE_COMMAND}" -E copy "${TESSERA_CODE_FROM}/${object}" "${made}.co"
                DEPENDS "${TESSERA_CODE_FROM}/${object}"
                COMMENT "Code object ${object}, taken"
                VERBATIM)
            set(${variable} ON PARENT_SCOPE)
        endif()
    endif()
endfunction()

# tessera_add_packs(PACKS OP LINE...): makes the packs of an operation from the lines of its list of sources that are for
# GPUs. Appends "OP TARGET" to PACKS for each.
function(tessera_add_packs packs_variable op)
    set(targets)
    set(made)
    foreach(line ${ARGN})
        string(REPLACE "\t" ";" columns "${line}")
        list(GET columns 0 file)
        list(GET columns 1 compiler)
        list(GET columns 2 target)
        list(GET columns 3 flags)
        separate_arguments(flags)
        get_filename_component(name "${file}" NAME_WE)
        set_property(GLOBAL APPEND PROPERTY tessera_device_instances "${name}")
        tessera_is_left_out(is_left_out "${name}")
        if(is_left_out)
            continue()
        endif()
        set_property(GLOBAL APPEND PROPERTY tessera_device_compiled "${name}")
        if(NOT target IN_LIST targets)
            list(APPEND targets "${target}")
            file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/packs" "${PROJECT_BINARY_DIR}/device/${target}")
        endif()
        set(object "${PROJECT_BINARY_DIR}/device/${target}/${name}")
        tessera_take_code(is_taken "${object}" "device/${target}/${name}.co" "${file}")
        if(NOT is_taken)
            cmake_language(CALL tessera_${compiler}_add "${object}" "${tessera_generated_dir}/${file}" "${target}" ${flags})
        endif()
        list(APPEND objects_${target} "${object}.co")
        set(compiler_of_${target} "${compiler}")
    endforeach()

    foreach(target ${targets})
        set(pack "${PROJECT_BINARY_DIR}/packs/${op}_${target}.pack")
        cmake_language(CALL tessera_${compiler_of_${target}}_check check "${target}" ${objects_${target}})
        add_custom_command(
            OUTPUT "${pack}"
            COMMAND ${check}
            COMMAND "${CMAKE_COMMAND}" -E chdir "${PROJECT_SOURCE_DIR}" "${tessera_python}" -m codegen.pack
                    --op ${op} --target ${target} --out "${pack}" ${objects_${target}}
            DEPENDS ${objects_${target}} ${tessera_kernel_headers} "${PROJECT_SOURCE_DIR}/codegen/pack.py" "${PROJECT_SOURCE_DIR}/codegen/resources.py"
            COMMENT "Pack ${op}_${target}"
            VERBATIM)
        list(APPEND made "${op} ${target}")
    endforeach()
    set(${packs_variable} ${${packs_variable}} ${made} PARENT_SCOPE)
endfunction()

# tessera_place_packs(SOURCES PACK...): puts packs into the library, or beside it. Appends to SOURCES the source that
# contains the packs inside.
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
        set(${sources_variable} ${${sources_variable}} "${source}" ${pack_files} PARENT_SCOPE) # with the packs, so that each target that uses them makes them
        return()
    endif()
    set(${sources_variable} ${${sources_variable}} "${source}" PARENT_SCOPE)
    add_custom_target(tessera_packs ALL DEPENDS ${pack_files})
    if(TESSERA_INSTALL AND pack_files)
        install(FILES ${pack_files} DESTINATION "${CMAKE_INSTALL_LIBDIR}/tessera")
    endif()
endfunction()
