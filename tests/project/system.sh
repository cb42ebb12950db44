#!/usr/bin/env bash
# Only core/system asks which operating system it is, and includes its headers: the library and the programs compile
# elsewhere when that folder does.
. "$(dirname "$0")/common.sh"

headers='unistd|sys/[a-z]+|pthread|fcntl|dirent|strings|sched|poll|termios|dlfcn|netdb|netinet/[a-z]+|arpa/[a-z]+|spawn'
headers+='|semaphore|langinfo|xlocale|windows|io|process|direct|winsock2?|mach/[a-z_]+|mach-o/[a-z]+'
macros='_WIN32|_WIN64|__MINGW[0-9]*__|__CYGWIN__|__linux__|__linux|__APPLE__|__FreeBSD__|__unix__|__wasi__|__wasm__'
# With the reason.
may='
core/core.h      a public header: how a DLL exports names
parallel/mpi     a library of its own, for systems with MPI
extras/programs/serve/http.c  sockets; built only with libmicrohttpd
programs/export/program  the text of programs that `export` writes
examples/host_program.c  shows fork and threads; not built on Windows
examples/custom_decoder.c  shows mkdir; not built on Windows
examples/own_family.c  shows mkdir; not built on Windows
examples/text_queue.c  shows threads; not built on Windows
'
breaks() # ROOT: prints "file:line: reason"
{
    (cd "$1" && grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<($headers)\\.h>" --include='*.[ch]' \
        $(folders) programs examples | sed -E 's/^([^:]*:[0-9]*):.*(<.*>).*/\1: \2 is for core\/system/'
        grep -rnE "^[[:space:]]*#[[:space:]]*(if|elif|ifdef|ifndef).*\\b($macros)\\b" --include='*.[ch]' \
            $(folders) programs examples | sed -E 's/^([^:]*:[0-9]*):.*/\1: only core\/system asks for the system/') |
        grep -vE "^(core/system|extras/tests)/" |
        grep -vE "^($(sed '/^$/d; s/ .*//' <<<"$may" | paste -sd '|'))[/:]" || true
}
findings < <(breaks "$root")

# Planted faults must be found.
fresh system
mkdir -p $(folders) programs examples
printf '#include <unistd.h>\n' >nn/planted.c
printf '#if defined(_WIN32)\n#endif\n' >programs/planted.h
[ "$(breaks . | wc -l)" = 2 ] || wrong "system.sh does not see the faults planted for it: $(breaks .)"
exit $wrong
