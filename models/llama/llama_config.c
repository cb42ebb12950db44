/* llama_config.c — configs of LLaMA and its relatives: defaults, checks, config.json by the tables of families.c. */
#include "core/base/toolbox.h"
#include "models/llama/llama_private.h"

#include <math.h>
#include <string.h>

typedef tn__llama_stored stored;
enum { ABSENT = TN__LLAMA_ABSENT, NO_PADDING = TN__LLAMA_NO_PADDING };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool has_kind(const tn_llama_config *c, char letter) { return c->pattern && strchr(c->pattern, letter); }

static unsigned options_of(const tn_llama_config *c)
{
    const struct {
        bool     set;
        unsigned option;
    } all[] = {
        {c->qkv_bias && c->out_bias, TN__ATTENTION_BIAS},
        {c->qkv_bias && !c->out_bias, TN__QKV_BIAS},
        {c->ff_bias, TN__FF_BIAS},
        {c->head_bias, TN__HEAD_BIAS},
        {c->scores.window != 0, TN__WINDOW},
        {has_kind(c, 'g') || (has_kind(c, 'n') && has_kind(c, 'l')), TN__PATTERN},
        {has_kind(c, 'n'), TN__UNROTATED},
        {c->local_theta != 0, TN__LOCAL_THETA},
        {c->scores.qk_norm == TN_QK_NORM_HEAD, TN__QK_NORM_HEAD},
        {c->scores.qk_norm == TN_QK_NORM_ALL, TN__QK_NORM_ALL},
        {c->order == TN_NORM_LAST || c->order == TN_NORM_FIRST_HALF, TN__OTHER_ORDER},
        {c->order == TN_NORM_RESULT, TN__NORM_RESULT},
        {c->order == TN_NORM_SANDWICH, TN__SANDWICH},
        {c->order == TN_NORM_PARALLEL, TN__PARALLEL},
        {c->order == TN_NORM_PARALLEL_ONE, TN__PARALLEL_ONE},
        {c->norm_add_one, TN__NORM_ADD_ONE},
        {c->norm == TN_NORM_LAYER, TN__LAYER_NORM},
        {c->plain_ff, TN__PLAIN_FF},
        {c->rope.dim && c->rope.dim != c->head_dim, TN__PARTIAL},
        {c->rope.interleaved, TN__INTERLEAVED},
        {c->scores.scale != 0, TN__SCALE},
        {c->scores.cap != 0 || c->logit_cap != 0, TN__CAPS},
        {c->embedding_scale != 0, TN__EMBEDDING_SCALE},
        {c->head_dim * c->heads != c->dim, TN__HEAD_DIM},
        {c->kv_heads != c->heads, TN__GROUPED},
        {c->rope.scaling != TN_ROPE_PLAIN, TN__ROPE_SCALING},
        {c->experts != 0, TN__EXPERTS},
        {c->expert_weights == TN_EXPERT_WEIGHTS_PROBABILITIES, TN__EXPERT_PROBABILITIES},
        {c->router_jitter != 0, TN__ROUTER_JITTER},
    };
    unsigned options = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) options |= all[i].set ? all[i].option : 0;
    return options;
}

static void set_options(tn_llama_config *c, unsigned options)
{
    c->qkv_bias = (options & (TN__QKV_BIAS | TN__ATTENTION_BIAS)) != 0, c->out_bias = options & TN__ATTENTION_BIAS;
    c->ff_bias = options & TN__FF_BIAS, c->head_bias = options & TN__HEAD_BIAS;
    if (options & TN__QK_NORM_HEAD) c->scores.qk_norm = TN_QK_NORM_HEAD;
    if (options & TN__QK_NORM_ALL) c->scores.qk_norm = TN_QK_NORM_ALL;
    if (options & TN__LAYER_NORM) c->norm = TN_NORM_LAYER;
    c->order = options & TN__NORM_RESULT    ? TN_NORM_RESULT
               : options & TN__SANDWICH     ? TN_NORM_SANDWICH
               : options & TN__PARALLEL     ? TN_NORM_PARALLEL
               : options & TN__PARALLEL_ONE ? TN_NORM_PARALLEL_ONE
                                            : TN_NORM_FIRST;
    c->norm_add_one = options & TN__NORM_ADD_ONE, c->plain_ff = options & TN__PLAIN_FF;
    c->rope.interleaved = options & TN__INTERLEAVED;
    if (options & TN__EXPERTS)
        c->expert_weights =
            options & TN__EXPERT_PROBABILITIES ? TN_EXPERT_WEIGHTS_PROBABILITIES : TN_EXPERT_WEIGHTS_SHARES;
}

