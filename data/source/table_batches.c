/* table_batches.c — the rows of a table as batches of tensors. A batch is read as a whole, also if only a part of it is
 * this rank's: so the positions of all ranks agree. */
#include "data/source/table_private.h"

#include <math.h>

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Splits .columns and finds them; false: raised. */
static bool find_columns(tn_table *t, const tn_table_field *f, tn__table_part *p)
{
    if (!(p->names = tn__strdup(f->columns))) return false;
    for (char *at = p->names, *comma = at; comma; at = comma ? comma + 1 : NULL) {
        if ((comma = strchr(at, ','))) *comma = 0;
        if (!tn__grown((void *)&p->column, &p->column_room, p->width + 1, sizeof *p->column)) return false;
        if (!tn__table_column(t, at, &p->column[p->width++])) return false;
    }
    return true;
}

bool tn__table_fields(tn_table *t)
{
    for (int i = 0; i < TN_BATCH_FIELDS && t->config.fields[i].name; i++) {
        const tn_table_field *f = &t->config.fields[i];
        tn__table_part       *p = &t->part[t->parts++];
        if (!f->columns) return tn_raise_false(TN_EINVAL, "tn_table_open: the field '%.60s' has no .columns", f->name);
        for (int k = 0; k < i; k++)
            if (!strcmp(t->config.fields[k].name, f->name))
                return tn_raise_false(TN_EINVAL, "tn_table_open: the field '%.60s' is given twice", f->name);
        if (f->dtype != TN_F32 && f->dtype != TN_F64 && f->dtype != TN_I64)
            return tn_raise_false(TN_EDTYPE, "tn_table_open: the field '%.60s' has .dtype %s, expected f32, f64 or i64",
                                  f->name, tn_dtype_name(f->dtype));
        if (!find_columns(t, f, p)) return false;
        const bool texts = f->classes || f->encoder;
        if (texts && (p->width != 1 || f->dtype != TN_F32 || (f->classes && f->encoder)))
            return tn_raise_false(TN_EINVAL,
                                  "tn_table_open: the field '%.60s' must have one column and one of .classes, .encoder "
                                  "and .dtype",
                                  f->name);
    }
    return true;
}

void tn__table_fields_free(tn_table *t)
{
    for (int i = 0; i < t->parts; i++) {
        tn__table_part *p = &t->part[i];
        tn__strfree(p->names);
        tn__mem_put(p->column, (size_t)p->column_room * sizeof *p->column);
        tn__mem_put(p->value, (size_t)p->value_room * sizeof *p->value);
        tn_ids_free(&p->ids);
    }
}

/* ---- reading a batch --------------------------------------------------------------------------------------------- */

static bool class_of(tn_table *t, const tn_table_field *f, tn__column c, double *to)
{
    tn_text text;
    char    shown[TN__QUOTED];
    if (!tn__table_text(t, c, &text)) return false;
    for (int64_t i = 0; f->classes[i]; i++)
        if (strlen(f->classes[i]) == text.bytes && !memcmp(f->classes[i], text.at, text.bytes))
            return *to = (double)i, true;
    return tn__table_bad(t, "'%.60s' is %s, which is not in .classes", c.name,
                         tn__quote(shown, text.at, text.bytes, 40));
}

static bool ids_of(tn_table *t, const tn_table_field *f, tn__table_part *p, double *to)
{
    tn_text text;
    if (!tn__table_text(t, p->column[0], &text)) return false;
    if (f->encoder->encode(f->encoder->user, text, &p->ids) != TN_OK || tn_error() != TN_OK) return false;
    return *to = (double)p->ids.n, true;
}

/* Adds the row's values to the field. False: raised. */
static bool add_row(tn_table *t, const tn_table_field *f, tn__table_part *p)
{
    int64_t need;
    if (!tn__mul_i64(t->rows + 1, p->width, &need)) need = INT64_MAX;
    if (!tn__grown((void *)&p->value, &p->value_room, need, sizeof *p->value)) return false;
    double *to = p->value + t->rows * p->width;
    if (f->classes) return class_of(t, f, p->column[0], to);
    if (f->encoder) return ids_of(t, f, p, to);
    for (int64_t k = 0; k < p->width; k++) {
        if (!tn__table_number(t, p->column[k], &to[k])) return false;
        if (f->dtype == TN_I64 && !(to[k] == rint(to[k]) && fabs(to[k]) <= 0x1p53))
            return tn__table_bad(t, "'%.60s' is %g, expected a whole number of at most 2^53", p->column[k].name, to[k]);
    }
    return true;
}

