/* tokenizer_class.c — finds the class whose rules apply to a folder without a tokenizer.json, from
 * tokenizer_config.json, special_tokens_map.json and added_tokens.json; and applies these files next to a
 * tokenizer.json, as transformers' AutoTokenizer does. An option that Tenon supports only in a tokenizer.json is
 * rejected; the error names it: another class gives other ids for the same vocabulary. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }
static bool is_null(const tn_json *v) { return !v || tn_json_type_of(v) == TN_JSON_NULL; }

static bool needs_json(const char *caller, const char *option, const char *value)
{
    char q[TN__QUOTED];
    return tn_raise_false(TN_EUNSUPPORTED,
                          "%s: %s is %s, which Tenon supports only in a tokenizer.json; create one with transformers' "
                          "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)",
                          caller, option, tn__quote(q, value, strlen(value), 60));
}

/* ---- the class --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *model; /* name: its tokenizer_class, without "Fast"; model: config.json's model_type */
    tn__class class;
} classes[] = {
    {"BertTokenizer", "bert", TN__CLASS_BERT},
    {"DistilBertTokenizer", "distilbert", TN__CLASS_BERT},
    {"ElectraTokenizer", "electra", TN__CLASS_BERT},
    {"GPT2Tokenizer", "gpt2", TN__CLASS_GPT2},
    {"RobertaTokenizer", "roberta", TN__CLASS_ROBERTA},
    {"BartTokenizer", "bart", TN__CLASS_ROBERTA},
    {"Qwen2Tokenizer", "qwen2", TN__CLASS_QWEN2},
    {"LlamaTokenizer", "llama", TN__CLASS_LLAMA},
    {"AlbertTokenizer", "albert", TN__CLASS_NONE},
    {"T5Tokenizer", "t5", TN__CLASS_T5},
    {"XLNetTokenizer", "xlnet", TN__CLASS_XLNET},
    {"CamembertTokenizer", "camembert", TN__CLASS_CAMEMBERT},
    {"XLMRobertaTokenizer", "xlm-roberta", TN__CLASS_XLM_ROBERTA},
    {"DebertaV2Tokenizer", "deberta-v2", TN__CLASS_DEBERTA},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* True for the class of any tokenizer: a .model holds its rules. */
static bool is_any(const char *name) { return is(name, "PreTrainedTokenizerFast") || is(name, "TokenizersBackend"); }

static tn__class class_named(const char *name)
{
    const size_t n = strlen(name), fast = n > 4 && is(name + n - 4, "Fast") ? 4 : 0;
    for (int i = 0; i < CLASSES; i++)
        if (strlen(classes[i].name) == n - fast && !memcmp(classes[i].name, name, n - fast)) return classes[i].class;
    return TN__CLASS_NONE;
}

bool tn__class_find(const tn__side_files *s, const char *caller, const tn__class fit[3], tn__class *class)
{
    const char *name = tn_json_string_or(tn_json_get(s->config, "tokenizer_class"), "");
    const char *model = tn_json_string_or(tn_json_get(s->model, "model_type"), "");
    const bool  specified = *name && !(is_any(name) && fit[0] == TN__CLASS_LLAMA);
    *class = fit[0];
    if (tn_error() != TN_OK) return false;
    if (specified) {
        *class = class_named(name);
        for (int i = 0; i < 3; i++)
            if (*class != TN__CLASS_NONE && fit[i] == *class) return true;
        return needs_json(caller, "tokenizer_class", name);
    }
    for (int i = 0; i < CLASSES; i++) {
        if (!is(classes[i].model, model)) continue;
        for (int k = 1; k < 3; k++)
            if (fit[k] == classes[i].class) *class = fit[k];
        if (classes[i].class == TN__CLASS_NONE && fit[0] == TN__CLASS_LLAMA)
            return needs_json(caller, "model_type", model);
    }
    return true;
}

/* ---- options that change token ids ------------------------------------------------------------------------------- */

static bool bool_is(const tn__side_files *s, const char *caller, const char *key, bool value)
{
    const tn_json *v = tn_json_get(s->config, key);
    return is_null(v) || (tn_json_type_of(v) == TN_JSON_BOOL && tn_json_bool(v) == value) ||
           needs_json(caller, key, value ? "not true" : "not false");
}

static bool check_options(const tn__side_files *s, const char *caller, const tn_tokenizer *t, tn__class class)
{
    const bool     framed = class == TN__CLASS_BERT || class == TN__CLASS_ROBERTA;
    const tn_json *never = tn_json_get(s->config, "never_split"), *options = tn_json_get(s->config, "sp_model_kwargs");
    if (class == TN__CLASS_BERT && (!bool_is(s, caller, "do_basic_tokenize", true))) return false;
    if (class == TN__CLASS_BERT && tn_json_count(never)) return needs_json(caller, "never_split", "not empty");
    if (class == TN__CLASS_LLAMA && tn_json_count(options)) return needs_json(caller, "sp_model_kwargs", "not empty");
    if (class == TN__CLASS_LLAMA && !bool_is(s, caller, "add_prefix_space", t->sentence.space != TN__SPACE_NEVER))
        return false;
    if (class == TN__CLASS_QWEN2 && !bool_is(s, caller, "add_prefix_space", false)) return false;
    return !framed || (bool_is(s, caller, "add_bos_token", false) && bool_is(s, caller, "add_eos_token", false));
}

/* ---- special and added tokens ------------------------------------------------------------------------------------ */

enum { PAD, UNK, CLS, SEP, MASK, BOS, EOS, ROLES };
static const char *const keys[ROLES] = {"pad_token",  "unk_token", "cls_token", "sep_token",
                                        "mask_token", "bos_token", "eos_token"};
static const char *const default_tokens[TN__CLASSES][ROLES] = {
    [TN__CLASS_BERT] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "", ""},
    [TN__CLASS_GPT2] = {"", "<|endoftext|>", "", "", "", "<|endoftext|>", "<|endoftext|>"},
    [TN__CLASS_ROBERTA] = {"<pad>", "<unk>", "<s>", "</s>", "<mask>", "<s>", "</s>"},
    [TN__CLASS_QWEN2] = {"<|endoftext|>", "<|endoftext|>", "", "", "", "", "<|endoftext|>"},
    [TN__CLASS_LLAMA] = {"", "", "", "", "", "", ""},
    [TN__CLASS_T5] = {"<pad>", "<unk>", "", "", "", "", "</s>"},
    [TN__CLASS_XLNET] = {"<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>"},
    [TN__CLASS_CAMEMBERT] = {"<pad>", "<unk>", "<s>", "</s>", "<mask>", "<s>", "</s>"},
    [TN__CLASS_XLM_ROBERTA] = {"<pad>", "<unk>", "<s>", "</s>", "<mask>", "<s>", "</s>"},
    [TN__CLASS_DEBERTA] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[CLS]", "[SEP]"},
};

