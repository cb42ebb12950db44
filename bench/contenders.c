/* contenders.c — the child processes of `bench kernels`, each with an input and an output pipe. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pipe2 */
#endif
#include "bench/contenders.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: removes the caller's settings of OpenMP and BLAS libraries, which may favour a contender, and runs the
 * program with its defaults. Each job specifies the number of threads. */
static void become(char *const *argv, const char *setting, int in, int out)
{
    static const char *const unset[] = {"OMP_NUM_THREADS",  "OMP_WAIT_POLICY",      "GOMP_SPINCOUNT",
                                        "OMP_DYNAMIC",      "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE",
                                        "GOTO_NUM_THREADS", "MKL_NUM_THREADS",      "DNNL_MAX_CPU_ISA"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    char        name[64];
    const char *equal = setting ? strchr(setting, '=') : NULL;
    if (equal) {
        snprintf(name, sizeof name, "%.*s", (int)(equal - setting), setting);
        setenv(name, equal + 1, 1);
    }
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0) _exit(127);
    execvp(argv[0], argv);
    _exit(127);
}

/* A pipe that children do not inherit. */
static bool connect_ends(int fd[2])
{
    return !pipe(fd) && fcntl(fd[0], F_SETFD, FD_CLOEXEC) >= 0 && fcntl(fd[1], F_SETFD, FD_CLOEXEC) >= 0;
}

void contender_start(contender *c, char *const *argv, const char *setting)
{
    int to[2], from[2];
    *c = (contender){0};
    signal(SIGPIPE, SIG_IGN); /* writing to a child that has ended returns an error */
    if (!connect_ends(to)) return;
    if (!connect_ends(from)) {
        close(to[0]), close(to[1]);
        return;
    }
    fflush(NULL);
    c->pid = fork();
    if (!c->pid) become(argv, setting, to[0], from[1]);
    close(to[0]), close(from[1]);
    c->to = fdopen(to[1], "w");
    c->from = fdopen(from[0], "r");
    if (c->pid < 0 || !c->to || !c->from) contender_stop(c);
}

void contender_stop(contender *c)
{
    if (c->to) fclose(c->to);
    if (c->from) fclose(c->from);
    if (c->pid > 0) waitpid(c->pid, NULL, 0); /* it ends at the end of its input */
    c->pid = 0, c->to = c->from = NULL;
}

static bool read_line(contender *c, char *line, int size)
{
    if (!c->from || !fgets(line, size, c->from)) {
        contender_stop(c);
        return false;
    }
    line[strcspn(line, "\n")] = 0;
    return true;
}

bool contender_ready(contender *c)
{
    char line[sizeof c->name + 8];
    if (!read_line(c, line, sizeof line)) return false;
    if (strncmp(line, "ready ", 6) != 0) {
        contender_stop(c);
        return false;
    }
    snprintf(c->name, sizeof c->name, "%.*s", (int)sizeof c->name - 1, line + 6);
    return true;
}

bool contender_ask(contender *c, const char *job, double *ns, double *extra)
{
    char line[256];
    if (!c->to) return false;
    fprintf(c->to, "%s\n", job);
    fflush(c->to);
    if (!read_line(c, line, sizeof line)) {
        fprintf(stderr, "bench: %s ended during the job: %s\n", c->name, job);
        return false;
    }
    char *end = line;
    if (strncmp(line, "ok ", 3) != 0) return false;
    *ns = strtod(line + 3, &end);
    *extra = strtod(end, NULL);
    return *ns > 0;
}
