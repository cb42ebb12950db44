/* listed.c — tokenizers of transformers that segment by a SentencePiece model and take the ids from a vocab.json:
 * MarianTokenizer (source.spm, target.spm) and M2M100Tokenizer (sentencepiece.bpe.model); and the languages of a
 * tokenizer of several, whose tokens M2M-100 adds after the list, and NLLB to its tokenizer.json. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <stdio.h>
#include <string.h>

/* ---- languages --------------------------------------------------------------------------------------------------- */

static const char m2m100[] =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu";
static const char wmt21[] = "en ha is ja cs ru zh de";

int32_t tn_tokenizer_language(const tn_tokenizer *t, const char *language)
{
    char name[48];
    if (!t || !language || !*language || strlen(language) > 32) return -1;
    snprintf(name, sizeof name, "__%s__", language);
    const int64_t own = tn_tokenizer_id(t, name), plain = own < 0 ? tn_tokenizer_id(t, language) : own;
    return tn_tokenizer_is_special(t, plain) ? (int32_t)plain : -1;
}

const char *tn_tokenizer_languages(const tn_tokenizer *t, bool target) { return t ? t->language[target] : ""; }

static void keep_language(tn_tokenizer *t, bool target, const tn_json *config, const char *key)
{
    snprintf(t->language[target], sizeof t->language[target], "%s", tn_json_string_or(tn_json_get(config, key), ""));
}

/* The token of the texts' language, which the template needs; -1: raised. */
static int32_t source_language(tn_tokenizer *t, const char *caller, const char *asked, const char *otherwise)
{
    char          q[TN__QUOTED];
    const char   *language = asked ? asked : *t->language[0] ? t->language[0] : otherwise;
    const int32_t id = tn_tokenizer_language(t, language);
    if (id < 0)
        tn_raise(TN_EINVAL, "%s: the tokenizer has no language %s; its own have names like %s", caller,
                 tn__quote(q, language, strlen(language), 32), otherwise);
    else if (language != t->language[0]) snprintf(t->language[0], sizeof t->language[0], "%s", language);
    return id;
}

/* NLLB: the language before the text, or in its old form after it. */
bool tn__language_apply(tn_tokenizer *t, const char *caller, const tn_tokenizer_config *o, const tn__side_files *s)
{
    const char *class = tn_json_string_or(tn_json_get(s->config, "tokenizer_class"), "");
    const bool nllb = !strncmp(class, "NllbTokenizer", 13);
    if (!nllb && !o->language) return true;
    keep_language(t, false, s->config, "src_lang"), keep_language(t, true, s->config, "tgt_lang");
    const bool    legacy = tn_json_bool_or(tn_json_get(s->config, "legacy_behaviour"), false);
    const int32_t id = tn_error() == TN_OK ? source_language(t, caller, o->language, "eng_Latn") : -1;
    if (id < 0) return false;
    tn__template_ends(t, legacy ? -1 : id, t->role.last);
    if (legacy) t->single.part[t->single.n++] = (tn__template_part){-1, 0, id};
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *vocab, *languages; /* languages: separated by spaces; NULL: none */
    int64_t     madeup;            /* ids after the languages without a token */
} listing;

static bool add_languages(tn_tokenizer *t, const listing *l)
{
    for (const char *at = l->languages; at && *at;) {
        char         name[48];
        const size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "__%.*s__", (int)n, at);
        const uint32_t before = t->vocab.n;
        const int64_t  id = tn__strings_add(&t->vocab, name, strlen(name));
        if (id < 0 ||
            (id == before &&
             !tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .special = true, .hidden = true, .outside = true})))
            return false;
        at += n + (at[n] == ' ');
    }
    for (int64_t i = 0; i < l->madeup; i++)
        if (!tn__add_empty_token(t)) return false;
    return true;
}

static bool add_list(tn_tokenizer *t, void *user)
{
    const listing *l = user;
    if (!tn__vocab_json_read(t, l->vocab)) return false;
    t->in_list = t->vocab.n;
    if (!add_languages(t, l)) return false;
    t->listed = t->vocab.n;
    if (!tn__grown((void *)&t->type, &t->type_room, t->listed + 1, 1) ||
        !tn__grown((void *)&t->score, &t->score_room, t->listed + 1, sizeof *t->score))
        return false;
    memset(t->type, TN_TYPE_UNUSED, (size_t)t->listed); /* until a piece of the model is found in the list */
    memset(t->score, 0, (size_t)t->listed * sizeof *t->score);
    return true;
}

