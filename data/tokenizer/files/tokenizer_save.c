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

static const char *unknown_of(const tn_tokenizer *t)
{
    return t->unknown >= 0 ? tn_tokenizer_token(t, t->unknown) : NULL;
}

static void put_affix(tn_json_writer *w, const char *key, const char *text, uint32_t n)
{
    tn__json_form(w, key, n ? "%t" : "null", (tn_text){text, n});
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
    if (t->kind == TN_WORDPIECE) {
        tn__json_form(w, "model",
                      "{'type': 'WordPiece', 'unk_token': %s, 'continuing_subword_prefix': %t, "
                      "'max_input_chars_per_word': %i",
                      unknown_of(t), (tn_text){t->prefix, t->prefix_bytes}, t->longest_word);
        put_vocab(t, w, "vocab", true);
        return tn_json_close(w) == TN_OK;
    }
    tn__json_form(w, "model", "{'type': 'BPE', 'dropout': null, 'unk_token': %s", unknown_of(t));
    put_affix(w, "continuing_subword_prefix", t->prefix, t->prefix_bytes);
    put_affix(w, "end_of_word_suffix", t->suffix, t->suffix_bytes);
    tn__json_form(w, NULL, "'fuse_unk': %b, 'byte_fallback': %b, 'ignore_merges': %b", t->fuse_unknown,
                  t->split == TN__SPLIT_SENTENCE && t->sentence.fallback, t->whole_words || tn__has_user_tokens(t));
    put_vocab(t, w, "vocab", true);
    uint64_t *pair = ranked(&t->merges);
    if (!pair) return false;
    tn_json_open_array(w, "merges");
    for (uint32_t i = 0; i < t->merges.n; i++)
        tn__json_form(w, NULL, "[%s, %s]", tn_tokenizer_token(t, (int64_t)(pair[i] >> 32)),
                      tn_tokenizer_token(t, (int64_t)(pair[i] & UINT32_MAX)));
    tn__mem_put(pair, ((size_t)t->merges.n + 1) * sizeof *pair);
    tn_json_close(w);
    return tn_json_close(w) == TN_OK;
}

static void put_added(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_array(w, "added_tokens");
    for (uint32_t i = 0; i < t->added.n; i++) {
        const tn__added *a = t->added.token + i;
        tn__json_form(w, NULL,
                      "{'id': %i, 'content': %s, 'single_word': %b, 'lstrip': %b, 'rstrip': %b, 'normalized': %b, "
                      "'special': %b}",
                      (int64_t)a->id, tn_tokenizer_token(t, a->id), a->word, a->left, a->right, a->normalized,
                      a->special);
    }
    tn_json_close(w);
}

static void put_splitter(const tn_tokenizer *t, tn_json_writer *w, const char *key)
{
    tn__json_form(w, key, "{'type': 'ByteLevel', 'add_prefix_space': %b, 'trim_offsets': %b, 'use_regex': %b}",
                  t->bytes.prefix_space, t->bytes.trim,
                  t->bytes.regex && (!t->bytes.splitter || !tn__splitter_regex(t->bytes.splitter)));
}

/* Writes a splitter that is not ByteLevel's own. */
static void put_split(const tn_tokenizer *t, tn_json_writer *w)
{
    const char *regex = tn__splitter_regex(t->bytes.splitter);
    tn__json_form(w, "pre_tokenizer", "{'type': 'Sequence', 'pretokenizers': [");
    if (regex)
        tn__json_form(w, NULL, "{'type': 'Split', 'pattern': {'Regex': %s}, 'behavior': 'Isolated', 'invert': false}",
                      regex);
    else tn__json_form(w, NULL, "{'type': 'Digits', 'individual_digits': true}");
    put_splitter(t, w, NULL);
    tn__json_form(w, NULL, "]}");
}

/* "strip_accents" of BERT: null: as "lowercase". */
static void put_strip(const tn_tokenizer *t, tn_json_writer *w)
{
    const bool own = t->bert.strip_option || t->bert.strip != t->bert.lower;
    tn__json_form(w, "strip_accents", own ? "%b" : "null", t->bert.strip);
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
        tn__json_form(w, "normalizer", "{'type': 'BertNormalizer', 'clean_text': %b, 'handle_chinese_chars': %b",
                      t->bert.clean, t->bert.chinese);
        put_strip(t, w);
        tn__json_form(w, NULL, "'lowercase': %b}", t->bert.lower);
    } else {
        tn_json_put_null(w, "normalizer");
    }
    if (t->split == TN__SPLIT_BYTES && t->bytes.splitter) put_split(t, w);
    else if (t->split == TN__SPLIT_BYTES) put_splitter(t, w, "pre_tokenizer");
    else
        tn__json_form(w, "pre_tokenizer", "{'type': %s}",
                      t->split == TN__SPLIT_BERT ? "BertPreTokenizer" : "WhitespaceSplit");
}

