/* features.c — batches of rows of tokens: rows of similar lengths together, padded to the longest of the batch. */
#include "data/labelled/features.h"

static bool plan(tn_features *f)
{
    const int64_t epoch = f->config.fixed ? 0 : f->next.epoch;
    if (f->planned == epoch) return true;
    f->planned = -1;
    if (!tn__plan_make(&f->plan, f->rows / f->group, f->length, NULL, &f->how, epoch)) return false;
    f->planned = epoch;
    return true;
}

static bool lengths(tn_features *f)
{
    const int64_t n = f->rows / f->group;
    if (!(f->length = tn__mem_zeroed((size_t)(n + 1) * sizeof *f->length))) return false;
    for (int64_t i = 0; i < f->rows; i++)
        f->length[i / f->group] = (int32_t)tn__max_i64(f->length[i / f->group], f->row[i].length);
    return true;
}

/* `batch` examples each. Sentences are batched by tokens instead: as many as `batch` average sentences have, increased
 * until there are no more batches than that would give. Their loss is a mean over words: with equal numbers of
 * sentences, a word among short ones would weigh ten times as much as one among long ones, and the batch of the longest
 * sentences would need the memory of several. */
static bool first_plan(tn_features *f)
{
    const int64_t n = f->rows / f->group, want = n / f->config.batch + (n % f->config.batch > 0);
    double        pieces = 0;
    f->how = (tn__batching){
        .tokens = INT64_MAX, .examples = f->config.batch, .parts = f->config.parts, .seed = f->config.seed};
    if (f->config.tokens) f->how.tokens = f->config.tokens, f->how.examples = 0;
    if (f->config.tokens || f->config.parts || f->from->config.kind != TN_LABELLED_WORDS || !n) return plan(f);
    for (int64_t i = 0; i < n; i++) pieces += (double)f->length[i];
    f->how.tokens = (int64_t)(pieces / (double)want) + 1, f->how.examples = 0;
    while (plan(f) && f->plan.batches > want) {
        f->how.tokens += f->how.tokens * (f->plan.batches - want) / want + 1;
        f->planned = -1;
    }
    return tn_error() == TN_OK;
}

static const char *const problems[] = {"TN_SINGLE_LABEL", "TN_MULTI_LABEL", "TN_REGRESSION"};

static bool valid_config(const tn_labelled *l, const tn_tokenizer *t, const tn_labels *labels,
                         const tn_features_config *c)
{
    static const char *const who = "tn_features_new";
    if (tn__blocked()) return false;
    if (!l || !t) return tn_raise_false(TN_EINVAL, "%s: the %s NULL", who, l ? "tokenizer is" : "labelled texts are");
    if ((unsigned)c->problem > TN_REGRESSION)
        return tn_raise_false(TN_EINVAL, "%s: .problem %d does not exist", who, c->problem);
    if (l->config.kind == TN_LABELLED_TEXTS && !c->no_label && c->problem != l->config.problem)
        return tn_raise_false(TN_EINVAL, "%s: .problem is %s, but the labelled texts have %s; set both to the same",
                              who, problems[c->problem], problems[l->config.problem]);
    char       place[TN__PLACE];
    const bool named = l->config.kind <= TN_LABELLED_WORDS && c->problem != TN_REGRESSION && !c->no_label;
    if (named && !labels) return tn_raise_false(TN_EINVAL, "%s: the labels are NULL; tn_labels_of returns them", who);
    for (int64_t i = 0; named && i < l->n; i++) {
        const tn_example x = tn_labelled_at(l, i);
        for (int64_t k = 0; k < x.labels; k++)
            if (tn_labels_find(labels, x.label[k]) < 0)
                return tn_raise_false(TN_EINVAL, "%s: the label '%.60s' is not among the given labels",
                                      tn__labelled_place(l, x.line, place), x.label[k]);
    }
    if (c->tokens && c->parts)
        return tn_raise_false(TN_EINVAL, "%s: .tokens has no effect with .parts; unset one of them", who);
    return tn__within(who, "batch", c->batch, 1, 65536) && tn__within(who, "parts", c->parts, 0, c->batch) &&
           tn__within(who, "tokens", c->tokens, 0, 1 << 30) && tn__within(who, "length", c->length, 8, 1 << 20) &&
           tn__within(who, "stride", c->stride, 0, 1 << 20);
}

