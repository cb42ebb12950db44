/* peft_config.c — see peft_config.h. The members are those of LoraConfig of PEFT 0.21. */
#include "extras/peft/peft_config.h"
#include "extras/peft/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ----------------------------------------------------------------------------------------------------- */

typedef enum {
    ANY,     /* does not change results, nor does another value of the next kinds unless this file reads it */
    TEXT,    /* a string or null */
    NAMES,   /* a string, an array of strings, or null */
    LIST,    /* an array of strings, or null */
    FLAG,    /* true, false or null */
    COUNT,   /* an integer */
    REAL,    /* a number */
    INDICES, /* an integer, an array of integers, or null */
    OBJECT,  /* an object or null */
    NUMBERS, /* an object of numbers, or null */
    OFF,     /* only false or null is supported */
    EMPTY,   /* only null, {} or [] is supported */
    NONE     /* only null is supported: PEFT takes {} for the default options */
} kind;

static const struct {
    const char *key;
    kind        kind;
} members[] = {
    {"alora_invocation_tokens", EMPTY},
    {"alpha_pattern", NUMBERS},
    {"arrow_config", NONE},
    {"auto_mapping", ANY},
    {"base_model_name_or_path", TEXT},
    {"bias", TEXT},
    {"corda_config", OBJECT}, /* of init_lora_weights, like eva_config, lora_ga_config and loftq_config */
    {"enable_lora", NONE},    /* of PEFT 0.2, like merge_weights */
    {"ensure_weight_tying", OFF},
    {"eva_config", OBJECT},
    {"exclude_modules", NAMES},
    {"fan_in_fan_out", FLAG}, /* PEFT corrects it */
    {"inference_mode", FLAG},
    {"init_lora_weights", ANY}, /* check_init */
    {"kasa_config", NONE},
    {"layer_replication", EMPTY},
    {"layers_pattern", NAMES},
    {"layers_to_transform", INDICES},
    {"loftq_config", OBJECT},
    {"lora_alpha", REAL},
    {"lora_bias", OFF},
    {"lora_dropout", REAL}, /* only of training */
    {"lora_ga_config", OBJECT},
    {"megatron_config", EMPTY},
    {"megatron_core", TEXT},
    {"merge_weights", OFF},
    {"modules_to_save", LIST},
    {"monteclora_config", NONE},
    {"peft_type", TEXT},
    {"peft_version", TEXT},
    {"qalora_group_size", COUNT}, /* of use_qalora */
    {"r", COUNT},
    {"rank_pattern", NUMBERS},
    {"revision", TEXT},
    {"runtime_config", ANY}, /* PEFT removes it */
    {"target_modules", NAMES},
    {"target_parameters", EMPTY},
    {"task_type", TEXT},
    {"trainable_token_indices", EMPTY},
    {"use_bdlora", NONE},
    {"use_dora", OFF},
    {"use_qalora", OFF},
    {"use_rslora", FLAG},
    {"velora_config", NONE},
};

static const tn_json *member(const tn__peft_config *c, const char *key) { return tn_json_get(c->doc, key); }
static bool           is_null(const tn_json *v) { return tn_json_type_of(v) <= TN_JSON_NULL; }

/* Raises for a value of the wrong type, as reading it does. */
static void check_scalar(const tn_json *v, kind k)
{
    if (k == TEXT || k == NAMES || k == LIST) (void)tn_json_string(v);
    else if (k == FLAG) (void)tn_json_bool(v);
    else if (k == COUNT || k == INDICES) (void)tn_json_i64(v);
    else (void)tn_json_double(v);
}

/* False for a value other than the only supported ones of these kinds. */
static bool is_supported(const tn_json *v, kind k)
{
    const tn_json_type type = tn_json_type_of(v);
    if (type == TN_JSON_NULL || k < OFF) return true;
    if (k == EMPTY) return (type == TN_JSON_ARRAY || type == TN_JSON_OBJECT) && !tn_json_count(v);
    return k == OFF && type == TN_JSON_BOOL && !tn_json_bool(v);
}

