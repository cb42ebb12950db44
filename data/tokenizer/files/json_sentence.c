/* json_sentence.c — reads the parts of a tokenizer.json for SentencePiece's kinds: the steps before a text is split,
 * Metaspace, Unigram's tokens, the decoders. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static const char *type_of(const tn_json *v)
{
    return tn_json_type_of(v) == TN_JSON_OBJECT ? tn_json_string(tn_json_need(v, "type")) : "null";
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool text(const char *caller, const tn_json *v, char to[TN__AFFIX], uint32_t *bytes)
{
    const char *s = tn_json_string(v);
    if (tn_error() != TN_OK) return false;
    if (strlen(s) >= TN__AFFIX) return tn__unsupported(caller, "a text of the normalizer", s);
    *bytes = (uint32_t)strlen(s);
    memcpy(to, s, *bytes);
    return true;
}

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

static bool base64(const char *caller, const char *s, size_t n, tn_string *to)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        const int d = s[i] == '=' && i + 2 >= n ? 0 : digit(s[i]);
        if (d < 0 || n % 4) return tn_raise_false(TN_EFORMAT, "%s: precompiled_charsmap is not base64", caller);
        bits = bits << 6 | (uint32_t)d;
        if (i % 4 != 3) continue;
        const char   byte[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        const size_t left = s[i] != '=' ? 3 : s[i - 1] != '=' ? 2 : 1;
        if (tn_string_add(to, (tn_text){byte, left}) != TN_OK) return false;
    }
    return true;
}

static bool read_charsmap(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    if (t->charsmap.units) return tn__unsupported(caller, "the normalizer", "a second Precompiled");
    const tn_json *map = tn_json_get(v, "precompiled_charsmap");
    tn_string      blob = {0};
    const char    *s = tn_json_string_or(map, "");
    const bool ok = base64(caller, s, strlen(s), &blob) && tn__charsmap_read(&t->charsmap, caller, blob.at, blob.bytes);
    tn_string_free(&blob);
    return ok;
}

static bool read_replace(const char *caller, const tn_json *v, tn__step *step)
{
    const tn_json *pattern = tn_json_need(v, "pattern"), *regex = tn_json_get(pattern, "Regex");
    step->kind = TN__STEP_REPLACE;
    if (!text(caller, tn_json_need(v, "content"), step->content, &step->content_bytes)) return false;
    if (regex) {
        const char *regex_text = tn_json_string(regex);
        step->kind = is(regex_text, TN__SPACES_AT_ENDS) && !step->content_bytes ? TN__STEP_STRIP : TN__STEP_SPACES;
        if (step->kind == TN__STEP_STRIP)
            step->left = step->right = true, step->pattern[0] = ' ', step->pattern_bytes = 1;
        step->left = step->left || is(regex_text, TN__WHITE_SPACE);
        return step->left || is(regex_text, " {2,}") || tn__unsupported(caller, "the normalizer's regex", regex_text);
    }
    if (!text(caller, tn_json_need(pattern, "String"), step->pattern, &step->pattern_bytes)) return false;
    return step->pattern_bytes || tn__unsupported(caller, "the normalizer", "Replace of nothing");
}

static bool read_step(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    static const struct {
        const char   *name;
        tn__step_kind kind;
        int           form;
    } simple[] = {{"Lowercase", TN__STEP_LOWER, 0},
                  {"StripAccents", TN__STEP_ACCENTS, 0},
                  {"Precompiled", TN__STEP_CHARSMAP, 0},
                  {"NFC", TN__STEP_FORM, UTF8PROC_STABLE | UTF8PROC_COMPOSE},
                  {"NFD", TN__STEP_FORM, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
                  {"NFKC", TN__STEP_FORM, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                  {"NFKD", TN__STEP_FORM, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
    const char *type = type_of(v);
    tn__step    step = {TN__STEP_LOWER, false, false, "", "", 0, 0, 0};
    if (tn_error() != TN_OK) return false;
    if (t->steps == TN__STEPS) return tn__unsupported(caller, "the normalizer", "more than 12 steps");
    size_t i = 0;
    while (i < sizeof simple / sizeof *simple && !is(simple[i].name, type)) i++;
    if (i < sizeof simple / sizeof *simple) {
        step.kind = simple[i].kind, step.form = simple[i].form;
        if (step.kind == TN__STEP_CHARSMAP && !read_charsmap(t, caller, v)) return false;
    } else if (is(type, "Replace")) {
        if (!read_replace(caller, v, &step)) return false;
    } else if (is(type, "Prepend")) {
        step.kind = TN__STEP_PREPEND;
        if (!text(caller, tn_json_need(v, "prepend"), step.content, &step.content_bytes)) return false;
    } else if (is(type, "Strip")) {
        step.kind = TN__STEP_STRIP;
        step.left = tn_json_bool_or(tn_json_get(v, "strip_left"), true);
        step.right = tn_json_bool_or(tn_json_get(v, "strip_right"), true);
    } else {
        return tn__unsupported(caller, "the normalizer", type);
    }
    t->step[t->steps++] = step;
    return tn_error() == TN_OK;
}

bool tn__json_steps(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    if (!v || tn_json_type_of(v) == TN_JSON_NULL) return true;
    if (!is(type_of(v), "Sequence")) return tn_error() == TN_OK && read_step(t, caller, v);
    for (const tn_json *s = tn_json_first(tn_json_need(v, "normalizers")); s; s = tn_json_next(s))
        if (!read_step(t, caller, s)) return false;
    return tn_error() == TN_OK;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Reads when the pre_tokenizer Metaspace adds a space, and the decoder Metaspace drops it. */
