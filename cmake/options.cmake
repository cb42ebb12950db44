# The options of a build. A project that adds Tenon as a subdirectory gets only the library.
include(GNUInstallDirs)

set(TENON_MPI AUTO CACHE STRING "The library tenon::mpi for several processes: AUTO (if MPI is installed), ON or OFF")
set_property(CACHE TENON_MPI PROPERTY STRINGS AUTO ON OFF)

set(TENON_PNG AUTO CACHE STRING "PNG images and IDX files in gzip, with libpng and zlib: AUTO (if found), ON or OFF")
set_property(CACHE TENON_PNG PROPERTY STRINGS AUTO ON OFF)

# Check is not required to build the programs: without it the tests are off; tests/run installs it and sets TENON_TESTS.
set(tests ${PROJECT_IS_TOP_LEVEL})
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED TENON_TESTS)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(TENON_CHECK QUIET check)
  endif()
  if(NOT TENON_CHECK_FOUND)
    set(tests OFF)
    message(STATUS "Check is not installed; the tests are not built (tests/run installs it)")
  endif()
endif()

option(TENON_DEVELOPER "Enable compiler warnings for developers of Tenon" ${PROJECT_IS_TOP_LEVEL})
option(TENON_TESTS "Build the tests (needs Check)" ${tests})
option(TENON_PROGRAMS "Build the examples and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TENON_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})

option(TENON_FUZZ "Build the fuzz targets with libFuzzer (needs clang)" OFF)
option(TENON_COVERAGE "Measure test coverage" OFF)
set(TENON_SANITIZE "" CACHE STRING "Sanitizers, the argument of -fsanitize=: address,undefined or thread")
set(TENON_TEST_LAUNCHER "" CACHE STRING "Launcher of the test programs, as a list: valgrind;-q")
set(TENON_TEST_TIMEOUT 300 CACHE STRING "Maximum seconds of a test program")
mark_as_advanced(TENON_FUZZ TENON_COVERAGE TENON_SANITIZE TENON_TEST_LAUNCHER TENON_TEST_TIMEOUT)

# Tenon does not use OpenMP; a test and the benchmarks of other libraries do.
find_package(OpenMP QUIET COMPONENTS C)
set(TENON_OPENMP ${OpenMP_C_FOUND})

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
