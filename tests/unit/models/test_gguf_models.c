/* test_gguf_models.c — GGUF files of others: what llama.cpp makes of a key is done, or refused by its name; and what
 * GGUF cannot say of a model or a tokenizer is not written. Each case is one that llama.cpp itself was seen to decide. */
#define _GNU_SOURCE
#include "models/models.h"
#include "tests/common/bits.h"
#include "tests/common/check_main.h"

#include <string.h>

static void fine(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }

static void says(tn_status code, const char *part)
{
    ck_assert_msg(tn_error() == code && strstr(tn_error_message(), part), "\n  says %s: %s\n  not  %s: %s",
                  tn_status_name(tn_error()), tn_error_message(), tn_status_name(code), part);
    tn_clear_error();
}

/* ---- a file of somebody else's ----------------------------------------------------------------------------------- */

enum { WORDS = 12, DIM = 16, HEADS = 2, FF = 24 };

static void puts_tensor(tn_gguf_writer *w, const char *name, tn_shape shape)
{
    ck_assert_int_eq(tn_safetensors_put(tn_gguf_writer_tensors(w), name, tn_normal(shape, 0, 0.5)), TN_OK);
}

static tn_gguf_writer *begun(void)
{
    static const char *const keys[] = {"llama.context_length", "llama.embedding_length", "llama.block_count",
                                       "llama.feed_forward_length", "llama.attention.head_count"};
    static const int         values[] = {64, DIM, 1, FF, HEADS};
    tn_gguf_writer          *w = tn_gguf_writer_new();
    tn_seed(3);
    tn_gguf_put_string(w, "general.architecture", "llama");
    for (int i = 0; i < 5; i++) tn_gguf_put_u32(w, keys[i], values[i]);
    tn_gguf_put_float(w, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    puts_tensor(w, "token_embd.weight", TN_SHAPE(WORDS, DIM));
    puts_tensor(w, "output_norm.weight", TN_SHAPE(DIM));
    puts_tensor(w, "blk.0.attn_norm.weight", TN_SHAPE(DIM)), puts_tensor(w, "blk.0.ffn_norm.weight", TN_SHAPE(DIM));
    puts_tensor(w, "blk.0.attn_q.weight", TN_SHAPE(DIM, DIM)),
        puts_tensor(w, "blk.0.attn_k.weight", TN_SHAPE(DIM, DIM));
    puts_tensor(w, "blk.0.attn_v.weight", TN_SHAPE(DIM, DIM));
    puts_tensor(w, "blk.0.attn_output.weight", TN_SHAPE(DIM, DIM));
    puts_tensor(w, "blk.0.ffn_gate.weight", TN_SHAPE(FF, DIM)),
        puts_tensor(w, "blk.0.ffn_up.weight", TN_SHAPE(FF, DIM));
    puts_tensor(w, "blk.0.ffn_down.weight", TN_SHAPE(DIM, FF));
    return w;
}

static tn_decoder opened(tn_gguf_writer *w)
{
    const char *path = tn_test_file("others.gguf");
    ck_assert_msg(tn_gguf_save(w, path, NULL) == TN_OK, "%s", tn_error_message());
    tn_gguf_writer_free(w);
    return tn_decoder_open(path);
}

/* The scores of a text by a file. */
static tn_tensor *scored(tn_gguf_writer *w)
{
    int64_t    numbers[] = {5, 1, 11, 0, 7, 7, 2, 3};
    tn_decoder d = opened(w);
    fine();
    tn_tensor *y = tn_lm_run(d.model, (tn_decoder_args){.ids = tn_from_data(TN_I64, TN_SHAPE(1, 8), numbers)});
    fine();
    tn_decoder_close(&d);
    return y;
}

static void refused(tn_gguf_writer *w, tn_status status, const char *part)
{
    ck_assert(!opened(w).model);
    says(status, part);
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

#define SCALING "llama.rope.scaling."

static void scale(tn_gguf_writer *w, const char *type, double factor, double older)
{
    if (type) tn_gguf_put_string(w, SCALING "type", type);
    if (factor >= 0) tn_gguf_put_float(w, SCALING "factor", factor);
    if (older >= 0) tn_gguf_put_float(w, "llama.rope.scale_linear", older);
}

/* A factor without a type is a linear one; it was passed over. */
START_TEST(scales_without_a_type)
{
    static const struct {
        const char *type;
        double      factor, older;
        int         like; /* a factor of 1, or of 4 */
    } rows[] = {{"linear", 4, -1, 4}, {NULL, 4, -1, 4},     {NULL, -1, 4, 4}, {"linear", -1, 4, 4},
                {NULL, 4, 2, 4},      {"none", 4, -1, 1},   {NULL, 1, -1, 1}, {NULL, 0, -1, 1},
                {NULL, 0, 4, 1},      {"linear", 1, -1, 1}, {NULL, -1, 1, 1}, {"linear", -1, -1, 1}};
    tn_gguf_writer *w = begun();
    scale(w, "linear", 4, -1);
    tn_tensor *four = scored(w), *plain = scored(begun());
    ck_assert(!tn_same_bits(four, plain));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w = begun(), scale(w, rows[i].type, rows[i].factor, rows[i].older);
        ck_assert_msg(tn_same_bits(scored(w), rows[i].like == 4 ? four : plain), "row %zu", i);
    }
    w = begun(), scale(w, "yarn", 4, -1);
    refused(w, TN_EUNSUPPORTED, SCALING "type has a value that is not supported");
}
END_TEST

static tn_gguf_writer *with_factors(double last)
{
    tn_gguf_writer *w = begun();
    tn_tensor      *f = tn_ones(TN_SHAPE(DIM / HEADS / 2));
    ((float *)tn_data_mut(f))[DIM / HEADS / 2 - 1] = (float)last;
    ck_assert_int_eq(tn_safetensors_put(tn_gguf_writer_tensors(w), "rope_freqs.weight", f), TN_OK);
    return w;
}

/* llama.cpp scales by both; the tensor was dropped unseen. */
START_TEST(scales_once)
{
    tn_gguf_writer *w = begun();
    scale(w, "linear", 4, -1);
    tn_tensor *four = scored(w);
    w = with_factors(1), scale(w, NULL, 4, -1);
    ck_assert(tn_same_bits(scored(w), four));
    w = with_factors(8), scale(w, "linear", 4, -1);
    refused(w, TN_EUNSUPPORTED, "it scales its angles twice, by rope.scaling.factor and by rope_freqs.weight");
    w = with_factors(8), scale(w, NULL, -1, 4);
    refused(w, TN_EUNSUPPORTED, "it scales its angles twice");
}
END_TEST

/* llama.cpp multiplies by it, be it 0. */
START_TEST(scales_no_attention)
{
    static const double others[] = {0.5, 0};
    tn_gguf_writer     *w = begun();
    tn_gguf_put_float(w, SCALING "attn_factor", 1);
    ck_assert(tn_same_bits(scored(w), scored(begun())));
    for (int i = 0; i < 2; i++) {
        w = begun(), tn_gguf_put_float(w, SCALING "attn_factor", others[i]);
        refused(w, TN_EUNSUPPORTED, SCALING "attn_factor has a value that is not supported");
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gguf_models");
    TCase *c = tn_tcase(s, "read");
    tcase_add_test(c, scales_without_a_type);
    tcase_add_test(c, scales_once);
    tcase_add_test(c, scales_no_attention);
    return tn_check_main(s);
}