/* Makes a token special. If it is already matched in texts, it keeps its other options. */
static bool add_known(tn_tokenizer *t, int32_t id)
{
    tn__added *known = tn__added_as(t, id);
    return known ? known->special = true : tn__tokenizer_add(t, (tn__added){.id = id, .special = true});
}

/* True if the vocabulary file specifies which tokens are matched in texts, as SentencePiece's does. */
static bool file_decides(const tn_tokenizer *t, const tn__side_files *s)
{
    return t->split == TN__SPLIT_SENTENCE && !s->json && t->score; /* without .score: T5's */
}

/* Adds a token of a role: v is its text, or an object with options; *id: its token id. */
static bool add_special(tn_tokenizer *t, const char *caller, const tn__side_files *s, const char *key, const tn_json *v,
                        int32_t *id)
{
    const tn_json *content = tn_json_type_of(v) == TN_JSON_OBJECT ? tn_json_need(v, "content") : v;
    const char    *text = tn_json_string(content);
    if (tn_error() != TN_OK) return false;
    *id = (int32_t)tn_tokenizer_id(t, text);
    if (*id < 0) return needs_json(caller, key, text);
    if (file_decides(t, s)) return t->type[*id] != TN_TYPE_NORMAL || needs_json(caller, key, text);
    const bool listed = s->json || tn_json_get(s->config, "added_tokens_decoder"); /* whose options count */
    if (listed && tn__added_as(t, *id)) return tn__added_as(t, *id)->special = true;
    return (content == v || tn__json_added(t, caller, v, *id, true)) && add_known(t, *id);
}

/* Returns the member of the map, else of the config; NULL: not even null. A config with added_tokens_decoder replaces
 * the map and added_tokens.json. */
static const tn_json *option_of(const tn__side_files *s, const char *key)
{
    const tn_json *v = tn_json_get(s->config, "added_tokens_decoder") ? NULL : tn_json_get(s->map, key);
    return v ? v : tn_json_get(s->config, key);
}

/* Qwen2Tokenizer adds its special tokens again, without options. */
static void drop_options(tn_tokenizer *t, tn__class class, int32_t id)
{
    tn__added *a = class == TN__CLASS_QWEN2 && id >= 0 ? tn__added_as(t, id) : NULL;
    if (a) a->left = a->right = a->word = a->normalized = false;
}

