/* test_memory_models.c — whole scenarios with modules, models, texts and files, in which each allocation fails once,
 * and then all from that one on, as in tests/unit/core/test_memory.c. The scenarios check for an error only at the end:
 * calls continue with the results of failed ones. */
#include "extras.h"
#include "tests/common/scenarios.h"

/* One step of AdamW; frees the module; returns the new weights. */
static double stepped(void *module, tn_tensor *loss)
{
    double        sum = loss ? tn_item(loss) : NAN;
    tn_module    *m = module;
    tn_optimizer *o =
        m ? tn_adamw_create(TN_WITH(tn_adamw_config, TN_ADAMW_DEFAULTS, .module = m, .lr = 0.01, .clip.norm = 1))
          : NULL;
    if (o && tn_backward(loss) == TN_OK) tn_step(o);
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); m && tn_error() == TN_OK && tn_next(&p);)
        sum += digest(p.tensor);
    tn_optimizer_free(o);
    tn_module_free(module);
    return sum;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static double convolutions(void)
{
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_conv2d_new(.in = 1, .out = 2, .size = 3));
    tn_append(m, tn_batch_norm2d_new(.features = 2));
    tn_append(m, tn_relu_new());
    tn_append(m, tn_flatten_new());
    tn_append(m, tn_linear_new(.in = 8, .out = 3));
    return stepped(
        m, tn_cross_entropy(tn_call(m, tn_normal(TN_SHAPE(2, 1, 4, 4), 0, 1)), tn_reshape(ids(1, 2, 3), TN_SHAPE(2))));
}

static double lstm_layers(void)
{
    tn_lstm *m = tn_lstm_new(.in = 3, .hidden = 4, .layers = 2, .bidirectional = true);
    return stepped(m, tn_sum(tn_square(tn_call(m, tn_normal(TN_SHAPE(2, 3, 3), 0, 1)))));
}

static double conditional_field(void)
{
    tn_crf    *m = tn_crf_new(.labels = 3);
    tn_tensor *scores = tn_normal(TN_SHAPE(1, 4, 3), 0, 1);
    int64_t    best[4] = {0};
    double     score = tn_crf_best(m, tn_select(scores, 0, 0), best);
    return score + stepped(m, tn_crf_loss(m, scores, ids(1, 4, 3)));
}

static double few_rows(void)
{
    tn_embedding *m = tn_embedding_new(.count = 7, .dim = 3, .sparse = true);
    return stepped(m, tn_sum(tn_square(tn_call(m, ids(2, 3, 7)))));
}

static double in_bf16(void)
{
    tn_mha        *m = tn_mha_new(.dim = 8, .heads = 2);
    tn_tensor     *x = tn_normal(TN_SHAPE(2, 3, 8), 0, 1);
    const tn_scope s = tn_autocast_begin(true);
    tn_tensor     *loss = tn_sum(tn_square(tn_to(tn_call(m, x), TN_F32)));
    loss = tn_scope_return(s, loss);
    return stepped(m, loss);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

#define SIZES .vocab = 11, .dim = 8, .layers = 1, .heads = 2, .positions = 8

static double gpt_step(void)
{
    tn_gpt *m = tn_gpt_new(SIZES);
    return stepped(m, tn_gpt_loss(m, ids(2, 4, 11), NULL));
}

static double gpt_writes(void)
{
    tn_gpt      *m = tn_gpt_new(SIZES);
    tn_decoding *d = tn_gpt_decoding(m, 2, 7);
    tn_generated g = tn_generate(d, ids(1, 2, 11), .most = 3, .beams = 2, .best = 2);
    const double sum = g.scores ? tn_item(tn_sum(g.scores)) : NAN;
    tn_decoding_free(d);
    tn_free(m);
    return sum;
}

static double quantized(bool activations)
{
    tn_llama *m = tn_llama_new(.vocab = 11, .dim = 32, .layers = 1, .heads = 2, .kv_heads = 1, .ff = 32);
    tn_eval(m);
    tn_quantize(m, .activations = activations);
    const double sum = m && tn_error() == TN_OK ? digest(tn_llama_forward(m, ids(1, 3, 11))) : NAN;
    tn_free(m);
    return sum;
}

static double llama_in_8_bits(void) { return quantized(false); }
static double llama_in_int8(void) { return quantized(true); }

static double llama_step(void)
{
    tn_llama *m = tn_llama_new(.vocab = 11, .dim = 8, .layers = 1, .heads = 2, .kv_heads = 1, .ff = 8);
    return stepped(m, tn_llama_loss(m, ids(2, 3, 11), NULL));
}

static double reformer_step(void)
{
    tn_reformer *m = tn_reformer_new(.vocab = 11, .dim = 8, .layers = 2, .heads = 2, .head_dim = 4, .ff = 8, .chunk = 2,
                                     .local_chunk = 2, .positions = 8, .seed = 1);
    return stepped(m, tn_reformer_loss(m, ids(1, 8, 11), NULL));
}

static double recurrent_model(void)
{
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = 11, .dim = 4, .hidden = 4, .layers = 1);
    return stepped(m, tn_rnn_lm_loss(m, ids(2, 3, 11), ids(2, 3, 11)));
}

