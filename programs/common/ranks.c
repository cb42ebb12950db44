/* ranks.c — see ranks.h. */
#include "core/system/system.h"

#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef RANKS_MPIEXEC
#define RANKS_MPIEXEC "" /* built without MPI */
#endif

/* ---- how this process was started -------------------------------------------------------------------------------- */

/* Environment variables of Open MPI's mpirun; of the mpiexec of MPICH and its derivatives; of Slurm's srun. */
static const struct {
    const char *rank, *size;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static int number(const char *name, int otherwise)
{
    const char *v = getenv(name);
    return v && *v ? (int)strtol(v, NULL, 10) : otherwise;
}

int ranks_started(void)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (number(launchers[i].size, 1) > 1) return number(launchers[i].size, 1);
    return 1;
}

bool ranks_first(void)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (number(launchers[i].size, 1) > 1) return number(launchers[i].rank, 0) == 0;
    return true;
}

/* ---- starting them ----------------------------------------------------------------------------------------------- */

/* Sets Open MPI's variables, which other MPIs ignore: more ranks than cores, running as root (in containers), no
 * pinning to cores, and 3 seconds to save between SIGTERM, which follows Ctrl-C or the end of a rank, and SIGKILL.
 * Divides the threads of one process among the ranks. Variables that the user has set do not change. */
static void settings_for(int ranks)
{
    static const char *const mca[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                         {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                         {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                         {"OMPI_MCA_odls_base_sigkill_timeout", "3"}};
    char                     threads[16];
    for (size_t i = 0; i < sizeof mca / sizeof *mca; i++) setenv(mca[i][0], mca[i][1], 0);
    snprintf(threads, sizeof threads, "%d", tn_threads() / ranks > 1 ? tn_threads() / ranks : 1);
    setenv("OMP_NUM_THREADS", threads, 0);
}

void ranks_launch(int ranks, const char *path, int argc, char **argv)
{
    const char *mpiexec = RANKS_MPIEXEC;
    char        count[16], own[4096];
    char      **words = calloc((size_t)argc + 8, sizeof *words);
    int         n = 0;
    if (!*mpiexec) tn_raise(TN_EUNSUPPORTED, "built without MPI, so --ranks can only be 1; see TENON_MPI");
    else if (!words) tn_raise(TN_ENOMEM, "no memory to start %s", mpiexec);
    if (!words || tn_error() != TN_OK) {
        free(words);
        return;
    }
    if (!tn__sys_self(own, sizeof own)) snprintf(own, sizeof own, "%s", argv[0]);
    settings_for(ranks);
    snprintf(count, sizeof count, "%d", ranks);
    words[n++] = (char *)(uintptr_t)mpiexec;
    words[n++] = (char *)(uintptr_t) "-n";
    words[n++] = count;
    words[n++] = (char *)(uintptr_t)(path ? path : own);
    for (int i = 1; i < argc; i++) words[n++] = argv[i];
    execvp(mpiexec, words);
    tn_raise(TN_EIO, "cannot run %s, which --ranks %d needs", mpiexec, ranks);
    free(words);
}

/* ---- joining the world ------------------------------------------------------------------------------------------- */

tn_world *ranks_join(int ranks, int there, tn_world *(*opener)(const void *communicator))
{
    if (ranks == 1 && there == 1) return tn_world_single();
    if (!opener)
        return tn_raise_null(TN_EUNSUPPORTED, "built without MPI, so there can be only one rank; see TENON_MPI");
    tn_world *w = opener(NULL);
    if (w && tn_world_size(w) != ranks)
        tn_raise(TN_EINVAL,
                 "expected %d ranks, but MPI started %d; use the mpiexec of the MPI that Tenon was built with, and the "
                 "same number for --ranks and mpirun -n",
                 ranks, tn_world_size(w));
    return w;
}
