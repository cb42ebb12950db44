/* emit.c — see emit.h. */
#include "core/system/system.h"

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

static bool rename_to(const char *part, const char *path)
{
    return tn__sys_rename(part, path) == 0 || tn_raise_false(TN_EIO, "cannot write '%s': %s", path, strerror(errno));
}

static void append(char *to, size_t room, const char *fmt, ...) TN_PRINTF(3, 4);
static void append(char *to, size_t room, const char *fmt, ...)
{
    const size_t n = strlen(to);
    va_list      args;
    va_start(args, fmt);
    vsnprintf(to + n, room - n, fmt, args);
    va_end(args);
}

void emit_interface(emitter *e, const emit_function *f)
{
    emit(e, "\n/* See the functions' comments. */\n");
    for (; f->prototype; f++) {
        emit(e, "%s\n", f->prototype);
        append(e->prototypes, sizeof e->prototypes, "\n/* %s */\n%s\n", f->text, f->prototype);
    }
    emit(e, "\n");
}

void emit_constant(emitter *e, const char *name, int64_t value)
{
    append(e->header, sizeof e->header, "    MODEL_%s = %lld,\n", name, (long long)value);
}

/* Writes the header file, under another name until emit_close renames it. */
static void write_header(const emitter *e, const char *path, const char *part)
{
    const char *slash = strrchr(e->path, '/'), *dot = strrchr(path, '/');
    FILE       *f = fopen(part, "w");
    if (f)
        fprintf(
            f,
            "/* %s — the functions of %s, a model that Tenon has exported. A program has one such model, whose\n"
            " * functions are not for several threads at once. */\n"
            "#ifndef MODEL_H\n#define MODEL_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
            "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nenum {\n%s};\n%s\n#ifdef __cplusplus\n}\n#endif\n#endif\n",
            dot ? dot + 1 : path, slash ? slash + 1 : e->path, e->header, e->prototypes);
    const bool failed = !f || ferror(f) != 0;
    if ((f && fclose(f) != 0) || failed) tn_raise(TN_EIO, "cannot write '%s': %s", part, strerror(errno));
}

bool emit_close(emitter *e)
{
    char         header[1040], part[1048];
    const size_t n = strlen(e->path), stem = n > 2 && !strcmp(e->path + n - 2, ".c") ? n - 2 : n;
    snprintf(header, sizeof header, "%.*s.h", (int)stem, e->path), snprintf(part, sizeof part, "%s.part", header);
    free(e->weight);
    if (!e->f) return false;
    const bool failed = ferror(e->f) != 0;
    if ((fclose(e->f) != 0 || failed) && tn_error() == TN_OK)
        tn_raise(TN_EIO, "cannot write '%s': %s", e->path, strerror(errno));
    const bool apart = e->weights_path[0] != 0;
    if (tn_error() == TN_OK) write_header(e, header, part);
    if (tn_error() == TN_OK && rename_to(part, header) && (!apart || rename_to(e->weights_part, e->weights_path)))
        rename_to(e->part, e->path);
    if (tn_error() != TN_OK) remove(e->part), remove(part);
    if (tn_error() != TN_OK && apart) remove(e->weights_part);
    e->f = NULL;
    return tn_error() == TN_OK;
}

static bool has_feature(const emitter *e, const char *name)
{
    for (int i = 0; i < e->features; i++)
        if (!strcmp(e->feature[i], name)) return true;
    return false;
}

