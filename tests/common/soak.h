/* soak.h — the same work again and again for a long time, as a program that stays up does it: does it keep its memory,
 * its files, its threads and its speed? */
#ifndef TENON_TESTS_COMMON_SOAK_H
#define TENON_TESTS_COMMON_SOAK_H

/* In rounds, for so many seconds: once(0) … once(n - 1), each of which must give what it gave in the first round; the
 * same again in troubled times, some short of memory and some on a thread that ends behind them; and `resident` (not
 * NULL), a step of something that lives as long. From the second round on the library holds as many bytes and tensors
 * when the first of these is done, and the process as many files and threads; from a quarter of the time on, the
 * process's memory and the CPU time of that part do not grow. What is not so fails (ck_assert), speed only in runs of
 * ten minutes and more, which a busy machine does not decide. Tells of it on a line that begins with "soak of NAME:".
 * Outside any scope. */
void tn_soak(const char *name, double seconds, int n, double (*once)(int i), void (*resident)(void));

#endif
