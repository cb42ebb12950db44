/* silent.h — for fuzz targets of functions that print: redirects standard output and standard error to nowhere, and
 * standard input to bytes in memory. The fuzzer itself keeps the streams that it opened before. */
#ifndef TENON_TESTS_FUZZ_SILENT_H
#define TENON_TESTS_FUZZ_SILENT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* data: NULL, or the content of standard input. */
#ifdef _WIN32 /* stdin is not a variable there: other files under the same descriptors */
#include <io.h>
#include <string.h>

typedef struct {
    int held[3];
} streams;
static streams silent_begin(const uint8_t *data, size_t size)
{
    streams were;
    char    path[800];
    snprintf(path, sizeof path, "%s/input-XXXXXX", tn__sys_temporary());
    const int other[3] = {data ? mkstemp(path) : _open("nul", _O_RDONLY), _open("nul", _O_WRONLY),
                          _open("nul", _O_WRONLY)};
    if (data && (_write(other[0], data, (unsigned)size) != (int)size || _lseek(other[0], 0, SEEK_SET))) abort();
    fflush(stdout), fflush(stderr);
    for (int i = 0; i < 3; i++)
        if ((were.held[i] = _dup(i)) < 0 || _dup2(other[i], i) || _close(other[i])) abort();
    if (data) tn__sys_unlink(path);
    rewind(stdin);
    return were;
}
static void silent_end(streams were)
{
    fflush(stdout), fflush(stderr);
    for (int i = 0; i < 3; i++)
        if (_dup2(were.held[i], i) || _close(were.held[i])) abort();
    clearerr(stdin);
}
#else
typedef struct {
    FILE *in, *out, *err;
} streams;
static streams silent_begin(const uint8_t *data, size_t size)
{
    static FILE  *nowhere;
    const streams were = {stdin, stdout, stderr};
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) abort();
    FILE *in = !data ? stdin : size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
    if (!in) abort();
    stdin = in, stdout = stderr = nowhere;
    return were;
}
static void silent_end(streams were)
{
    if (stdin != were.in) fclose(stdin);
    stdin = were.in, stdout = were.out, stderr = were.err;
}
#endif

#endif