static bool read_scheme(const char *caller, const tn_json *v, tn__space *space)
{
    const bool  front = tn_json_bool_or(tn_json_get(v, "add_prefix_space"), true);
    const char *scheme = tn_json_string_or(tn_json_get(v, "prepend_scheme"), front ? "always" : "never");
    if (!is(tn_json_string_or(tn_json_get(v, "replacement"), TN__SPACE), TN__SPACE))
        return tn__unsupported(caller, "Metaspace's replacement", tn_json_string(tn_json_get(v, "replacement")));
    if (!is(scheme, "always") && !is(scheme, "first") && !is(scheme, "never"))
        return tn__unsupported(caller, "Metaspace's prepend_scheme", scheme);
    *space = is(scheme, "always") ? TN__SPACE_EACH : is(scheme, "first") ? TN__SPACE_FIRST : TN__SPACE_NEVER;
    return tn_error() == TN_OK;
}

static bool read_metaspace(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    t->sentence.escape = true;
    t->sentence.cut = tn_json_bool_or(tn_json_get(v, "split"), true);
    if (!read_scheme(caller, v, &t->sentence.space)) return false;
    /* Hugging Face's library adds no space before a text whose start a Replace has changed */
    for (int i = 0; i < t->steps && t->sentence.space == TN__SPACE_FIRST; i++)
        if (t->step[i].kind == TN__STEP_REPLACE && !is(t->step[i].pattern, " "))
            return tn__unsupported(caller, "Metaspace's prepend_scheme first after the normalizer's Replace",
                                   t->step[i].pattern);
    return true;
}

/* True if the step may write a space that was none before. */
static bool writes_spaces(const tn__step *s)
{
    return s->kind == TN__STEP_CHARSMAP || (s->kind == TN__STEP_FORM && s->form & UTF8PROC_COMPAT) ||
           memchr(s->content, ' ', s->content_bytes);
}

/* True if splitting at spaces has no effect, because a step has replaced all spaces. */
static bool splits_nothing(const tn_tokenizer *t, const tn_json *v)
{
    const tn_json *pattern = tn_json_get(tn_json_get(v, "pattern"), "String");
    bool           none = false;
    if (!is(type_of(v), "Split") || !is(tn_json_string_or(pattern, ""), " ")) return false;
    for (int i = 0; i < t->steps; i++) {
        const tn__step *s = t->step + i;
        none = !writes_spaces(s) && (none || (s->kind == TN__STEP_REPLACE && is(s->pattern, " ")));
    }
    return none;
}

/* True for a regex "a|b" of texts that are all tokens: each match is that token. */
static bool splits_off_tokens(const tn_json *v)
{
    return is(type_of(v), "Split") && tn_json_get(tn_json_get(v, "pattern"), "Regex") &&
           is(tn_json_string_or(tn_json_get(v, "behavior"), ""), "Isolated") &&
           !tn_json_bool_or(tn_json_get(v, "invert"), false);
}

