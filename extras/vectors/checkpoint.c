/* checkpoint.c — training checkpoints of word vectors: all state that changes, saved between two rounds in the
 * library's file. Its tensors are the tables, its config is the arguments, and its data are the position. Words, their
 * frequencies and GloVe's pairs are not stored: counting them again gives the same result. */
#include "core/base/toolbox.h"
#include "extras/vectors/train_private.h"
#include "optim/optim.h"

enum { SHOWN = 40 }; /* bytes for a number as text */

/* The arguments as JSON, owned by the writer; NULL: raised. */
static const char *arguments_of(tn_json_writer *w, const tn_vectors_train_args *a)
{
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "kind", (int64_t)a->kind);
    tn_json_put_i64(w, "loss", (int64_t)a->loss);
    tn_json_put_i64(w, "dim", a->dim);
    tn_json_put_i64(w, "window", a->window);
    tn_json_put_i64(w, "negatives", a->negatives);
    tn_json_put_double(w, "sample", a->sample);
    tn_json_put_i64(w, "epochs", a->epochs);
    tn_json_put_i64(w, "min_count", a->min_count);
    tn_json_put_double(w, "lr", a->lr);
    tn_json_put_i64(w, "min_n", a->min_n);
    tn_json_put_i64(w, "max_n", a->max_n);
    tn_json_put_i64(w, "buckets", a->buckets);
    tn_json_put_double(w, "x_max", a->x_max);
    tn_json_put_u64(w, "seed", a->seed);
    tn_json_close(w);
    return tn_json_text(w, NULL);
}

/* A hash of what training depends on in the texts. */
static uint64_t sum_of_texts(const tn__trainer *t, const tn__run *r)
{
    const int64_t all[] = {r->files, r->bytes, (int64_t)t->words.sum, t->words.total, t->words.words.n};
    return tn__fnv1a(TN__FNV1A, all, sizeof all);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void number_text(const tn_json *v, char to[SHOWN])
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_put(w, NULL, v);
    const char *text = tn_json_text(w, NULL);
    snprintf(to, SHOWN, "%s", text ? text : "");
    tn_json_writer_free(w);
}

static bool same_arguments(const tn_json *was, const tn__trainer *t)
{
    char            label[TN__LABEL], before[SHOWN], now[SHOWN];
    tn_json_writer *w = tn_json_writer_new(0);
    const char     *text = arguments_of(w, &t->a);
    tn_json        *is = text ? tn_json_parse(text, strlen(text)) : NULL;
    for (const tn_json *v = tn_json_first(is); v && tn__self.error == TN_OK; v = tn_json_next(v)) {
        const tn_json *other = tn_json_get(was, tn_json_key(v));
        tn__label(label, TN__TRAIN, t->a.checkpoint);
        if (!other) {
            tn_raise(TN_EFORMAT, "%s: not a checkpoint of vectors; unset .resume to start again", label);
            break;
        }
        number_text(v, now), number_text(other, before);
        if (strcmp(now, before) != 0)
            tn_raise(TN_EINVAL, "%s: the training started with .%s %s, not %s; resume with the same", label,
                     tn_json_key(v), before, now);
    }
    tn_json_free(is);
    tn_json_writer_free(w);
    return tn__self.error == TN_OK;
}

bool tn__checkpoint_open(const tn__trainer *t, tn__run *r)
{
    if (!t->a.resume) return true;
    r->file = tn_checkpoint_open(t->a.checkpoint);
    return r->file && same_arguments(tn_checkpoint_config(r->file), t);
}

static bool read_position(const tn__trainer *t, tn__run *r)
{
    const tn_json *data = tn_checkpoint_data(r->file), *place = tn_json_need(data, "place");
    char           label[TN__LABEL];
    tn__label(label, TN__TRAIN, t->a.checkpoint);
    if (tn_json_u64(tn_json_need(data, "texts")) != sum_of_texts(t, r) && tn__self.error == TN_OK)
        tn_raise(TN_EINVAL, "%s: the training started with other texts; resume with the same", label);
    r->epoch = tn_checkpoint_step(r->file), r->words = tn_json_i64(tn_json_need(data, "words"));
    r->began = tn__seconds() - tn_json_double(tn_json_need(data, "seconds"));
    bool fine = r->epoch <= t->a.epochs && r->words >= 0;
    for (int i = 0; i < TN__SHARDS; i++) fine = (r->place[i] = tn_json_i64(tn_json_at(place, i))) >= 0 && fine;
    if (tn__self.error == TN_OK && !fine)
        tn_raise(TN_EFORMAT, "%s: damaged: its position does not exist; unset .resume to start again", label);
    return tn__self.error == TN_OK;
}

/* The file's tensor replaces the table, of which there is one at a time, because it may need most of the memory. */
static bool read_table(const tn__trainer *t, const tn__run *r, const tn__saved *s)
{
    char           label[TN__LABEL];
    const tn_shape shape = tn_shape_of(s->table->t);
    tn_drop(s->table->t);
    s->table->t = tn_take(tn_checkpoint_tensor(r->file, s->name));
    if (s->table->t && (tn_dtype_of(s->table->t) != TN_F32 || !tn_shape_equal(tn_shape_of(s->table->t), shape)))
        tn_raise(TN_EFORMAT, "%s: '%s' has another size; unset .resume to start again",
                 tn__label(label, TN__TRAIN, t->a.checkpoint), s->name);
    return tn__self.error == TN_OK && (s->table->x = tn_data_mut(s->table->t));
}

bool tn__checkpoint_load(const tn__trainer *t, tn__run *r, int n, const tn__saved *saved)
{
    r->saved = tn__seconds();
    if (!r->file) return true;
    bool fine = read_position(t, r);
    for (int i = 0; i < n && fine; i++) fine = read_table(t, r, saved + i);
    tn_checkpoint_close(r->file);
    r->file = NULL;
    return fine;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool tn__checkpoint_save(const tn__trainer *t, tn__run *r, int n, const tn__saved *saved)
{
    if (!t->a.checkpoint || tn__self.error != TN_OK) return tn__self.error == TN_OK;
    tn_named        tables[TN__SAVED];
    tn_json_writer *config = tn_json_writer_new(0), *data = tn_json_writer_new(0);
    for (int i = 0; i < n; i++) tables[i] = (tn_named){saved[i].name, saved[i].table->t};
    tn_json_open_object(data, NULL);
    tn_json_put_u64(data, "texts", sum_of_texts(t, r));
    tn_json_put_i64(data, "words", r->words);
    tn_json_put_double(data, "seconds", tn__seconds() - r->began);
    tn_json_open_array(data, "place");
    for (int i = 0; i < TN__SHARDS; i++) tn_json_put_i64(data, NULL, r->place[i]);
    tn_json_close(data);
    tn_json_close(data);
    const bool done =
        tn_checkpoint_save(t->a.checkpoint, .tensors = tables, .tensor_count = n, .step = r->epoch,
                           .config = arguments_of(config, &t->a), .data = tn_json_text(data, NULL)) == TN_OK;
    r->saved = tn__seconds();
    tn_json_writer_free(config);
    tn_json_writer_free(data);
    return done;
}