/* Gemma's query_pre_attn_scalar, an integer q with scale = 1/√q; 0: there is none. */
static int64_t query_scale(const tn_llama_config *c)
{
    const double q = round(1 / (c->scores.scale * c->scores.scale));
    return q >= 1 && q <= 1e6 && tn__libm_pow(q, -0.5) == c->scores.scale ? (int64_t)q : 0;
}

/* True if the family has these options; the embedding's scale is given by the width. */
static bool can_have(const tn__llama_family *f, const tn_llama_config *c)
{
    const unsigned options = options_of(c);
    return !(options & ~(f->must | f->may)) && (options & f->must) == f->must &&
           (c->embedding_scale == 0 || c->embedding_scale == sqrt((double)c->dim)) &&
           (c->scores.scale == 0 || query_scale(c));
}

/* The first family, or the named one, that has the config's options; NULL: none. */
static const tn__llama_family *fitting(const tn_llama_config *c)
{
    for (const tn__llama_family *f = tn__llama_families; f->type; f++)
        if ((!c->type || !strcmp(c->type, f->type)) && can_have(f, c)) return f;
    return NULL;
}

/* ---- in the program ---------------------------------------------------------------------------------------------- */

static bool within(const char *who, const tn_llama_config *c)
{
    const stored  s = {.c = *c, .padding = NO_PADDING, .window = c->scores.window ? c->scores.window : -1};
    tn__hf_tables files;
    tn__llama_files_of(tn__llama_families, c, &files);
    if (!tn__within(who, "scores.window", c->scores.window, 0, 1000000000)) return false;
    if (!(c->logit_cap >= 0 && c->logit_cap - c->logit_cap == 0 && c->embedding_scale - c->embedding_scale == 0))
        return tn_raise_false(TN_EINVAL,
                              "%s: .logit_cap is %g and .embedding_scale %g; neither may be negative or infinite", who,
                              c->logit_cap, c->embedding_scale);
    if (c->experts && (!tn__within(who, "experts", c->experts, 1, 1024) ||
                       !tn__within(who, "experts_per_token", c->experts_per_token, 1, c->experts)))
        return false;
    return tn_hf_config_within(who, &files.files, &s);
}

static bool pattern_fits(const char *who, const tn_llama_config *c)
{
    const char *p = c->pattern;
    if (p && (!*p || p[strspn(p, "gln")]))
        return tn_raise_false(TN_EINVAL, "%s: .pattern is '%.40s', but must consist of the letters g, l and n", who, p);
    if (has_kind(c, 'l') && !c->scores.window && c->local_theta == 0)
        return tn_raise_false(TN_EINVAL, "%s: .pattern has local layers; set .scores.window, .local_theta or both",
                              who);
    if (c->local_theta != 0 && (!has_kind(c, 'l') || !(c->local_theta > 0)))
        return tn_raise_false(TN_EINVAL,
                              "%s: .local_theta is %g; it must be positive, with a .pattern that has local layers", who,
                              c->local_theta);
    return true;
}

static void complete_feed_forward(tn_llama_config *c)
{
    const int64_t used = c->experts && c->experts_per_token > 0 ? c->experts_per_token : 1;
    if (!c->ff && c->dim > 0 && c->dim <= 65536)
        c->ff = (c->plain_ff ? 4 * c->dim : (c->dim * 8 / 3 + 31) / 32 * 32) / used;
    if (c->experts && !c->expert_weights)
        c->expert_weights = c->experts_per_token > 1 ? TN_EXPERT_WEIGHTS_SHARES : TN_EXPERT_WEIGHTS_PROBABILITIES;
}

