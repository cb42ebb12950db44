/* table_open.c — opens a table: its format, the names of its columns, the fields of its batches. */
#include "data/source/table_private.h"

/* Sets the format; false: raised. */
static bool set_form(tn_table *t, const char *path)
{
    const char *form = t->config.form, *dot = path ? strrchr(path, '.') : NULL;
    if (!form) form = dot && (!strcmp(dot, ".tsv") || !strcmp(dot, ".jsonl")) ? dot + 1 : "csv";
    t->csv = !strcmp(form, "csv"), t->json = !strcmp(form, "jsonl");
    if (!t->csv && !t->json && strcmp(form, "tsv") != 0)
        return tn_raise_false(TN_EINVAL, "tn_table_open: .form is '%.40s', expected csv, tsv or jsonl", form);
    if (t->json && t->config.no_header)
        return tn_raise_false(TN_EINVAL, "tn_table_open: .no_header has no effect on JSON lines; remove it");
    if (t->config.batch >= 1) return true;
    return tn_raise_false(TN_EINVAL, "tn_table_open: .batch is %lld, expected at least 1", (long long)t->config.batch);
}

tn_table *tn_table_open_run(const char *path, tn_table_config c)
{
    if (tn__blocked()) return NULL;
    tn_table *t = tn__mem_zeroed(sizeof *t);
    if (!t) return NULL;
    t->config = c;
    if (set_form(t, path) && tn__reader_open(&t->reader, "tn_table_open", path)) {
        t->reader.most = TN__TABLE_ROW;
        if ((t->json || tn__table_header(t)) && tn__table_fields(t)) {
            tn__reader_seek(&t->reader, t->first, t->first_line);
            return t->from = t->first, t->from_line = t->first_line, t;
        }
    }
    tn_table_free(t);
    return NULL;
}

void tn_table_free(tn_table *t)
{
    if (!t) return;
    tn__table_fields_free(t);
    tn__reader_close(&t->reader);
    tn_string_free(&t->header), tn_string_free(&t->record);
    tn__cells_free(&t->cells);
    tn_json_free(t->object);
    tn__mem_put(t, sizeof *t);
}
