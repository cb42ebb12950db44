/* fuzz_decoder.c — any bytes as a model in one file: GGUF and llama2.c's first form, as config.json and a table of
 * tensors, and as the tokenizers in them. Nothing stays allocated. */
#define _GNU_SOURCE
#include "core/files/safetensors_rows.h"
#include "models/open/open_private.h"
#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void refused(void)
{
    const tn_status e = tn_error();
    CHECK(e == TN_OK || e == TN_EFORMAT || e == TN_EUNSUPPORTED || e == TN_ESHAPE || e == TN_EINDEX || e == TN_EINVAL);
    tn_clear_error();
}

static void encodes(tn_tokenizer *t)
{
    static const char text[] = "Hello, w\xc3\xb6rld\n";
    tn_encoding      *e = t ? tn_encoding_new() : NULL;
    refused();
    if (e && tn_tokenizer_encode(t, e, text, sizeof text - 1) == TN_OK) {
        tn_string s = {0};
        for (int64_t i = 0; i < e->n; i++) CHECK(e->id[i] >= 0 && e->id[i] < tn_tokenizer_size(t));
        CHECK(tn_tokenizer_decode(t, e->id, e->n, &s) == TN_OK);
        tn_string_free(&s);
    }
    refused();
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

static void model(const char *form, tn_json *config, tn_safetensors *f)
{
    CHECK(!config || tn_json_string_or(tn_json_get(config, "model_type"), NULL));
    refused();
    for (int64_t i = 0; form && i < tn_safetensors_count(f); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        const tn_scope             s = tn_scope_begin();
        tn_tensor                 *t = tn_safetensors_get_at(f, i);
        CHECK(!t || tn_shape_equal(tn_shape_of(t), e.shape));
        refused();
        tn__st_matrix m;
        if (tn__st_matrix_of(f, i, &m)) { /* its rows are all in the file */
            const size_t bytes = (size_t)m.out * m.row;
            char        *rows = tn_mem_get(bytes);
            CHECK(tn__st_matrix_rows(f, i, 0, m.out, rows));
            tn_mem_put(rows, bytes);
        }
        tn_scope_end(s);
    }
    tn_safetensors_close(f);
    tn_json_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_files(data, size);
    const size_t   before = tn_memory_now().live;
    const tn_scope s = tn_scope_begin();
    const char    *form = tn__file_format("in");
    CHECK((form != NULL) == (tn_error() == TN_OK));
    refused();
    tn_json *config = form ? tn__file_config("in") : NULL;
    refused();
    model(form, config, form ? tn__file_tensors("in") : NULL);
    tn_gguf *g = tn_gguf_open("in");
    refused();
    if (g) encodes(tn__gguf_tokenizer(g, "in"));
    tn_gguf_close(g);
    encodes(tn__llama2c_tokenizer("in", data, size));
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    tn_set_io(NULL);
    return 0;
}