/* Reads the rows of the next batch; false: no further one, or raised. */
static bool read_batch(tn_table *t)
{
    t->rows = 0;
    for (int i = 0; i < t->parts; i++) t->part[i].ids.n = 0;
    while (t->rows < t->config.batch && tn__table_row(t)) {
        for (int i = 0; i < t->parts; i++)
            if (!add_row(t, &t->config.fields[i], &t->part[i])) return false;
        t->rows++;
    }
    return tn_error() == TN_OK && t->rows && (t->rows == t->config.batch || !t->config.drop_last);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The ids of rows `first` and following, each padded to the longest of the whole batch. */
static tn_tensor *padded(const tn_table *t, const tn_table_field *f, const tn__table_part *p, const tn_batch *b)
{
    int64_t most = 0, start = 0;
    for (int64_t r = 0; r < t->rows; start = (int64_t)p->value[r++])
        most = tn__max_i64(most, (int64_t)p->value[r] - start);
    tn_tensor *x = tn_empty_of(TN_I64, TN_SHAPE(b->rows, most));
    int64_t   *to = x ? tn_data_mut(x) : NULL;
    for (int64_t r = b->first; to && r < b->first + b->rows; r++) {
        start = r ? (int64_t)p->value[r - 1] : 0;
        for (int64_t k = 0; k < most; k++) *to++ = start + k < (int64_t)p->value[r] ? p->ids.at[start + k] : f->pad;
    }
    return x;
}

static tn_tensor *tensor_of(const tn_table *t, int i, const tn_batch *b)
{
    const tn_table_field *f = &t->config.fields[i];
    const tn__table_part *p = &t->part[i];
    if (f->encoder) return padded(t, f, p, b);
    const tn_dtype dtype = f->classes ? TN_I64 : f->dtype;
    const tn_shape shape = dtype == TN_I64 && p->width == 1 ? TN_SHAPE(b->rows) : TN_SHAPE(b->rows, p->width);
    tn_tensor     *x = tn_empty_of(dtype, shape);
    tn_tensor     *from = x ? tn_from_data(TN_F64, shape, p->value + b->first * p->width) : NULL;
    return from && tn_copy_from(x, from) == TN_OK ? x : NULL;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

/* The next batch starts where the stream is. */
static void begin_batch(tn_table *t) { t->from = tn__reader_at(&t->reader), t->from_line = t->reader.line; }

static bool next(void *user, tn_batch *b)
{
    tn_table *t = user;
    if (!t->parts) return tn_raise_false(TN_EINVAL, "tn_table_source: the table was opened without .fields");
    if (!t->shard.done_ && !read_batch(t)) {
        if (tn_error() == TN_OK) tn__reader_seek(&t->reader, t->first, t->first_line), begin_batch(t);
        return false;
    }
    tn_batch_cut(b, t->shard, t->rows);
    b->items = b->rows;
    for (int i = 0; i < t->parts; i++) tn_batch_put(b, t->config.fields[i].name, tensor_of(t, i, b));
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&t->shard)) begin_batch(t);
    return true;
}

static void begin(void *user, const tn_json *at)
{
    tn_table     *t = user;
    const int64_t byte = at ? tn_json_i64(tn_json_need(at, "byte")) : t->first,
                  line = at ? tn_json_i64(tn_json_need(at, "line")) : t->first_line,
                  of = at ? tn_json_i64(tn_json_need(at, "of")) : t->reader.source.size;
    if (tn_error() == TN_OK && (of != t->reader.source.size || byte < t->first || byte > of || line < t->first_line))
        tn_raise(TN_EINVAL, "%s: the checkpoint is at byte %lld of a file of %lld, but the file has %lld bytes",
                 t->reader.label, (long long)byte, (long long)of, (long long)t->reader.source.size);
    if (tn_error() != TN_OK) return;
    tn__reader_seek(&t->reader, byte, line), begin_batch(t);
    tn_shard_rewind(&t->shard);
}

static void save(void *user, tn_json_writer *w)
{
    const tn_table *t = user;
    tn_json_put_i64(w, "byte", t->from);
    tn_json_put_i64(w, "line", t->from_line);
    tn_json_put_i64(w, "of", t->reader.source.size);
}

static void shard(void *user, tn_shard s) { ((tn_table *)user)->shard = s; }

tn_source tn_table_source(tn_table *t)
{
    return (tn_source){.next = t ? next : NULL, .begin = begin, .save = save, .shard = shard, .user = t};
}
