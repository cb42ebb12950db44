/* save_sentence.c — writes SentencePiece's kinds to a tokenizer.json: the steps as they were read; those of a .model as
 * Hugging Face's libraries convert them. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "data/tokenizer/encode/unigram.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <math.h>
#include <string.h>

/* Writes SentencePiece's one step as Hugging Face's steps, at most five. */
static int spread(const tn_tokenizer *t, tn__step to[5])
{
    int n = 0;
    if (t->charsmap.units) to[n++] = (tn__step){.kind = TN__STEP_CHARSMAP};
    if (t->sentence.squeeze) {
        to[n++] = (tn__step){.kind = TN__STEP_STRIP, .left = true, .right = true, .pattern = " ", .pattern_bytes = 1};
        to[n++] = (tn__step){.kind = TN__STEP_SPACES, .content = " ", .content_bytes = 1};
    }
    if (t->sentence.space != TN__SPACE_NEVER)
        to[n++] = (tn__step){.kind = TN__STEP_PREPEND, .content = TN__SPACE, .content_bytes = 3};
    to[n++] = (tn__step){
        .kind = TN__STEP_REPLACE, .pattern = " ", .pattern_bytes = 1, .content = TN__SPACE, .content_bytes = 3};
    return n;
}

static void put_charsmap(const tn_tokenizer *t, tn_json_writer *w)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tn_string         blob = {0}, text = {0};
    bool              ok = tn__charsmap_blob(&t->charsmap, &blob);
    for (size_t i = 0; ok && i < blob.bytes; i += 3) {
        const size_t left = blob.bytes - i;
        uint32_t     bits = (uint32_t)(unsigned char)blob.at[i] << 16;
        if (left > 1) bits |= (uint32_t)(unsigned char)blob.at[i + 1] << 8;
        if (left > 2) bits |= (uint32_t)(unsigned char)blob.at[i + 2];
        const char four[4] = {digit[bits >> 18], digit[bits >> 12 & 63], left > 1 ? digit[bits >> 6 & 63] : '=',
                              left > 2 ? digit[bits & 63] : '='};
        ok = tn_string_add(&text, (tn_text){four, 4}) == TN_OK;
    }
    if (ok) tn_json_put_bytes(w, "precompiled_charsmap", text.at, text.bytes);
    tn_string_free(&blob), tn_string_free(&text);
}

const char *tn__form_name(int form)
{
    const bool compose = form & UTF8PROC_COMPOSE, compat = form & UTF8PROC_COMPAT;
    return compat ? compose ? "NFKC" : "NFKD" : compose ? "NFC" : "NFD";
}

/* True for a Strip of spaces alone, which Hugging Face has no step for. */
static bool is_ends(const tn__step *s) { return s->kind == TN__STEP_STRIP && s->pattern_bytes; }

const char *tn__step_name(const tn__step *s)
{
    static const char *const name[] = {
        [TN__STEP_CHARSMAP] = "Precompiled", [TN__STEP_LOWER] = "Lowercase", [TN__STEP_ACCENTS] = "StripAccents",
        [TN__STEP_REPLACE] = "Replace",      [TN__STEP_SPACES] = "Replace",  [TN__STEP_STRIP] = "Strip",
        [TN__STEP_PREPEND] = "Prepend"};
    if (s->kind == TN__STEP_FORM) return tn__form_name(s->form);
    return name[is_ends(s) ? TN__STEP_REPLACE : s->kind];
}

static void put_step(const tn_tokenizer *t, tn_json_writer *w, const tn__step *s)
{
    const bool ends = is_ends(s), regex = s->kind == TN__STEP_SPACES || ends;
    tn__json_form(w, NULL, "{'type': %s", tn__step_name(s));
    if (s->kind == TN__STEP_CHARSMAP) put_charsmap(t, w);
    if (s->kind == TN__STEP_PREPEND) tn_json_put_bytes(w, "prepend", s->content, s->content_bytes);
    if (s->kind == TN__STEP_STRIP && !ends)
        tn__json_form(w, NULL, "'strip_left': %b, 'strip_right': %b", s->left, s->right);
    if (regex)
        tn__json_form(w, "pattern", "{'Regex': %s}", ends ? TN__SPACES_AT_ENDS : s->left ? TN__WHITE_SPACE : " {2,}");
    else if (s->kind == TN__STEP_REPLACE)
        tn__json_form(w, "pattern", "{'String': %t}", (tn_text){s->pattern, s->pattern_bytes});
    if (regex || s->kind == TN__STEP_REPLACE) tn_json_put_bytes(w, "content", s->content, s->content_bytes);
    tn_json_close(w);
}

void tn__json_put_steps(const tn_tokenizer *t, tn_json_writer *w)
{
    tn__step        own[5] = {{.kind = TN__STEP_SENTENCE}};
    const bool      sentence = t->steps && t->step[0].kind == TN__STEP_SENTENCE;
    const int       n = sentence ? spread(t, own) : t->steps;
    const tn__step *step = sentence ? own : t->step;
    tn__json_form(w, "normalizer", n ? "{'type': 'Sequence', 'normalizers': [" : "null");
    for (int i = 0; i < n; i++) put_step(t, w, step + i);
    if (n) tn__json_form(w, NULL, "]}");
}

