/* positions.h — moves a corpus' source to a batch, and reads where it is, as a checkpoint does. */
#ifndef TENON_TESTS_COMMON_POSITIONS_H
#define TENON_TESTS_COMMON_POSITIONS_H

#include "data/data.h"
#include <stdio.h>
#include <string.h>

static inline tn_status seek(const tn_source *s, int64_t epoch, int64_t batch)
{
    char text[99];
    snprintf(text, sizeof text, "{\"epoch\": %lld, \"batch\": %lld}", (long long)epoch, (long long)batch);
    tn_json *at = tn_json_parse(text, strlen(text));
    s->begin(s->user, at);
    tn_json_free(at);
    return tn_error();
}

static inline int64_t position(const tn_source *s, const char *member) /* "epoch" or "batch" */
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    s->save(s->user, w);
    tn_json_close(w);
    const char   *text = tn_json_text(w, NULL);
    tn_json      *at = tn_json_parse(text, strlen(text));
    const int64_t value = tn_json_i64(tn_json_need(at, member));
    tn_json_free(at);
    tn_json_writer_free(w);
    return value;
}

#endif
