/* lines.h — texts as the data functions take and give them, and the lines of a text file. Include data.h. */
#ifndef TENON_DATA_LINES_H
#define TENON_DATA_LINES_H

#include "../core/core.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of text: somebody else's bytes, any bytes, not ended by a NUL. */
typedef struct {
    const char *at;
    size_t      bytes;
} tn_text;
static inline tn_text tn_text_of(const char *s)
{
    const tn_text t = {s ? s : "", s ? strlen(s) : 0};
    return t;
}

/* A text that grows: begin with zeros, give it to any number of calls, each of which begins it anew; free it at the
 * end. The bytes are followed by a NUL. */
typedef struct {
    char  *at;
    size_t bytes, room;
} tn_string;
TN_API tn_status tn_string_add(tn_string *s, tn_text more);
TN_API void      tn_string_free(tn_string *s); /* zeros again */

/* Token numbers that grow, the same way. */
typedef struct {
    int32_t *at;
    int64_t  n, room;
} tn_ids;
TN_API tn_status tn_ids_add(tn_ids *s, int32_t id);
TN_API void      tn_ids_free(tn_ids *s);

/* A callback that encodes a line: adds its token numbers to `to`. Anything but TN_OK ends the work (raise the error
 * that says why). It may be called from a helper thread, but by one thread at a time. */
typedef struct {
    tn_status (*encode)(void *user, tn_text line, tn_ids *to);
    void *user;
} tn_encoder;

/* The lines of a file, all in memory, without their ends ("\n" or "\r\n") and a byte order mark before the first. An
 * empty file has none, and a last line without an end is a line. */
typedef struct tn_lines tn_lines;
TN_API tn_lines        *tn_lines_load(const char *path);
TN_API int64_t          tn_lines_count(const tn_lines *l);
TN_API tn_text          tn_lines_at(const tn_lines *l, int64_t i); /* empty for an i that is not there */
TN_API void             tn_lines_free(tn_lines *l);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