static bool is_role(const char *key)
{
    int i = 0;
    while (i < ROLES && !is(keys[i], key)) i++;
    return i < ROLES;
}

/* Adds the special tokens of other names: "image_token". */
static bool add_named(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    int32_t id;
    for (const tn_json *v = tn_json_first(s->config); v; v = tn_json_next(v)) {
        const char  *key = tn_json_key(v);
        const size_t n = strlen(key);
        const bool   named = n > 6 && is(key + n - 6, "_token") && !is_role(key) && !is(key, "add_bos_token") &&
                           !is(key, "add_eos_token") && tn_json_type_of(v) == TN_JSON_STRING;
        if (!named) continue;
        if (!add_special(t, caller, s, key, v, &id)) return false;
        drop_options(t, class, id);
    }
    return tn_error() == TN_OK;
}

/* True for the tokens that BERT's class puts around a text, and its unknown token. */
static bool needs_role(tn__class class, int role)
{
    return class == TN__CLASS_BERT && (role == CLS || role == SEP || role == UNK);
}

static bool add_roles(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class, int32_t id[ROLES])
{
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens",
                                        "model_specific_special_tokens"};
    int32_t                  listed;
    char                     key[64];
    for (int i = 0; i < ROLES; i++) {
        const char    *name = s->json && class != TN__CLASS_QWEN2 ? "" : default_tokens[class][i];
        const tn_json *v = option_of(s, keys[i]);
        id[i] = v ? -1 : (int32_t)tn_tokenizer_id(t, name);
        if (v && is_null(v) && needs_role(class, i)) return needs_json(caller, keys[i], "null");
        if (is_null(v) ? id[i] >= 0 && !add_known(t, id[i]) : !add_special(t, caller, s, keys[i], v, id + i))
            return false;
        drop_options(t, class, id[i]);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        snprintf(key, sizeof key, "one of %s", lists[i]);
        for (const tn_json *v = tn_json_first(option_of(s, lists[i])); v; v = tn_json_next(v)) {
            if (!add_special(t, caller, s, key, v, &listed)) return false;
            drop_options(t, class, listed);
        }
    }
    return add_named(t, caller, s, class);
}

/* Adds a token with an id; one that directly follows the vocabulary extends it. */
static bool add_numbered(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class,
                         const char *text, int64_t id, const tn_json *options)
{
    const bool sentence = file_decides(t, s);
    if (tn_error() != TN_OK) return false;
    if (id == t->vocab.n && *text && !sentence && !s->json && tn_tokenizer_id(t, text) < 0 &&
        (tn__strings_add(&t->vocab, text, strlen(text)) < 0 ||
         !tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .outside = true})))
        return false;
    if (tn_tokenizer_id(t, text) != id || (sentence && t->type[id] == TN_TYPE_NORMAL))
        return needs_json(caller, "an added token", text);
    const tn__added *known = tn__added_as(t, (int32_t)id);
    const bool       by_class = is(text, "<unk>") || is(text, "<s>") || is(text, "</s>"); /* LlamaTokenizer's */
    const bool       special = s->json && known && known->special && (class != TN__CLASS_LLAMA || by_class);
    return sentence || (s->json && !options && known) ||
           (tn__json_added(t, caller, options, id, false) && (!special || add_known(t, (int32_t)id)));
}

/* Adds the lists of added tokens: in one the ids are keys, in the other values. */
static bool add_numbers(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    const tn_json *by_number = tn_json_get(s->config, "added_tokens_decoder");
    for (const tn_json *v = tn_json_first(by_number); v; v = tn_json_next(v)) {
        int64_t id = 0;
        for (const char *c = tn_json_key(v); *c; c++) {
            if (*c < '0' || *c > '9' || id > TN__VOCAB_MAX)
                return needs_json(caller, "a token id of added_tokens_decoder", tn_json_key(v));
            id = 10 * id + (*c - '0');
        }
        if (!add_numbered(t, caller, s, class, tn_json_string(tn_json_need(v, "content")), id, v)) return false;
    }
    for (const tn_json *v = tn_json_first(s->added); v && !by_number; v = tn_json_next(v))
        if (!add_numbered(t, caller, s, class, tn_json_key(v), tn_json_i64(v), NULL)) return false;
    return tn_error() == TN_OK;
}

/* ---- all rules --------------------------------------------------------------------------------------------------- */

