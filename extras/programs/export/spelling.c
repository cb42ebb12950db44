/* spelling.c — the tokenizer of an exported model: byte-pair encoding (tokens.c) or WordPiece (wordpiece.c). */
#include "emit.h"

#include <string.h>

enum { TEXT_LEAST = 4096 };

int64_t spelling_most(int64_t length) { return 8 * length > TEXT_LEAST ? 8 * length : TEXT_LEAST; }

bool spelling_read(spelling *k, const tn_tokenizer *t, bool decodes)
{
    *k = (spelling){.words = tn_tokenizer_kind_of(t) == TN_WORDPIECE};
    if (!k->words) return tokens_read(&k->tokens, t);
    if (!wordpiece_read(&k->pieces, t)) return false;
    if (decodes) k->pieces.around[0] = k->pieces.around[1] = 0; /* a text that is continued */
    int64_t special = 0;
    for (int64_t i = 0; i < tn_tokenizer_size(t); i++) {
        special += tn_tokenizer_is_special(t, i);
        const int64_t bytes = (int64_t)strlen(tn_tokenizer_token(t, i)) + 1;
        if (bytes > k->longest) k->longest = bytes;
    }
    if (!decodes || special == k->pieces.specials) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "a tokenizer with special tokens that no text contains cannot be exported");
}

void spelling_read_plain(spelling *k, int64_t n)
{
    k->tokens.specials = 0;
    if (n > k->tokens.together) k->tokens.together = n;
}

void spelling_free(spelling *k)
{
    if (k->words) wordpiece_free(&k->pieces);
    else tokens_free(&k->tokens);
}

int64_t spelling_longest(const spelling *k)
{
    const int64_t longest = k->words ? k->longest : k->tokens.longest;
    return longest > 0 ? longest : 1;
}
int64_t spelling_together(const spelling *k) { return k->words ? TOKENS_TOGETHER : k->tokens.together; }
int64_t spelling_tokens(const spelling *k, int64_t most) { return k->words ? most + 8 : 6 * most + 8; }

/* Bytes of the functions' buffers. */
int64_t spelling_bytes(const spelling *k, int64_t most)
{
    if (k->words) return 3 * most + 2048;
    return 4 * spelling_tokens(k, most) + 3 * most + k->tokens.together * spelling_longest(k);
}

void spelling_emit_sizes(emitter *e, const spelling *k, int64_t most, bool decodes)
{
    if (!k->words) {
        tokens_emit_sizes(e, &k->tokens, most);
        return;
    }
    wordpiece_emit_sizes(e, &k->pieces, most);
    emit_constant(e, "TOKENS", e->length);
    if (!decodes) return;
    emit_constant(e, "RECENT", TOKENS_TOGETHER), emit_constant(e, "TEXT", TOKENS_TOGETHER * k->longest);
    emit(e,
         "enum {\n    RECENT = %d, /* tokens that are decoded together */\n    MODEL_TOKENS = LENGTH,\n"
         "    MODEL_TEXT = %lld\n};\n",
         TOKENS_TOGETHER, (long long)(TOKENS_TOGETHER * k->longest));
}

void spelling_emit_code(emitter *e, const spelling *k, bool decodes)
{
    emit_template(e, template_text);
    emit_template(e, k->words ? template_wordpiece : template_pairs);
    if (k->words && decodes) emit(e, "\n"), emit_template(e, template_pieces);
}

void spelling_emit_tables(emitter *e, const spelling *k)
{
    if (k->words) wordpiece_emit_tables(e, &k->pieces);
    else tokens_emit_tables(e, &k->tokens);
}
