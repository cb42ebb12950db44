/* hf_config.c — reads and writes config.json and weights from a table of rows; checks shared by all configs. */
#include "models/files/hf_config.h"
#include "core/files/io.h"
#include "core/files/safetensors.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* "'a', 'b' and 'c'" */
static const char *listed(const char *const *choices, char *to, size_t size)
{
    size_t at = 0;
    for (int i = 0; choices[i] && at < size; i++)
        at += (size_t)snprintf(to + at, size - at, "%s'%s'", i == 0 ? "" : choices[i + 1] ? ", " : " and ", choices[i]);
    return to;
}

/* A member that was looked up: its value (NULL: absent), its key, and the key of a contradicting value ("": none). */
typedef struct {
    const tn_json *v;
    char           key[80], other[80];
} lookup;

/* The member of the key's first n characters; "object.member" names a member of an object, also of a nested one. */
static const tn_json *find_member(const tn_json *doc, const char *key, size_t n, lookup *to)
{
    char *at = to->key;
    snprintf(to->key, sizeof to->key, "%.*s", (int)n, key);
    for (char *point; (point = strchr(at, '.')) != NULL; at = point + 1) {
        *point = 0;
        doc = tn_json_get(doc, at);
        *point = '.';
        if (!doc || tn_json_type_of(doc) != TN_JSON_OBJECT) return NULL;
    }
    return tn_json_get(doc, at);
}
/* Absent or null. */
static bool is_absent(const tn_json *v) { return tn_json_type_of(v) <= TN_JSON_NULL; }
static bool agree(const tn_json *a, const tn_json *b)
{
    const bool text = tn_json_type_of(a) == TN_JSON_STRING, other = tn_json_type_of(b) == TN_JSON_STRING;
    return text == other &&
           (text ? !strcmp(tn_json_string(a), tn_json_string(b)) : tn_json_double(a) == tn_json_double(b));
}
/* Uses the first key that has a value; values in objects must agree. */
static lookup find(const tn_hf_row *r, const tn_json *doc)
{
    lookup f = {NULL, "", ""}, g = f;
    bool   last = !r->also;
    for (const char *s = last ? r->key : r->also; *s;) {
        const size_t n = strcspn(s, " ");
        g.v = find_member(doc, s, n, &g);
        if (is_absent(f.v) && (g.v || !f.v)) f = g;
        else if (!is_absent(g.v) && strchr(f.key, '.') && strchr(g.key, '.') && !agree(f.v, g.v))
            memcpy(f.other, g.key, sizeof f.other);
        s += n + strspn(s + n, " ");
        if (!*s && !last) s = r->key, last = true;
    }
    return f;
}

/* The row's static string that matches v; NULL: raised. */
static const char *text_of(const tn_hf_row *r, const tn_json *v, const char *key, const char *path)
{
    const char *const one[] = {r->text, NULL}, *const *choices = r->choices ? r->choices : one;
    const char       *s = v ? tn_json_string(v) : choices[0];
    char              list[1000];
    if (tn_error() != TN_OK) return NULL;
    if (r->kind == TN_HF_ACTIVATION) {
        const char *name = tn__activation_name(v ? s : r->text);
        if (!name) tn_raise(TN_EUNSUPPORTED, "'%s': %s is '%s'; expected " TN__ACTIVATIONS, path, key, s);
        return name;
    }
    for (int i = 0; choices[i]; i++)
        if (!strcmp(s, choices[i])) return choices[i];
    const char *what = r->kind == TN_HF_TYPE ? "supported: " : "only ",
               *end = r->kind == TN_HF_TYPE ? "" : " is supported";
    return tn_raise_null(TN_EUNSUPPORTED, "'%s': %s is '%s'; %s%s%s", path, key, s, r->says ? r->says : what,
                         r->says ? "" : listed(choices, list, sizeof list), r->says ? "" : end);
}

/* Raises if a member does not have the only supported value. */
static void check_fixed(const tn_hf_row *r, const tn_json *v, const char *key, const char *path)
{
    const tn_json_type type = tn_json_type_of(v);
    if (r->text) {
        text_of(r, v, key, path);
        return;
    }
    const bool   flag = type == TN_JSON_BOOL;
    const double is = flag ? tn_json_bool(v) : tn_json_double(v);
    if (tn_error() != TN_OK || is == r->otherwise) return;
    if (r->says) tn_raise(TN_EUNSUPPORTED, "'%s': %s", path, r->says);
    else if (flag)
        tn_raise(TN_EUNSUPPORTED, "'%s': %s is %s, which is not supported", path, key, is != 0 ? "true" : "false");
    else tn_raise(TN_EUNSUPPORTED, "'%s': %s is %g; only %g is supported", path, key, is, r->otherwise);
}