bool tn__json_metaspace(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    const char *type = type_of(v);
    if (tn_error() != TN_OK || is(type, "null") || splits_nothing(t, v)) return tn_error() == TN_OK;
    if (is(type, "Metaspace")) return read_metaspace(t, caller, v);
    if (splits_off_tokens(v)) return true;
    const tn_json *list = is(type, "Sequence") ? tn_json_need(v, "pretokenizers") : NULL;
    if (tn_json_count(list) == 1 && is(type_of(tn_json_first(list)), "Metaspace"))
        return read_metaspace(t, caller, tn_json_first(list));
    if (tn_json_count(list) != 2 || !is(type_of(tn_json_at(list, 0)), "WhitespaceSplit") ||
        !is(type_of(tn_json_at(list, 1)), "Metaspace"))
        return tn_error() == TN_OK && tn__unsupported(caller, "the pre_tokenizer", type);
    t->sentence.words = true;
    return read_metaspace(t, caller, tn_json_at(list, 1));
}

bool tn__json_user_tokens(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    if (!splits_off_tokens(v)) return tn_error() == TN_OK;
    const char *regex = tn_json_string(tn_json_get(tn_json_get(v, "pattern"), "Regex"));
    char        text[4 * TN__AFFIX];
    size_t      n = 0, last = SIZE_MAX;
    if (tn_error() != TN_OK || !tn__grown((void *)&t->type, &t->type_room, (int64_t)t->vocab.n + 1, 1)) return false;
    if (!t->whole_words) return tn__unsupported(caller, "the pre_tokenizer's Split, without ignore_merges,", regex);
    memset(t->type, TN_TYPE_NORMAL, t->vocab.n);
    for (const char *c = regex;; c++) {
        if (*c && *c != '|') {
            const bool behind = *c == '\\';
            c += behind;
            if (!*c || behind != (strchr(TN__REGEX_SIGNS, *c) != NULL) || n == sizeof text) break;
            text[n++] = *c;
            continue;
        }
        const int64_t id =
            n && n <= last ? tn__strings_find(&t->vocab, text, n) : -1; /* longest first, the order of matching */
        if (id < 0) break;
        t->type[id] = TN_TYPE_USER, last = n, n = 0;
        if (!*c) return t->whole_words = false, true; /* no other word may be a token */
    }
    return tn__unsupported(caller, "the pre_tokenizer's Split", regex);
}

/* ---- Unigram ----------------------------------------------------------------------------------------------------- */

/* The score as tokenizers reads it: its digits as an integer, rounded to f64, times or divided by a power of ten, which
 * is often a neighbour of the nearest f64. It decides between segmentations whose sums differ by rounding. */
static double as_tokenizers(double v)
{
    char     text[32];
    uint64_t digits = 0;
    int      exponent = 0, i = 0, n = tn_format_double(fabs(v), text); /* the shortest digits, as in the file */
    for (bool point = false; i < n && text[i] != 'e'; i++)
        if (text[i] == '.') point = true;
        else digits = digits * 10 + (uint64_t)(text[i] - '0'), exponent -= point;
    int e = 0;
    for (int k = i + 2; k < n; k++) e = e * 10 + (text[k] - '0');
    if (i < n) exponent += text[i + 1] == '-' ? -e : e;
    double power = 1;
    if (exponent < -22 || exponent > 22) return v;
    for (int k = 0; k < abs(exponent); k++) power *= 10; /* exact */
    return copysign(exponent < 0 ? (double)digits / power : (double)digits * power, v);
}

