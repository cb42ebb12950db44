/* crash_disk.h — a disk in memory that simulates the state of files after a power failure.
 *
 * Every file operation of the library is recorded. The contents of a file are safe after a sync of the file, a name
 * after a sync of its folder. Of later operations, a failure can keep all, none, some of the writes, or torn writes;
 * changes of names are kept in order, up to one of them. */
#ifndef TENON_TESTS_COMMON_CRASH_DISK_H
#define TENON_TESTS_COMMON_CRASH_DISK_H

#include "core/core.h"

typedef enum {
    TN_CRASH_KEPT,    /* keep all operations that were not synced */
    TN_CRASH_DROPPED, /* keep none of them */
    TN_CRASH_SOME,    /* keep some of the writes, and the first changes of names */
    TN_CRASH_TORN,    /* keep some blocks of 512 or 4096 bytes of each write */
    TN_CRASH_KINDS
} tn_crash_kind;

/* The library uses this disk, empty at first, until tn_crash_disk_end. lies: a sync succeeds but has no effect. */
void tn_crash_disk_begin(bool lies);
void tn_crash_disk_end(void);

/* tn_crash_disk_calls: number of calls since the last settle. tn_crash_disk_settle: the current state becomes safe. */
int64_t tn_crash_disk_calls(void);
void    tn_crash_disk_settle(void);

/* tn_crash_disk_fail: reads now see the state after a power failure after `calls` calls, and writes fail, until
 * tn_crash_disk_mend. */
void tn_crash_disk_fail(int64_t calls, tn_crash_kind kind, tn_generator *chance);
void tn_crash_disk_mend(void);

#endif
