# SPDX-License-Identifier: MIT
# tessera_options: the compiler options of all targets of this project. They are not exported, and no global flag is changed.
include(CheckCCompilerFlag)

add_library(tessera_options INTERFACE)
target_compile_features(tessera_options INTERFACE c_std_11)

# Makes objects independent of where source and build directories are.
check_c_compiler_flag(-ffile-prefix-map=a=b TESSERA_HAVE_FILE_PREFIX_MAP)
if(TESSERA_HAVE_FILE_PREFIX_MAP)
    target_compile_options(tessera_options INTERFACE
        "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build" "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=tessera")
endif()

# zig cc compiles for the machine that it runs on unless told otherwise, and has its own flag for that.
set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns about the flag
check_c_compiler_flag(-mcpu=baseline TESSERA_COMPILER_IS_ZIG)
unset(CMAKE_REQUIRED_FLAGS)
if(TESSERA_COMPILER_IS_ZIG)
    target_compile_options(tessera_options INTERFACE -mcpu=baseline)
endif()

if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(tessera_options INTERFACE -Wall -Wextra)
endif()

if(TESSERA_SANITIZE)
    unset(TESSERA_CAN_SANITIZE CACHE) # which was of another value, perhaps
    set(CMAKE_REQUIRED_LINK_OPTIONS "-fsanitize=${TESSERA_SANITIZE}")
    check_c_compiler_flag("-fsanitize=${TESSERA_SANITIZE}" TESSERA_CAN_SANITIZE)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(NOT TESSERA_CAN_SANITIZE)
        message(FATAL_ERROR "TESSERA_SANITIZE is \"${TESSERA_SANITIZE}\": ${CMAKE_C_COMPILER} builds nothing with "
            "-fsanitize=${TESSERA_SANITIZE}")
    endif()
    set(flags "-fsanitize=${TESSERA_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # The same checks as calls, where gcc has them: compiled up to three times as fast, run ten times slower.
    set(calls --param=asan-instrumentation-with-call-threshold=0)
    check_c_compiler_flag(${calls} TESSERA_HAVE_ASAN_CALLS)
    if(TESSERA_SANITIZE_CALLS AND TESSERA_SANITIZE MATCHES address AND TESSERA_HAVE_ASAN_CALLS)
        list(APPEND flags ${calls})
    endif()
    target_compile_options(tessera_options INTERFACE ${flags})
    target_link_options(tessera_options INTERFACE ${flags})
endif()
