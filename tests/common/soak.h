/* soak.h — repeats the same work for a long time, like a long-running program, and checks that memory, files, threads
 * and speed stay constant. */
#ifndef TENON_TESTS_COMMON_SOAK_H
#define TENON_TESTS_COMMON_SOAK_H

/* Runs rounds for `seconds` seconds. A round is once(0) … once(n - 1), each of which must return its result of the
 * first round; the same again, some with little memory and some on a thread that then ends; and `resident`, a step of
 * an object that lives during the whole soak (may be NULL). Asserts that from the second round the library has the same
 * bytes and tensors after the first part of a round, and the process the same files and threads; and that after a
 * quarter of the time the memory of the process and the CPU time of that part do not grow (CPU time only in runs of at
 * least ten minutes, because the machine may be busy). Prints a line that starts with "soak of NAME:". Call it outside
 * any scope. */
void tn_soak(const char *name, double seconds, int n, double (*once)(int i), void (*resident)(void));

#endif
