/* windows.c — memory, threads, time and programs on Windows 10 and later, for MinGW-w64 and for clang with its headers.
 * See system.h; files are in windows_files.c. */
#include "core/system/system.h"
#ifdef _WIN32

#undef gethostname

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <locale.h>
#include <math.h>
#include <stdatomic.h>
#include <windows.h>

#include <shellapi.h>

static HANDLE of(int fd) { return (HANDLE)_get_osfhandle(fd); }

/* ---- memory, threads, CPUs --------------------------------------------------------------------------------------- */

void *tn__sys_alloc(size_t align, size_t bytes) { return _aligned_malloc(bytes, align); }
void  tn__sys_free(void *p) { _aligned_free(p); }
void  tn__sys_huge_pages(void *p, size_t bytes) { (void)p, (void)bytes; }

double tn__sys_memory(void)
{
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    return GlobalMemoryStatusEx(&m) ? (double)m.ullTotalPhys : 4e9;
}

/* winpthreads holds one lock while the destructors of a thread run, and each thread takes it when it begins and when it
 * ends. So a destructor can wait only for functions of threads that have begun. */
struct start {
    void *(*run)(void *), *user;
    atomic_bool begun;
};
static void *begin(void *of)
{
    void *(*run)(void *) = ((struct start *)of)->run, *user = ((struct start *)of)->user;
    return atomic_store(&((struct start *)of)->begun, true), run(user);
}
bool tn__sys_thread(pthread_t *thread, void *(*run)(void *), void *user)
{
    struct start s = {run, user, false};
    if (pthread_create(thread, NULL, begin, &s)) return false;
    while (!atomic_load(&s.begun)) Sleep(0);
    return true;
}
void tn__sys_join(pthread_t thread, const atomic_int *left, int n)
{
    while (atomic_load(left) < n && WaitForSingleObject(pthread_gethandle(thread), 1) == WAIT_TIMEOUT) {}
    pthread_detach(thread);
}
bool tn__sys_after_fork(void (*in_child)(void)) { return (void)in_child, true; } /* there is no fork */
void tn__sys_nap(int64_t ns) { Sleep((DWORD)((ns + 999999) / 1000000)); }

/* Calls for each cache or core that Windows lists; kind: RelationCache, RelationProcessorCore. */
static void each(LOGICAL_PROCESSOR_RELATIONSHIP kind,
                 void (*see)(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *, void *), void *user)
{
    DWORD bytes = 0;
    GetLogicalProcessorInformationEx(kind, NULL, &bytes);
    char *all = bytes ? malloc(bytes) : NULL;
    if (all && GetLogicalProcessorInformationEx(kind, (void *)all, &bytes))
        for (DWORD at = 0; at < bytes;) {
            const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *i = (const void *)(all + at);
            see(i, user);
            at += i->Size;
        }
    free(all);
}
static void see_cache(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *i, void *user)
{
    int64_t *sizes = user;
    if (i->Cache.Level >= 1 && i->Cache.Level <= 3 && i->Cache.Type != CacheInstruction)
        if (i->Cache.CacheSize > sizes[i->Cache.Level - 1]) sizes[i->Cache.Level - 1] = i->Cache.CacheSize;
}
int64_t tn__sys_cache(int level)
{
    int64_t sizes[3] = {0};
    each(RelationCache, see_cache, sizes);
    return sizes[level - 1];
}

