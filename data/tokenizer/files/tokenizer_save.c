/* tokenizer_save.c — saves a tokenizer as the files that Hugging Face's libraries open: tokenizer.json, the files that
 * specify its class, and the older vocabulary files. tokenizer.json is written last: a folder with it is complete. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

static const char *text_of(const tn_tokenizer *t, int64_t id, size_t *n)
{
    return tn__strings_text(&t->vocab, (uint32_t)id, n);
}

/* Returns the pairs in the order of their ranks; NULL: raised. */
static uint64_t *ranked(const tn__merges *m)
{
    uint64_t *pair = tn__mem_get(((size_t)m->n + 1) * sizeof *pair);
    for (size_t i = 0; pair && m->n && i <= m->mask; i++)
        if (m->pair[i]) pair[m->rank[i]] = m->pair[i] - 1;
    return pair;
}

static void put_affix(tn_json_writer *w, const char *key, const char *text, uint32_t n)
{
    if (n) tn_json_put_bytes(w, key, text, n);
    else tn_json_put_null(w, key);
}

static void put_unknown(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->unknown >= 0) tn_json_put_string(w, "unk_token", tn_tokenizer_token(t, t->unknown));
    else tn_json_put_null(w, "unk_token");
}

/* model: without the tokens that are only added. */
static bool put_vocab(const tn_tokenizer *t, tn_json_writer *w, const char *key, bool model)
{
    tn_json_open_object(w, key);
    for (uint32_t i = 0; i < t->vocab.n; i++)
        if (*tn_tokenizer_token(t, i) && !(model && tn__is_outside(t, i)))
            tn_json_put_i64(w, tn_tokenizer_token(t, i), i);
    return tn_json_close(w) == TN_OK;
}

static bool put_model(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->kind == TN_UNIGRAM) return tn__json_put_unigram(t, w);
    tn_json_open_object(w, "model");
    tn_json_put_string(w, "type", t->kind == TN_WORDPIECE ? "WordPiece" : "BPE");
    if (t->kind == TN_WORDPIECE) {
        put_unknown(t, w);
        tn_json_put_bytes(w, "continuing_subword_prefix", t->prefix, t->prefix_bytes);
        tn_json_put_i64(w, "max_input_chars_per_word", t->longest_word);
        put_vocab(t, w, "vocab", true);
        return tn_json_close(w) == TN_OK;
    }
    tn_json_put_null(w, "dropout");
    put_unknown(t, w);
    put_affix(w, "continuing_subword_prefix", t->prefix, t->prefix_bytes);
    put_affix(w, "end_of_word_suffix", t->suffix, t->suffix_bytes);
    tn_json_put_bool(w, "fuse_unk", t->fuse_unknown);
    tn_json_put_bool(w, "byte_fallback", t->split == TN__SPLIT_SENTENCE && t->sentence.fallback);
    tn_json_put_bool(w, "ignore_merges", t->whole_words || tn__has_user_tokens(t));
    put_vocab(t, w, "vocab", true);
    uint64_t *pair = ranked(&t->merges);
    if (!pair) return false;
    tn_json_open_array(w, "merges");
    for (uint32_t i = 0; i < t->merges.n; i++) {
        tn_json_open_array(w, NULL);
        tn_json_put_string(w, NULL, tn_tokenizer_token(t, (int64_t)(pair[i] >> 32)));
        tn_json_put_string(w, NULL, tn_tokenizer_token(t, (int64_t)(pair[i] & UINT32_MAX)));
        tn_json_close(w);
    }
    tn__mem_put(pair, ((size_t)t->merges.n + 1) * sizeof *pair);
    tn_json_close(w);
    return tn_json_close(w) == TN_OK;
}

static void put_added(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_array(w, "added_tokens");
    for (uint32_t i = 0; i < t->added.n; i++) {
        const tn__added *a = t->added.token + i;
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "id", a->id);
        tn_json_put_string(w, "content", tn_tokenizer_token(t, a->id));
        tn_json_put_bool(w, "single_word", a->word);
        tn_json_put_bool(w, "lstrip", a->left);
        tn_json_put_bool(w, "rstrip", a->right);
        tn_json_put_bool(w, "normalized", a->normalized);
        tn_json_put_bool(w, "special", a->special);
        tn_json_close(w);
    }
    tn_json_close(w);
}

static void put_splitter(const tn_tokenizer *t, tn_json_writer *w, const char *key)
{
    tn_json_open_object(w, key);
    tn_json_put_string(w, "type", "ByteLevel");
    tn_json_put_bool(w, "add_prefix_space", t->bytes.prefix_space);
    tn_json_put_bool(w, "trim_offsets", t->bytes.trim);
    tn_json_put_bool(w, "use_regex", t->bytes.regex && (!t->bytes.splitter || !tn__splitter_regex(t->bytes.splitter)));
    tn_json_close(w);
}

