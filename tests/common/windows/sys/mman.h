/* mman.h — pages without access around the operands of kernels, on Windows: what the unit tests use of POSIX. */
#ifndef TENON_TESTS_COMMON_WINDOWS_SYS_MMAN_H
#define TENON_TESTS_COMMON_WINDOWS_SYS_MMAN_H

#include <stddef.h>

enum { PROT_NONE = 1, PROT_READ = 4, PROT_WRITE = 0, MAP_PRIVATE = 0, MAP_ANONYMOUS = 0 };
#define MAP_FAILED NULL
__declspec(dllimport) void *__stdcall VirtualAlloc(void *, size_t, unsigned long, unsigned long);
__declspec(dllimport) int __stdcall VirtualFree(void *, size_t, unsigned long);
__declspec(dllimport) int __stdcall VirtualProtect(void *, size_t, unsigned long, unsigned long *);
#define mmap(at, bytes, access, kind, fd, from) VirtualAlloc(at, bytes, 0x3000u | (kind), access)
static inline int munmap(void *at, size_t bytes) { return (void)bytes, !VirtualFree(at, 0, 0x8000); }
#define mprotect(at, bytes, access) (!VirtualProtect(at, bytes, access, &(unsigned long){0}))

#endif