static bool check_member(const tn__peft_config *c, const tn_json *v, kind k)
{
    const tn_json_type type = tn_json_type_of(v);
    const bool         object = k == OBJECT || k == NUMBERS, names = k == NAMES || k == LIST || k == INDICES;
    const bool         many = object || (names && type == TN_JSON_ARRAY);
    if (!is_supported(v, k))
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with %s are not supported", c->path, tn_json_key(v));
    if (k == ANY || k >= OFF || (type == TN_JSON_NULL && k != COUNT && k != REAL)) return true;
    if (object && type != TN_JSON_OBJECT)
        return tn_raise_false(TN_EFORMAT, "'%s': %s must be an object", c->path, tn_json_key(v));
    if (k == LIST && !many)
        return tn_raise_false(TN_EFORMAT, "'%s': %s must be an array of strings", c->path, tn_json_key(v));
    if (!many) check_scalar(v, k);
    for (const tn_json *x = many && k != OBJECT ? tn_json_first(v) : NULL; x; x = tn_json_next(x)) check_scalar(x, k);
    return tn_error() == TN_OK;
}

static bool check_members(const tn__peft_config *c)
{
    const size_t n = sizeof members / sizeof *members;
    for (const tn_json *v = tn_json_first(c->doc); v; v = tn_json_next(v)) {
        size_t i = 0;
        while (i < n && strcmp(members[i].key, tn_json_key(v)) != 0) i++;
        if (i == n)
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "'%s': %.80s is not a member that is known; remove it if it does not change results",
                                  c->path, tn_json_key(v));
        if (!check_member(c, v, members[i].kind)) return false;
    }
    return tn_error() == TN_OK;
}

/* The initialisations that, when PEFT loads an adapter, do not change the weights of the base model. */
static bool check_init(tn__peft_config *c)
{
    static const char *const fine[] = {"gaussian", "eva", "lora_ga", "mica", "orthogonal"};
    const tn_json           *v = member(c, "init_lora_weights");
    const tn_json_type       type = tn_json_type_of(v);
    c->random = type == TN_JSON_NULL || (type == TN_JSON_BOOL && !tn_json_bool(v));
    if (type <= TN_JSON_BOOL) return true;
    const char *name = tn_json_string(v);
    for (size_t i = 0; tn_error() == TN_OK && i < sizeof fine / sizeof *fine; i++)
        if (!strcmp(name, fine[i])) return true;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "'%s': init_lora_weights is '%.80s', which is not supported: PEFT then changes the weights of "
        "the base model when it loads the adapter; convert the adapter to LoRA (PEFT's "
        "save_pretrained with path_initial_model_for_weight_conversion)",
        c->path, name);
}

/* True for a string or an array that is not empty. */
static bool has_names(const tn_json *v)
{
    return tn_json_type_of(v) == TN_JSON_STRING ? *tn_json_string(v) != 0 : tn_json_count(v) > 0;
}

static bool check_options(const tn__peft_config *c)
{
    const tn_json *targets = member(c, "target_modules"), *pattern = member(c, "layers_pattern");
    const bool     layers = !is_null(member(c, "layers_to_transform"));
    const char    *none = tn_json_string_or(member(c, "bias"), "none");
    if (strcmp(tn_json_string_or(member(c, "peft_type"), "LORA"), "LORA") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': peft_type must be LORA; other adapters are not supported",
                              c->path);
    if (strcmp(none, "none") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with a bias are not supported", c->path);
    if (is_null(targets))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s': target_modules is missing, which is not supported; list the names of the layers",
                              c->path);
    if (layers && tn_json_type_of(targets) == TN_JSON_STRING)
        return tn_raise_false(TN_EFORMAT,
                              "'%s': layers_to_transform needs target_modules as an array, not a regular expression",
                              c->path);
    if (has_names(pattern) && !layers)
        return tn_raise_false(TN_EFORMAT, "'%s': layers_pattern needs layers_to_transform, which is missing", c->path);
    if (tn_json_bool_or(member(c, "use_rslora"), false) &&
        (tn_json_count(member(c, "rank_pattern")) || tn_json_count(member(c, "alpha_pattern"))))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s': rank_pattern and alpha_pattern are not supported together with use_rslora",
                              c->path);
    return tn_error() == TN_OK;
}

