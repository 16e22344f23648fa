# SPDX-License-Identifier: MIT
# tessera_options: what everything of this project is compiled with. Not exported, and no global flag is touched.
include(CheckCCompilerFlag)

add_library(tessera_options INTERFACE)
target_compile_features(tessera_options INTERFACE c_std_11)

# The same bytes wherever source and build directories are.
check_c_compiler_flag(-ffile-prefix-map=a=b TESSERA_HAVE_FILE_PREFIX_MAP)
if(TESSERA_HAVE_FILE_PREFIX_MAP)
    target_compile_options(tessera_options INTERFACE
        "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build" "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=tessera")
endif()

# zig cc compiles for the machine it runs on unless told otherwise, and spells its flags its own way.
set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of it
check_c_compiler_flag(-mcpu=baseline TESSERA_COMPILER_IS_ZIG)
unset(CMAKE_REQUIRED_FLAGS)
if(TESSERA_COMPILER_IS_ZIG)
    target_compile_options(tessera_options INTERFACE -mcpu=baseline)
endif()

if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(tessera_options INTERFACE -Wall -Wextra)
endif()

if(TESSERA_SANITIZE)
    set(flags "-fsanitize=${TESSERA_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(tessera_options INTERFACE ${flags})
    target_link_options(tessera_options INTERFACE ${flags})
endif()
