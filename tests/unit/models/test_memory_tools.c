/* test_memory_tools.c — like test_memory_models.c: analysis, training, tuning and generation, while each allocation
 * fails once, and then all from that one on. */
#include "extras.h"
#include "tests/common/scenarios.h"

#define SIZES .vocab = 11, .dim = 8, .layers = 2, .heads = 2, .positions = 8

static double     weights_of(void *module) { return digest(tn_weights_vector(module)); }
static tn_tensor *gpt_loss(void *model, void *user) { return tn_gpt_loss((tn_gpt *)model, user, NULL); }

/* ---- analysis ---------------------------------------------------------------------------------------------------- */

static double watched(void)
{
    tn_gpt  *m = tn_gpt_new(SIZES);
    tn_look *look = tn_look_new();
    tn_look_request(look, "**.self_attn.weights", .grad = true);
    const tn_scope s = tn_look_begin(look);
    tn_tensor     *loss = tn_scope_return(s, tn_gpt_loss(m, ids(1, 3, 11), NULL));
    tn_look_backward(look, loss, NULL);
    double sum = 0;
    for (int64_t i = 0; tn_error() == TN_OK && i < tn_look_count(look); i++)
        sum += digest(tn_look_grad_at(look, tn_look_name(look, i)));
    tn_look_free(look);
    tn_free(m);
    return sum;
}

static double masks_that_hide(void)
{
    tn_gpt      *m = tn_gpt_new(SIZES);
    tn_tensor   *x = ids(1, 2, 11);
    const double sum = tn_mask_leak(.model = m, .run = gpt_loss, .user = x, .tokens = x).size + digest(x);
    tn_free(m);
    return sum;
}

static double heads_taken_out(void)
{
    tn_gpt       *m = tn_gpt_new(SIZES);
    tn_heads     *h = tn_heads_new(m);
    tn_tensor    *x = ids(2, 3, 11);
    int64_t       order[4] = {0};
    const int64_t n = tn_heads_count(h);
    tn_heads_add(h, gpt_loss, x);
    tn_heads_order(h, TN_LEAST_FIRST, 0, order);
    tn_heads_mask(h, order[0], true);
    const tn_scope s = tn_heads_begin(h);
    const double   masked = digest(tn_gpt_forward(m, x));
    tn_scope_end(s);
    tn_heads_prune(h, n / 2, order);
    const double sum = masked + digest(tn_gpt_forward(m, x));
    tn_heads_free(h);
    tn_free(m);
    return sum;
}

static double words_that_add(void)
{
    tn_gpt *m = tn_gpt_new(SIZES);
    tn_eval(m);
    const double sum = digest(tn_attribute(.model = m, .path = "transformer.wte", .score = gpt_loss,
                                           .user = ids(1, 3, 11), .steps = 2, .within = 9));
    tn_free(m);
    return sum;
}

static double where_it_leads(void)
{
    tn_tensor *w[2];
    for (int i = 0; i < 2; i++) w[i] = tn_softmax(tn_normal(TN_SHAPE(1, 2, 3, 3), 0, 1), -1);
    return digest(tn_attention_rollout(2, w)) + digest(tn_attention_flow(2, w));
}

static double a_surface(void)
{
    tn_gpt *m = tn_gpt_new(.vocab = 5, .dim = 4, .layers = 1, .heads = 1, .positions = 4);
    double  z[4] = {NAN, NAN, NAN, NAN};
    tn_surface(.model = m, .loss = gpt_loss, .user = ids(1, 3, 5), .x = tn_weights_direction(m, 1),
               .y = tn_weights_direction(m, 2), .nx = 2, .ny = 2, .x1 = 1, .y1 = 1, .values = z);
    tn_tensor *v[3] = {tn_weights_vector(m), tn_weights_direction(m, 3), tn_weights_direction(m, 4)}, *d = NULL,
              *at = NULL;
    tn_weights_path(3, v, &d, &at);
    tn_free(m);
    return z[0] + z[1] + z[2] + z[3] + digest(at);
}

