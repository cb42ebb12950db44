/* test_mistakes.c — every function of nn/ and models/ that takes a module, and every constructor of one: called with
 * NULL as module, NULL as input, and while an error is set. Each raises an error with its name, or keeps the error that
 * is set; output arguments are NULL, and no memory leaks. project.rooms reports functions that are missing here. */
#include "extras.h"
#include "nn/nn.h"
#include "tests/common/check_main.h"

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

enum { OUT = 4 };
static tn_tensor *out[OUT]; /* output arguments: not NULL before a call */

/* Saves to directory NULL, which must return an error. */
#define SAVED(name, save)                           \
    static void *name##_save(void *m, tn_tensor *x) \
    {                                               \
        (void)x;                                    \
        ck_assert_int_ne(save(m, NULL), TN_OK);     \
        return NULL;                                \
    }
static void *a_bilinear(void) { return tn_bilinear_new(.in1 = 2, .in2 = 2, .out = 2); }
static void *bilinear(void *m, tn_tensor *x) { return tn_bilinear_forward(m, x, x); }
static void *a_bag(void) { return tn_embedding_bag_new(.count = 4, .dim = 2); }
static void *bag(void *m, tn_tensor *x) { return tn_embedding_bag_forward(m, x, NULL, NULL); }
static void *an_embedding(void) { return tn_embedding_new(.count = 4, .dim = 2); }
static void *embedding_rows(void *m, tn_tensor *x) { return tn_embedding_rows(m, x ? 0 : 4, 1); }
static void *an_mha(void) { return tn_mha_new(.dim = 4, .heads = 2); }
static void *mha(void *m, tn_tensor *x) { return tn_mha_forward((tn_mha *)m, x, x, x, .weights = out); }
static void *mha_prune(void *m, tn_tensor *x) { return tn_mha_prune(m, 1, (const int64_t[]){2}) == TN_OK ? x : NULL; }
static void *a_dot(void) { return tn_dot_attention_new(.memory = 4); }
static void *dot(void *m, tn_tensor *x)
{
    return tn_dot_attention_forward((tn_dot_attention *)m, x, x, .weights = out);
}
static void *an_additive(void) { return tn_additive_attention_new(.query = 4, .memory = 4); }
static void *additive(void *m, tn_tensor *x)
{
    return tn_additive_attention_forward((tn_additive_attention *)m, x, x, .weights = out);
}
static void *additive_keys(void *m, tn_tensor *x) { return tn_additive_attention_keys(m, x); }
static void *positions_(void) { return tn_sinusoidal_positions_new(.dim = 4); }
static void *positions(void *m, tn_tensor *x) { return tn_positions_forward(m, x, 0); }
static void *a_relative(void) { return tn_relative_positions_new(.heads = 2); }
static void *relative(void *m, tn_tensor *x) { return tn_relative_positions_forward(m, x ? 1 : 2, 1); }
static void *some_distances(void) { return tn_distances_new(.dim = 4, .of = {.distance = 3}); }
static void *distances(void *m, tn_tensor *x) { return tn_distances_forward(m, x ? 1 : -1, out); }
static void *a_block(void) { return tn_block_new(.dim = 4, .heads = 2, .ff = 4); }
static void *block(void *m, tn_tensor *x) { return tn_block_forward((tn_block *)m, x, .weights = out); }
static void *some_experts(void) { return tn_experts_new(.dim = 4, .ff = 4, .experts = 2); }
static void *experts(void *m, tn_tensor *x) { return tn_experts_forward((tn_experts *)m, x, .router = out); }
static void *two_streams(void) { return tn_two_stream_new(.dim = 4, .heads = 2, .ff = 4); }
static void *two_stream(void *m, tn_tensor *x) { return tn_two_stream_forward((tn_two_stream *)m, x, .content = out); }
static void *a_decoder_layer(void) { return tn_transformer_decoder_layer_new(.dim = 4, .heads = 2, .ff = 4); }
static void *decoder_layer(void *m, tn_tensor *x)
{
    return tn_transformer_decoder_layer_forward((tn_block *)m, x, x, .weights = out, .memory_weights = out + 1);
}
static void *stack(void) { return tn_blocks_new(.layers = 2, .dim = 4, .heads = 2, .ff = 4); }
static void *blocks(void *m, tn_tensor *x) { return tn_blocks_forward((tn_blocks *)m, x, .weights = out); }
static void *blocks_cache(void *m, tn_tensor *x) { return tn_blocks_cache(m, x ? 1 : -1, 4, 0); }
static void *a_transformer(void)
{
    return tn_transformer_new(.dim = 4, .heads = 2, .encoder_layers = 1, .decoder_layers = 1, .ff = 4);
}
static void *transformer(void *m, tn_tensor *x) { return tn_transformer_forward((tn_transformer *)m, x, x); }
static void *a_head(void)
{
    tn_tensor   *words = tn_requires_grad(tn_ones(TN_SHAPE(4, 4)));
    tn_mlm_head *m = tn_mlm_head_new(.embedding = words);
    return m;
}
static void *head_transform(void *m, tn_tensor *x) { return tn_mlm_head_transform(m, x); }
static void *head_loss(void *m, tn_tensor *x) { return tn_mlm_head_loss((tn_mlm_head *)m, x, .target = NULL); }
static void *a_mix(void) { return tn_scalar_mix_new(.count = 2); }
static void *mix(void *m, tn_tensor *x) { return tn_scalar_mix_forward(m, x ? 1 : 0, &x); }
static void *an_adaptive(void) { return tn_adaptive_softmax_new(.in = 4, .classes = 4, .cutoffs = {2}); }
static void *adaptive(void *m, tn_tensor *x) { return tn_adaptive_softmax_forward(m, x, NULL, out); }
static void *adaptive_all(void *m, tn_tensor *x) { return tn_adaptive_softmax_log_prob(m, x); }
static void *a_sampled(void)
{
    const tn_scope s = tn_scope_begin();
    void          *m = tn_nce_loss_new(.counts = tn_ones(TN_SHAPE(4)));
    tn_scope_end(s);
    return m;
}
static void *sampled(void *m, tn_tensor *x) { return tn_sampled_loss_forward((tn_sampled_loss *)m, x, x, NULL, x); }
static void *an_lstm(void) { return tn_lstm_new(.in = 4, .hidden = 4); }
static void *lstm(void *m, tn_tensor *x) { return tn_lstm_forward((tn_lstm *)m, x, .h_n = out, .c_n = out + 1); }
static void *a_cell(void) { return tn_lstm_cell_new(.in = 4, .hidden = 4); }
static void *cell(void *m, tn_tensor *x) { return tn_lstm_cell_forward((tn_lstm_cell *)m, x, .c_n = out); }
static void *a_linear(void) { return tn_linear_new(.in = 4, .out = 4); }
static void *call(void *m, tn_tensor *x) { return tn_module_call(m, x); }