void emit_feature(emitter *e, const char *name, bool on)
{
    /* What a part of program/arithmetic.c calls. A row's parts come after the rows that need them. */
    static const char *const needs[][2] = {{"SILU", "TAIL"},
                                           {"SILU", "TIMES_SIGMOID"},
                                           {"GELU", "TAIL"},
                                           {"GELU_TANH", "TAIL"},
                                           {"GELU_TANH", "TIMES_SIGMOID"},
                                           {"TIMES_SIGMOID", "SIGMOID_PARTS"},
                                           {"SIGMOID", "SIGMOID_PARTS"},
                                           {"SIGMOID", "TABLES"},
                                           {"TANH", "TABLES"},
                                           {"TAIL", "TABLES"},
                                           {"SIGMOID_PARTS", "EXP"},
                                           {"ATTENTION", "EXP"},
                                           {"ATTENTION", "FLOAT_PRODUCTS"},
                                           {"FLOATS", "FLOAT_PRODUCTS"},
                                           {"SOFTMAX", "EXP"},
                                           {"SOFTMAX", "TOTAL"},
                                           {"NORM", "TOTAL"}};
    const int                most = sizeof e->feature / sizeof *e->feature;
    if (!on || has_feature(e, name) || e->features == most) return;
    e->feature[e->features++] = name;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (has_feature(e, needs[i][0]) && !has_feature(e, needs[i][1]) && e->features < most)
            e->feature[e->features++] = needs[i][1];
}

void emit(emitter *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(e->f, fmt, args);
    va_end(args);
}

