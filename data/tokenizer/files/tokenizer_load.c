/* tokenizer_load.c — loads a tokenizer from a folder or a file: tokenizer.json; SentencePiece's .model; BERT's
 * vocab.txt; GPT-2's vocab.json (or encoder.json) and merges.txt (or vocab.bpe). */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

enum { LONGEST_LINE = 8192 };

/* ---- files of lines ---------------------------------------------------------------------------------------------- */

typedef struct {
    const char *caller, *text;
    size_t      bytes, at;
    int64_t     line; /* the last returned line, from 1 */
} lines;

/* The next line without its line end; false: none, or raised. */
static bool next_line(lines *x, const char **line, size_t *n)
{
    if (x->at >= x->bytes || tn_error() != TN_OK) return false;
    *line = x->text + x->at;
    const char *end = memchr(*line, '\n', x->bytes - x->at);
    *n = end ? (size_t)(end - *line) : x->bytes - x->at;
    x->at += *n + 1, x->line++;
    if (*n && (*line)[*n - 1] == '\r') --*n;
    const size_t good = tn_utf8_valid(*line, *n);
    if (good < *n || memchr(*line, 0, *n) || *n > LONGEST_LINE)
        return tn_raise_false(TN_EFORMAT, "%s: line %lld %s", x->caller, (long long)x->line,
                              good < *n           ? "is not UTF-8"
                              : *n > LONGEST_LINE ? "has more than 8192 bytes"
                                                  : "has a NUL in it");
    return true;
}

static bool read_vocab_txt(tn_tokenizer *t, lines *x)
{
    const char *line;
    size_t      n;
    char        q[TN__QUOTED];
    while (next_line(x, &line, &n)) {
        const uint32_t before = t->vocab.n;
        if (before >= TN__VOCAB_MAX)
            return tn_raise_false(TN_EUNSUPPORTED, "%s: more than %d lines", x->caller, TN__VOCAB_MAX);
        if (!n) {
            if (!tn__add_empty_token(t)) return false;
            continue;
        }
        const int64_t id = tn__strings_add(&t->vocab, line, n);
        if (id < 0) return false;
        if (id != before)
            return tn_raise_false(TN_EFORMAT, "%s: line %lld: %s is a duplicate of line %lld", x->caller,
                                  (long long)x->line, tn__quote(q, line, n, 40), (long long)id + 1);
    }
    return tn_error() == TN_OK;
}

/* subword-nmt's file has no vocabulary: adds the tokens of a merge. */
static bool add_merge_tokens(tn_tokenizer *t, const char *a, size_t na, const char *b, size_t nb)
{
    tn_string  both = {0};
    const bool ok = tn_string_add(&both, (tn_text){a, na}) == TN_OK &&
                    tn_string_add(&both, (tn_text){b, nb}) == TN_OK && tn__strings_add(&t->vocab, a, na) >= 0 &&
                    tn__strings_add(&t->vocab, b, nb) >= 0 && tn__strings_add(&t->vocab, both.at, both.bytes) >= 0;
    tn_string_free(&both);
    return ok;
}

static bool has_merge(const tn_tokenizer *t, const char *a, size_t na, const char *b, size_t nb)
{
    const int64_t left = tn__strings_find(&t->vocab, a, na), right = tn__strings_find(&t->vocab, b, nb);
    return left >= 0 && right >= 0 && tn__merge_rank(&t->merges, (int32_t)left, (int32_t)right) >= 0;
}

static bool read_merges_txt(tn_tokenizer *t, lines *x)
{
    const bool subword = t->kind == TN_SUBWORD;
    size_t     count = 1, n;
    for (size_t i = 0; i < x->bytes; i++) count += x->text[i] == '\n';
    if (!tn__merges_room(&t->merges, count)) return false;
    for (const char *line; next_line(x, &line, &n);) {
        /* subword-nmt has its version in the first line only; "#version" may be a token elsewhere */
        if (!n || (n >= 8 && !memcmp(line, "#version", 8) && (!subword || x->line == 1))) continue;
        const char  *space = memchr(line, ' ', n);
        const size_t a = space ? (size_t)(space - line) : 0, b = space ? n - a - 1 : 0;
        if (!a || !b || memchr(space + 1, ' ', b))
            return tn_raise_false(TN_EFORMAT, "%s: line %lld is not two tokens separated by a space", x->caller,
                                  (long long)x->line);
        if (subword && has_merge(t, line, a, space + 1, b)) continue; /* subword-nmt may learn a merge twice */
        if ((subword && !add_merge_tokens(t, line, a, space + 1, b)) ||
            !tn__merge_texts(t, x->caller, line, a, space + 1, b))
            return false;
    }
    return tn_error() == TN_OK;
}

