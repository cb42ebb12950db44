/* windows_files.c — files and folders on Windows, see system.h.
 *
 * A path becomes UTF-16; one of 240 and more characters becomes absolute, with the prefix that permits 32,767. Others
 * may rename and delete an open file, as on POSIX. */
#include "core/system/system.h"
#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <wchar.h>
#include <windows.h>

enum { LONG_PATH = 32768, LINK_MODE = 0xA000, MOST = 1 << 30 }; /* MOST: bytes in one call */

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* errno of the last error of Windows; returns -1. */
static int failed(void)
{
    static const struct {
        DWORD code;
        int   number;
    } known[] = {{ERROR_FILE_NOT_FOUND, ENOENT},      {ERROR_PATH_NOT_FOUND, ENOENT},
                 {ERROR_INVALID_DRIVE, ENOENT},       {ERROR_BAD_NETPATH, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},       {ERROR_SHARING_VIOLATION, EBUSY},
                 {ERROR_LOCK_VIOLATION, EAGAIN},      {ERROR_FILE_EXISTS, EEXIST},
                 {ERROR_ALREADY_EXISTS, EEXIST},      {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_HANDLE_DISK_FULL, ENOSPC},    {ERROR_DIRECTORY, ENOTDIR},
                 {ERROR_TOO_MANY_OPEN_FILES, EMFILE}, {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                 {ERROR_INVALID_HANDLE, EBADF},       {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
                 {ERROR_INVALID_NAME, ENOENT},        {ERROR_BROKEN_PIPE, EPIPE},
                 {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},    {ERROR_NOT_SAME_DEVICE, EXDEV},
                 {ERROR_WRITE_PROTECT, EROFS}};
    const DWORD code = GetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) errno = known[i].number;
    return -1;
}

/* The path in UTF-16, to be freed; NULL and errno. */
static wchar_t *wide(const char *path)
{
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t  *w = n > 0 ? malloc((size_t)n * sizeof *w) : NULL;
    if (!w) return errno = n > 0 ? ENOMEM : ENOENT, NULL;
    MultiByteToWideChar(CP_UTF8, 0, path, -1, w, n);
    if (n < 240 || !wcsncmp(w, L"\\\\?\\", 4)) return w;
    static const wchar_t prefix[] = L"\\\\?\\";
    wchar_t             *all = malloc(LONG_PATH * sizeof *all); /* absolute, with backslashes, without . and .. */
    const DWORD          full = all ? GetFullPathNameW(w, LONG_PATH - 4, all + 4, NULL) : 0;
    free(w);
    if (!full || full >= LONG_PATH - 4) return free(all), errno = ENAMETOOLONG, NULL;
    memcpy(all, prefix, sizeof prefix - sizeof *prefix);
    return all;
}

/* UTF-16 as UTF-8; false: it does not fit. */
bool tn__win_narrow(const wchar_t *w, char *to, size_t bytes)
{
    return WideCharToMultiByte(CP_UTF8, 0, w, -1, to, (int)bytes, NULL, NULL) > 0;
}

const char *tn__sys_last_slash(const char *path)
{
    const char *last = NULL;
    for (const char *p = path; *p; p++)
        if (*p == '/' || *p == '\\' || (*p == ':' && p == path + 1)) last = p;
    return last;
}

const char *tn__sys_temporary(void)
{
    static char folder[3 * MAX_PATH + 1];
    const char *set = getenv("TMPDIR");
    wchar_t     w[MAX_PATH + 1];
    if (set && *set) return set;
    if (!*folder && (!GetTempPathW(MAX_PATH + 1, w) || !tn__win_narrow(w, folder, sizeof folder))) return ".";
    const size_t n = strlen(folder);
    if (n && folder[n - 1] == '\\') folder[n - 1] = 0;
    return folder;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

int tn__win_open(const char *path, int flags, unsigned mode)
{
    const bool  writes = (flags & (O_WRONLY | O_RDWR)) != 0, reads = !(flags & O_WRONLY);
    const DWORD access = (reads ? GENERIC_READ : 0) | (writes ? GENERIC_WRITE : 0);
    const DWORD how = flags & O_EXCL    ? CREATE_NEW
                      : flags & O_TRUNC ? (flags & O_CREAT ? CREATE_ALWAYS : TRUNCATE_EXISTING)
                      : flags & O_CREAT ? OPEN_ALWAYS
                                        : OPEN_EXISTING;
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    wchar_t    *w = wide(path);
    if (!w) return -1;
    const DWORD there = GetFileAttributesW(w);
    const bool  folder = there != INVALID_FILE_ATTRIBUTES && there & FILE_ATTRIBUTE_DIRECTORY;
    HANDLE      h = INVALID_HANDLE_VALUE;
    if (folder && writes) SetLastError(ERROR_ACCESS_DENIED);
    else
        h = CreateFileW(w, access, share, NULL, how,
                        (mode & 0222 || !(flags & O_CREAT) ? FILE_ATTRIBUTE_NORMAL : FILE_ATTRIBUTE_READONLY) |
                            (folder ? FILE_FLAG_BACKUP_SEMANTICS : 0),
                        NULL);
    free(w);
    if (h == INVALID_HANDLE_VALUE) return failed();
    if (flags & TN__FOLDER && !folder) return CloseHandle(h), errno = ENOTDIR, -1;
    const int fd = _open_osfhandle((intptr_t)h, (flags & O_APPEND) | O_BINARY | O_NOINHERIT);
    if (fd < 0) CloseHandle(h);
    return fd;
}

static HANDLE of(int fd) { return (HANDLE)_get_osfhandle(fd); }

static int64_t seconds(FILETIME t)
{
    return ((int64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) / 10000000 - 11644473600;
}

static int status(HANDLE h, struct stat *st)
{
    BY_HANDLE_FILE_INFORMATION i;
    memset(st, 0, sizeof *st);
    if (GetFileType(h) != FILE_TYPE_DISK) return st->st_mode = S_IFCHR | 0666, 0;
    if (!GetFileInformationByHandle(h, &i)) return failed();
    const bool folder = i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY, fixed = i.dwFileAttributes & 1;
    st->st_mode = (unsigned short)((folder ? S_IFDIR | 0111 : S_IFREG) | (fixed ? 0444 : 0666));
    st->st_size = (off_t)((int64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow);
    st->st_mtime = seconds(i.ftLastWriteTime);
    st->st_dev = i.dwVolumeSerialNumber;
    const uint64_t index = (uint64_t)i.nFileIndexHigh << 32 | i.nFileIndexLow; /* st_ino has 16 bits: hashed */
    st->st_ino = (unsigned short)(index * 0x9e3779b97f4a7c15u >> 48);
    st->st_rdev = (unsigned)index;
    st->st_nlink = (short)i.nNumberOfLinks;
    return 0;
}

static int status_of(const char *path, struct stat *st, bool follow)
{
    wchar_t *w = wide(path);
    if (!w) return -1;
    const DWORD there = GetFileAttributesW(w);
    HANDLE      h = CreateFileW(w, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT), NULL);
    free(w);
    if (h == INVALID_HANDLE_VALUE) return failed();
    const int r = status(h, st);
    CloseHandle(h);
    if (!r && !follow && there != INVALID_FILE_ATTRIBUTES && there & FILE_ATTRIBUTE_REPARSE_POINT)
        st->st_mode = (unsigned short)(LINK_MODE | 0777);
    return r;
}
int tn__win_stat(const char *path, struct stat *st) { return status_of(path, st, true); }
int tn__win_lstat(const char *path, struct stat *st) { return status_of(path, st, false); }
int tn__win_fstat(int fd, struct stat *st) { return status(of(fd), st); }

static OVERLAPPED at_byte(int64_t at)
{
    OVERLAPPED o = {0};
    o.Offset = (DWORD)at, o.OffsetHigh = (DWORD)(at >> 32);
    return o;
}
int64_t tn__win_pread(int fd, void *to, size_t n, int64_t at)
{
    OVERLAPPED o = at_byte(at);
    DWORD      done = 0;
    if (ReadFile(of(fd), to, (DWORD)(n > MOST ? MOST : n), &done, &o)) return done;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : failed();
}
int64_t tn__win_pwrite(int fd, const void *from, size_t n, int64_t at)
{
    OVERLAPPED o = at_byte(at);
    DWORD      done = 0;
    return WriteFile(of(fd), from, (DWORD)(n > MOST ? MOST : n), &done, &o) ? (int64_t)done : failed();
}
int64_t tn__sys_write(int fd, const void *from, size_t n) { return write(fd, from, (unsigned)(n > MOST ? MOST : n)); }

int tn__win_fsync(int fd)
{
    if (FlushFileBuffers(of(fd))) return 0;
    if (GetLastError() == ERROR_ACCESS_DENIED) return errno = EINVAL, -1; /* a folder, or opened for reading */
    return failed();
}

int tn__sys_reserve(int fd, int64_t bytes)
{
    FILE_ALLOCATION_INFO i = {.AllocationSize.QuadPart = bytes};
    if (bytes > (int64_t)1 << 53) return errno = EFBIG, -1; /* NTFS has files of up to 8 PB */
    if (bytes <= 0 || SetFileInformationByHandle(of(fd), FileAllocationInfo, &i, sizeof i)) return 0;
    return GetLastError() == ERROR_DISK_FULL ? (errno = ENOSPC, -1) : (errno = EINVAL, -1);
}

void tn__sys_read_ahead(int fd, int64_t at, int64_t bytes) { (void)fd, (void)at, (void)bytes; }

/* Bytes far beyond the file are locked, so that others can read what is in it. A folder cannot be locked. */
bool tn__sys_lock(int fd)
{
    OVERLAPPED o = at_byte((int64_t)1 << 60);
    if (LockFileEx(of(fd), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o)) return true;
    const DWORD code = GetLastError();
    failed();
    if (code == ERROR_LOCK_VIOLATION || code == ERROR_IO_PENDING) errno = EWOULDBLOCK;
    return false;
}

/* Gives the file `to` another name, under which its readers keep it, renames `from`, and deletes the old file. */
static BOOL rename_past(const wchar_t *from, const wchar_t *to)
{
    const DWORD  there = GetFileAttributesW(to);
    const size_t n = wcslen(to) + 10;
    wchar_t     *aside = malloc(n * sizeof *aside);
    unsigned     x;
    BOOL         done = FALSE;
    if (aside && !(there & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_READONLY)) && tn__sys_random(&x, sizeof x)) {
        swprintf(aside, n, L"%ls.%08x", to, x);
        const BOOL moved = MoveFileExW(to, aside, 0);
        done = moved && MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH);
        if (done) DeleteFileW(aside);
        else if (moved) MoveFileExW(aside, to, 0);
    }
    free(aside);
    SetLastError(ERROR_ACCESS_DENIED); /* if it failed */
    return done;
}

/* POSIX's rename, which Windows 10 has: readers of the old file keep it. Other file systems, and Wine 8, which lacks
 * it: the older call or, where a reader has the file, two of them, and a kill between them leaves another name. */
int tn__win_rename(const char *from, const char *to)
{
    wchar_t *f = wide(from), *t = wide(to);
    BOOL     done = f && t && MoveFileExW(f, t, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
    if (f && t && !done && GetLastError() == ERROR_ACCESS_DENIED) {
        enum { REPLACE = 1, POSIX = 2, RENAME_EX = 22 }; /* FileRenameInfoEx */
        const size_t      n = wcslen(t) * sizeof *t, bytes = sizeof(FILE_RENAME_INFO) + n;
        FILE_RENAME_INFO *i = calloc(1, bytes);
        HANDLE h = CreateFileW(f, DELETE | SYNCHRONIZE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                               OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
        if (i && h != INVALID_HANDLE_VALUE) {
            const DWORD flags = REPLACE | POSIX;
            memcpy(i, &flags, sizeof flags), memcpy(i->FileName, t, n);
            i->FileNameLength = (DWORD)n;
            done = SetFileInformationByHandle(h, (FILE_INFO_BY_HANDLE_CLASS)RENAME_EX, i, (DWORD)bytes);
        }
        const DWORD code = GetLastError();
        if (h != INVALID_HANDLE_VALUE) CloseHandle(h);
        SetLastError(code);
        free(i);
        done = done || rename_past(f, t);
    }
    const int r = done ? 0 : f && t ? failed() : -1;
    free(f), free(t);
    return r;
}

/* Calls `call` with the path in UTF-16. */
static int with(const char *path, BOOL(WINAPI *call)(const wchar_t *))
{
    wchar_t  *w = wide(path);
    const int r = !w ? -1 : call(w) ? 0 : failed();
    free(w);
    return r;
}
static BOOL WINAPI make(const wchar_t *w) { return CreateDirectoryW(w, NULL); }
int                tn__win_unlink(const char *path) { return with(path, DeleteFileW); }
int                tn__win_rmdir(const char *path) { return with(path, RemoveDirectoryW); }
int                tn__win_mkdir(const char *path, unsigned mode)
{
    (void)mode;
    if (path[0] && path[1] == ':' && (!path[2] || (tn__sys_last_slash(path + 2) && !path[3])))
        return errno = EEXIST, -1;
    return with(path, make);
}

int tn__win_link(const char *from, const char *to)
{
    wchar_t  *f = wide(from), *t = wide(to);
    const int r = !f || !t ? -1 : CreateHardLinkW(t, f, NULL) ? 0 : failed();
    free(f), free(t);
    return r;
}
int tn__win_symlink(const char *from, const char *to)
{
    wchar_t  *f = wide(from), *t = wide(to);
    const int r = !f || !t ? -1 : CreateSymbolicLinkW(t, f, 1 | 2) ? 0 : failed(); /* of a folder, without privilege */
    free(f), free(t);
    return r;
}

FILE *tn__win_fopen(const char *path, const char *mode)
{
    const bool a = strchr(mode, 'a'), w = strchr(mode, 'w'), both = strchr(mode, '+');
    const int  fd = tn__win_open(path,
                                 (both     ? O_RDWR
                                  : a || w ? O_WRONLY
                                           : O_RDONLY) |
                                     (a || w ? O_CREAT : 0) | (a ? O_APPEND : 0) | (w ? O_TRUNC : 0),
                                 0666);
    FILE      *f = fd < 0 ? NULL : _fdopen(fd, a ? "ab" : w ? "wb" : both ? "r+b" : "rb");
    if (fd >= 0 && !f) close(fd);
    return f;
}

char *tn__win_getcwd(char *to, size_t bytes)
{
    wchar_t     w[1024];
    const DWORD n = GetCurrentDirectoryW(1024, w);
    if (!n || n >= 1024 || !tn__win_narrow(w, to, bytes)) return errno = ERANGE, NULL;
    return to;
}

char *tn__win_realpath(const char *path, char *to)
{
    struct stat st;
    wchar_t    *w = wide(path), all[4096];
    const DWORD n = w && !tn__win_stat(path, &st) ? GetFullPathNameW(w, 4096, all, NULL) : 0;
    free(w);
    if (!n || n >= 4096) return NULL;
    if (!to) to = malloc(3 * 4096);
    return to && tn__win_narrow(all, to, 3 * 4096) ? to : NULL;
}

/* Ends a path with six other characters until nothing has this name, and makes a folder or opens a file. */
static int make_new(char *path, bool file)
{
    int r = -1;
    errno = EEXIST;
    for (int i = 0; i < 100 && r < 0 && errno == EEXIST; i++) {
        uint64_t bits = 0;
        tn__sys_random(&bits, sizeof bits);
        for (char *x = path + strlen(path) - 6; *x; x++, bits /= 36)
            *x = "0123456789abcdefghijklmnopqrstuvwxyz"[bits % 36];
        r = file ? tn__win_open(path, O_RDWR | O_CREAT | O_EXCL, 0600) : tn__win_mkdir(path, 0700);
    }
    return r;
}
char *tn__win_mkdtemp(char *path) { return make_new(path, false) ? NULL : path; }
int   tn__win_mkstemp(char *path) { return make_new(path, true); }

double tn__sys_space(const char *folder)
{
    ULARGE_INTEGER n;
    wchar_t       *w = wide(folder);
    const double   r = w && GetDiskFreeSpaceExW(w, &n, NULL, NULL) ? (double)n.QuadPart : -1;
    free(w);
    return r;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

struct tn__win_folder {
    HANDLE           h;
    WIN32_FIND_DATAW next;
    bool             has_next;
    struct dirent    now;
};

DIR *tn__win_opendir(const char *path)
{
    const size_t n = strlen(path);
    char        *all = malloc(n + 3);
    DIR         *d = calloc(1, sizeof *d);
    struct stat  st;
    if (!all || !d) return free(all), free(d), errno = ENOMEM, NULL;
    snprintf(all, n + 3, "%s/*", path);
    wchar_t *w = wide(all);
    d->h = w ? FindFirstFileW(w, &d->next) : INVALID_HANDLE_VALUE;
    free(w), free(all);
    if (d->h != INVALID_HANDLE_VALUE) return d->has_next = true, d;
    if (tn__win_stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR;
    else if (w) failed();
    return free(d), NULL;
}
struct dirent *tn__win_readdir(DIR *d)
{
    while (d->has_next) {
        const bool fits = tn__win_narrow(d->next.cFileName, d->now.d_name, sizeof d->now.d_name);
        d->has_next = FindNextFileW(d->h, &d->next);
        if (fits) return &d->now;
    }
    return NULL;
}
int tn__win_closedir(DIR *d)
{
    FindClose(d->h);
    free(d);
    return 0;
}

int tn__win_alphasort(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
int tn__win_scandir(const char *path, struct dirent ***found, int (*filter)(const struct dirent *),
                    int (*order)(const struct dirent **, const struct dirent **))
{
    DIR            *d = opendir(path);
    struct dirent **all = NULL, **more;
    int             n = 0;
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));) {
        if (filter && !filter(e)) continue;
        if (!(more = realloc(all, (size_t)(n + 1) * sizeof *all))) break;
        all = more;
        if (!(all[n] = malloc(sizeof **all))) break;
        *all[n++] = *e;
    }
    closedir(d);
    if (order && n) qsort(all, (size_t)n, sizeof *all, (int (*)(const void *, const void *))order);
    *found = all;
    return n;
}

#endif
