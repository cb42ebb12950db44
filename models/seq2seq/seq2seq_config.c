/* seq2seq_config.c — the config of a sequence-to-sequence model: kinds and sizes by name, defaults, checks, and
 * config.json. */
#include "core/base/toolbox.h"
#include "models/files/sizes.h"
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

static const char *const kinds[] = {"transformer", "bahdanau", "luong", "rnn", NULL}; /* by tn_seq2seq_kind */
enum { KINDS = sizeof kinds / sizeof *kinds - 1, NO_LIMIT = 10000000 }; /* NO_LIMIT: .positions with .relative */

const char *tn_seq2seq_kind_name(tn_seq2seq_kind kind) { return (unsigned)kind < KINDS ? kinds[kind] : "unknown kind"; }
tn_seq2seq_kind tn_seq2seq_kind_of(const char *name)
{
    for (int i = 0; name && i < KINDS; i++)
        if (!strcmp(name, kinds[i])) return (tn_seq2seq_kind)i;
    tn_raise(TN_EINVAL, "unknown model '%s'; the models are transformer, bahdanau, luong and rnn",
             name ? name : "NULL");
    return TN_SEQ2SEQ_TRANSFORMER;
}

tn_seq2seq_config tn_seq2seq_size(const char *name)
{
    static const tn__model_size sizes[] = {{"nano", 128, 2, 4, 256, 0.1},   {"tiny", 128, 4, 4, 256, 0.3},
                                           {"small", 256, 3, 4, 1024, 0.1}, {"base", 512, 6, 8, 2048, 0.1},
                                           {"big", 1024, 6, 16, 4096, 0.3}, {0}};
    const tn__model_size       *s = tn__model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads,
                       .ff = s->hidden, .dropout = s->dropout)
             : (tn_seq2seq_config){.zero_ = 0};
}

tn_seq2seq_config tn_seq2seq_t5(tn_seq2seq_config c)
{
    c.kind = TN_SEQ2SEQ_TRANSFORMER, c.shared = true, c.activation = "gelu_new";
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
    const bool recurrent = c->kind != TN_SEQ2SEQ_TRANSFORMER;
    if (c->target_words == 0) c->target_words = c->source_words;
    if (c->dim == 0) c->dim = recurrent ? 256 : 512;
    if (c->layers == 0) c->layers = recurrent ? 1 : 6;
    if (c->decoder_layers == 0) c->decoder_layers = c->layers;
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (c->eps == 0) c->eps = 1e-5;
    if (c->relative_distance == 0) c->relative_distance = 128;
    if (!c->activation) c->activation = "relu";
}

bool tn__seq2seq_complete(const char *who, tn_seq2seq_config *c)
{
    if ((unsigned)c->kind >= KINDS)
        return tn_raise_false(TN_EINVAL, "%s: .kind is %d, which is not a tn_seq2seq_kind", who, (int)c->kind);
    fill_in(c);
    const stored  s = {.c = *c};
    const int64_t words = c->source_words < c->target_words ? c->source_words : c->target_words;
    if (!tn__init_and_activation(who, 0, &c->activation) || !tn_hf_config_within(who, &files, &s) ||
        !tn__within(who, "padding", c->padding, 0, words - 1) ||
        !tn__within(who, "begin", c->begin, 0, c->target_words - 1) ||
        !tn__within(who, "end", c->end, 0, c->target_words - 1))
        return false;
    if (c->shared && c->source_words != c->target_words)
        return tn_raise_false(TN_EINVAL,
                              "%s: .shared needs equal vocabularies, but .source_words is %lld and .target_words %lld",
                              who, (long long)c->source_words, (long long)c->target_words);
    if (c->kind != TN_SEQ2SEQ_TRANSFORMER &&
        (c->rms_norm || c->gated || c->no_bias || c->head_dim || c->scale > 0 || c->relative || c->plain_embedding))
        return tn_raise_false(TN_EINVAL,
                              "%s: .rms_norm, .gated, .no_bias, .head_dim, .scale, .relative and .plain_embedding are "
                              "for the Transformer, but .kind is '%s'",
                              who, tn_seq2seq_kind_name(c->kind));
    if (c->relative) c->positions = NO_LIMIT;
    if (c->kind == TN_SEQ2SEQ_BAHDANAU && c->decoder_layers != 1 && c->decoder_layers != c->layers)
        return tn_raise_false(TN_EINVAL, "%s: Bahdanau's decoder has one layer; omit .decoder_layers", who);
    if (c->kind == TN_SEQ2SEQ_BAHDANAU) c->decoder_layers = 1;
    return true;
}
