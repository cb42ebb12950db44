# Toolchain for Windows on x86-64 with MinGW-w64 (Debian: gcc-mingw-w64-x86-64-posix). Programs need no DLL that Windows
# lacks. TENON_NEEDS: a folder with utf8proc, and with Check for the tests; packaging/needs makes it.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENON_NEEDS)
set(ENV{PKG_CONFIG_LIBDIR} ${TENON_NEEDS}/lib/pkgconfig)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# -fstack-protector: libssp, for the checks of stacks and of _FORTIFY_SOURCE
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -fstack-protector-strong")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static -fstack-protector-strong")
