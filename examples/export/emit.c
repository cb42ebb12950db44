/* emit.c — see emit.h. */
#include "emit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool emit_open(emitter *e, const char *path)
{
    if (strlen(path) >= sizeof e->path)
        return tn_raise_false(TN_EINVAL, "the file name has %zu bytes, expected at most %zu", strlen(path),
                              sizeof e->path - 1);
    snprintf(e->path, sizeof e->path, "%s", path);
    snprintf(e->part, sizeof e->part, "%s.part", path);
    e->f = fopen(e->part, "w");
    if (!e->f) return tn_raise_false(TN_EIO, "cannot write '%s': %s", e->part, strerror(errno));
    return true;
}

bool emit_close(emitter *e)
{
    free(e->weight);
    if (!e->f) return false;
    const bool failed = ferror(e->f) != 0;
    if ((fclose(e->f) != 0 || failed) && tn_error() == TN_OK)
        tn_raise(TN_EIO, "cannot write '%s': %s", e->path, strerror(errno));
    if (tn_error() == TN_OK && rename(e->part, e->path) != 0)
        tn_raise(TN_EIO, "cannot write '%s': %s", e->path, strerror(errno));
    if (tn_error() != TN_OK) remove(e->part);
    e->f = NULL;
    return tn_error() == TN_OK;
}

void emit_feature(emitter *e, const char *name, bool on)
{
    const int most = sizeof e->feature / sizeof *e->feature;
    if (on && e->features < most) e->feature[e->features++] = name;
}

void emit(emitter *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(e->f, fmt, args);
    va_end(args);
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

/* -1: the line is not "#if NAME"; else whether the name is a feature. */
static int condition(const emitter *e, const char *line)
{
    if (strncmp(line, "#if ", 4) != 0) return -1;
    const char *name = line + 4;
    if (!*name || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")]) return -1;
    for (int i = 0; i < e->features; i++)
        if (!strcmp(e->feature[i], name)) return 1;
    return 0;
}

void emit_template(emitter *e, const char *const *lines)
{
    enum { DEEP = 8 };
    struct {
        bool ours, on; /* ours: decided here; on: lines are written */
    } level[DEEP] = {{false, true}};
    int  depth = 0;
    bool begun = false;
    for (; *lines; lines++) {
        const char *line = *lines;
        const int   is = condition(e, line);
        if (!begun) { /* the first comment ends at an empty line */
            begun = !*line;
            continue;
        }
        if (!strncmp(line, "#if", 3) && depth + 1 < DEEP) {
            depth++;
            level[depth].ours = is >= 0, level[depth].on = level[depth - 1].on && is != 0;
            if (is >= 0) continue;
        } else if (depth && level[depth].ours && !strcmp(line, "#else")) {
            level[depth].on = level[depth - 1].on && !level[depth].on;
            continue;
        } else if (depth && !strcmp(line, "#endif")) {
            const bool ours = level[depth].ours;
            depth--;
            if (ours) continue;
        }
        if (level[depth].on) emit(e, "%s\n", line);
    }
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static void add_weight(emitter *e, const char *name, const tn_tensor *x, int64_t from, int64_t out, int64_t n)
{
    if (tn_error() != TN_OK) return;
    if (e->tensors == e->room) {
        emit_weight *more = realloc(e->weight, (size_t)(2 * e->room + 64) * sizeof *more);
        if (!more) {
            tn_raise(TN_ENOMEM, "no memory for the list of weights");
            return;
        }
        e->weight = more, e->room = 2 * e->room + 64;
    }
    emit_weight *w = &e->weight[e->tensors++];
    *w = (emit_weight){.x = x, .from = from, .out = out, .at = e->weights, .n = emit_wide(n)};
    snprintf(w->name, sizeof w->name, "%s", name);
    e->weights += w->n;
}

void emit_vector(emitter *e, const char *name, const tn_tensor *x)
{
    if (x) add_weight(e, name, x, 0, 0, tn_numel(x));
}
void emit_matrix(emitter *e, const char *name, const tn_tensor *w, int64_t from, int64_t out)
{
    add_weight(e, name, w, from, out, tn_size(w, 1) * emit_wide(out));
}

int64_t emit_weight_at(const emitter *e, const char *name)
{
    for (int64_t i = 0; i < e->tensors; i++)
        if (!strcmp(e->weight[i].name, name)) return e->weight[i].at;
    return -1;
}

bool emit_fits(const emitter *e, int64_t state)
{
    const int64_t most = (int64_t)1 << 30;
    if (4 * e->weights <= most && state <= most) return tn_error() == TN_OK;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "a model with %lld bytes of weights and %lld of state cannot be exported to C; expected at most "
        "%lld each",
        (long long)(4 * e->weights), (long long)state, (long long)most);
}

/* A row of the weights is a string of at most 4095 bytes, the length that all compilers must accept. As numbers,
 * weights take ten times as long to compile. */
enum { ROW = 4092 };

void emit_weight_names(emitter *e)
{
    emit(e,
         "/* All weights, as bytes at the end of the file; names of those that are not of a layer. */\n"
         "static const union weights {\n    unsigned char bytes[%lld][%d] TEXT_WITHOUT_END;\n"
         "    float         x[%lld];\n} weights;\n",
         (long long)((4 * e->weights + ROW - 1) / ROW), ROW, (long long)e->weights);
    for (int64_t i = 0; i < e->tensors; i++)
        if (strncmp(e->weight[i].name, "layer", 5) != 0)
            emit(e, "#define %s (weights.x + %lld)\n", e->weight[i].name, (long long)e->weight[i].at);
}

typedef struct {
    FILE *f;
    int   column, bytes; /* of the line, of the row */
    bool  digit;         /* the last byte is an octal number that a digit would continue */
} byte_writer;

static void put_byte(byte_writer *w, unsigned char c)
{
    if (w->bytes == ROW) fprintf(w->f, "\",\n"), w->bytes = 0, w->digit = false;
    if (w->bytes == 0) w->column = fprintf(w->f, "    \"");
    if (w->column > 112) fprintf(w->f, "\"\n"), w->column = fprintf(w->f, "    \""), w->digit = false;
    const bool plain = c >= 32 && c < 127 && c != '"' && c != '\\' && c != '?';
    if (plain && !(w->digit && c >= '0' && c <= '9')) fputc(c, w->f), w->column++, w->digit = false;
    else w->column += fprintf(w->f, plain ? "\\%03o" : "\\%o", c), w->digit = !plain;
    w->bytes++;
}

static void put_number(byte_writer *w, float x, const char *name)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!(x - x == 0) && tn_error() == TN_OK)
        tn_raise(TN_ENUMERIC, "%s has the value %g; only finite weights can be exported", name, (double)x);
    for (int i = 0; i < 4; i++) put_byte(w, (unsigned char)(bits >> 8 * i));
}

