# SPDX-License-Identifier: MIT
# The operations of this build, as the list tessera_ops, and the files that belong to each.
string(REGEX REPLACE "[ ,;]+" ";" tessera_ops "${TESSERA_OPS}")

# All operations of the tree: those whose headers declare calls.
set(tessera_known_ops)
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tessera/*.h")
foreach(header ${headers})
    file(STRINGS "${header}" calls REGEX "^TESSERA_CALLS\\(")
    if(calls)
        get_filename_component(op "${header}" NAME_WE)
        list(APPEND tessera_known_ops "${op}")
    endif()
endforeach()
list(JOIN tessera_known_ops ", " known)
if(NOT tessera_ops)
    message(FATAL_ERROR "TESSERA_OPS is empty; there is: ${known}")
endif()
foreach(op ${tessera_ops})
    if(NOT op IN_LIST tessera_known_ops)
        message(FATAL_ERROR "TESSERA_OPS: operation '${op}' is unknown; there is: ${known}")
    endif()
endforeach()

# Operations on caches, and on keys of two parts, attend by instances of fmha_fwd.
foreach(op fmha_fwd_splitkv fmha_fwd_pagedkv fmha_batch_prefill paged_attention mla_prefill)
    if(op IN_LIST tessera_ops AND NOT fmha_fwd IN_LIST tessera_ops)
        message(FATAL_ERROR "TESSERA_OPS=${TESSERA_OPS}: ${op} needs fmha_fwd, whose instances attend")
    endif()
endforeach()

# Two of them append first.
foreach(op fmha_fwd_splitkv fmha_fwd_pagedkv)
    if(op IN_LIST tessera_ops AND NOT fmha_fwd_appendkv IN_LIST tessera_ops)
        message(FATAL_ERROR "TESSERA_OPS=${TESSERA_OPS}: ${op} needs fmha_fwd_appendkv, whose instances append")
    endif()
endforeach()

# tessera_keep_built(FILES): removes from the list the files of operations that are not built. A file belongs to the
# operation with the longest name that its own name begins with, if there is one.
function(tessera_keep_built files_variable)
    set(kept)
    foreach(file ${${files_variable}})
        get_filename_component(name "${file}" NAME)
        set(owner "")
        foreach(op ${tessera_known_ops})
            string(LENGTH "${op}" length)
            string(LENGTH "${owner}" longest)
            if(name MATCHES "^${op}[._]" AND length GREATER longest)
                set(owner "${op}")
            endif()
        endforeach()
        if(NOT owner OR owner IN_LIST tessera_ops)
            list(APPEND kept "${file}")
        endif()
    endforeach()
    set(${files_variable} "${kept}" PARENT_SCOPE)
endfunction()

# tessera_add_for(OP FOLDER): adds the folder if the operation is built.
function(tessera_add_for op folder)
    if(op IN_LIST tessera_ops)
        add_subdirectory("${folder}")
    endif()
endfunction()
