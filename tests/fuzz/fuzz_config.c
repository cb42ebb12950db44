/* fuzz_config.c — any bytes as config.json, for each kind of model. A config that is read is within its limits; as
 * there are no weights, no model is created and no memory is allocated for one. */
#define _GNU_SOURCE
#include "extras.h"
#include "tests/fuzz/memory_folder.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void *bert(const char *dir)
{
    const tn_bert_config c = tn_bert_config_load(dir);
    CHECK((c.vocab > 0) == (tn_error() == TN_OK));
    if (c.vocab) {
        CHECK(c.dim > 0 && c.heads > 0 && c.layers > 0 && c.dim % c.heads == 0 && c.positions > 0 && c.types >= 0);
        CHECK(c.padding < c.vocab && tn_hf_activation(c.activation) && c.dropout >= 0 && c.dropout < 1);
    }
    return c.vocab ? tn_bert_load(dir) : NULL;
}
static void *gpt(const char *dir) { return tn_gpt_load(dir); }
static void *llama(const char *dir) { return tn_llama_load(dir); }
static void *seq2seq(const char *dir) { return tn_seq2seq_load(dir); }
static void *lm(const char *dir) { return tn_lm_load(dir); }
static void *reformer(const char *dir) { return tn_reformer_load(dir); }
static void *rnn_lm(const char *dir) { return tn_rnn_lm_load(dir); }
static void *elmo(const char *dir) { return tn_elmo_load(dir); }
static void *vit(const char *dir) { return tn_vit_load(dir); }
static void *any(const char *dir) { return tn_extras_register() == TN_OK ? tn_model_open(dir).module : NULL; }
static void *(*const kinds[])(const char *dir) = {bert, gpt, llama, seq2seq, lm, reformer, rnn_lm, elmo, vit, any};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder_begin();
    folder_put("folder/config.json", data, size);
    const size_t before = tn_memory_now().live;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CHECK(!kinds[i]("folder"));
        const tn_status e = tn_error();
        CHECK(e == TN_EFORMAT || e == TN_EUNSUPPORTED || e == TN_EINVAL || e == TN_EIO);
        tn_clear_error();
    }
    folder_end();
    CHECK(tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