/* Writes a splitter that is not ByteLevel's own. */
static void put_split(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_object(w, "pre_tokenizer");
    tn_json_put_string(w, "type", "Sequence");
    tn_json_open_array(w, "pretokenizers");
    const char *regex = tn__splitter_regex(t->bytes.splitter);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "type", regex ? "Split" : "Digits");
    if (regex) {
        tn_json_open_object(w, "pattern");
        tn_json_put_string(w, "Regex", regex);
        tn_json_close(w);
        tn_json_put_string(w, "behavior", "Isolated");
        tn_json_put_bool(w, "invert", false);
    } else tn_json_put_bool(w, "individual_digits", true);
    tn_json_close(w);
    put_splitter(t, w, NULL);
    tn_json_close(w);
    tn_json_close(w);
}

static void put_rules(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->split == TN__SPLIT_SENTENCE) {
        tn__json_put_steps(t, w);
        tn__json_put_metaspace(t, w);
        return;
    }
    if (t->steps) {
        tn__json_put_steps(t, w);
    } else if (t->bert.enabled) {
        tn_json_open_object(w, "normalizer");
        tn_json_put_string(w, "type", "BertNormalizer");
        tn_json_put_bool(w, "clean_text", t->bert.clean);
        tn_json_put_bool(w, "handle_chinese_chars", t->bert.chinese);
        if (t->bert.strip_option || t->bert.strip != t->bert.lower) tn_json_put_bool(w, "strip_accents", t->bert.strip);
        else tn_json_put_null(w, "strip_accents");
        tn_json_put_bool(w, "lowercase", t->bert.lower);
        tn_json_close(w);
    } else {
        tn_json_put_null(w, "normalizer");
    }
    if (t->split == TN__SPLIT_BYTES && t->bytes.splitter) {
        put_split(t, w);
    } else if (t->split == TN__SPLIT_BYTES) {
        put_splitter(t, w, "pre_tokenizer");
    } else {
        tn_json_open_object(w, "pre_tokenizer");
        tn_json_put_string(w, "type", t->split == TN__SPLIT_BERT ? "BertPreTokenizer" : "WhitespaceSplit");
        tn_json_close(w);
    }
}

static void put_parts(const tn_tokenizer *t, tn_json_writer *w, const char *key, const tn__template_part *part, int n)
{
    tn_json_open_array(w, key);
    for (int i = 0; i < n; i++) {
        const bool piece = part[i].text < 0;
        tn_json_open_object(w, NULL);
        tn_json_open_object(w, piece ? "SpecialToken" : "Sequence");
        tn_json_put_string(w, "id", piece ? tn_tokenizer_token(t, part[i].id) : part[i].text ? "B" : "A");
        tn_json_put_i64(w, "type_id", part[i].segment);
        tn_json_close(w);
        tn_json_close(w);
    }
    tn_json_close(w);
}

static void put_template(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->split == TN__SPLIT_BYTES && t->single.n == 1) {
        put_splitter(t, w, "post_processor");
        return;
    }
    tn_json_open_object(w, "post_processor");
    tn_json_put_string(w, "type", "TemplateProcessing");
    put_parts(t, w, "single", t->single.part, t->single.n);
    put_parts(t, w, "pair", t->pair.part, t->pair.n);
    tn_json_open_object(w, "special_tokens");
    for (int i = 0; i < t->single.n + t->pair.n; i++) {
        const tn__template_part *p = i < t->single.n ? t->single.part + i : t->pair.part + (i - t->single.n);
        bool                     before = p->text >= 0;
        for (int k = 0; k < i && !before; k++)
            before = (k < t->single.n ? t->single.part + k : t->pair.part + (k - t->single.n))->id == p->id &&
                     (k < t->single.n ? t->single.part + k : t->pair.part + (k - t->single.n))->text < 0;
        if (before) continue;
        const char *piece = tn_tokenizer_token(t, p->id);
        tn_json_open_object(w, piece);
        tn_json_put_string(w, "id", piece);
        tn_json_open_array(w, "ids");
        tn_json_put_i64(w, NULL, p->id);
        tn_json_close(w);
        tn_json_open_array(w, "tokens");
        tn_json_put_string(w, NULL, piece);
        tn_json_close(w);
        tn_json_close(w);
    }
    tn_json_close(w);
    tn_json_close(w);
}

