/* tasks.c — generated pairs of lines; see tasks.h. */
#include "tasks.h"

#include "dates.h"
#include <string.h>
#include <tenon/extras.h>

task task_of(const char *name)
{
    return !strcmp(name, "copy") ? TASK_COPY : !strcmp(name, "reverse") ? TASK_REVERSE : TASK_DATES;
}

/* Each pair has its own range of 2^20 positions of the generator, and each of its dates a part of 2^8 positions. */
void task_pair(task t, uint64_t seed, uint64_t number, int64_t length, bool held_out, char source[TASK_TEXT],
               char target[TASK_TEXT])
{
    size_t       n[2] = {0, 0};
    tn_generator g = {seed, number << 20};
    for (int64_t i = 0; i < length && i < TASK_LONGEST; i++) {
        char part[2][DATE_TEXT];
        if (t == TASK_DATES) {
            date_pair(seed, (number << 12) + (uint64_t)i, held_out, part[0], part[1]);
            for (int k = 0; k < 2; k++) {
                char        *to = k ? target : source;
                const size_t m = strlen(part[k]);
                if (i) to[n[k]++] = k ? ' ' : ';', to[n[k]] = 0;
                if (i && !k) to[n[k]++] = ' ';
                memcpy(to + n[k], part[k], m);
                n[k] += m;
            }
        } else {
            source[n[0]++] = (char)('a' + (int)tn_random_below(&g, 26));
        }
    }
    if (t != TASK_DATES) {
        n[1] = n[0];
        for (size_t i = 0; i < n[0]; i++) target[i] = source[t == TASK_COPY ? i : n[0] - 1 - i];
    }
    source[n[0]] = target[n[1]] = 0;
}