bool tn__llama_complete(const char *who, tn_llama_config *c)
{
    if (!c->activation) c->activation = "silu";
    if (!c->kv_heads) c->kv_heads = c->heads;
    complete_feed_forward(c);
    if (!tn_hf_init_and_activation(who, c->init, &c->activation) || !within(who, c) || !pattern_fits(who, c))
        return false;
    if (!c->head_dim && c->dim % c->heads)
        return tn_raise_false(TN_EINVAL, "%s: .heads is %lld, which does not divide .dim %lld; set .head_dim", who,
                              (long long)c->heads, (long long)c->dim);
    if (!c->head_dim) c->head_dim = c->dim / c->heads;
    if (c->heads % c->kv_heads)
        return tn_raise_false(TN_EINVAL, "%s: .kv_heads is %lld, but must divide .heads, which is %lld", who,
                              (long long)c->kv_heads, (long long)c->heads);
    if (c->out_bias && !c->qkv_bias) return tn_raise_false(TN_EINVAL, "%s: .out_bias needs .qkv_bias", who);
    if (c->padding < -1 || c->padding >= c->vocab)
        return tn_raise_false(TN_EINVAL, "%s: .padding is %lld, but must be from 0 to %lld, or -1 for none", who,
                              (long long)c->padding, (long long)c->vocab - 1);
    if (!c->rope.dim) c->rope.dim = c->head_dim;
    if (!c->rope.trained) c->rope.trained = c->positions;
    const tn__llama_family *family = fitting(c);
    if (c->type && !family)
        return tn_raise_false(TN_EINVAL,
                              tn__llama_family_of(c->type)
                                  ? "%s: .type is '%s', whose models do not have these options; unset .type"
                                  : "%s: .type is '%s', which is not a model_type that tn_llama supports",
                              who, c->type);
    c->type = family ? family->type : NULL;
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* True if there is a letter for each layer, or none; else raises. */
static bool one_for_each(const char *letters, size_t layers, const char *key, const char *name)
{
    if (!*letters || strlen(letters) == layers) return true;
    return tn_raise_false(TN_EFORMAT, "'%s': %s names %lld layers, but num_hidden_layers is %lld", name, key,
                          (long long)strlen(letters), (long long)layers);
}

/* Sets the kinds of the layers: from layer_types, or as the class computes them. */
static bool set_kinds(stored *s, const char *name)
{
    tn_llama_config *c = &s->c;
    char            *kind = s->layers.kind, *rotated = s->rotated.kind;
    /* in transformers, SmolLM3's mask follows layer_types alone */
    const bool   given = *kind, listed = given && s->family->may & TN__UNROTATED;
    const bool   windowed = s->window > 0 && (s->use_sliding_window || listed);
    const size_t n = (size_t)c->layers;
    if (!one_for_each(kind, n, "layer_types", name) || !one_for_each(rotated, n, "no_rope_layers", name)) return false;
    for (int64_t i = 0; i < c->layers; i++) {
        const bool local = given ? kind[i] == 'l' : s->period ? (i + 1) % s->period != 0 : i >= s->max_window_layers;
        const bool turned = *rotated ? rotated[i] != 'n' : !s->interval || (i + 1) % s->interval != 0;
        kind[i] = local && (windowed || c->local_theta > 0) ? 'l' : 'g';
        if (!turned && kind[i] == 'l')
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "'%s': layer %lld has a window and no rotary positions, which is not supported", name,
                                  (long long)i);
        if (!turned) kind[i] = 'n';
    }
    c->scores.window = windowed && strchr(kind, 'l') ? s->window : 0;
    if (!strchr(kind, 'l')) c->local_theta = 0;
    const bool alike = strspn(kind, "g") == n || (strspn(kind, "l") == n && !(c->local_theta > 0));
    c->pattern = alike ? NULL : kind;
    return true;
}

int64_t tn__llama_padding(const tn__llama_family *family, const tn_llama_config *c, int64_t id)
{
    if (id == NO_PADDING || family->no_padding) return -1;
    return id < 0 ? c->vocab + id : id;
}

