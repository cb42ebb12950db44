/* test_packed_files.c — a LLaMA whose GGUF file has matrices of several packed types, opened with .packed: the types
 * stay, memory is that of the file, rows of heads are in order, logits are near those of the same weights in f32, and
 * equal for any number of threads; training and saving are refused. Memory that fails; files that are cut. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* truncate */
#endif
#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <unistd.h>

enum { WORDS = 96, DIM = 256, HEADS = 4, FF = 512, LAYERS = 2, LENGTH = 12, ALIGN = 32 };

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static struct {
    size_t  n;
    uint8_t at[2 << 20];
} head, data; /* two halves of the file */
static uint64_t tensors;

static void put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) head.at[head.n++] = (uint8_t)(v >> 8 * i);
}
static void put_text(const char *s)
{
    put(strlen(s), 8);
    memcpy(head.at + head.n, s, strlen(s)), head.n += strlen(s);
}
static void put_u32(const char *key, uint32_t v) { put_text(key), put(TN_GGUF_U32, 4), put(v, 4); }

/* Types of GGUF: numbers, bytes of a block, positions and values of its f16 scales. */
typedef struct {
    uint32_t number;
    int      width, bytes, d, e;
    uint16_t d_is, e_is;
} type;
static const type f32 = {0, 1, 4, -1, -1, 0, 0}, q4_0 = {2, 32, 18, 0, -1, 0x1400, 0}, /* 2^-10 */
    q8_0 = {8, 32, 34, 0, -1, 0x0400, 0}, q4_k = {12, 256, 144, 0, 2, 0x0540, 0x1000},
                  q5_k = {13, 256, 176, 0, 2, 0x02a0, 0x1000}, q6_k = {14, 256, 210, 208, -1, 0x0100, 0};

static void put_tensor(const char *name, const type *t, int64_t out, int64_t in)
{
    const size_t bytes = (size_t)(out * in / t->width * t->bytes);
    uint8_t     *at = data.at + data.n;
    put_text(name), put(out > 1 ? 2 : 1, 4), put((uint64_t)in, 8);
    if (out > 1) put((uint64_t)out, 8);
    put(t->number, 4), put(data.n, 8);
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)tn_random_below(tn_current_generator(), 256);
    for (size_t b = 0; b < bytes; b += (size_t)t->bytes) {
        const float one = 1;
        if (t->d < 0) memcpy(at + b, &one, sizeof one);
        if (t->d >= 0) at[b + (size_t)t->d] = (uint8_t)t->d_is, at[b + (size_t)t->d + 1] = (uint8_t)(t->d_is >> 8);
        if (t->e >= 0) at[b + (size_t)t->e] = (uint8_t)t->e_is, at[b + (size_t)t->e + 1] = (uint8_t)(t->e_is >> 8);
    }
    data.n += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    tensors++;
}

/* Writes the file; tied: without output.weight. Returns its size. */
static size_t make(const char *path, bool tied)
{
    char name[64];
    head.n = data.n = tensors = 0;
    memset(data.at, 0, sizeof data.at);
    put(0x46554747, 4), put(3, 4), put(0, 8), put(7, 8);
    put_text("general.architecture"), put(TN_GGUF_STRING, 4), put_text("llama");
    put_u32("llama.context_length", 64), put_u32("llama.embedding_length", DIM), put_u32("llama.block_count", LAYERS);
    put_u32("llama.feed_forward_length", FF), put_u32("llama.attention.head_count", HEADS);
    put_text("llama.attention.layer_norm_rms_epsilon"), put(TN_GGUF_F32, 4), put(0x3727c5ac, 4);
    put_tensor("token_embd.weight", &q6_k, WORDS, DIM), put_tensor("output_norm.weight", &f32, 1, DIM);
    if (!tied) put_tensor("output.weight", &q6_k, WORDS, DIM);
    static const struct {
        const char *name;
        const type *of;
        int64_t     out, in;
    } each[] = {{"attn_norm", &f32, 1, DIM},  {"ffn_norm", &f32, 1, DIM},  {"attn_q", &q4_k, DIM, DIM},
                {"attn_k", &q4_0, DIM, DIM},  {"attn_v", &q5_k, DIM, DIM}, {"attn_output", &q8_0, DIM, DIM},
                {"ffn_gate", &q4_k, FF, DIM}, {"ffn_up", &q4_0, FF, DIM},  {"ffn_down", &q6_k, DIM, FF}};
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < 9; i++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", l, each[i].name);
            put_tensor(name, each[i].of, each[i].out, each[i].in);
        }
    for (int i = 0; i < 8; i++) head.at[8 + i] = (uint8_t)(tensors >> 8 * i);
    while (head.n % ALIGN) head.at[head.n++] = 0;
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(head.at, 1, head.n, f) == head.n && fwrite(data.at, 1, data.n, f) == data.n && !fclose(f));
    return head.n + data.n;
}

