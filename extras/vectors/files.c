/* files.c — vector files: chooses the reader and the writer; safetensors. */
#include "extras/vectors/files.h"
#include "core/base/toolbox.h"

#include <math.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_gap(char c) { return tn__is_gap(c); }
static bool is_line_end(char c) { return c == '\n' || !c; }

/* Makes a vector of each row; is_end: the bytes that separate words, because words of a file may contain blanks. */
static tn_vectors *of_rows(tn_text words, tn_tensor *rows, bool (*is_end)(char c))
{
    if (tn__blocked()) return NULL;
    if (!rows || tn_ndim(rows) != 2 || !words.at || !tn_dtype_is_float(tn_dtype_of(rows)))
        return tn_raise_null(TN_EINVAL,
                             "tn_vectors_from: rows must be [words, dim] of a floating dtype, and words not NULL");
    const int64_t n = tn_size(rows, 0), dim = tn_size(rows, 1);
    tn_vectors   *v = tn__vectors_new(n, dim);
    int64_t       found = 0;
    for (size_t at = 0; v && at < words.bytes;) {
        const size_t from = at;
        while (at < words.bytes && !is_end(words.at[at])) at++;
        if (at > from && found++ < n && tn__strings_add(&v->words, words.at + from, at - from) < 0) break;
        at += at == from;
    }
    if (v && tn__self.error == TN_OK && (found != n || v->words.n != found))
        tn_raise(TN_EINVAL, "tn_vectors_from: %lld rows, but %lld words (%u different)", (long long)n, (long long)found,
                 v->words.n);
    bool done = v && tn_copy_out(rows, TN_F32, v->row, (size_t)(n * dim) * sizeof *v->row) == TN_OK;
    for (int64_t i = 0; done && i < n * dim; i++) done = isfinite(v->row[i]);
    if (v && !done) tn_raise(TN_EINVAL, "tn_vectors_from: a number is not finite");
    if (done && tn__vectors_finish(v)) return v;
    tn_vectors_free(v);
    return NULL;
}

static tn_vectors *read_safetensors(const char *path)
{
    tn_safetensors *f = tn_safetensors_open(path);
    if (!f) return NULL;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *rows = tn_safetensors_get(f, "vectors"), *words = tn_safetensors_get(f, "words");
    tn_vectors    *v = NULL;
    if (tn__self.error == TN_OK && (tn_dtype_of(words) != TN_U8 || !tn_is_contiguous(words)))
        tn_raise(TN_EFORMAT, "tn_vectors_load: '%s': \"words\" must be u8, each word followed by a line end", path);
    if (tn__self.error == TN_OK) v = of_rows((tn_text){tn_data(words), (size_t)tn_numel(words)}, rows, is_line_end);
    tn_scope_end(s);
    tn_safetensors_close(f);
    return v;
}

/* Guesses the format from the first bytes. */
static tn_vectors_format guess(const tn__vectors_in *f)
{
    unsigned char b[512] = {0};
    const int64_t n = tn__min_i64(f->source.size, sizeof b);
    if (!tn__source_read(&f->source, b, 0, (size_t)n)) return TN_VECTORS_ANY;
    uint32_t magic;
    memcpy(&magic, b, sizeof magic);
    if (n >= 4 && magic == 793712314) return TN_VECTORS_FASTTEXT_BIN;
    if (n > 8 && b[8] == '{' && !b[7]) return TN_VECTORS_SAFETENSORS;
    int64_t line = 0, fields = 0;
    while (line < n && b[line] != '\n') line++;
    for (int64_t i = 0; i < line; i++) fields += b[i] > ' ' && (i + 1 == line || b[i + 1] <= ' ');
    if (fields != 2) return TN_VECTORS_GLOVE_TEXT;
    for (int64_t i = line + 1; i < n; i++)
        if (b[i] < ' ' && b[i] != '\n' && b[i] != '\t' && b[i] != '\r') return TN_VECTORS_BINARY;
    /* 500 bytes of binary numbers nearly always contain a control character; short files are recognised by their end */
    return n > line + 1 && n == f->source.size && b[n - 1] != '\n' && b[n - 1] > 0x7e ? TN_VECTORS_BINARY
                                                                                      : TN_VECTORS_TEXT;
}

