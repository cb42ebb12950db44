/* seq2seq_config.c — the config of a sequence-to-sequence model: kinds and sizes by name, defaults, checks, and
 * config.json. */
#include "core/base/toolbox.h"
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

static const char *const kinds[] = {"transformer", "bahdanau", "luong", "rnn", "convs2s", "bytenet", "gnmt", NULL};
const char *const        tn__seq2seq_position_kinds[] = {"sinusoids", "halves", "tensor2tensor", "learned", NULL};
/* kinds: by tn_seq2seq_kind; NO_LIMIT: .positions with .relative */
enum { KINDS = sizeof kinds / sizeof *kinds - 1, NO_LIMIT = 10000000 };

const char *tn_seq2seq_kind_name(tn_seq2seq_kind kind) { return (unsigned)kind < KINDS ? kinds[kind] : "unknown kind"; }
tn_seq2seq_kind tn_seq2seq_kind_of(const char *name)
{
    for (int i = 0; name && i < KINDS; i++)
        if (!strcmp(name, kinds[i])) return (tn_seq2seq_kind)i;
    tn_raise(TN_EINVAL,
             "unknown model '%s'; the models are transformer, bahdanau, luong, rnn, convs2s, bytenet and gnmt",
             name ? name : "NULL");
    return TN_SEQ2SEQ_TRANSFORMER;
}

