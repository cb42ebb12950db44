/* sentences.c — reads folders of sentence-transformers: modules.json lists the parts that compute a sentence's vector,
 * and each part has a folder with its config. Supported: Transformer, Pooling, then any number of Dense and Normalize.
 * Other parts and other kinds of pooling are rejected; the error names them. */
#define _POSIX_C_SOURCE 200809L
#include "bert.h"

#include "../common/files.h"

#include <stdlib.h>
#include <string.h>

/* The config of a part. NULL: the file does not exist, or raised. */
static tn_json *config_in(const char *folder, const char *name)
{
    char        path[1024];
    const char *at = in_folder(folder, name, path);
    return tn_error() == TN_OK && file_exists(at) ? tn_json_load(at) : NULL;
}

/* The last word of a type: "Pooling" of "sentence_transformers.models.Pooling". */
static const char *last_word(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

static const struct mode {
    const char *member, *name;
    int         pooling; /* a tn_bert_pooling; -1: not supported */
} modes[] = {{"pooling_mode_mean_tokens", "mean", TN_POOL_MEAN},
             {"pooling_mode_cls_token", "cls", TN_POOL_FIRST},
             {"pooling_mode_max_tokens", "max", TN_POOL_MAX},
             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1},
             {"pooling_mode_weightedmean_tokens", "weightedmean", -1},
             {"pooling_mode_lasttoken", "lasttoken", -1}};
enum { MODES = sizeof modes / sizeof *modes };

/* Reads Pooling's config: "pooling_mode" is a name or an array of names; older releases write one bool per mode. */
static void read_pooling(const char *folder, sentences *to)
{
    tn_json       *c = config_in(folder, "config.json");
    const tn_json *mode = tn_json_get(c, "pooling_mode");
    const char    *asked[MODES] = {NULL};
    int            n = 0;
    if (!c && tn_error() == TN_OK) tn_raise(TN_EFORMAT, "config.json not found; it specifies the pooling");
    if (tn_json_type_of(mode) == TN_JSON_ARRAY)
        for (const tn_json *x = tn_json_first(mode); x && n < MODES; x = tn_json_next(x))
            asked[n++] = tn_json_string(x);
    else if (mode) asked[n++] = tn_json_string(mode);
    else
        for (int i = 0; i < MODES; i++)
            if (tn_json_bool_or(tn_json_get(c, modes[i].member), false)) asked[n++] = modes[i].name;
    if (c && !n && !mode) asked[n++] = "mean"; /* the default of sentence-transformers */
    if (n != 1 && tn_error() == TN_OK)
        tn_raise(TN_EUNSUPPORTED, "%d pooling modes, expected one of mean, cls and max", n);
    if (tn_error() == TN_OK && n == 1 && asked[0]) {
        int found = -1;
        for (int i = 0; i < MODES; i++)
            if (!strcmp(asked[0], modes[i].name)) found = modes[i].pooling;
        if (found < 0)
            tn_raise(TN_EUNSUPPORTED, "pooling mode '%s' is not supported; expected mean, cls or max", asked[0]);
        else to->pooling = (tn_bert_pooling)found;
    }
    to->skip_prompt = !tn_json_bool_or(tn_json_get(c, "include_prompt"), true);
    tn_json_free(c);
}

/* The maximum length in tokenizer_config.json, where newer releases store it; 0: none. */
static int64_t tokenizer_length(const char *folder)
{
    tn_json       *c = config_in(folder, "tokenizer_config.json");
    const tn_json *length = tn_json_get(c, "model_max_length"); /* 1e30: not set */
    const int64_t  n =
        tn_json_type_of(length) == TN_JSON_INTEGER && tn_json_double(length) < 1e9 ? tn_json_i64(length) : 0;
    tn_json_free(c);
    return n < 2 ? 0 : n;
}

/* Raises if a member that changes the vectors does not have sentence-transformers' default value: if it is a string
 * other than `only` (NULL: any string), or a non-empty object. null and absent are defaults. */