static bool in_range(const tn_hf_row *r, double x) { return x >= r->low && (r->below ? x < r->high : x <= r->high); }
/* "0, but must be from 1 to 65536" */
typedef struct {
    char s[100];
} message;
static message range_message(const tn_hf_row *r, double x)
{
    message w;
    if (r->kind == TN_HF_I64) snprintf(w.s, sizeof w.s, "%.0f, but must be from %.0f to %.0f", x, r->low, r->high);
    else
        snprintf(w.s, sizeof w.s, "%s, but must be from %s to %s%s", tn__format_number(x), tn__format_number(r->low),
                 r->below ? "less than " : "", tn__format_number(r->high));
    return w;
}
static double number(const tn_hf_row *r, const tn_json *v, const char *key, const char *path)
{
    const bool   whole = r->kind == TN_HF_I64 || r->kind == TN_HF_IDS || r->kind == TN_HF_PAIR;
    const double x = whole ? (double)tn_json_i64(v) : tn_json_double(v);
    if (tn_error() == TN_OK && r->nullable && r->low == -1 && x == -1) /* stands for null; written, it would be null */
        tn_raise(TN_EFORMAT, "'%s': %s is -1, but must be from 0 to %.0f, or null", path, key, r->high);
    if (tn_error() == TN_OK && (!in_range(r, x) || (r->kind == TN_HF_I64 && x >= 0x1p63)))
        tn_raise(TN_EFORMAT, "'%s': %s is %s", path, key, range_message(r, x).s);
    return tn_error() == TN_OK ? x : 0; /* converting a value outside i64 would be undefined */
}

/* Reads an array of at most two numbers, or one number; write_pair writes it. */
static void read_pair(const tn_hf_row *r, const tn_json *v, const char *key, const char *path, int64_t to[2])
{
    const bool array = v && tn_json_type_of(v) == TN_JSON_ARRAY;
    to[0] = to[1] = 0;
    if (!v) return;
    if (!array) {
        to[0] = (int64_t)number(r, v, key, path);
        return;
    }
    int64_t i = 0;
    if (tn_json_count(v) > 2)
        tn_raise(TN_EUNSUPPORTED, "'%s': %s has %lld numbers; at most two are supported", path, key,
                 (long long)tn_json_count(v));
    for (const tn_json *x = tn_json_first(v); x && tn_error() == TN_OK; x = tn_json_next(x))
        to[i++] = (int64_t)number(r, x, key, path);
}

/* Reads a number, an array of numbers, or null; tn__hf_put_ids writes it. */
static tn_token_ids read_ids(const tn_hf_row *r, const tn_json *v, const char *key, const char *path)
{
    tn_token_ids   ids = {.n = 0};
    const bool     array = v && tn_json_type_of(v) == TN_JSON_ARRAY;
    const int64_t  n = array ? tn_json_count(v) : v != NULL, room = (int64_t)(sizeof ids.id / sizeof *ids.id);
    const tn_json *x = array ? tn_json_first(v) : v;
    if (n > room)
        tn_raise(TN_EUNSUPPORTED, "'%s': %s has %lld token ids; at most %lld are supported", path, key, (long long)n,
                 (long long)room);
    if (array && !n) tn_raise(TN_EUNSUPPORTED, "'%s': %s is an empty array; use null for no token", path, key);
    for (; x && tn_error() == TN_OK && ids.n < n; x = array ? tn_json_next(x) : NULL)
        ids.id[ids.n++] = (int64_t)number(r, x, key, path);
    return ids;
}

/* The letter of the first n characters of s, element i; raises if they are not a choice. */
static char letter_of(const tn_hf_row *r, const char *s, size_t n, const char *key, int64_t i, const char *path)
{
    char list[200];
    int  k = 0;
    while (r->choices[k] && (strlen(r->choices[k]) != n || strncmp(s, r->choices[k], n) != 0)) k++;
    if (!r->choices[k])
        tn_raise(TN_EUNSUPPORTED, "'%s': %s[%lld] is '%.*s'; only %s are supported", path, key, (long long)i, (int)n, s,
                 listed(r->choices, list, sizeof list));
    return r->text[k];
}