/* Applies add_bos_token and add_eos_token, if specified. */
static bool add_ends(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class,
                     const int32_t id[ROLES])
{
    const tn_json *bos = tn_json_get(s->config, "add_bos_token"), *eos = tn_json_get(s->config, "add_eos_token");
    if (is_null(bos) && is_null(eos)) return true;
    const int32_t usual =
        class == TN__CLASS_QWEN2 ? -1 : t->role.first; /* Qwen2Tokenizer has no bos_token by default */
    const int32_t first = id[BOS] >= 0 ? id[BOS] : usual, last = id[EOS] >= 0 ? id[EOS] : t->role.last;
    const bool    as_is = t->single.n && t->single.part[0].text < 0;
    const bool    front = tn_json_bool_or(bos, as_is), back = tn_json_bool_or(eos, false);
    if (tn_error() != TN_OK) return false;
    if ((front && first < 0) || (back && last < 0))
        return needs_json(caller, front && first < 0 ? "add_bos_token" : "add_eos_token", "true, without a token");
    if (t->split == TN__SPLIT_SENTENCE || front || back) tn__template_ends(t, front ? first : -1, back ? last : -1);
    return true;
}

static void name_roles(tn_tokenizer *t, const int32_t id[ROLES])
{
    tn_tokenizer_roles *r = &t->role;
    const int32_t       first = id[CLS] >= 0 ? id[CLS] : id[BOS];
    if (id[PAD] >= 0) r->pad = id[PAD];
    if (first >= 0) r->first = first;
    if (id[SEP] >= 0) r->separator = id[SEP];
    if (id[MASK] >= 0) r->mask = id[MASK];
    if (id[EOS] >= 0) r->last = id[EOS];
}

/* The rules of classes that make another tokenizer of a SentencePiece model. */
static bool sentence_rules(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    if (class == TN__CLASS_XLNET)
        return bool_is(s, caller, "remove_space", true) &&
               tn__xlnet_rules(t, caller, tn_json_bool_or(tn_json_get(s->config, "do_lower_case"), false));
    if (class != TN__CLASS_T5) return true;
    const int64_t sentinels = tn_json_i64_or(tn_json_get(s->config, "extra_ids"), 100);
    if (sentinels < 0 || sentinels > 1000) return needs_json(caller, "extra_ids", "not a number from 0 to 1000");
    return t->unknown == 2 ? tn__t5_rules(t, caller, sentinels) : needs_json(caller, "<unk>", "not token 2, as in T5");
}

/* CamemBERT's, XLM-RoBERTa's and DeBERTa's rules; no change for other classes. */
static bool spm_rules(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    const bool lower = tn_json_bool_or(tn_json_get(s->config, "do_lower_case"), false);
    if (class < TN__CLASS_CAMEMBERT) return tn_error() == TN_OK;
    if (!bool_is(s, caller, "split_by_punct", false) || !bool_is(s, caller, "add_prefix_space", true)) return false;
    return tn__spm_rules(t, caller, (tn__spm_class)(class - TN__CLASS_CAMEMBERT), lower);
}

bool tn__class_rules(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    int32_t id[ROLES];
    if (!check_options(s, caller, t, class) || !sentence_rules(t, caller, s, class) || !spm_rules(t, caller, s, class))
        return false;
    t->bytes.prefix_space =
        class != TN__CLASS_LLAMA && tn_json_bool_or(tn_json_get(s->config, "add_prefix_space"), false);
    if (class == TN__CLASS_QWEN2) {
        t->bytes.splitter = tn__splitter_named("qwen2");
        t->step[t->steps++] = (tn__step){.kind = TN__STEP_FORM, .form = UTF8PROC_STABLE | UTF8PROC_COMPOSE};
    }
    if (!add_numbers(t, caller, s, class) || !add_roles(t, caller, s, class, id) || !add_ends(t, caller, s, class, id))
        return false;
    if (class == TN__CLASS_BERT) t->unknown = id[UNK];
    if (class == TN__CLASS_BERT && id[CLS] >= 0 && id[SEP] >= 0) tn__template_frame(t, id[CLS], id[SEP], false);
    if (class == TN__CLASS_ROBERTA) {
        if (id[CLS] < 0 || id[SEP] < 0)
            return tn_raise_false(TN_EFORMAT, "%s: %s, which RoBERTa adds around each text, is not in the vocabulary",
                                  caller, id[CLS] < 0 ? "<s>" : "</s>");
        tn__template_frame(t, id[CLS], id[SEP], true);
        t->bytes.trim = tn_json_bool_or(tn_json_get(s->config, "trim_offsets"), true);
    }
    if (tn_error() != TN_OK || (class != TN__CLASS_LLAMA && !tn__tokenizer_finish(t, caller))) return false;
    if (s->config && id[UNK] >= 0 && (class == TN__CLASS_BERT || class == TN__CLASS_ROBERTA)) t->role.unknown = id[UNK];
    if (s->config || class == TN__CLASS_XLNET) name_roles(t, id);
    return true;
}

