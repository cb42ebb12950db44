/* shard.c — one shard's work on a chunk of the text.
 *
 * All chunks of a round start from the same rows, and each works on copies of the rows that its words need, so no
 * worker waits for another or sees its changes. The changes of the copies are then added to the tables, chunk by chunk
 * in order. So the result depends only on how the text is divided, which is fixed, and not on the scheduling. Adjacent
 * copies are also in the nearest cache, where rows of the tables seldom are. */
#include "extras/vectors/vectors_private.h"
#include "core/base/toolbox.h"

/* ---- tables, and copies of their rows ---------------------------------------------------------------------------- */

bool tn__table_make(tn__table *to, int64_t rows, int64_t width, bool zeroed)
{
    const tn_shape shape = TN_SHAPE(rows, width);
    if (rows >= INT32_MAX / 2)
        return tn_raise_false(TN_ENOMEM, "tn_vectors_train: %lld rows of %lld numbers are too large", (long long)rows,
                              (long long)width);
    to->rows = rows;
    to->t = tn_take(zeroed ? tn_zeros(shape) : tn_empty(shape));
    return to->t && (to->x = tn_data_mut(to->t));
}

static bool copies_make(tn__copies *c, int64_t room, int64_t width)
{
    c->room = room, c->slots = 64;
    while (c->slots < 2 * (uint64_t)room) c->slots *= 2;
    c->row = tn__scope_room(room, sizeof *c->row);
    c->slot = tn__scope_room((int64_t)c->slots, sizeof *c->slot);
    c->x = tn__scope_room(room * width, sizeof *c->x);
    return c->row && c->slot && c->x;
}

static void copies_forget(tn__copies *c)
{
    c->n = 0;
    memset(c->slot, 0, (size_t)c->slots * sizeof *c->slot);
}

/* Returns the copy of a row, creating its entry if needed. */
static int32_t copy_of(tn__copies *c, int32_t row)
{
    for (uint32_t at = (uint32_t)row * 0x9e3779b1u;; at++) {
        int32_t *slot = c->slot + (at & (c->slots - 1));
        if (!*slot) {
            c->row[c->n] = row;
            *slot = (int32_t)++c->n;
        }
        if (c->row[*slot - 1] == row) return *slot - 1;
    }
}

enum { AHEAD = 6 }; /* rows: prefetch distance for scattered table rows */

static void fetch(const float *row, int64_t width)
{
    for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(row + k);
}

static void copies_fill(tn__copies *c, const tn__table *from, int64_t width)
{
    for (int64_t i = 0; i < c->n; i++) {
        if (i + AHEAD < c->n) fetch(from->x + c->row[i + AHEAD] * width, width);
        memcpy(c->x + i * width, from->x + c->row[i] * width, (size_t)width * sizeof *c->x);
    }
}

static void copies_subtract(tn__copies *c, const tn__table *from, const tn__trainer *t)
{
    for (int64_t i = 0; i < c->n; i++) {
        if (i + AHEAD < c->n) fetch(from->x + c->row[i + AHEAD] * t->width, t->width);
        t->kernels->subtract(t->width, c->x + i * t->width, from->x + c->row[i] * t->width);
    }
}

static void copies_add(const tn__copies *c, tn__table *to, const tn__trainer *t, int64_t part)
{
    const int64_t mask = t->shards - 1; /* a power of two */
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t ahead = i + t->shards * AHEAD; /* one in t->shards rows is of this part */
        if (ahead < c->n && (c->row[ahead] & mask) == part) {
            fetch(to->x + c->row[ahead] * t->width, t->width);
            fetch(c->x + ahead * t->width, t->width);
        }
        if ((c->row[i] & mask) == part) t->kernels->add(t->width, to->x + c->row[i] * t->width, c->x + i * t->width);
    }
}

