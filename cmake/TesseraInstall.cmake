# SPDX-License-Identifier: MIT
# Installs the library, the files for find_package(tessera) and pkg-config, and the licence. Programs and the simulator
# have install commands of their own.
include(CMakePackageConfigHelpers)

# The library looks for the simulator beside the shared library; a statically linked program gets its folder as an rpath.
if(TESSERA_BUILD_SIMULATOR)
    target_link_options(tessera_static INTERFACE
        "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>")
    set(pc_simulator " -Wl,-rpath,\${libdir}")
endif()

install(TARGETS tessera tessera_static EXPORT tesseraTargets)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/THIRD_PARTY.md"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}")
foreach(folder tessera tessera/kernel) # other folders are for emitted code only
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/${folder}/*.h")
    tessera_keep_built(headers)
    install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tesseraConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/tesseraConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tesseraConfig.cmake" "${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake"
    DESTINATION "${package_dir}")

# The prefix is relative to the .pc file, so that an installed tree may be moved.
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
set(pc_libraries "")
foreach(library ${CMAKE_DL_LIBS})
    string(APPEND pc_libraries " -l${library}")
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/tessera.pc.in" "${PROJECT_BINARY_DIR}/tessera.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
