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
    t->bert.enabled = t->bert.clean = t->bert.chinese = t->bert.strip = t->bert.lower = words;
    t->split = words                 ? TN__SPLIT_BERT
               : kind == TN_BYTE_BPE ? TN__SPLIT_BYTES
               : kind == TN_SUBWORD  ? TN__SPLIT_BLANK
                                     : TN__SPLIT_SENTENCE;
    t->sentence.fallback = t->split == TN__SPLIT_SENTENCE, t->fuse_unknown = t->split == TN__SPLIT_SENTENCE;
    t->bytes.regex = t->cleanup = true;
    t->unknown = -1, t->added.outside = INT32_MAX;
    t->longest_word = INT64_MAX;
    if (kind == TN_WORDPIECE) {
        t->longest_word = 100;
        memcpy(t->prefix, "##", t->prefix_bytes = 2);
    } else if (kind == TN_BPE || kind == TN_SUBWORD) {
        memcpy(t->suffix, "</w>", t->suffix_bytes = 4);
    }
    t->affix_bytes = kind == TN_WORDPIECE ? t->prefix_bytes : t->suffix_bytes;
    memcpy(t->affix, kind == TN_WORDPIECE ? t->prefix : t->suffix, t->affix_bytes);
    memcpy(t->sentence.unknown, " \xe2\x81\x87 ", t->sentence.unknown_bytes = 5);
    t->single.part[0] = t->pair.part[0] = (tn__template_part){.text = 0};
    t->pair.part[1] = (tn__template_part){.text = 1, .segment = 1};
    t->single.n = 1, t->pair.n = 2;
    if (kind != TN_SUBWORD) return t;
    t->unknown = 0, t->sentence.each_byte = true;
    return tn__add_empty_token(t) ? t : (tn_tokenizer_free(t), NULL);
}

void tn_tokenizer_free(tn_tokenizer *t)
{
    if (!t) return;
    tn__merges_free(&t->merges);
    tn__mem_put(t->score, (size_t)t->score_room * sizeof *t->score);
    tn__mem_put(t->score64, (size_t)t->score64_room * sizeof *t->score64);
    tn__mem_put(t->type, (size_t)t->type_room);
    tn__trie_free(&t->trie), tn__trie_free(&t->user);
    tn__trie_free(&t->added.text[0]), tn__trie_free(&t->added.text[1]);
    tn__charsmap_free(&t->charsmap);
    tn__mem_put(t->added.token, (size_t)t->added.room * sizeof *t->added.token);
    tn__strings_free(&t->vocab);
    tn_string_free(&t->model_file);
    tn__mem_put(t, sizeof *t);
}

bool tn__add_empty_token(tn_tokenizer *t)
{
    char           name[1 + sizeof(uint32_t)] = {0}; /* an empty C string; no file can have a NUL in a token */
    const uint32_t id = t->vocab.n;
    memcpy(name + 1, &id, sizeof id);
    return tn__strings_add(&t->vocab, name, sizeof name) == id;
}

static int32_t find(const tn_tokenizer *t, const char *piece)
{
    return (int32_t)tn__strings_find(&t->vocab, piece, strlen(piece));
}

static int32_t find_either(const tn_tokenizer *t, const char *a, const char *b, const char *c)
{
    const int32_t i = find(t, a), k = i < 0 ? find(t, b) : i;
    return k < 0 ? find(t, c) : k;
}

bool tn__tokenizer_finish(tn_tokenizer *t, const char *caller)
{
    if (t->kind == TN_WORDPIECE && t->unknown < 0)
        return tn_raise_false(TN_EFORMAT, "%s: the unknown token, [UNK], is not in the vocabulary", caller);
    if (t->split == TN__SPLIT_SENTENCE && !tn__sentence_setup(t, caller)) return false;
    t->role = (tn_tokenizer_roles){
        .pad = find_either(t, "[PAD]", "<pad>", "<pad>"),
        .unknown = t->unknown >= 0 ? t->unknown : find_either(t, "[UNK]", "<unk>", "<unk>"),
        .first = find_either(t, "[CLS]", "<s>", "<s>"),
        .separator = find_either(t, "[SEP]", "</s>", "</s>"),
        .mask = find_either(t, "[MASK]", "<mask>", "<mask>"),
        .last = find_either(t, "</s>", "<|endoftext|>", "[SEP]"),
    };
    if (t->role.first < 0 && t->single.n && t->single.part[0].text < 0) t->role.first = t->single.part[0].id;
    if (t->role.last < 0 && t->single.n && t->single.part[t->single.n - 1].text < 0)
        t->role.last = t->single.part[t->single.n - 1].id;
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        size_t n;
        tn__strings_text(&t->vocab, i, &n);
        if (n > t->longest_token) t->longest_token = n;
    }
    if (!tn__added_index(t)) return false;
    for (int b = 0; b < 256 && t->kind == TN_BYTE_BPE; b++) {
        char letter[4];
        t->byte_token[b] = (int32_t)tn__model_find(t, letter, (size_t)tn_utf8_put(tn__byte_to_char(b), letter));
    }
    return true;
}

