/* file_tokenizer.c — reads tokenizers from GGUF and llama2.c's tokenizer.bin, and writes them to GGUF. */
#include "core/base/toolbox.h"
#include "models/open/open_private.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 10000000, LONGEST = 1 << 16, PADDING = 32 };

/* A token table under construction: the texts are concatenated, each terminated by a NUL. */
typedef struct {
    int64_t      n;
    char        *text;
    size_t       bytes, room;
    const char **piece;
    float       *score;
    int32_t     *type;
} token_list;

static bool token_list_new(token_list *p, int64_t n, size_t room)
{
    *p = (token_list){.n = n, .room = room};
    return (p->text = tn__mem_get(room)) && (p->piece = tn__mem_get((size_t)n * sizeof *p->piece)) &&
           (p->score = tn__mem_zeroed((size_t)n * sizeof *p->score)) &&
           (p->type = tn__mem_zeroed((size_t)n * sizeof *p->type));
}
static void token_list_free(token_list *p)
{
    tn__mem_put(p->text, p->text ? p->room : 0);
    tn__mem_put(p->piece, p->piece ? (size_t)p->n * sizeof *p->piece : 0);
    tn__mem_put(p->score, p->score ? (size_t)p->n * sizeof *p->score : 0);
    tn__mem_put(p->type, p->type ? (size_t)p->n * sizeof *p->type : 0);
}
/* Copies a text and terminates it with a NUL. Raises for a text that contains a NUL. */
static const char *token_list_add(token_list *p, const char *path, int64_t i, const void *text, size_t bytes)
{
    char *to = p->text + p->bytes;
    if (bytes > LONGEST || (bytes && memchr(text, 0, bytes)) || bytes >= p->room - p->bytes)
        return tn_raise_null(TN_EFORMAT, "'%s': token %lld contains a NUL, or more than %d bytes", path, (long long)i,
                             LONGEST);
    if (bytes) memcpy(to, text, bytes);
    to[bytes] = 0, p->bytes += bytes + 1;
    return to;
}

/* ---- llama2.c: i32 longest, then for each piece f32 score, i32 bytes, the bytes ---------------------------------- */

static uint32_t read_u32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The number of tokens; 0: not a file of this format. */
static int64_t llama2c_count(const unsigned char *at, size_t n)
{
    int64_t count = 0;
    if (n < 12 || read_u32(at) > LONGEST || !read_u32(at)) return 0;
    const uint32_t longest = read_u32(at);
    for (size_t i = 4; i < n; count++) {
        if (n - i < 8) return 0;
        const uint32_t bytes = read_u32(at + i + 4);
        if (bytes > longest || bytes > n - i - 8) return 0;
        i += 8 + bytes;
    }
    return count;
}

static bool is_byte(const char *s)
{
    return strlen(s) == 6 && !strncmp(s, "<0x", 3) && strspn(s + 3, "0123456789ABCDEF") == 2 && s[5] == '>';
}

/* The first three are unknown, begin and end; llama2.c writes begin and end between line breaks. */
static int32_t llama2c_type(int64_t i, const char **text)
{
    if (i == 1 && !strcmp(*text, "\n<s>\n")) *text = "<s>";
    if (i == 2 && !strcmp(*text, "\n</s>\n")) *text = "</s>";
    if (i < 3) return i ? TN_TYPE_CONTROL : TN_TYPE_UNKNOWN;
    return is_byte(*text) ? TN_TYPE_BYTE : TN_TYPE_NORMAL;
}

tn_tokenizer *tn__llama2c_tokenizer(const char *path, const void *data, size_t n)
{
    const unsigned char *at = data;
    const int64_t        count = llama2c_count(at, n);
    token_list           p = {.n = 0};
    tn_tokenizer        *t = NULL;
    if (count < 4 || count > MOST)
        return tn_raise_null(TN_EFORMAT,
                             "'%s' is not a tokenizer of llama2.c: it must consist of tokens with scores up to its end",
                             path);
    bool ok = token_list_new(&p, count, n + (size_t)count);
    for (int64_t i = 0; ok && i < count; i++) {
        if (!i) at += 4;
        const uint32_t bits = read_u32(at), bytes = read_u32(at + 4);
        memcpy(&p.score[i], &bits, sizeof bits);
        if ((ok = (p.piece[i] = token_list_add(&p, path, i, at + 8, bytes)) != NULL))
            p.type[i] = llama2c_type(i, &p.piece[i]);
        at += 8 + bytes;
    }
    if (ok) t = tn_tokenizer_from_vocab(count, p.piece, .scores = p.score, .types = p.type, .first = 1, .last = 2);
    token_list_free(&p);
    return t;
}

