# Toolchain for other systems with `zig cc` (pip install ziglang), which has their headers and libraries.
# TENON_NEEDS: see windows.cmake. TENON_ZIG_TARGET: aarch64-macos, x86_64-macos, x86_64-windows-gnu, x86_64-freebsd, ...
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENON_ZIG TENON_ZIG_TARGET TENON_NEEDS)
set(ENV{PKG_CONFIG_LIBDIR} ${TENON_NEEDS}/lib/pkgconfig)
set(CMAKE_SYSTEM_NAME Linux)
if(TENON_ZIG_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_OSX_SYSROOT "")
elseif(TENON_ZIG_TARGET MATCHES "-windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(TENON_ZIG_TARGET MATCHES "-freebsd")
  set(CMAKE_SYSTEM_NAME FreeBSD)
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${TENON_ZIG_TARGET}")
if(NOT TENON_ZIG) # `python3 -m ziglang` starts it, too, and takes longer than many a file
  execute_process(COMMAND python3 -c "import os, ziglang; print(os.path.dirname(ziglang.__file__), end='/zig')"
                  OUTPUT_VARIABLE TENON_ZIG COMMAND_ERROR_IS_FATAL ANY)
endif()
set(CMAKE_C_COMPILER ${TENON_ZIG} cc -target ${TENON_ZIG_TARGET})
set(CMAKE_C_FLAGS_INIT -fno-sanitize=undefined) # its default without optimisation
set(CMAKE_C_ARCHIVE_CREATE "${TENON_ZIG} ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_C_ARCHIVE_APPEND "${TENON_ZIG} ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "${TENON_ZIG} ranlib <TARGET>")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
