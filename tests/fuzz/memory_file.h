/* memory_file.h — a file system of two files for fuzz targets of functions that open files by name: "in" has the bytes
 * of the fuzzer, "out" stores written bytes, up to a bound; and one temporary file. Nothing touches the disk. */
#ifndef TENON_TESTS_FUZZ_MEMORY_FILE_H
#define TENON_TESTS_FUZZ_MEMORY_FILE_H

#include "core/core.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MEMORY_IN = 1000, MEMORY_OUT, MEMORY_NEW, MEMORY_FOLDER, MEMORY_MOST = 1 << 22 };
static struct {
    const uint8_t *in;
    size_t         in_bytes, out_bytes, new_bytes;
    uint8_t        out[MEMORY_MOST], new[MEMORY_MOST];
    bool           out_is_there;
} memory;

static int memory_open(void *user, const char *path, int flags, unsigned mode)
{
    (void)user, (void)mode;
    if (flags & O_DIRECTORY) return MEMORY_FOLDER;
    if (!strcmp(path, "in")) return MEMORY_IN;
    if (flags & O_EXCL) return memory.new_bytes = 0, MEMORY_NEW;
    if (flags & O_CREAT) memory.out_is_there = true;
    return memory.out_is_there ? MEMORY_OUT : -ENOENT;
}
static int memory_fstat(void *user, int fd, struct stat *st)
{
    (void)user;
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFREG | 0600;
    st->st_size = (off_t)(fd == MEMORY_IN ? memory.in_bytes : memory.out_bytes);
    return 0;
}
static int memory_lstat(void *user, const char *path, struct stat *st)
{
    (void)path;
    return memory.out_is_there ? memory_fstat(user, MEMORY_OUT, st) : -ENOENT;
}
static int64_t memory_pread(void *user, int fd, void *to, size_t bytes, int64_t at)
{
    (void)user;
    const uint8_t *from = fd == MEMORY_IN ? memory.in : memory.out;
    size_t         size = fd == MEMORY_IN ? memory.in_bytes : memory.out_bytes;
    if ((size_t)at >= size) return 0;
    if (bytes > size - (size_t)at) bytes = size - (size_t)at;
    memcpy(to, from + at, bytes);
    return (int64_t)bytes;
}
static int64_t memory_write(void *user, int fd, const void *from, size_t bytes)
{
    (void)user;
    uint8_t *to = fd == MEMORY_NEW ? memory.new : memory.out;
    size_t  *size = fd == MEMORY_NEW ? &memory.new_bytes : &memory.out_bytes;
    if (bytes > MEMORY_MOST - *size) return -ENOSPC;
    memcpy(to + *size, from, bytes);
    *size += bytes;
    return (int64_t)bytes;
}
static int memory_reserve(void *user, int fd, int64_t bytes)
{
    (void)user, (void)fd;
    return bytes > MEMORY_MOST ? -ENOSPC : 0;
}
static int memory_done(void *user, int fd)
{
    (void)user, (void)fd;
    return 0;
}
static int memory_rename(void *user, const char *from, const char *to)
{
    (void)user, (void)from, (void)to;
    memcpy(memory.out, memory.new, memory.out_bytes = memory.new_bytes);
    memory.out_is_there = true;
    return 0;
}
static int memory_unlink(void *user, const char *path)
{
    (void)user, (void)path; /* the replaced one, no longer used */
    return 0;
}

static void memory_files(const uint8_t *data, size_t size)
{
    static const tn_io io = {memory_open, memory_fstat, memory_lstat,  memory_pread,  memory_write, memory_reserve,
                             memory_done, memory_done,  memory_rename, memory_unlink, NULL};
    memory.in = data, memory.in_bytes = size, memory.out_bytes = 0, memory.out_is_there = false;
    if (tn_set_io(&io) != TN_OK) abort();
    tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
}

#endif