/* ---- GGUF, read -------------------------------------------------------------------------------------------------- */

#define KEY(name) "tokenizer.ggml." name
#define SPACE "\xe2\x96\x81"       /* SentencePiece's ▁ */
static const char none[] = "none"; /* value of KEY("model") in a file without a tokenizer */

/* Reads the texts from an array of strings. */
static bool gguf_strings(const tn_gguf *g, const char *path, const char *key, token_list *p)
{
    size_t bytes = 1;
    for (tn_gguf_strings s = tn_gguf_strings_of(g, key); tn_gguf_next(&s);) bytes += s.bytes + 1;
    if (tn_error() != TN_OK || !token_list_new(p, tn_gguf_find(g, key).count, bytes)) return false;
    for (tn_gguf_strings s = tn_gguf_strings_of(g, key); tn_gguf_next(&s);)
        if (!(p->piece[s.i] = token_list_add(p, path, s.i, s.text, s.bytes))) return false;
    return true;
}

/* Reads an array of n numbers of dtype `as`; without the key, *to is unchanged. */
static bool gguf_numbers(const tn_gguf *g, const char *path, const char *key, tn_dtype as, int64_t n, void *to)
{
    if (tn_gguf_find(g, key).type == TN_GGUF_NONE) return true;
    const tn_scope   s = tn_scope_begin();
    const tn_tensor *t = tn_gguf_numbers(g, key);
    if (t && (tn_dtype_of(t) != as || tn_numel(t) != n))
        tn_raise(TN_EFORMAT, "'%s': %s has %lld values of %s, expected %lld of %s", path, key, (long long)tn_numel(t),
                 tn_dtype_name(tn_dtype_of(t)), (long long)n, tn_dtype_name(as));
    else if (t) memcpy(to, tn_data(t), (size_t)n * 4);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static int32_t gguf_id(const tn_gguf *g, const char *path, const char *key, int64_t n, int64_t otherwise)
{
    const int64_t id = tn_gguf_i64_or(g, key, otherwise);
    if (id >= n)
        tn_raise(TN_EFORMAT, "'%s': %s is %lld, but there are only %lld tokens", path, key, (long long)id,
                 (long long)n);
    return id < 0 || id >= n ? -1 : (int32_t)id;
}

/* Two rules that files do not contain, because llama.cpp derives them from these names: a text starts with the begin
 * token, and a word that is itself a token is not merged from others. */
static bool is_llama3(const char *splitter)
{
    static const char *const names[] = {"llama-bpe", "llama3", "llama-v3"};
    bool                     is = false;
    for (int i = 0; i < 3 && splitter; i++) is = is || !strcmp(names[i], splitter);
    return is;
}

/* The text of an id without a token, as llama.cpp's converter writes it: llama.cpp takes the number of tokens as the
 * model's vocabulary size, and allows no empty tokens. */
static void padding_text(char to[PADDING], int64_t i) { snprintf(to, PADDING, "[PAD%lld]", (long long)i); }

/* The number of tokens without the padding at the end; padding between tokens becomes an empty text. */
static int64_t trim_padding(token_list *p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        char name[PADDING];
        padding_text(name, i);
        if (p->type[i] == TN_TYPE_UNUSED && !strcmp(p->piece[i], name)) p->piece[i] = "";
        else n = i + 1;
    }
    return n;
}