bool tn__json_unigram(tn_tokenizer *t, const char *caller, const tn_json *model)
{
    const tn_json *vocab = tn_json_get(model, "vocab"), *unknown = tn_json_get(model, "unk_id");
    const int64_t  n = t->vocab.n;
    t->sentence.fallback = tn_json_bool_or(tn_json_get(model, "byte_fallback"), false);
    t->unknown = (int32_t)tn_json_i64_or(unknown, -1);
    if (t->unknown >= n || t->unknown < -1)
        return tn_raise_false(TN_EFORMAT, "%s: unk_id is %d, but token ids are 0 to %lld", caller, t->unknown,
                              (long long)n - 1);
    if (!tn__grown((void *)&t->type, &t->type_room, n + 1, 1) ||
        !tn__grown((void *)&t->score64, &t->score64_room, n + 1, sizeof *t->score64))
        return false;
    int64_t i = 0;
    for (const tn_json *v = tn_json_first(vocab); v && i < n; v = tn_json_next(v), i++) {
        t->type[i] = TN_TYPE_NORMAL;
        t->score64[i] = as_tokenizers(tn_json_double(tn_json_at(v, 1)));
        if (tn_error() != TN_OK) return false;
        if (!(t->score64[i] > -1e30 && t->score64[i] < 1e30))
            return tn_raise_false(TN_EFORMAT, "%s: the score of token %lld is not a finite number", caller,
                                  (long long)i);
    }
    for (; i < n; i++) t->type[i] = TN_TYPE_CONTROL, t->score64[i] = 0;
    return true;
}

/* ---- the decoder ------------------------------------------------------------------------------------------------- */

/* What the decoders do that were read: replace "▁", decode bytes, join the tokens to one text, strip its start. */
typedef struct {
    bool spaces, bytes, fused, stripped;
} decoded;

static bool read_strip(tn_tokenizer *t, const char *caller, const tn_json *v, const decoded *d)
{
    const int64_t start = tn_json_i64_or(tn_json_get(v, "start"), 0), stop = tn_json_i64_or(tn_json_get(v, "stop"), 0);
    const char   *content = tn_json_string_or(tn_json_get(v, "content"), " ");
    if (tn_error() != TN_OK || !is(content, " "))
        return tn__unsupported(caller, "the content of the decoder's Strip", content);
    if (start < 0 || start > 1 || stop)
        return tn__unsupported(caller, "the decoder", "Strip of more than the first space");
    if (start && !d->fused)
        return tn__unsupported(caller, "the decoder", "Strip of each token, without Fuse before it");
    if (start && t->sentence.decode_first) return tn__unsupported(caller, "the decoder", "Strip after Metaspace");
    t->sentence.decode_space |= start == 1;
    return true;
}

static bool read_decoder(tn_tokenizer *t, const char *caller, const tn_json *v, decoded *d)
{
    const char   *type = type_of(v);
    const bool    metaspace = is(type, "Metaspace"), fuse = is(type, "Fuse"), strip = is(type, "Strip");
    const decoded was = *d;
    const char   *what = tn_json_string_or(tn_json_get(tn_json_get(v, "pattern"), "String"), "");
    if (metaspace || is(type, "Replace")) d->spaces = true;
    else if (is(type, "ByteFallback")) d->bytes = true;
    else if (fuse) d->fused = true;
    else if (strip) d->stripped = true;
    else return tn__unsupported(caller, "the decoder", type);
    if (tn_error() != TN_OK) return false;
    if (was.stripped || (fuse && !was.spaces) || (was.fused && !strip) || (was.bytes && !fuse && !strip) ||
        (was.spaces && d->spaces && (metaspace || is(type, "Replace"))))
        return tn__unsupported(caller, "the decoder's order: after others", type);
    if (strip) return read_strip(t, caller, v, &was);
    if (metaspace) {
        tn__space space = TN__SPACE_NEVER;
        if (!read_scheme(caller, v, &space)) return false;
        t->sentence.decode_first = space != TN__SPACE_NEVER;
    } else if (is(type, "Replace")) {
        return (is(what, TN__SPACE) && is(tn_json_string_or(tn_json_get(v, "content"), ""), " ")) ||
               tn__unsupported(caller, "the decoder's Replace", what);
    }
    return tn_error() == TN_OK;
}

bool tn__json_decoder(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    decoded        d = {false};
    const bool     list = is(type_of(v), "Sequence");
    const tn_json *at = list ? tn_json_first(tn_json_need(v, "decoders")) : v;
    for (; at; at = list ? tn_json_next(at) : NULL)
        if (!read_decoder(t, caller, at, &d)) return false;
    if (tn_error() != TN_OK) return false;
    if (!d.spaces) return tn__unsupported(caller, "the decoder", "one that keeps \"\xe2\x96\x81\"");
    t->sentence.decode_bytes = d.bytes;
    return true;
}