/* A string is read as its parts between '|'. */
static void read_letters(const tn_hf_row *r, const tn_json *v, const char *key, const char *path, int most, char *to)
{
    int64_t     i = 0;
    const char *all = r->choices && v && tn_json_type_of(v) == TN_JSON_STRING ? tn_json_string(v) : NULL;
    memset(to, 0, (size_t)most);
    for (size_t n; all && *all && i < most - 1 && tn_error() == TN_OK; all += n + strspn(all + n, "| "), i++)
        n = strcspn(all, "| "), to[i] = letter_of(r, all, n, key, i, path);
    if (all) return;
    if (v && (tn_json_type_of(v) != TN_JSON_ARRAY || tn_json_count(v) >= most))
        tn_raise(TN_EFORMAT, "'%s': %s must be an array of at most %d strings", path, key, most - 1);
    for (const tn_json *x = v ? tn_json_first(v) : NULL; x && tn_error() == TN_OK; x = tn_json_next(x), i++) {
        if (!r->choices) { /* 0 or false, 1 or true */
            const bool yes = tn_json_type_of(x) == TN_JSON_BOOL ? tn_json_bool(x) : tn_json_i64(x) != 0;
            to[i] = r->text[yes];
            continue;
        }
        const char *s = tn_json_string(x);
        if (tn_error() == TN_OK) to[i] = letter_of(r, s, strlen(s), key, i, path);
    }
}

static void check_empty(const tn_hf_row *r, const tn_json *v, const char *key, const char *path)
{
    if (tn_json_count(v) || (v && tn_json_type_of(v) != TN_JSON_OBJECT && tn_json_type_of(v) != TN_JSON_ARRAY))
        tn_raise(TN_EUNSUPPORTED, "'%s': %s is not empty, which is not supported%s%s", path, key, r->says ? "; " : "",
                 r->says ? r->says : "");
}

/* Stores v at `to`, or checks it, depending on the row's kind. v NULL: missing; numbers are set to `absent`. */
static void store(const tn_hf_row *r, const tn_json *v, const char *key, const char *path, double absent, void *to)
{
    const char *type;
    switch (r->kind) {
    case TN_HF_I64: *(int64_t *)to = (int64_t)(v ? number(r, v, key, path) : absent); break;
    case TN_HF_REAL: *(double *)to = v ? number(r, v, key, path) : absent; break;
    case TN_HF_BOOL: *(bool *)to = (v ? tn_json_bool(v) : r->otherwise != 0) != r->opposite; break;
    case TN_HF_ACTIVATION:
    case TN_HF_CHOICE: *(const char **)to = text_of(r, v, key, path); break;
    case TN_HF_LAYERS: read_letters(r, v, key, path, TN_HF_LAYERS_MOST, to); break;
    case TN_HF_PAIR: read_pair(r, v, key, path, to); break;
    case TN_HF_IDS:
        *(tn_token_ids *)to = read_ids(r, v, key, path);
        if (!v && absent < 0) ((tn_token_ids *)to)->n = -1; /* null */
        break;
    case TN_HF_LETTERS: read_letters(r, v, key, path, TN_HF_LETTERS_MOST, to); break;
    case TN_HF_TYPE:
        type = text_of(r, v, key, path);
        if (r->choices) *(const char **)to = type;
        break;
    case TN_HF_MUST:
        if (v) check_fixed(r, v, key, path);
        break;
    case TN_HF_EMPTY: check_empty(r, v, key, path); break;
    case TN_HF_NAME:
    case TN_HF_PUT:
    case TN_HF_PRUNED:
    case TN_HF_ANY: break;
    }
}

static void read_row(const tn_hf_row *r, const tn_json *doc, const char *path, char *config)
{
    if (r->kind == TN_HF_NAME || r->kind == TN_HF_PUT || r->kind == TN_HF_PRUNED || r->kind == TN_HF_ANY) return;
    const lookup   f = find(r, doc);
    const bool     null = f.v && tn_json_type_of(f.v) == TN_JSON_NULL;
    const tn_json *v = null ? NULL : f.v;
    if (!v && r->needed) tn_raise(TN_EFORMAT, "'%s': %s is missing", path, r->key);
    if (tn_error() == TN_OK) store(r, v, f.key, path, null && r->nullable ? r->low : r->otherwise, config + r->at);
    if (*f.other && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "'%s': %s and %s have different values; remove the wrong one", path, f.key, f.other);
}

