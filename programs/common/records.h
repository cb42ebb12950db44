/* records.h — the records that a command reads and prints, one per line: texts, or lines of JSON.
 *
 *     records r = {.count = count, .operands = operands, .file = file, .member = "text"};
 *     for (const char *text; (text = records_next(&r));) use(text);
 *     records_close(&r);
 *
 * The texts are the operands, or the lines of a file; an operand or a file "-", or neither, is standard input. A line
 * that starts with { is a JSON object, and its member is the text; without .member, .json is the object. */
#ifndef TENON_PROGRAMS_COMMON_RECORDS_H
#define TENON_PROGRAMS_COMMON_RECORDS_H

#include "texts.h"
#include <stdio.h>

typedef struct {
    int          count; /* number of operands */
    char       **operands;
    const char  *file, *member; /* file: NULL: none */
    int          at;
    FILE        *from; /* the file that is being read; NULL: none */
    int64_t      number;
    char        *line;
    size_t       room;
    tn_json     *json;
    const char  *name; /* the file's name in messages */
    broken_lines broken;
} records;
const char *records_next(records *r); /* valid until the next call; NULL: no more, or an error is set */
void        records_close(records *r);

/* Prints a complete JSON value as a line to standard output, and clears the writer. False: an error is set. */
bool records_print(tn_json_writer *w);

#endif
