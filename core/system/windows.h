/* windows.h — the POSIX names that Tenon uses, for system.h: those of MinGW where they suffice, and otherwise functions
 * of windows.c, which know UTF-8 and long paths. Files are read and written without conversion of line ends. */
#ifndef TENON_CORE_SYSTEM_WINDOWS_H
#define TENON_CORE_SYSTEM_WINDOWS_H
#ifdef _WIN32

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* localtime_r, strtok_r */
#endif
#define _CRT_RAND_S

#define tell tn__io_tell /* of io.h; programs have one, too */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#undef tell

#undef O_CLOEXEC
#define O_CLOEXEC O_NOINHERIT
#define EDQUOT 10069
enum { TN__NOFOLLOW = 1 << 24, TN__FOLDER = 1 << 25 }; /* O_ flags of tn__win_open alone */
#define O_NOFOLLOW TN__NOFOLLOW
#define O_DIRECTORY TN__FOLDER
#define O_NONBLOCK 0
#define O_NOCTTY 0
#undef S_ISLNK
#undef S_ISSOCK
#define S_ISLNK(mode) (((mode)&S_IFMT) == 0xA000)
#define S_ISSOCK(mode) ((void)(mode), 0)

#define tn__sys_open tn__win_open
#define tn__sys_stat tn__win_stat
#define tn__sys_lstat tn__win_lstat
#define tn__sys_fstat tn__win_fstat
#define tn__sys_pread tn__win_pread
#define tn__sys_pwrite tn__win_pwrite
#define tn__sys_fsync tn__win_fsync
#define tn__sys_close close
#define tn__sys_rename tn__win_rename
#define tn__sys_unlink tn__win_unlink
int     tn__win_open(const char *path, int flags, unsigned mode);
int     tn__win_stat(const char *path, struct stat *st);
int     tn__win_lstat(const char *path, struct stat *st);
int     tn__win_fstat(int fd, struct stat *st);
int64_t tn__win_pread(int fd, void *to, size_t n, int64_t at);
int64_t tn__win_pwrite(int fd, const void *from, size_t n, int64_t at);
int     tn__win_fsync(int fd);
int     tn__win_rename(const char *from, const char *to);
int     tn__win_unlink(const char *path);
bool    tn__win_narrow(const wchar_t *w, char *to, size_t bytes); /* UTF-16 as UTF-8; false: it does not fit */

struct dirent {
    char d_name[3 * 260];
};
typedef struct tn__win_folder DIR;
#define opendir tn__win_opendir
#define readdir tn__win_readdir
#define closedir tn__win_closedir
#define scandir tn__win_scandir
#define alphasort tn__win_alphasort
DIR           *tn__win_opendir(const char *path);
struct dirent *tn__win_readdir(DIR *d);
int            tn__win_closedir(DIR *d);
int            tn__win_alphasort(const struct dirent **a, const struct dirent **b);
int            tn__win_scandir(const char *path, struct dirent ***found, int (*filter)(const struct dirent *),
                               int (*order)(const struct dirent **, const struct dirent **));

#define access(path, mode) ((void)(mode), tn__win_stat(path, &(struct stat){0}))
static inline int tn__win_execvp(char *const *words) { return (void)words, errno = ENOSYS, -1; }
#define execvp(program, words) tn__win_execvp(words)
#define fopen tn__win_fopen
#define getc_unlocked _getc_nolock
#define getcwd tn__win_getcwd
#define gethostname tn__win_gethostname
#define getline tn__win_getline
#define link tn__win_link
#define mkdir tn__win_mkdir
#define mkdtemp tn__win_mkdtemp
#define mkstemp tn__win_mkstemp
#define readlink(path, to, n) (errno = EINVAL, (ssize_t)-1)
#define realpath tn__win_realpath
#define remove tn__win_unlink
#define rmdir tn__win_rmdir
#define setenv(name, value, over) ((over) || !getenv(name) ? _putenv_s(name, value) : 0)
#define symlink(from, to) tn__win_symlink(from, to)
FILE   *tn__win_fopen(const char *path, const char *mode);
char   *tn__win_getcwd(char *to, size_t bytes);
int     tn__win_gethostname(char *to, size_t bytes);
ssize_t tn__win_getline(char **line, size_t *room, FILE *from);
int     tn__win_link(const char *from, const char *to);
int     tn__win_mkdir(const char *path, unsigned mode);
char   *tn__win_mkdtemp(char *path);
int     tn__win_mkstemp(char *path);
char   *tn__win_realpath(const char *path, char *to);
double  tn__sys_sin(double x), tn__sys_cos(double x);
int     tn__win_rmdir(const char *path);
int     tn__win_symlink(const char *from, const char *to);
#endif
#endif
