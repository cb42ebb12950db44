/* pairs.c — batches of sentence pairs from two parallel files, and the loss on a batch. */
#include "../common/messages.h"
#include "../common/checksum.h"
#include "../common/texts.h"
#include "translate.h"

/* ---- check of the files ------------------------------------------------------------------------------------------ */

typedef struct {
    const char *path;
    int64_t     line;
    size_t      bytes; /* sum over the lines */
    uint64_t    sum;   /* their hash */
} check_state;

/* Checks that a line is UTF-8, and hashes it. Adds one id for a line that is not empty, none for an empty line. */
static tn_status check_line(void *user, tn_text line, tn_ids *to)
{
    check_state *l = user;
    bool         valid = true;
    l->line++, l->bytes += line.bytes, l->sum = checksum(checksum(l->sum, line.at, line.bytes), "\n", 1);
    for (size_t at = 0, from = 0; at < line.bytes && valid; from = at) {
        tn_utf8_next(line.at, line.bytes, &at, &valid);
        if (!valid)
            return tn_raise(TN_EFORMAT, "'%s': line %lld is not UTF-8: its byte %zu is 0x%02x; " TEXTS_CONVERT, l->path,
                            (long long)l->line, from + 1, (unsigned)(unsigned char)line.at[from]);
    }
    return line.bytes ? tn_ids_add(to, 1) : TN_OK;
}

bool pairs_check(const char *source, const char *target, pairs_state *s)
{
    check_state side[2] = {{.path = source, .sum = CHECKSUM}, {.path = target, .sum = CHECKSUM}};
    tn_pairs   *p =
        tn_pairs_load(source, target, .source = {check_line, &side[0]}, .target = {check_line, &side[1]}, .end = 2);
    s->empty = tn_pairs_dropped(p), s->first_empty = 0, s->bytes = side[0].bytes + side[1].bytes;
    while (s->empty && s->first_empty < tn_pairs_count(p) && tn_pairs_line(p, s->first_empty) == s->first_empty)
        s->first_empty++;
    s->first_empty++;
    const bool some = tn_pairs_count(p) > 0;
    tn_pairs_free(p);
    if (tn_error() == TN_OK && side[0].sum == side[1].sum)
        warn("'%s' and '%s' are the same text, so the model learns to copy; --tgt is its translation\n", source,
             target);
    if (tn_error() == TN_OK && !some)
        tn_raise(TN_EFORMAT, "'%s' and '%s' have no pair of lines without an empty line", source, target);
    return tn_error() == TN_OK;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Encodes a line as its tokenizer's template says, without the token that ends it, which tn_pairs adds. */
typedef struct {
    const tn_tokenizer *tokens;
    tn_encoding        *encoding;
    int32_t             end;
} framed;
static tn_status encode_framed(void *user, tn_text line, tn_ids *to)
{
    const framed *f = user;
    if (!line.bytes) return TN_OK;
    if (tn_tokenizer_encode(f->tokens, f->encoding, line.at, line.bytes) != TN_OK) return tn_error();
    const tn_encoding *e = f->encoding;
    const int64_t      n = e->n && e->id[e->n - 1] == f->end ? e->n - 1 : e->n;
    for (int64_t i = 0; i < n; i++)
        if (tn_ids_add(to, e->id[i]) != TN_OK) return tn_error();
    return TN_OK;
}

bool pairs_open(pairs *p, const tn_tokenizer *t, pair_ids ids, const char *source, const char *target, int64_t tokens,
                int64_t longest, uint64_t seed, bool in_order)
{
    *p = (pairs){.encoding = {tn_encoding_new(), tn_encoding_new()}};
    framed     sides[2] = {{t, p->encoding[0], ids.end}, {t, p->encoding[1], ids.end}};
    tn_encoder encoder[2];
    for (int i = 0; i < 2; i++)
        encoder[i] = ids.framed ? (tn_encoder){encode_framed, &sides[i]} : tn_tokenizer_encoder(t, p->encoding[i]);
    if (tn_error() == TN_OK)
        p->pairs = tn_pairs_load(source, target, .source = encoder[0], .target = encoder[1], .pad = ids.pad,
                                 .begin = ids.begin, .end = ids.end, .max_tokens = longest);
    if (p->pairs && !tn_pairs_count(p->pairs))
        tn_raise(TN_EFORMAT, "'%s' and '%s' have no pair of lines of at most %lld tokens", source, target,
                 (long long)longest);
    if (p->pairs) p->batches = tn_pairs_batches_new(p->pairs, .tokens = tokens, .seed = seed, .in_order = in_order);
    if (p->batches && tn_error() == TN_OK) return true;
    pairs_close(p);
    return false;
}
void pairs_close(pairs *p)
{
    tn_pairs_batches_free(p->batches);
    tn_pairs_free(p->pairs);
    tn_encoding_free(p->encoding[0]), tn_encoding_free(p->encoding[1]);
    *p = (pairs){.pairs = NULL};
}

tn_tensor *pairs_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_seq2seq_loss((tn_seq2seq *)net, b->x, b->y, .label_smoothing = 0.1);
}