static void *a_bert(void) { return tn_bert_new(.vocab = 8, .dim = 4, .layers = 2, .heads = 2, .positions = 8); }
static void *bert(void *m, tn_tensor *x) { return tn_bert_forward((tn_bert *)m, x, .weights = out); }
static void *word_scores(void *m, tn_tensor *x) { return tn_bert_mlm_logits(m, x, NULL); }
static void *pooled(void *m, tn_tensor *x) { return tn_bert_pooled(m, x); }
static void *next_scores(void *m, tn_tensor *x) { return tn_bert_nsp_logits(m, x); }
static void *replaced(void *m, tn_tensor *x) { return tn_bert_replaced_logits(m, x); }
static void *bert_loss(void *m, tn_tensor *x)
{
    return tn_bert_loss((tn_bert *)m, .ids = x, .next = tn_zeros_of(TN_I64, TN_SHAPE(1)), .word_loss = out,
                        .next_loss = out + 1);
}
static void *fill_in(void *m, tn_tensor *x)
{
    tn_bert_fill to[1];
    (void)x;
    ck_assert_int_eq(tn_bert_fill_in(m, NULL, "a", 1, 1, to), -1);
    return NULL;
}
static void *embed(void *m, tn_tensor *x)
{
    (void)x;
    return tn_bert_embed(m, NULL, 1, &(const char *){"a"}, TN_POOL_MEAN);
}
static void *bert_scores(void *m, tn_tensor *x)
{
    double to[1];
    (void)x;
    ck_assert_int_ne(tn_bert_scores(m, NULL, 1, &(const char *){"a"}, to), TN_OK);
    return NULL;
}
SAVED(bert, tn_bert_save)
static void *a_tuned(void) { return tn_tuned_new(a_bert(), .n = 2); }
static void *tuned(void *m, tn_tensor *x) { return tn_tuned_forward((tn_tuned *)m, x); }
static void *tuned_loss(void *m, tn_tensor *x) { return tn_tuned_loss((tn_tuned *)m, x, x); }
static void *tuned_scores(void *m, tn_tensor *x)
{
    const tn_batch b = {.x = x};
    return tn_tuned_logits(m, &b);
}
static void *tuned_each(void *m, tn_tensor *x)
{
    (void)x;
    ck_assert_int_ne(tn_tuned_each(m, NULL, NULL, NULL), TN_OK);
    return NULL;
}
SAVED(tuned, tn_tuned_save)
static void *tuned_tags(void *m, tn_tensor *x)
{
    (void)x;
    ck_assert_int_ne(tn_tuned_tags(m, NULL, 0, NULL, NULL), TN_OK);
    return NULL;
}
static void *a_crf(void) { return tn_crf_new(.labels = 4); }
static void *crf_loss(void *m, tn_tensor *x) { return tn_crf_loss(m, x, x); }
static void *crf_best(void *m, tn_tensor *x)
{
    ck_assert(isnan(tn_crf_best(m, x, NULL)));
    return NULL;
}
static void *a_gpt(void) { return tn_gpt_new(.vocab = 8, .dim = 4, .layers = 2, .heads = 2, .positions = 8); }
static void *gpt(void *m, tn_tensor *x) { return tn_gpt_forward((tn_gpt *)m, x); }
static void *gpt_loss(void *m, tn_tensor *x) { return tn_gpt_loss(m, x, NULL); }
static void *gpt_decoding(void *m, tn_tensor *x) { return tn_gpt_decoding(m, x ? 1 : 0, 4); }
SAVED(gpt, tn_gpt_save)
static void *a_reformer(void) { return tn_reformer_new(.vocab = 8, .dim = 4, .layers = 2, .heads = 1, .ff = 4); }
static void *reformer(void *m, tn_tensor *x) { return tn_reformer_forward((tn_reformer *)m, x); }
static void *reformer_loss(void *m, tn_tensor *x) { return tn_reformer_loss(m, x, NULL); }
static void *reformer_decoding(void *m, tn_tensor *x) { return tn_reformer_decoding(m, x ? 1 : 0, 4); }
SAVED(reformer, tn_reformer_save)
static void *a_llama(void) { return tn_llama_new(.vocab = 8, .dim = 4, .layers = 2, .heads = 2); }
static void *llama(void *m, tn_tensor *x) { return tn_llama_forward((tn_llama *)m, x); }
static void *llama_loss(void *m, tn_tensor *x) { return tn_llama_loss(m, x, NULL); }
static void *llama_decoding(void *m, tn_tensor *x) { return tn_llama_decoding(m, x ? 1 : 0, 4); }
SAVED(llama, tn_llama_save)
static void *lm(void *m, tn_tensor *x) { return tn_lm_run(m, (tn_decoder_args){.ids = x}); }
static void *lm_loss(void *m, tn_tensor *x) { return tn_lm_loss(m, x, NULL); }
static void *blocks_forget(void *m, tn_tensor *x)
{
    (void)x;
    ck_assert_int_ne(tn_blocks_forget(m, NULL, 0, 0), TN_OK);
    return NULL;
}
static void *lm_rolling(void *m, tn_tensor *x) { return tn_lm_rolling(m, x ? 1 : 0, 8, 1); }
static void *drafted(void *m, tn_tensor *x)
{
    tn_speculation n;
    return tn_speculative_decoding(m, m, x ? 4 : 0, 2, &n);
}
static void *looked_up(void *m, tn_tensor *x)
{
    tn_speculation n;
    return tn_speculative_decoding(m, NULL, x ? 4 : 0, 2, &n);
}
static void *lm_decoding(void *m, tn_tensor *x) { return tn_lm_decoding(m, x ? 1 : 0, 4); }
SAVED(lm, tn_lm_save)
static void *an_rnn_lm(void) { return tn_rnn_lm_new(.vocab = 8, .dim = 4, .hidden = 4, .layers = 1); }
static void *rnn_lm(void *m, tn_tensor *x) { return tn_rnn_lm_forward((tn_rnn_lm *)m, x); }
static void *rnn_lm_loss(void *m, tn_tensor *x) { return tn_rnn_lm_loss((tn_rnn_lm *)m, x, x); }
static void *rnn_lm_decoding(void *m, tn_tensor *x) { return tn_rnn_lm_decoding(m, x ? 1 : 0, 4); }
SAVED(rnn_lm, tn_rnn_lm_save)
static void *an_elmo(void) { return tn_elmo_new(.vocab = 8, .dim = 4, .hidden = 6, .letters = 2, .filters = 2); }
static void *elmo_sentences(void *m, tn_tensor *x) { return tn_elmo_sentences(m, x ? 0 : -1, NULL).rows; }
static void *elmo_vectors(void *m, tn_tensor *x)
{
    (void)x;
    return tn_elmo_vectors(m, NULL, out) ? m : NULL;
}
static void *elmo_loss(void *m, tn_tensor *x) { return tn_elmo_loss(m, NULL, x); }
SAVED(elmo, tn_elmo_save)
static void *a_thought(void) { return tn_skip_thought_new(.vocab = 8, .dim = 4, .hidden = 4); }
static void *thought(void *m, tn_tensor *x) { return tn_skip_thought_encode(m, x, NULL); }
static void *thought_loss(void *m, tn_tensor *x) { return tn_skip_thought_loss(m, x, NULL, x, x); }
SAVED(thought, tn_skip_thought_save)
static void *a_carried(void) { return tn_carried_lm_new(an_rnn_lm(), 2); }
static void *carried_loss(void *m, tn_tensor *x) { return tn_carried_lm_loss(m, &(tn_batch){.x = x, .y = x}, NULL); }
static void *a_seq2seq(void)
{
    return tn_seq2seq_new(.source_words = 8, .dim = 4, .layers = 1, .heads = 2, .positions = 8);
}
static void *seq2seq(void *m, tn_tensor *x) { return tn_seq2seq_forward((tn_seq2seq *)m, x, x, .alignment = out); }
static void *seq2seq_loss(void *m, tn_tensor *x) { return tn_seq2seq_loss((tn_seq2seq *)m, x, x); }
static void *seq2seq_decoding(void *m, tn_tensor *x) { return tn_seq2seq_decoding(m, x, 1, 4); }
static void *seq2seq_embedded(void *m, tn_tensor *x) { return tn_seq2seq_embedded(m, false, x, 0, NULL); }
static void *seq2seq_generate(void *m, tn_tensor *x) { return tn_seq2seq_generate((tn_seq2seq *)m, x).tokens; }
SAVED(seq2seq, tn_seq2seq_save)
static void *a_vit(void)
{
    return tn_vit_new(.image = 4, .patch = 2, .dim = 4, .layers = 2, .heads = 2, .classes = 2, .pooler = 3);
}
static void *vit(void *m, tn_tensor *x) { return tn_vit_forward((tn_vit *)m, x, .weights = out); }
static void *vit_scores(void *m, tn_tensor *x) { return tn_vit_logits(m, x, out); }
static void *vit_pooled(void *m, tn_tensor *x) { return tn_vit_pooled(m, x); }
static void *vit_labels(void *m, tn_tensor *x)
{
    (void)x;
    ck_assert_int_ne(tn_vit_set_labels(m, NULL), TN_OK);
    return NULL;
}
SAVED(vit, tn_vit_save)