tn_seq2seq_config tn_seq2seq_size(const char *name)
{
    static const tn_model_size sizes[] = {{"nano", 128, 2, 4, 256, 0.1},   {"tiny", 128, 4, 4, 256, 0.3},
                                          {"small", 256, 3, 4, 1024, 0.1}, {"base", 512, 6, 8, 2048, 0.1},
                                          {"big", 1024, 6, 16, 4096, 0.3}, {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads,
                       .ff = s->hidden, .dropout = s->dropout)
             : (tn_seq2seq_config){.zero_ = 0};
}

tn_seq2seq_config tn_seq2seq_t5(tn_seq2seq_config c)
{
    c.kind = TN_SEQ2SEQ_TRANSFORMER, c.shared = true, c.activation = "gelu_new", c.type = "t5";
    c.norm_first = c.rms_norm = c.gated = c.no_bias = c.plain_embedding = c.free_padding = c.end_dropout = true;
    c.scale = 1, c.eps = 1e-6, c.relative = 32, c.relative_distance = 128;
    if (c.dim == 0) c.dim = 512;
    if (c.heads == 0) c.heads = 8;
    if (c.head_dim == 0) c.head_dim = c.dim / c.heads;
    c.out_scale = tn__libm_pow((double)c.dim, -0.5);
    return c;
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

typedef tn__seq2seq_stored stored;
/* clang-format off */
static const tn_hf_row rows[] = {
    {"model_type", TN_HF_TYPE, .text = "tenon-seq2seq", .needed = true,
     .says = "a translation model has 'tenon-seq2seq'; use the program that made this model"},
    {"kind", TN_HF_CHOICE, .at = offsetof(stored, kind), .choices = kinds},
    TN_HF("source_words", stored, c.source_words, .needed = true, .low = 1, .high = 10000000),
    TN_HF("target_words", stored, c.target_words, .needed = true, .low = 1, .high = 10000000),
    TN_HF("dim", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("layers", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("decoder_layers", stored, c.decoder_layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("padding", stored, c.padding, .high = 10000000),
    TN_HF("begin", stored, c.begin, .otherwise = 2, .high = 10000000),
    TN_HF("end", stored, c.end, .otherwise = 3, .high = 10000000),
    TN_HF("heads", stored, c.heads, .otherwise = 8, .low = 1, .high = 1024),
    TN_HF("ff", stored, c.ff, .low = 1, .high = 1048576),
    TN_HF("positions", stored, c.positions, .otherwise = 1024, .low = 1, .high = 10000000),
    TN_HF("shared", stored, c.shared, .otherwise = false),
    TN_HF("untied", stored, c.untied, .otherwise = false),
    TN_HF("norm_first", stored, c.norm_first, .otherwise = false),
    TN_HF("rms_norm", stored, c.rms_norm, .omitted = true),
    TN_HF("gated", stored, c.gated, .omitted = true),
    TN_HF("no_bias", stored, c.no_bias, .omitted = true),
    TN_HF("head_dim", stored, c.head_dim, .high = 65536, .omitted = true),
    TN_HF("scale", stored, c.scale, .high = 1e6, .omitted = true),
    TN_HF("eps", stored, c.eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1, .omitted = true),
    TN_HF("relative", stored, c.relative, .high = 1 << 20, .omitted = true),
    TN_HF("relative_distance", stored, c.relative_distance, .otherwise = 128, .low = 1, .high = INT32_MAX,
          .omitted = true),
    TN_HF("activation", stored, c.activation, .text = "relu", .omitted = true),
    TN_HF("plain_embedding", stored, c.plain_embedding, .omitted = true),
    TN_HF("free_padding", stored, c.free_padding, .omitted = true),
    TN_HF("end_dropout", stored, c.end_dropout, .omitted = true),
    TN_HF("out_scale", stored, c.out_scale, .high = 1e6, .omitted = true),
    {"position_kind", TN_HF_CHOICE, .at = offsetof(stored, positions), .choices = tn__seq2seq_position_kinds,
     .omitted = true},
    TN_HF("norm_embedding", stored, c.norm_embedding, .omitted = true),
    TN_HF("no_final_norm", stored, c.no_final_norm, .omitted = true),
    TN_HF("no_out_bias", stored, c.no_out_bias, .omitted = true),
    TN_HF("fixed_out_bias", stored, c.fixed_out_bias, .omitted = true),
    TN_HF("decoder_heads", stored, c.decoder_heads, .high = 1024, .omitted = true),
    TN_HF("decoder_ff", stored, c.decoder_ff, .high = 1048576, .omitted = true),
    TN_HF("attention_dropout", stored, c.attention_dropout, .otherwise = -1, .low = -1, .high = 1, .below = true,
          .omitted = true),
    TN_HF("activation_dropout", stored, c.activation_dropout, .otherwise = -1, .low = -1, .high = 1, .below = true,
          .omitted = true),
    TN_HF("kernel", stored, c.kernel, .high = TN_SEQ2SEQ_KERNEL_MAX, .omitted = true),
    TN_HF("decoder_kernel", stored, c.decoder_kernel, .high = TN_SEQ2SEQ_KERNEL_MAX, .omitted = true),
    TN_HF("lstm", stored, c.lstm, .otherwise = false),
    TN_HF("one_way", stored, c.one_way, .otherwise = false),
    TN_HF("dropout", stored, c.dropout, .otherwise = 0.1, .high = 1, .below = true),
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
};
/* clang-format on */
static const tn_hf_files files = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__seq2seq_files(void) { return &files; }

/* Fills in defaults, which depend on the kind. */
static void fill_in(tn_seq2seq_config *c)
{
    static const struct {
        int64_t dim, layers, kernel, decoder_kernel;
    } usual[KINDS] = {{512, 6, 0, 0}, {256, 1, 0, 0},  {256, 1, 0, 0}, {256, 1, 0, 0},
                      {256, 4, 3, 3}, {512, 15, 5, 3}, {256, 4, 0, 0}};
    if (c->target_words == 0) c->target_words = c->source_words;
    if (c->dim == 0) c->dim = usual[c->kind].dim;
    if (c->layers == 0) c->layers = usual[c->kind].layers;
    if (c->kernel == 0) c->kernel = usual[c->kind].kernel;
    if (c->decoder_kernel == 0) c->decoder_kernel = usual[c->kind].decoder_kernel;
    if (c->decoder_layers == 0) c->decoder_layers = c->layers;
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (c->eps == 0) c->eps = 1e-5;
    if (c->relative_distance == 0) c->relative_distance = 128;
    if (c->relative) c->positions = NO_LIMIT;
    if (!c->activation) c->activation = "relu";
    if (!c->decoder_heads) c->decoder_heads = c->heads;
    if (!c->decoder_ff) c->decoder_ff = c->ff;
    if (c->attention_dropout < 0) c->attention_dropout = c->dropout;
    if (c->activation_dropout < 0) c->activation_dropout = c->dropout;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static unsigned options_of(const tn_seq2seq_config *c)
{
    static const unsigned positions[] = {TN__S2S_SINUSOIDS, TN__S2S_HALVES, TN__S2S_TENSOR2TENSOR, TN__S2S_LEARNED};
    const bool            none = c->no_bias || c->no_out_bias;
    const struct {
        bool     set;
        unsigned option;
    } all[] = {
        {true, c->relative ? TN__S2S_RELATIVE : positions[c->position_kind]},
        {c->norm_embedding, TN__S2S_NORM_EMBEDDING},
        {c->norm_first, TN__S2S_NORM_FIRST},
        {c->no_final_norm, TN__S2S_NO_FINAL_NORM},
        {c->rms_norm, TN__S2S_RMS_NORM},
        {c->gated, TN__S2S_GATED},
        {c->no_bias, TN__S2S_NO_BIAS},
        {true, c->fixed_out_bias ? TN__S2S_FIXED_OUT_BIAS
               : none            ? TN__S2S_NO_OUT_BIAS
                                 : TN__S2S_OUT_BIAS},
        {c->plain_embedding, TN__S2S_PLAIN_EMBEDDING},
        {c->free_padding, TN__S2S_FREE_PADDING},
        {c->end_dropout, TN__S2S_END_DROPOUT},
        {c->head_dim != 0, TN__S2S_HEAD_DIM},
        {c->scale > 0, TN__S2S_SCALE},
        {c->out_scale > 0, TN__S2S_OUT_SCALE},
        {c->eps != 1e-5, TN__S2S_EPS},
        {c->attention_dropout != c->dropout || c->activation_dropout != c->dropout, TN__S2S_DROPOUTS},
        {c->decoder_heads != c->heads || c->decoder_ff != c->ff, TN__S2S_DECODER},
        {c->untied, TN__S2S_UNTIED},
        {!c->shared, TN__S2S_UNSHARED},
        {c->source_words != c->target_words, TN__S2S_TWO_SIZES},
    };
    unsigned options = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) options |= all[i].set ? all[i].option : 0;
    return options;
}

void tn__seq2seq_set_options(tn_seq2seq_config *c, unsigned options)
{
    c->position_kind = options & TN__S2S_LEARNED         ? TN_SEQ2SEQ_LEARNED
                       : options & TN__S2S_HALVES        ? TN_SEQ2SEQ_HALVES
                       : options & TN__S2S_TENSOR2TENSOR ? TN_SEQ2SEQ_TENSOR2TENSOR
                                                         : TN_SEQ2SEQ_SINUSOIDS;
    c->norm_embedding = options & TN__S2S_NORM_EMBEDDING, c->norm_first = options & TN__S2S_NORM_FIRST;
    c->no_final_norm = options & TN__S2S_NO_FINAL_NORM, c->rms_norm = options & TN__S2S_RMS_NORM;
    c->no_bias = options & TN__S2S_NO_BIAS, c->no_out_bias = options & TN__S2S_NO_OUT_BIAS;
    c->free_padding = options & TN__S2S_FREE_PADDING, c->end_dropout = options & TN__S2S_END_DROPOUT;
    if (options & TN__S2S_PLAIN_EMBEDDING) c->plain_embedding = true;
}

/* True if the model can have the config's type; sets it to a static string. */
static bool type_fits(const char *who, tn_seq2seq_config *c)
{
    const tn__seq2seq_family *f = tn__seq2seq_family_of(c->type);
    if (!c->type || !strcmp(c->type, tn__seq2seq_types[0])) return c->type = NULL, true;
    if (!f)
        return tn_raise_false(TN_EINVAL, "%s: .type is '%.40s', which is not a model_type that tn_seq2seq supports",
                              who, c->type);
    const unsigned options = options_of(c);
    const bool     apart = !f->own_rows && (c->shared ? c->untied : !c->untied && !(f->may & TN__S2S_TWO_SIZES));
    if (c->kind || apart || options & ~(f->must | f->may) || (options & f->must) != f->must || (f->fits && !f->fits(c)))
        return tn_raise_false(TN_EINVAL, "%s: .type is '%s', whose models do not have these options; unset .type", who,
                              f->type);
    c->type = f->type;
    return true;
}

/* Checks the options of the Transformer. */
static bool transformer_fits(const char *who, const tn_seq2seq_config *c)
{
    if (c->kind != TN_SEQ2SEQ_TRANSFORMER &&
        (c->rms_norm || c->gated || c->no_bias || c->head_dim || c->scale > 0 || c->relative || c->plain_embedding))
        return tn_raise_false(TN_EINVAL,
                              "%s: .rms_norm, .gated, .no_bias, .head_dim, .scale, .relative and .plain_embedding are "
                              "for the Transformer, but .kind is '%s'",
                              who, tn_seq2seq_kind_name(c->kind));
    if (c->kind != TN_SEQ2SEQ_TRANSFORMER &&
        (c->position_kind || c->norm_embedding || c->no_final_norm || c->no_out_bias || c->fixed_out_bias))
        return tn_raise_false(
            TN_EINVAL,
            "%s: .position_kind, .norm_embedding, .no_final_norm, .no_out_bias and .fixed_out_bias are "
            "for the Transformer, but .kind is '%s'",
            who, tn_seq2seq_kind_name(c->kind));
    if ((unsigned)c->position_kind > TN_SEQ2SEQ_LEARNED || (c->relative && c->position_kind))
        return tn_raise_false(TN_EINVAL,
                              "%s: .position_kind is %d, but must be a tn_seq2seq_positions, 0 with .relative", who,
                              (int)c->position_kind);
    if (c->fixed_out_bias && (c->no_bias || c->no_out_bias))
        return tn_raise_false(TN_EINVAL, "%s: .fixed_out_bias excludes .no_bias and .no_out_bias", who);
    return true;
}

bool tn__seq2seq_complete(const char *who, tn_seq2seq_config *c)
{
    if ((unsigned)c->kind >= KINDS)
        return tn_raise_false(TN_EINVAL, "%s: .kind is %d, which is not a tn_seq2seq_kind", who, (int)c->kind);
    fill_in(c);
    const stored  s = {.c = *c};
    const int64_t words = c->source_words < c->target_words ? c->source_words : c->target_words;
    if (!tn_hf_init_and_activation(who, 0, &c->activation) || !tn_hf_config_within(who, &files, &s) ||
        !tn__within(who, "padding", c->padding, 0, words - 1) ||
        !tn__within(who, "begin", c->begin, 0, c->target_words - 1) ||
        !tn__within(who, "end", c->end, 0, c->target_words - 1))
        return false;
    if (c->shared && c->source_words != c->target_words)
        return tn_raise_false(TN_EINVAL,
                              "%s: .shared needs equal vocabularies, but .source_words is %lld and .target_words %lld",
                              who, (long long)c->source_words, (long long)c->target_words);
    if (!transformer_fits(who, c)) return false;
    if (c->kind == TN_SEQ2SEQ_GNMT && c->decoder_layers != c->layers)
        return tn_raise_false(TN_EINVAL,
                              "%s: GNMT's decoder has as many layers as its encoder, %lld; omit .decoder_layers", who,
                              (long long)c->layers);
    if (c->kind == TN_SEQ2SEQ_BYTENET && c->dim % 2)
        return tn_raise_false(TN_EINVAL, "%s: .dim is %lld, but ByteNet's must be even", who, (long long)c->dim);
    if (c->kind == TN_SEQ2SEQ_BAHDANAU && c->decoder_layers != 1 && c->decoder_layers != c->layers)
        return tn_raise_false(TN_EINVAL, "%s: Bahdanau's decoder has one layer; omit .decoder_layers", who);
    if (c->kind == TN_SEQ2SEQ_BAHDANAU) c->decoder_layers = 1;
    return type_fits(who, c);
}
