/* silent.h — for fuzz targets of functions that print: redirects standard output and standard error to nowhere, and
 * standard input to bytes in memory. The fuzzer itself keeps the streams that it opened before. */
#ifndef TENON_TESTS_FUZZ_SILENT_H
#define TENON_TESTS_FUZZ_SILENT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    FILE *in, *out, *err;
} streams;

/* data: NULL, or the content of standard input. */
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
