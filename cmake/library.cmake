# The library: every C file of its folders, compiled once for the shared and the static library. They are linked as
# tenon::tenon and tenon::tenon_static.

set(sources)
set(kernels)
foreach(folder IN LISTS TENON_FOLDERS)
  file(GLOB found CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*/*.c ${folder}/*/*/*.c)
  list(APPEND sources ${found})
endforeach()
list(FILTER sources EXCLUDE REGEX "/parallel/mpi/|/extras/(programs|tests)/") # mpi: a separate library
set(kernels ${sources})
list(FILTER sources EXCLUDE REGEX "\\.k\\.c$")
list(FILTER kernels INCLUDE REGEX "\\.k\\.c$")
set(all ${kernels})
foreach(isa avxvnni avx512vnni avx512bf16 amx sdot) # these have separate files: X.avx512bf16.k.c
  set(kernels_${isa} ${all})
  list(FILTER kernels_${isa} INCLUDE REGEX "\\.${isa}\\.k\\.c$")
  list(REMOVE_ITEM kernels ${kernels_${isa}})
endforeach()

set(kernels_avx512 ${kernels}) # it shares the products with 4-bit weights of AVX2
list(FILTER kernels_avx512 EXCLUDE REGEX "/q4\\.k\\.c$")
set(kernels_exact ${kernels}) # only the kernels with multiply-adds of f32
list(FILTER kernels_exact INCLUDE REGEX "/(attention|f16|gemm|q8|table)\\.k\\.c$")

# ---- dependencies of the objects ----

add_library(tenon_needs INTERFACE)
target_link_libraries(tenon_needs INTERFACE Threads::Threads)
set(data_names)
set(png_names)
if(TENON_DATA)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
  target_link_libraries(tenon_needs INTERFACE PkgConfig::UTF8PROC)
  set(data_names utf8proc)
endif()
if(TENON_EXTRAS AND TENON_PNG STREQUAL "ON")
  pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng zlib)
elseif(TENON_EXTRAS AND TENON_PNG)
  pkg_check_modules(PNG QUIET IMPORTED_TARGET libpng zlib)
endif()
if(NOT TENON_EXTRAS)
  message(STATUS "PNG and gzip files: not supported (TENON_EXTRAS is OFF)")
elseif(TENON_PNG AND PNG_FOUND)
  message(STATUS "PNG and gzip files: supported, with libpng ${PNG_libpng_VERSION}")
  target_link_libraries(tenon_needs INTERFACE PkgConfig::PNG)
  set_source_files_properties(extras/images/png.c extras/images/gunzip.c PROPERTIES COMPILE_DEFINITIONS TN__PNG)
  set(png_names png z)
else()
  message(STATUS "PNG and gzip files: not supported (TENON_PNG is ${TENON_PNG}); install libpng-dev to support them")
endif()

# ---- kernels: X.k.c is compiled for each instruction set, with TN__ISA its name ----

set(isas)
set(isa_baseline)
set(isa_exact -DTN__EXACT -Os)
set(isa_avx2 -mavx2 -mfma -mf16c)
set(isa_avxvnni ${isa_avx2} -mavxvnni)
set(isa_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma)
set(isa_avx512vnni ${isa_avx512} -mavx512vnni)
set(isa_avx512bf16 ${isa_avx512} -mavx512bf16)
set(isa_amx ${isa_avx512bf16} -mamx-tile -mamx-bf16 -mamx-int8)
set(isa_sdot -DTN__SDOT -march=armv8.2-a+dotprod)
if(CMAKE_C_COMPILER_ID MATCHES Clang) # zig's knows no -march
  set(isa_sdot -DTN__SDOT -mcpu=generic+dotprod)
endif()
if(WIN32) # Tenon cannot request the registers there
  list(REMOVE_ITEM TENON_ISAS amx)
endif()
set(possible ${TENON_ISAS})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(REMOVE_ITEM possible sdot)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  list(FILTER possible INCLUDE REGEX "^sdot$")
else()
  set(possible)
endif()
foreach(isa IN LISTS possible)
  string(JOIN " " flags ${isa_${isa}})
  check_c_compiler_flag("${flags}" TENON_HAS_${isa})
  if(TENON_HAS_${isa})
    list(APPEND isas ${isa})
    string(TOUPPER ${isa} upper)
    target_compile_definitions(tenon_needs INTERFACE TN__HAVE_${upper})
  endif()
endforeach()

# Two classes of optimisation: kernels and what has loops over elements have the level of the build, -O3 in a release;
# the rest, which is text processing, files, modules and models, is compiled for size.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  foreach(folder core/files nn data models extras)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    list(FILTER found EXCLUDE REGEX "/(images|vectors|generate)/[^/]*$|/lsh_[^/]*$") # these have loops, too
    set_source_files_properties(${found} PROPERTIES COMPILE_OPTIONS -Os)
  endforeach()
endif()

# With sanitizers, what the tests spend little time in is not optimised: it then compiles in half the time, and no
# access is optimised away.
if(TENON_FUZZ)
  set(busy "core/(base|files|products|skeletons|tensor)|autograd|optim|extras/vectors")
  string(APPEND busy "|data/(metrics|text|tokenizer/(encode|train))")
  foreach(file IN LISTS sources)
    set(options ${TENON_FUZZ_LEVEL})
    if(file MATCHES "/(${busy})/")
      set(options -O1)
    endif()
    if(file MATCHES "/(core/base|core/files|data|models|extras|nn/base|optim/checkpoint)") # it reads files or options
      list(APPEND options -fsanitize=fuzzer-no-link) # the fuzzer follows its branches
    endif()
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
  endforeach()
elseif(TENON_SANITIZE)
  foreach(folder nn optim models parallel data core/files extras)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    set_source_files_properties(${found} PROPERTIES COMPILE_OPTIONS -O0)
  endforeach()
endif()

add_library(tenon_objects OBJECT ${sources})
set(objects tenon_objects)
foreach(isa baseline ${isas})
  set(files ${kernels})
  if(DEFINED kernels_${isa})
    set(files ${kernels_${isa}})
  endif()
  if(files)
    add_library(tenon_kernels_${isa} OBJECT ${files})
    target_compile_definitions(tenon_kernels_${isa} PRIVATE TN__ISA=${isa})
    target_compile_options(tenon_kernels_${isa} PRIVATE ${isa_${isa}})
    if(CMAKE_BUILD_TYPE STREQUAL "Release") # no kernel calls a user's function, so no exception passes through it
      target_compile_options(tenon_kernels_${isa} PRIVATE -fno-exceptions -fno-asynchronous-unwind-tables)
    endif()
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND isa STREQUAL "baseline" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86|AMD64")
      target_compile_options(tenon_kernels_baseline PRIVATE -O2) # for CPUs made before 2013: 52 KB less
    endif()
    list(APPEND objects tenon_kernels_${isa})
  endif()
endforeach()
foreach(target IN LISTS objects)
  tenon_own(${target})
  if(TENON_SANITIZE) # see tenon_static
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET default)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT target MATCHES "kernels") # half of the time of -O1
      target_compile_options(${target} PRIVATE -Og)
    endif()
  endif()
  target_link_libraries(${target} PRIVATE tenon_needs)
  # clang needs up to a minute per file for UndefinedBehaviorSanitizer in optimised kernels. The kernels of the baseline
  # have it, not optimised; the others, from the same sources, have AddressSanitizer. stage.sanitize: both in all.
  if(TENON_SANITIZE AND NOT TENON_TESTS AND target MATCHES "kernels") # programs, which train; unit tests check these
    target_compile_options(${target} PRIVATE -O3 -fno-sanitize=all)
  elseif(TENON_FUZZ AND target MATCHES "kernels_exact")
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
  elseif(TENON_FUZZ AND target MATCHES "kernels_baseline")
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=address)
  elseif(TENON_FUZZ AND target MATCHES "kernels")
    target_compile_options(${target} PRIVATE -O1 -fno-sanitize=undefined,float-cast-overflow)
  endif()
endforeach()

# ---- the shared and the static library ----

if(WIN32) # a DLL exports what is declared with TN_API
  foreach(target IN LISTS objects)
    target_compile_definitions(${target} PRIVATE TN__EXPORTS)
  endforeach()
endif()
list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
add_library(tenon SHARED ${objects})
set_target_properties(tenon PROPERTIES EXCLUDE_FROM_ALL "${TENON_FUZZ}")
set(kind STATIC)
if(TENON_SANITIZE) # shared: 200 tests with a copy each would take 20 MB and 0.3 s each
  set(kind SHARED)
endif()
add_library(tenon_static ${kind} ${objects})
add_library(tenon::tenon ALIAS tenon)
add_library(tenon::tenon_static ALIAS tenon_static)
set_target_properties(tenon tenon_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME tenon)
if(kind STREQUAL "SHARED")
  set_target_properties(tenon_static PROPERTIES OUTPUT_NAME tenon_tests)
  target_link_options(tenon_static PRIVATE ${TENON_LINK})
endif()
# Before 1.0, a minor version may change the ABI: libtenon.so.0.2. docs/adr/0056
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(tenon PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
target_link_options(tenon PRIVATE ${TENON_LINK})
# A program's dlclose() must not unload the library: threads that it started still wait in it.
check_linker_flag(C "-Wl,-z,nodelete" TENON_HAS_Z_NODELETE)
if(TENON_HAS_Z_NODELETE)
  target_link_options(tenon PRIVATE "-Wl,-z,nodelete")
endif()
check_linker_flag(C "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tenon.map" TENON_HAS_VERSION_SCRIPT)
if(TENON_HAS_VERSION_SCRIPT)
  target_link_options(tenon PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tenon.map")
  set_target_properties(tenon PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tenon.map)
endif()
target_link_libraries(tenon PRIVATE $<BUILD_INTERFACE:tenon_needs> m)
# A program that links the static library also links the dependencies: by name, because a path of a
# shared library could not be linked with -static.
add_library(tenon_links INTERFACE)
target_link_directories(tenon_links INTERFACE ${UTF8PROC_LIBRARY_DIRS} ${PNG_LIBRARY_DIRS})
target_link_libraries(tenon_links INTERFACE Threads::Threads ${png_names} ${data_names})
target_link_libraries(tenon_static PRIVATE $<BUILD_INTERFACE:tenon_links>
  INTERFACE m "$<INSTALL_INTERFACE:Threads::Threads;${png_names};${data_names}>")

# Users include <tenon/...>, both from this build and from an installed Tenon.
foreach(header IN LISTS TENON_HEADERS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/tenon/${header}
       CONTENT "#include \"${PROJECT_SOURCE_DIR}/${header}\"\n")
endforeach()
foreach(target tenon tenon_static)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# ---- declarations for `import tenon` from this checkout; the wheel's build makes them, too ----

find_package(Python3 QUIET COMPONENTS Interpreter)
if(PROJECT_IS_TOP_LEVEL AND Python3_FOUND)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/python.stamp)
  file(GLOB python CONFIGURE_DEPENDS python/*.py python/tenon/*.py)
  list(FILTER python EXCLUDE REGEX "_declarations\\.py$")
  add_custom_command(OUTPUT ${stamp} DEPENDS ${TENON_HEADERS} ${python} VERBATIM
                     COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/declarations.py
                     COMMAND ${CMAKE_COMMAND} -E touch ${stamp})
  add_custom_target(tenon_python ALL DEPENDS ${stamp})
endif()