/* Makes the token of this member special in texts; *id: its id. Raises if it is not in the list. */
static bool add_special(tn_tokenizer *t, const char *caller, const tn_json *config, const char *key,
                        const char *otherwise, int32_t *id)
{
    const tn_json *v = tn_json_get(config, key);
    char           q[TN__QUOTED];
    if (tn_json_type_of(v) == TN_JSON_OBJECT) v = tn_json_get(v, "content");
    const char *text = tn_json_string_or(v, otherwise);
    *id = tn_error() == TN_OK ? (int32_t)tn_tokenizer_id(t, text) : -1;
    if (tn_error() == TN_OK && (*id < 0 || *id >= t->in_list))
        tn_raise(TN_EFORMAT, "%s: %s is %s, which is not in vocab.json", caller, key,
                 tn__quote(q, text, strlen(text), 40));
    if (tn_error() != TN_OK) return false;
    tn__added *known = tn__added_as(t, *id);
    if (known) known->hidden = false;
    return known || tn__tokenizer_add(t, (tn__added){.id = *id, .special = true});
}

static bool set_rules(tn_tokenizer *t, const char *caller, const tn_tokenizer_config *o, const tn__side_files *s)
{
    const bool     marian = t->codes;
    const tn_json *options = tn_json_get(s->config, "sp_model_kwargs");
    int32_t        first = -1;
    if (tn_json_count(options)) return tn__unsupported(caller, "sp_model_kwargs", "not empty");
    keep_language(t, false, s->config, marian ? "source_lang" : "src_lang");
    keep_language(t, true, s->config, marian ? "target_lang" : "tgt_lang");
    if (!add_special(t, caller, s->config, "unk_token", "<unk>", &t->unlisted) ||
        !add_special(t, caller, s->config, "eos_token", "</s>", &t->role.last) ||
        !add_special(t, caller, s->config, "pad_token", "<pad>", &t->role.pad))
        return false;
    t->role.unknown = t->unlisted, t->role.separator = t->role.last;
    if (!marian && !add_special(t, caller, s->config, "bos_token", "<s>", &t->role.first)) return false;
    if (!marian && (first = source_language(t, caller, o->language, "en")) < 0) return false;
    tn__template_ends(t, first, t->role.last);
    return tn__added_index(t) && tn_error() == TN_OK;
}

/* The files of a folder: the model's, the list's, and what kind of folder it is. */
typedef struct {
    char *model, *vocab;
    bool  marian, target, separate;
} found;

/* Finds the files; model NULL: another kind of folder, or raised. */
static found find_files(const char *folder, const tn_tokenizer_config *o, const tn__side_files *s)
{
    const char *class = tn_json_string_or(tn_json_get(s->config, "tokenizer_class"), "");
    const bool m2m = !strcmp(class, "M2M100Tokenizer"), marian = !strcmp(class, "MarianTokenizer");
    found      f = {.separate = tn_json_bool_or(tn_json_get(s->config, "separate_vocabs"), false)};
    if (tn_error() != TN_OK || (*class && !m2m && !marian)) return f;
    if (!m2m) f.model = tn__find_file(folder, o->target ? "target.spm" : "source.spm", NULL);
    f.marian = f.model, f.target = o->target && f.marian;
    if (!f.model && !marian && tn_error() == TN_OK) f.model = tn__find_file(folder, "sentencepiece.bpe.model", NULL);
    if (!f.model) return f;
    f.vocab = tn__find_file(folder, f.target && f.separate ? "target_vocab.json" : "vocab.json", NULL);
    if (f.vocab || tn_error() != TN_OK || *class) return f;
    tn__strfree(f.model), f.model = NULL; /* XLM-RoBERTa's folder has such a model, too */
    return f;
}