static void see_core(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *i, void *user)
{
    ((int *)user)[((const BYTE *)&i->Processor)[1]]++; /* EfficiencyClass, which older headers lack */
}
int tn__sys_cores(void)
{
    int cores[256] = {0}, fast = 0; /* by their class; the highest class is the fastest */
    each(RelationProcessorCore, see_core, cores);
    for (int i = 0; i < 256; i++)
        if (cores[i]) fast = cores[i];
    DWORD_PTR mine = 0, all = 0;
    int       allowed = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all)) allowed = __builtin_popcountll(mine);
    return allowed && allowed < fast ? allowed : fast;
}
/* MinGW's sin and cos are x87 instructions, which know 66 bits of π; those of Windows know all. */
#define WAVE(name)                                                                                      \
    double tn__sys_##name(double x)                                                                     \
    {                                                                                                   \
        static double (*_Atomic f)(double);                                                             \
        if (!f) f = (double (*)(double))(void (*)(void))GetProcAddress(LoadLibraryW(L"msvcrt"), #name); \
        return f(x);                                                                                    \
    }
WAVE(sin)
WAVE(cos)
bool tn__sys_amx_registers(void) { return false; }
bool tn__sys_sdot(void) { return IsProcessorFeaturePresent(43); } /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */

/* ---- time and locale --------------------------------------------------------------------------------------------- */

int64_t tn__sys_nanoseconds(void)
{
    static _Atomic int64_t each_second;
    LARGE_INTEGER          n;
    int64_t                per = each_second;
    if (!per) QueryPerformanceFrequency(&n), each_second = per = n.QuadPart;
    QueryPerformanceCounter(&n);
    return n.QuadPart / per * 1000000000 + n.QuadPart % per * 1000000000 / per;
}
struct timespec tn__sys_clock(void)
{
    FILETIME t;
    GetSystemTimePreciseAsFileTime(&t);
    const uint64_t n = ((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) - 116444736000000000u;
    return (struct timespec){(time_t)(n / 10000000), (long)(n % 10000000 * 100)};
}

/* The locale of the thread; that of the process is unaffected. */
void *tn__sys_c_locale(void)
{
    const char *now = setlocale(LC_ALL, NULL);
    if (!now || !strcmp(now, "C")) return NULL;
    char *before = _strdup(now);
    _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    setlocale(LC_ALL, "C");
    return before;
}
void tn__sys_locale(void *before)
{
    if (before) setlocale(LC_ALL, before), free(before);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

bool tn__sys_start(int *argc, char ***argv)
{
    int       n = 0;
    wchar_t **w = CommandLineToArgvW(GetCommandLineW(), &n);
    char    **all = w ? calloc((size_t)n + 1, sizeof *all) : NULL;
    for (int i = 0; all && i < n; i++) {
        const size_t bytes = 3 * wcslen(w[i]) + 1;
        if ((all[i] = malloc(bytes))) tn__win_narrow(w[i], all[i], bytes);
        else return false;
    }
    if (all && n == *argc) *argv = all;
    if (w) LocalFree(w);
    SetConsoleOutputCP(CP_UTF8), SetConsoleCP(CP_UTF8);
    for (int fd = 0; fd <= 2; fd++) {
        DWORD mode;
        _setmode(fd, _O_BINARY);
        if (fd && GetConsoleMode(of(fd), &mode)) SetConsoleMode(of(fd), mode | 4); /* escape sequences */
    }
    return true;
}

static void (*handler)(int);
static BOOL WINAPI pressed(DWORD what)
{
    void (*const came)(int) = handler;
    if (!came) return FALSE;
    came(what == CTRL_C_EVENT || what == CTRL_BREAK_EVENT ? SIGINT : SIGTERM);
    if (what == CTRL_CLOSE_EVENT) Sleep(INFINITE); /* Windows ends the process after some seconds */
    return TRUE;
}
void tn__sys_on_interrupt(void (*came)(int)) { handler = came, SetConsoleCtrlHandler(pressed, TRUE); }
void tn__sys_default_interrupt(void) { handler = NULL; }

int tn__sys_columns(FILE *to)
{
    CONSOLE_SCREEN_BUFFER_INFO i;
    return GetConsoleScreenBufferInfo(of(_fileno(to)), &i) ? i.srWindow.Right - i.srWindow.Left + 1 : 0;
}
int tn__sys_input_waits(void)
{
    DWORD n = 0;
    return PeekNamedPipe(of(0), NULL, 0, NULL, &n, NULL) ? (int)n : 0;
}
bool tn__sys_utf8(void) { return GetConsoleOutputCP() == CP_UTF8; }

bool tn__sys_random(void *to, size_t bytes)
{
    unsigned x;
    size_t   i = 0;
    for (; i < bytes && !rand_s(&x); i++) ((unsigned char *)to)[i] = (unsigned char)x;
    return i == bytes;
}
bool tn__sys_self(char *to, size_t bytes)
{
    wchar_t     w[4096];
    const DWORD n = GetModuleFileNameW(NULL, w, 4096);
    return n && n < 4096 && tn__win_narrow(w, to, bytes);
}
void tn__sys_on_enough_stack(void *(*run)(void *), void *user) { run(user); } /* the linker's choice: 2 MB */

int tn__win_gethostname(char *to, size_t bytes)
{
    wchar_t w[256];
    DWORD   n = 256;
    return GetComputerNameW(w, &n) && tn__win_narrow(w, to, bytes) ? 0 : -1;
}

ssize_t tn__win_getline(char **line, size_t *room, FILE *from)
{
    size_t n = 0;
    int    c = 0;
    do {
        if (n + 2 > *room) {
            char *more = realloc(*line, *room = *room ? 2 * *room : 256);
            if (!more) return -1;
            *line = more;
        }
        if ((c = getc(from)) == EOF) break;
        (*line)[n++] = (char)c;
    } while (c != '\n');
    (*line)[n] = 0;
    return n ? (ssize_t)n : -1;
}

/* In place of MinGW's, whose error reaches 1.2 units in the last place. */
float expm1f(float x);
float expm1f(float x) { return (float)expm1(x); }

#endif