void tn__shard_merge(tn__trainer *t, int64_t part)
{
    for (int64_t i = 0; i < t->shards; i++) {
        copies_add(&t->shard[i].in, &t->in, t, part);
        copies_add(&t->shard[i].out, &t->out, t, part);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A word takes at least a letter and a blank. */
enum { TEXT = TN__SHARD_BYTES + 2 * TN__CONTEXT, TOKENS = TEXT / 2 + 2 };

static int64_t least(int64_t a, int64_t rows) { return tn__min_i64(a, rows) + 1; }

bool tn__shard_begin(tn__shard *s, const tn__trainer *t)
{
    s->t = t, s->file = -1;
    s->text = tn__scope_room(TEXT, 1), s->window = tn__scope_room(TOKENS, 1);
    s->token = tn__scope_room(TOKENS, sizeof *s->token);
    s->in_at = tn__scope_room(TOKENS, sizeof *s->in_at), s->out_at = tn__scope_room(TOKENS, sizeof *s->out_at);
    s->pool = tn__scope_room(t->pool, sizeof *s->pool), s->scratch = tn__scope_room(2 * t->width, sizeof *s->scratch);
    /* each of a letter, a blank, < and > starts at most one n-gram of each length; and each word has its own row */
    const int64_t logits = tn__is_softmax(t) ? TN__WORD_PAIRS_IN * (t->out.rows + t->width) : 0;
    if (logits && !(s->logit = tn__scope_room(logits, sizeof *s->logit))) return false;
    const int64_t rows = t->gram ? 1 + 3 * (t->a.max_n - t->a.min_n + 1) : 1, ways = t->tree.node ? 60 : 1;
    const int64_t outs = logits ? t->out.rows : TOKENS * ways + t->pool;
    return s->text && s->token && s->in_at && s->out_at && s->window && s->pool && s->scratch &&
           copies_make(&s->in, least(TOKENS * rows, t->in.rows), t->width) &&
           copies_make(&s->out, least(outs, t->out.rows), t->width);
}

/* ---- the words of a chunk ---------------------------------------------------------------------------------------- */

/* The draws for a word depend on its position in the text, so that neighbouring shards draw the same. */
static void take(tn__shard *s, int64_t at, const char *word, int64_t bytes, bool own)
{
    const tn__trainer *t = s->t;
    const int64_t      id = bytes > TN__WORD_MAX ? -1 : tn__lexicon_find(&t->words, word, (size_t)bytes);
    if (id < 0) return;
    s->words += own;
    const uint64_t random = tn__splitmix(s->key ^ (uint64_t)at * 0xd1342543de82ef95u);
    if ((uint32_t)random > t->keep[id]) return;
    s->window[s->tokens] = (uint8_t)(1 + tn__choose((uint32_t)(random >> 32), (uint32_t)t->a.window));
    s->token[s->tokens++] = (int32_t)id;
}

/* Words that start in [from, to) are the shard's own; words within AROUND bytes are context. */
static void read_piece(tn__shard *s, int64_t from, int64_t to)
{
    const char   *text = s->text - s->text_at;
    const int64_t end = s->text_end;
    int64_t       at = s->text_at;
    if (at > 0)
        while (at < end && !tn__is_gap(text[at])) at++; /* skip a possible end of a word */
    bool before = true, own = false;
    for (;;) {
        for (; at < end && tn__is_gap(text[at]); at++) {
            if (text[at] != '\n') continue;
            s->words += at >= from && at < to; /* word2vec counts the end of a line as a word */
            if (s->tokens && s->token[s->tokens - 1] >= 0) s->window[s->tokens] = 0, s->token[s->tokens++] = -1;
        }
        const int64_t word = at;
        if (before && at >= from) s->first = s->tokens, before = false, own = true;
        if (own && at >= to) s->last = s->tokens, own = false;
        if (at >= end) break;
        while (at < end && !tn__is_gap(text[at])) at++;
        if (at == end && end != s->file_end) break;
        take(s, word, text + word, at - word, own);
    }
    if (before) s->first = s->tokens;
    if (before || own) s->last = s->tokens;
}

/* ---- a chunk ----------------------------------------------------------------------------------------------------- */

static void copy_word(tn__shard *s, int64_t i)
{
    const tn__trainer *t = s->t;
    const int32_t      id = s->token[i];
    const bool         own = i >= s->first && i < s->last;
    if (!t->gram) s->in_at[i] = copy_of(&s->in, id);
    else if (own)
        for (int64_t k = t->gram_start[id]; k < t->gram_start[id + 1]; k++) copy_of(&s->in, t->gram[k]);
    if (!own && !t->gram) return; /* FastText predicts the surrounding words; the other kinds predict from them */
    if (t->tree.node)
        for (int64_t k = t->tree.start[id]; k < t->tree.start[id + 1]; k++) copy_of(&s->out, t->tree.node[k]);
    else s->out_at[i] = copy_of(&s->out, id);
}

bool tn__shard_read(tn__shard *s)
{
    s->tokens = s->first = s->last = s->words = 0;
    if (s->from < s->to) read_piece(s, s->from, s->to);
    return s->from < s->to;
}

void tn__shard_run(tn__shard *s)
{
    const tn__trainer *t = s->t;
    copies_forget(&s->in), copies_forget(&s->out);
    if (!tn__shard_read(s)) return;
    s->random = tn__splitmix(s->key ^ ~(uint64_t)s->from);
    for (int32_t i = 0; tn__is_softmax(t) && i < t->out.rows; i++) copy_of(&s->out, i);
    for (int64_t k = 0; k < s->tokens; k++)
        if (s->token[k] >= 0) copy_word(s, k);
    for (int64_t k = 0; t->noise.n && k < t->pool; k++)
        s->pool[k] =
            copy_of(&s->out, (int32_t)tn__noise_draw(&t->noise, tn__splitmix(s->random += 0x9e3779b97f4a7c15u)));
    copies_fill(&s->in, &t->in, t->width), copies_fill(&s->out, &t->out, t->width);
    t->learn(s);
    copies_subtract(&s->in, &t->in, t), copies_subtract(&s->out, &t->out, t);
}