static tn_tokenizer *load(const found *f, const tn_tokenizer_config *o, const tn__side_files *s)
{
    char          label[TN__LABEL];
    const char   *codes = tn_json_string_or(tn_json_get(s->config, "language_codes"), "m2m100");
    const int64_t madeup = tn_json_i64_or(tn_json_get(s->config, "num_madeup_words"), 8);
    const bool    wmt = !strcmp(codes, "wmt21");
    listing       l = {f->vocab, f->marian ? NULL : wmt ? wmt21 : m2m100, f->marian ? 0 : madeup};
    tn__label(label, "tn_tokenizer_load", f->model);
    if (tn_error() != TN_OK) return NULL;
    if (!f->vocab) return tn_raise_null(TN_EIO, "%s: the folder has no vocab.json, which holds the token ids", label);
    if (!f->marian && !wmt && strcmp(codes, "m2m100") != 0)
        return tn__unsupported(label, "language_codes", codes), NULL;
    if (l.madeup < 0 || l.madeup > 1000)
        return tn_raise_null(TN_EFORMAT, "%s: num_madeup_words is %lld, expected 0 to 1000", label, (long long)madeup);
    tn_string     copy = {0};
    tn_tokenizer *t = tn__sentencepiece_load(label, f->model, false, add_list, &l, &copy);
    if (!t) return tn_string_free(&copy), NULL;
    t->model_file = copy, t->codes = f->marian, t->target = f->target, t->separate = f->separate;
    return set_rules(t, label, o, s) ? t : (tn_tokenizer_free(t), NULL);
}

tn_tokenizer *tn__listed_load(const char *folder, const tn_tokenizer_config *o, const tn__side_files *s)
{
    const found   f = find_files(folder, o, s);
    tn_tokenizer *t = f.model ? load(&f, o, s) : NULL;
    tn__strfree(f.model), tn__strfree(f.vocab);
    return t;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_token(const tn_tokenizer *t, tn_json_writer *w, const char *key, int32_t id)
{
    if (id >= 0) tn_json_put_string(w, key, tn_tokenizer_token(t, id));
}

static void put_language(const tn_tokenizer *t, tn_json_writer *w, const char *key, bool target)
{
    if (*t->language[target]) tn_json_put_string(w, key, t->language[target]);
}

/* Ids without a token after the languages. */
static int64_t trailing_empty(const tn_tokenizer *t)
{
    int64_t n = 0;
    while (n < t->listed && !*tn_tokenizer_token(t, t->listed - 1 - n)) n++;
    return n;
}

static void write_list(const tn_tokenizer *t, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    for (int64_t i = 0; i < t->in_list; i++) tn_json_put_i64(w, tn_tokenizer_token(t, i), i);
    tn_json_close(w);
}

static void write_config(const tn_tokenizer *t, tn_json_writer *w)
{
    const bool    marian = t->codes;
    const int64_t madeup = trailing_empty(t), languages = t->listed - t->in_list - madeup;
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "tokenizer_class", marian ? "MarianTokenizer" : "M2M100Tokenizer");
    put_token(t, w, "unk_token", t->unlisted), put_token(t, w, "eos_token", t->role.last);
    put_token(t, w, "pad_token", t->role.pad);
    put_language(t, w, marian ? "source_lang" : "src_lang", false);
    put_language(t, w, marian ? "target_lang" : "tgt_lang", true);
    if (t->model_max) tn_json_put_i64(w, "model_max_length", t->model_max);
    if (marian) tn_json_put_bool(w, "separate_vocabs", t->separate);
    else {
        put_token(t, w, "bos_token", t->role.first);
        tn_json_put_string(w, "language_codes", languages > 8 ? "m2m100" : "wmt21");
        tn_json_put_i64(w, "num_madeup_words", madeup);
    }
    tn_json_close(w);
}

bool tn__listed_save(const tn_tokenizer *t, const char *folder)
{
    const char *model = !t->codes ? "sentencepiece.bpe.model" : t->target ? "target.spm" : "source.spm";
    const char *list = t->target && t->separate ? "target_vocab.json" : "vocab.json";
    return tn__tokenizer_save_bytes(folder, model, t->model_file.at, t->model_file.bytes) &&
           tn__tokenizer_save_json(t, folder, list, write_list) &&
           tn__tokenizer_save_json(t, folder, "tokenizer_config.json", write_config);
}
