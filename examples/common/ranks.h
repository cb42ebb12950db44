/* ranks.h — a program as several processes ("ranks") under MPI: --ranks K starts them, mpirun does it, too, and each
 * finds the others. Rank 0 alone speaks. */
#ifndef TENON_EXAMPLES_COMMON_RANKS_H
#define TENON_EXAMPLES_COMMON_RANKS_H

#include <tenon/tenon.h>

/* Has something like mpirun or srun started this process as one of several? How many: 1 if not. */
int ranks_started(void);
/* Is it the one that speaks? By what the launcher has put into the environment, so that it is known from the start. */
bool ranks_first(void);
/* Becomes `mpiexec -n ranks` of argv, with settings that a person would have to look up; returns only if it cannot:
 * raised. path: the program; NULL: this one. */
void ranks_launch(int ranks, const char *path, int argc, char **argv);
/* The world of this process, which is to be one of so many, and is one of `there`, as far as the launcher says. NULL:
 * raised. opener: tn_world_mpi, or NULL in a program that was built without MPI. */
tn_world *ranks_join(int ranks, int there, tn_world *(*opener)(const void *communicator));

#endif