/* The name in the error of a call without a module; the start of the error of a call without an input; the number of
 * output arguments. */
static const struct forward {
    const char *name, *no_input;
    void *(*make)(void);
    void *(*call)(void *m, tn_tensor *x);
    int results;
} forwards[] = {
    {"tn_call", "Linear: the input is NULL", a_linear, call, 0},
    {"tn_bilinear_forward", "bilinear: x1 is NULL", a_bilinear, bilinear, 0},
    {"tn_embedding_bag_forward", "embedding_bag: index is NULL", a_bag, bag, 0},
    {"tn_embedding_rows", "narrow: ", an_embedding, embedding_rows, 0},
    {"tn_mha", "mha: query is NULL", an_mha, mha, 1},
    {"tn_mha_prune", "tn_mha_prune: head 2 does not exist; heads are 0 to 1", an_mha, mha_prune, 0},
    {"tn_dot_attention", "dot_attention: query is NULL", a_dot, dot, 1},
    {"tn_additive_attention", "additive_attention: query is NULL", an_additive, additive, 1},
    {"tn_additive_attention_keys", "memory_proj: Linear: the input is NULL", an_additive, additive_keys, 0},
    {"tn_positions_forward", "positions: the input must be [B, T, dim] with dim = 4, got NULL", positions_, positions,
     0},
    {"tn_relative_positions_forward", "relative_positions: 2 queries, but must be from 0 to the number of keys, 1",
     a_relative, relative, 0},
    {"tn_distances_forward", "distances: .length is -1, but must be from 0", some_distances, distances, 1},
    {"tn_experts", "experts: x must be [..., 4], got NULL", some_experts, experts, 1},
    {"tn_two_stream", "two_stream: x must be [B, T, 4], got NULL", two_streams, two_stream, 1},
    {"tn_block", "self_attn: mha: query is NULL", a_block, block, 1},
    {"tn_block", "transformer_decoder: memory is NULL", a_decoder_layer, decoder_layer, 2},
    {"tn_blocks", "layers.0.self_attn: mha: query is NULL", stack, blocks, 2},
    {"tn_blocks_cache", "tn_kv_cache_new: .batch is -1", stack, blocks_cache, 0},
    {"tn_transformer", "encoder.layers.0.self_attn: mha: query is NULL", a_transformer, transformer, 0},
    {"tn_mlm_head_transform", "transform.dense: linear_gelu: x is NULL", a_head, head_transform, 0},
    {"tn_mlm_head_loss", "transform.dense: linear_gelu: x is NULL", a_head, head_loss, 0},
    {"tn_scalar_mix_forward", "scalar_mix: 0 layers, expected 2", a_mix, mix, 0},
    {"tn_adaptive_softmax_forward", "adaptive_softmax: x NULL must be [..., 4]", an_adaptive, adaptive, 1},
    {"tn_adaptive_softmax_log_prob", "adaptive_softmax: x NULL must be [..., 4]", an_adaptive, adaptive_all, 0},
    {"tn_sampled_loss", "sampled_loss: x must be [N, in] and weight [4, in], got NULL and NULL", a_sampled, sampled, 0},
    {"tn_rnn", "LSTM: x is NULL", an_lstm, lstm, 2},
    {"tn_rnn_cell", "LSTMCell: x is NULL", a_cell, cell, 1},
    {"tn_bert", "bert: ids must be [batch, length], got NULL", a_bert, bert, 2},
    {"tn_bert_mlm_logits", "bert: the hidden states are NULL", a_bert, word_scores, 0},
    {"tn_bert_pooled", "bert: the hidden states are NULL", a_bert, pooled, 0},
    {"tn_bert_nsp_logits", "bert: the hidden states are NULL", a_bert, next_scores, 0},
    {"tn_bert_replaced_logits", "bert: the hidden states are NULL", a_bert, replaced, 0},
    {"tn_bert_loss", "bert: ids must be [batch, length], got NULL", a_bert, bert_loss, 2},
    {"tn_bert_fill_in", "tn_bert_fill_in: the tokenizer is NULL", a_bert, fill_in, 0},
    {"tn_bert_embed", "tn_bert_embed: the tokenizer is NULL", a_bert, embed, 0},
    {"tn_bert_scores", "tn_bert_scores: the tokenizer is NULL", a_bert, bert_scores, 0},
    {"tn_bert_save", "the directory is NULL", a_bert, bert_save, 0},
    {"tn_tuned", "encoder: bert: ids must be [batch, length], got NULL", a_tuned, tuned, 0},
    {"tn_tuned_loss", "tuned: the scores are NULL", a_tuned, tuned_loss, 0},
    {"tn_tuned_logits", "encoder: bert: ids must be [batch, length], got NULL", a_tuned, tuned_scores, 0},
    {"tn_tuned_each", "tn_tuned_each: the features or the listener is NULL", a_tuned, tuned_each, 0},
    {"tn_tuned_tags", "tn_tuned_tags: feature 0 does not exist, or an argument is NULL", a_tuned, tuned_tags, 0},
    {"tn_crf_loss", "crf: the scores are NULL", a_crf, crf_loss, 0},
    {"tn_crf_best", "crf: scores of one sentence must be [length, 4], got NULL", a_crf, crf_best, 0},
    {"tn_tuned_save", "the directory is NULL", a_tuned, tuned_save, 0},
    {"tn_gpt", "GPT: ids must be [batch, length], got NULL", a_gpt, gpt, 0},
    {"tn_gpt_loss", "GPT: ids must be [batch, length], got NULL", a_gpt, gpt_loss, 0},
    {"tn_gpt_decoding", "tn_kv_cache_new: .batch is 0", a_gpt, gpt_decoding, 0},
    {"tn_gpt_save", "the directory is NULL", a_gpt, gpt_save, 0},
    {"tn_llama", "LLaMA: ids must be [batch, length], got NULL", a_llama, llama, 0},
    {"tn_llama_loss", "LLaMA: ids must be [batch, length], got NULL", a_llama, llama_loss, 0},
    {"tn_llama_decoding", "tn_kv_cache_new: .batch is 0", a_llama, llama_decoding, 0},
    {"tn_llama_save", "the directory is NULL", a_llama, llama_save, 0},
    {"tn_reformer", "Reformer: ids must be [batch, length], got NULL", a_reformer, reformer, 0},
    {"tn_reformer_loss", "Reformer: ids must be [batch, length], got NULL", a_reformer, reformer_loss, 0},
    {"tn_reformer_decoding", "tn_reformer_decoding: 0 rows", a_reformer, reformer_decoding, 0},
    {"tn_reformer_save", "the directory is NULL", a_reformer, reformer_save, 0},
    {"tn_lm", "LLaMA: ids must be [batch, length], got NULL", a_llama, lm, 0},
    {"tn_lm_loss", "GPT: ids must be [batch, length], got NULL", a_gpt, lm_loss, 0},
    {"tn_lm_decoding", "tn_kv_cache_new: .batch is 0", a_gpt, lm_decoding, 0},
    {"tn_blocks_forget", "tn_blocks_forget: positions must be rotary", stack, blocks_forget, 0},
    {"tn_lm_rolling", "tn_kv_cache_new: .batch is 0", a_llama, lm_rolling, 0},
    {"tn_speculative_decoding", "tn_speculative_decoding: length is 0", a_llama, drafted, 0},
    {"tn_speculative_decoding", "tn_speculative_decoding: length is 0", a_llama, looked_up, 0},
    {"tn_lm_save", "the directory is NULL", a_llama, lm_save, 0},
    {"tn_rnn_lm", "RnnLm: ids must be [batch, length], got NULL", an_rnn_lm, rnn_lm, 0},
    {"tn_rnn_lm_loss", "RnnLm: ids must be [batch, length], got NULL", an_rnn_lm, rnn_lm_loss, 0},
    {"tn_rnn_lm_decoding", "tn_rnn_lm_decoding: 0 rows of length 4, but both must be at least 1", an_rnn_lm,
     rnn_lm_decoding, 0},
    {"tn_rnn_lm_save", "the directory is NULL", an_rnn_lm, rnn_lm_save, 0},
    {"tn_carried_lm_loss", "model: RnnLm: ids must be [batch, length], got NULL", a_carried, carried_loss, 0},
    {"tn_elmo_sentences", "tn_elmo_sentences: no lines", an_elmo, elmo_sentences, 0},
    {"tn_elmo_vectors", "elmo: the batch was not made by", an_elmo, elmo_vectors, 3},
    {"tn_elmo_loss", "elmo: the batch was not made by", an_elmo, elmo_loss, 0},
    {"tn_elmo_save", "the directory is NULL", an_elmo, elmo_save, 0},
    {"tn_skip_thought_encode", "encoder: GRU: x is NULL", a_thought, thought, 0},
    {"tn_skip_thought_loss", "words: Embedding: the input is NULL", a_thought, thought_loss, 0},
    {"tn_skip_thought_save", "the directory is NULL", a_thought, thought_save, 0},
    {"tn_seq2seq", "seq2seq: the source must be [batch, length]", a_seq2seq, seq2seq, 1},
    {"tn_seq2seq_loss", "seq2seq: the target must be [batch, length]", a_seq2seq, seq2seq_loss, 0},
    {"tn_seq2seq_decoding", "seq2seq: the source must be [batch, length]", a_seq2seq, seq2seq_decoding, 0},
    {"tn_seq2seq_generate", "seq2seq: the source must be [batch, length]", a_seq2seq, seq2seq_generate, 0},
    {"tn_seq2seq_embedded", "source: Embedding: the input is NULL", a_seq2seq, seq2seq_embedded, 0},
    {"tn_seq2seq_save", "the directory is NULL", a_seq2seq, seq2seq_save, 0},
    {"tn_vit", "vit: x must be [batch, 3, height, width], got NULL", a_vit, vit, 2},
    {"tn_vit_pooled", "vit: the hidden states are NULL", a_vit, vit_pooled, 0},
    {"tn_vit_save", "the directory is NULL", a_vit, vit_save, 0},
    {"tn_vit_logits", "vit: the hidden states are NULL", a_vit, vit_scores, 2},
    {"tn_vit_set_labels", "tn_vit_set_labels: names is NULL", a_vit, vit_labels, 0},
};
enum { FORWARDS = sizeof forwards / sizeof *forwards };

