/* tokenizer.c — creates a tokenizer, completes it, and answers queries: rules, tokens, special tokens, roles. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <stdatomic.h>
#include <string.h>

tn_tokenizer *tn__tokenizer_new(tn_tokenizer_kind kind)
{
    static atomic_uint_least64_t serial; /* lets an encoding distinguish two tokenizers at the same address */
    tn_tokenizer                *t = tn__mem_zeroed(sizeof *t);
    if (!t) return NULL;
    const bool words = kind == TN_WORDPIECE || kind == TN_BPE;
    t->kind = kind, t->serial = atomic_fetch_add(&serial, 1) + 1;
    t->normalizes = t->clean = t->chinese = t->strip = t->lower = words;
    t->split = words ? TN__SPLIT_BERT : kind == TN_BYTE_BPE ? TN__SPLIT_BYTES : TN__SPLIT_SENTENCE;
    t->sentence.fallback = t->split == TN__SPLIT_SENTENCE, t->fuse_unknown = t->split == TN__SPLIT_SENTENCE;
    t->regex = t->cleanup = true;
    t->unknown = -1;
    t->longest_word = INT64_MAX;
    if (kind == TN_WORDPIECE) {
        t->longest_word = 100;
        memcpy(t->prefix, "##", t->prefix_bytes = 2);
    } else if (kind == TN_BPE) {
        memcpy(t->suffix, "</w>", t->suffix_bytes = 4);
    }
    memcpy(t->sentence.unknown, " \xe2\x81\x87 ", t->sentence.unknown_bytes = 5);
    t->single[0] = t->pair[0] = (tn__part){.text = 0};
    t->pair[1] = (tn__part){.text = 1, .segment = 0};
    t->n_single = 1, t->n_pair = 2;
    return t;
}

void tn_tokenizer_free(tn_tokenizer *t)
{
    if (!t) return;
    tn__merges_free(&t->merges);
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
    char           name[1 + sizeof(uint32_t)] = {0}; /* an empty C string; no file can have a NUL in a token */
    const uint32_t id = t->pieces.n;
    memcpy(name + 1, &id, sizeof id);
    return tn__strings_add(&t->pieces, name, sizeof name) == id;
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

void tn__added_ready(tn_tokenizer *t)
{
    t->added_twice = false;
    memset(t->added_first, 0, sizeof t->added_first);
    for (uint32_t i = 0; i < t->n_added; i++) {
        size_t      n;
        const char *text = tn__strings_text(&t->pieces, (uint32_t)t->added[i].id, &n);
        t->added_first[t->added[i].normalized][(unsigned char)*text] = true;
        t->added_twice |= t->added[i].normalized;
    }
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
    if (t->role.first < 0 && t->n_single && t->single[0].text < 0) t->role.first = t->single[0].id;
    if (t->role.last < 0 && t->n_single && t->single[t->n_single - 1].text < 0)
        t->role.last = t->single[t->n_single - 1].id;
    for (uint32_t i = 0; i < t->pieces.n; i++) {
        size_t n;
        tn__strings_text(&t->pieces, i, &n);
        if (n > t->longest_piece) t->longest_piece = n;
    }
    tn__added_ready(t);
    for (int b = 0; b < 256 && t->kind == TN_BYTE_BPE; b++) {
        char letter[4];
        t->byte_piece[b] =
            (int32_t)tn__strings_find(&t->pieces, letter, (size_t)tn_utf8_put(tn__byte_letter(b), letter));
    }
    return true;
}

void tn__template_frame(tn_tokenizer *t, int32_t first, int32_t end, bool roberta)
{
    const tn__part begin = {-1, 0, first}, sep = {-1, 0, end}, text = {.text = 0};
    int            n = 0;
    t->single[0] = t->pair[n++] = begin, t->single[1] = t->pair[n++] = text, t->single[2] = t->pair[n++] = sep;
    if (roberta) t->pair[n++] = sep;
    t->pair[n++] = (tn__part){.text = 1, .segment = !roberta}, t->pair[n++] = (tn__part){-1, !roberta, end};
    t->n_single = 3, t->n_pair = n;
}

void tn__template_bert(tn_tokenizer *t)
{
    const int32_t first = find(t, "[CLS]"), separator = find(t, "[SEP]");
    if (first >= 0 && separator >= 0) tn__template_frame(t, first, separator, false);
}

void tn__template_ends(tn_tokenizer *t, int32_t first, int32_t last)
{
    int n = 0, k = 0;
    for (int text = 0; text < 2; text++) {
        if (first >= 0) t->pair[k++] = (tn__part){-1, (uint8_t)text, first};
        t->pair[k++] = (tn__part){(int8_t)text, (uint8_t)text, 0};
        if (last >= 0) t->pair[k++] = (tn__part){-1, (uint8_t)text, last};
        if (!text)
            for (n = 0; n < k; n++) t->single[n] = t->pair[n];
    }
    t->n_single = n, t->n_pair = k;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

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
