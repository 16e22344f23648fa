# SPDX-License-Identifier: MIT
# libtessera, shared (tessera::tessera) and static (tessera::tessera_static), from the same objects.
include(CheckLinkerFlag)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

tessera_generate(generated_sources)
file(GLOB_RECURSE runtime_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/*.c")
tessera_keep_built(runtime_sources)

add_library(tessera_objects OBJECT ${runtime_sources} ${generated_sources})
target_link_libraries(tessera_objects PRIVATE tessera_options Threads::Threads)
target_include_directories(tessera_objects
    PUBLIC "${PROJECT_SOURCE_DIR}/include"
    PRIVATE "${PROJECT_SOURCE_DIR}/runtime" "${tessera_generated_dir}")
set_source_files_properties("${PROJECT_SOURCE_DIR}/runtime/status.c" PROPERTIES
    COMPILE_DEFINITIONS "TESSERA_VERSION=\"${PROJECT_VERSION}\"")
set_target_properties(tessera_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)

add_library(tessera SHARED $<TARGET_OBJECTS:tessera_objects>)
add_library(tessera_static STATIC $<TARGET_OBJECTS:tessera_objects>)
set_target_properties(tessera PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(tessera_static PROPERTIES OUTPUT_NAME tessera)
foreach(library tessera tessera_static)
    add_library(tessera::${library} ALIAS ${library})
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(${library} INTERFACE
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(${library} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS} "$<BUILD_INTERFACE:tessera_options>")
endforeach()

# Where two versions are loaded in one process, calls within each stay within it.
check_linker_flag(C -Wl,-Bsymbolic-functions TESSERA_HAVE_BSYMBOLIC_FUNCTIONS)
if(TESSERA_HAVE_BSYMBOLIC_FUNCTIONS)
    target_link_options(tessera PRIVATE -Wl,-Bsymbolic-functions)
endif()