/* Calls f in its own scope and clears the error: it returned NULL, used no random numbers and leaked nothing. */
static void refused(const struct forward *f, void *m, tn_tensor *x, int results, char text[1024])
{
    tn_tensor *const somebody = tn_scalar(1);
    for (int i = 0; i < OUT; i++) out[i] = somebody;
    const tn_generator before = *tn_current_generator();
    const tn_scope     s = tn_scope_begin();
    const int64_t      tensors = tn_memory_now().tensors;
    const bool         stopped = tn_error() != TN_OK;
    void *const        y = f->call(m, x);
    snprintf(text, 1024, "%s", tn_error_message());
    ck_assert_msg(!y, "%s gave a result", f->name);
    ck_assert_msg(tn_error() != TN_OK, "%s raised nothing", f->name);
    tn_scope_end(s);
    ck_assert_msg(stopped || !m || tn_memory_now().tensors == tensors, "%s left a tensor behind", f->name);
    ck_assert_msg(!memcmp(&before, tn_current_generator(), sizeof before), "%s has drawn", f->name);
    for (int i = 0; i < OUT; i++)
        ck_assert_msg(out[i] == (i < results ? NULL : somebody), "%s: result %d is not NULL", f->name, i);
    tn_clear_error();
}

TEST(no_module)
{
    char text[1024], want[256];
    for (int i = 0; i < FORWARDS; i++) {
        const struct forward *f = &forwards[i];
        const bool            stack_of =
            !strcmp(f->name, "tn_blocks") || !strcmp(f->name, "tn_bert") || !strcmp(f->name, "tn_vit");
        refused(f, NULL, tn_zeros(TN_SHAPE(1, 2, 4)), stack_of ? 0 : f->results,
                text); /* the number of layers is unknown */
        snprintf(want, sizeof want,
                 "%s: the module is NULL: it is an absent child, or its constructor failed and the error was cleared",
                 f->name);
        ck_assert_str_eq(text, want);
    }
}

