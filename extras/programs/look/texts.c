/* texts.c — reads the lines of a file as batches for a model: masked tokens, next tokens, translations or labels. */
#include "core/system/system.h"

#include "programs/common/checksum.h"
#include "programs/common/texts.h"
#include "look.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 6 };
static void tensors_of(const text_batch *b, tn_tensor *to[TENSORS])
{
    to[0] = b->ids, to[1] = b->types, to[2] = b->padding, to[3] = b->positions, to[4] = b->expected, to[5] = b->target;
}

/* The number of targets (tokens or labels) that the loss is the mean of. */
static int64_t count_targets(const text_batch *b)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *targets = b->expected;
    int64_t        ignored = -100, n = 0;
    if (b->model->kind == WRITER && b->ids) targets = tn_narrow(b->ids, 1, 1, tn_size(b->ids, 1) - 1);
    if (b->model->kind == TRANSLATOR && b->target) {
        targets = tn_narrow(b->target, 1, 1, tn_size(b->target, 1) - 1);
        ignored = ((tn_seq2seq *)(void *)b->model->net)->config.padding;
    }
    tn_tensor *counts = targets ? tn_to(tn_ne(targets, tn_full_like(targets, (double)ignored)), TN_I64) : NULL;
    if (counts) n = (int64_t)tn_item(tn_sum(counts));
    tn_scope_end(s);
    return n;
}

static bool add_batch(texts *t, const model *m, text_batch b)
{
    void *more = realloc(t->batch, (size_t)(t->n + 1) * sizeof *t->batch);
    if (!more) return tn_raise_false(TN_ENOMEM, "no memory for a batch of texts");
    t->batch = more;
    b.model = m;
    b.targets = count_targets(&b);
    tn_tensor *all[TENSORS];
    if (tn_error() != TN_OK) return false;
    tensors_of(&b, all);
    for (int i = 0; i < TENSORS; i++)
        if (all[i]) tn_keep(all[i]);
    t->batch[t->n++] = b;
    return true;
}

uint64_t texts_checksum(const texts *t)
{
    uint64_t sum = CHECKSUM;
    for (int64_t i = 0; i < TENSORS * t->n && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *all[TENSORS];
        tensors_of(&t->batch[i / TENSORS], all);
        const tn_tensor *x = all[i % TENSORS] ? tn_contiguous(all[i % TENSORS]) : NULL;
        for (int d = 0; x && d < tn_ndim(x); d++) sum = checksum(sum, &(int64_t){tn_size(x, d)}, sizeof(int64_t));
        if (x) sum = checksum_tensor(sum, x);
        tn_scope_end(s);
    }
    return sum;
}

void texts_close(texts *t)
{
    for (int64_t i = 0; i < TENSORS * t->n; i++) {
        tn_tensor *all[TENSORS];
        tensors_of(&t->batch[i / TENSORS], all);
        tn_drop(all[i % TENSORS]);
    }
    free(t->batch);
    *t = (texts){.n = 0};
}

/* ---- masked tokens ----------------------------------------------------------------------------------------------- */

/* Masks one token in seven, at least one in each text. */
static bool mask_tokens(texts *t, const model *m, const tn_token_batch *b, tn_generator *g)
{
    const int64_t n = tn_size(b->ids, 0), width = tn_size(b->ids, 1);
    const int32_t mask = tn_tokenizer_special(m->tokens).mask;
    tn_tensor    *ids = tn_clone(b->ids);
    int64_t      *id = ids ? tn_data_mut(ids) : NULL, masked = 0;
    int64_t      *at = malloc((size_t)(2 * n * width) * sizeof *at), *targets = at ? at + n * width : NULL;
    if (mask < 0) tn_raise(TN_EFORMAT, "the tokenizer has no mask token such as [MASK]");
    for (int64_t row = 0; row < n && id && at && mask >= 0; row++) {
        int64_t       ordinary = 0, chosen = -1;
        const int64_t before = masked;
        for (int64_t i = row * width; i < (row + 1) * width; i++) {
            if (tn_tokenizer_is_special(m->tokens, id[i])) continue;
            if (tn_random_below(g, ++ordinary) == 0) chosen = i;
            if (tn_random_below(g, 7)) continue;
            at[masked] = i, targets[masked++] = id[i];
        }
        if (masked == before && chosen >= 0) at[masked] = chosen, targets[masked++] = id[chosen];
        for (int64_t k = before; k < masked; k++) id[at[k]] = mask;
    }
    if (masked)
        add_batch(t, m,
                  (text_batch){.ids = ids,
                               .padding = b->key_padding_mask,
                               .positions = tn_from_data(TN_I64, TN_SHAPE(masked), at),
                               .expected = tn_from_data(TN_I64, TN_SHAPE(masked), targets)});
    free(at);
    return tn_error() == TN_OK;
}

