/* tasks.h — generated pairs of lines of a given length: letters to copy or to reverse, or a list of dates. The same
 * seed and number give the same pair on every machine. */
#ifndef TENON_PROGRAMS_TRANSLATE_TASKS_H
#define TENON_PROGRAMS_TRANSLATE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { TASK_COPY = 0, TASK_REVERSE, TASK_DATES } task;
#define TASKS "copy|reverse|dates"
task task_of(const char *name); /* name: one of TASKS */

/* Writes a line of `length` letters or dates (at most TASK_LONGEST) and its target; held: dates on held-out days. */
enum { TASK_LONGEST = 100, TASK_TEXT = 8192 };
void task_pair(task t, uint64_t seed, uint64_t number, int64_t length, bool held_out, char source[TASK_TEXT],
               char target[TASK_TEXT]);

/* Writes the pairs with the numbers 0 to n - 1 to two files. Returns false if an error is set. (sample.c) */
bool sample_pairs(task t, uint64_t from, int64_t n, int64_t each_length, bool held_out, const char *source,
                  const char *target);

#endif