TEST(no_input)
{
    char text[1024];
    for (int i = 0; i < FORWARDS; i++) {
        const struct forward *f = &forwards[i];
        void                 *m = f->make();
        refused(f, m, NULL, f->results, text);
        ck_assert_msg(!strncmp(text, f->no_input, strlen(f->no_input)), "%s: \"%s\", expected \"%s...\"", f->name, text,
                      f->no_input);
        tn_module_free(m);
    }
}

TEST(stopped_thread)
{
    char text[1024];
    for (int i = 0; i < FORWARDS; i++) {
        const struct forward *f = &forwards[i];
        void                 *m = f->make();
        tn_tensor            *x = tn_zeros(TN_SHAPE(1, 2, 4));
        tn_raise(TN_EINVAL, "the mistake before");
        refused(f, m, x, f->results, text);
        ck_assert_msg(!strncmp(text, "the mistake before", 18), "%s: %s", f->name, text);
        tn_module_free(m);
    }
}

/* ---- constructors ------------------------------------------------------------------------------------------------ */

/* From a config of zeros without the defaults, as in C++ without any member set, or after memset. */
#define OF_ZEROS(name, config) \
    static void *new_##name(void) { return tn_##name##_create((config){.zero_ = 0}); }
OF_ZEROS(linear, tn_linear_config)
OF_ZEROS(bilinear, tn_bilinear_config)
OF_ZEROS(embedding, tn_embedding_config)
OF_ZEROS(embedding_bag, tn_embedding_bag_config)
OF_ZEROS(layer_norm, tn_layer_norm_config)
OF_ZEROS(rms_norm, tn_rms_norm_config)
OF_ZEROS(batch_norm1d, tn_batch_norm_config)
OF_ZEROS(batch_norm2d, tn_batch_norm_config)
OF_ZEROS(group_norm, tn_group_norm_config)
OF_ZEROS(instance_norm1d, tn_instance_norm_config)
OF_ZEROS(instance_norm2d, tn_instance_norm_config)
OF_ZEROS(dropout, tn_dropout_config)
OF_ZEROS(leaky_relu, tn_leaky_relu_config)
OF_ZEROS(elu, tn_elu_config)
OF_ZEROS(prelu, tn_prelu_config)
OF_ZEROS(gelu, tn_gelu_config)
OF_ZEROS(softplus, tn_softplus_config)
OF_ZEROS(softmax, tn_along_config)
OF_ZEROS(log_softmax, tn_along_config)
OF_ZEROS(glu, tn_along_config)
OF_ZEROS(conv1d, tn_conv1d_config)
OF_ZEROS(conv2d, tn_conv2d_config)
OF_ZEROS(conv_transpose1d, tn_conv1d_config)
OF_ZEROS(conv_transpose2d, tn_conv2d_config)
OF_ZEROS(adaptive_avg_pool1d, tn_adaptive_pool_config)
OF_ZEROS(adaptive_avg_pool2d, tn_adaptive_pool_config)
OF_ZEROS(adaptive_max_pool1d, tn_adaptive_pool_config)
OF_ZEROS(adaptive_max_pool2d, tn_adaptive_pool_config)
OF_ZEROS(max_pool1d, tn_pool1d_config)
OF_ZEROS(max_pool2d, tn_pool2d_config)
OF_ZEROS(avg_pool1d, tn_pool1d_config)
OF_ZEROS(avg_pool2d, tn_pool2d_config)
OF_ZEROS(flatten, tn_flatten_config)
OF_ZEROS(locked_dropout, tn_locked_dropout_config)
OF_ZEROS(highway, tn_highway_config)
OF_ZEROS(scalar_mix, tn_scalar_mix_config)
OF_ZEROS(adaptive_softmax, tn_adaptive_softmax_config)
OF_ZEROS(nce_loss, tn_sampled_loss_config)
OF_ZEROS(negative_sampling_loss, tn_sampled_loss_config)
OF_ZEROS(mha, tn_mha_config)
OF_ZEROS(dot_attention, tn_dot_attention_config)
OF_ZEROS(additive_attention, tn_additive_attention_config)
OF_ZEROS(sinusoidal_positions, tn_positions_config)
OF_ZEROS(learned_positions, tn_positions_config)
OF_ZEROS(relative_positions, tn_relative_positions_config)
OF_ZEROS(distances, tn_distances_config)
OF_ZEROS(experts, tn_experts_config)
OF_ZEROS(two_stream, tn_two_stream_config)
OF_ZEROS(block, tn_block_config)
OF_ZEROS(blocks, tn_block_config)
OF_ZEROS(transformer_encoder_layer, tn_block_config)
OF_ZEROS(transformer_decoder_layer, tn_block_config)
OF_ZEROS(transformer_encoder, tn_block_config)
OF_ZEROS(transformer_decoder, tn_block_config)
OF_ZEROS(transformer, tn_transformer_config)
OF_ZEROS(mlm_head, tn_mlm_head_config)
OF_ZEROS(rnn, tn_rnn_config)
OF_ZEROS(lstm, tn_rnn_config)
OF_ZEROS(gru, tn_rnn_config)
OF_ZEROS(rnn_cell, tn_rnn_cell_config)
OF_ZEROS(lstm_cell, tn_rnn_cell_config)
OF_ZEROS(gru_cell, tn_rnn_cell_config)
OF_ZEROS(bert, tn_bert_config)
static void *new_tuned(void) /* of an encoder, which is created first */
{
    const tn_generator before = *tn_current_generator();
    tn_bert           *b = a_bert();
    *tn_current_generator() = before;
    return tn_tuned_create(b, (tn_tuned_config){TN_TUNED_DEFAULTS});
}
OF_ZEROS(crf, tn_crf_config)
OF_ZEROS(gpt, tn_gpt_config)
OF_ZEROS(llama, tn_llama_config)
OF_ZEROS(reformer, tn_reformer_config)
OF_ZEROS(seq2seq, tn_seq2seq_config)
OF_ZEROS(rnn_lm, tn_rnn_lm_config)
OF_ZEROS(elmo, tn_elmo_config)
OF_ZEROS(skip_thought, tn_skip_thought_config)
static void *new_carried_lm(void) { return tn_carried_lm_new(NULL, 0); }
OF_ZEROS(vit, tn_vit_config)
#define PLAIN(name) \
    static void *new_##name(void) { return tn_##name##_new(); }