/* A line as a string, which the caller frees with free. NULL: an error is set, for example for a line with a NUL. */
static char *line_of(const char *path, tn_lines *l, int64_t i)
{
    const tn_text x = tn_lines_at(l, i);
    if (memchr(x.at, 0, x.bytes))
        return tn_raise_null(TN_EFORMAT, "'%s', line %lld contains a NUL byte; it is not a text file", path,
                             (long long)i + 1);
    char *text = malloc(x.bytes + 1);
    if (text) memcpy(text, x.at, x.bytes), text[x.bytes] = 0;
    else tn_raise(TN_ENOMEM, "no memory for a line of '%s'", path);
    return text;
}

static bool read_masked(const texts_config *c, const model *m, tn_lines *l, texts *t)
{
    tn_generator  g = {(uint64_t)c->seed, 0};
    const int64_t all = tn_lines_count(l) < c->max_lines ? tn_lines_count(l) : c->max_lines,
                  longest = m->longest < 128 ? m->longest : 128;
    char **text = calloc((size_t)c->batch_size, sizeof *text);
    for (int64_t from = 0; text && from < all && tn_error() == TN_OK; from += c->batch_size) {
        tn_token_batch b;
        const tn_scope s = tn_scope_begin();
        int64_t        n = 0;
        for (int64_t i = from; i < all && i < from + c->batch_size && tn_error() == TN_OK; i++)
            if (tn_lines_at(l, i).bytes && (text[n] = line_of(c->file, l, i))) n++;
        if (n && tn_error() == TN_OK &&
            tn_tokenizer_batch(m->tokens, &b, n, (const char *const *)text, .max_length = longest) == TN_OK)
            mask_tokens(t, m, &b, &g);
        for (int64_t i = 0; i < n; i++) free(text[i]);
        tn_scope_end(s);
    }
    free(text);
    return tn_error() == TN_OK;
}

/* ---- next tokens ------------------------------------------------------------------------------------------------- */

/* Reads a file as `gpt eval` does: all lines with their line ends as one sequence. */
static bool read_next(const texts_config *c, const model *m, tn_lines *l, texts *t)
{
    const int64_t all = tn_lines_count(l) < c->max_lines ? tn_lines_count(l) : c->max_lines;
    const int64_t width = m->longest < 128 ? m->longest : 128;
    tn_string     text = {0};
    tn_ids        ids = {0};
    for (int64_t i = 0; i < all && tn_error() == TN_OK; i++)
        tn_string_add(&text, tn_lines_at(l, i)), tn_string_add(&text, tn_text_of("\n"));
    texts_encode(m->tokens, (tn_text){text.at, text.bytes}, true, &ids);
    for (int64_t at = 0; ids.n - at >= 2 && tn_error() == TN_OK;) {
        const tn_scope s = tn_scope_begin();
        const int64_t  left = ids.n - at, w = left < width ? left : width;
        const int64_t  rows = left / w < c->batch_size ? left / w : c->batch_size;
        tn_tensor     *x = tn_to(tn_from_data(TN_I32, TN_SHAPE(rows, w), ids.at + at), TN_I64);
        add_batch(t, m, (text_batch){.ids = x});
        at += rows * w;
        tn_scope_end(s);
    }
    tn_ids_free(&ids);
    tn_string_free(&text);
    return tn_error() == TN_OK;
}

/* ---- translations ------------------------------------------------------------------------------------------------ */

/* Rows of different lengths as one padded tensor. */
static tn_tensor *pad(token_list *p, int64_t n, int64_t padding)
{
    int64_t width = 1;
    for (int64_t i = 0; i < n; i++) width = p[i].n > width ? p[i].n : width;
    tn_tensor *x = tn_full_of(TN_I64, TN_SHAPE(n, width), (double)padding);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++)
        tn_copy_from(tn_narrow(tn_narrow(x, 0, i, 1), 1, 0, p[i].n), p[i].ids);
    return x;
}