static tn_tokenizer *gguf_create(const tn_gguf *g, const char *path, token_list *p, token_list *merges, bool bytes)
{
    const bool  scores = tn_gguf_find(g, KEY("scores")).type != TN_GGUF_NONE && !bytes;
    const bool  types = tn_gguf_find(g, KEY("token_type")).type != TN_GGUF_NONE;
    const char *splitter = bytes ? tn_gguf_string_or(g, KEY("pre"), "default") : NULL;
    const bool  llama3 = is_llama3(splitter), bare = !tn_gguf_bool_or(g, KEY("add_bos_token"), !bytes || llama3),
               ends = tn_gguf_bool_or(g, KEY("add_eos_token"), false),
               space = tn_gguf_bool_or(g, KEY("add_space_prefix"), !bytes);
    if (splitter && !strcmp(splitter, "default"))
        return tn_raise_null(
            TN_EUNSUPPORTED,
            "'%s': tokenizer.ggml.pre is 'default' or missing: llama.cpp then splits texts by rules of no "
            "model, which Tenon does not support; convert the model again with llama.cpp's "
            "convert_hf_to_gguf.py, which writes the name, or set the key to 'gpt-2', 'llama-bpe' or "
            "'qwen2'",
            path);
    if ((scores && !gguf_numbers(g, path, KEY("scores"), TN_F32, p->n, p->score)) ||
        (types && !gguf_numbers(g, path, KEY("token_type"), TN_I32, p->n, p->type)) ||
        (bytes && !gguf_strings(g, path, KEY("merges"), merges)))
        return NULL;
    const int64_t n = trim_padding(p);
    /* without these keys, llama.cpp uses ids 1 and 2 for a SentencePiece tokenizer */
    const bool    usual = !bytes && n > 2 && p->type[1] == TN_TYPE_CONTROL && p->type[2] == TN_TYPE_CONTROL;
    const int32_t first = gguf_id(g, path, KEY("bos_token_id"), n, usual ? 1 : -1),
                  last = gguf_id(g, path, KEY("eos_token_id"), n, usual ? 2 : -1);
    if (tn_error() != TN_OK) return NULL;
    return tn_tokenizer_from_vocab(n, p->piece, .kind = bytes ? TN_BYTE_BPE : TN_SENTENCE_BPE,
                                   .scores = scores && !bytes ? p->score : NULL, .types = types ? p->type : NULL,
                                   .merges = merges->n ? merges->piece : NULL, .n_merges = merges->n,
                                   .splitter = splitter, .first = first, .last = last, .bare = bare || first < 0,
                                   .ends = ends && last >= 0, .no_space = !space, .whole_words = llama3);
}

/* A WordPiece vocabulary as llama.cpp writes it: tokens that begin a word have a "▁" before them, and the others not,
 * where vocab.txt has "##" before the others. llama.cpp lowercases texts and strips accents. */
static tn_tokenizer *gguf_word_pieces(const char *path, const token_list *p)
{
    static const char *const roles[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    tn_json_writer          *w = tn_json_writer_new(0);
    int64_t                  id[5] = {-1, -1, -1, -1, -1};
    tn_string                s = {0};
    size_t                   bytes;
    tn_json_open_object(w, NULL), tn_json_open_object(w, "normalizer");
    tn_json_put_string(w, "type", "BertNormalizer");
    tn_json_put_bool(w, "clean_text", true), tn_json_put_bool(w, "handle_chinese_chars", true);
    tn_json_put_null(w, "strip_accents"), tn_json_put_bool(w, "lowercase", true);
    tn_json_close(w), tn_json_open_object(w, "pre_tokenizer");
    tn_json_put_string(w, "type", "BertPreTokenizer");
    tn_json_close(w), tn_json_open_object(w, "model");
    tn_json_put_string(w, "type", "WordPiece"), tn_json_put_string(w, "unk_token", roles[1]);
    tn_json_put_string(w, "continuing_subword_prefix", "##"), tn_json_put_i64(w, "max_input_chars_per_word", 100);
    tn_json_open_object(w, "vocab");
    for (int64_t i = 0; i < p->n && tn_error() == TN_OK; i++) {
        const char *piece = p->piece[i];
        const bool  begins = !strncmp(piece, SPACE, 3), special = *piece == '[' && piece[strlen(piece) - 1] == ']';
        s.bytes = 0;
        if (!begins && !special) tn_string_add(&s, (tn_text){"##", 2});
        if (begins) piece += 3;
        for (int k = 0; k < 5; k++)
            if (!strcmp(piece, roles[k])) id[k] = i;
        if (tn_string_add(&s, (tn_text){piece, strlen(piece)}) == TN_OK) tn_json_put_i64(w, s.at, i);
    }
    tn_json_close(w), tn_json_close(w), tn_json_open_object(w, "post_processor");
    tn_json_put_string(w, "type", "BertProcessing");
    for (int k = 2; k < 4; k++) {
        tn_json_open_array(w, k == 2 ? "cls" : "sep");
        tn_json_put_string(w, NULL, roles[k]), tn_json_put_i64(w, NULL, id[k]);
        tn_json_close(w);
    }
    tn_json_close(w), tn_json_open_array(w, "added_tokens");
    for (int k = 0; k < 5; k++) {
        if (id[k] < 0) continue;
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "id", id[k]), tn_json_put_string(w, "content", roles[k]);
        tn_json_put_bool(w, "special", true), tn_json_put_bool(w, "normalized", false);
        tn_json_close(w);
    }
    tn_json_close(w), tn_json_close(w);
    if (tn_error() == TN_OK && (id[1] < 0 || id[2] < 0 || id[3] < 0))
        tn_raise(TN_EFORMAT, "'%s': " KEY("tokens") " lacks [UNK], [CLS] or [SEP]", path);
    const char   *text = tn_error() == TN_OK ? tn_json_text(w, &bytes) : NULL;
    tn_tokenizer *t = text ? tn_tokenizer_parse(text, bytes) : NULL;
    tn_string_free(&s), tn_json_writer_free(w);
    return t;
}