/* Calls read(t, lines of the file). */
static bool with_lines(tn_tokenizer *t, const char *path, bool (*read)(tn_tokenizer *, lines *))
{
    char           label[TN__LABEL];
    const tn_scope scope = tn_scope_begin();
    tn_tensor     *file = tn_file_read(path, (int64_t)256 << 20);
    lines          x = {.caller = tn__label(label, "tn_tokenizer_load", path)};
    if (file) x.text = tn_data(file), x.bytes = (size_t)tn_numel(file);
    const bool ok = file && tn__sha256sums_check(path, x.text, x.bytes) && read(t, &x);
    tn_scope_end(scope);
    return ok;
}

/* ---- kinds of tokenizer files ------------------------------------------------------------------------------------ */

static tn_tokenizer *load_bert(const char *path, tn_tokenizer_config o, const tn__side_files *side, bool chinese)
{
    static const tn__class fit[3] = {TN__CLASS_BERT};
    char                   label[TN__LABEL];
    const char            *caller = tn__label(label, "tn_tokenizer_load", path);
    tn__class class;
    tn_tokenizer *t = tn__class_find(side, caller, fit, &class) ? tn__tokenizer_new(TN_WORDPIECE) : NULL;
    if (!t) return NULL;
    t->bert.chinese = chinese;
    t->bert.lower = o.lowercase != TN_NO;
    t->bert.strip_option = o.strip_accents;
    t->bert.strip = o.strip_accents ? o.strip_accents == TN_YES : t->bert.lower;
    if (with_lines(t, path, read_vocab_txt) && tn__class_rules(t, caller, side, class)) return t;
    return tn_tokenizer_free(t), NULL;
}

/* True if the file starts like subword-nmt's: "#version: 0.2". */
static bool has_version(const char *path, char version[4])
{
    static const char begin[] = "#version: ";
    char              label[TN__LABEL], text[sizeof begin + 2] = "";
    tn__source        s;
    if (!tn__source_open(&s, tn__label(label, "tn_tokenizer_load", path), path)) return false;
    const bool has = s.size >= (int64_t)sizeof text && tn__source_read(&s, text, 0, sizeof text) &&
                     !memcmp(text, begin, sizeof begin - 1);
    tn__source_close(&s);
    memcpy(version, text + sizeof begin - 1, 3);
    version[3] = 0;
    return has;
}

static tn_tokenizer *load_subword(const char *path, const char *version)
{
    if (strcmp(version, "0.2") != 0)
        return tn_raise_null(TN_EUNSUPPORTED,
                             "tn_tokenizer_load: '%.200s': version %s, expected 0.2; learn the merges again", path,
                             version);
    tn_tokenizer *t = tn__tokenizer_new(TN_SUBWORD);
    if (t && with_lines(t, path, read_merges_txt) && tn__tokenizer_finish(t, "tn_tokenizer_load")) return t;
    return tn_tokenizer_free(t), NULL;
}

static tn_tokenizer *load_gpt2(const char *vocab, const char *merges, const tn__side_files *side)
{
    static const tn__class fit[3] = {TN__CLASS_GPT2, TN__CLASS_ROBERTA, TN__CLASS_QWEN2};
    char                   label[TN__LABEL];
    const char            *caller = tn__label(label, "tn_tokenizer_load", vocab);
    tn__class class;
    tn_tokenizer *t = tn__class_find(side, caller, fit, &class) ? tn__tokenizer_new(TN_BYTE_BPE) : NULL;
    if (!t) return NULL;
    if (tn__vocab_json_read(t, vocab) && with_lines(t, merges, read_merges_txt) &&
        tn__class_rules(t, caller, side, class))
        return t;
    return tn_tokenizer_free(t), NULL;
}

