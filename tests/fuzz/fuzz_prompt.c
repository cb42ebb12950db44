/* fuzz_prompt.c — any bytes as a prompt cache: loaded, at most as many tokens as the prompt shares with it, or
 * rejected, with the decoding empty. Sixteen # in the bytes stand for the hash of the model. Bytes that start with "E"
 * are edits of a valid file instead: three bytes each, a position and a value. */
#define _GNU_SOURCE
#include "models/generate/lm_private.h"
#include "models/models.h"
#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { TOKENS = 6, MOST = 1 << 16, DIGITS = 16 };
static tn_llama     *model;
static uint8_t       good[MOST], file[MOST];
static size_t        good_bytes;
static char          hash[DIGITS + 1];
static const int64_t prompt[TOKENS] = {1, 2, 3, 1, 2, 3};

static void free_model(void) { tn_free(model); }

static void make_valid_file(void)
{
    tn_seed(1);
    model = tn_llama_new(.vocab = 5, .dim = 4, .layers = 1, .heads = 2, .kv_heads = 1, .ff = 4, .positions = 16);
    atexit(free_model); /* a leak checker sees only a pointer into the model's block */
    tn_eval(model);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_llama_decoding(model, 1, 8);
    tn_tensor     *ids = tn_from_data(TN_I64, TN_SHAPE(1, TOKENS), prompt);
    CHECK(d && d->kind->scores(d, ids) && tn_prompt_cache_save(d, ids, "out") == TN_OK);
    tn_decoding_free(d);
    CHECK((good_bytes = memory.out_bytes) < MOST);
    memcpy(good, memory.out, good_bytes);
    tn_safetensors *f = tn_safetensors_read(good, good_bytes);
    CHECK(f);
    memcpy(hash, tn_safetensors_metadata(f, "tenon.prompt_cache"), DIGITS);
    tn_safetensors_close(f);
    tn_scope_end(s);
}

static size_t make_file(const uint8_t *data, size_t size)
{
    if (size && *data == 'E') {
        memcpy(file, good, good_bytes);
        for (size_t i = 1; i + 3 <= size; i += 3) file[((size_t)data[i] << 8 | data[i + 1]) % good_bytes] = data[i + 2];
        return size % 3 == 2 ? (size_t)data[size - 1] * good_bytes / 256 : good_bytes; /* truncated by one byte more */
    }
    const size_t n = size < MOST ? size : MOST;
    if (n) memcpy(file, data, n);
    uint8_t *marks = memmem(file, n, "################", DIGITS);
    if (marks) memcpy(marks, hash, DIGITS);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_files(data, size);
    if (!model) make_valid_file();
    memory.in = file, memory.in_bytes = make_file(data, size);
    const size_t   before = tn_memory_now().live;
    const int64_t  tensors = tn_memory_now().tensors;
    const tn_scope s = tn_scope_begin();
    tn_decoding   *d = tn_llama_decoding(model, 1, 8);
    tn_tensor     *ids = tn_from_data(TN_I64, TN_SHAPE(1, TOKENS), prompt);
    CHECK(d && ids);
    const int64_t     read = tn_prompt_cache_load(d, ids, "in");
    const tn_status   e = tn_error();
    const tn__cached *c = tn__as_cached(d);
    CHECK(read < 0 ? e == TN_EFORMAT || e == TN_EUNSUPPORTED || e == TN_EINDEX : e == TN_OK && read < TOKENS);
    tn_clear_error();
    CHECK(c->read == (read < 0 ? 0 : read) && tn_kv_cache_length(c->cache) == c->read);
    tn_decoding_free(d);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == tensors && tn_memory_now().live == before);
    tn_set_io(NULL);
    return 0;
}
