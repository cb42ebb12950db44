/* crash_disk.h — a disk in memory that shows what a power failure can leave of the files that were written to it.
 *
 * Everything that the library does to files is recorded, call by call. What a file holds is on the disk for certain
 * once it was synced, a name once its folder was. Of what came later, a failure may leave all, nothing, a part of the
 * writes, or writes that were torn; of names, only those that were changed before one that is there. */
#ifndef TENON_TESTS_COMMON_CRASH_DISK_H
#define TENON_TESTS_COMMON_CRASH_DISK_H

#include "core/core.h"

typedef enum {
    TN_CRASH_KEPT,    /* all that was not synced is there, too */
    TN_CRASH_DROPPED, /* nothing of it */
    TN_CRASH_SOME,    /* some of the writes, in any order, and some of the names */
    TN_CRASH_TORN,    /* of each write some blocks of 512 or of 4096 bytes */
    TN_CRASH_KINDS
} tn_crash_kind;

/* The library's files are on this disk, empty at first, until the end. lies: says that it has synced, and has not. */
void tn_crash_disk_begin(bool lies);
void tn_crash_disk_end(void);

/* So many calls were recorded since all that was there was on the disk for certain; and that is so from now on. */
int64_t tn_crash_disk_calls(void);
void    tn_crash_disk_settle(void);

/* Files are read as they are found after the power failed behind that many calls; then as they are, again. Meanwhile
 * nothing can be written. */
void tn_crash_disk_fail(int64_t calls, tn_crash_kind kind, tn_generator *chance);
void tn_crash_disk_mend(void);

#endif