void emit_title(emitter *e, const emit_about *a)
{
    const char *slash = strrchr(a->path, '/'), *name = slash && slash[1] ? slash + 1 : a->path;
    emit(e,
         "/* Compile with -march=native, or on x86-64 at least -mfma: without them, it is 5 times slower there.\n *\n");
    emit(e, " * %s as C99, written by Tenon's %s export: %s, %lld layers of width %lld.\n *\n", name, a->program,
         a->kind, (long long)a->layers, (long long)a->dim);
    emit(e,
         " *     cc -std=c99 -O2 -march=native -DMODEL_MAIN model.c -lm -o model     (gcc before version 12: -O3)\n"
         " *     %s\n *\n"
         " * Without MODEL_MAIN it is a part of a program: the functions model_... below are its interface. It calls\n"
         " * exp, fmaf, sqrt and fabsf of the C library, allocates nothing, and is not for several threads at once.\n"
         " * The results have the bits of Tenon's.\n *\n"
         " * Memory: the model's state %lld bytes, the tokenizer's texts %lld, of main %lld;\n"
         " * on the stack at most %lld; constants: the weights %lld bytes, and tables. */\n\n",
         a->use, (long long)(a->state + 16 * e->widest), (long long)a->texts, (long long)a->main, (long long)a->stack,
         (long long)(4 * e->weights));
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

/* -1: the line is not "#if NAME"; else whether the name is a feature. */
static int condition(const emitter *e, const char *line)
{
    if (strncmp(line, "#if ", 4) != 0) return -1;
    const char *name = line + 4;
    if (!*name || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")]) return -1;
    return has_feature(e, name);
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
    if (x && tn_is_packed(x)) x = tn_unpack(x);
    if (x) add_weight(e, name, x, 0, 0, tn_numel(x));
}
void emit_matrix(emitter *e, const char *name, const tn_tensor *w, int64_t from, int64_t out)
{
    const tn_tensor *packed = tn_is_packed(w) ? w : NULL;
    if (packed && memcmp(tn_data(packed), "TN INT8\2", 8) != 0) {
        tn_raise(TN_EUNSUPPORTED, "%s: weights of this kind cannot be exported; expected f32 or int8", name);
        return;
    }
    if (packed && !(w = tn_unpack(packed))) return;
    const int64_t in = tn_size(w, 1), wide = emit_wide(out);
    add_weight(e, name, w, from, out, packed ? wide + (in + in % 2) * wide / 4 : in * wide);
    if (tn_error() == TN_OK) e->weight[e->tensors - 1].packed = packed;
    emit_feature(e, "INT", packed != NULL), emit_feature(e, "FLOATS", !packed);
    emit_feature(e, "OUTPUT_INT", packed && !strcmp(name, "output"));
    if (packed && in > e->widest) e->widest = emit_wide(in);
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
 * weights take ten times as long to compile. More than APART bytes, as text three times as many, are a second file. */
enum { ROW = 4092, APART = 16 << 20 };

static int64_t weight_rows(const emitter *e) { return (4 * e->weights + ROW - 1) / ROW; }

static const char *weights_name(const emitter *e)
{
    const char *slash = strrchr(e->weights_path, '/');
    return slash ? slash + 1 : e->weights_path;
}

/* C has no standard way to include bytes: an assembler directive does it, with gcc and clang for ELF systems. */
static void declare_apart(emitter *e)
{
    const size_t n = strlen(e->path), stem = n > 2 && !strcmp(e->path + n - 2, ".c") ? n - 2 : n;
    snprintf(e->weights_path, sizeof e->weights_path, "%.*s.bin", (int)stem, e->path);
    snprintf(e->weights_part, sizeof e->weights_part, "%s.part", e->weights_path);
    emit(e,
         "/* All weights are in a file, read by the assembler: compile in its folder, or with\n"
         " * -DMODEL_WEIGHTS='\"FOLDER/%s\"'. Names of those that are not of a layer follow. */\n"
         "#ifndef MODEL_WEIGHTS\n#define MODEL_WEIGHTS ",
         weights_name(e));
    emit_string(e, weights_name(e), strlen(weights_name(e)));
    emit(
        e,
        "\n#endif\n#if !defined __GNUC__ || !defined __ELF__\n"
        "#error \"the file of the weights needs gcc or clang for ELF; a smaller model, or in int8, has none\"\n#endif\n"
        "extern const union weights {\n    unsigned char bytes[%lld][%d];\n    float         x[%lld];\n}"
        " weights __asm__(\"model_weights\") __attribute__((visibility(\"hidden\")));\n",
        (long long)weight_rows(e), ROW, (long long)e->weights);
}

void emit_weight_names(emitter *e)
{
    if (4 * e->weights > APART) declare_apart(e);
    else
        emit(e,
             "/* All weights, as bytes at the end of the file; names of those that are not of a layer. */\n"
             "static const union weights {\n    unsigned char bytes[%lld][%d] TEXT_WITHOUT_END;\n"
             "    float         x[%lld];\n} weights;\n",
             (long long)weight_rows(e), ROW, (long long)e->weights);
    if (e->widest) emit(e, "enum { WIDEST = %lld }; /* input of a matrix in 8 bits */\n", (long long)e->widest);
    for (int64_t i = 0; i < e->tensors; i++)
        if (strncmp(e->weight[i].name, "layer", 5) != 0)
            emit(e, "#define %s (weights.x + %lld)\n", e->weight[i].name, (long long)e->weight[i].at);
}

typedef struct {
    FILE *f;
    int   column, bytes; /* column in the line; bytes of the row */
    bool  digit;         /* the last byte is an octal number that a digit would continue */
    bool  raw;           /* bytes as they are */
} byte_writer;

static void put_byte(byte_writer *w, unsigned char c)
{
    if (w->raw) {
        fputc(c, w->f);
        return;
    }
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

/* A matrix in int8, see linear() in program/arithmetic.c. The packed tensor has, after 64 bytes, 16 rows at a time:
 * their scales, their sums, and a block of 128 bytes for each 8 columns. */
static void put_bytes(byte_writer *to, const emit_weight *w)
{
    enum { HEAD = 64, ROWS = 16, PANEL_HEAD = 128, BLOCK = 128, COLUMNS = 8 };
    const int64_t  in = tn_size(w->x, 1), wide = emit_wide(w->out), panel = PANEL_HEAD + (in + 7) / COLUMNS * BLOCK;
    const uint8_t *from = tn_data(w->packed);
    for (int64_t j = 0; from && j < wide; j++) {
        const int64_t row = w->from + j;
        float         scale = 0;
        if (j < w->out) memcpy(&scale, from + HEAD + row / ROWS * panel + row % ROWS * 4, sizeof scale);
        put_number(to, scale, w->name);
    }
    for (int64_t n = 0; from && n < (in + in % 2) * wide; n++) {
        const int64_t  j = n / (16 * (in + in % 2)) * 16 + n % 32 / 2, k = n % (16 * (in + in % 2)) / 32 * 2 + n % 2;
        const int64_t  row = w->from + j;
        const uint8_t *part = from + HEAD + row / ROWS * panel;
        const bool     in_use = j < w->out && k < in;
        put_byte(to, in_use ? part[PANEL_HEAD + k / 4 * (BLOCK / 2) + row % ROWS * 4 + k % 4] : 0);
    }
}

static void put_weights(emitter *e, byte_writer *to)
{
    for (int64_t i = 0; i < e->tensors && tn_error() == TN_OK; i++) {
        const emit_weight *w = &e->weight[i];
        if (w->packed) {
            put_bytes(to, w);
            continue;
        }
        const int64_t in = w->out ? tn_size(w->x, 1) : w->n, wide = w->out ? emit_wide(w->out) : 1;
        const int64_t all = tn_numel(w->x);
        for (int64_t n = 0; n < in * wide; n++) {
            const int64_t j = n / (16 * in) * 16 + n % 16, k = n / 16 % in; /* panels of 16 outputs */
            const int64_t at = w->out ? (w->from + j) * in + k : n;
            put_number(to, (w->out ? j < w->out : n < all) ? (float)tn_get(w->x, at) : 0, w->name);
        }
    }
}

/* The file is as long as the object, whose last row may be longer than the weights. */
static void put_apart(emitter *e)
{
    byte_writer to = {.f = fopen(e->weights_part, "wb"), .raw = true};
    if (!to.f) {
        tn_raise(TN_EIO, "cannot write '%s': %s", e->weights_part, strerror(errno));
        return;
    }
    put_weights(e, &to);
    for (int64_t i = 4 * e->weights; i < weight_rows(e) * ROW; i++) put_byte(&to, 0);
    const bool failed = ferror(to.f) != 0;
    if ((fclose(to.f) != 0 || failed) && tn_error() == TN_OK)
        tn_raise(TN_EIO, "cannot write '%s': %s", e->weights_path, strerror(errno));
    emit(e, "__asm__(\".pushsection .rodata\\n.balign 64\\n.globl model_weights\\n.hidden model_weights\\n\"\n"
            "        \"model_weights:\\n.incbin \\\"\" MODEL_WEIGHTS \"\\\"\\n.popsection\");\n");
}

void emit_weights(emitter *e)
{
    if (e->weights_path[0]) {
        put_apart(e);
        return;
    }
    emit(e, "static const union weights weights = {{\n");
    put_weights(e, &(byte_writer){.f = e->f});
    emit(e, "\"}};\n");
}

void emit_constants(emitter *e, const char *sizes, int64_t state)
{
    emit(e,
         "\n/* ---- constants: the memory of the state, checked; tables; the weights ---- */\n\n"
         "typedef char model_state_fits[%s <= %lld ? 1 : -1];\n",
         sizes, (long long)state);
    emit_template(e, template_columns);
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

void emit_strings(emitter *e, const char *name, int64_t n, const char *const *text)
{
    emit(e, "static const char *const %s[%lld] = {\n", name, (long long)n);
    for (int64_t i = 0; i < n; i++) emit(e, "    "), emit_string(e, text[i], strlen(text[i])), emit(e, ",\n");
    emit(e, "};\n");
}

/* Those that the header file has, too. */
static const char *const public_sizes[] = {"VOCAB", "DIM",      "LENGTH", "CLASSES", "CLASSES_WIDE",
                                           "SIDE",  "CHANNELS", "BEGIN",  "END"};

void emit_sizes(emitter *e, const emit_size *sizes, size_t n)
{
    emit(e, "enum {");
    for (size_t i = 0; i < n; i++) {
        const bool alone = sizes[i].text || !i || sizes[i - 1].text; /* else on the line before */
        emit(e, "%s%s = %lld%s", alone ? "\n    " : " ", sizes[i].name, (long long)sizes[i].n, i + 1 < n ? "," : "");
        if (sizes[i].text) emit(e, " /* %s */", sizes[i].text);
        for (size_t k = 0; k < sizeof public_sizes / sizeof *public_sizes; k++)
            if (!strcmp(sizes[i].name, public_sizes[k])) emit_constant(e, sizes[i].name, sizes[i].n);
        if (!strcmp(sizes[i].name, "LENGTH")) e->length = sizes[i].n;
    }
    emit(e, "\n};\n");
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