tn_tokenizer *tn__gguf_tokenizer(const tn_gguf *g, const char *path)
{
    const char   *model = tn_gguf_string_or(g, KEY("model"), "");
    const bool    bytes = !strcmp(model, "gpt2");
    token_list    p = {.n = 0}, merges = {.n = 0};
    tn_tokenizer *t = NULL;
    if (tn_error() != TN_OK || !*model || !strcmp(model, none)) return NULL;
    const bool words = !strcmp(model, "bert");
    if (!bytes && !words && strcmp(model, "llama") != 0)
        return tn_raise_null(TN_EUNSUPPORTED,
                             "'%s': " KEY("model") " is '%.40s'; supported: 'llama', 'gpt2' and 'bert'", path, model);
    if (gguf_strings(g, path, KEY("tokens"), &p))
        t = words ? gguf_word_pieces(path, &p) : gguf_create(g, path, &p, &merges, bytes);
    token_list_free(&merges), token_list_free(&p);
    return t;
}

/* ---- GGUF, written ----------------------------------------------------------------------------------------------- */

static void put_merges(tn_gguf_writer *w, const tn_tokenizer *t, int64_t n)
{
    int32_t *pairs = tn__mem_get((size_t)(2 * n) * sizeof *pairs);
    if (!pairs) return;
    tn_tokenizer_parts(t, NULL, NULL, pairs);
    tn_gguf_open_strings(w, KEY("merges"), n);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        tn_string   s = {0};
        const char *a = tn_tokenizer_token(t, pairs[2 * i]), *b = tn_tokenizer_token(t, pairs[2 * i + 1]);
        if (tn_string_add(&s, (tn_text){a, strlen(a)}) == TN_OK && tn_string_add(&s, (tn_text){" ", 1}) == TN_OK &&
            tn_string_add(&s, (tn_text){b, strlen(b)}) == TN_OK)
            tn_gguf_add_string(w, s.at, s.bytes);
        tn_string_free(&s);
    }
    tn__mem_put(pairs, (size_t)(2 * n) * sizeof *pairs);
}

static void put_id(tn_gguf_writer *w, const char *key, int32_t id)
{
    if (id >= 0) tn_gguf_put_u32(w, key, id);
}

/* llama.cpp searches for user-defined tokens in the raw text, so their spaces are written as spaces, not as ▁. */
static void put_user_token(tn_gguf_writer *w, const char *piece)
{
    static const char space[] = SPACE;
    tn_string         s = {0};
    tn_string_add(&s, (tn_text){"", 0});
    for (const char *end; *piece; piece = *end ? end + 3 : end) {
        end = strstr(piece, space);
        if (!end) end = piece + strlen(piece);
        tn_string_add(&s, (tn_text){piece, (size_t)(end - piece)});
        if (*end) tn_string_add(&s, (tn_text){" ", 1});
    }
    if (tn_error() == TN_OK) tn_gguf_add_string(w, s.at, s.bytes);
    tn_string_free(&s);
}

static void put_tokens(tn_gguf_writer *w, const tn_tokenizer *t, int64_t n, const int32_t *type)
{
    const bool sentence = tn_tokenizer_kind_of(t) == TN_SENTENCE_BPE;
    tn_gguf_open_strings(w, KEY("tokens"), n);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        char        name[PADDING];
        const char *piece = tn_tokenizer_token(t, i);
        if (!*piece) padding_text(name, i), piece = name;
        if (sentence && type[i] == TN_TYPE_USER) put_user_token(w, piece);
        else tn_gguf_add_string(w, piece, strlen(piece));
    }
}

/* True if the tokenizer lowercases texts and strips accents, as llama.cpp does for WordPiece. */
static bool makes_plain(const tn_tokenizer *t)
{
    static const char *const both[] = {"\xc3\x81", "a"}; /* Á */
    const tn_scope           s = tn_no_grad_begin();
    tn_token_batch           b;
    const bool               fits = tn_tokenizer_batch(t, &b, 2, both, .max_length = 16) == TN_OK;
    bool                     same = fits;
    for (int64_t i = 0, n = fits ? tn_size(b.ids, 1) : 0; i < n; i++)
        same = same && tn_get_i64(b.ids, i) == tn_get_i64(b.ids, n + i);
    tn_scope_end(s);
    return same;
}