tn_features *tn_features_create(const tn_labelled *l, const tn_tokenizer *t, const tn_labels *labels,
                                tn_features_config c)
{
    if (!valid_config(l, t, labels, &c)) return NULL;
    tn_features *f = tn__mem_zeroed(sizeof *f);
    if (!f) return NULL;
    f->config = c, f->from = l, f->tokens = t, f->labels = labels, f->planned = -1, f->group = 1;
    if (l->config.no_label) f->config.no_label = true;
    if (l->config.kind == TN_LABELLED_CHOICES && l->n) f->group = l->row[0].texts - 1;
    f->encoding = tn_encoding_new();
    if (f->encoding && tn__features_encode(f) && lengths(f) && first_plan(f)) return f;
    tn_features_free(f);
    return NULL;
}

void tn_features_free(tn_features *f)
{
    if (!f) return;
    tn_encoding_free(f->encoding);
    tn__mem_put(f->length, f->length ? (size_t)(f->rows / f->group + 1) * sizeof *f->length : 0);
    tn__mem_put(f->pieces, (size_t)f->pieces_room * sizeof *f->pieces);
    tn__mem_put(f->row, (size_t)f->row_room * sizeof *f->row);
    tn__mem_put(f->column, (size_t)f->column_room * sizeof *f->column);
    tn_ids_free(&f->label);
    tn__plan_free(&f->plan);
    tn__mem_put(f, sizeof *f);
}

int64_t tn_features_cut(const tn_features *f) { return f ? f->cut : 0; }
int64_t tn_features_count(const tn_features *f) { return f ? f->rows / f->group : 0; }