/* Applies the family's options and the defaults that depend on other members. */
static void apply_defaults(stored *s)
{
    tn_llama_config *c = &s->c;
    if (c->kv_heads == ABSENT || !c->kv_heads) c->kv_heads = c->heads;
    set_options(c, s->family->must | (s->attention_bias ? TN__ATTENTION_BIAS : 0) | (s->mlp_bias ? TN__FF_BIAS : 0) |
                       (s->parallel ? TN__PARALLEL : 0) | (s->shares ? 0 : TN__EXPERT_PROBABILITIES));
    if (!c->ff) c->ff = 4 * c->dim;
    if (s->query_scale) c->scores.scale = tn__libm_pow((double)s->query_scale, -0.5);
    if (s->family->must & TN__EMBEDDING_SCALE) c->embedding_scale = sqrt((double)c->dim);
    const int64_t head = c->head_dim ? c->head_dim : c->dim / c->heads;
    c->rope.dim = s->rotary_dim ? s->rotary_dim : (int64_t)((double)head * s->partial);
    c->padding = tn__llama_padding(s->family, c, s->padding);
}

static bool rope(stored *s, const char *name)
{
    tn_rope_config *r = &s->c.rope;
    while (s->scaling && strcmp(tn__llama_scalings[r->scaling], s->scaling) != 0) r->scaling++;
    r->low = s->low, r->high = s->high, r->trained = s->c.positions;
    if (r->scaling != TN_ROPE_PLAIN && r->factor == TN__LLAMA_NO_FACTOR)
        return tn_raise_false(TN_EFORMAT, "'%s': rope_scaling.factor is missing; '%s' positions need it", name,
                              s->scaling);
    if (r->scaling == TN_ROPE_PLAIN) r->factor = 1;
    if (r->scaling != TN_ROPE_LLAMA3) return true;
    if (s->trained) r->trained = s->trained;
    if (r->low > 0 && r->high > r->low) return true;
    return tn_raise_false(TN_EFORMAT,
                          "'%s': with rope_scaling llama3 low_freq_factor must be above 0 and high_freq_factor above "
                          "that, got %g and %g",
                          name, r->low, r->high);
}

static bool check_consistent(const stored *s, const char *name)
{
    const tn_llama_config *c = &s->c;
    const bool             gptj = s->rotary_dim != 0;
    const int64_t          head = c->head_dim ? c->head_dim : c->dim / c->heads;
    if (!c->head_dim && c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s': %s %lld does not divide %s %lld", name, gptj ? "n_head" : "num_attention_heads",
                 (long long)c->heads, gptj ? "n_embd" : "hidden_size", (long long)c->dim);
    else if (gptj && (s->rotary_dim % 2 || s->rotary_dim > head))
        tn_raise(TN_EFORMAT, "'%s': rotary_dim is %lld, but must be even and at most n_embd / n_head, %lld", name,
                 (long long)s->rotary_dim, (long long)head);
    else if (c->heads % c->kv_heads)
        tn_raise(TN_EFORMAT, "'%s': num_key_value_heads %lld does not divide num_attention_heads %lld", name,
                 (long long)c->kv_heads, (long long)c->heads);
    else if (c->head_dim % 2)
        tn_raise(TN_EFORMAT, "'%s': head_dim is %lld, but must be even for rotary positions", name,
                 (long long)c->head_dim);
    else if (c->rope.dim < 2 || c->rope.dim % 2)
        tn_raise(TN_EFORMAT, "'%s': rotary positions of %lld elements of each head; the number must be even", name,
                 (long long)c->rope.dim);
    else if (s->padding != NO_PADDING && !s->family->no_padding && (c->padding < 0 || c->padding >= c->vocab))
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is %lld, but must be less than vocab_size %lld", name,
                 (long long)s->padding, (long long)c->vocab);
    else if (s->head && s->head * c->heads != c->dim)
        tn_raise(TN_EUNSUPPORTED, "'%s': head_dim is %lld; only hidden_size / num_attention_heads, %lld, is supported",
                 name, (long long)s->head, (long long)(c->dim / c->heads));
    else if (s->window == 0 && s->family->may & TN__WINDOW)
        tn_raise(TN_EFORMAT, "'%s': sliding_window is 0, but must be null or at least 1", name);
    else if (c->experts && c->experts_per_token > c->experts)
        tn_raise(TN_EFORMAT, "'%s': num_experts_per_tok is %lld, but there are only %lld experts", name,
                 (long long)c->experts_per_token, (long long)c->experts);
    else if (s->family->own_rows && s->residual_dropout != c->dropout)
        tn_raise(TN_EUNSUPPORTED, "'%s': embd_pdrop is %g and resid_pdrop %g; only equal ones are supported", name,
                 c->dropout, s->residual_dropout);
    return tn_error() == TN_OK;
}

