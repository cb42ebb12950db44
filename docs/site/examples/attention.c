/* attention.c — examples of attention modules, masks, positions, Transformers, caches, and of looks into them. */
#include "show.h"

static void shape(const tn_tensor *t)
{
    char text[192];
    puts(tn_shape_text(tn_shape_of(t), text, sizeof text));
}

EXAMPLE(attention_module)
{
    tn_mha    *m = tn_mha_new(.dim = 8, .heads = 2);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 5, 8), 0, 1), *weights;
    shape(tn_mha_forward(m, x, x, x, .causal = true, .weights = &weights, .weights_per_head = true));
    shape(weights);
    tn_free(m);
    m = tn_mha_new(.dim = 8, .heads = 4, .kv_heads = 2, .rotary = true, .qk_norm = TN_QK_NORM_HEAD);
    shape(tn_mha_forward(m, x, x, x, .angles = tn_mha_angles(m, 0, 5)));
    tn_free(m);
}

EXAMPLE(masks)
{
    tn_print(stdout, tn_causal_mask(3));
    tn_tensor  *tokens = tn_from_data(TN_I64, TN_SHAPE(2, 3), (int64_t[]){5, 6, 0, 7, 0, 0});
    tn_tensor  *padding = tn_padding_mask(tokens, 0); /* true is padding */
    tn_unpadded u = tn_unpad(padding);
    tn_tensor  *rows = tn_unpad_rows(u, tn_ones(TN_SHAPE(2, 3, 4)));
    shape(rows); /* without padding */
    shape(tn_pad_rows(u, rows));
}

EXAMPLE(attention_to_a_memory)
{
    tn_tensor             *q = tn_ones(TN_SHAPE(2, 4)), *memory = tn_normal(TN_SHAPE(2, 3, 4), 0, 1), *weights;
    tn_dot_attention      *dot = tn_dot_attention_new(.query = 4, .memory = 4, .general = true);
    tn_additive_attention *add = tn_additive_attention_new(.query = 4, .memory = 4);
    shape(tn_dot_attention_forward(dot, q, memory, .weights = &weights));
    shape(weights);
    shape(tn_additive_attention_forward(add, q, memory, .keys = tn_additive_attention_keys(add, memory)));
    tn_free(dot);
    tn_free(add);
}

EXAMPLE(positions)
{
    tn_positions          *sines = tn_sinusoidal_positions_new(.dim = 4, .order = TN_SINUSOIDS_HALVES);
    tn_positions          *learned = tn_learned_positions_new(.dim = 4, .length = 10);
    tn_relative_positions *relative = tn_relative_positions_new(.heads = 2, .buckets = 8);
    tn_print(stdout, tn_positions_forward(sines, tn_zeros(TN_SHAPE(1, 2, 4)), 0));
    shape(tn_positions_forward(learned, tn_zeros(TN_SHAPE(1, 2, 4)), 3));
    shape(tn_relative_positions_forward(relative, 2, 5));
    tn_free(sines);
    tn_free(learned);
    tn_free(relative);
}

EXAMPLE(transformer)
{
    tn_transformer *m = tn_transformer_new(.dim = 8, .heads = 2, .encoder_layers = 1, .decoder_layers = 1, .ff = 16);
    shape(tn_transformer_forward(m, tn_ones(TN_SHAPE(1, 5, 8)), tn_ones(TN_SHAPE(1, 3, 8)), .causal = true));
    tn_free(m);
    tn_blocks *stack = tn_transformer_encoder_new(.dim = 8, .heads = 2, .ff = 16, .layers = 2);
    shape(tn_transformer_encoder_forward(stack, tn_ones(TN_SHAPE(2, 5, 8))));
    tn_free(stack);
}

static tn_tensor *next_token(void *user)
{
    tn_blocks **at = user;
    return tn_blocks_forward(at[0], tn_ones(TN_SHAPE(1, 1, 8)), .cache = (tn_kv_cache *)at[1], .causal = true);
}

EXAMPLE(key_value_cache)
{
    tn_blocks   *m = tn_blocks_new(.dim = 8, .heads = 2, .ff = 16, .layers = 2, .dropout = 0);
    tn_scope     s = tn_no_grad_begin();
    tn_kv_cache *cache = tn_blocks_cache(m, 1, 10, 0); /* 1 row of at most 10 positions */
    tn_blocks_forward(m, tn_ones(TN_SHAPE(1, 3, 8)), .cache = cache, .causal = true);
    printf("%d positions, %d row\n", (int)tn_kv_cache_length(cache), (int)tn_kv_cache_rows(cache));
    void      *user[] = {m, cache};
    tn_replay *r = tn_kv_cache_record(cache, next_token, user);
    shape(tn_kv_cache_replay(cache, r)); /* a position more */
    printf("%d, %d\n", (int)tn_kv_cache_length(cache), tn_kv_cache_at(cache) == NULL);
    tn_replay_free(r);
    tn_kv_cache_reorder(cache, tn_zeros_of(TN_I64, TN_SHAPE(1)));
    tn_kv_cache_forget(cache, 0, 1);
    tn_kv_cache_trim(cache, 2);
    printf("%d\n", (int)tn_kv_cache_length(cache));
    tn_kv_cache_clear(cache);
    tn_kv_cache_free(cache);
    cache = tn_kv_cache_new(.layers = 2, .batch = 1, .length = 4, .heads = 2, .head_dim = 4);
    printf("%d\n", (int)tn_kv_cache_length(cache));
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}

static tn_tensor *no_weights(const char *path, tn_tensor *t, void *user)
{
    (void)user;
    printf("change %s\n", path);
    return tn_zeros_like(t);
}

EXAMPLE(looking_inside)
{
    tn_blocks *m = tn_blocks_new(.dim = 8, .heads = 2, .ff = 16, .layers = 2, .dropout = 0);
    tn_look   *look = tn_look_new();
    tn_look_request(look, "layers.*.self_attn.weights");
    tn_look_request(look, "layers.1.self_attn.heads", .change = no_weights, .grad = true);
    tn_scope   s = tn_look_begin(look);
    tn_tensor *y = tn_scope_return(s, tn_blocks_forward(m, tn_ones(TN_SHAPE(1, 3, 8))));
    tn_look_backward(look, tn_sum(y), NULL);
    printf("%d records, the first is %s\n", (int)tn_look_count(look), tn_look_name(look, 0));
    shape(tn_look_at(look, "layers.0.self_attn.weights"));
    shape(tn_look_grad_at(look, "layers.1.self_attn.heads"));
    printf("%d\n", (int)tn_look_times(look, "layers.0.self_attn.weights"));
    tn_look_clear(look);
    tn_look_free(look);
    tn_block *first = tn_at(m->layers, 0);
    printf("%d\n", tn_mha_of(&first->self_attn->base) == first->self_attn);
    tn_mha_prune(first->self_attn, 1, (int64_t[]){0});
    printf("%d head left\n", (int)first->self_attn->heads);
    tn_free(m);
}