PLAIN(rotary)
PLAIN(identity)
PLAIN(relu)
PLAIN(selu)
PLAIN(silu)
PLAIN(mish)
PLAIN(tanh)
PLAIN(sigmoid)
PLAIN(logsigmoid)
PLAIN(sequential)
PLAIN(module_list)
PLAIN(module_dict)

/* `empty`: no member is required, a config of zeros is valid. */
static const struct {
    const char *name;
    void *(*make)(void);
    bool empty;
} constructors[] = {
    {"tn_linear_new", new_linear, false},
    {"tn_bilinear_new", new_bilinear, false},
    {"tn_embedding_new", new_embedding, false},
    {"tn_embedding_bag_new", new_embedding_bag, false},
    {"tn_layer_norm_new", new_layer_norm, false},
    {"tn_rms_norm_new", new_rms_norm, false},
    {"tn_batch_norm1d_new", new_batch_norm1d, false},
    {"tn_batch_norm2d_new", new_batch_norm2d, false},
    {"tn_group_norm_new", new_group_norm, false},
    {"tn_instance_norm1d_new", new_instance_norm1d, false},
    {"tn_instance_norm2d_new", new_instance_norm2d, false},
    {"tn_dropout_new", new_dropout, true},
    {"tn_leaky_relu_new", new_leaky_relu, true},
    {"tn_elu_new", new_elu, true},
    {"tn_prelu_new", new_prelu, false},
    {"tn_gelu_new", new_gelu, true},
    {"tn_softplus_new", new_softplus, true},
    {"tn_softmax_new", new_softmax, true},
    {"tn_log_softmax_new", new_log_softmax, true},
    {"tn_glu_new", new_glu, true},
    {"tn_conv1d_new", new_conv1d, false},
    {"tn_conv2d_new", new_conv2d, false},
    {"tn_conv_transpose1d_new", new_conv_transpose1d, false},
    {"tn_conv_transpose2d_new", new_conv_transpose2d, false},
    {"tn_adaptive_avg_pool1d_new", new_adaptive_avg_pool1d, false},
    {"tn_adaptive_avg_pool2d_new", new_adaptive_avg_pool2d, false},
    {"tn_adaptive_max_pool1d_new", new_adaptive_max_pool1d, false},
    {"tn_adaptive_max_pool2d_new", new_adaptive_max_pool2d, false},
    {"tn_max_pool1d_new", new_max_pool1d, false},
    {"tn_max_pool2d_new", new_max_pool2d, false},
    {"tn_avg_pool1d_new", new_avg_pool1d, false},
    {"tn_avg_pool2d_new", new_avg_pool2d, false},
    {"tn_flatten_new", new_flatten, true},
    {"tn_locked_dropout_new", new_locked_dropout, true},
    {"tn_highway_new", new_highway, false},
    {"tn_scalar_mix_new", new_scalar_mix, false},
    {"tn_adaptive_softmax_new", new_adaptive_softmax, false},
    {"tn_nce_loss_new", new_nce_loss, false},
    {"tn_negative_sampling_loss_new", new_negative_sampling_loss, false},
    {"tn_mha_new", new_mha, false},
    {"tn_dot_attention_new", new_dot_attention, false},
    {"tn_additive_attention_new", new_additive_attention, false},
    {"tn_sinusoidal_positions_new", new_sinusoidal_positions, false},
    {"tn_learned_positions_new", new_learned_positions, false},
    {"tn_relative_positions_new", new_relative_positions, false},
    {"tn_distances_new", new_distances, false},
    {"tn_experts_new", new_experts, false},
    {"tn_two_stream_new", new_two_stream, false},
    {"tn_block_new", new_block, false},
    {"tn_blocks_new", new_blocks, false},
    {"tn_transformer_encoder_layer_new", new_transformer_encoder_layer, false},
    {"tn_transformer_decoder_layer_new", new_transformer_decoder_layer, false},
    {"tn_transformer_encoder_new", new_transformer_encoder, false},
    {"tn_transformer_decoder_new", new_transformer_decoder, false},
    {"tn_transformer_new", new_transformer, false},
    {"tn_mlm_head_new", new_mlm_head, false},
    {"tn_rnn_new", new_rnn, false},
    {"tn_lstm_new", new_lstm, false},
    {"tn_gru_new", new_gru, false},
    {"tn_rnn_cell_new", new_rnn_cell, false},
    {"tn_lstm_cell_new", new_lstm_cell, false},
    {"tn_gru_cell_new", new_gru_cell, false},
    {"tn_bert_new", new_bert, false},
    {"tn_crf_new", new_crf, false},
    {"tn_tuned_new", new_tuned, false},
    {"tn_gpt_new", new_gpt, false},
    {"tn_llama_new", new_llama, false},
    {"tn_reformer_new", new_reformer, false},
    {"tn_seq2seq_new", new_seq2seq, false},
    {"tn_rnn_lm_new", new_rnn_lm, false},
    {"tn_elmo_new", new_elmo, false},
    {"tn_skip_thought_new", new_skip_thought, false},
    {"tn_carried_lm_new", new_carried_lm, false},
    {"tn_vit_new", new_vit, false},
    {"tn_rotary_new", new_rotary, true},
    {"tn_identity_new", new_identity, true},
    {"tn_relu_new", new_relu, true},
    {"tn_selu_new", new_selu, true},
    {"tn_silu_new", new_silu, true},
    {"tn_mish_new", new_mish, true},
    {"tn_tanh_new", new_tanh, true},
    {"tn_sigmoid_new", new_sigmoid, true},
    {"tn_logsigmoid_new", new_logsigmoid, true},
    {"tn_sequential_new", new_sequential, true},
    {"tn_module_list_new", new_module_list, true},
    {"tn_module_dict_new", new_module_dict, true},
};
enum { CONSTRUCTORS = sizeof constructors / sizeof *constructors };

