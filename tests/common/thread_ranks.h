/* thread_ranks.h — ranks as threads of this process: a tn_transport over shared memory (thread_ranks.c). Errors,
 * generators and scopes belong to a thread, so that these ranks are as independent as processes. */
#ifndef TENON_TESTS_COMMON_THREAD_RANKS_H
#define TENON_TESTS_COMMON_THREAD_RANKS_H

#include "parallel/parallel.h"

enum { TN_THREAD_RANKS = 8 };

/* Runs body in `size` threads, each with its world, which body borrows. Afterwards text[rank] is the error that is set
 * in the thread, or "". Call number `fails_at` of rank 1's transport, counted from 1, fails; 0: none. */
typedef void tn_rank_body(tn_world *w, void *user);
void         tn_thread_ranks(int size, tn_rank_body *body, void *user, int fails_at, char text[TN_THREAD_RANKS][1100]);

#endif