static double words_of_characters(void)
{
    const tn_text lines[] = {tn_text_of("a bc"), tn_text_of("d")};
    tn_elmo *m = tn_elmo_new(.vocab = 5, .letters = 2, .filters = 2, .widths = 2, .highways = 1, .dim = 4, .hidden = 5,
                             .longest = 5);
    tn_tensor    *layer[TN_ELMO_LAYERS] = {NULL}, *sum = NULL;
    tn_elmo_batch b = {.rows = NULL};
    if (m) b = tn_elmo_sentences(m, 2, lines);
    if (b.rows && tn_elmo_vectors(m, &b, layer))
        sum = tn_add(tn_sum(tn_square(layer[0])), tn_sum(tn_square(layer[TN_ELMO_LAYERS - 1])));
    return stepped(m, sum);
}

static double sentences_around(void)
{
    tn_skip_thought *m = tn_skip_thought_new(.vocab = 9, .dim = 3, .hidden = 4);
    tn_tensor       *lengths = tn_full_of(TN_I64, TN_SHAPE(2), 3);
    return stepped(m, tn_skip_thought_loss(m, ids(2, 3, 9), lengths, ids(2, 3, 9), ids(2, 3, 9)));
}

static double tuned_tagger(void)
{
    tn_tuned *m = tn_tuned_new(tn_bert_new(SIZES, .ff = 8), .task = TN_TASK_TOKEN_CLASSIFICATION, .n = 3, .crf = true);
    tn_lora(m, .rank = 1, .names = "query value", .trained = tn_tuned_head(m));
    return stepped(m, tn_tuned_loss(m, tn_tuned_forward(m, ids(1, 4, 11)), ids(1, 4, 3)));
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const char book[] = "the old man and the sea and the old boat\nthe man sat in the boat and the sea lay still\n";

static double pieces_of(tn_tokenizer_kind kind, int64_t size)
{
    tn_tokenizer *t = tn_tokenizer_train_text(book, sizeof book - 1, .kind = kind, .vocab_size = size);
    tn_encoding  *e = t ? tn_encoding_new() : NULL;
    tn_string     text = {0};
    double        sum = NAN;
    if (e && tn_tokenizer_encode(t, e, "the sea and a boat", 18) == TN_OK &&
        tn_tokenizer_decode(t, e->id, e->n, &text) == TN_OK) {
        sum = (double)text.bytes;
        for (int64_t i = 0; i < e->n; i++) sum = 3 * sum + e->id[i];
    }
    tn_string_free(&text);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
    return sum;
}
static double pieces_of_words(void) { return pieces_of(TN_WORDPIECE, 60); }
static double pieces_of_bytes(void) { return pieces_of(TN_BYTE_BPE, 270); }

static double labelled_texts(void)
{
    static const char lines[] = "the old man\ta\nthe sea\tb\nthe boat lay still\ta\n";
    tn_tokenizer     *t = tn_tokenizer_train_text(book, sizeof book - 1, .kind = TN_WORDPIECE, .vocab_size = 60);
    tn_labelled *l = t ? tn_labelled_parse(lines, sizeof lines - 1, .kind = TN_LABELLED_TEXTS, .form = "tsv") : NULL;
    tn_labels   *names = l ? tn_labels_of(l) : NULL;
    tn_features *f = names ? tn_features_new(l, t, names, .batch = 2, .length = 8, .fixed = true) : NULL;
    tn_batch     b = {.x = NULL};
    double       sum = NAN;
    if (f) {
        tn_source s = tn_features_source(f);
        if (s.next(s.user, &b) && b.x && b.y)
            sum = tn_item(tn_sum(tn_to(b.x, TN_F64))) + 100 * tn_item(tn_sum(tn_to(b.y, TN_F64)));
    }
    tn_features_free(f);
    tn_labels_free(names);
    tn_labelled_free(l);
    tn_tokenizer_free(t);
    return sum;
}

static double words_as_vectors(void)
{
    tn_vectors *v = tn_vectors_from((tn_text){"a b c", 5}, tn_normal(TN_SHAPE(3, 2), 0, 1));
    tn_vectors *again = NULL;
    double      sum = NAN;
    const char *path = tn_test_file("words.vec");
    if (v && tn_vectors_save(v, path, TN_VECTORS_TEXT) == TN_OK) again = tn_vectors_load(path, TN_VECTORS_ANY);
    if (again) sum = digest(tn_vectors_tensor(again));
    tn_vectors_free(v), tn_vectors_free(again);
    return sum;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static double checkpointed(void)
{
    const char         *path = tn_test_file("memory.ckpt");
    tn_linear          *m = tn_linear_new(.in = 3, .out = 2);
    tn_optimizer       *o = m ? tn_adam_new(m, .lr = 0.1) : NULL;
    tn_checkpoint_file *f = NULL;
    double              sum = NAN;
    if (o && tn_backward(tn_sum(tn_square(tn_call(m, tn_normal(TN_SHAPE(2, 3), 0, 1))))) == TN_OK &&
        tn_step(o) == TN_OK &&
        tn_checkpoint_save(path, .module = m, .optimizer = o, .step = 1, .data = "{\"at\": 3}") == TN_OK)
        f = tn_checkpoint_open(path);
    if (f && tn_checkpoint_restore(f, .module = m, .optimizer = o) == TN_OK)
        sum = digest(m->weight) + (double)tn_json_i64(tn_json_need(tn_checkpoint_data(f), "at"));
    tn_checkpoint_close(f);
    tn_optimizer_free(o);
    tn_free(m);
    return sum;
}

static double folder_and_back(void)
{
    const char *dir = tn_test_folder("memory_gpt");
    tn_gpt     *a = tn_gpt_new(SIZES), *b = NULL;
    if (a && tn_gpt_save(a, dir) == TN_OK) b = tn_gpt_load(dir);
    const double sum = b ? digest(tn_gpt_forward(b, ids(1, 3, 11))) : NAN;
    tn_free(a), tn_free(b);
    return sum;
}

static double gguf_and_back(void)
{
    const char    *path = tn_test_file("memory.gguf");
    const tn_model d = {.family = TN_MODEL_DECODER,
                        .module = tn_llama_new(.vocab = 11, .dim = 32, .layers = 1, .heads = 2, .ff = 32)};
    tn_model       e = {.family = TN_MODEL_NONE};
    if (d.lm && tn_model_save(&d, path, .type = "q8_0") == TN_OK) e = tn_model_open(path);
    const double sum = e.lm ? digest(tn_llama_forward((tn_llama *)e.lm, ids(1, 3, 11))) : NAN;
    tn_model_close(&e);
    tn_module_free(d.lm);
    return sum;
}

static double a_page(void)
{
    static const double x[] = {1, 2, 3}, y[] = {3, 1, 2};
    const tn_series     line = {.name = "loss", .n = 3, .x = x, .y = y};
    tn_report          *r = tn_report_new("Memory");
    size_t              bytes = 0;
    if (r) tn_report_paragraph(r, "A < B"), tn_report_curves(r, "Loss", "step", "nats", 1, &line);
    const bool there = r && tn_report_html(r, &bytes) != NULL;
    tn_report_free(r);
    return there ? (double)bytes : NAN;
}

static double json_text(void)
{
    static const char text[] = "{\"a\": [1, 2.5, \"three\", null, true], \"b\": {\"c\": -4}}";
    tn_json          *doc = tn_json_parse(text, sizeof text - 1);
    tn_json_writer   *w = doc ? tn_json_writer_new(0) : NULL;
    double            sum = NAN;
    if (w) {
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "c", tn_json_i64(tn_json_need(tn_json_need(doc, "b"), "c")));
        tn_json_put_string(w, "d", "three");
        tn_json_close(w);
        const char *made = tn_json_text(w, NULL);
        if (made) sum = (double)strlen(made);
    }
    tn_json_writer_free(w);
    tn_json_free(doc);
    return sum;
}

/* ---- all scenarios ----------------------------------------------------------------------------------------------- */

static const scenario scenarios[] = {
    convolutions,        lstm_layers,      conditional_field, few_rows,        in_bf16,         gpt_step,
    gpt_writes,          llama_in_8_bits,  llama_in_int8,     llama_step,      reformer_step,   recurrent_model,
    words_of_characters, sentences_around, tuned_tagger,      pieces_of_words, pieces_of_bytes, labelled_texts,
    words_as_vectors,    checkpointed,     folder_and_back,   gguf_and_back,   a_page,          json_text};

SCENARIOS("memory_models", scenarios, 3, 31);
