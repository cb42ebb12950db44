# cmake --install: libraries, headers, the files for find_package and pkg-config, and the programs that are built, with
# their manual pages. The installation can be moved to another folder. The components lib, dev and programs are
# packages: packages.cmake.
if(NOT TENON_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
install(TARGETS tenon tenon_static EXPORT tenon
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib NAMELINK_COMPONENT dev
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT lib
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TENON_HAS_MPI)
  install(TARGETS tenon_mpi EXPORT tenon_mpi ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(header IN LISTS TENON_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/${folder})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
install(EXPORT tenon NAMESPACE tenon:: FILE tenon-targets.cmake DESTINATION ${package_dir})
if(TENON_HAS_MPI)
  install(EXPORT tenon_mpi NAMESPACE tenon:: FILE tenon-mpi-targets.cmake DESTINATION ${package_dir})
endif()
configure_package_config_file(cmake/tenon-config.cmake.in ${PROJECT_BINARY_DIR}/tenon-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenon-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenon-config.cmake ${PROJECT_BINARY_DIR}/tenon-config-version.cmake
  DESTINATION ${package_dir})

# ${pcfiledir} makes the paths in tenon.pc relative to its folder.
cmake_path(SET pc_dir "${CMAKE_INSTALL_PREFIX}")
cmake_path(APPEND pc_dir "${CMAKE_INSTALL_LIBDIR}" pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${pc_dir}" OUTPUT_VARIABLE pc_up)
set(pc_private -lm ${CMAKE_THREAD_LIBS_INIT})
set(pc_requires)
if(TENON_DATA)
  set(pc_requires libutf8proc)
endif()
if(png_names)
  list(APPEND pc_requires libpng zlib)
endif()
list(JOIN pc_requires " " pc_requires)
list(JOIN pc_private " " pc_private)
configure_file(cmake/tenon.pc.in ${PROJECT_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Programs with a manual page are installed; the others are examples to read. In a package their names start with
# tenon-: other packages have programs named look, vit and gpt.
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.1)
if(TENON_PROGRAMS AND TENON_EXTRAS)
  foreach(page IN LISTS pages)
    cmake_path(GET page STEM name)
    install(PROGRAMS ${PROJECT_BINARY_DIR}/bin/${name}${CMAKE_EXECUTABLE_SUFFIX} DESTINATION ${CMAKE_INSTALL_BINDIR}
      RENAME ${TENON_PROGRAM_PREFIX}${name}${CMAKE_EXECUTABLE_SUFFIX} COMPONENT programs OPTIONAL)
    if(NOT TENON_PACKAGES)
      install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME ${TENON_PROGRAM_PREFIX}${name}.1
        COMPONENT programs)
    endif()
  endforeach()
endif()
if(TENON_PACKAGES)
  include(cmake/packages.cmake)
endif()