static tn_tokenizer *load_json(const char *path)
{
    char          label[TN__LABEL];
    tn_json      *v = tn_json_load(path);
    tn_tokenizer *t = v ? tn__tokenizer_read(tn__label(label, "tn_tokenizer_load", path), v) : NULL;
    tn_json_free(v);
    return t;
}

/* own: the default class of the file's name; TN__CLASS_NONE: a model of any name, with its own rules. */
static tn_tokenizer *load_model(const char *path, tn_tokenizer_config o, const tn__side_files *side, tn__class own)
{
    static const tn__class any[3] = {TN__CLASS_LLAMA, TN__CLASS_T5, TN__CLASS_XLNET};
    const tn__class        named[3] = {own, TN__CLASS_XLM_ROBERTA, TN__CLASS_DEBERTA}, *fit = own ? named : any;
    char                   label[TN__LABEL];
    const char            *caller = tn__label(label, "tn_tokenizer_load", path);
    tn__class class;
    if (!tn__class_find(side, caller, fit, &class)) return NULL;
    tn_tokenizer *t = tn__sentencepiece_load(caller, path, o.control_in_text == TN_YES, NULL, NULL, NULL);
    if (!t || tn__class_rules(t, caller, side, class)) return t;
    return tn_tokenizer_free(t), NULL;
}

/* Returns the document of this name in the folder; NULL: not found, or raised. */
static tn_json *read_document(const char *folder, const char *name)
{
    char    *path = tn_error() == TN_OK ? tn__find_file(folder, name, NULL) : NULL;
    tn_json *v = path ? tn_json_load(path) : NULL;
    tn__strfree(path);
    return v;
}

/* Options of tokenizer_config.json for a tokenizer of any kind. */
typedef struct {
    int64_t model_max;
    bool    chinese, literal, clean_up;
} options;

/* Reads tokenizer_config.json: its options apply where the caller set none. */
static bool read_config(const tn_json *v, tn_tokenizer_config *o, options *to)
{
    const tn_json *lower = tn_json_get(v, "do_lower_case"), *strip = tn_json_get(v, "strip_accents");
    const double   most = tn_json_double_or(tn_json_get(v, "model_max_length"), 0);
    if (!o->lowercase && tn_json_type_of(lower) == TN_JSON_BOOL) o->lowercase = tn_json_bool(lower) ? TN_YES : TN_NO;
    if (!o->strip_accents && tn_json_type_of(strip) == TN_JSON_BOOL)
        o->strip_accents = tn_json_bool(strip) ? TN_YES : TN_NO;
    to->chinese = tn_json_bool_or(tn_json_get(v, "tokenize_chinese_chars"), true);
    to->literal = tn_json_bool_or(tn_json_get(v, "split_special_tokens"), false);
    to->clean_up = tn_json_bool_or(tn_json_get(v, "clean_up_tokenization_spaces"), false);
    if (most >= 1 && most < 1e9) to->model_max = (int64_t)most;
    return tn_error() == TN_OK;
}

/* Loads the vocabulary files of a folder without a tokenizer.json. */
static tn_tokenizer *load_lists(const char *folder, tn_tokenizer_config o, const tn__side_files *side, bool chinese)
{
    tn_tokenizer *t = NULL;
    char         *txt = NULL, *vocab = NULL, *merges = NULL, *model = NULL;
    if (tn_error() == TN_OK && (model = tn__find_file(folder, "tokenizer.model", "spiece.model")))
        t = load_model(model, o, side, TN__CLASS_NONE);
    else if (tn_error() == TN_OK && (model = tn__find_file(folder, "spm.model", NULL)))
        t = load_model(model, o, side, TN__CLASS_DEBERTA);
    else if (tn_error() == TN_OK && (model = tn__find_file(folder, "sentencepiece.bpe.model", NULL)))
        t = load_model(model, o, side, TN__CLASS_CAMEMBERT);
    else if (tn_error() == TN_OK && (txt = tn__find_file(folder, "vocab.txt", NULL)))
        t = load_bert(txt, o, side, chinese);
    else if (tn_error() == TN_OK && (vocab = tn__find_file(folder, "vocab.json", "encoder.json")) &&
             (merges = tn__find_file(folder, "merges.txt", "vocab.bpe")))
        t = load_gpt2(vocab, merges, side);
    else if (tn_error() == TN_OK)
        tn_raise(TN_EIO,
                 "tn_tokenizer_load: '%.200s' is neither a file nor a folder with a tokenizer.json, a "
                 "tokenizer.model, a vocab.txt, or a vocab.json and a merges.txt",
                 folder);
    tn__strfree(model), tn__strfree(txt), tn__strfree(vocab), tn__strfree(merges);
    return t;
}

