# SPDX-License-Identifier: MIT
# tessera_googletest: GoogleTest with its main(). It is an installed one if that links with this C++ compiler, else built
# from the sources of TESSERA_GOOGLETEST_DIR or of Debian's package. Without any the target does not exist.
include(CheckCXXSourceCompiles)
set(TESSERA_GOOGLETEST_DIR "" CACHE PATH "GoogleTest's sources")

find_path(TESSERA_GTEST_INCLUDE gtest/gtest.h)
find_library(TESSERA_GTEST gtest)
find_library(TESSERA_GTEST_MAIN gtest_main)
if(TESSERA_GTEST_INCLUDE AND TESSERA_GTEST AND TESSERA_GTEST_MAIN)
    set(CMAKE_REQUIRED_INCLUDES "${TESSERA_GTEST_INCLUDE}")
    set(CMAKE_REQUIRED_LIBRARIES "${TESSERA_GTEST}" Threads::Threads)
    check_cxx_source_compiles("#include <gtest/gtest.h>
        int main() { return testing::UnitTest::GetInstance()->Failed(); }" TESSERA_GTEST_LINKS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
endif()

if(TESSERA_GTEST_LINKS)
    add_library(tessera_googletest INTERFACE)
    target_include_directories(tessera_googletest SYSTEM INTERFACE "${TESSERA_GTEST_INCLUDE}")
    target_link_libraries(tessera_googletest INTERFACE "${TESSERA_GTEST_MAIN}" "${TESSERA_GTEST}" Threads::Threads)
else()
    find_path(TESSERA_GTEST_SOURCE CMakeLists.txt NO_DEFAULT_PATH PATHS "${TESSERA_GOOGLETEST_DIR}" /usr/src/googletest)
    if(TESSERA_GTEST_SOURCE)
        set(INSTALL_GTEST OFF)
        set(BUILD_GMOCK OFF)
        add_subdirectory("${TESSERA_GTEST_SOURCE}" googletest EXCLUDE_FROM_ALL)
        add_library(tessera_googletest INTERFACE)
        target_link_libraries(tessera_googletest INTERFACE gtest_main)
    endif()
endif()
