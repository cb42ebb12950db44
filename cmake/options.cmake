# The options of a build. A project that adds Tenon as a subdirectory gets only the library.
include(GNUInstallDirs)

set(TENON_MPI AUTO CACHE STRING "The library tenon::mpi for several processes: AUTO (if MPI is installed), ON or OFF")
set_property(CACHE TENON_MPI PROPERTY STRINGS AUTO ON OFF)

set(TENON_PNG AUTO CACHE STRING "PNG images and IDX files in gzip, with libpng and zlib: AUTO (if found), ON or OFF")
set_property(CACHE TENON_PNG PROPERTY STRINGS AUTO ON OFF)

# A smaller library: the folders models, parallel and data can be left out, in this order, and kernels of instruction
# sets. A program that uses a function of such a folder does not link. Without data, utf8proc is not needed.
option(TENON_MODELS "Build models/: families of models, tn_fit, generation (needs parallel)" ON)
option(TENON_PARALLEL "Build parallel/: several ranks (needs data)" ON)
option(TENON_DATA "Build data/: texts, tokenizers, images, metrics (needs utf8proc)" ON)
set(TENON_ISAS "exact;avx2;avxvnni;avx512;avx512vnni;avx512bf16;amx" CACHE STRING
    "Instruction sets with kernels, if the compiler knows them; exact: the portable kernels with TENON_EXACT=1")
if(TENON_MODELS AND NOT TENON_PARALLEL)
  message(FATAL_ERROR "TENON_MODELS needs TENON_PARALLEL; switch it on, or both off")
endif()
if(TENON_PARALLEL AND NOT TENON_DATA)
  message(FATAL_ERROR "TENON_PARALLEL needs TENON_DATA; switch it on, or both off")
endif()
if(NOT TENON_MODELS)
  list(REMOVE_ITEM TENON_FOLDERS models)
endif()
if(NOT TENON_PARALLEL)
  list(REMOVE_ITEM TENON_FOLDERS parallel)
endif()
if(NOT TENON_DATA)
  list(REMOVE_ITEM TENON_FOLDERS data)
endif()
if(NOT TENON_MODELS AND (TENON_TESTS OR TENON_PROGRAMS))
  message(FATAL_ERROR "the tests and programs need the whole library; set TENON_TESTS and TENON_PROGRAMS to OFF")
endif()

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
set(TENON_OPENMP OFF)
if(TENON_TESTS OR TENON_PROGRAMS)
  find_package(OpenMP QUIET COMPONENTS C)
  set(TENON_OPENMP ${OpenMP_C_FOUND})
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