void tn__template_frame(tn_tokenizer *t, int32_t first, int32_t end, bool roberta)
{
    const tn__template_part begin = {-1, 0, first}, sep = {-1, 0, end}, text = {.text = 0};
    int                     n = 0;
    t->single.part[0] = t->pair.part[n++] = begin, t->single.part[1] = t->pair.part[n++] = text,
    t->single.part[2] = t->pair.part[n++] = sep;
    if (roberta) t->pair.part[n++] = sep;
    t->pair.part[n++] = (tn__template_part){.text = 1, .segment = !roberta},
    t->pair.part[n++] = (tn__template_part){-1, !roberta, end};
    t->single.n = 3, t->pair.n = n;
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
        if (first >= 0) t->pair.part[k++] = (tn__template_part){-1, (uint8_t)text, first};
        t->pair.part[k++] = (tn__template_part){(int8_t)text, (uint8_t)text, 0};
        if (last >= 0) t->pair.part[k++] = (tn__template_part){-1, (uint8_t)text, last};
        if (!text)
            for (n = 0; n < k; n++) t->single.part[n] = t->pair.part[n];
    }
    t->single.n = n, t->pair.n = k;
}

tn_status tn_tokenizer_set_end(tn_tokenizer *t, int64_t id)
{
    if (!tn__not_null("tn_tokenizer_set_end", "the tokenizer", t)) return tn_error();
    if (id < 0 || id >= tn_tokenizer_size(t))
        return tn_raise(TN_EINDEX, "tn_tokenizer_set_end: id is %lld, expected a token id from 0 to %lld",
                        (long long)id, (long long)tn_tokenizer_size(t) - 1);
    tn__template_ends(t, -1, (int32_t)id);
    return TN_OK;
}

void tn__template_xlnet(tn_tokenizer *t, int32_t first, int32_t end)
{
    const tn__template_part last = {-1, 2, first}, sep = {-1, 0, end}, text = {.text = 0};
    t->single.part[0] = t->pair.part[0] = text, t->single.part[1] = t->pair.part[1] = sep;
    t->pair.part[2] = (tn__template_part){.text = 1, .segment = 1};
    t->pair.part[3] = (tn__template_part){-1, 1, end};
    t->single.part[2] = t->pair.part[4] = last, t->single.n = 3, t->pair.n = 5;
}

bool tn__first_is_last(const tn_tokenizer *t)
{
    const tn__template_part *p = t->single.part + t->single.n - 1;
    return t->single.n > 1 && p->text < 0 && p->segment == 2 && p->id == t->role.first;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

tn_tokenizer_kind tn_tokenizer_kind_of(const tn_tokenizer *t) { return t ? t->kind : TN_WORDPIECE; }
int64_t           tn_tokenizer_size(const tn_tokenizer *t) { return !t ? 0 : t->listed ? t->listed : t->vocab.n; }

const char *tn_tokenizer_token(const tn_tokenizer *t, int64_t id)
{
    size_t n;
    return t && id >= 0 && id < t->vocab.n ? tn__strings_text(&t->vocab, (uint32_t)id, &n) : "";
}

int64_t tn_tokenizer_id(const tn_tokenizer *t, const char *piece) { return t && piece && *piece ? find(t, piece) : -1; }

bool tn_tokenizer_is_special(const tn_tokenizer *t, int64_t id)
{
    const tn__added *a = t && id >= 0 && id < t->vocab.n ? tn__added_as(t, (int32_t)id) : NULL;
    return a && a->special;
}

uint64_t tn_tokenizer_checksum(const tn_tokenizer *t)
{
    uint64_t sum = TN__FNV1A;
    for (int64_t i = 0, n = tn_tokenizer_size(t); i < n; i++) {
        const char *token = tn_tokenizer_token(t, i);
        sum = tn__fnv1a(sum, token, strlen(token) + 1);
    }
    return sum;
}

bool tn_tokenizer_is_inner(const tn_tokenizer *t, int64_t id)
{
    if (!t || t->kind != TN_WORDPIECE || id < 0 || id >= t->vocab.n) return false;
    size_t      n;
    const char *piece = tn__strings_text(&t->vocab, (uint32_t)id, &n);
    return n > t->prefix_bytes && !memcmp(piece, t->prefix, t->prefix_bytes) && !tn_tokenizer_is_special(t, id);
}

tn_tokenizer_roles tn_tokenizer_special(const tn_tokenizer *t)
{
    return t ? t->role : (tn_tokenizer_roles){-1, -1, -1, -1, -1, -1};
}
