# The flags of Tenon's own code. They do not apply to a user's program: no warning flags, no -march=native, and never
# -ffast-math, which would switch off denormals for the whole process.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
find_package(Threads REQUIRED)

# Sets `out` to the list of the given flags that the compiler supports.
function(tenon_known_flags out)
  set(known)
  foreach(flag IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "TENON_HAS${flag}" has)
    check_c_compiler_flag("-Werror ${flag}" ${has})
    if(${has})
      list(APPEND known ${flag})
    endif()
  endforeach()
  set(${out} ${known} PARENT_SCOPE)
endfunction()

# Results are guaranteed to the bit: the compiler must not contract a product and a sum to an fma.
set(TENON_COMPILE -fno-math-errno -ffp-contract=off)
tenon_known_flags(more -fno-semantic-interposition -ffunction-sections -fdata-sections)
list(APPEND TENON_COMPILE ${more})
# -fexceptions: C++ exceptions of callbacks pass through (autograd/tape/unwind.h). musl-gcc cannot link it: the unwinder
# of its gcc needs glibc.
set(CMAKE_REQUIRED_FLAGS -fexceptions)
check_c_source_compiles("
  static void end(int *p) { *p = 0; }
  void (*volatile callback)(void);
  int main(void)
  {
      int x __attribute__((cleanup(end))) = 0;
      if (callback) callback();
      return x;
  }" TENON_HAS_EXCEPTIONS)
unset(CMAKE_REQUIRED_FLAGS)
if(TENON_HAS_EXCEPTIONS)
  list(APPEND TENON_COMPILE -fexceptions)
else()
  message(STATUS "C++ exceptions through callbacks: not supported by this compiler and C library")
endif()
if(WIN32) # sizes and positions of 64 bits, printf as C11 has it, the calls of Windows 10
  list(APPEND TENON_COMPILE -D_FILE_OFFSET_BITS=64 -D__USE_MINGW_ANSI_STDIO=1 -D_WIN32_WINNT=0x0a00)
endif()
set(TENON_LINK)
check_linker_flag(C -Wl,--gc-sections TENON_HAS_GC_SECTIONS) # removes mainly the rows of test data
if(TENON_HAS_GC_SECTIONS)
  list(APPEND TENON_LINK -Wl,--gc-sections)
endif()

if(TENON_DEVELOPER)
  list(APPEND TENON_COMPILE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -Wno-overlength-strings)
  if(CMAKE_C_COMPILER_ID MATCHES Clang AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 15)
    list(APPEND TENON_COMPILE -Wno-enum-float-conversion) # integer constants are enumerators here; 14 does not warn
  endif()
  if(WIN32) # isfinite(x) of its headers has the conversions of all types
    list(APPEND TENON_COMPILE -Wno-float-conversion)
  endif()
endif()

if(TENON_SANITIZE)
  list(APPEND TENON_COMPILE -fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<IF:$<BOOL:${TENON_FUZZ}>,${TENON_FUZZ_LEVEL},-O1>)
  list(APPEND TENON_LINK -fsanitize=${TENON_SANITIZE})
  # else each use of a thread's variable is a call: a sixth of the tests' time
  list(APPEND TENON_COMPILE -ftls-model=initial-exec)
  if(TENON_SANITIZE MATCHES undefined)
    list(APPEND TENON_COMPILE -fsanitize=float-cast-overflow)
  endif()
elseif(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$")
  # gcc clears and copies structs by "rep stos" and "rep movs", which take tens of cycles to start: a tenth of an op
  set(in_vectors vector_loop:512:noalign,libcall:-1:noalign)
  tenon_known_flags(inline -mmemset-strategy=${in_vectors} -mmemcpy-strategy=${in_vectors})
  list(APPEND TENON_COMPILE ${inline})
  set(clash -fstack-clash-protection)
  if(WIN32) # its stacks are probed anyway, and gcc 12 ends with an internal error
    set(clash)
  endif()
  tenon_known_flags(hard -U_FORTIFY_SOURCE -fstack-protector-strong ${clash} -fcf-protection)
  list(APPEND TENON_COMPILE ${hard})
  check_c_compiler_flag("-Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3" TENON_HAS_FORTIFY_3)
  list(APPEND TENON_COMPILE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${TENON_HAS_FORTIFY_3}>,3,2>)
  # pack-relative-relocs: relocations take 4 KB instead of 95; it needs glibc 2.36, or musl 1.2.4
  foreach(flag relro now noexecstack defs pack-relative-relocs)
    check_linker_flag(C "-Wl,-z,${flag}" TENON_HAS_Z_${flag})
    if(TENON_HAS_Z_${flag})
      list(APPEND TENON_LINK "-Wl,-z,${flag}")
    endif()
  endforeach()
endif()

if(NOT TENON_CACHE)
  list(APPEND TENON_COMPILE -DTENON_CACHE=0)
endif()

if(TENON_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TENON_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang, or --preset fuzz")
  endif()
endif()

if(TENON_COVERAGE)
  list(APPEND TENON_COMPILE --coverage -fprofile-update=atomic -Og)
  list(APPEND TENON_LINK --coverage)
endif()

# Applies the properties and flags of Tenon's own code to a target.
function(tenon_own target)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE ${TENON_COMPILE})
  target_link_options(${target} PRIVATE ${TENON_LINK})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
