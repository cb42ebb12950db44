# The library: every C file of its folders, compiled once for the shared and the static library. They are linked as
# tenon::tenon and tenon::tenon_static.

set(sources)
set(kernels)
foreach(folder IN LISTS TENON_FOLDERS)
  file(GLOB found CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*/*.c ${folder}/*/*/*.c)
  list(APPEND sources ${found})
endforeach()
list(FILTER sources EXCLUDE REGEX "/parallel/mpi/") # a separate library: mpi.cmake
set(kernels ${sources})
list(FILTER sources EXCLUDE REGEX "\\.k\\.c$")
list(FILTER kernels INCLUDE REGEX "\\.k\\.c$")
set(all ${kernels})
foreach(isa avxvnni avx512vnni avx512bf16 amx) # these have separate files: X.avx512bf16.k.c
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
if(TENON_DATA AND TENON_PNG STREQUAL "ON")
  pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng zlib)
elseif(TENON_DATA AND TENON_PNG)
  pkg_check_modules(PNG QUIET IMPORTED_TARGET libpng zlib)
endif()
if(NOT TENON_DATA)
  message(STATUS "PNG and gzip files: not supported (TENON_DATA is OFF)")
elseif(TENON_PNG AND PNG_FOUND)
  message(STATUS "PNG and gzip files: supported, with libpng ${PNG_libpng_VERSION}")
  target_link_libraries(tenon_needs INTERFACE PkgConfig::PNG)
  set_source_files_properties(data/images/png.c data/images/gunzip.c PROPERTIES COMPILE_DEFINITIONS TN__PNG)
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
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  foreach(isa IN LISTS TENON_ISAS)
    string(JOIN " " flags ${isa_${isa}})
    check_c_compiler_flag("${flags}" TENON_HAS_${isa})
    if(TENON_HAS_${isa})
      list(APPEND isas ${isa})
      string(TOUPPER ${isa} upper)
      target_compile_definitions(tenon_needs INTERFACE TN__HAVE_${upper})
    endif()
  endforeach()
endif()

# Code that is not arithmetic is compiled for size: these folders contain text processing, files, modules and models ...
set(TENON_FOR_SIZE core/files nn ${TENON_FOLDERS})
list(FILTER TENON_FOR_SIZE INCLUDE REGEX "^(core/files|nn|data|models|extras)$")
list(REMOVE_DUPLICATES TENON_FOR_SIZE)
set(TENON_FILES_FOR_SIZE autograd/ops/adaptive_pool.c autograd/ops/atan2.c autograd/ops/attention_at.c
  autograd/ops/bce_loss.c autograd/ops/bincount.c autograd/ops/conv2d_input_grad.c
  autograd/ops/conv2d_weight_grad.c autograd/ops/conv_transpose.c autograd/ops/einsum.c autograd/ops/flip.c
  autograd/ops/grouped_linear.c autograd/ops/huber_loss.c autograd/ops/index_copy.c
  autograd/ops/index_put.c autograd/ops/interpolate.c autograd/ops/isinf.c
  autograd/ops/logaddexp.c autograd/ops/lsh_attention.c autograd/ops/margin_losses.c autograd/ops/masked_select.c
  autograd/ops/masked_spread.c autograd/ops/multinomial.c autograd/ops/nonzero.c autograd/ops/one_hot.c
  autograd/ops/outer.c autograd/ops/prelu.c autograd/ops/roll.c
  autograd/ops/route.c autograd/ops/segment_reduce.c autograd/ops/strided.c
  autograd/ops/trigonometry.c autograd/ops/tril.c autograd/ops/unique.c
  autograd/ops/weight_norm.c autograd/rooms/attention_shapes.c autograd/rooms/einsum_equation.c
  autograd/rooms/losses.c autograd/rooms/norms.c autograd/rooms/op_map.c autograd/rooms/recurrent.c
  autograd/rooms/reductions.c autograd/rooms/rope_angles.c autograd/rooms/sequences.c autograd/rooms/windows.c
  autograd/tape/budget.c autograd/tape/checkpoint.c autograd/tape/history.c autograd/tape/replaced.c
  autograd/tape/replay.c autograd/tape/reversible.c
  autograd/tools/gradcheck.c autograd/tools/graphviz.c autograd/tools/jacobian.c autograd/tools/profile_show.c
  core/system/cpus.c core/base/decimal.c core/kernels/q4.k.c core/kernels/word_pairs.k.c core/tensor/create.c
  core/tensor/info.c core/tensor/print.c core/tensor/transfer.c core/tensor/view.c optim/accumulate.c optim/chained.c
  optim/checkpoint.c optim/checkpoint_restore.c optim/checkpoint_write.c optim/clip.c optim/groups.c optim/lbfgs.c
  optim/lr_find.c optim/lr_functions.c optim/muon.c optim/optimizer.c optim/plateau.c optim/schedule.c optim/step.c
  optim/weight_check.c optim/zero1_step.c parallel/replica.c parallel/world.c)
# ... these with -O2, because they call the kernels ...
set(TENON_FOR_O2 autograd/tape autograd/tools core/base core/products)
# ... and these, with loops of their own, with -O2 and "dynamic", which vectorizes loops of any length, like -O3. (-Os
# would make them up to seven times as slow; -O3 only adds copies of loops for special cases: 100 KB.)
set(TENON_FOR_LOOPS autograd/ops autograd/rooms core/kernels core/skeletons core/tensor optim)
# Files with inner loops in these folders have -O3.
set(TENON_FILES_FOR_SPEED core/products/convolve.c core/products/q8.c data/images/image_batches.c
  data/images/processor.c data/images/raster.c data/images/resize.c data/vectors/lexicon.c data/vectors/shard.c
  data/vectors/windows.c models/generate/sampling.c)

# Compiles the C files of a folder with the given level of optimisation, except those in TENON_FILES_FOR_SPEED.
function(tenon_optimise folder level)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  list(FILTER found EXCLUDE REGEX "\\.k\\.c$")
  foreach(file IN LISTS TENON_FILES_FOR_SPEED)
    list(REMOVE_ITEM found ${PROJECT_SOURCE_DIR}/${file})
  endforeach()
  set_source_files_properties(${found} PROPERTIES COMPILE_OPTIONS "${level}")
endfunction()

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  foreach(file IN LISTS TENON_FILES_FOR_SIZE TENON_FILES_FOR_SPEED)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${file})
      message(FATAL_ERROR "${file} does not exist; update the lists of files for size and speed")
    endif()
  endforeach()
  # no copies of a vector loop for its last elements with half the lanes, no alignment of branches: 30 KB
  tenon_known_flags(short --param=vect-epilogues-nomask=0 -fno-align-jumps -fno-align-labels)
  foreach(folder IN LISTS TENON_FOR_O2)
    tenon_optimise(${folder} "-O2;${short}")
  endforeach()
  tenon_known_flags(dynamic -fvect-cost-model=dynamic)
  list(APPEND dynamic ${short})
  foreach(folder IN LISTS TENON_FOR_LOOPS)
    tenon_optimise(${folder} "-O2;${dynamic}")
  endforeach()
  foreach(folder IN LISTS TENON_FOR_SIZE)
    tenon_optimise(${folder} -Os)
  endforeach()
  set_source_files_properties(${TENON_FILES_FOR_SIZE} PROPERTIES COMPILE_OPTIONS -Os)
  set_source_files_properties(core/products/attention.c core/kernels/rows.k.c core/kernels/pack.k.c PROPERTIES
                              COMPILE_OPTIONS "-O2;${dynamic}")
  # only the loops over single elements of an epilogue would be split for each case: 30 KB
  tenon_known_flags(once -fno-unswitch-loops -fno-version-loops-for-strides)
  set_source_files_properties(core/kernels/gemm.k.c PROPERTIES COMPILE_OPTIONS "${once}")
endif()

# With sanitizers, what the tests spend little time in is not optimised: it then compiles in half the time, and no
# access is optimised away.
if(TENON_FUZZ)
  set(busy "core/(base|products|skeletons|tensor)|autograd|optim|data/(text|tokenizer/(encode|train)|vectors)")
  foreach(file IN LISTS sources)
    set(options ${TENON_FUZZ_LEVEL})
    if(file MATCHES "/(${busy})/")
      set(options -O1)
    endif()
    if(file MATCHES "/(core/base|core/files|data|models|nn/base|optim/checkpoint)") # it reads files or options
      list(APPEND options -fsanitize=fuzzer-no-link) # the fuzzer follows its branches
    endif()
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
  endforeach()
elseif(TENON_SANITIZE)
  foreach(folder nn optim models parallel data core/files)
    tenon_optimise(${folder} -O0)
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
  if(TENON_FUZZ AND target MATCHES "kernels_exact")
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