static bool read_pairs(const texts_config *c, const model *m, tn_lines *l, texts *t)
{
    const int64_t padding = ((tn_seq2seq *)(void *)m->net)->config.padding;
    tn_lines     *other = c->target ? tn_lines_load(c->target) : NULL;
    if (!c->target)
        tn_raise(TN_EINVAL, "a translation model needs the translations of the lines in '%s'; give them with %s",
                 c->file, c->target_option);
    if (other && tn_lines_count(other) != tn_lines_count(l))
        tn_raise(TN_EFORMAT, "'%s' has %lld lines, '%s' %lld; line i of one must belong to line i of the other",
                 c->file, (long long)tn_lines_count(l), c->target, (long long)tn_lines_count(other));
    const int64_t all = tn_lines_count(l) < c->max_lines ? tn_lines_count(l) : c->max_lines;
    token_list   *p = calloc((size_t)(2 * c->batch_size), sizeof *p);
    for (int64_t from = 0; p && other && from < all && tn_error() == TN_OK; from += c->batch_size) {
        const tn_scope s = tn_scope_begin();
        int64_t        n = 0;
        for (int64_t i = from; i < all && i < from + c->batch_size && tn_error() == TN_OK; i++) {
            const tn_text x = tn_lines_at(l, i), y = tn_lines_at(other, i);
            if (!x.bytes || !y.bytes) continue;
            char *a = line_of(c->file, l, i), *b = line_of(c->target, other, i);
            if (a && b && token_list_encode(m, a, false, true, &p[n]) &&
                token_list_encode(m, b, true, true, &p[c->batch_size + n]))
                n++;
            free(a), free(b);
        }
        if (n && tn_error() == TN_OK)
            add_batch(t, m, (text_batch){.ids = pad(p, n, padding), .target = pad(p + c->batch_size, n, padding)});
        for (int64_t i = 0; i < 2 * c->batch_size; i++) token_list_free(&p[i]);
        tn_scope_end(s);
    }
    free(p);
    tn_lines_free(other);
    return tn_error() == TN_OK;
}

/* ---- labelled texts ---------------------------------------------------------------------------------------------- */

static bool add_labelled(const model *m, tn_features *f, texts *t)
{
    const tn_source all = tn_features_source(f);
    bool            more = tn_error() == TN_OK;
    if (more) all.begin(all.user, NULL);
    while (more && tn_error() == TN_OK) {
        const tn_scope s = tn_scope_begin();
        tn_batch       b = {.x = NULL};
        more = all.next(all.user, &b);
        if (more)
            add_batch(t, m,
                      (text_batch){.ids = b.x,
                                   .types = tn_batch_get(&b, "types"),
                                   .padding = tn_batch_get(&b, "padding"),
                                   .expected = b.y});
        tn_scope_end(s);
    }
    return tn_error() == TN_OK;
}

/* Reads the training files of `bert tune` for the model's task. */
static bool read_labelled(const texts_config *c, const model *m, texts *t)
{
    static const tn_labelled_kind kinds[] = {TN_LABELLED_TEXTS, TN_LABELLED_WORDS, TN_LABELLED_ANSWERS,
                                             TN_LABELLED_CHOICES};
    const tn_tuned               *net = (const tn_tuned *)(const void *)m->net;
    const int64_t                 longest = net->config.task == TN_TASK_QUESTION_ANSWERING ? 384 : 128;
    if (c->pairs && net->config.task != TN_TASK_CLASSIFICATION)
        return tn_raise_false(TN_EINVAL,
                              "--pairs is for models that assign a label to two texts; omit it for this model");
    if (net->config.problem != TN_SINGLE_LABEL)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "this model predicts several labels or a number; look supports models with one label");
    tn_labelled *l = tn_labelled_load(c->file, .kind = kinds[net->config.task], .pairs = c->pairs);
    tn_labels   *labels = l ? tn_labels_new(net->config.n, (const char *const *)net->labels) : NULL;
    if (labels && net->config.task <= TN_TASK_TOKEN_CLASSIFICATION) tn_labelled_only(l, labels);
    if (labels) tn_labelled_first(l, c->max_lines);
    tn_features *f = labels ? tn_features_new(l, m->tokens, labels, .batch = c->batch_size, .fixed = true,
                                              .length = m->longest < longest ? m->longest : longest)
                            : NULL;
    if (f) add_labelled(m, f, t);
    tn_features_free(f);
    tn_labels_free(labels);
    tn_labelled_free(l);
    return tn_error() == TN_OK;
}

