/* test_dropout.c — the positions of dropout in the models, compared with transformers' models. Weights and logits in
 * eval mode do not show them; a wrong position would only make fine-tuning worse. */
#include "extras.h"
#include "tests/common/check_main.h"

/* The modules of m with dropout, in order, including attention weights: "name=probability ". */
static const char *places(void *model)
{
    tn_module  *m = model;
    static char all[2000];
    size_t      n = 0;
    all[0] = 0;
    for (tn_each e = tn_modules(m); tn_next(&e);) {
        const char *kind = e.module->kind->name;
        double      p = 0;
        if (!strcmp(kind, "Dropout")) p = ((tn_dropout *)(void *)e.module)->p;
        if (!strcmp(kind, "MultiheadAttention")) p = ((tn_mha *)(void *)e.module)->dropout;
        if (p > 0) n += (size_t)snprintf(all + n, sizeof all - n, "%s=%g ", e.name, p);
        ck_assert(n < sizeof all);
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_free(m);
    return all;
}

#define BERT(...) \
    tn_bert_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .positions = 6, .dropout = 0.25, __VA_ARGS__)

/* BertEmbeddings, BertSelfAttention, BertSelfOutput and BertOutput have dropout, BertIntermediate does not. */
#define EMBEDDINGS "bert.embeddings.dropout=0.25 "
#define LAYER(i) "bert.encoder.layers." i ".self_attn=0.125 bert.encoder.layers." i ".dropout1=0.25 "
#define OUTPUT(i) "bert.encoder.layers." i ".dropout2=0.25 "

TEST_EACH(encoders, 5)
{
    static const tn_bert_kind alike[] = {TN_BERT, TN_ROBERTA, TN_XLM_ROBERTA, TN_CAMEMBERT, TN_ELECTRA};
    ck_assert_str_eq(places(BERT(.kind = alike[_i], .attention_dropout = 0.125)), EMBEDDINGS LAYER("0") OUTPUT("0"));
}

TEST(distilbert) /* none between attention's output projection and the sum */
{
    ck_assert_str_eq(places(BERT(.kind = TN_DISTILBERT, .attention_dropout = 0.125)),
                     EMBEDDINGS "bert.encoder.layers.0.self_attn=0.125 " OUTPUT("0"));
}

/* classifier_dropout, or hidden_dropout_prob; DistilBERT: seq_classif_dropout, for other tasks dropout. */
TEST_EACH(heads, 3)
{
    static const struct {
        tn_bert_kind kind;
        double       usual[4]; /* by task */
    } all[] = {{TN_BERT, {0.25, 0.25, 0.25, 0.25}},
               {TN_ALBERT, {0.1, 0.1, 0.1, 0.1}},
               {TN_DISTILBERT, {0.2, 0.25, 0.25, 0.2}}};
    for (int task = 0; task < 4; task++)
        for (int given = 0; given < 2; given++) {
            tn_tuned *m =
                tn_tuned_new(BERT(.kind = all[_i].kind), .task = (tn_task)task, .n = 2, .dropout = given ? 0.5 : -1);
            ck_assert_msg(m != NULL, "%s", tn_error_message());
            ck_assert_double_eq(m->dropout->p, given ? 0.5 : all[_i].usual[task]);
            ck_assert_double_eq(m->config.dropout, m->dropout->p);
            tn_free(m);
        }
}

TEST(modernbert) /* embedding_dropout; attention_dropout of the weights and after the output projection */
{
    ck_assert_str_eq(places(BERT(.kind = TN_MODERNBERT, .attention_dropout = 0.125)),
                     EMBEDDINGS "bert.encoder.layers.0.self_attn=0.125 bert.encoder.layers.0.dropout1=0.125 ");
}

TEST(xlnet) /* word_emb_k and output_h; pos_emb; each layer's, of the weights and results too */
{
    ck_assert_int_eq(tn_extras_register(), TN_OK);
    ck_assert_str_eq(places(BERT(.kind = TN_XLNET, .attention_dropout = 0.25)),
                     EMBEDDINGS "bert.encoder.dropout=0.25 bert.encoder.layers.0.dropout=0.25 ");
}

TEST(albert) /* none after AlbertLayer's inner layer; classifier_dropout_prob before the sentence-order head */
{
    ck_assert_str_eq(places(BERT(.kind = TN_ALBERT, .attention_dropout = 0.125)),
                     EMBEDDINGS LAYER("0") "cls.dropout=0.1 ");
}

TEST(gpt) /* embd_pdrop, attn_pdrop, resid_pdrop after GPT2Attention and GPT2MLP */
{
    ck_assert_str_eq(places(tn_gpt_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .positions = 6, .dropout = 0.25,
                                       .attention_dropout = 0.125)),
                     "transformer.drop=0.25 transformer.h.layers.0.self_attn=0.125 "
                     "transformer.h.layers.0.dropout1=0.25 transformer.h.layers.0.dropout2=0.25 ");
}

TEST(llama) /* only attention_dropout; .dropout exists only in Tenon, as in GPT */
{
    ck_assert_str_eq(
        places(tn_llama_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .ff = 6, .attention_dropout = 0.125)),
        "model.layers.0.self_attn=0.125 ");
    ck_assert_str_eq(places(tn_llama_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .ff = 6, .dropout = 0.25)),
                     "dropout=0.25 model.layers.0.dropout1=0.25 model.layers.0.dropout2=0.25 ");
}

TEST(vit) /* ViTEmbeddings, ViTSelfAttention, ViTSelfOutput, ViTOutput */
{
    ck_assert_str_eq(places(tn_vit_new(.image = 4, .patch = 2, .dim = 4, .heads = 2, .layers = 1, .ff = 6,
                                       .dropout = 0.25, .attention_dropout = 0.125)),
                     "vit.embeddings.dropout=0.25 vit.encoder.layers.0.self_attn=0.125 "
                     "vit.encoder.layers.0.dropout1=0.25 vit.encoder.layers.0.dropout2=0.25 ");
}

/* PyTorch's own blocks also have dropout after the activation. */
TEST(blocks)
{
#define BLOCK(...) tn_transformer_encoder_layer_new(.dim = 4, .heads = 2, .ff = 6, .dropout = 0.25, __VA_ARGS__)
    ck_assert_str_eq(places(BLOCK(.norm.eps = 1e-5)), "self_attn=0.25 dropout=0.25 dropout1=0.25 dropout2=0.25 ");
    ck_assert_str_eq(places(BLOCK(.activation_dropout = 0)), "self_attn=0.25 dropout1=0.25 dropout2=0.25 ");
    ck_assert_str_eq(places(BLOCK(.activation_dropout = 0.5, .attention_dropout = 0)),
                     "dropout=0.5 dropout1=0.25 dropout2=0.25 ");
    ck_refused(BLOCK(.activation_dropout = 1.5), TN_EINVAL,
               "tn_transformer_encoder_layer_new: .activation_dropout is 1.5, but a probability is from 0 to 1");
}