static tn_tokenizer *load_json_folder(const char *json, const tn_tokenizer_config *o, tn__side_files *side)
{
    char          label[TN__LABEL];
    const char   *caller = tn__label(label, "tn_tokenizer_load", json);
    tn_tokenizer *t = load_json(json);
    if (!t || (tn__side_files_apply(t, caller, side) && tn__language_apply(t, caller, o, side))) return t;
    return tn_tokenizer_free(t), NULL;
}

static tn_tokenizer *load_folder(const char *folder, tn_tokenizer_config o)
{
    tn_tokenizer  *t = NULL;
    options        all = {0};
    tn_json       *model = o.config ? NULL : read_document(folder, "config.json");
    tn__side_files side = {.config = read_document(folder, "tokenizer_config.json"),
                           .map = read_document(folder, "special_tokens_map.json"),
                           .added = read_document(folder, "added_tokens.json"),
                           .model = o.config ? o.config : model};
    if (tn_error() == TN_OK && read_config(side.config, &o, &all)) {
        t = tn__listed_load(folder, &o, &side);
        char *json = t || tn_error() != TN_OK ? NULL : tn__find_file(folder, "tokenizer.json", NULL);
        if (json) t = load_json_folder(json, &o, &side);
        else if (!t && tn_error() == TN_OK) t = load_lists(folder, o, &side, all.chinese);
        tn__strfree(json);
    }
    tn_json_free(side.config), tn_json_free(side.map), tn_json_free(side.added), tn_json_free(model);
    if (!t) return NULL;
    t->model_max = all.model_max, t->literal = all.literal;
    t->clean_up = all.clean_up && (t->kind == TN_WORDPIECE || t->kind == TN_UNIGRAM);
    return t;
}

tn_tokenizer *tn_tokenizer_load_run(const char *path, tn_tokenizer_config o)
{
    if (tn__blocked()) return NULL;
    if (!path || !*path) return tn_raise_null(TN_EINVAL, "tn_tokenizer_load: the path is %s", path ? "empty" : "NULL");
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (tn__tokenizer_is_file(path) && (!strcmp(name, "config.json") || !strcmp(name, "tokenizer_config.json")))
        return tn_raise_null(TN_EINVAL,
                             "tn_tokenizer_load: '%.200s' has no vocabulary; pass the path of its folder, or of its "
                             "tokenizer.json",
                             path);
    const size_t n = strlen(path);
    const bool   json = n > 5 && !memcmp(path + n - 5, ".json", 5), model = n > 6 && !memcmp(path + n - 6, ".model", 6);
    static const tn__side_files nothing;
    char                        version[4];
    tn_tokenizer               *t = !tn__tokenizer_is_file(path) ? load_folder(path, o)
                                    : json                       ? load_json(path)
                                    : model                      ? load_model(path, o, &nothing, TN__CLASS_NONE)
                                    : has_version(path, version) ? load_subword(path, version)
                                                                 : load_bert(path, o, &nothing, true);
    if (!t) return NULL;
    const bool lowers = o.lowercase && t->bert.lower != (o.lowercase == TN_YES);
    const bool strips = o.strip_accents && t->bert.strip != (o.strip_accents == TN_YES);
    if ((lowers || strips || o.slow) && !t->bert.enabled) {
        tn_raise(TN_EINVAL, "tn_tokenizer_load: .lowercase, .strip_accents and .slow are for tokenizers with "
                            "BERT's normalizer, which this one does not have");
        return tn_tokenizer_free(t), NULL;
    }
    if (lowers) t->bert.lower = !t->bert.lower, t->bert.strip = t->bert.strip_option ? t->bert.strip : t->bert.lower;
    if (o.strip_accents) t->bert.strip_option = o.strip_accents, t->bert.strip = o.strip_accents == TN_YES;
    t->bert.slow = o.slow;
    return t;
}