tn_vectors *tn_vectors_load(const char *path, tn_vectors_format format)
{
    if (tn__blocked()) return NULL;
    tn__vectors_in f;
    tn_vectors    *v = NULL;
    if ((int)format < 0 || format > TN_VECTORS_SAFETENSORS)
        return tn_raise_null(TN_EINVAL, "tn_vectors_load: format %d does not exist", (int)format);
    if (!tn__in_open(&f, path)) return NULL;
    if (format == TN_VECTORS_ANY) format = guess(&f);
    if (format == TN_VECTORS_TEXT || format == TN_VECTORS_GLOVE_TEXT)
        v = tn__read_text(path, format == TN_VECTORS_TEXT);
    else if (format == TN_VECTORS_BINARY) v = tn__read_binary(&f);
    else if (format == TN_VECTORS_FASTTEXT_BIN) v = tn__read_fasttext(&f);
    else if (format == TN_VECTORS_SAFETENSORS) v = read_safetensors(path);
    tn__in_close(&f);
    if (v && tn__self.error == TN_OK && tn__vectors_finish(v)) return v;
    tn_vectors_free(v);
    return NULL;
}

tn_vectors *tn_vectors_from(tn_text words, tn_tensor *rows) { return of_rows(words, rows, is_gap); }

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static tn_status write_safetensors(const tn_vectors *v, const char *path)
{
    const tn_scope         s = tn_scope_begin();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *words = tn_empty_of(TN_U8, (tn_shape){.n = 1, .d = {v->words.bytes}});
    if (words) {
        char *to = tn_data_mut(words);
        memcpy(to, v->words.text, (size_t)v->words.bytes);
        for (int64_t i = 0; i < v->words.bytes; i++)
            if (!to[i]) to[i] = '\n';
    }
    tn_safetensors_put(w, "vectors", tn_vectors_tensor(v));
    tn_safetensors_put(w, "words", words);
    const tn_status done = tn_safetensors_save(w, path);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    return done;
}

/* True if the format can store the words: a word with blanks needs a format in which a word ends otherwise, by the
 * known count of numbers or by a line end. */
static bool can_store(const tn_vectors *v, tn_vectors_format format)
{
    const int64_t first = format == TN_VECTORS_GLOVE_TEXT ? tn__min_i64(1, v->words.n) : v->words.n;
    if (format != TN_VECTORS_GLOVE_TEXT && format != TN_VECTORS_BINARY) return true;
    for (int64_t i = 0; i < first; i++) {
        const tn_text w = tn__strings_at(&v->words, i);
        char          shown[TN__QUOTED];
        if (!memchr(w.at, ' ', w.bytes) && (format == TN_VECTORS_BINARY || !memchr(w.at, '\t', w.bytes))) continue;
        return tn_raise_false(TN_EINVAL,
                              "tn_vectors_save: %s contains a blank, which %s must not; save as TN_VECTORS_TEXT or "
                              "TN_VECTORS_SAFETENSORS",
                              tn__quote(shown, w.at, w.bytes, 40),
                              format == TN_VECTORS_BINARY ? "a word in the binary format" : "GloVe's first word");
    }
    return true;
}

tn_status tn_vectors_save(const tn_vectors *v, const char *path, tn_vectors_format format)
{
    static tn__vectors_writer *const writers[] = {[TN_VECTORS_ANY] = tn__write_text,
                                                  [TN_VECTORS_TEXT] = tn__write_text,
                                                  [TN_VECTORS_GLOVE_TEXT] = tn__write_glove,
                                                  [TN_VECTORS_BINARY] = tn__write_binary,
                                                  [TN_VECTORS_FASTTEXT_BIN] = tn__write_fasttext};
    if (tn__blocked()) return tn__self.error;
    if (!v || (int)format < 0 || format > TN_VECTORS_SAFETENSORS)
        return tn_raise(TN_EINVAL, "tn_vectors_save: %s", v ? "the format does not exist" : "v is NULL");
    if (format == TN_VECTORS_FASTTEXT_BIN && !v->grams.max_n)
        return tn_raise(TN_EINVAL, "tn_vectors_save: the vectors have no n-grams, which a FastText model needs");
    if (!can_store(v, format)) return tn__self.error;
    if (format == TN_VECTORS_SAFETENSORS) return write_safetensors(v, path);
    tn__vectors_out *o = tn__mem_zeroed(sizeof *o);
    char             label[TN__LABEL];
    if (!o) return tn__self.error;
    writers[format](o, v);
    if (tn__sink_open(&o->sink, tn__label(label, "tn_vectors_save", path), path, o->size)) {
        o->writing = true;
        const bool done = writers[format](o, v) && tn__out_flush(o);
        tn__sink_end(&o->sink, done);
    }
    tn__mem_put(o, sizeof *o);
    return tn__self.error;
}
