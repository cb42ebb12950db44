/* fuzz_checkpoint.c — any bytes as a training checkpoint; and as its record, the JSON of everything that is not a
 * tensor, with a correct checksum. A checkpoint is restored completely, then saved and read again; or rejected, with
 * weights, moments and random numbers unchanged. */
#define _GNU_SOURCE
#include "optim/checkpoint_private.h"
#include "tests/fuzz/memory_folder.h"

#define CHECK(x) ((x) ? (void)0 : abort())

typedef struct {
    tn_linear    *net;
    tn_optimizer *adam;
    tn_ema       *ema;
} run;

static run make(void)
{
    run r;
    tn_seed(1);
    r.net = tn_linear_new(.in = 2, .out = 1);
    r.adam = tn_adamw_new(r.net, .lr = 0.1);
    r.ema = tn_ema_new(r.net, .decay = 0.9);
    const tn_scope s = tn_scope_begin();
    tn_backward(tn_sum(tn_call(r.net, tn_ones(TN_SHAPE(1, 2)))));
    CHECK(tn_step(r.adam) == TN_OK && tn_ema_update(r.ema) == TN_OK);
    tn_scope_end(s);
    return r;
}
static void drop(run *r)
{
    tn_ema_free(r->ema);
    tn_optimizer_free(r->adam);
    tn_free(r->net);
}
static tn_status save(run *r, const char *path)
{
    return tn_checkpoint_save(path, .module = r->net, .optimizer = r->adam, .ema = r->ema, .step = 1,
                              .config = "{\"dim\": 2}", .data = "{\"fit\": {\"epochs\": 1}}");
}

/* Writes the valid checkpoint's tensors with this record. */
static bool write_with(const char *record)
{
    char                   crc[9];
    tn_safetensors        *good = tn_safetensors_open("folder/good");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    const tn_scope         s = tn_scope_begin();
    for (int64_t i = 0; i < tn_safetensors_count(good); i++)
        tn_safetensors_put(w, tn_safetensors_at(good, i).name, tn_safetensors_get_at(good, i));
    tn__crc_of_text(record, crc);
    tn_safetensors_note(w, TN__RECORD, record), tn_safetensors_note(w, TN__RECORD ".crc32", crc);
    const bool fine = tn_error() == TN_OK && tn_safetensors_save(w, "folder/twisted") == TN_OK;
    CHECK(fine || tn_error() == TN_EINVAL); /* it is not UTF-8 */
    tn_clear_error();
    tn_scope_end(s);
    tn_safetensors_writer_free(w);
    tn_safetensors_close(good);
    return fine;
}

/* The whole state of a run as the bytes of a checkpoint. */
static tn_tensor *state_of(run *r)
{
    CHECK(save(r, "folder/state") == TN_OK);
    return tn_file_read("folder/state", FOLDER_MOST);
}

static void restore(const char *path)
{
    const tn_scope s = tn_scope_begin();
    run            r = make();
    tn_tensor     *before = state_of(&r);
    for (int keep = 0; keep < 2; keep++) {
        tn_checkpoint_file *f = tn_checkpoint_open(path);
        CHECK((f != NULL) == (tn_error() == TN_OK) && tn_error() != TN_ENOMEM && tn_error() != TN_ESTATE);
        if (f) {
            tn_checkpoint_step(f), tn_checkpoint_config(f), tn_checkpoint_data(f);
            if (tn_checkpoint_verify(f) == TN_OK && !tn_checkpoint_tensor(f, "mine")) tn_clear_error();
        }
        tn_clear_error();
        const bool whole = f && tn_checkpoint_restore(f, .module = r.net, .optimizer = r.adam, .ema = r.ema,
                                                      .keep_options = keep) == TN_OK;
        tn_clear_error();
        tn_checkpoint_close(f);
        tn_tensor *after = state_of(&r);
        CHECK(whole || (tn_numel(before) == tn_numel(after) &&
                        !memcmp(tn_data(before), tn_data(after), (size_t)tn_numel(after))));
        if (whole) break;
    }
    drop(&r);
    tn_scope_end(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder_begin();
    const size_t before = tn_memory_now().live;
    if (size && *data == '{') {
        const tn_scope s = tn_scope_begin();
        run            r = make();
        CHECK(save(&r, "folder/good") == TN_OK);
        drop(&r);
        tn_scope_end(s);
        char *record = calloc(size + 1, 1);
        CHECK(record);
        memcpy(record, data, size);
        if (write_with(record)) restore("folder/twisted");
        free(record);
    } else {
        folder_put("folder/any", data, size);
        restore("folder/any");
    }
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