static double a_probe(void)
{
    tn_tensor   *x = tn_normal(TN_SHAPE(6, 3), 0, 1), *y = tn_reshape(ids(1, 6, 2), TN_SHAPE(6));
    const double right = tn_probe(.x = x, .y = y, .test_x = x, .test_y = y, .hidden = 2, .steps = 2);
    return right + tn_cka(x, tn_normal(TN_SHAPE(6, 2), 0, 1));
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static tn_tensor *squares(void *module, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mse_loss(tn_call((tn_linear *)module, b->x), b->y);
}

static double fitted(void)
{
    tn_linear  *m = tn_linear_new(.in = 3, .out = 2);
    tn_dataset *d =
        tn_dataset_new(.x = tn_normal(TN_SHAPE(4, 3), 0, 1), .y = tn_normal(TN_SHAPE(4, 2), 0, 1), .batch = 2);
    tn_dataset *held = tn_dataset_new(.x = tn_zeros(TN_SHAPE(4, 3)), .y = tn_zeros(TN_SHAPE(4, 2)), .batch = 2);
    tn_fit(m, .train = tn_dataset_source(d), .loss = squares, .epochs = 1, .valid = tn_dataset_source(held),
           .folder = tn_test_new_file("fit"), .restore_best = true);
    const double sum = weights_of(m);
    tn_dataset_free(d), tn_dataset_free(held);
    tn_free(m);
    return sum;
}

static double averaged(void)
{
    tn_linear    *m = tn_linear_new(.in = 3, .out = 2);
    tn_ema       *e = tn_ema_new(m, .decay = 0.9);
    tn_optimizer *o = tn_adafactor_new(m, .lr = 0.1);
    tn_schedule  *s = tn_cosine_lr_new(o, .steps = 4);
    for (int i = 0; i < 2; i++) {
        tn_backward(tn_sum(tn_square(tn_call(m, tn_normal(TN_SHAPE(2, 3), 0, 1)))));
        tn_step(o);
        tn_schedule_step(s);
        tn_ema_update(e);
    }
    tn_ema_swap(e);
    const double sum = weights_of(m);
    tn_ema_free(e);
    tn_optimizer_free(o);
    tn_free(m);
    return sum;
}

static double in_shards(void)
{
    tn_world     *w = tn_world_single();
    tn_linear    *m = tn_linear_new(.in = 3, .out = 2);
    tn_replica   *r = tn_replica_new(w, m, .shards = 3);
    tn_optimizer *o = tn_lamb_new(m, .lr = 0.1);
    tn_tensor    *x = tn_normal(TN_SHAPE(6, 3), 0, 1);
    for (tn_part p = {0}; tn_replica_next(r, &p);) {
        tn_batch b = {0};
        tn_batch_cut(&b, p.shard, 6);
        tn_replica_backward(r, tn_mean(tn_square(tn_call(m, tn_narrow(x, 0, b.first, b.rows)))), (double)b.rows);
    }
    tn_step(o);
    const double sum = weights_of(m);
    tn_optimizer_free(o);
    tn_replica_free(r);
    tn_free(m);
    tn_world_free(w);
    return sum;
}

/* ---- tuning ------------------------------------------------------------------------------------------------------ */

static double adapters(void)
{
    const char *dir = tn_test_folder("adapter");
    double      sum = 0;
    for (int i = 0; i < 2; i++) {
        tn_tuned *m = tn_tuned_new(tn_bert_new(SIZES, .ff = 8), .task = TN_TASK_CLASSIFICATION, .n = 2);
        if (!i) tn_lora(m, .rank = 1, .trained = tn_tuned_head(m));
        if (i) tn_peft_load(m, dir), tn_lora_merge(m);
        else if (tn_peft_save(m, dir) != TN_OK) sum = NAN;
        tn_eval(m);
        sum += digest(tn_tuned_forward(m, tn_full_of(TN_I64, TN_SHAPE(1, 4), 3)));
        tn_free(m);
    }
    return sum;
}

static double a_tuned_folder(void)
{
    const char        *dir = tn_test_folder("tuned");
    static const char *labels[] = {"no", "yes"};
    tn_tuned *m = tn_tuned_new(tn_bert_new(SIZES, .ff = 8), .task = TN_TASK_CLASSIFICATION, .n = 2, .labels = labels);
    const tn_status saved = tn_tuned_save(m, dir);
    tn_tuned       *n = saved == TN_OK ? tn_tuned_load(dir) : NULL;
    const double    sum = digest(tn_tuned_forward(n, ids(1, 4, 11)));
    tn_free(m), tn_free(n);
    return sum;
}

static const char book[] = "the old man and the sea and the old boat\nthe man sat in the boat and the sea lay still\n";
static tn_tokenizer *pieces(void)
{
    return tn_tokenizer_train_text(book, sizeof book - 1, .kind = TN_WORDPIECE, .vocab_size = 60);
}

static double answers(void)
{
    static const char text[] =
        "{\"data\": [{\"paragraphs\": [{\"context\": \"the old man sat in the boat\", \"qas\": [{\"id\": \"q\", "
        "\"question\": \"the sea\", \"answers\": [{\"text\": \"the boat\", \"answer_start\": 19}]}]}]}]}";
    tn_tokenizer *t = pieces();
    tn_labelled  *l = tn_labelled_parse(text, sizeof text - 1, .kind = TN_LABELLED_ANSWERS, .form = "squad");
    tn_features  *f = tn_features_new(l, t, NULL, .batch = 2, .length = 16, .stride = 4, .fixed = true);
    tn_source     s = tn_features_source(f);
    tn_batch      b = {.x = NULL};
    double        sum = NAN;
    if (tn_error() == TN_OK && s.next(s.user, &b)) sum = tn_item(tn_sum(tn_to(b.y, TN_F64)));
    tn_features_free(f);
    tn_labelled_free(l);
    tn_tokenizer_free(t);
    return sum;
}

static double filled_in(void)
{
    static const char *const texts[] = {"the old man", "the sea"};
    tn_tokenizer            *t = pieces();
    tn_bert                 *m = tn_bert_new(.vocab = 60, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 16);
    tn_bert_fill             fill[2] = {{0}};
    tn_eval(m);
    tn_bert_fill_in(m, t, "the old [MASK]", 2, 2, fill);
    const double sum = digest(tn_bert_embed(m, t, 2, texts, TN_POOL_MEAN)) + fill[0].probability;
    tn_free(m);
    tn_tokenizer_free(t);
    return sum;
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

#define LLAMA .vocab = 11, .dim = 8, .layers = 1, .heads = 2, .ff = 8

static double written(tn_decoding *d, void *m, void *other)
{
    tn_generated g = tn_generate(d, ids(1, 2, 11), .most = 5, .sample = true, .top_k = 4, .top_p = 0.9);
    const double sum = g.scores ? tn_item(tn_sum(g.scores)) + digest(tn_to(g.tokens, TN_F64)) : NAN;
    tn_decoding_free(d);
    tn_module_free(m), tn_module_free(other);
    return sum;
}
static double without_end(void)
{
    tn_llama *m = tn_llama_new(LLAMA);
    return written(tn_lm_rolling(m, 1, 6, 1), m, NULL);
}
static double in_a_window(void)
{
    tn_llama *m = tn_llama_new(LLAMA, .scores.window = 3);
    return written(tn_lm_decoding(m, 1, 8), m, NULL);
}
static double proposed(void)
{
    tn_llama      *m = tn_llama_new(LLAMA), *draft = tn_llama_new(LLAMA);
    tn_speculation count = {0};
    tn_eval(m), tn_eval(draft);
    return written(tn_speculative_decoding(m, draft, 10, 2, &count), m, draft);
}

static double proposed_from_the_text(void)
{
    tn_llama      *m = tn_llama_new(LLAMA);
    tn_speculation count = {0};
    tn_eval(m);
    tn_decoding *d = tn_speculative_decoding(m, NULL, 24, 4, &count);
    tn_generated g = tn_generate(d, tn_ones_of(TN_I64, TN_SHAPE(1, 6)), .most = 16);
    const double sum = g.scores ? tn_item(tn_sum(g.scores)) + digest(tn_to(g.tokens, TN_F64)) : NAN;
    tn_decoding_free(d);
    tn_module_free(m);
    return sum;
}
static double read_from_a_file(void)
{
    tn_gpt        *m = tn_gpt_new(SIZES);
    const char    *path = tn_test_file("prompt.cache");
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = ids(1, 5, 11);
    double         sum = NAN;
    tn_eval(m);
    tn_decoding *d = tn_gpt_decoding(m, 1, 8), *e = tn_gpt_decoding(m, 1, 8);
    if (d && e && d->kind->scores(d, x) && tn_prompt_cache_save(d, x, path) == TN_OK) {
        const int64_t n = tn_prompt_cache_load(e, x, path);
        sum = n < 0 ? NAN : digest(e->kind->scores(e, tn_narrow(x, 1, n, 5 - n)));
    }
    tn_scope_end(s);
    tn_decoding_free(d), tn_decoding_free(e);
    tn_free(m);
    return sum;
}

/* ---- texts and files --------------------------------------------------------------------------------------------- */

static double unigrams(void)
{
    tn_tokenizer  *t = tn_tokenizer_train_text(book, sizeof book - 1, .kind = TN_UNIGRAM, .vocab_size = 40);
    tn_token_batch b = {.ids = NULL};
    tn_tokenizer_batch(t, &b, 1, ((const char *const[]){"a boat and the man"}));
    const double sum = b.ids ? digest(tn_to(b.ids, TN_F64)) : NAN;
    tn_tokenizer_free(t);
    return sum;
}

static double a_folder_of_pieces(void)
{
    const char     *dir = tn_test_folder("pieces");
    tn_tokenizer   *t = pieces();
    const tn_status saved = tn_tokenizer_save(t, dir);
    tn_tokenizer   *u = saved == TN_OK ? tn_tokenizer_load(dir) : NULL;
    const double    sum = u ? (double)tn_tokenizer_size(u) : NAN;
    tn_tokenizer_free(t), tn_tokenizer_free(u);
    return sum;
}

static double vectors_learned(void)
{
    const char *path = tn_test_file("book.txt");
    if (tn_file_write(path, book, sizeof book - 1) != TN_OK) return NAN;
    tn_vectors *v = NULL;
    for (int again = 0; again < 2; again++) { /* the second call resumes from the end of the first one */
        tn_vectors_free(v);
        v = tn_vectors_train(1, &path, .dim = 4, .min_count = 1, .epochs = 1, .sample = 0,
                             .checkpoint = tn_test_file("learned"), .resume = again);
    }
    const double sum = digest(tn_vectors_tensor(v));
    tn_vectors_free(v);
    return sum;
}

static double scores_of_texts(void)
{
    const tn_text right = tn_text_of("the old man sat in the boat"), said = tn_text_of("the man sat in a boat");
    tn_bleu       bleu = {0};
    tn_ter        ter = {0};
    tn_string     words = {0};
    tn_entities  *e = tn_entities_new(TN_ENTITIES_CONLL);
    tn_bleu_add(&bleu, said, 1, &right), tn_ter_add(&ter, said, 1, &right);
    tn_bleu_words(TN_BLEU_13A, said, &words);
    tn_entities_add(e, tn_text_of("B-PER"), tn_text_of("B-PER"));
    tn_entities_end_sentence(e);
    const double sum = tn_bleu_score(&bleu) + tn_ter_score(&ter) + (double)words.bytes;
    tn_string_free(&words);
    tn_entities_free(e);
    return sum;
}

static double whatever_opens(void)
{
    const char *dir = tn_test_folder("any");
    tn_vit     *v =
        tn_vit_new(.image = 4, .patch = 2, .channels = 1, .classes = 2, .dim = 8, .heads = 2, .layers = 1, .ff = 8);
    const tn_status saved = tn_vit_save(v, dir);
    tn_model        m = saved == TN_OK ? tn_model_open(dir) : (tn_model){.module = NULL};
    const double    sum = m.module ? weights_of(m.module) : NAN;
    tn_model_close(&m);
    tn_free(v);
    return sum;
}

/* ---- all scenarios ----------------------------------------------------------------------------------------------- */

static const scenario scenarios[] = {watched,
                                     masks_that_hide,
                                     heads_taken_out,
                                     words_that_add,
                                     where_it_leads,
                                     a_surface,
                                     a_probe,
                                     fitted,
                                     averaged,
                                     in_shards,
                                     adapters,
                                     a_tuned_folder,
                                     answers,
                                     filled_in,
                                     without_end,
                                     in_a_window,
                                     proposed,
                                     unigrams,
                                     a_folder_of_pieces,
                                     vectors_learned,
                                     scores_of_texts,
                                     whatever_opens,
                                     proposed_from_the_text,
                                     read_from_a_file};

__attribute__((constructor)) static void register_extras(void) { tn_extras_register(); } /* ViT */
SCENARIOS("memory_tools", scenarios, 11, 61);
