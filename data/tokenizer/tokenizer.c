/* tokenizer.c — a tokenizer's making and its questions: rules, pieces, merges, special tokens, roles. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <stdatomic.h>
#include <string.h>

tn_tokenizer *tn__tokenizer_new(tn_tokenizer_kind kind)
{
    static atomic_uint_least64_t serial; /* an encoding must tell two tokenizers at one address apart */
    tn_tokenizer                *t = tn__mem_zeroed(sizeof *t);
    if (!t) return NULL;
    const bool words = kind == TN_WORDPIECE || kind == TN_BPE;
    t->kind = kind, t->serial = atomic_fetch_add(&serial, 1) + 1;
    t->normalizes = t->clean = t->chinese = t->strip = t->lower = words;
    t->split = words ? TN__SPLIT_BERT : kind == TN_BYTE_BPE ? TN__SPLIT_BYTES : TN__SPLIT_SENTENCE;
    t->sentence.fallback = t->split == TN__SPLIT_SENTENCE, t->fuse_unknown = t->split == TN__SPLIT_SENTENCE;
    t->regex = true;
    t->unknown = -1;
    t->longest_word = INT64_MAX;
    if (kind == TN_WORDPIECE) {
        t->longest_word = 100;
        memcpy(t->prefix, "##", t->prefix_bytes = 2);
    } else if (kind == TN_BPE) {
        memcpy(t->suffix, "</w>", t->suffix_bytes = 4);
    }
    t->single[0] = t->pair[0] = (tn__part){.text = 0};
    t->pair[1] = (tn__part){.text = 1, .segment = 0};
    t->n_single = 1, t->n_pair = 2;
    return t;
}

void tn_tokenizer_free(tn_tokenizer *t)
{
    if (!t) return;
    tn__merges *m = &t->merges;
    if (m->pair) {
        tn__mem_put(m->pair, ((size_t)m->mask + 1) * sizeof *m->pair);
        tn__mem_put(m->rank, ((size_t)m->mask + 1) * sizeof *m->rank);
    }
    tn__mem_put(m->becomes, (size_t)m->room * sizeof *m->becomes);
    tn__mem_put(m->order, (size_t)m->order_room * sizeof *m->order);
    tn__mem_put(t->score, (size_t)t->score_room * sizeof *t->score);
    tn__mem_put(t->wide, (size_t)t->wide_room * sizeof *t->wide);
    tn__mem_put(t->type, (size_t)t->type_room);
    tn__trie_free(&t->trie), tn__trie_free(&t->user);
    tn__charsmap_free(&t->charsmap);
    tn__mem_put(t->added, (size_t)t->added_room * sizeof *t->added);
    tn__strings_free(&t->pieces);
    tn__mem_put(t, sizeof *t);
}

bool tn__skip_piece(tn_tokenizer *t)
{
    char           name[1 + sizeof(uint32_t)] = {0}; /* to a reader it is empty; and no file has a NUL in a piece */
    const uint32_t id = t->pieces.n;
    memcpy(name + 1, &id, sizeof id);
    return tn__strings_add(&t->pieces, name, sizeof name) == id;
}

bool tn__merges_room(tn__merges *m, size_t n)
{
    if (n > TN__VOCAB_MOST) return tn_raise(TN_EUNSUPPORTED, "more than %d merges", TN__VOCAB_MOST), false;
    const size_t slots = tn__names_slots((uint32_t)n);
    m->pair = tn__mem_zeroed(slots * sizeof *m->pair);
    m->rank = m->pair ? tn__mem_get(slots * sizeof *m->rank) : NULL;
    if (!m->rank) {
        tn__mem_put(m->pair, slots * sizeof *m->pair);
        return m->pair = NULL, false;
    }
    m->mask = (uint32_t)slots - 1;
    tn__names seed;
    tn__names_seed(&seed);
    m->seed = seed.seed[0] ^ seed.seed[1];
    return tn__grown((void *)&m->becomes, &m->room, (int64_t)n, sizeof *m->becomes);
}

bool tn__merges_put(tn__merges *m, int32_t a, int32_t b, int32_t becomes)
{
    const uint64_t key = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
    uint32_t       at = (uint32_t)tn__mix(key ^ m->seed) & m->mask;
    for (; m->pair[at]; at = (at + 1) & m->mask)
        if (m->pair[at] == key) return false;
    m->pair[at] = key, m->rank[at] = m->n;
    m->becomes[m->n++] = becomes;
    return true;
}

bool tn__merge_texts(tn_tokenizer *t, const char *who, const char *a, size_t na, const char *b, size_t nb)
{
    char          qa[TN__QUOTED], qb[TN__QUOTED];
    const int64_t left = tn__strings_find(&t->pieces, a, na), right = tn__strings_find(&t->pieces, b, nb);
    const size_t  skip = t->prefix_bytes <= nb && !memcmp(b, t->prefix, t->prefix_bytes) ? t->prefix_bytes : 0;
    tn_string     both = {0};
    if (tn_string_add(&both, (tn_text){a, na}) != TN_OK ||
        tn_string_add(&both, (tn_text){b + skip, nb - skip}) != TN_OK)
        return tn_string_free(&both), false;
    const int64_t becomes = tn__strings_find(&t->pieces, both.at, both.bytes);
    tn_string_free(&both);
    if (left < 0 || right < 0 || becomes < 0)
        return tn_raise(TN_EFORMAT, "%s: merge %u of %s and %s: %s is not in the vocabulary", who, t->merges.n + 1,
                        tn__quote(qa, a, na, 40), tn__quote(qb, b, nb, 40),
                        left < 0    ? "the first"
                        : right < 0 ? "the second"
                                    : "what they make"),
               false;
    if (tn__merges_put(&t->merges, (int32_t)left, (int32_t)right, (int32_t)becomes)) return true;
    return tn_raise(TN_EFORMAT, "%s: the merge of %s and %s is there twice", who, tn__quote(qa, a, na, 40),
                    tn__quote(qb, b, nb, 40)),
           false;
}