TEST(nothing_given)
{
    char want[64];
    for (int i = 0; i < CONSTRUCTORS; i++) {
        const int64_t      tensors = tn_memory_now().tensors;
        const tn_generator before = *tn_current_generator();
        void              *m = constructors[i].make();
        snprintf(want, sizeof want, "%s: ", constructors[i].name);
        if (constructors[i].empty) {
            ck_assert_msg(m && tn_error() == TN_OK, "%s: %s", constructors[i].name, tn_error_message());
            tn_module_free(m);
        } else {
            ck_assert_msg(!m && !strncmp(tn_error_message(), want, strlen(want)), "%s: \"%s\"", constructors[i].name,
                          tn_error_message());
            tn_clear_error();
        }
        ck_assert_msg(tn_memory_now().tensors == tensors, "%s left a tensor behind", constructors[i].name);
        ck_assert_msg(!memcmp(&before, tn_current_generator(), sizeof before), "%s has drawn", constructors[i].name);
    }
}

TEST(made_on_a_stopped_thread)
{
    for (int i = 0; i < CONSTRUCTORS; i++) {
        const int64_t tensors = tn_memory_now().tensors;
        tn_raise(TN_EINVAL, "the mistake before");
        ck_assert_msg(!constructors[i].make(), "%s made something", constructors[i].name);
        ck_assert_msg(!strncmp(tn_error_message(), "the mistake before", 18), "%s: %s", constructors[i].name,
                      tn_error_message());
        tn_clear_error();
        ck_assert_msg(tn_memory_now().tensors == tensors, "%s left a tensor behind", constructors[i].name);
    }
}

TEST(no_directory)
{
    static const char *const want = "the directory is NULL; expected the one that contains 'config.json'";
    ck_assert(!tn_bert_load(NULL) && !strncmp(tn_error_message(), want, strlen(want)));
    tn_clear_error();
    ck_assert(!tn_gpt_load(NULL) && !strncmp(tn_error_message(), want, strlen(want)));
    tn_clear_error();
    ck_assert(!tn_llama_load(NULL) && !strncmp(tn_error_message(), want, strlen(want)));
    tn_clear_error();
    ck_assert(!tn_seq2seq_load(NULL) && !strncmp(tn_error_message(), want, strlen(want)));
    tn_clear_error();
}