bool tn__peft_path(const char *dir, const char *name, char path[1024])
{
    if (!dir) return tn_raise_false(TN_EINVAL, "the directory is NULL; expected the one that contains '%s'", name);
    if (snprintf(path, 1024, "%s/%s", dir, name) < 1024) return true;
    return tn_raise_false(TN_EINVAL, "the path of '%s' is too long", name);
}

bool tn__peft_config_read(const char *dir, tn__peft_config *c)
{
    const tn_json_limits limits = {.depth = 8, .bytes = 1 << 20, .values = 100000};
    if (!tn__peft_path(dir, TN__PEFT_CONFIG, c->path)) return false;
    c->doc = tn_json_load_within(c->path, limits);
    if (!c->doc || !check_members(c) || !check_init(c) || !check_options(c)) return false;
    c->rank = tn_json_i64(tn_json_need(c->doc, "r")), c->alpha = tn_json_double(tn_json_need(c->doc, "lora_alpha"));
    if (tn_error() == TN_OK && (c->rank < 1 || c->rank > 65536 || !(c->alpha > 0)))
        tn_raise(TN_EFORMAT, "'%s': r is %lld and lora_alpha %g, but r must be from 1 to 65536 and lora_alpha positive",
                 c->path, (long long)c->rank, c->alpha);
    if (tn_json_bool_or(member(c, "use_rslora"), false)) c->alpha *= sqrt((double)c->rank);
    return tn_error() == TN_OK;
}

/* ---- which layers ------------------------------------------------------------------------------------------------ */

/* Python's re.fullmatch of before + pattern + after; raises for syntax that is not supported. */
static bool full_match(const tn__peft_config *c, const char *key, const char *before, const char *pattern,
                       const char *after, const char *text)
{
    char      whole[4200];
    const int n = snprintf(whole, sizeof whole, "%s%s%s", before, pattern, after);
    const int found = n < (int)sizeof whole ? tn__pattern_matches(whole, text) : -1;
    if (found >= 0) return found;
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s has the regular expression '%.200s', which is not supported",
                          c->path, key, pattern);
}

/* True if the name, or its end after a point, is `end`; with any, a point in it is any character. */
static bool ends_with(const char *name, const char *end, bool any)
{
    const size_t n = strlen(name), k = strlen(end);
    size_t       i = 0;
    while (i < k && k <= n && (name[n - k + i] == end[i] || (any && end[i] == '.'))) i++;
    return i == k && k <= n && (k == n || name[n - k - 1] == '.');
}

static bool is_listed(const tn__peft_config *c, const char *key, const char *layer)
{
    const tn_json *v = member(c, key);
    if (is_null(v)) return false;
    if (tn_json_type_of(v) == TN_JSON_STRING) return full_match(c, key, "", tn_json_string(v), "", layer);
    for (v = tn_json_first(v); v; v = tn_json_next(v))
        if (ends_with(layer, tn_json_string(v), false)) return true;
    return false;
}

static bool is_task(const tn__peft_config *c, const char *task)
{
    return !strcmp(tn_json_string_or(member(c, "task_type"), ""), task);
}

/* True for a layer in a module that is trained completely; tasks with a head add its names. */
static bool is_saved(const tn__peft_config *c, const char *layer)
{
    static const char *const before = "(^|.*\\.)", *const after = "($|\\..*)", *const key = "modules_to_save";
    const bool        classes = is_task(c, "SEQ_CLS") || is_task(c, "TOKEN_CLS");
    const char *const heads[] = {classes                      ? "classifier"
                                 : is_task(c, "QUESTION_ANS") ? "qa_outputs"
                                                              : NULL,
                                 classes ? "score" : NULL};
    for (const tn_json *v = tn_json_first(member(c, key)); v; v = tn_json_next(v))
        if (full_match(c, key, before, tn_json_string(v), after, layer)) return true;
    for (int i = 0; i < 2 && heads[i]; i++)
        if (full_match(c, key, before, heads[i], after, layer)) return true;
    return false;
}

