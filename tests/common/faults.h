/* faults.h — memory and files that fail when a test says so. Calls are counted from 0 since the last tn_fail_…; with
 * for_ever every call from then on fails, otherwise that one alone. */
#ifndef TENON_TESTS_COMMON_FAULTS_H
#define TENON_TESTS_COMMON_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* The allocator. Nothing of the library may be alive at begin and at end; end says so (ck_assert). */
void    tn_faulty_memory_begin(void);
void    tn_faulty_memory_end(void);
void    tn_fail_memory(int64_t call, bool for_ever); /* -1: never */
int64_t tn_memory_calls(void);
int64_t tn_memory_blocks(void); /* given out and not given back */

/* Runs `once` well; then with every stride-th allocation failing, that one alone and from then on: each time the
 * error is TN_ENOMEM and nothing is lost, and after every retry-th a run without failures gives the same number as
 * the first. There must be more than `least` allocations. On one thread, and outside any scope. */
void tn_each_allocation_fails(double (*once)(int i), int i, int64_t stride, int64_t retry, int64_t least);

/* Files. code is an errno; TN_SHORT moves one byte instead of all, where bytes are moved, and fails nothing. for_ever
 * spares close and unlink, so that what is left behind can be told from what could not be removed. */
enum { TN_SHORT = -1, TN_NO_CLEANUP = 1 << 20 /* added to code: for_ever spares nothing */ };
void        tn_faulty_files_begin(void);
void        tn_faulty_files_end(void); /* and every file is closed */
void        tn_fail_file(int64_t call, int code, bool for_ever);
int64_t     tn_file_calls(void);
const char *tn_file_call(int64_t call); /* "write": what that call was, for messages */
int64_t     tn_open_files(void);

/* How many allocations, and how many calls on files, were made to fail since the program began: tn_check_main tells. */
int64_t tn_faults_of_memory(void);
int64_t tn_faults_of_files(void);

/* How many names there are in path's folder, without . and .. */
int tn_names_beside(const char *path);

#endif
