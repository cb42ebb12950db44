/* show.h — the frame of the examples of docs/site: EXAMPLE(name) { … } is a function that the test
 * runs in a scope of its own, with seed 1. What it prints is in outputs.txt; its text is on the pages of the names that
 * it uses. A comment before it is its heading. */
#ifndef TENON_DOCS_SITE_EXAMPLES_SHOW_H
#define TENON_DOCS_SITE_EXAMPLES_SHOW_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/extras.h>

void add_example(const char *file, int line, const char *name, void (*run)(void));

#define EXAMPLE(name)                                                                                                 \
    static void                              name##_run(void);                                                        \
    __attribute__((constructor)) static void name##_add(void) { add_example(__FILE__, __LINE__, #name, name##_run); } \
    static void                              name##_run(void)

#endif
