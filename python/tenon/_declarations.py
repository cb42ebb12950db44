"""The declarations that the package uses. Written by python/declarations.py; do not edit."""

VERSION = '0.2.0'
CONSTANTS = {
    'TN_ALL': 2147483647,
    'TN_EACH_NAME': 16,
    'TN_EACH_PARAMETER': 1,
    'TN_EACH_SAVED': 4,
    'TN_EINDEX': 5,
    'TN_EINVAL': 2,
    'TN_ESHAPE': 3,
}
ENUMS = {
'tn_dtype': {'TN_F32': 0, 'TN_F64': 1, 'TN_BF16': 2, 'TN_I64': 3, 'TN_I32': 4, 'TN_U8': 5, 'TN_BOOL': 6},
    'tn_reduction': {'TN_MEAN': 0, 'TN_SUM': 1, 'TN_NONE': 2}, 'tn_scatter_mode': {'TN_SCATTER_SET': 0,
    'TN_SCATTER_SUM': 1, 'TN_SCATTER_PROD': 2, 'TN_SCATTER_AMIN': 3, 'TN_SCATTER_AMAX': 4},
    'tn_interpolation': {'TN_NEAREST': 0, 'TN_LINEAR': 1}, 'tn_rope_scaling': {'TN_ROPE_PLAIN': 0,
    'TN_ROPE_LINEAR': 1, 'TN_ROPE_DYNAMIC': 2, 'TN_ROPE_LLAMA3': 3}, 'tn_status': {'TN_OK': 0, 'TN_ENOMEM': 1,
    'TN_EINVAL': 2, 'TN_ESHAPE': 3, 'TN_EDTYPE': 4, 'TN_EINDEX': 5, 'TN_ESTATE': 6, 'TN_EIO': 7, 'TN_EFORMAT':
    8, 'TN_EUNSUPPORTED': 9, 'TN_ENUMERIC': 10}, 'tn_bert_pooling': {'TN_POOL_MEAN': 0, 'TN_POOL_FIRST': 1,
    'TN_POOL_MAX': 2}, 'tn_model_family': {'TN_MODEL_NONE': 0, 'TN_MODEL_ENCODER': 1, 'TN_MODEL_TUNED': 2,
    'TN_MODEL_DECODER': 3, 'TN_MODEL_SEQ2SEQ': 4, 'TN_MODEL_IMAGES': 5, 'TN_MODEL_OTHER': 6}, 'tn_cut':
    {'TN_CUT_LONGEST': 0, 'TN_CUT_FIRST': 1, 'TN_CUT_SECOND': 2}, 'tn_choice': {'TN_FROM_FILE': 0, 'TN_NO': 1,
    'TN_YES': 2}, 'tn_tokenizer_kind': {'TN_WORDPIECE': 0, 'TN_BPE': 1, 'TN_BYTE_BPE': 2, 'TN_SENTENCE_BPE':
    3, 'TN_UNIGRAM': 4, 'TN_SUBWORD': 5},
}
# The last word of a struct: the number of members that C's macro requires.
STRUCTS = """
tn_dims: int n; int d[8]
tn_reduce_args: int zero_; tn_tensor *x; tn_dims dims; bool keepdim; bool biased; double p = 2; int end_; required 1
tn_pair: tn_tensor *values; tn_tensor *indices
tn_shape: int n; int64_t d[8]
tn_sort_args: int zero_; tn_tensor *x; int dim; bool descending; int end_; required 2
tn_topk_args: int zero_; tn_tensor *x; int64_t k; int dim; bool smallest; int end_; required 3
tn_conv1d_args: int zero_; tn_tensor *x; tn_tensor *weight; tn_tensor *bias; int64_t stride = 1; int64_t padding;
    int64_t dilation = 1; int64_t groups = 1; int end_; required 3
tn_conv2d_args: int zero_; tn_tensor *x; tn_tensor *weight; tn_tensor *bias; int64_t stride = 1; int64_t stride_w =
    -1; int64_t padding; int64_t padding_w = -1; int64_t dilation = 1; int64_t dilation_w = -1; int64_t groups = 1;
    int end_; required 3
tn_pool1d_args: int zero_; tn_tensor *x; int64_t size; int64_t stride; int64_t padding; int64_t dilation = 1; bool
    ignore_padding; int end_; required 1
tn_pool2d_args: int zero_; tn_tensor *x; int64_t size; int64_t size_w = -1; int64_t stride; int64_t stride_w = -1;
    int64_t padding; int64_t padding_w = -1; int64_t dilation = 1; int64_t dilation_w = -1; bool ignore_padding; int
    end_; required 1
tn_cross_entropy_args: int zero_; tn_tensor *logits; tn_tensor *target; tn_tensor *weight; int64_t ignore_index =
    -100; double label_smoothing; tn_reduction reduction; int class_dim = -1; int64_t *counted; int end_; required 2
tn_loss_args: int zero_; tn_tensor *input; tn_tensor *target; tn_reduction reduction; tn_tensor *weight; tn_tensor
    *pos_weight; double delta = 1; bool log_target; bool batchmean; int end_; required 2
tn_attention_args: int zero_; tn_tensor *q; tn_tensor *k; tn_tensor *v; bool int8; tn_tensor *attn_mask; tn_tensor
    *key_padding_mask; bool causal; int64_t past; int64_t window; tn_tensor *offsets; tn_tensor *key_offsets; double
    dropout; double scale = -1; double cap; tn_dims order; tn_tensor **weights; int end_; required 3
tn_routes: tn_tensor *token; tn_tensor *pair; tn_tensor *expert
tn_add_dropout_norm_args: int zero_; tn_tensor *x; tn_tensor *h; tn_tensor *weight; tn_tensor *bias; double p; double
    eps; tn_tensor **sum; tn_tensor *rows; int64_t length; int end_; required 4
tn_linear_cross_entropy_args: int zero_; tn_tensor *x; tn_tensor *weight; tn_tensor *bias; tn_tensor *target; int64_t
    ignore_index = -100; double label_smoothing; tn_reduction reduction; int64_t *counted; int end_; required 4
tn_lsh_attention_args: int zero_; tn_tensor *q; tn_tensor *k; tn_tensor *v; tn_tensor *buckets; tn_tensor
    *key_padding_mask; int64_t chunk = 64; int64_t before = 1; int64_t after; bool causal; bool apart; double dropout;
    double scale = -1; int end_; required 3
tn_uniques: tn_tensor *values; tn_tensor *inverse; tn_tensor *counts
tn_conv_transpose1d_args: int zero_; tn_tensor *x; tn_tensor *weight; tn_tensor *bias; int64_t stride = 1; int64_t
    padding; int64_t output_padding; int64_t dilation = 1; int64_t groups = 1; int end_; required 3
tn_conv_transpose2d_args: int zero_; tn_tensor *x; tn_tensor *weight; tn_tensor *bias; int64_t stride = 1; int64_t
    stride_w = -1; int64_t padding; int64_t padding_w = -1; int64_t output_padding; int64_t output_padding_w = -1;
    int64_t dilation = 1; int64_t dilation_w = -1; int64_t groups = 1; int end_; required 3
tn_rope_config: int zero_; int64_t dim; double theta = 10000; bool interleaved; tn_rope_scaling scaling; double factor
    = 1; double low = 1; double high = 4; int64_t trained; tn_dtype dtype; int end_
tn_mode: bool no_grad; bool trains; bool autocast; bool blank; uint16_t replay; uint16_t look; tn__replaced *replaced;
    void *module
tn_scope: size_t mark; int path; tn_mode mode
tn_backward_args: int zero_; tn_tensor *root; tn_tensor *seed; int count; tn_tensor **roots; tn_tensor **seeds; bool
    retain; int end_; required 1
tn_bert_args: int zero_; tn_tensor *ids; tn_tensor *types; tn_tensor *key_padding_mask; bool skip_padding; tn_tensor
    **weights; bool for_words; tn_bert *shared; tn_tensor *targets; tn_tensor *order; tn_tensor **memory; tn_tensor
    **memory_out; int end_; required 1
tn_encoding: int64_t n; int32_t *id; int32_t *start; int32_t *end; int32_t *word; uint8_t *segment; uint8_t *special;
    int64_t cut; int64_t invalid
tn_generated: tn_tensor *tokens; tn_tensor *lengths; tn_tensor *scores
tn_generate_args: int zero_; tn_decoding *from; int64_t read; tn_tensor *before; tn_tensor *prompt; tn_tensor
    *lengths; int64_t end = -1; int64_t most; int64_t least; tn_tensor *most_each; int64_t beams = 1; int64_t best =
    1; double length_penalty = 1; bool gnmt; double coverage; bool early_stopping; int64_t no_repeat; bool sample;
    double temperature = 1; int64_t top_k; double top_p = 1; double min_p; double repetition_penalty = 1; bool
    unscored; void *each; void *adjust; void *user; int end_; required 2
tn_grad_of_args: int zero_; tn_tensor *root; int count; tn_tensor **wrt; tn_tensor **grad; tn_tensor *seed; bool
    retain; bool create_graph; int end_; required 4
tn_decoder_args: int zero_; tn_tensor *ids; tn_kv_cache *cache; bool last; bool vectors; tn_tensor *key_padding_mask;
    bool skip_padding; tn_tensor **router; int end_; required 1
tn_look_request_args: int zero_; char *path; bool grad; void *change; void *user; int end_; required 1
tn_memory: size_t live; size_t peak; size_t cached; size_t limit; size_t packed; uint64_t mallocs; int64_t tensors
tn_ids: int32_t *at; int64_t n; int64_t room
tn_string: char *at; size_t bytes; size_t room
tn_model: tn_model_family family; char *type; void *module; tn_tokenizer *tokenizer; tn_tokenizer *target; char *form;
    char *stored; tn_ids ends; tn_string chat_template
tn_model_config: int zero_; tn_model_family family; char *tokenizer; bool no_tokenizer; bool needs_tokenizer; char
    *from; char *to; bool packed; void *pack; int end_
tn_model_save_args: int zero_; char *type; bool no_tokenizer; int end_
tn_each_level_: tn_module *m; int at; int length
tn_each: tn_tensor *tensor; tn_module *module; bool parameter; bool saved; bool rows; char name[1024]; int what_; int
    depth_; int nties_; int length_; uint64_t step_; tn_each_level_ level_[48]; tn_tensor *tie_[8]
tn_safetensors_entry: char *name; char *stored; bool loadable; tn_dtype dtype; tn_shape shape; int64_t bytes
tn_seq2seq_args: int zero_; tn_tensor *source; tn_tensor *target; tn_tensor **alignment; int end_; required 2
tn_token_batch: tn_tensor *ids; tn_tensor *segments; tn_tensor *key_padding_mask; int64_t cut; int64_t invalid
tn_encode_args: int zero_; char *pair; size_t pair_bytes; char **pairs; int64_t max_length; tn_cut cut; bool cut_left;
    int64_t pad_to; bool pad_left; bool bare; bool literal; bool strict; double sample; uint64_t seed; int nth; int
    end_
tn_decode_args: int zero_; bool keep_special; bool keep_spaces; int end_
tn_tokenizer_config: int zero_; tn_choice lowercase; tn_choice strip_accents; tn_choice control_in_text; bool slow;
    tn_json *config; bool target; char *language; int end_
tn_tokenizer_roles: int32_t pad; int32_t unknown; int32_t first; int32_t separator; int32_t mask; int32_t last
tn_tokenizer_train_args: int zero_; tn_tokenizer_kind kind; int64_t vocab_size = 30000; int64_t min_count = 2; int64_t
    alphabet = 1000; bool cased; int64_t t5; bool cls_last; char **special; void *progress; void *merged; void *user;
    int end_
tn_tuned_args: int zero_; tn_tensor *ids; tn_tensor *types; tn_tensor *key_padding_mask; bool skip_padding; int end_;
    required 1
"""
OPS = """
tn_tensor *tn_add(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_sub(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_mul(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_div(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_pow(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_maximum(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_minimum(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_remainder(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_add_(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_sub_(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_mul_(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_div_(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_add_scalar(tn_tensor *x, double k)
tn_tensor *tn_mul_scalar(tn_tensor *x, double k)
tn_tensor *tn_div_scalar(tn_tensor *x, double k)
tn_tensor *tn_rsub_scalar(tn_tensor *x, double k)
tn_tensor *tn_pow_scalar(tn_tensor *x, double k)
tn_tensor *tn_add_scalar_(tn_tensor *x, double k)
tn_tensor *tn_mul_scalar_(tn_tensor *x, double k)
tn_tensor *tn_div_scalar_(tn_tensor *x, double k)
tn_tensor *tn_neg(tn_tensor *x)
tn_tensor *tn_abs(tn_tensor *x)
tn_tensor *tn_sign(tn_tensor *x)
tn_tensor *tn_exp(tn_tensor *x)
tn_tensor *tn_expm1(tn_tensor *x)
tn_tensor *tn_log(tn_tensor *x)
tn_tensor *tn_log1p(tn_tensor *x)
tn_tensor *tn_sqrt(tn_tensor *x)
tn_tensor *tn_rsqrt(tn_tensor *x)
tn_tensor *tn_square(tn_tensor *x)
tn_tensor *tn_reciprocal(tn_tensor *x)
tn_tensor *tn_sin(tn_tensor *x)
tn_tensor *tn_cos(tn_tensor *x)
tn_tensor *tn_tanh(tn_tensor *x)
tn_tensor *tn_erf(tn_tensor *x)
tn_tensor *tn_floor(tn_tensor *x)
tn_tensor *tn_ceil(tn_tensor *x)
tn_tensor *tn_round(tn_tensor *x)
tn_tensor *tn_fake_quantize(tn_tensor *x)
tn_tensor *tn_fake_quantize_weight(tn_tensor *weight)
tn_tensor *tn_int8_rows(tn_tensor *x)
tn_tensor *tn_int8_rows_unpack(tn_tensor *rows)
tn_tensor *tn_clamp(tn_tensor *x, double low, double high)
tn_tensor *tn_sigmoid(tn_tensor *x)
tn_tensor *tn_logsigmoid(tn_tensor *x)
tn_tensor *tn_relu(tn_tensor *x)
tn_tensor *tn_leaky_relu(tn_tensor *x, double slope)
tn_tensor *tn_elu(tn_tensor *x, double alpha)
tn_tensor *tn_gelu(tn_tensor *x)
tn_tensor *tn_gelu_tanh(tn_tensor *x)
tn_tensor *tn_silu(tn_tensor *x)
tn_tensor *tn_mish(tn_tensor *x)
tn_tensor *tn_softplus(tn_tensor *x, double beta)
tn_tensor *tn_glu(tn_tensor *x, int dim)
tn_tensor *tn_neg_(tn_tensor *x)
tn_tensor *tn_exp_(tn_tensor *x)
tn_tensor *tn_sqrt_(tn_tensor *x)
tn_tensor *tn_tanh_(tn_tensor *x)
tn_tensor *tn_sigmoid_(tn_tensor *x)
tn_tensor *tn_relu_(tn_tensor *x)
tn_tensor *tn_clamp_(tn_tensor *x, double low, double high)
tn_tensor *tn_eq(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_ne(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_lt(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_le(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_gt(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_ge(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_logical_and(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_logical_or(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_logical_xor(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_logical_not(tn_tensor *x)
tn_tensor *tn_isfinite(tn_tensor *x)
tn_tensor *tn_isnan(tn_tensor *x)
bool tn_allclose(tn_tensor *a, tn_tensor *b, double rtol, double atol)
tn_tensor *tn_where(tn_tensor *condition, tn_tensor *a, tn_tensor *b)
tn_tensor *tn_masked_fill(tn_tensor *x, tn_tensor *mask, double value)
tn_tensor *tn_masked_fill_(tn_tensor *x, tn_tensor *mask, double value)
tn_tensor *tn_masked_select(tn_tensor *x, tn_tensor *mask)
tn_tensor *tn_sum_run(tn_reduce_args a)
tn_tensor *tn_mean_run(tn_reduce_args a)
tn_tensor *tn_prod_run(tn_reduce_args a)
tn_tensor *tn_var_run(tn_reduce_args a)
tn_tensor *tn_std_run(tn_reduce_args a)
tn_tensor *tn_amax_run(tn_reduce_args a)
tn_tensor *tn_amin_run(tn_reduce_args a)
tn_tensor *tn_norm_run(tn_reduce_args a)
tn_tensor *tn_logsumexp_run(tn_reduce_args a)
tn_tensor *tn_any_run(tn_reduce_args a)
tn_tensor *tn_all_run(tn_reduce_args a)
tn_pair tn_max(tn_tensor *x, int dim, bool keepdim)
tn_pair tn_min(tn_tensor *x, int dim, bool keepdim)
tn_tensor *tn_argmax(tn_tensor *x, int dim, bool keepdim)
tn_tensor *tn_argmin(tn_tensor *x, int dim, bool keepdim)
tn_tensor *tn_cumsum(tn_tensor *x, int dim)
tn_tensor *tn_softmax(tn_tensor *x, int dim)
tn_tensor *tn_log_softmax(tn_tensor *x, int dim)
tn_tensor *tn_matmul(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_linear_run(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
tn_tensor *tn_outer(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_einsum_list(char *equation, int n, tn_tensor **in)
tn_tensor *tn_view(tn_tensor *x, tn_shape s)
tn_tensor *tn_reshape(tn_tensor *x, tn_shape s)
tn_tensor *tn_flatten_run(tn_tensor *x, int first, int last)
tn_tensor *tn_permute(tn_tensor *x, tn_dims order)
tn_tensor *tn_transpose(tn_tensor *x, int dim0, int dim1)
tn_tensor *tn_slice(tn_tensor *x, int dim, int64_t start, int64_t end, int64_t step)
tn_tensor *tn_narrow(tn_tensor *x, int dim, int64_t start, int64_t length)
tn_tensor *tn_select(tn_tensor *x, int dim, int64_t index)
tn_tensor *tn_expand(tn_tensor *x, tn_shape s)
tn_tensor *tn_squeeze(tn_tensor *x, int dim)
tn_tensor *tn_unsqueeze(tn_tensor *x, int dim)
tn_tensor *tn_diagonal(tn_tensor *x, int64_t offset, int dim0, int dim1)
tn_tensor *tn_unfold(tn_tensor *x, int dim, int64_t size, int64_t step)
tn_tensor *tn_contiguous(tn_tensor *x)
tn_tensor *tn_clone(tn_tensor *x)
tn_tensor *tn_to(tn_tensor *x, tn_dtype dt)
tn_tensor *tn_copy_(tn_tensor *x, tn_tensor *src)
tn_tensor *tn_cat_list(int dim, int n, tn_tensor **in)
tn_tensor *tn_stack_list(int dim, int n, tn_tensor **in)
int tn_split(tn_tensor *x, int64_t size, int dim, int room, tn_tensor **out)
int tn_chunk(tn_tensor *x, int64_t chunks, int dim, int room, tn_tensor **out)
tn_tensor *tn_pad(tn_tensor *x, tn_shape before, tn_shape after, double value)
tn_tensor *tn_tril(tn_tensor *x, int64_t diagonal)
tn_tensor *tn_triu(tn_tensor *x, int64_t diagonal)
tn_tensor *tn_roll(tn_tensor *x, int64_t shift, int dim)
tn_tensor *tn_flip(tn_tensor *x, tn_dims dims)
tn_tensor *tn_repeat(tn_tensor *x, tn_shape times)
tn_tensor *tn_repeat_interleave(tn_tensor *x, int64_t times, int dim)
tn_tensor *tn_gather(tn_tensor *x, int dim, tn_tensor *index)
tn_tensor *tn_scatter_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
tn_tensor *tn_index_select(tn_tensor *x, int dim, tn_tensor *index)
tn_tensor *tn_index_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
tn_tensor *tn_index_copy(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
tn_tensor *tn_index_copy_(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
tn_tensor *tn_take_along(tn_tensor *x, tn_tensor *index, int dim)
tn_tensor *tn_embedding_run(tn_tensor *weight, tn_tensor *index, int64_t padding, bool sparse)
tn_tensor *tn_one_hot(tn_tensor *index, int64_t classes)
tn_tensor *tn_nonzero(tn_tensor *x)
tn_pair tn_sort_run(tn_sort_args a)
tn_pair tn_topk_run(tn_topk_args a)
tn_tensor *tn_layer_norm_run(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, double eps)
tn_tensor *tn_rms_norm_run(tn_tensor *x, tn_tensor *weight, double eps)
tn_tensor *tn_dropout_run(tn_tensor *x, double p)
tn_tensor *tn_dropout_rows(tn_tensor *x, double p, tn_tensor *rows, int64_t length)
tn_tensor *tn_conv1d_run(tn_conv1d_args a)
tn_tensor *tn_conv2d_run(tn_conv2d_args a)
tn_tensor *tn_max_pool1d_run(tn_pool1d_args a)
tn_tensor *tn_max_pool2d_run(tn_pool2d_args a)
tn_tensor *tn_avg_pool1d_run(tn_pool1d_args a)
tn_tensor *tn_avg_pool2d_run(tn_pool2d_args a)
tn_tensor *tn_cross_entropy_run(tn_cross_entropy_args a)
tn_tensor *tn_nll_loss_run(tn_cross_entropy_args a)
tn_tensor *tn_mse_loss_run(tn_loss_args a)
tn_tensor *tn_l1_loss_run(tn_loss_args a)
tn_tensor *tn_huber_loss_run(tn_loss_args a)
tn_tensor *tn_kl_div_run(tn_loss_args a)
tn_tensor *tn_bce_with_logits_run(tn_loss_args a)
tn_tensor *tn_cosine_similarity(tn_tensor *a, tn_tensor *b, int dim, double eps)
tn_tensor *tn_attention_run(tn_attention_args a)
tn_routes tn_route(tn_tensor *expert, int64_t experts, int64_t capacity)
tn_tensor *tn_linear_gelu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
tn_tensor *tn_linear_gelu_tanh(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
tn_tensor *tn_linear_relu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
tn_tensor *tn_linear_add(tn_tensor *x, tn_tensor *weight, tn_tensor *c)
tn_tensor *tn_add_dropout_norm_run(tn_add_dropout_norm_args a)
tn_tensor *tn_linear_cross_entropy_run(tn_linear_cross_entropy_args a)
tn_tensor *tn_lsh_attention_run(tn_lsh_attention_args a)
tn_tensor *tn_tan(tn_tensor *x)
tn_tensor *tn_asin(tn_tensor *x)
tn_tensor *tn_acos(tn_tensor *x)
tn_tensor *tn_atan(tn_tensor *x)
tn_tensor *tn_sinh(tn_tensor *x)
tn_tensor *tn_cosh(tn_tensor *x)
tn_tensor *tn_log2(tn_tensor *x)
tn_tensor *tn_log10(tn_tensor *x)
tn_tensor *tn_isinf(tn_tensor *x)
tn_tensor *tn_prelu(tn_tensor *x, tn_tensor *weight)
tn_tensor *tn_atan2(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_logaddexp(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_floor_divide(tn_tensor *a, tn_tensor *b)
tn_tensor *tn_cumprod(tn_tensor *x, int dim)
tn_tensor *tn_weight_norm(tn_tensor *v, tn_tensor *g, int dim)
tn_tensor *tn_scatter(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
tn_tensor *tn_scatter_reduce(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src, tn_scatter_mode how)
tn_tensor *tn_index_put(tn_tensor *x, int n, tn_tensor **index, tn_tensor *values, tn_scatter_mode how)
tn_tensor *tn_segment_reduce(tn_tensor *x, tn_tensor *lengths, tn_scatter_mode how)
tn_tensor *tn_argsort_run(tn_sort_args a)
tn_uniques tn_unique(tn_tensor *x)
tn_tensor *tn_bincount(tn_tensor *x, tn_tensor *weights, int64_t minlength)
tn_tensor *tn_multinomial(tn_tensor *p, int64_t n, bool replacement)
tn_tensor *tn_conv_transpose1d_run(tn_conv_transpose1d_args a)
tn_tensor *tn_conv_transpose2d_run(tn_conv_transpose2d_args a)
tn_tensor *tn_adaptive_avg_pool1d(tn_tensor *x, int64_t out)
tn_tensor *tn_adaptive_avg_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w)
tn_tensor *tn_adaptive_max_pool1d(tn_tensor *x, int64_t out)
tn_tensor *tn_adaptive_max_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w)
tn_tensor *tn_interpolate(tn_tensor *x, tn_shape size, tn_interpolation mode, bool align_corners)
tn_tensor *tn_smooth_l1_loss(tn_tensor *input, tn_tensor *target, double beta, tn_reduction reduction)
tn_tensor *tn_bce_loss(tn_tensor *input, tn_tensor *target, tn_tensor *weight, tn_reduction reduction)
tn_tensor *tn_hinge_embedding_loss(tn_tensor *x, tn_tensor *target, double margin, tn_reduction reduction)
tn_tensor *tn_triplet_margin_loss(tn_tensor *anchor, tn_tensor *positive, tn_tensor *negative, double margin,
    tn_reduction reduction)
tn_tensor *tn_info_nce_loss(tn_tensor *query, tn_tensor *keys, double temperature, tn_reduction reduction)
tn_tensor *tn_rope(tn_tensor *x, tn_tensor *angles, bool interleaved)
tn_tensor *tn_rope_angles(tn_rope_config c, int64_t offset, int64_t length)
tn_tensor *tn_rope_angles_at(tn_rope_config c, tn_tensor *positions)
"""
FUNCTIONS = """
tn_tensor *tn_arange_of(tn_dtype dt, double start, double end, double step)
tn_scope tn_autocast_begin(bool on)
tn_status tn_backward_run(tn_backward_args c)
tn_tensor *tn_bert_embed(tn_bert *m, tn_tokenizer *t, int64_t n, char **texts, tn_bert_pooling pooling)
tn_tensor *tn_bert_run(tn_bert *m, tn_bert_args a)
tn_tensor *tn_borrow(tn_dtype dt, tn_shape s, void *data, void *release, void *user)
char *tn_build_info()
void tn_clear_error()
tn_status tn_copy_from(tn_tensor *t, tn_tensor *src)
tn_status tn_copy_out(tn_tensor *t, tn_dtype dt, void *data, size_t bytes)
void *tn_data(tn_tensor *t)
void tn_decoding_free(tn_decoding *d)
tn_tensor *tn_detach(tn_tensor *t)
void tn_drop(tn_tensor *t)
tn_dtype tn_dtype_of(tn_tensor *t)
tn_tensor *tn_empty_of(tn_dtype dt, tn_shape s)
void tn_encoding_free(tn_encoding *e)
tn_encoding *tn_encoding_new()
tn_status tn_error()
char *tn_error_message()
tn_status tn_extras_register()
tn_tensor *tn_eye_of(tn_dtype dt, int64_t rows, int64_t cols)
tn_tensor *tn_freeze_tensor(tn_tensor *t)
tn_tensor *tn_from_data(tn_dtype dt, tn_shape s, void *data)
tn_tensor *tn_full_of(tn_dtype dt, tn_shape s, double value)
tn_generated tn_generate_run(tn_generate_args a)
int64_t tn_get_i64(tn_tensor *t, int64_t position)
tn_tensor *tn_grad(tn_tensor *t)
tn_status tn_grad_of_run(tn_grad_of_args c)
bool tn_is_contiguous(tn_tensor *t)
double tn_item(tn_tensor *t)
tn_tensor *tn_keep(tn_tensor *t)
tn_tensor *tn_linspace_of(tn_dtype dt, double start, double end, int64_t steps)
tn_decoding *tn_lm_decoding(void *m, int64_t rows, int64_t length)
tn_tensor *tn_lm_run(void *m, tn_decoder_args a)
tn_tensor *tn_look_at(tn_look *l, char *path)
tn_status tn_look_backward(tn_look *l, tn_tensor *loss, tn_tensor *seed)
tn_scope tn_look_begin(tn_look *l)
int64_t tn_look_count(tn_look *l)
void tn_look_free(tn_look *l)
tn_tensor *tn_look_grad_at(tn_look *l, char *path)
char *tn_look_name(tn_look *l, int64_t i)
tn_look *tn_look_new()
tn_status tn_look_request_run(tn_look *l, tn_look_request_args a)
tn_memory tn_memory_now()
void tn_model_close(tn_model *m)
tn_model tn_model_open_run(char *path, tn_model_config c)
tn_status tn_model_save_run(tn_model *m, char *path, tn_model_save_args a)
tn_tensor *tn_module_call(void *m, tn_tensor *x)
tn_each tn_module_each(void *m, int what)
void tn_module_print(FILE *to, void *m)
void tn_module_train(void *m, bool on)
void tn_module_zero_grad(void *m)
int tn_ndim(tn_tensor *t)
bool tn_needs_grad(tn_tensor *t)
bool tn_next(tn_each *e)
tn_scope tn_no_grad_begin()
tn_tensor *tn_normal_of(tn_dtype dt, tn_shape s, double mean, double std)
int64_t tn_numel(tn_tensor *t)
tn_tensor *tn_ones_like(tn_tensor *t)
tn_tensor *tn_ones_of(tn_dtype dt, tn_shape s)
tn_tensor *tn_permutation(int64_t n)
void tn_print(FILE *to, tn_tensor *t)
tn_tensor *tn_randint(tn_shape s, int64_t low, int64_t high)
tn_tensor *tn_requires_grad(tn_tensor *t)
tn_safetensors_entry tn_safetensors_at(tn_safetensors *f, int64_t i)
void tn_safetensors_close(tn_safetensors *f)
int64_t tn_safetensors_count(tn_safetensors *f)
tn_tensor *tn_safetensors_get_at(tn_safetensors *f, int64_t i)
tn_safetensors *tn_safetensors_open(char *path)
tn_status tn_safetensors_put(tn_safetensors_writer *w, char *name, tn_tensor *t)
tn_status tn_safetensors_save(tn_safetensors_writer *w, char *path)
void tn_safetensors_writer_free(tn_safetensors_writer *w)
tn_safetensors_writer *tn_safetensors_writer_new()
tn_tensor *tn_scalar_of(tn_dtype dt, double value)
tn_scope tn_scope_begin()
void tn_scope_end(tn_scope s)
void tn_seed(uint64_t seed)
tn_generated tn_seq2seq_generate_run(tn_seq2seq *m, tn_tensor *source, tn_generate_args a)
tn_tensor *tn_seq2seq_run(tn_seq2seq *m, tn_seq2seq_args a)
void tn_set_threads(int n)
tn_shape tn_shape_of(tn_tensor *t)
char *tn_status_name(tn_status s)
tn_shape tn_strides_of(tn_tensor *t)
void tn_string_free(tn_string *s)
tn_status tn_tokenizer_batch_run(tn_tokenizer *t, tn_token_batch *to, int64_t n, char **texts, tn_encode_args o)
tn_status tn_tokenizer_decode_run(tn_tokenizer *t, int32_t *ids, int64_t n, tn_decode_args o, tn_string *to)
tn_status tn_tokenizer_encode_run(tn_tokenizer *t, tn_encoding *e, char *text, size_t bytes, tn_encode_args o)
void tn_tokenizer_free(tn_tokenizer *t)
int64_t tn_tokenizer_id(tn_tokenizer *t, char *piece)
tn_tokenizer *tn_tokenizer_load_run(char *path, tn_tokenizer_config o)
tn_status tn_tokenizer_save(tn_tokenizer *t, char *folder)
int64_t tn_tokenizer_size(tn_tokenizer *t)
tn_tokenizer_roles tn_tokenizer_special(tn_tokenizer *t)
char *tn_tokenizer_token(tn_tokenizer *t, int64_t id)
tn_tokenizer *tn_tokenizer_train_text_run(char *text, size_t bytes, tn_tokenizer_train_args how)
tn_safetensors *tn_torch_open(char *path)
tn_tensor *tn_tuned_run(tn_tuned *m, tn_tuned_args a)
tn_tensor *tn_uniform_of(tn_dtype dt, tn_shape s, double low, double high)
char *tn_version()
void tn_zero_grad(tn_tensor *t)
tn_tensor *tn_zeros_like(tn_tensor *t)
tn_tensor *tn_zeros_of(tn_dtype dt, tn_shape s)
"""
