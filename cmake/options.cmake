# What a build can be asked for. A project that adds Tenon as a subdirectory gets the library and nothing else.
include(GNUInstallDirs)

set(TENON_WITH_OPENMP AUTO CACHE STRING "Threads by OpenMP: AUTO (if the compiler has it), ON or OFF")
set_property(CACHE TENON_WITH_OPENMP PROPERTY STRINGS AUTO ON OFF)

set(TENON_MPI AUTO CACHE STRING "Several processes by MPI, the library tenon::mpi: AUTO (if it is here), ON or OFF")
set_property(CACHE TENON_MPI PROPERTY STRINGS AUTO ON OFF)

set(TENON_PNG AUTO CACHE STRING "Pictures in PNG and IDX in gzip, by libpng and its zlib: AUTO (if here), ON or OFF")
set_property(CACHE TENON_PNG PROPERTY STRINGS AUTO ON OFF)

# Who wants the programs alone need not have Check: tests/run, which installs it, asks for the tests by name.
set(tests ${PROJECT_IS_TOP_LEVEL})
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED TENON_TESTS)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(TENON_CHECK QUIET check)
  endif()
  if(NOT TENON_CHECK_FOUND)
    set(tests OFF)
    message(STATUS "Check is not here, so the tests are left out; tests/run installs it")
  endif()
endif()

option(TENON_DEVELOPER "Warnings for work on Tenon itself" ${PROJECT_IS_TOP_LEVEL})
option(TENON_TESTS "Build the tests (needs Check)" ${tests})
option(TENON_PROGRAMS "Build the examples and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TENON_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})

option(TENON_FUZZ "Build the fuzz targets with libFuzzer (needs clang)" OFF)
option(TENON_COVERAGE "Count which lines run" OFF)
set(TENON_SANITIZE "" CACHE STRING "Sanitizers, as after -fsanitize=: address,undefined or thread")
set(TENON_TEST_LAUNCHER "" CACHE STRING "What the test programs run under, as a list: valgrind;-q")
set(TENON_TEST_TIMEOUT 300 CACHE STRING "Seconds that one test program may take")
mark_as_advanced(TENON_FUZZ TENON_COVERAGE TENON_SANITIZE TENON_TEST_LAUNCHER TENON_TEST_TIMEOUT)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
