/* tasks.h — pairs of lines whose length can be set: letters to be copied or reversed, and dates one after the other.
 * The same seed and number give the same pair everywhere. */
#ifndef TENON_EXAMPLES_TRANSLATE_TASKS_H
#define TENON_EXAMPLES_TRANSLATE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { TASK_COPY = 0, TASK_REVERSE, TASK_DATES } task;
#define TASKS "copy|reverse|dates"
task task_of(const char *name); /* one of TASKS */

/* A line of so many letters or dates, and what it should become; held: dates on days that are held out. */
enum { TASK_LONGEST = 100, TASK_TEXT = 8192 };
void task_pair(task t, uint64_t seed, uint64_t number, int64_t length, bool held, char source[TASK_TEXT],
               char target[TASK_TEXT]);

/* Two files of them, from number 0 on. False: an error stands. (sample.c) */
bool sample_pairs(task t, uint64_t from, int64_t n, int64_t each_length, bool is_held, const char *source,
                  const char *target);

#endif
