/* fuzz_folder.c — any bytes as the folder of a model: config.json, weights in one file or several, or PyTorch's, a
 * tokenizer, the end tokens and a chat template. A model that loads runs: its result has the shape that the config
 * specifies. Nothing stays allocated. */
#define _GNU_SOURCE
#include "models/open/open_private.h"
#include "extras.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/use_tokenizer.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { SMALL = 64 }; /* a model that is run */

static tn_tensor *words(int64_t n, int64_t vocab)
{
    int64_t id[3];
    for (int64_t i = 0; i < n; i++) id[i] = i % vocab;
    return tn_from_data(TN_I64, TN_SHAPE(1, n), id);
}

static void *bert(void)
{
    tn_bert *m = tn_bert_load("folder");
    if (!m || m->config.dim > SMALL || m->config.ff > SMALL || m->config.layers > 4) return m;
    const int64_t n = m->config.positions < 3 ? m->config.positions : 3;
    tn_tensor    *y = tn_bert_forward(m, words(n, m->config.vocab));
    CHECK(y && tn_shape_equal(tn_shape_of(y), TN_SHAPE(1, n, m->config.dim)));
    return m;
}
/* Its end tokens and chat template: after reading they can be written and read again. */
static bool chat(tn_lm *m, int64_t vocab)
{
    tn_model     d = {.family = TN_MODEL_DECODER, .lm = m, .form = "huggingface"}, e = d;
    tn_hf_source s;
    CHECK(tn__hf_open(&s, "folder"));
    tn__chat_read(&d, &s);
    for (int64_t i = 0; i < d.ends.n; i++) CHECK(d.ends.at[i] >= 0 && d.ends.at[i] < vocab);
    if (tn_error() == TN_OK && tn__chat_save(&d, "folder") == TN_OK) {
        tn__chat_read(&e, &s);
        if (tn_error() == TN_OK) CHECK(e.ends.n == d.ends.n && e.chat_template.bytes == d.chat_template.bytes);
        else
            CHECK(folder_find("folder/SHA256SUMS") >= 0 && tn_error() == TN_EFORMAT); /* it has a line that is not a
                                                                                          checksum */
        if (tn_error() == TN_OK && e.ends.n) CHECK(!memcmp(e.ends.at, d.ends.at, (size_t)e.ends.n * sizeof *e.ends.at));
        if (tn_error() == TN_OK && e.chat_template.bytes) CHECK(!strcmp(e.chat_template.at, d.chat_template.at));
    }
    tn__hf_close(&s);
    d.module = e.module = NULL;
    tn_model_close(&d), tn_model_close(&e);
    return tn_error() == TN_OK;
}
static void *lm(void)
{
    tn_lm *m = tn_lm_load("folder");
    if (!m) return NULL;
    const tn_lm_info i = tn_lm_info_of(m);
    if (!chat(m, i.vocab)) return tn_module_free(m), NULL;
    if (i.dim > SMALL || i.layers > 4 || i.vocab > 1000) return m;
    const int64_t n = i.positions > 0 && i.positions < 3 ? i.positions : 3;
    tn_tensor    *y = tn_lm_run(m, (tn_decoder_args){.ids = words(n, i.vocab)});
    CHECK(y && tn_shape_equal(tn_shape_of(y), TN_SHAPE(1, n, i.vocab)));
    return m;
}
static void *seq2seq(void) { return tn_seq2seq_load("folder"); }
static void *reformer(void) { return tn_reformer_load("folder"); }
static void *rnn_lm(void) { return tn_rnn_lm_load("folder"); }
static void *elmo(void) { return tn_elmo_load("folder"); }
static void *vit(void) { return tn_vit_load("folder"); }
static void *(*const kinds[])(void) = {bert, lm, seq2seq, reformer, rnn_lm, elmo, vit};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder_begin();
    folder_cut(data, size);
    tn_set_threads(1);
    const size_t   before = tn_memory_now().live;
    const tn_scope s = tn_no_grad_begin();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        void           *m = kinds[i]();
        const tn_status e = tn_error();
        CHECK((m != NULL) == (e == TN_OK) && e != TN_ENOMEM && e != TN_ESTATE);
        tn_clear_error();
        tn_module_free(m);
    }
    tn_tokenizer *t = tn_tokenizer_load("folder");
    CHECK((t != NULL) == (tn_error() == TN_OK) && tn_error() != TN_ENOMEM && tn_error() != TN_ESTATE);
    tn_clear_error();
    if (t) use_tokenizer(t, size ? (const char *)data : "", size < 100 ? size : 100, false);
    tn_tokenizer_free(t);
    tn_scope_end(s);
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
