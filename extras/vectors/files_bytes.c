/* files_bytes.c — bytes of vector files: reads from the start, with errors that name the position; writes after
 * counting. */
#include "core/base/toolbox.h"
#include "extras/vectors/files.h"

#include <math.h>
#include <stdarg.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool tn__in_open(tn__vectors_in *f, const char *path)
{
    f->at = 0;
    return tn__source_open(&f->source, tn__label(f->label, "tn_vectors_load", path), path);
}

void tn__in_close(tn__vectors_in *f) { tn__source_close(&f->source); }

bool tn__in_fail(const tn__vectors_in *f, const char *fmt, ...)
{
    char    text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return tn_raise_false(TN_EFORMAT, "%s: byte %lld: %s", f->label, (long long)f->at, text);
}

bool tn__in_take(tn__vectors_in *f, void *to, int64_t bytes)
{
    if (f->source.size - f->at < bytes)
        return tn__in_fail(f, "the file ends; expected %lld more bytes", (long long)bytes);
    if (!tn__source_read(&f->source, to, f->at, (size_t)bytes)) return false;
    f->at += bytes;
    return true;
}

int64_t tn__in_word(tn__vectors_in *f, char *to, int64_t most, char end)
{
    const int64_t n = tn__min_i64(most + 1, f->source.size - f->at);
    if (n > 0 && !tn__source_read(&f->source, to, f->at, (size_t)n)) return -1;
    const char *stop = n > 0 ? memchr(to, end, (size_t)n) : NULL;
    if (!stop) {
        tn__in_fail(f, "no end of a word within %lld bytes", (long long)most);
        return -1;
    }
    f->at += stop - to + 1;
    return stop - to;
}

tn_vectors *tn__in_vectors(const tn__vectors_in *f, int64_t words, int64_t dim, int64_t least_bytes)
{
    int64_t need;
    if (words < 1 || dim < 1 || words >= INT32_MAX / 2 || dim > 1 << 20) {
        tn__in_fail(f, "%lld words of %lld numbers: not vectors", (long long)words, (long long)dim);
        return NULL;
    }
    if (!tn__mul_i64(words, least_bytes, &need) || need > f->source.size - f->at) {
        tn__in_fail(f, "%lld words of %lld numbers do not fit in the remaining %lld bytes", (long long)words,
                    (long long)dim, (long long)(f->source.size - f->at));
        return NULL;
    }
    return tn__vectors_new(words, dim);
}

bool tn__in_name(const tn__vectors_in *f, tn_vectors *v, const char *word, int64_t bytes)
{
    const uint32_t before = v->words.n;
    char           shown[TN__QUOTED];
    if (bytes < 1) return tn__in_fail(f, "word %u is empty", before + 1);
    if (memchr(word, 0, (size_t)bytes)) return tn__in_fail(f, "word %u contains a NUL", before + 1);
    if (tn__strings_add(&v->words, word, (size_t)bytes) < 0) return false;
    if (v->words.n > before) return true;
    return tn__in_fail(f, "%s occurs twice", tn__quote(shown, word, (size_t)bytes, 60));
}

bool tn__in_finite(const tn__vectors_in *f, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return tn__in_fail(f, "a vector contains a number that is not finite");
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool tn__out_flush(tn__vectors_out *o)
{
    const size_t n = o->held;
    o->held = 0;
    return !n || tn__sink_write(&o->sink, o->buffer, n);
}

bool tn__out_put(tn__vectors_out *o, const void *data, size_t bytes)
{
    o->size += (int64_t)bytes;
    if (!o->writing) return true;
    if (bytes > sizeof o->buffer - o->held && !tn__out_flush(o)) return false;
    if (bytes > sizeof o->buffer) return tn__sink_write(&o->sink, data, bytes);
    memcpy(o->buffer + o->held, data, bytes);
    o->held += bytes;
    return true;
}
