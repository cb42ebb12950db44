/* ranks.h — runs a program as several processes (ranks) under MPI, started by --ranks K or by mpirun. Only rank 0
 * prints messages. */
#ifndef TENON_PROGRAMS_COMMON_RANKS_H
#define TENON_PROGRAMS_COMMON_RANKS_H

#include <tenon/extras.h>

/* The number of ranks that mpirun or srun started together with this process; 1: none. */
int ranks_started(void);
/* Is this rank 0, or the only process? Known from the start, because it is read from the launcher's environment. */
bool ranks_first(void);
/* Replaces this process by `mpiexec -n ranks` with argv, with suitable settings of Open MPI; returns only after an
 * error (raised). path: the program; NULL: this one. */
void ranks_launch(int ranks, const char *path, int argc, char **argv);
/* Joins the world of `ranks` ranks; `there`: the number that the launcher reports. The caller frees it with
 * tn_world_free. NULL: raised. opener: tn_world_mpi; NULL in a program built without MPI. */
tn_world *ranks_join(int ranks, int there, tn_world *(*opener)(const void *communicator));

#endif
