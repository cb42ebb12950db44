#!/usr/bin/env bash
# The library must not end the program, print, allocate without the allocator, depend on the locale, make threads, use
# OpenMP, or call functions that are slow on some systems. The check reads the objects, in which no macro hides a call.
. "$(dirname "$0")/common.sh"
need nm

ends='exit _exit _Exit quick_exit abort raise kill __assert_fail __assert err errx verr verrx signal sigaction'
prints='stdout stderr printf vprintf puts putchar perror psignal __printf_chk __vprintf_chk'
memory='malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign valloc strdup strndup asprintf
    vasprintf __asprintf_chk __vasprintf_chk mmap mmap64 open_memstream getline
    utf8proc_map utf8proc_map_custom utf8proc_NFD utf8proc_NFC utf8proc_NFKD utf8proc_NFKC utf8proc_NFKC_Casefold'
locale='strtod strtof strtold atof setlocale uselocale localeconv scanf sscanf fscanf __isoc99_sscanf __isoc99_fscanf
    __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc tolower toupper strcoll strtok'
threads='pthread_create GOMP_parallel omp_set_num_threads omp_get_thread_num'
chance='rand srand random srandom drand48 time localtime gmtime'
process='system popen fork vfork execv execve execvp chdir umask setenv putenv feenableexcept fesetround fesetenv'
quadratic='memmem' # linear time in glibc and musl only

# Allowed calls, with the reason.
may='
core/system/posix.c:aligned_alloc  core/base/memory.c takes memory from the system unless the user sets another
core/system/posix.c:posix_memalign  the same for large blocks
core/system/posix.c:free           core/base/memory.c returns memory to the system
core/system/posix.c:pthread_create  tn__sys_thread, which the table `threads` is about
core/system/posix.c:signal         tn__sys_start and tn__sys_default_interrupt, of programs
core/system/posix.c:sigaction      tn__sys_on_interrupt, of programs
extras/runlog/runlog_events.c:time  the time of a run, which is in its file of events
core/system/posix.c:uselocale      numbers are written with a decimal point; then the locale of the user is restored
'
forbidden=" $(echo $ends $prints $memory $locale $threads $chance $process $quadratic) "
taken() # FOLDER SOURCES: prints each forbidden call, "file:symbol"
{
    calls_outside "$1" "$2" | while read -r file symbol; do
        [[ $forbidden == *" $symbol "* ]] && echo "$file:$symbol"
    done
    return 0
}
findings < <(comm -23 <(taken "$build/CMakeFiles" "$root" | sort -u) <(sed 's/ .*//' <<<"$may" | sort) |
    sed -E 's/(.*):(.*)/\1 calls \2/')
findings < <(comm -13 <(taken "$build/CMakeFiles" "$root" | sort -u) <(sed 's/ .*//; /^$/d' <<<"$may" | sort) |
    sed -E 's/(.*):(.*)/\1 no longer calls \2: its line in the table can go/')

# OpenMP is not used, and kernels contain no strides, allocations or threads.
# Threads are made in a few files.
made='core/base/team.c data/corpus/corpus_batches.c data/source/prefetch.c parallel/overlap.c'
cd "$root"
makers=$(grep -rlw tn__sys_thread $(folders) --include='*.c' | grep -v '^core/system/' | sort | paste -sd ' ')
[ "$makers" = "$made" ] ||
    wrong "other files than $made call tn__sys_thread"
for folder in $(folders); do
    for pattern in '^[[:space:]]*#[[:space:]]*pragma[[:space:]]+omp|omp\.h' 'fast-math|march=native|crtfastmath'; do
        findings < <(grep -rnE "$pattern" --include='*.[ch]' --exclude-dir=programs "$folder")
    done
done

# Functions of libm that set errno (underflow, overflow, pole) must be called through core/base/libm.h. Exceptions:
# kernels and rooms, whose callers restore errno. Comments and strings are not calls.
libm() # FILE...: prints "file:line" of each call
{
    awk '{
        line = $0
        gsub(/"[^"]*"/, "", line)
        gsub(/\/\*[^*]*\*\//, "", line)
        sub(/\/\*.*/, "", line)
        if (line ~ /^ \*/) next
        if (line ~ /(^|[^A-Za-z0-9_.>])(exp|expm1|log|log1p|pow|erfc)\(/) print FILENAME ":" FNR
    }' "$@"
}
for folder in nn optim data models parallel extras; do
    mapfile -t files < <(find "$folder" -name '*.[ch]' -not -path 'extras/programs/*' -not -path 'extras/tests/*')
    findings < <(libm "${files[@]}" |
        sed 's/$/ calls the C library, which may set errno: core\/base\/libm.h has it without/')
done

# Tests of the checks: a planted call must be found.
fresh calls
echo 'double f(double x) { return x > 0 ? log(x) : tn__libm_exp(x); } /* exp(x) */' >planted.h
[ "$(libm planted.h)" = planted.h:1 ] || wrong "calls.sh does not see the log planted for it"
mkdir -p tenon_objects.dir/nn
echo '#include <stdlib.h>
void planted(void);
void planted(void) { exit(1); }' >planted.c
mkdir nn && cp planted.c nn/memory.c
"${CC:-cc}" -c planted.c -o tenon_objects.dir/nn/memory.c.o
[ "$(taken . "$PWD")" = nn/memory.c:exit ] || wrong "calls.sh does not see the call planted for it: $(taken . "$PWD")"
exit $wrong