bool tn__llama_config_read(const tn_hf_source *source, stored *s)
{
    const tn_hf_row   type = {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = tn__llama_types};
    const tn_hf_files first = {&type, 1, NULL, 0};
    tn__hf_tables     files;
    *s = (stored){
        .c = {TN_LLAMA_DEFAULTS}, .partial = 1, .use_sliding_window = true, .shares = true, .padding = NO_PADDING};
    if (!tn_hf_source_read(source, &first, s)) return false;
    s->family = tn__llama_family_of(s->c.type);
    tn__llama_files_of(s->family, &s->c, &files);
    if (!tn_hf_source_read(source, &files.files, s)) return false;
    apply_defaults(s);
    if (!rope(s, source->name) || !check_consistent(s, source->name) || !set_kinds(s, source->name)) return false;
    if (!s->c.head_dim) s->c.head_dim = s->c.dim / s->c.heads;
    if (!can_have(s->family, &s->c)) s->c.type = NULL; /* AutoConfig reads what the class cannot represent */
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The members about windows and layers. */
static void store_kinds(const tn_llama_config *c, stored *s)
{
    const size_t period = c->pattern ? strlen(c->pattern) : 0;
    char        *kind = s->layers.kind;
    const bool   qwen = !strncmp(s->family->type, "qwen", 4), mistral = !strcmp(s->family->type, "mistral");
    for (int64_t i = 0; i < c->layers; i++) {
        kind[i] = c->pattern ? c->pattern[(size_t)i % period] : c->scores.window ? 'l' : 'g';
        s->rotated.kind[i] = kind[i] == 'n' ? 'n' : 'g';
        if (kind[i] == 'n') kind[i] = 'g';
    }
    const int64_t leading = (int64_t)strspn(kind, "g");
    /* Gemma's class needs a window even if no layer has one */
    s->window = !(s->family->may & TN__WINDOW)          ? ABSENT
                : c->scores.window                      ? c->scores.window
                : s->family->must & TN__EMBEDDING_SCALE ? 4096
                                                        : -1;
    s->use_sliding_window = c->scores.window != 0;
    s->max_window_layers = !qwen ? 0 : c->scores.window ? leading : 0;
    if (mistral || (qwen && (int64_t)strspn(kind + leading, "l") == c->layers - leading))
        memset(kind, 0, sizeof s->layers.kind); /* the class computes the same */
}

bool tn__llama_config_write(const tn_llama_config *c, const char *dir, tn__llama_stored *s)
{
    const tn__llama_family *f = tn__llama_family_of(c->type);
    if (!f)
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "no model_type of transformers has these options together, so '%s' cannot be written; use "
            "tn_save",
            dir);
    if (c->rope.scaling == TN_ROPE_DYNAMIC && c->rope.trained != c->positions)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "with dynamic rotary positions .rope.trained must equal .positions, which is "
                              "max_position_embeddings in the file");
    *s = (stored){.c = *c, .family = f, .padding = c->padding < 0 ? NO_PADDING : c->padding};
    s->architecture = f->architecture, s->scaling = tn__llama_scalings[c->rope.scaling];
    s->parallel = c->order == TN_NORM_PARALLEL, s->attention_bias = c->out_bias, s->mlp_bias = c->ff_bias;
    s->shares = c->expert_weights != TN_EXPERT_WEIGHTS_PROBABILITIES;
    if (c->rope.scaling == TN_ROPE_PLAIN) s->c.rope.factor = TN__LLAMA_NO_FACTOR;
    if (c->rope.scaling == TN_ROPE_LLAMA3) s->low = c->rope.low, s->high = c->rope.high, s->trained = c->rope.trained;
    s->rotary_dim = c->rope.dim, s->partial = tn__part_of_head(c->rope.dim, c->head_dim);
    if (f->may & TN__LOCAL_THETA && c->local_theta == 0) s->c.local_theta = 10000; /* no layer has a window */
    s->query_scale = c->scores.scale > 0 ? query_scale(c) : c->head_dim;
    s->residual_dropout = c->dropout;
    store_kinds(c, s);
    return true;
}