static void put_decoder(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->joined) {
        tn_json_put_null(w, "decoder");
        return;
    }
    if (t->split == TN__SPLIT_SENTENCE) {
        tn__json_put_decoder(t, w);
        return;
    }
    if (t->kind == TN_BYTE_BPE) {
        put_splitter(t, w, "decoder");
        return;
    }
    tn_json_open_object(w, "decoder");
    if (t->kind == TN_WORDPIECE) {
        tn_json_put_string(w, "type", "WordPiece");
        tn_json_put_bytes(w, "prefix", t->affix, t->affix_bytes);
        tn_json_put_bool(w, "cleanup", t->cleanup);
    } else {
        tn_json_put_string(w, "type", "BPEDecoder");
        tn_json_put_bytes(w, "suffix", t->affix, t->affix_bytes);
    }
    tn_json_close(w);
}

static void write_tokenizer(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "version", "1.0");
    tn_json_put_null(w, "truncation");
    tn_json_put_null(w, "padding");
    put_added(t, w);
    put_rules(t, w);
    put_template(t, w);
    put_decoder(t, w);
    put_model(t, w);
    tn_json_close(w);
}

/* Writes a role, if its token is matched in texts: a role alone would make transformers match it, too. */
static void put_role(const tn_tokenizer *t, tn_json_writer *w, const char *key, int32_t id)
{
    if (tn_tokenizer_is_special(t, id)) tn_json_put_string(w, key, tn_tokenizer_token(t, id));
}

static bool has_options(const tn_tokenizer *t)
{
    bool any = false;
    for (uint32_t i = 0; i < t->added.n; i++) {
        const tn__added *a = t->added.token + i;
        any = any || a->left || a->right || a->word || a->normalized;
    }
    return any;
}

/* Returns the class whose rules, without a tokenizer.json, are the tokenizer's. Qwen2's resets options of tokens. */
static const char *class_of(const tn_tokenizer *t)
{
    const bool nfc =
        t->steps == 1 && t->step[0].kind == TN__STEP_FORM && !strcmp(tn__form_name(t->step[0].form), "NFC");
    if (t->kind == TN_WORDPIECE) return tn__first_is_last(t) ? "PreTrainedTokenizerFast" : "BertTokenizer";
    if (t->kind != TN_BYTE_BPE) return "PreTrainedTokenizerFast";
    if (t->pair.n == 6 && !t->bytes.splitter && !t->steps) return "RobertaTokenizer";
    if (t->single.n == 1 && !t->bytes.splitter && !t->steps) return "GPT2Tokenizer";
    return t->single.n == 1 && nfc && !has_options(t) && t->bytes.splitter == tn__splitter_named("qwen2")
               ? "Qwen2Tokenizer"
               : "PreTrainedTokenizerFast";
}

static void put_roles(const tn_tokenizer *t, tn_json_writer *w)
{
    const tn_tokenizer_roles *r = &t->role;
    if (t->kind == TN_BYTE_BPE && t->single.n == 1) {
        put_role(t, w, "bos_token", r->last), put_role(t, w, "eos_token", r->last);
        put_role(t, w, "unk_token", r->last);
    } else {
        if (t->kind != TN_WORDPIECE && t->kind != TN_BPE)
            put_role(t, w, "bos_token", r->first), put_role(t, w, "eos_token", r->last);
        put_role(t, w, "cls_token", r->first), put_role(t, w, "sep_token", r->separator);
        put_role(t, w, "unk_token", r->unknown);
    }
    put_role(t, w, "mask_token", r->mask), put_role(t, w, "pad_token", r->pad);
}

static void write_config(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "tokenizer_class", class_of(t));
    if (t->bert.enabled) {
        tn_json_put_bool(w, "do_lower_case", t->bert.lower);
        if (t->bert.strip_option || t->bert.strip != t->bert.lower) tn_json_put_bool(w, "strip_accents", t->bert.strip);
        else tn_json_put_null(w, "strip_accents");
        tn_json_put_bool(w, "tokenize_chinese_chars", t->bert.chinese);
    } else if (t->split == TN__SPLIT_BYTES) {
        tn_json_put_bool(w, "add_prefix_space", t->bytes.prefix_space);
    }
    if (t->model_max) tn_json_put_i64(w, "model_max_length", t->model_max);
    if (tn__first_is_last(t)) tn_json_put_string(w, "padding_side", "left"); /* models read the last token */
    if (t->clean_up) tn_json_put_bool(w, "clean_up_tokenization_spaces", true);
    if (t->literal) tn_json_put_bool(w, "split_special_tokens", true);
    put_roles(t, w);
    tn_json_close(w);
}

static void write_special(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    put_roles(t, w);
    tn_json_close(w);
}

