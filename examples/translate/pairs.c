/* pairs.c — two files whose lines belong together, as batches; and the loss on them. */
#include "translate.h"

#include <string.h>

/* ---- a first look ------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *path;
    int64_t     line;
} first_look;

/* One number for a line with something in it, none for one without. */
static tn_status look(void *user, tn_span line, tn_ids *to)
{
    first_look *l = user;
    bool        valid = true;
    l->line++;
    for (size_t at = 0, from = 0; at < line.bytes && valid; from = at) {
        tn_utf8_next(line.at, line.bytes, &at, &valid);
        if (!valid)
            return tn_raise(TN_EFORMAT,
                            "'%s': line %lld is not UTF-8: its byte %zu is 0x%02x; convert the file first, for example "
                            "with iconv -f latin1 -t utf-8",
                            l->path, (long long)l->line, from + 1, (unsigned)(unsigned char)line.at[from]);
    }
    return line.bytes ? tn_ids_add(to, 1) : TN_OK;
}

bool pairs_check(const char *source, const char *target, pairs_state *s)
{
    first_look   side[2] = {{.path = source}, {.path = target}};
    tn_parallel *p = tn_parallel_load(
        source, target, (tn_parallel_config){.source = {look, &side[0]}, .target = {look, &side[1]}, .end = 2});
    s->empty = tn_parallel_dropped(p), s->first_empty = 0;
    while (s->empty && s->first_empty < tn_parallel_count(p) && tn_parallel_line(p, s->first_empty) == s->first_empty)
        s->first_empty++;
    s->first_empty++;
    const bool some = tn_parallel_count(p) > 0;
    tn_parallel_free(p);
    if (tn_error() == TN_OK && !some)
        tn_raise(TN_EFORMAT, "'%s' and '%s' have no pair of lines with something in both", source, target);
    return tn_error() == TN_OK;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

bool pairs_open(pairs *p, const tn_tokenizer *t, const char *source, const char *target, int64_t tokens,
                int64_t longest, uint64_t seed, bool in_order)
{
    *p = (pairs){.encoding = {tn_encoding_new(), tn_encoding_new()}};
    if (tn_error() == TN_OK)
        p->pairs = tn_parallel_load(source, target,
                                    (tn_parallel_config){.source = tn_tokenizer_encoder(t, p->encoding[0]),
                                                         .target = tn_tokenizer_encoder(t, p->encoding[1]),
                                                         .pad = PADDING,
                                                         .begin = BEGIN,
                                                         .end = END,
                                                         .max_tokens = longest});
    if (p->pairs)
        p->batches =
            tn_parallel_batches_new(p->pairs, (tn_batching){.tokens = tokens, .seed = seed, .in_order = in_order});
    if (p->batches && tn_error() == TN_OK) return true;
    pairs_close(p);
    return false;
}
void pairs_close(pairs *p)
{
    tn_parallel_batches_free(p->batches);
    tn_parallel_free(p->pairs);
    tn_encoding_free(p->encoding[0]), tn_encoding_free(p->encoding[1]);
    *p = (pairs){.pairs = NULL};
}

static bool next(void *user, tn_batch *b)
{
    const pairs      *p = user;
    tn_parallel_batch m;
    if (!tn_parallel_next(p->batches, &m)) return false;
    tn_tensor *target = tn_cat(1, tn_narrow(m.target_in, 1, 0, 1), m.target_out); /* begin, words, end */
    *b = (tn_batch){.x = m.source, .y = target, .items = m.tokens};
    return tn_error() == TN_OK;
}
static void begin(void *user, const tn_json *at)
{
    const pairs           *p = user;
    const tn_data_position to = {tn_json_i64(tn_json_get(at, "epoch")), tn_json_i64(tn_json_get(at, "batch"))};
    tn_parallel_seek(p->batches, to);
}
static void save(void *user, tn_json_writer *w)
{
    const pairs           *p = user;
    const tn_data_position at = tn_parallel_position(p->batches);
    tn_json_put_i64(w, "epoch", at.epoch);
    tn_json_put_i64(w, "batch", at.batch);
}
tn_source pairs_source(pairs *p)
{
    return (tn_source){
        .next = next, .begin = begin, .save = save, .user = p, .batches = tn_parallel_batches_count(p->batches)};
}

tn_tensor *pairs_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_seq2seq_loss((tn_seq2seq *)net, b->x, b->y, .label_smoothing = 0.1);
}
tn_tensor *pairs_plain_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_seq2seq_loss((tn_seq2seq *)net, b->x, b->y);
}
