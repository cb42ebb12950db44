/* records.c — see records.h. */
#include "core/system/system.h"

#include "records.h"

#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 16 << 20 };

static bool open_file(records *r, const char *path)
{
    const bool input = !strcmp(path, "-");
    r->from = input ? stdin : fopen(path, "rb");
    r->name = input ? "standard input" : path;
    r->number = 0;
    if (!r->from) tn_raise(TN_EIO, "'%s': %s", path, strerror(errno));
    return r->from != NULL;
}

static void close_file(records *r)
{
    if (r->from && r->from != stdin) fclose(r->from);
    r->from = NULL;
}

/* The text of a line: of the member, if the line is a JSON object. NULL: raised. */
static const char *text_of(records *r, size_t bytes)
{
    const char *text = r->line;
    char        where[300];
    tn_json_free(r->json), r->json = NULL;
    snprintf(where, sizeof where, "'%.200s', line %lld", r->name, (long long)r->number);
    tn_path_push(where);
    texts_line(&r->broken, r->number, (tn_text){r->line, bytes});
    if (memchr(r->line, 0, bytes)) tn_raise(TN_EFORMAT, "a NUL byte; expected a text in UTF-8");
    else if (*r->line == '{' && (r->json = tn_json_parse(r->line, bytes))) {
        const tn_json *v = r->member ? tn_json_get(r->json, r->member) : NULL;
        if (!r->member) text = r->line;
        else if (v) text = tn_json_string(v);
        else tn_raise(TN_EFORMAT, "the JSON object has no member \"%s\"", r->member);
    }
    tn_path_pop();
    return tn_error() == TN_OK ? text : NULL;
}

const char *records_next(records *r)
{
    size_t     bytes;
    const bool all = !r->count && !r->at; /* no operand: one file, or standard input */
    if (tn_error() != TN_OK) return NULL;
    if (!r->from && all && (r->at = 1) && !open_file(r, r->file ? r->file : "-")) return NULL;
    while (!r->from && r->at < r->count) {
        const char *operand = r->operands[r->at++];
        if (strcmp(operand, "-") != 0) return operand;
        if (!open_file(r, operand)) return NULL;
    }
    if (!r->from) return NULL;
    if (next_line_of(r->from, &r->line, &r->room, &bytes, LINE_MOST)) {
        r->number++;
        if (bytes && r->line[bytes - 1] == '\r') r->line[--bytes] = 0;
        return text_of(r, bytes);
    }
    close_file(r);
    return tn_error() == TN_OK && r->count ? records_next(r) : NULL;
}

void records_close(records *r)
{
    close_file(r);
    texts_warn_lines(&r->broken);
    tn_json_free(r->json);
    free(r->line);
    *r = (records){.count = 0};
}

bool records_print(tn_json_writer *w)
{
    const char *text = tn_json_text(w, NULL);
    if (text && (puts(text) == EOF || fflush(stdout))) tn_raise(TN_EIO, "cannot write to standard output");
    tn_json_writer_clear(w);
    return tn_error() == TN_OK;
}