static tn_tensor *logits(tn_model *m)
{
    int64_t ids[LENGTH];
    for (int i = 0; i < LENGTH; i++) ids[i] = (7 * i + 3) % WORDS;
    tn_tensor *y = tn_lm_run(m->lm, (tn_decoder_args){.ids = tn_from_data(TN_I64, TN_SHAPE(1, LENGTH), ids)});
    fine();
    return y;
}

TEST_EACH(opened, 2)
{
    const char    *path = tn_test_file("packed-llama.gguf");
    const tn_scope s = tn_no_grad_begin();
    const size_t   bytes = make(path, _i), before = tn_memory_now().live;
    tn_model       packed = tn_model_open(path, .packed = true);
    fine();
    const size_t used = tn_memory_now().live - before;
    ck_assert_msg(used < bytes + bytes / 10, "%zu bytes for a file of %zu", used, bytes);
    tn_model wide = tn_model_open(path);
    fine();
    tn_tensor *a = logits(&packed), *b = logits(&wide);
    double     ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < tn_numel(a); i++) {
        const double x = tn_get(a, i), y = tn_get(b, i);
        ab += x * y, aa += x * x, bb += y * y;
    }
    ck_assert_msg(isfinite(ab) && ab > 0.999 * sqrt(aa * bb), "cosine %.9f", ab / sqrt(aa * bb));
    for (int threads = 1; threads <= 3; threads++) {
        tn_set_threads(threads);
        ck_assert(tn_same_bits(logits(&packed), a));
    }
    tn_set_threads(0);
    /* each matrix has the values of the file, in the order that the model needs */
    int matrices = 0;
    for (tn_each e = tn_module_each(packed.module, TN_EACH_SAVED); tn_next(&e);) {
        const tn_tensor *other = tn_module_find_tensor(wide.module, e.name);
        ck_assert_msg(tn_is_packed(e.tensor) == (tn_ndim(other) == 2), "%s", e.name);
        if (!tn_is_packed(e.tensor)) continue;
        ck_assert_msg(tn_same_bits(tn_unpack(e.tensor), other), "%s", e.name);
        matrices++;
    }
    ck_assert_int_eq(matrices, 7 * LAYERS + 2 - _i);
    ck_assert_int_eq(tn_module_count(packed.module, true), 0);
    ck_assert_int_ne(tn_model_save(&packed, tn_test_folder("packed-saved")), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "is packed");
    tn_model_close(&packed), tn_model_close(&wide);
    tn_scope_end(s);
}

static double once(int i)
{
    const tn_scope s = tn_no_grad_begin();
    tn_model       m = tn_model_open(tn_test_file("packed-small.gguf"), .packed = true);
    int64_t        id[] = {i, 5};
    const double   y =
        m.lm ? tn_get(tn_lm_run(m.lm, (tn_decoder_args){.ids = tn_from_data(TN_I64, TN_SHAPE(1, 2), id)}), WORDS + 7)
               : 0;
    tn_model_close(&m);
    tn_scope_end(s);
    return y;
}
TEST(memory)
{
    make(tn_test_file("packed-small.gguf"), false);
    tn_each_allocation_fails(once, 3, tn_test_slow() ? 97 : 7, 5, 100);
}

/* A file that ends within a matrix is refused, wherever it ends. */
TEST(cut)
{
    const char  *path = tn_test_file("packed-cut.gguf");
    const size_t bytes = make(path, false);
    for (int i = 1; i < 40; i++) {
        ck_assert_int_eq(truncate(path, (off_t)(bytes - bytes * (size_t)i / 40)), 0);
        tn_model m = tn_model_open(path, .packed = true);
        ck_assert(!m.lm && !m.module);
        ck_assert_msg(tn_error() == TN_EFORMAT || tn_error() == TN_EIO, "%s", tn_error_message());
        tn_clear_error();
    }
}