/* See gguf_word_pieces. */
static tn_status put_word_pieces(tn_gguf_writer *w, const tn_tokenizer *t, int64_t n)
{
    const tn_tokenizer_roles r = tn_tokenizer_special(t);
    const int64_t            own = tn_tokenizer_size(t);
    tn_string                s = {0};
    if (!makes_plain(t) && tn_error() == TN_OK)
        return tn_raise(TN_EUNSUPPORTED, "GGUF cannot represent a WordPiece tokenizer that keeps capitals or accents; "
                                         "save to a directory");
    tn_gguf_put_string(w, KEY("model"), "bert");
    tn_gguf_put_string(w, KEY("pre"), "default");
    tn_gguf_open_strings(w, KEY("tokens"), n);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        char        name[PADDING];
        const char *piece = i < own ? tn_tokenizer_token(t, i) : "";
        if (!*piece) padding_text(name, i), piece = name;
        const bool special = *piece == '[' && piece[strlen(piece) - 1] == ']', inner = !strncmp(piece, "##", 2);
        s.bytes = 0;
        if (!special && !inner) tn_string_add(&s, (tn_text){SPACE, 3});
        if (inner) piece += 2;
        if (tn_string_add(&s, (tn_text){piece, strlen(piece)}) == TN_OK) tn_gguf_add_string(w, s.at, s.bytes);
    }
    tn_string_free(&s);
    put_id(w, KEY("bos_token_id"), r.first), put_id(w, KEY("eos_token_id"), r.last);
    put_id(w, KEY("seperator_token_id"), r.last), put_id(w, KEY("unknown_token_id"), r.unknown);
    put_id(w, KEY("padding_token_id"), r.pad), put_id(w, KEY("mask_token_id"), r.mask);
    return tn_error();
}

tn_status tn__gguf_put_tokenizer(tn_gguf_writer *w, const tn_tokenizer *t, int64_t words)
{
    if (!t) return tn_gguf_put_string(w, KEY("model"), none); /* llama.cpp requires the key */
    const tn_tokenizer_kind   kind = tn_tokenizer_kind_of(t);
    const tn_tokenizer_traits m = tn_tokenizer_traits_of(t);
    const tn_tokenizer_roles  r = tn_tokenizer_special(t);
    const int64_t             own = tn_tokenizer_size(t), n = words > own ? words : own;
    if (kind == TN_WORDPIECE) return put_word_pieces(w, t, n);
    if (kind != TN_SENTENCE_BPE && kind != TN_BYTE_BPE)
        return tn_raise(TN_EUNSUPPORTED,
                        "this kind of tokenizer cannot be written to GGUF, only SentencePiece BPE, byte-level BPE and "
                        "WordPiece; save to a directory");
    if (m.unsupported)
        return tn_raise(TN_EUNSUPPORTED,
                        "GGUF cannot represent the tokenizer's %s, which changes the tokens of a text; save to a "
                        "directory",
                        m.unsupported);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *scores = tn_full(TN_SHAPE(n), -1000), *types = tn_empty_of(TN_I32, TN_SHAPE(n));
    int32_t       *type = types ? tn_data_mut(types) : NULL;
    tn_gguf_put_string(w, KEY("model"), kind == TN_BYTE_BPE ? "gpt2" : "llama");
    tn_gguf_put_string(w, KEY("pre"), m.splitter ? m.splitter : "default");
    const int64_t merges = tn_error() == TN_OK ? tn_tokenizer_parts(t, tn_data_mut(scores), type, NULL) : 0;
    for (int64_t i = own; type && i < n; i++) type[i] = TN_TYPE_UNUSED;
    if (type) put_tokens(w, t, n, type);
    if (kind == TN_SENTENCE_BPE) tn_gguf_put_numbers(w, KEY("scores"), scores);
    tn_gguf_put_numbers(w, KEY("token_type"), types);
    if (kind == TN_BYTE_BPE && tn_error() == TN_OK) put_merges(w, t, merges);
    put_id(w, KEY("bos_token_id"), r.first), put_id(w, KEY("eos_token_id"), r.last);
    put_id(w, KEY("unknown_token_id"), r.unknown), put_id(w, KEY("padding_token_id"), r.pad);
    tn_gguf_put_bool(w, KEY("add_bos_token"), m.first), tn_gguf_put_bool(w, KEY("add_eos_token"), m.last);
    if (kind == TN_SENTENCE_BPE) tn_gguf_put_bool(w, KEY("add_space_prefix"), m.space);
    tn_scope_end(s);
    return tn_error();
}
