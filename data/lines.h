/* lines.h — texts as the data functions take and return them, and the lines of a text file. Include data.h. */
#ifndef TENON_DATA_LINES_H
#define TENON_DATA_LINES_H

#include "../core/core.h"
#include <string.h>

TN_C_BEGIN_

/* A borrowed part of a text: any bytes, not ended by a NUL. */
typedef struct {
    const char *at;
    size_t      bytes;
} tn_text;
static inline tn_text tn_text_of(const char *s)
{
    const tn_text t = {s ? s : "", s ? strlen(s) : 0};
    return t;
}

/* A text that grows. Initialise with zeros; pass it to any number of calls, which append to it or overwrite it and keep
 * its memory; free it with tn_string_free. A NUL follows the bytes. */
typedef struct {
    char  *at;
    size_t bytes, room;
} tn_string;
TN_API tn_status tn_string_add(tn_string *s, tn_text more);
TN_API void      tn_string_free(tn_string *s); /* resets it to zeros */

/* A growing array of token ids, used like a tn_string. */
typedef struct {
    int32_t *at;
    int64_t  n, room;
} tn_ids;
TN_API tn_status tn_ids_add(tn_ids *s, int32_t id);
TN_API void      tn_ids_free(tn_ids *s);

/* A callback that encodes a line: appends its token ids to `to`. Any result but TN_OK ends the work; the callback
 * raises the error first. It may be called from a helper thread, but only by one thread at a time. */
typedef struct {
    tn_status (*encode)(void *user, tn_text line, tn_ids *to);
    void *user;
} tn_encoder;

/* The lines of a file, held in memory, without line ends ("\n" or "\r\n") and without a byte order mark. An empty file
 * has no lines; a last line without a line end counts. */
typedef struct tn_lines tn_lines;
TN_API tn_lines        *tn_lines_load(const char *path);
TN_API int64_t          tn_lines_count(const tn_lines *l);
TN_API tn_text          tn_lines_at(const tn_lines *l, int64_t i); /* empty if i is out of range */
TN_API void             tn_lines_free(tn_lines *l);

TN_C_END_
#endif