/* Reads a row, which may be of several members. */
static void read_rows(const tn_hf_row *r, const tn_json *doc, const char *path, char *config)
{
    char      key[80];
    tn_hf_row one = *r;
    for (const char *s = r->key; *s && tn_error() == TN_OK; s += strcspn(s, " "), s += strspn(s, " ")) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(s, " "), s);
        one.key = key;
        read_row(&one, doc, path, config);
    }
}

/* Members that no model supports. */
static const tn_hf_row of_all = {"per_layer_config quantization_config", TN_HF_EMPTY, .silent = true};

bool tn_hf_source_read(const tn_hf_source *s, const tn_hf_files *f, void *config)
{
    const char *const who = "tn_hf_source_read";
    if (!tn__not_null(who, "the source", s) || !tn__not_null(who, "the table", f) ||
        !tn__not_null(who, "the config", config))
        return false;
    read_rows(&of_all, s->config, s->name, config);
    for (int type = 1; type >= 0; type--) /* model_type first */
        for (int i = 0; i < f->count && tn_error() == TN_OK; i++)
            if ((f->rows[i].kind == TN_HF_TYPE) == type) read_rows(&f->rows[i], s->config, s->name, config);
    return tn_error() == TN_OK;
}

bool tn_hf_config_read(const char *dir, const tn_hf_files *f, void *config)
{
    tn_hf_source s;
    if (tn_error() != TN_OK || !tn__not_null("tn_hf_config_read", "the table of files", f)) return false;
    const bool read = tn__hf_open(&s, dir) && tn_hf_source_read(&s, f, config);
    tn__hf_close(&s);
    return read;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* True if the row is not written. */
static bool is_omitted(const tn_hf_row *r, const char *at)
{
    if (r->silent || r->kind == TN_HF_EMPTY || r->kind == TN_HF_ANY) return true;
    if (!r->omitted) return false;
    switch (r->kind) {
    case TN_HF_I64: return (double)*(const int64_t *)(const void *)at == r->otherwise;
    case TN_HF_REAL: return *(const double *)(const void *)at == r->otherwise;
    case TN_HF_BOOL: return (*(const bool *)at != r->opposite) == (r->otherwise != 0);
    case TN_HF_CHOICE: return *(const char *const *)(const void *)at == r->choices[0];
    case TN_HF_ACTIVATION: return !strcmp(*(const char *const *)(const void *)at, r->text);
    case TN_HF_PAIR:
    case TN_HF_IDS: return !*(const int64_t *)(const void *)at;
    case TN_HF_LAYERS: return !*at;
    default: return false;
    }
}

/* Writes a pair as an array, a single number as itself, none as null. */
static void write_pair(tn_json_writer *w, const char *key, const int64_t n[2])
{
    if (!n[1]) {
        if (n[0]) tn_json_put_i64(w, key, n[0]);
        else tn_json_put_null(w, key);
        return;
    }
    tn_json_open_array(w, key);
    tn_json_put_i64(w, NULL, n[0]), tn_json_put_i64(w, NULL, n[1]);
    tn_json_close(w);
}
void tn__hf_put_ids(tn_json_writer *w, const char *key, const tn_token_ids *ids)
{
    if (ids->n < 0) tn_json_put_null(w, key);
    else if (ids->n == 1) tn_json_put_i64(w, key, ids->id[0]);
    else {
        tn_json_open_array(w, key);
        for (int64_t i = 0; i < ids->n; i++) tn_json_put_i64(w, NULL, ids->id[i]);
        tn_json_close(w);
    }
}
static void write_letters(const tn_hf_row *r, tn_json_writer *w, const char *key, const char *at)
{
    tn_json_open_array(w, key);
    for (; r->text && *at; at++) {
        const int64_t k = strchr(r->text, *at) - r->text;
        if (r->choices) tn_json_put_string(w, NULL, r->choices[k]);
        else tn_json_put_i64(w, NULL, k);
    }
    tn_json_close(w);
}

static void write_real(const tn_hf_row *r, tn_json_writer *w, const char *key, double x)
{
    if (r->nullable && x == r->low) tn_json_put_null(w, key);
    else tn_json_put_double(w, key, x);
}

static void write_row(const tn_hf_row *r, tn_json_writer *w, const char *key, const char *at)
{
    const bool own = r->kind == TN_HF_ACTIVATION || r->kind == TN_HF_CHOICE || !r->text;
    switch (r->kind) {
    case TN_HF_I64: {
        const int64_t n = *(const int64_t *)(const void *)at;
        if (r->nullable && (double)n == r->low) tn_json_put_null(w, key);
        else tn_json_put_i64(w, key, n);
        break;
    }
    case TN_HF_PAIR: write_pair(w, key, (const int64_t *)(const void *)at); break;
    case TN_HF_IDS: tn__hf_put_ids(w, key, (const tn_token_ids *)(const void *)at); break;
    case TN_HF_LAYERS:
    case TN_HF_LETTERS: write_letters(r, w, key, at); break;
    case TN_HF_REAL: write_real(r, w, key, *(const double *)(const void *)at); break;
    case TN_HF_BOOL: tn_json_put_bool(w, key, *(const bool *)at != r->opposite); break;
    case TN_HF_ACTIVATION:
    case TN_HF_CHOICE:
    case TN_HF_TYPE:
    case TN_HF_NAME: {
        const char *text = own ? *(const char *const *)(const void *)at : r->text;
        const bool  array = r->kind == TN_HF_NAME && !strcmp(key, "architectures");
        if (array) tn_json_open_array(w, key);
        tn_json_put_string(w, array ? NULL : key, text);
        if (array) tn_json_close(w);
        break;
    }
    case TN_HF_MUST:
        if (r->text) tn_json_put_string(w, key, r->text);
        else tn_json_put_bool(w, key, r->otherwise != 0);
        break;
    default: break;
    }
}

/* The dtype of the first parameter, for torch_dtype. */
static tn_dtype type_of(void *m)
{
    tn_each p = tn_module_each(m, TN_EACH_PARAMETER);
    return tn_next(&p) && tn_dtype_of(p.tensor) == TN_BF16 ? TN_BF16 : TN_F32;
}

static void write_rows(void *m, const tn_hf_files *f, tn_json_writer *w, const char *config, const tn__hf_extra *more)
{
    char           open[80] = "";              /* key of the object being written; "": none */
    bool           pruned = !tn__is_pruned(m); /* nothing to write, or written */
    const tn_dtype of = type_of(m);
    tn_json_open_object(w, NULL);
    for (int i = 0; i < f->count; i++) {
        const tn_hf_row *r = &f->rows[i];
        const char      *point = strchr(r->key, '.'), *key = point ? point + 1 : r->key;
        const size_t     n = (size_t)(key - r->key);
        if (is_omitted(r, config + r->at)) continue;
        if (strlen(open) + (point != NULL) != n || strncmp(open, r->key, strlen(open)) != 0) {
            if (*open) tn_json_close(w);
            snprintf(open, sizeof open, "%.*s", point ? (int)n - 1 : 0, r->key);
            if (*open) tn_json_open_object(w, open);
        }
        if (r->kind == TN_HF_PRUNED) tn__pruned_write(w, key, m, r->text != NULL), pruned = true;
        else if (r->kind == TN_HF_PUT) r->put(w, config);
        else if (!strcmp(key, "torch_dtype") && of == TN_BF16) tn_json_put_string(w, key, "bfloat16");
        else write_row(r, w, key, config + r->at);
    }
    if (*open) tn_json_close(w);
    if (more && more->members) more->members(w, more->user);
    tn_json_close(w);
    if (!pruned)
        tn_raise(TN_EUNSUPPORTED, "tn_hf_write: the model has pruned heads, but its table has no row for them; add a "
                                  "row pruned_heads of kind TN_HF_PRUNED");
}

/* Writes the weights of the model and of more's parts. */
static void write_weights(void *m, const char *path, const tn_hf_files *f, const tn__hf_extra *more)
{
    char                   prefix[80];
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_save_run(m, (tn_save_args){.writer = w, .rename = f->rules, .renames = f->renames});
    for (int i = 0; more && i < 4; i++) {
        if (!more->part[i].module) continue;
        snprintf(prefix, sizeof prefix, "%s.", more->part[i].name);
        tn_save_run(more->part[i].module, (tn_save_args){.writer = w, .prefix = prefix});
    }
    if (tn_error() == TN_OK) (void)!tn__safetensors_save_with_checksums(w, path); /* the caller sees the error */
    tn_safetensors_writer_free(w);
}

bool tn__config_save(tn_json_writer *w, const char *dir, const char *name)
{
    char path[1024];
    return tn_error() == TN_OK && tn__path_in(dir, name, path, sizeof path) &&
           tn_json_save_with_sha256(w, path) == TN_OK;
}

tn_status tn__hf_write_extra(void *m, const char *dir, const tn_hf_files *f, const void *config,
                             const tn__hf_extra *more)
{
    char path[1024];
    if (!tn_module_ready("tn_hf_write", m) || !tn__has_no_packed(m, dir) || !tn__has_no_adapters(m, dir))
        return tn_error();
    tn_json_writer *w = tn_json_writer_new(2);
    write_rows(m, f, w, config, more);
    if (tn_error() == TN_OK && tn__path_in(dir, "model.safetensors", path, sizeof path))
        write_weights(m, path, f, more);
    (void)tn__config_save(w, dir, "config.json"); /* last: a directory without it is not taken for a model */
    tn_json_writer_free(w);
    return tn_error();
}
tn_status tn__hf_write_as(void *m, const char *dir, const tn_hf_files *f, const void *config,
                          const tn__gguf_options *gguf)
{
    if (!gguf) return tn__hf_write_extra(m, dir, f, config, NULL);
    if (!tn_module_ready("tn_hf_write", m) || !tn__has_no_adapters(m, dir)) return tn_error();
    tn_json_writer *w = tn_json_writer_new(2);
    write_rows(m, f, w, config, NULL);
    if (tn__is_pruned(m))
        tn_raise(TN_EUNSUPPORTED, "'%s': GGUF cannot represent pruned heads; save the model to a directory", dir);
    size_t      bytes;
    const char *text = tn_json_text(w, &bytes);
    tn_json    *doc = text ? tn_json_parse(text, bytes) : NULL;
    if (doc) tn__gguf_write(m, dir, f, doc, gguf);
    tn_json_free(doc);
    tn_json_writer_free(w);
    return tn_error();
}

tn_status tn_hf_write(void *m, const char *dir, const tn_hf_files *f, const void *config)
{
    if (!tn__not_null("tn_hf_write", "the table of files", f)) return tn_error();
    return tn__hf_write_extra(m, dir, f, config, NULL);
}

/* ---- configs in the program -------------------------------------------------------------------------------------- */

bool tn_hf_config_within(const char *who, const tn_hf_files *f, const void *config)
{
    if (!tn__not_null(who ? who : "tn_hf_config_within", "the table of files", f)) return false;
    for (int i = 0; i < f->count && tn_error() == TN_OK; i++) {
        const tn_hf_row *r = &f->rows[i];
        if (!r->name || (r->kind != TN_HF_I64 && r->kind != TN_HF_REAL)) continue;
        const char  *name = strncmp(r->name, "c.", 2) != 0 ? r->name : r->name + 2; /* a config within a struct */
        const void  *at = (const char *)config + r->at;
        const double x = r->kind == TN_HF_I64 ? (double)*(const int64_t *)at : *(const double *)at;
        if (!in_range(r, x) && (x != r->otherwise || r->needed))
            tn_raise(TN_EINVAL, "%s: .%s is %s", who, name, range_message(r, x).s);
    }
    return tn_error() == TN_OK;
}

bool tn_hf_init_and_activation(const char *who, double init, const char **activation)
{
    if (!tn__not_null("tn_hf_init_and_activation", "the caller's name", who) ||
        !tn__not_null(who, "the activation", activation))
        return false;
    if (!(init >= 0 && init <= 1))
        return tn_raise_false(TN_EINVAL, "%s: .init is %g, but must be from 0 to 1", who, init);
    if (!tn_hf_activation(*activation))
        return tn_raise_false(TN_EINVAL, "%s: unknown activation '%s'; use " TN__ACTIVATIONS, who, *activation);
    *activation = tn__activation_name(*activation);
    return true;
}
