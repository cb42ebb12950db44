/* parts.c — returns the parts of a tokenizer, for files that hold them: GGUF. */
#include "core/base/toolbox.h"
#include "data/tokenizer/files/tokenizer_files.h"

/* A tokenizer.json of SentencePiece's kind has merges but no scores: writes scores that give the same order. */
static void scores_of_merges(const tn_tokenizer *t, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++) to[i] = 0;
    for (uint32_t k = t->merges.n; k-- > 0;) to[t->merges.becomes[k]] = -1 - (float)k;
}

/* The tokens of a tokenizer.json have no types: options specify which are bytes and which is unknown; added tokens,
 * special or not, are matched in a text before the others. */
static void types_of(const tn_tokenizer *t, int64_t n, int32_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = t->type && t->type[i] != TN_TYPE_NORMAL     ? t->type[i]
                : i == t->unknown && t->kind != TN_BYTE_BPE ? TN_TYPE_UNKNOWN
                : !*tn_tokenizer_token(t, i)                ? TN_TYPE_UNUSED
                                                            : TN_TYPE_NORMAL;
    for (uint32_t i = 0; i < t->added.n; i++) {
        int32_t *type = &to[t->added.token[i].id];
        if (*type == TN_TYPE_NORMAL) *type = t->added.token[i].special ? TN_TYPE_CONTROL : TN_TYPE_USER;
    }
    for (int b = 0; t->sentence.fallback && b < 256; b++)
        if (t->byte_token[b] >= 0 && to[t->byte_token[b]] == TN_TYPE_NORMAL) to[t->byte_token[b]] = TN_TYPE_BYTE;
}

/* True if a space is added before a text; in a tokenizer.json it may be a separate step. */
static bool has_space(const tn_tokenizer *t)
{
    bool space = t->sentence.space != TN__SPACE_NEVER;
    for (int i = 0; i < t->steps; i++) space |= t->step[i].kind == TN__STEP_PREPEND;
    return t->split == TN__SPLIT_SENTENCE && space;
}

int64_t tn_tokenizer_parts(const tn_tokenizer *t, float *scores, int32_t *types, int32_t *merges)
{
    if (!tn__not_null("tn_tokenizer_parts", "the tokenizer", t)) return 0;
    const int64_t     n = tn_tokenizer_size(t);
    const tn__merges *m = &t->merges;
    if (scores && !t->score) scores_of_merges(t, n, scores);
    for (int64_t i = 0; scores && t->score && i < n; i++) scores[i] = t->score[i];
    if (types) types_of(t, n, types);
    for (uint32_t i = 0; merges && m->n && i <= m->mask; i++) {
        if (!m->pair[i]) continue;
        const uint64_t pair = m->pair[i] - 1;
        merges[2 * m->rank[i]] = (int32_t)(pair >> 32), merges[2 * m->rank[i] + 1] = (int32_t)(uint32_t)pair;
    }
    return m->n;
}

tn_tokenizer_traits tn_tokenizer_traits_of(const tn_tokenizer *t)
{
    static const char *const splitters[] = {"gpt-2", "llama-bpe", "qwen2", "smollm"}; /* as byte_words.c's table */
    tn_tokenizer_traits      a = {.splitter = NULL};
    if (!tn__not_null("tn_tokenizer_traits_of", "the tokenizer", t)) return a;
    if (t->kind == TN_BYTE_BPE) a.splitter = splitters[t->bytes.splitter];
    a.first = t->single.n > 0 && t->single.part[0].text < 0;
    a.last = t->single.n > 1 && t->single.part[t->single.n - 1].text < 0;
    a.space = has_space(t);
    if (t->kind == TN_BYTE_BPE || t->kind == TN_SENTENCE_BPE) a.unsupported = tn__gguf_missing_rule(t);
    return a;
}