static void check_member(const char *file, const tn_json *c, const char *key, const char *only)
{
    const tn_json     *v = tn_json_get(c, key);
    const tn_json_type type = tn_json_type_of(v);
    const bool         holds = type == TN_JSON_OBJECT || type == TN_JSON_ARRAY;
    if (tn_error() != TN_OK || type <= TN_JSON_NULL || (holds && !tn_json_count(v))) return;
    if (type == TN_JSON_STRING && only && !strcmp(tn_json_string(v), only)) return;
    tn_raise(TN_EUNSUPPORTED, "%s: %s is set, which is not supported%s%s%s; remove it", file, key,
             only ? ", except '" : "", only ? only : "", only ? "'" : "");
}

/* Rejects what sentence_bert_config.json can ask for in addition to a length and lower case. */
static void check_transformer(const char *file, const tn_json *c)
{
    static const char *const unsupported[] = {"processing_kwargs", "processor_kwargs", "tokenizer_args",
                                              "config_kwargs",     "config_args",      "tokenizer_name_or_path",
                                              "query_length",      "document_length",  "query_expansion"};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) check_member(file, c, unsupported[i], NULL);
    check_member(file, c, "transformer_task", "feature-extraction");
    check_member(file, c, "module_output_name", "token_embeddings");
    const tn_json *text = tn_json_get(tn_json_get(c, "modality_config"), "text");
    check_member(file, text, "method", "forward");
    check_member(file, text, "method_output_name", "last_hidden_state");
    static const char *const kwargs[] = {"model_kwargs", "model_args"};
    for (int i = 0; i < 2; i++) {
        check_member(file, tn_json_get(c, kwargs[i]), "dtype", "float32");
        check_member(file, tn_json_get(c, kwargs[i]), "torch_dtype", "float32");
    }
}

