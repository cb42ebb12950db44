/* models.c — examples of models: making, running, saving, loading, generating, looking inside. All are very small. */
#include "show.h"

#include <sys/stat.h>

static void shape(const tn_tensor *t)
{
    char text[192];
    puts(tn_shape_text(tn_shape_of(t), text, sizeof text));
}

EXAMPLE(bert_files)
{
    tn_bert *m = tn_bert_new(.vocab = 50, .dim = 16, .layers = 1, .heads = 2, .ff = 32);
    mkdir("bert", 0777);
    if (tn_bert_save(m, "bert") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_bert_load("bert"); /* a directory in Hugging Face's format */
    printf("%d %d\n", (int)tn_bert_config_load("bert").vocab, (int)tn_bert_size("base").dim);
    tn_tensor *ids = tn_reshape(tn_arange(6), TN_SHAPE(2, 3)), *y = tn_bert_forward(m, ids);
    shape(tn_bert_mlm_logits(m, y, NULL));
    shape(tn_bert_pooled(m, y));
    shape(tn_bert_nsp_logits(m, y));
    shape(tn_bert_sentences(y, NULL, TN_POOL_MEAN));
    tn_free(m);
    m = tn_bert_new(.kind = TN_ELECTRA, .vocab = 50, .dim = 16, .layers = 1, .heads = 2, .replaced = true);
    shape(tn_bert_replaced_logits(m, tn_bert_forward(m, ids)));
    tn_free(m);
}

EXAMPLE(bert_with_texts)
{
    const char   *text = "the cat sat on the mat", *texts[] = {"the cat", "on the mat"};
    tn_tokenizer *t = tn_tokenizer_train_text(text, strlen(text), .vocab_size = 60, .min_count = 1);
    tn_bert      *m = tn_bert_new(.vocab = tn_tokenizer_size(t), .dim = 16, .layers = 1, .heads = 2, .ff = 32);
    tn_bert_fill  fill[2];
    tn_eval(m);
    printf("%d mask\n", (int)tn_bert_fill_in(m, t, "the [MASK] sat", 2, 2, fill));
    printf("%d\n", fill[0].probability >= fill[1].probability);
    shape(tn_bert_embed(m, t, 2, texts, TN_POOL_MEAN));
    tn_free(m);
    tn_tokenizer_free(t);
}

static void scores_of(void *user, int64_t feature, int64_t pieces, int64_t n, const float *scores)
{
    (void)pieces, (void)scores;
    *(int64_t *)user += n;
    if (feature == 0) printf("%d scores of the first text\n", (int)n);
}

EXAMPLE(fine_tuned_bert)
{
    const char   *tsv = "a good film\tgood\na bad film\tbad\n", *names[] = {"bad", "good"};
    tn_tokenizer *t = tn_tokenizer_train_text(tsv, strlen(tsv), .vocab_size = 60, .min_count = 1);
    tn_bert      *encoder = tn_bert_new(.vocab = tn_tokenizer_size(t), .dim = 16, .layers = 1, .heads = 2, .ff = 32);
    tn_tuned     *m = tn_tuned_new(encoder, .task = TN_TASK_CLASSIFICATION, .n = 2, .labels = names);
    tn_labelled  *l = tn_labelled_parse(tsv, strlen(tsv), .kind = TN_LABELLED_TEXTS);
    tn_labels    *labels = tn_labels_of(l);
    tn_features  *f = tn_features_new(l, t, labels, .length = 16, .fixed = true);
    tn_source     s = tn_features_source(f);
    tn_batch      b;
    int64_t       scores = 0;
    if (tn_source_next(&s, &b)) {
        tn_tensor *y = tn_tuned_logits(m, &b);
        shape(y);
        printf("%d\n", tn_item(tn_tuned_loss(m, y, b.y)) > 0 && tn_item(tn_tuned_fit_loss(m, &b, NULL)) > 0);
        shape(tn_tuned_forward(m, b.x));
    }
    tn_tuned_each(m, f, scores_of, &scores);
    printf("%d, %s\n", (int)scores, tn_tuned_head(m));
    mkdir("tuned", 0777);
    if (tn_tuned_save(m, "tuned") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_tuned_load("tuned");
    puts(m->labels[1]);
    tn_free(m);
    tn_features_free(f);
    tn_labels_free(labels);
    tn_labelled_free(l);
    tn_tokenizer_free(t);
}

EXAMPLE(gpt_files)
{
    tn_gpt *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    mkdir("gpt", 0777);
    if (tn_gpt_save(gpt, "gpt") != TN_OK) puts(tn_error_message());
    tn_free(gpt);
    gpt = tn_gpt_load("gpt");
    printf("%d %d\n", (int)gpt->config.dim, (int)tn_gpt_size("small").layers);
    tn_free(gpt);
}

EXAMPLE(llama)
{
    tn_llama  *m = tn_llama_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 4, .kv_heads = 2);
    tn_tensor *ids = tn_reshape(tn_arange(4), TN_SHAPE(1, 4));
    shape(tn_llama_forward(m, ids));
    printf("%d\n", tn_item(tn_llama_loss(m, ids, NULL)) > 0);
    tn_decoding *d = tn_llama_decoding(m, 1, 10);
    shape(tn_generate(d, ids, .most = 3).tokens);
    tn_decoding_free(d);
    mkdir("llama", 0777);
    if (tn_llama_save(m, "llama") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_llama_load("llama");
    d = tn_lm_rolling(m, 1, 8, 2); /* a text of any length in a cache of 8 positions */
    shape(tn_generate(d, ids, .most = 12).tokens);
    tn_decoding_free(d);
    tn_free(m);
}

EXAMPLE(any_language_model)
{
    tn_gpt      *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    tn_tensor   *ids = tn_reshape(tn_arange(4), TN_SHAPE(1, 4));
    tn_lm_info   info = tn_lm_info_of(gpt);
    tn_kv_cache *cache = tn_blocks_cache(tn_lm_blocks(gpt), 1, 16, 0);
    tn_scope     s = tn_no_grad_begin();
    tn_eval(gpt);
    shape(tn_lm_forward(gpt, ids, .cache = cache, .last = true));
    printf("%s, %d tokens; loss above 0: %d\n", info.type, (int)info.vocab, tn_item(tn_lm_loss(gpt, ids, NULL)) > 0);
    tn_scope_end(s);
    tn_kv_cache_free(cache);
    tn_decoding *d = tn_lm_decoding(gpt, 1, 16);
    printf("%d read\n", (int)tn_prompt_cache_load(d, ids, "missing.cache"));
    tn_clear_error();
    tn_generate(d, ids, .most = 1);
    if (tn_prompt_cache_save(d, ids, "example.cache") != TN_OK) puts(tn_error_message());
    tn_decoding_free(d);
    d = tn_lm_decoding(gpt, 1, 16);
    printf("%d read\n", (int)tn_prompt_cache_load(d, ids, "example.cache"));
    tn_decoding_free(d);
    tn_speculation count = {0};
    d = tn_speculative_decoding(gpt, gpt, 16, 2, &count); /* the draft is a smaller model */
    tn_generate(d, ids, .most = 6, .unscored = true);
    printf("%d\n", count.accepted <= count.proposed && count.readings > 0);
    tn_decoding_free(d);
    mkdir("gpt", 0777);
    if (tn_lm_save(gpt, "gpt") != TN_OK) puts(tn_error_message());
    tn_free(gpt);
    tn_lm *lm = tn_lm_load("gpt");
    printf("%d\n", (int)tn_lm_info_of(lm).dim);
    tn_free(lm);
}

EXAMPLE(open_any_model)
{
    tn_gpt *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    mkdir("gpt", 0777);
    if (tn_gpt_save(gpt, "gpt") != TN_OK) puts(tn_error_message());
    tn_free(gpt);
    tn_model m = tn_model_open("gpt", .no_tokenizer = true); /* a directory, a .gguf file or llama2.c's .bin */
    printf("%d %s %s\n", m.family == TN_MODEL_DECODER, m.type, m.form);
    printf("%s\n", tn_status_name(tn_model_save(&m, "gpt", .no_tokenizer = true)));
    tn_model_close(&m);
}

EXAMPLE(reformer)
{
    tn_reformer *m = tn_reformer_new(.vocab = 20, .dim = 16, .layers = 2, .heads = 2, .head_dim = 8, .ff = 32,
                                     .chunk = 4, .local_chunk = 4, .positions = 16);
    tn_tensor   *ids = tn_reshape(tn_arange(8), TN_SHAPE(1, 8));
    shape(tn_reformer_forward(m, ids));
    printf("%d\n", tn_item(tn_reformer_loss(m, ids, NULL)) > 0);
    tn_decoding *d = tn_reformer_decoding(m, 1, 16);
    tn_decoding_free(d);
    mkdir("reformer", 0777);
    if (tn_reformer_save(m, "reformer") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_reformer_load("reformer");
    puts(m ? m->kinds : tn_error_message());
    tn_free(m);
}

EXAMPLE(recurrent_language_model)
{
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = 20, .dim = 8, .hidden = 12, .layers = 2);
    tn_tensor *ids = tn_reshape(tn_arange(6), TN_SHAPE(2, 3));
    shape(tn_rnn_lm_forward(m, ids));
    printf("%d\n", tn_item(tn_rnn_lm_loss(m, ids, ids)) > 0);
    tn_decoding *d = tn_rnn_lm_decoding(m, 1, 10);
    tn_decoding_free(d);
    printf("%d\n", (int)tn_rnn_lm_size("awd").hidden);
    mkdir("rnn", 0777);
    if (tn_rnn_lm_save(m, "rnn") != TN_OK) puts(tn_error_message());
    tn_free(tn_rnn_lm_load("rnn"));
    tn_carried_lm *c = tn_carried_lm_new(m, 2); /* owns m: the state of a batch starts the next one */
    tn_batch       b = {.x = ids, .y = ids};
    tn_batch_put(&b, "fresh", tn_ones(TN_SHAPE(1)));
    printf("%d\n", tn_item(tn_carried_lm_loss(c, &b, NULL)) > 0);
    tn_free(c);
}

EXAMPLE(elmo_and_skip_thought)
{
    tn_elmo      *m = tn_elmo_new(.vocab = 20, .dim = 8, .hidden = 12);
    tn_text       lines[] = {tn_text_of("the cat sat"), tn_text_of("on")};
    tn_elmo_batch b = tn_elmo_sentences(m, 2, lines);
    tn_tensor    *layer[TN_ELMO_LAYERS];
    if (tn_elmo_vectors(m, &b, layer)) shape(layer[0]);
    shape(tn_elmo_loss(m, &b, tn_zeros_of(TN_I64, tn_shape_of(b.rows))));
    mkdir("elmo", 0777);
    if (tn_elmo_save(m, "elmo") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_elmo_load("elmo");
    printf("%d %d\n", (int)m->config.dim, (int)tn_elmo_size("large").dim);
    tn_free(m);
    tn_skip_thought *s = tn_skip_thought_new(.vocab = 20, .dim = 8, .hidden = 12);
    tn_tensor       *ids = tn_reshape(tn_arange(6), TN_SHAPE(2, 3)), *lengths = tn_full_of(TN_I64, TN_SHAPE(2), 3);
    shape(tn_skip_thought_encode(s, tn_call(s->words, ids), lengths));
    shape(tn_skip_thought_loss(s, ids, lengths, ids, ids));
    mkdir("skip", 0777);
    if (tn_skip_thought_save(s, "skip") != TN_OK) puts(tn_error_message());
    tn_free(tn_skip_thought_load("skip"));
    tn_free(s);
}

EXAMPLE(translation)
{
    tn_seq2seq *m = tn_seq2seq_new(.source_words = 20, .dim = 16, .layers = 1, .heads = 2, .ff = 32);
    tn_tensor  *source = tn_reshape(tn_add_scalar(tn_arange(6), 4), TN_SHAPE(2, 3)), *alignment;
    tn_tensor  *target = tn_reshape(tn_add_scalar(tn_arange(8), 2), TN_SHAPE(2, 4));
    shape(tn_seq2seq_forward(m, source, target, .alignment = &alignment));
    shape(alignment);
    printf("%d\n", tn_item(tn_seq2seq_loss(m, source, target, .label_smoothing = 0.1)) > 0);
    tn_eval(m);
    tn_decoding *d = tn_seq2seq_decoding(m, source, 2, 8);
    if (tn_seq2seq_shortlist(d, tn_arange(5)) != TN_OK) puts(tn_error_message()); /* only the tokens 0 to 4 */
    tn_decoding_free(d);
    printf("%d texts\n", (int)tn_size(tn_seq2seq_generate(m, source, .most = 4, .beams = 2).tokens, 0));
    printf("%s %d %d\n", tn_seq2seq_kind_name(TN_SEQ2SEQ_LUONG), tn_seq2seq_kind_of("rnn") == TN_SEQ2SEQ_RNN,
           (int)tn_seq2seq_size("tiny").dim);
    printf("%d\n",
           (int)tn_seq2seq_t5(TN_WITH(tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, .source_words = 20, .dim = 16)).relative);
    mkdir("seq2seq", 0777);
    if (tn_seq2seq_save(m, "seq2seq") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_seq2seq_load("seq2seq");
    printf("%d\n", (int)m->config.dim);
    tn_free(m);
}

EXAMPLE(vit)
{
    const char *names[] = {"cat", "dog"};
    tn_vit     *m = tn_vit_new(.image = 8, .patch = 4, .channels = 1, .dim = 16, .layers = 1, .heads = 2, .classes = 2,
                               .pooler = 16);
    tn_tensor  *x = tn_zeros(TN_SHAPE(3, 1, 8, 8)), *y = tn_vit_forward(m, x);
    shape(y);
    shape(tn_vit_pooled(m, y));
    shape(tn_vit_logits(m, y, NULL));
    tn_vit_set_labels(m, names);
    printf("%s, %d\n", tn_vit_label(m, 1), (int)tn_vit_size("base").dim);
    mkdir("vit", 0777);
    if (tn_vit_save(m, "vit") != TN_OK) puts(tn_error_message());
    tn_free(m);
    m = tn_vit_load("vit");
    puts(tn_vit_label(m, 0));
    tn_free(m);
}

static tn_tensor *blocks_loss(void *model, void *user)
{
    return tn_mean(tn_square(tn_blocks_forward((tn_blocks *)model, user)));
}

EXAMPLE(heads)
{
    tn_blocks *m = tn_blocks_new(.dim = 8, .heads = 2, .ff = 16, .layers = 2, .dropout = 0);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 3, 8), 0, 1);
    tn_heads  *h = tn_heads_new(m);
    int64_t    order[4];
    tn_heads_add(h, blocks_loss, x); /* importance: the gradient of a gate on the head's output */
    tn_heads_order(h, TN_LEAST_FIRST, 0, order);
    tn_head first = tn_heads_at(h, order[0]);
    printf("%d heads; the least important: %d\n", (int)tn_heads_count(h), first.importance >= 0);
    tn_heads_mask(h, order[0], true);
    tn_scope s = tn_heads_begin(h);
    shape(tn_blocks_forward(m, x)); /* without that head */
    tn_scope_end(s);
    printf("%s\n", tn_status_name(tn_heads_prune(h, 1, order)));
    tn_heads_free(h);
    tn_free(m);
}

EXAMPLE(attention_through_layers)
{
    tn_tensor *w = tn_softmax(tn_normal(TN_SHAPE(1, 2, 3, 3), 0, 1), -1), *weights[] = {w, w}; /* [B, heads, T, T] */
    shape(tn_attention_rollout(2, weights));
    shape(tn_attention_flow(2, weights));
}

static tn_tensor *score(void *model, void *user)
{
    return tn_sum(tn_select(tn_gpt_forward((tn_gpt *)model, user), -1, 3));
}

EXAMPLE(attribution)
{
    tn_gpt    *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    tn_tensor *ids = tn_reshape(tn_arange(3), TN_SHAPE(1, 3));
    tn_eval(gpt);
    shape(tn_attribute(.model = gpt, .path = "transformer.wte", .score = score, .user = ids, .within = 1));
    tn_free(gpt);
}

static tn_tensor *line_loss(void *model, void *user) { return tn_mean(tn_square(tn_call((tn_linear *)model, user))); }

EXAMPLE(loss_surface)
{
    tn_linear *m = tn_linear_new(.in = 2, .out = 1);
    tn_tensor *at = tn_weights_vector(m), *x = tn_weights_direction(m, 1), *path[] = {at, tn_mul_scalar(at, 2), x};
    tn_tensor *directions, *places;
    double     values[3] = {NAN, NAN, NAN};
    tn_surface(.model = m, .loss = line_loss, .user = tn_ones(TN_SHAPE(4, 2)), .x = x, .nx = 3, .ny = 1, .x0 = -1,
               .x1 = 1, .values = values);
    printf("%d\n", values[1] >= 0);
    tn_weights_path(3, path, &directions, &places);
    shape(places);
    printf("%s\n", tn_status_name(tn_weights_set(m, at)));
    tn_free(m);
}

static tn_tensor *read_all(void *model, void *user) { return tn_sum(tn_call((tn_sequential *)model, user)); }

EXAMPLE(leaking_mask)
{
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_embedding_new(.count = 20, .dim = 8));
    tn_append(m, tn_lstm_new(.in = 8, .hidden = 4, .bidirectional = true)); /* it reads later tokens */
    tn_append(m, tn_linear_new(.in = 8, .out = 20));
    tn_tensor *ids = tn_reshape(tn_arange(12), TN_SHAPE(2, 6));
    tn_leak    l = tn_mask_leak(.model = m, .run = read_all, .user = ids, .tokens = ids);
    printf("leak: %d, module %s, row %lld, position %lld, tokens from %lld\n", l.size > 0, l.path, (long long)l.row,
           (long long)l.position, (long long)l.from);
    tn_free(m);
}

EXAMPLE(probe)
{
    tn_tensor *x = tn_normal(TN_SHAPE(40, 3), 0, 1);
    tn_tensor *y = tn_to(tn_gt(tn_select(x, 1, 0), tn_zeros(TN_SHAPE(40))), TN_I64);
    printf("accuracy above 0.9: %d\n", tn_probe(.x = x, .y = y, .test_x = x, .test_y = y) > 0.9);
    printf("%.2f\n", tn_cka(x, tn_mul_scalar(x, 3)));
}

EXAMPLE(adapters_in_files)
{
    tn_llama *m = tn_llama_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 4);
    tn_lora(m, .rank = 2, .names = "q_proj");
    mkdir("adapter", 0777);
    printf("%s\n", tn_status_name(tn_peft_save(m, "adapter")));
    printf("%s\n", tn_status_name(tn_peft_load(m, "adapter")));
    tn_free(m);
}

