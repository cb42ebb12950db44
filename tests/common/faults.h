/* faults.h — an allocator and file operations that fail at a chosen call. Calls are counted from 0 since the last
 * tn_fail_…; with for_ever every call from the chosen one fails, otherwise only that call. */
#ifndef TENON_TESTS_COMMON_FAULTS_H
#define TENON_TESTS_COMMON_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* The allocator. No object of the library may be alive at begin and at end; end asserts this. */
void    tn_faulty_memory_begin(void);
void    tn_faulty_memory_end(void);
void    tn_fail_memory(int64_t call, bool for_ever); /* -1: never */
int64_t tn_memory_calls(void);
int64_t tn_memory_blocks(void); /* number of blocks that are allocated and not freed */

/* Runs `once` without failures; then for every stride-th allocation with that allocation failing alone, and with it and
 * all later ones failing. Asserts that the error is TN_ENOMEM, that nothing leaks, that after every retry-th failure a
 * run without failures returns the first result, and that there are more than `least` allocations. Uses one thread;
 * call it outside any scope. */
void tn_each_allocation_fails(double (*once)(int i), int i, int64_t stride, int64_t retry, int64_t least);

/* Files. code: an errno, or TN_SHORT: reads and writes transfer one byte, and no call fails. for_ever does not affect
 * close and unlink, so that a file that the library forgot to delete differs from one that it could not delete. */
enum { TN_SHORT = -1, TN_NO_CLEANUP = 1 << 20 /* added to code: for_ever affects close and unlink, too */ };
void        tn_faulty_files_begin(void);
void        tn_faulty_files_end(void); /* asserts that every file is closed */
void        tn_fail_file(int64_t call, int code, bool for_ever);
int64_t     tn_file_calls(void);
const char *tn_file_call(int64_t call); /* name of the call, such as "write", for messages */
int64_t     tn_open_files(void);

/* The number of allocations and of file calls that were made to fail since the program started; tn_check_main prints
 * them. */
int64_t tn_faults_of_memory(void);
int64_t tn_faults_of_files(void);

/* The number of entries in the folder of `path`, without . and .. */
int tn_names_beside(const char *path);

#endif