/* Reads sentence_bert_config.json, or its older name for the kind of model. It and its max_seq_length are optional. */
static void read_transformer(sentences *to)
{
    static const char *const names[] = {"sentence_bert_config.json",       "sentence_roberta_config.json",
                                        "sentence_distilbert_config.json", "sentence_camembert_config.json",
                                        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json"};
    tn_json                 *c = NULL;
    for (int i = 0; i < 6 && !c && tn_error() == TN_OK; i++)
        if ((c = config_in(to->folder, names[i]))) check_transformer(names[i], c);
    const tn_json *length = tn_json_get(c, "max_seq_length");
    if (length && tn_json_type_of(length) != TN_JSON_NULL) {
        to->length = tn_json_i64(length);
        if (tn_error() == TN_OK && to->length < 2)
            tn_raise(TN_EFORMAT, "sentence_bert_config.json: max_seq_length is %lld, but must be at least 2",
                     (long long)to->length);
    } else if (tn_error() == TN_OK) to->length = tokenizer_length(to->folder);
    to->lower = tn_json_bool_or(tn_json_get(c, "do_lower_case"), false);
    tn_json_free(c);
}

/* ---- Dense: activation(W x + b) ---------------------------------------------------------------------------------- */

static const struct {
    const char    *name;
    tn_hf_function run;
} activations[] = {{"Tanh", tn_tanh}, {"Identity", NULL}, {"ReLU", tn_relu}, {"GELU", tn_gelu}, {"SiLU", tn_silu}};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* A size in the config, from 1 to 65536; 0: raised. */
static int64_t features(const tn_json *c, const char *key)
{
    const int64_t n = tn_json_i64(tn_json_need(c, key));
    if (tn_error() == TN_OK && (n < 1 || n > 65536))
        tn_raise(TN_EFORMAT, "%s is %lld, but must be from 1 to 65536", key, (long long)n);
    return tn_error() == TN_OK ? n : 0;
}

static tn_safetensors *weights_in(const char *folder, char path[1024])
{
    in_folder(folder, "model.safetensors", path);
    if (tn_error() != TN_OK || file_exists(path)) return tn_safetensors_open(path);
    return tn_torch_open(in_folder(folder, "pytorch_model.bin", path));
}

/* Loads the weight [out, in]. Checks the size of the file's tensor first, so that a wrong config allocates nothing. */
static tn_linear *read_weights(const char *folder, int64_t in, int64_t out, bool bias)
{
    char            path[1024];
    tn_safetensors *f = weights_in(folder, path);
    const int64_t   i = f ? tn_safetensors_find(f, "linear.weight") : -1;
    tn_linear      *m = NULL;
    if (f && (i < 0 || tn_shape_numel(tn_safetensors_at(f, i).shape) != in * out))
        tn_raise(TN_EFORMAT, "'%s': linear.weight is not [%lld, %lld], which config.json specifies", path,
                 (long long)out, (long long)in);
    else if (f) m = tn_linear_new(.in = in, .out = out, .no_bias = !bias);
    if (m) tn_load(m, path, .file = f, .prefix = "linear.");
    tn_safetensors_close(f);
    return m;
}

static void read_dense(const char *folder, sentence_step *to)
{
    tn_json      *c = config_in(folder, "config.json");
    const char   *then = last_word(tn_json_string_or(tn_json_get(c, "activation_function"), "Tanh"));
    const char   *input = tn_json_string_or(tn_json_get(c, "module_input_name"), "sentence_embedding");
    const int64_t in = features(c, "in_features"), out = features(c, "out_features");
    int           i = 0;
    while (i < ACTIVATIONS && strcmp(activations[i].name, then) != 0) i++;
    if (tn_error() == TN_OK && i == ACTIVATIONS)
        tn_raise(TN_EUNSUPPORTED, "Dense with '%s' is not supported; expected Tanh, Identity, ReLU, GELU or SiLU",
                 then);
    if (tn_error() == TN_OK &&
        (strcmp(input, "sentence_embedding") != 0 || tn_json_bool_or(tn_json_get(c, "use_residual"), false)))
        tn_raise(TN_EUNSUPPORTED,
                 "Dense of '%s' or with use_residual is not supported; expected sentence_embedding, without it", input);
    check_member("Dense", c, "module_output_name", "sentence_embedding");
    if (tn_error() == TN_OK) {
        to->dense = read_weights(folder, in, out, tn_json_bool_or(tn_json_get(c, "bias"), true));
        to->then = activations[i].run;
    }
    tn_json_free(c);
}

/* ---- config_sentence_transformers.json --------------------------------------------------------------------------- */

/* The prompt that is put before each text by default, and the number of elements to keep. */
static void read_defaults(const char *dir, sentences *to)
{
    static const char file[] = "config_sentence_transformers.json";
    tn_json          *c = config_in(dir, file);
    const tn_json    *name = tn_json_get(c, "default_prompt_name"), *keep = tn_json_get(c, "truncate_dim");
    check_member(file, c, "model_type", "SentenceTransformer");
    if (tn_error() == TN_OK && tn_json_type_of(name) > TN_JSON_NULL) {
        const char    *wanted = tn_json_string(name);
        const tn_json *prompt = wanted ? tn_json_get(tn_json_get(c, "prompts"), wanted) : NULL;
        if (wanted && *wanted && !prompt && tn_error() == TN_OK)
            tn_raise(TN_EFORMAT, "%s: default_prompt_name is '%s', but prompts has no such member", file, wanted);
        const char *text = tn_json_type_of(prompt) > TN_JSON_NULL ? tn_json_string(prompt) : NULL;
        if (text && *text && !(to->prompt = strdup(text))) tn_raise(TN_ENOMEM, "no memory for the prompt");
    }
    if (tn_error() == TN_OK && tn_json_type_of(keep) > TN_JSON_NULL) {
        to->truncate = tn_json_i64(keep);
        if (tn_error() == TN_OK && to->truncate < 1)
            tn_raise(TN_EFORMAT, "%s: truncate_dim is %lld, but must be at least 1", file, (long long)to->truncate);
    }
    if (to->prompt && to->skip_prompt)
        tn_raise(TN_EUNSUPPORTED,
                 "include_prompt is false in the Pooling, which is not supported with a default "
                 "prompt; set default_prompt_name in %s to null to embed without it",
                 file);
    tn_json_free(c);
}

/* ---- all parts --------------------------------------------------------------------------------------------------- */

/* Reads part n of modules.json. False: raised. */
static bool read_part(const char *dir, int n, const tn_json *part, sentences *to)
{
    const char *type = last_word(tn_json_string(tn_json_need(part, "type")));
    const char *path = tn_json_string_or(tn_json_get(part, "path"), "");
    char        folder[1024];
    if (tn_error() != TN_OK) return false;
    const bool dense = !strcmp(type, "Dense"), known = n == 0   ? !strcmp(type, "Transformer")
                                                       : n == 1 ? !strcmp(type, "Pooling")
                                                                : dense || !strcmp(type, "Normalize");
    if (!known)
        tn_raise(TN_EUNSUPPORTED, "part %d is '%s'; supported are Transformer, then Pooling, then Dense and Normalize",
                 n, type);
    else if (*path == '/' || strstr(path, ".."))
        tn_raise(TN_EFORMAT, "part %d is in '%s', outside of this folder", n, path);
    else if (n > 1 && to->steps == SENTENCE_STEPS)
        tn_raise(TN_EUNSUPPORTED, "more than %d parts after Pooling are not supported", SENTENCE_STEPS);
    if (tn_error() != TN_OK) return false;
    if (!*path) snprintf(folder, sizeof folder, "%s", dir);
    else in_folder(dir, path, folder);
    if (n == 0) {
        memcpy(to->folder, folder, sizeof folder);
        read_transformer(to);
    } else if (n == 1) read_pooling(folder, to);
    else if (dense) read_dense(folder, &to->step[to->steps++]);
    else {
        tn_json *c = config_in(folder, "config.json");
        check_member("Normalize", c, "module_input_name", "sentence_embedding");
        check_member("Normalize", c, "module_output_name", "sentence_embedding");
        tn_json_free(c);
        to->step[to->steps++] = (sentence_step){NULL, NULL};
    }
    return tn_error() == TN_OK;
}

/* The pooling that a .gguf file names. */
static bool read_gguf(const char *path, sentences *to)
{
    tn_gguf      *g = tn_gguf_open(path);
    const int64_t kind = g ? tn_gguf_i64_or(g, "bert.pooling_type", 1) : 0; /* none, mean, first, … */
    tn_gguf_close(g);
    if (kind > 2) tn_raise(TN_EUNSUPPORTED, "'%s': bert.pooling_type is %lld, expected 0 to 2", path, (long long)kind);
    if (kind == 2) to->pooling = TN_POOL_FIRST;
    return tn_error() == TN_OK;
}

static bool sentences_read(const char *dir, sentences *to)
{
    *to = (sentences){.pooling = TN_POOL_MEAN, .steps = 1};
    if (snprintf(to->folder, sizeof to->folder, "%s", dir) >= (int)sizeof to->folder)
        return tn_raise_false(TN_EINVAL, "the name '%.40s...' is too long", dir);
    const size_t n_dir = strlen(dir);
    if (n_dir > 5 && !strcmp(dir + n_dir - 5, ".gguf")) return read_gguf(dir, to);
    char     path[1024];
    tn_json *c = config_in(dir, "modules.json");
    if (!c) return tn_error() == TN_OK;
    in_folder(dir, "modules.json", path);
    tn_path_push(path);
    to->given = true, to->steps = 0;
    int n = 0;
    for (const tn_json *part = tn_json_first(c); part && read_part(dir, n, part, to); part = tn_json_next(part)) n++;
    if (tn_error() == TN_OK && n < 2)
        tn_raise(TN_EUNSUPPORTED, "%d parts, expected at least a Transformer and its Pooling", n);
    if (tn_error() == TN_OK) read_defaults(dir, to);
    tn_path_pop();
    tn_json_free(c);
    return tn_error() == TN_OK;
}

/* Checks that the input size of each Dense is the size of the vectors before it. */
static void check_widths(const char *dir, sentences *s, int64_t dim)
{
    s->dim = dim;
    for (int i = 0; i < s->steps; i++) {
        const tn_linear *m = s->step[i].dense;
        if (m && m->in != s->dim && tn_error() == TN_OK)
            tn_raise(TN_EFORMAT, "'%s': a Dense has in_features %lld, but its input has %lld", dir, (long long)m->in,
                     (long long)s->dim);
        if (m) s->dim = m->out;
    }
}

static bool makes_lower(const tn_tokenizer *t)
{
    static const char *const both[] = {"A", "a"};
    const tn_scope           s = tn_no_grad_begin();
    tn_token_batch           b;
    const bool               same = tn_tokenizer_batch(t, &b, 2, both, .max_length = 16) == TN_OK &&
                      tn_item(tn_sum(tn_to(tn_ne(tn_select(b.ids, 0, 0), tn_select(b.ids, 0, 1)), TN_F64))) == 0;
    tn_scope_end(s);
    return same;
}

bool sentences_open(const char *dir, sentences *to, model *m) { return sentences_open_as(dir, false, to, m); }
bool sentences_open_as(const char *dir, bool alone, sentences *to, model *m)
{
    *m = (model){.bert = NULL};
    if (sentences_read(dir, to) && model_open_as(to->folder, alone, m)) {
        if (!to->length || to->length > m->bert->config.positions) to->length = m->bert->config.positions;
        if (to->lower && m->tokens && !makes_lower(m->tokens) && tn_error() == TN_OK)
            tn_raise(TN_EUNSUPPORTED,
                     "'%s': do_lower_case in sentence_bert_config.json is not supported with a tokenizer that keeps "
                     "capitals",
                     to->folder);
        check_widths(dir, to, m->bert->config.dim);
        if (to->truncate && to->truncate < to->dim) to->dim = to->truncate;
    }
    if (tn_error() == TN_OK) return true;
    sentences_close(to, m);
    return false;
}
void sentences_close(sentences *s, model *m)
{
    for (int i = 0; i < s->steps; i++) tn_free(s->step[i].dense);
    s->steps = 0;
    free(s->prompt), s->prompt = NULL;
    model_close(m);
}

/* n texts with the prompt before each, in one block that the caller frees. NULL: raised. */
static char **with_prompt(const char *prompt, int64_t n, const char *const *lines)
{
    size_t       bytes = (size_t)n * sizeof(char *);
    const size_t before = strlen(prompt);
    for (int64_t i = 0; i < n; i++) bytes += before + strlen(lines[i]) + 1;
    char **to = malloc(bytes ? bytes : 1), *at = to ? (char *)(to + n) : NULL;
    if (!to) return tn_raise(TN_ENOMEM, "no memory for %zu bytes", bytes), NULL;
    for (int64_t i = 0; i < n; i++) {
        const size_t length = strlen(lines[i]) + 1;
        to[i] = at;
        memcpy(at, prompt, before), memcpy(at + before, lines[i], length);
        at += before + length;
    }
    return to;
}

tn_tensor *sentences_vectors(const sentences *how, const model *m, int64_t n, const char *const *lines)
{
    const tn_scope s = tn_no_grad_begin();
    tn_token_batch b;
    tn_tensor     *y = NULL;
    char         **prompted = how->prompt ? with_prompt(how->prompt, n, lines) : NULL;
    if (prompted) lines = (const char *const *)prompted;
    if (tn_error() == TN_OK && tn_tokenizer_batch(m->tokens, &b, n, lines, .max_length = how->length) == TN_OK) {
        y = tn_bert_forward(m->bert, b.ids, .types = b.segments, .key_padding_mask = b.key_padding_mask,
                            .skip_padding = true);
        y = tn_bert_sentences(y, b.key_padding_mask, how->pooling);
        for (int i = 0; i < how->steps; i++) {
            const sentence_step *x = &how->step[i];
            if (x->dense) y = x->then ? x->then(tn_call(x->dense, y)) : tn_call(x->dense, y);
            else y = tn_normalize(y, -1);
        }
        if (how->truncate && how->truncate < tn_size(y, -1)) y = tn_narrow(y, -1, 0, how->truncate);
        y = tn_contiguous(tn_to(y, TN_F32));
    }
    free(prompted);
    return tn_scope_return(s, tn_error() == TN_OK ? y : NULL);
}