static void write_vocab(const tn_tokenizer *t, tn_json_writer *w) { put_vocab(t, w, NULL, false); }

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool path_in(tn_string *path, const char *folder, const char *name)
{
    path->bytes = 0;
    return tn_string_add(path, (tn_text){folder, strlen(folder)}) == TN_OK &&
           tn_string_add(path, (tn_text){"/", 1}) == TN_OK &&
           tn_string_add(path, (tn_text){name, strlen(name)}) == TN_OK;
}

static bool save_json(const tn_tokenizer *t, const char *folder, const char *name,
                      void (*write)(const tn_tokenizer *, tn_json_writer *))
{
    tn_string       path = {0};
    tn_json_writer *w = path_in(&path, folder, name) ? tn_json_writer_new(2) : NULL;
    if (w) write(t, w);
    const bool ok = w && tn_error() == TN_OK && tn__json_save_with_sha256(w, path.at) == TN_OK;
    tn_json_writer_free(w);
    tn_string_free(&path);
    return ok;
}

static bool save_bytes(const char *path, const char *data, size_t bytes)
{
    char label[TN__LABEL];
    return tn__sha256sums_write(tn__label(label, "tn_tokenizer_save", path), path, data, bytes, "", true) == TN_OK;
}

/* Writes vocab.txt, one token per line; or merges.txt. NULL: folder is the file. */
static bool save_lines(const tn_tokenizer *t, const char *folder, const char *name)
{
    const bool merges = t->kind != TN_WORDPIECE;
    tn_string  path = {0}, text = {0};
    uint64_t  *pair = merges ? ranked(&t->merges) : NULL;
    bool       ok = (!name || path_in(&path, folder, name)) && (!merges || pair);
    if (ok && merges) ok = tn_string_add(&text, (tn_text){"#version: 0.2\n", 14}) == TN_OK;
    for (uint32_t i = 0; ok && i < (merges ? t->merges.n : t->vocab.n); i++) {
        size_t      n;
        const char *piece = text_of(t, merges ? (int64_t)(pair[i] >> 32) : i, &n);
        ok = tn_string_add(&text, (tn_text){piece, n}) == TN_OK;
        if (ok && merges) {
            piece = text_of(t, (int64_t)(pair[i] & UINT32_MAX), &n);
            ok = tn_string_add(&text, (tn_text){" ", 1}) == TN_OK && tn_string_add(&text, (tn_text){piece, n}) == TN_OK;
        }
        ok = ok && tn_string_add(&text, (tn_text){"\n", 1}) == TN_OK;
    }
    if (pair) tn__mem_put(pair, ((size_t)t->merges.n + 1) * sizeof *pair);
    if (ok && name) ok = save_bytes(path.at, text.at ? text.at : "", text.bytes);
    else if (ok) ok = tn_file_write(folder, text.at, text.bytes) == TN_OK;
    tn_string_free(&text), tn_string_free(&path);
    return ok;
}

static bool save_model(const tn_tokenizer *t, const char *folder)
{
    tn_string path = {0}, bytes = {0};
    bool      ok = path_in(&path, folder, "tokenizer.model") && tn__sentencepiece_write(t, &bytes);
    ok = ok && save_bytes(path.at, bytes.at, bytes.bytes);
    tn_string_free(&bytes), tn_string_free(&path);
    return ok;
}

/* True if an id has no token, which a .model cannot express. */
static bool has_gap(const tn_tokenizer *t)
{
    int64_t i = 0;
    while (i < t->vocab.n && *tn_tokenizer_token(t, i)) i++;
    return i < t->vocab.n;
}

/* Writes what the older classes read: vocab.json and merges.txt, vocab.txt; SentencePiece's .model. */
static bool save_lists(const tn_tokenizer *t, const char *folder)
{
    if (t->split == TN__SPLIT_SENTENCE) return !t->score || has_gap(t) || save_model(t, folder);
    if (t->kind == TN_WORDPIECE) return save_lines(t, folder, "vocab.txt");
    return save_json(t, folder, "vocab.json", write_vocab) && save_lines(t, folder, "merges.txt");
}

tn_status tn_tokenizer_save(const tn_tokenizer *t, const char *folder)
{
    if (tn__blocked()) return tn__self.error;
    if (!t || !folder || !*folder)
        return tn_raise(TN_EINVAL, "tn_tokenizer_save: %s", t ? "folder is NULL or empty" : "t is NULL");
    if (t->kind == TN_SUBWORD) save_lines(t, folder, NULL);
    else if (t->listed) tn__listed_save(t, folder);
    else if (save_lists(t, folder) && save_json(t, folder, "special_tokens_map.json", write_special) &&
             save_json(t, folder, "tokenizer_config.json", write_config))
        save_json(t, folder, "tokenizer.json", write_tokenizer);
    return tn__self.error;
}