bool texts_open(const texts_config *c, const model *m, texts *t)
{
    *t = (texts){.n = 0};
    if (c->pairs && m->kind != TUNED)
        return tn_raise_false(TN_EINVAL, "--pairs is for tuned models and labelled texts; omit it for this model");
    if (c->target && m->kind != TRANSLATOR)
        return tn_raise_false(TN_EINVAL, "%s is for translation models; omit it for this model", c->target_option);
    if (m->kind == TUNED) read_labelled(c, m, t);
    tn_lines *l = m->kind == TUNED ? NULL : tn_lines_load(c->file);
    if (l && m->kind == READER) read_masked(c, m, l, t);
    if (l && m->kind == WRITER) read_next(c, m, l, t);
    if (l && m->kind == TRANSLATOR) read_pairs(c, m, l, t);
    tn_lines_free(l);
    if (tn_error() == TN_OK && !t->n) tn_raise(TN_EFORMAT, "'%s' contains no text", c->file);
    if (tn_error() != TN_OK) texts_close(t);
    return tn_error() == TN_OK;
}

/* ---- loss and accuracy ------------------------------------------------------------------------------------------- */

static tn_tensor *label_logits(const text_batch *b, void *net)
{
    return tn_tuned_forward((tn_tuned *)net, b->ids, .types = b->types, .key_padding_mask = b->padding);
}

tn_tensor *texts_loss(void *net, void *user)
{
    const text_batch *b = user;
    if (b->model->kind == TUNED)
        return tn_tuned_loss((tn_tuned *)net, label_logits(b, net), b->expected, .key_padding_mask = b->padding);
    if (b->model->kind == TRANSLATOR) return tn_seq2seq_loss((tn_seq2seq *)net, b->ids, b->target);
    if (b->model->kind == WRITER) return tn_lm_loss(net, b->ids, NULL);
    return tn_bert_loss((tn_bert *)net, .ids = b->ids, .key_padding_mask = b->padding, .masked = b->positions,
                        .words = b->expected);
}

/* The logits [N, classes] and the targets [N]. */
static tn_tensor *logits_of(const text_batch *b, tn_module *net, tn_tensor **targets)
{
    tn_tensor *y;
    *targets = b->expected;
    if (b->model->kind == TUNED) {
        y = label_logits(b, net);
        if (((tn_tuned *)(void *)net)->config.task ==
            TN_TASK_QUESTION_ANSWERING) /* start and end logits over tokens, padding masked */
            y = tn_transpose(b->padding ? tn_masked_fill(y, tn_unsqueeze(b->padding, 2), -INFINITY) : y, 1, 2);
        *targets = tn_reshape(b->expected, TN_SHAPE(-1));
        return tn_reshape(y, TN_SHAPE(-1, tn_size(y, -1)));
    }
    if (b->model->kind == READER) {
        y = tn_bert_forward(b->model->encoder, b->ids, .key_padding_mask = b->padding, .targets = b->positions,
                            .for_words = true);
        return tn_bert_mlm_logits(b->model->encoder, y, NULL);
    }
    tn_tensor    *ids = b->model->kind == WRITER ? b->ids : b->target;
    const int64_t n = tn_size(ids, 1);
    tn_tensor    *before = tn_narrow(ids, 1, 0, n - 1);
    *targets = tn_reshape(tn_narrow(ids, 1, 1, n - 1), TN_SHAPE(-1));
    y = b->model->kind == WRITER ? tn_lm_forward(net, before)
                                 : tn_seq2seq_forward((tn_seq2seq *)(void *)net, b->ids, before);
    return tn_reshape(y, TN_SHAPE(-1, tn_size(y, 2)));
}

bool texts_quality(const texts *t, const model *m, quality *q)
{
    const int64_t padding = m->kind == TRANSLATOR ? ((tn_seq2seq *)(void *)m->net)->config.padding : -100;
    double        loss = 0, correct = 0, counted = 0;
    const double  begin = seconds_now();
    if (m->kind == TUNED && ((tn_tuned *)(void *)m->net)->crf)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "this model has a CRF, which look prune does not support; use look heads");
    for (int64_t i = 0; i < t->n && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_no_grad_begin();
        tn_tensor     *targets, *y = logits_of(&t->batch[i], m->net, &targets);
        tn_tensor     *counts = tn_to(tn_ne(targets, tn_full_like(targets, (double)padding)), TN_F32);
        tn_tensor     *hits = tn_to(tn_eq(tn_argmax(y, -1, false), targets), TN_F32);
        loss += tn_item(tn_cross_entropy(y, targets, .ignore_index = padding, .reduction = TN_SUM));
        correct += tn_item(tn_sum(tn_mul(hits, counts))), counted += tn_item(tn_sum(counts));
        tn_scope_end(s);
    }
    if (tn_error() == TN_OK) numbers_finite(loss, "the loss");
    *q = (quality){loss / counted, correct / counted, seconds_now() - begin, (int64_t)counted};
    return tn_error() == TN_OK;
}