static void put_spaces(tn_json_writer *w, const char *key, tn__space space, bool split)
{
    tn__json_form(w, key, "{'type': 'Metaspace', 'replacement': %s, 'prepend_scheme': %s, 'split': %b}", TN__SPACE,
                  space == TN__SPACE_EACH    ? "always"
                  : space == TN__SPACE_FIRST ? "first"
                                             : "never",
                  split);
}

/* Longer tokens first. */
static bool before(const void *owner, uint32_t a, uint32_t b)
{
    const tn_tokenizer *t = owner;
    const size_t        m = strlen(tn_tokenizer_token(t, a)), n = strlen(tn_tokenizer_token(t, b));
    return m != n ? m > n : a < b;
}

/* User-defined tokens of byte-pair encoding, which no merge makes: a Split isolates them, and ignore_merges keeps them
 * whole. As added tokens they would be matched before a space is added before the text, and before spaces become
 * "▁". */
static void put_users(const tn_tokenizer *t, tn_json_writer *w)
{
    const size_t bytes = ((size_t)t->vocab.n + 1) * sizeof(uint32_t);
    uint32_t    *id = tn__mem_get(bytes), n = 0;
    tn_string    regex = {0};
    bool         ok = id != NULL;
    for (uint32_t i = 0; ok && i < t->vocab.n; i++)
        if (t->type[i] == TN_TYPE_USER) id[n++] = i;
    if (ok) tn__sort(id, n, before, t);
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = !i || tn_string_add(&regex, (tn_text){"|", 1}) == TN_OK;
        for (const char *c = tn_tokenizer_token(t, id[i]); ok && *c; c++)
            ok = (!strchr(TN__REGEX_SIGNS, *c) || tn_string_add(&regex, (tn_text){"\\", 1}) == TN_OK) &&
                 tn_string_add(&regex, (tn_text){c, 1}) == TN_OK;
    }
    if (ok)
        tn__json_form(w, "pre_tokenizer",
                      "{'type': 'Split', 'pattern': {'Regex': %t}, 'behavior': 'Isolated', 'invert': false}",
                      (tn_text){regex.at, regex.bytes});
    tn_string_free(&regex);
    if (id) tn__mem_put(id, bytes);
}

void tn__json_put_metaspace(const tn_tokenizer *t, tn_json_writer *w)
{
    const tn__sentence *r = &t->sentence;
    if (tn__has_user_tokens(t)) {
        put_users(t, w);
        return;
    }
    if (!r->escape) {
        tn_json_put_null(w, "pre_tokenizer");
        return;
    }
    if (r->words)
        tn__json_form(w, "pre_tokenizer", "{'type': 'Sequence', 'pretokenizers': [{'type': 'WhitespaceSplit'}");
    put_spaces(w, r->words ? NULL : "pre_tokenizer", r->space, r->cut);
    if (r->words) tn__json_form(w, NULL, "]}");
}

/* The f32 value that the score has been, with which a file is written as it was read; another score as it is. */
static double as_written(double score)
{
    const double narrow = (double)(float)score;
    return fabs(score - narrow) <= 5e-16 * fabs(score) ? narrow : score;
}

bool tn__json_put_unigram(const tn_tokenizer *t, tn_json_writer *w)
{
    if (!t->score && !t->score64) return false; /* not of this kind */
    tn__json_form(w, "model",
                  t->unknown >= 0 ? "{'type': 'Unigram', 'unk_id': %i, 'vocab': ["
                                  : "{'type': 'Unigram', 'unk_id': null, 'vocab': [",
                  (int64_t)t->unknown);
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        if (t->score64 && t->type[i] == TN_TYPE_CONTROL) continue; /* added_tokens contains it, after all others */
        tn_json_open_array(w, NULL);
        tn_json_put_string(w, NULL, tn_tokenizer_token(t, i));
        tn_json_put_double(w, NULL, as_written(tn__unigram_score(t, (int32_t)i, strlen(tn_tokenizer_token(t, i)))));
        tn_json_close(w);
    }
    tn_json_close(w);
    tn_json_put_bool(w, "byte_fallback", t->sentence.fallback);
    return tn_json_close(w) == TN_OK;
}

void tn__json_put_decoder(const tn_tokenizer *t, tn_json_writer *w)
{
    tn__json_form(w, "decoder", "{'type': 'Sequence', 'decoders': [");
    if (t->sentence.decode_first) put_spaces(w, NULL, TN__SPACE_EACH, true);
    else tn__json_form(w, NULL, "{'type': 'Replace', 'pattern': {'String': %s}, 'content': ' '}", TN__SPACE);
    if (t->score || t->sentence.decode_bytes) tn__json_form(w, NULL, "{'type': 'ByteFallback'}");
    tn__json_form(w, NULL, "{'type': 'Fuse'}");
    if (t->sentence.decode_space)
        tn__json_form(w, NULL, "{'type': 'Strip', 'content': ' ', 'start': %i, 'stop': %i}", (int64_t)1, (int64_t)0);
    tn__json_form(w, NULL, "]}");
}