/* ---- files next to a tokenizer.json ------------------------------------------------------------------------------ */

/* The class by which transformers recreates the tokenizer; for other classes, and if none is specified, transformers
 * uses the file's rules. */
static tn__class json_class(const tn__side_files *s)
{
    const char *name = tn_json_string_or(tn_json_get(s->config, "tokenizer_class"), "");
    const char *model = tn_json_string_or(tn_json_get(s->model, "model_type"), "");
    if (*name) return class_named(name);
    for (int i = 0; i < CLASSES; i++)
        if (is(classes[i].model, model) && classes[i].class != TN__CLASS_LLAMA) return classes[i].class;
    return TN__CLASS_NONE;
}

static bool bool_option(const tn__side_files *s, const char *key, bool *value)
{
    const tn_json *v = tn_json_get(s->config, key);
    if (tn_json_type_of(v) != TN_JSON_BOOL) return false;
    return *value = tn_json_bool(v), true;
}

/* strip_accents null: strip if lower-casing; not specified: as in the file. */
static bool apply_bert(tn_tokenizer *t, const char *caller, const tn__side_files *s)
{
    const tn_json *strip = tn_json_get(s->config, "strip_accents");
    bool           lower = t->bert.lower, chinese = t->bert.chinese, strips = false;
    bool           specified = bool_option(s, "do_lower_case", &lower);
    specified = bool_option(s, "tokenize_chinese_chars", &chinese) || specified;
    specified = bool_option(s, "strip_accents", &strips) || specified;
    if (specified && !t->bert.enabled)
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "%s: tokenizer_config.json has options of BERT's normalizer, which tokenizer.json does not have; "
            "remove do_lower_case, strip_accents and tokenize_chinese_chars if tokenizer.json is right",
            caller);
    t->bert.lower = lower, t->bert.chinese = chinese;
    if (strip) t->bert.strip_option = is_null(strip) ? TN_FROM_FILE : strips ? TN_YES : TN_NO;
    t->bert.strip = t->bert.strip_option ? t->bert.strip_option == TN_YES : lower;
    return true;
}

static bool prepends(const tn_tokenizer *t)
{
    for (int i = 0; i < t->steps; i++)
        if (t->step[i].kind == TN__STEP_PREPEND) return true;
    return t->sentence.escape && t->sentence.space != TN__SPACE_NEVER;
}

static bool apply_prefix_space(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class)
{
    const bool bytes = t->split == TN__SPLIT_BYTES, sentence = t->split == TN__SPLIT_SENTENCE;
    const bool is_now = bytes ? t->bytes.prefix_space : prepends(t);
    bool       space;
    if (!bool_option(s, "add_prefix_space", &space) || space == is_now) return true;
    if (bytes && class != TN__CLASS_LLAMA && !(space && t->bytes.splitter)) return t->bytes.prefix_space = space, true;
    return !(class == TN__CLASS_LLAMA ? sentence : bytes) ||
           needs_json(caller, "add_prefix_space", space ? "true" : "false");
}

/* The classes BERT and RoBERTa add their own tokens around a text. */
static void apply_frame(tn_tokenizer *t, tn__class class, const int32_t id[ROLES])
{
    const tn__template_part *first = t->single.part, *last = first + t->single.n - 1;
    const int32_t            cls = id[CLS] >= 0 ? id[CLS] : first->text < 0 ? first->id : -1;
    const int32_t            sep = id[SEP] >= 0 ? id[SEP] : last->text < 0 ? last->id : -1;
    if ((class != TN__CLASS_BERT && class != TN__CLASS_ROBERTA) || cls < 0 || sep < 0) return;
    tn__template_frame(t, cls, sep, class == TN__CLASS_ROBERTA);
}

bool tn__side_files_apply(tn_tokenizer *t, const char *caller, tn__side_files *s)
{
    int32_t id[ROLES];
    const tn__class class = json_class(s);
    s->json = true;
    if (tn_error() != TN_OK || (class == TN__CLASS_BERT && !apply_bert(t, caller, s))) return false;
    if (class != TN__CLASS_NONE && class != TN__CLASS_BERT && !apply_prefix_space(t, caller, s, class)) return false;
    if (!add_numbers(t, caller, s, class) || !add_roles(t, caller, s, class, id)) return false;
    apply_frame(t, class, id);
    if (class == TN__CLASS_BERT && id[UNK] >= 0) t->unknown = id[UNK];
    name_roles(t, id);
    return tn__added_index(t);
}