static void put_parts(const tn_tokenizer *t, tn_json_writer *w, const char *key, const tn__template_part *part, int n)
{
    tn_json_open_array(w, key);
    for (int i = 0; i < n; i++) {
        const bool piece = part[i].text < 0;
        tn__json_form(w, NULL,
                      piece ? "{'SpecialToken': {'id': %s, 'type_id': %i}}" : "{'Sequence': {'id': %s, 'type_id': %i}}",
                      piece          ? tn_tokenizer_token(t, part[i].id)
                      : part[i].text ? "B"
                                     : "A",
                      (int64_t)part[i].segment);
    }
    tn_json_close(w);
}

static void put_template(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->split == TN__SPLIT_BYTES && t->single.n == 1) {
        put_splitter(t, w, "post_processor");
        return;
    }
    tn__json_form(w, "post_processor", "{'type': 'TemplateProcessing'");
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
        tn__json_form(w, piece, "{'id': %s, 'ids': [%i], 'tokens': [%s]}", piece, (int64_t)p->id, piece);
    }
    tn__json_form(w, NULL, "}}");
}

static void put_decoder(const tn_tokenizer *t, tn_json_writer *w)
{
    if (t->joined) tn_json_put_null(w, "decoder");
    else if (t->split == TN__SPLIT_SENTENCE) tn__json_put_decoder(t, w);
    else if (t->kind == TN_BYTE_BPE) put_splitter(t, w, "decoder");
    else if (t->kind == TN_WORDPIECE)
        tn__json_form(w, "decoder", "{'type': 'WordPiece', 'prefix': %t, 'cleanup': %b}",
                      (tn_text){t->affix, t->affix_bytes}, t->cleanup);
    else tn__json_form(w, "decoder", "{'type': 'BPEDecoder', 'suffix': %t}", (tn_text){t->affix, t->affix_bytes});
}

static void write_tokenizer(const tn_tokenizer *t, tn_json_writer *w)
{
    tn__json_form(w, NULL, "{'version': '1.0', 'truncation': null, 'padding': null");
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
        put_strip(t, w);
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

/* Writes vocab.txt, one token per line; or merges.txt. NULL: folder is the file. */
static bool save_lines(const tn_tokenizer *t, const char *folder, const char *name)
{
    const bool merges = t->kind != TN_WORDPIECE;
    tn_string  text = {0};
    uint64_t  *pair = merges ? ranked(&t->merges) : NULL;
    bool       ok = !merges || pair;
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
    if (ok && name) ok = tn__tokenizer_save_bytes(folder, name, text.at ? text.at : "", text.bytes);
    else if (ok) ok = tn_file_write(folder, text.at, text.bytes) == TN_OK;
    tn_string_free(&text);
    return ok;
}

static bool save_model(const tn_tokenizer *t, const char *folder)
{
    tn_string  bytes = {0};
    const bool ok = tn__sentencepiece_write(t, &bytes) &&
                    tn__tokenizer_save_bytes(folder, "tokenizer.model", bytes.at, bytes.bytes);
    tn_string_free(&bytes);
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
    return tn__tokenizer_save_json(t, folder, "vocab.json", write_vocab) && save_lines(t, folder, "merges.txt");
}

tn_status tn_tokenizer_save(const tn_tokenizer *t, const char *folder)
{
    if (tn__blocked()) return tn__self.error;
    if (!t || !folder || !*folder)
        return tn_raise(TN_EINVAL, "tn_tokenizer_save: %s", t ? "folder is NULL or empty" : "t is NULL");
    if (t->kind == TN_SUBWORD) save_lines(t, folder, NULL);
    else if (t->listed) tn__listed_save(t, folder);
    else if (save_lists(t, folder) && tn__tokenizer_save_json(t, folder, "special_tokens_map.json", write_special) &&
             tn__tokenizer_save_json(t, folder, "tokenizer_config.json", write_config))
        tn__tokenizer_save_json(t, folder, "tokenizer.json", write_tokenizer);
    return tn__self.error;
}