tn_feature tn_features_at(tn_features *f, int64_t i)
{
    if (!f || i < 0 || i >= tn_features_count(f)) return (tn_feature){.example = -1};
    const tn__row *r = &f->row[i * f->group];
    const int64_t  n = r->length;
    if (!tn__grown((void *)&f->column, &f->column_room, 4 * n, sizeof *f->column)) return (tn_feature){.example = -1};
    const int32_t *p = f->pieces + TN__FIELDS * r->first;
    for (int64_t k = 0; k < n; k++, p += TN__FIELDS) {
        f->column[k] = p[TN__ID], f->column[n + k] = p[TN__WORD];
        f->column[2 * n + k] = p[TN__START], f->column[3 * n + k] = p[TN__END];
    }
    return (tn_feature){r->example, n, f->column, f->column + n, f->column + 2 * n, f->column + 3 * n};
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Shape [n, width], or for choices [n, group, width]. */
static tn_tensor *empty(const tn_features *f, tn_dtype dt, int64_t n, int64_t width)
{
    return tn_empty_of(dt, f->group == 1 ? (tn_shape){.n = 2, .d = {n, width}}
                                         : (tn_shape){.n = 3, .d = {n, f->group, width}});
}

/* One field of the tokens; `pad` after a row's end. */
static tn_tensor *field(const tn_features *f, const uint32_t *order, int64_t n, int64_t width, int member, int64_t pad)
{
    tn_tensor *t = empty(f, TN_I64, n, width);
    int64_t   *to = tn_data_mut(t);
    for (int64_t i = 0; to && i < n * f->group; i++) {
        const tn__row *r = &f->row[order[i / f->group] * f->group + i % f->group];
        const int32_t *p = f->pieces + TN__FIELDS * r->first + member;
        for (int64_t k = 0; k < width; k++, to++) *to = k < r->length ? p[TN__FIELDS * k] : pad;
    }
    return t;
}

static tn_tensor *padding(const tn_features *f, const uint32_t *order, int64_t n, int64_t width)
{
    tn_tensor *t = empty(f, TN_BOOL, n, width);
    uint8_t   *to = tn_data_mut(t);
    for (int64_t i = 0; to && i < n * f->group; i++) {
        const tn__row *r = &f->row[order[i / f->group] * f->group + i % f->group];
        for (int64_t k = 0; k < width; k++) *to++ = k >= r->length;
    }
    return t;
}

/* Targets. Texts: classes [n], several as 0 and 1 [n, labels], or numbers [n]; answers: first and last token [n, 2];
 * choices: the right ending's number [n]. */
static tn_tensor *targets(const tn_features *f, const uint32_t *order, int64_t n)
{
    const bool texts = f->from->config.kind == TN_LABELLED_TEXTS, real = texts && f->config.problem != TN_SINGLE_LABEL;
    const bool many = texts && f->config.problem == TN_MULTI_LABEL;
    const int64_t wide = many ? tn_labels_count(f->labels) : f->from->config.kind == TN_LABELLED_ANSWERS ? 2 : 1;
    tn_tensor    *t = tn_zeros_of(real ? TN_F32 : TN_I64,
                               wide > 1 || many ? (tn_shape){.n = 2, .d = {n, wide}} : (tn_shape){.n = 1, .d = {n}});
    float *number = real ? tn_data_mut(t) : NULL;
    int64_t *class = real ? NULL : tn_data_mut(t);
    for (int64_t i = 0; (number || class) && i < n; i++) {
        const tn__row *r = &f->row[(order[i] + 1) * f->group - 1];
        const int32_t *label = f->label.at ? f->label.at + r->label : NULL; /* endings have none */
        if (many)
            for (int64_t k = 0; label && k < r->labels; k++) number[i * wide + label[k]] = 1;
        else if (number) number[i] = (float)r->number;
        else if (wide == 2) class[2 * i] = r->start, class[2 * i + 1] = r->end;
        else class[i] = texts && label ? label[0] : (int64_t)r->number;
    }
    return t;
}

/* Number of words with a target, over which the loss is averaged; 0: not a batch of words. */
static double words(const tn_features *f, const tn_tensor *y)
{
    const int64_t *target = y && f->from->config.kind == TN_LABELLED_WORDS ? tn_data(y) : NULL;
    int64_t        n = 0;
    for (int64_t i = 0; target && i < tn_numel(y); i++) n += target[i] != TN__IGNORED;
    return (double)n;
}

static bool source_next(void *user, tn_batch *b)
{
    tn_features *f = user;
    if (tn__blocked() || !plan(f)) return false;
    if (f->next.batch >= f->plan.batches) {
        f->next = (tn__position){f->next.epoch + 1, 0};
        return false;
    }
    const uint32_t *order = tn__plan_batch(&f->plan, f->next.batch, f->shard, b);
    const int64_t   n = b->rows;
    const int32_t   pad = tn_tokenizer_special(f->tokens).pad;
    int64_t         width = 1;
    for (int64_t i = 0; i < n; i++) width = tn__max_i64(width, f->length[order[i]]);
    b->x = field(f, order, n, width, TN__ID, pad < 0 ? 0 : pad);
    tn_batch_put(b, "types", field(f, order, n, width, TN__TYPE, 0));
    tn_batch_put(b, "padding", padding(f, order, n, width));
    tn_tensor *row = tn_empty_of(TN_I64, (tn_shape){.n = 1, .d = {n}});
    int64_t   *to = tn_data_mut(row);
    for (int64_t i = 0; to && i < n; i++) to[i] = order[i];
    tn_batch_put(b, "row", row);
    if (f->config.no_label) b->y = NULL;
    else if (f->from->config.kind == TN_LABELLED_WORDS) b->y = field(f, order, n, width, TN__TARGET, TN__IGNORED);
    else b->y = targets(f, order, n);
    b->items = n, b->weight = words(f, b->y);
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&f->shard)) f->next.batch++;
    return true;
}

static void source_begin(void *user, const tn_json *at)
{
    tn_features       *f = user;
    const tn__position to = tn__position_read(at);
    if (tn__blocked()) return;
    f->next = to, tn_shard_rewind(&f->shard);
    if (plan(f) && to.batch > f->plan.batches)
        tn_raise(TN_EINDEX,
                 "the checkpoint is at batch %lld, but an epoch has %lld; resume with the same texts and options",
                 (long long)to.batch, (long long)f->plan.batches);
}
static void source_save(void *user, tn_json_writer *w) { tn__position_write(((tn_features *)user)->next, w); }
static void source_shard(void *user, tn_shard s)
{
    if (tn__shard_check("tn_features_source", s)) ((tn_features *)user)->shard = s;
}

tn_source tn_features_source(tn_features *f)
{
    return (tn_source){.next = f ? source_next : NULL,
                       .begin = source_begin,
                       .save = source_save,
                       .shard = source_shard,
                       .user = f,
                       .batches = f ? f->plan.batches : 0};
}
