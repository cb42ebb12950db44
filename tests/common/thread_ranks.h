/* thread_ranks.h — ranks that are threads of this process: a tn_transport over shared memory (thread_ranks.c). Errors,
 * generators and scopes belong to a thread, so that such ranks know no more of each other than processes do. */
#ifndef TENON_TESTS_COMMON_THREAD_RANKS_H
#define TENON_TESTS_COMMON_THREAD_RANKS_H

#include "parallel/parallel.h"

enum { TN_THREAD_RANKS = 8 };

/* Runs body in `size` threads, each with its world, which it does not free: that is done behind it, and then an error
 * that stands in the thread is put into text[rank] ("" for none). A transport's call number `fails_at` of rank 1, from
 * 1, fails; 0: none does. */
typedef void tn_rank_body(tn_world *w, void *user);
void         tn_thread_ranks(int size, tn_rank_body *body, void *user, int fails_at, char text[TN_THREAD_RANKS][1100]);

#endif