/* "all-linear" are all linear layers but a language model's output layer and, of SEQ_CLS, the classifier. */
static bool is_target(const tn__peft_config *c, const char *layer)
{
    static const char *const outputs[] = {"lm_head", "embed_out", "decoder", "classifier", "score"};
    const size_t             n = is_task(c, "SEQ_CLS") ? 5 : 3;
    const char               all[] = "all-linear";
    const tn_json           *v = member(c, "target_modules");
    const char              *text = tn_json_type_of(v) == TN_JSON_STRING ? tn_json_string(v) : "";
    size_t                   i = 0;
    while (all[i] && (text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) == all[i]) i++;
    if (all[i] || text[i]) return is_listed(c, "target_modules", layer);
    for (i = 0; i < n; i++)
        if (ends_with(layer, outputs[i], false)) return false;
    return true;
}

/* The first number that is a part of the layer's name after a match of `pattern`; -1: none. */
static int64_t index_of(const tn__peft_config *c, const char *layer, const char *before, const char *pattern)
{
    char first[TN_PATH_BYTES];
    for (const char *p = strchr(layer, '.'); p; p = strchr(p + 1, '.')) {
        const size_t digits = strspn(p + 1, "0123456789");
        if (!digits || digits > 9 || p[1 + digits] != '.') continue;
        snprintf(first, sizeof first, "%.*s", (int)(p + 1 - layer), layer);
        if (full_match(c, "layers_pattern", before, pattern, "\\.", first)) return atoi(p + 1);
    }
    return -1;
}

/* False for a layer that is not among layers_to_transform; those that target_modules has with their whole name it does
 * not. */
static bool is_transformed(const tn__peft_config *c, const char *layer)
{
    const tn_json *v = member(c, "layers_to_transform"), *pattern = member(c, "layers_pattern");
    const bool     array = tn_json_type_of(v) == TN_JSON_ARRAY, one = tn_json_type_of(pattern) == TN_JSON_STRING;
    const bool     given = has_names(pattern);
    int64_t        index = -1;
    if (is_null(v) || (array && !tn_json_count(v))) return true;
    for (const tn_json *x = tn_json_first(member(c, "target_modules")); x; x = tn_json_next(x))
        if (!strcmp(tn_json_string(x), layer)) return true;
    if (!given) index = index_of(c, layer, ".*\\.", "[^.]*");
    for (const tn_json *x = !given ? NULL : one ? pattern : tn_json_first(pattern); x && index < 0;) {
        index = index_of(c, layer, "(|.*\\.)", tn_json_string(x));
        x = one ? NULL : tn_json_next(x);
    }
    if (index < 0 || !array) return index >= 0 && index == tn_json_i64(v);
    for (v = tn_json_first(v); v; v = tn_json_next(v))
        if (index == tn_json_i64(v)) return true;
    return false;
}

const char *tn__peft_excluded_by(const tn__peft_config *c, const char *layer)
{
    const bool  pattern = has_names(member(c, "layers_pattern"));
    const char *by = is_listed(c, "exclude_modules", layer) ? "exclude_modules"
                     : is_saved(c, layer)                   ? "modules_to_save"
                     : !is_target(c, layer)                 ? "target_modules"
                     : is_transformed(c, layer)             ? NULL
                     : pattern                              ? "layers_to_transform with layers_pattern"
                                                            : "layers_to_transform";
    return tn_error() == TN_OK ? by : NULL;
}

double tn__peft_pattern(const tn__peft_config *c, const char *pattern, const char *layer, double otherwise)
{
    for (const tn_json *v = tn_json_first(member(c, pattern)); v; v = tn_json_next(v))
        if (tn__pattern_is_plain(tn_json_key(v)) ? ends_with(layer, tn_json_key(v), true)
                                                 : full_match(c, pattern, "(.*\\.)?(", tn_json_key(v), ")", layer))
            return tn_json_double(v);
    return otherwise;
}