static tn_tensor *fit_loss(void *m, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mse_loss(tn_call((tn_linear *)m, b->x), b->y);
}

static void plan(const tn_verify_plan *p, void *user)
{
    (void)user;
    printf("%d of %d segments\n", (int)p->segments, (int)p->segments_in_all);
}

EXAMPLE(verify_a_run)
{
    tn_tensor  *x = tn_reshape(tn_linspace(-1, 1, 16), TN_SHAPE(16, 1));
    tn_dataset *data = tn_dataset_new(.x = x, .y = x, .batch = 4);
    tn_linear  *m = tn_linear_new(.in = 1, .out = 1), *before = tn_copy(m);
    tn_fit_args run = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .module = m, .train = tn_dataset_source(data),
                              .loss = fit_loss, .epochs = 2, .folder = "run", .save_every = 4, .keep = 9);
    tn_seed(1);
    tn_fit_run(run);
    run.module = before;
    tn_seed(1);
    tn_verify_result r = tn_verify(&run, .plan = plan, .segments = 1, .seed = 1);
    puts(r.why == TN_VERIFY_IDENTICAL ? "identical" : r.why == TN_VERIFY_DIFFERS ? r.text : tn_error_message());
    tn_clear_error();
    tn_dataset_free(data);
    tn_free(before);
    tn_free(m);
}