bool tn__tokenizer_add(tn_tokenizer *t, tn__added a)
{
    for (uint32_t i = 0; i < t->n_added; i++)
        if (t->added[i].id == a.id) return t->added[i] = a, true;
    if (t->n_added >= TN__ADDED_MOST)
        return tn_raise(TN_EUNSUPPORTED, "more than %d added tokens", TN__ADDED_MOST), false;
    if (!tn__grown((void *)&t->added, &t->added_room, (int64_t)t->n_added + 1, sizeof *t->added)) return false;
    t->added[t->n_added++] = a;
    return true;
}

static int32_t find(const tn_tokenizer *t, const char *piece)
{
    return (int32_t)tn__strings_find(&t->pieces, piece, strlen(piece));
}

static int32_t find_either(const tn_tokenizer *t, const char *a, const char *b, const char *c)
{
    const int32_t i = find(t, a), k = i < 0 ? find(t, b) : i;
    return k < 0 ? find(t, c) : k;
}

bool tn__tokenizer_ready(tn_tokenizer *t, const char *who)
{
    if (t->kind == TN_WORDPIECE && t->unknown < 0)
        return tn_raise(TN_EFORMAT, "%s: the unknown token, [UNK], is not in the vocabulary", who), false;
    if (t->split == TN__SPLIT_SENTENCE && !tn__sentence_ready(t, who)) return false;
    t->role = (tn_tokenizer_roles){
        .pad = find_either(t, "[PAD]", "<pad>", "<pad>"),
        .unknown = t->unknown >= 0 ? t->unknown : find_either(t, "[UNK]", "<unk>", "<unk>"),
        .first = find_either(t, "[CLS]", "<s>", "<s>"),
        .separator = find_either(t, "[SEP]", "</s>", "</s>"),
        .mask = find_either(t, "[MASK]", "<mask>", "<mask>"),
        .last = find_either(t, "</s>", "<|endoftext|>", "[SEP]"),
    };
    for (uint32_t i = 0; i < t->pieces.n; i++) {
        size_t n;
        tn__strings_text(&t->pieces, i, &n);
        if (n > t->longest_piece) t->longest_piece = n;
    }
    memset(t->added_first, 0, sizeof t->added_first);
    for (uint32_t i = 0; i < t->n_added; i++) {
        size_t n;
        t->added_first[(unsigned char)*tn__strings_text(&t->pieces, (uint32_t)t->added[i].id, &n)] = true;
    }
    for (int b = 0; b < 256 && t->kind == TN_BYTE_BPE; b++) {
        char letter[4];
        t->byte_piece[b] =
            (int32_t)tn__strings_find(&t->pieces, letter, (size_t)tn_utf8_put(tn__byte_letter(b), letter));
    }
    return true;
}

void tn__template_bert(tn_tokenizer *t)
{
    const int32_t first = find(t, "[CLS]"), separator = find(t, "[SEP]");
    if (first < 0 || separator < 0) return;
    const tn__part cls = {-1, 0, first}, sep = {-1, 0, separator}, sep1 = {-1, 1, separator};
    t->single[0] = t->pair[0] = cls, t->single[1] = t->pair[1] = (tn__part){.text = 0};
    t->single[2] = t->pair[2] = sep, t->pair[3] = (tn__part){.text = 1, .segment = 1}, t->pair[4] = sep1;
    t->n_single = 3, t->n_pair = 5;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

tn_tokenizer_kind tn_tokenizer_kind_of(const tn_tokenizer *t) { return t ? t->kind : TN_WORDPIECE; }
int64_t           tn_tokenizer_size(const tn_tokenizer *t) { return t ? t->pieces.n : 0; }

const char *tn_tokenizer_piece(const tn_tokenizer *t, int64_t id)
{
    size_t n;
    return t && id >= 0 && id < t->pieces.n ? tn__strings_text(&t->pieces, (uint32_t)id, &n) : "";
}

int64_t tn_tokenizer_id(const tn_tokenizer *t, const char *piece) { return t && piece && *piece ? find(t, piece) : -1; }

bool tn_tokenizer_is_special(const tn_tokenizer *t, int64_t id)
{
    for (uint32_t i = 0; t && i < t->n_added; i++)
        if (t->added[i].id == id) return t->added[i].special;
    return false;
}

bool tn_tokenizer_goes_on(const tn_tokenizer *t, int64_t id)
{
    if (!t || t->kind != TN_WORDPIECE || id < 0 || id >= t->pieces.n) return false;
    size_t      n;
    const char *piece = tn__strings_text(&t->pieces, (uint32_t)id, &n);
    return n > t->prefix_bytes && !memcmp(piece, t->prefix, t->prefix_bytes) && !tn_tokenizer_is_special(t, id);
}

tn_tokenizer_roles tn_tokenizer_special(const tn_tokenizer *t)
{
    return t ? t->role : (tn_tokenizer_roles){-1, -1, -1, -1, -1, -1};
}