void emit_weights(emitter *e)
{
    byte_writer to = {.f = e->f};
    emit(e, "static const union weights weights = {{\n");
    for (int64_t i = 0; i < e->tensors && tn_error() == TN_OK; i++) {
        const emit_weight *w = &e->weight[i];
        const int64_t      in = w->out ? tn_size(w->x, 1) : w->n, wide = w->out ? emit_wide(w->out) : 1;
        const int64_t      all = tn_numel(w->x);
        for (int64_t k = 0; k < in; k++)
            for (int64_t j = 0; j < wide; j++) {
                const int64_t at = w->out ? (w->from + j) * in + k : k;
                put_number(&to, (w->out ? j < w->out : k < all) ? (float)tn_get(w->x, at) : 0, w->name);
            }
    }
    emit(e, "\"}};\n");
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

void emit_numbers(emitter *e, const char *name, int64_t n, int width, const int64_t *x)
{
    int column = 0;
    emit(e, width > 1 ? "static const int32_t %s[%lld][%d] = {\n" : "static const int32_t %s[%lld] = {\n", name,
         (long long)(n > 0 ? n : 1), width);
    for (int64_t i = 0; i < (n > 0 ? n : 1); i++) {
        if (width > 1) column += fprintf(e->f, "{");
        for (int k = 0; k < width; k++)
            column += fprintf(e->f, k ? ", %lld" : "%lld", n > 0 ? (long long)x[i * width + k] : 0);
        column += fprintf(e->f, width > 1 ? "}, " : ", ");
        if (column > 100) fputc('\n', e->f), column = 0;
    }
    emit(e, "};\n");
}

void emit_sizes(emitter *e, const emit_size *sizes, size_t n)
{
    emit(e, "enum {\n");
    for (size_t i = 0; i < n; i++) {
        emit(e, "    %s = %lld%s", sizes[i].name, (long long)sizes[i].n, i + 1 < n ? "," : "");
        if (sizes[i].text) emit(e, " /* %s */", sizes[i].text);
        emit(e, "\n");
    }
    emit(e, "};\n");
}

void emit_string(emitter *e, const char *text, size_t bytes)
{
    fputc('"', e->f);
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') fprintf(e->f, "\\%c", c);
        else if (c < 32 || c > 126 || c == '?') fprintf(e->f, "\\%03o", c);
        else fputc(c, e->f);
    }
    fputc('"', e->f);
}
