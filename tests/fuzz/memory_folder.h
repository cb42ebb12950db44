/* memory_folder.h — folders of files in memory, for fuzz targets of functions that read and write several files by
 * name.
 *
 * The fuzzer's bytes are cut at lines "@NAME": the bytes after such a line, up to the next, are the file folder/NAME.
 * Written files are added, up to a bound. Nothing touches the disk. */
#ifndef TENON_TESTS_FUZZ_MEMORY_FOLDER_H
#define TENON_TESTS_FUZZ_MEMORY_FOLDER_H

#include "core/core.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDER_FILES = 32, FOLDER_NAME = 200, FOLDER_MOST = 1 << 20, FOLDER_FD = 1000, FOLDER_ITSELF = 2000 };
static struct {
    char     name[FOLDER_NAME]; /* "": none */
    uint8_t *bytes;
    size_t   size;
} folder_file[FOLDER_FILES];

static int folder_find(const char *name)
{
    for (int i = 0; i < FOLDER_FILES; i++)
        if (*name && !strcmp(folder_file[i].name, name)) return i;
    return -1;
}
static int folder_make(const char *name)
{
    for (int i = 0; i < FOLDER_FILES && strlen(name) < FOLDER_NAME; i++) {
        if (*folder_file[i].name) continue;
        memcpy(folder_file[i].name, name, strlen(name) + 1);
        return folder_file[i].size = 0, i;
    }
    return -ENOSPC;
}
static void folder_remove(int i)
{
    free(folder_file[i].bytes);
    folder_file[i].bytes = NULL, folder_file[i].size = 0, *folder_file[i].name = 0;
}
static bool folder_add(int i, const void *from, size_t bytes)
{
    if (i < 0 || bytes > FOLDER_MOST - folder_file[i].size) return false;
    uint8_t *to = realloc(folder_file[i].bytes, folder_file[i].size + bytes + 1);
    if (!to) abort();
    if (bytes) memcpy(to + folder_file[i].size, from, bytes);
    folder_file[i].bytes = to, folder_file[i].size += bytes;
    return true;
}

static int folder_open(void *user, const char *path, int flags, unsigned mode)
{
    (void)user, (void)mode;
    if (flags & O_DIRECTORY) return FOLDER_ITSELF;
    int i = folder_find(path);
    if (i >= 0 && (flags & O_EXCL)) return -EEXIST;
    if (i < 0 && !(flags & O_CREAT)) return -ENOENT;
    if (i < 0) i = folder_make(path);
    return i < 0 ? i : FOLDER_FD + i;
}
static int folder_fstat(void *user, int fd, struct stat *st)
{
    (void)user;
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFREG | 0600;
    st->st_size = (off_t)folder_file[fd - FOLDER_FD].size;
    return 0;
}
static int folder_lstat(void *user, const char *path, struct stat *st)
{
    const int i = folder_find(path);
    return i < 0 ? -ENOENT : folder_fstat(user, FOLDER_FD + i, st);
}
static int64_t folder_pread(void *user, int fd, void *to, size_t bytes, int64_t at)
{
    (void)user;
    const size_t size = folder_file[fd - FOLDER_FD].size;
    if ((size_t)at >= size) return 0;
    if (bytes > size - (size_t)at) bytes = size - (size_t)at;
    memcpy(to, folder_file[fd - FOLDER_FD].bytes + at, bytes);
    return (int64_t)bytes;
}
static int64_t folder_write(void *user, int fd, const void *from, size_t bytes)
{
    (void)user;
    return folder_add(fd - FOLDER_FD, from, bytes) ? (int64_t)bytes : -ENOSPC;
}
static int folder_reserve(void *user, int fd, int64_t bytes)
{
    (void)user, (void)fd;
    return bytes > FOLDER_MOST ? -ENOSPC : 0;
}
static int folder_done(void *user, int fd)
{
    (void)user, (void)fd;
    return 0;
}
static int folder_rename(void *user, const char *from, const char *to)
{
    (void)user;
    const int i = folder_find(from), old = folder_find(to);
    if (i < 0 || strlen(to) >= FOLDER_NAME) return -ENOENT;
    if (old >= 0) folder_remove(old);
    memcpy(folder_file[i].name, to, strlen(to) + 1);
    return 0;
}
static int folder_unlink(void *user, const char *path)
{
    (void)user;
    const int i = folder_find(path);
    if (i >= 0) folder_remove(i);
    return i >= 0 ? 0 : -ENOENT;
}

static void folder_begin(void)
{
    static const tn_io io = {folder_open, folder_fstat, folder_lstat,  folder_pread,  folder_write, folder_reserve,
                             folder_done, folder_done,  folder_rename, folder_unlink, NULL};
    if (tn_set_io(&io) != TN_OK) abort();
    const tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
}
static void folder_end(void)
{
    for (int i = 0; i < FOLDER_FILES; i++) folder_remove(i);
    tn_set_io(NULL);
}

/* Adds a file of these bytes, or replaces it. */
static void folder_put(const char *name, const void *data, size_t size)
{
    folder_unlink(NULL, name);
    folder_add(folder_make(name), data, size);
}

/* Adds the files that the bytes are cut into. */
static inline void folder_cut(const uint8_t *data, size_t size)
{
    char   name[FOLDER_NAME] = "";
    size_t begin = 0;
    for (size_t i = 0; i < size;) {
        const uint8_t *line = data + i, *end = memchr(line, '\n', size - i);
        const size_t   n = end ? (size_t)(end - line) : size - i;
        if (*line == '@' && n < 64) {
            if (*name) folder_put(name, data + begin, i > begin ? i - 1 - begin : 0);
            memcpy(name, "folder/", 7), memcpy(name + 7, line + 1, n - 1), name[7 + n - 1] = 0;
            begin = i + n + 1 < size ? i + n + 1 : size;
        }
        i += n + 1;
    }
    if (*name) folder_put(name, data + begin, size - begin);
}

#endif
