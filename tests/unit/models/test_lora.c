/* test_lora.c — low-rank adapters: gradients compared with those of the sum W + scale B A, over packed weights, on the
 * user's own modules; merging, checkpoints, mistakes. PEFT's files: extras/tests/unit/test_peft.c. */
#include "extras.h"
#include "tests/common/lora_models.h"

#include <unistd.h>

/* ---- the models -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module  base;
    tn_mha    *attention;
    tn_linear *up, *down;
} net;
static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->down, tn_gelu(tn_call(m->up, tn_call(m->attention, x)))));
}
TN_FORWARD(net);
static net *net_new(tn_dtype dt)
{
    net *m = tn_module_new(net);
    ck_assert_ptr_nonnull(m);
    m->attention = tn_child(m, "attention", tn_mha_new(.dim = 32, .heads = 2, .dtype = dt));
    m->up = tn_child(m, "up", tn_linear_new(.in = 32, .out = 64, .dtype = dt));
    m->down = tn_child(m, "down", tn_linear_new(.in = 64, .out = 32, .no_bias = true, .dtype = dt));
    return tn_built(m);
}

static tn_tensor *loss_of(void *m)
{
    tn_seed(4);
    tn_tensor *ids = tn_randint(TN_SHAPE(2, 9), 0, 50);
    if (((tn_module *)m)->kind->lm) return tn_lm_loss(m, ids, NULL);
    if (!strcmp(((tn_module *)m)->kind->name, "Seq2Seq")) return tn_seq2seq_loss((tn_seq2seq *)m, ids, ids);
    tn_tensor *y = tn_bert_forward((tn_bert *)m, ids); /* normalised: its squares would be nearly constant */
    return tn_mean(tn_mul(y, tn_normal(tn_shape_of(y), 0, 1)));
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void register_extras(void) { ck_assert_int_eq(tn_extras_register(), TN_OK); }
AROUND_TESTS(register_extras, NULL);

/* In f64, with a random cotangent: values and gradients of A and B are those of x (W + s B A)ᵀ in plain ops. */
TEST(gradients)
{
    tn_seed(1);
    net *m = net_new(TN_F64);
    fine();
    ck_assert_int_eq(tn_lora(m, .rank = 3, .alpha = 5), TN_OK);
    shake(m);
    ck_assert_int_eq(tn_count_trainable(m), 3 * (32 + 96 + 32 + 32 + 32 + 64 + 64 + 32));
    tn_tensor *x = tn_normal_of(TN_F64, TN_SHAPE(2, 7, 32), 0, 1), *by = tn_normal_of(TN_F64, TN_SHAPE(2, 7, 32), 0, 1);
    tn_tensor *y = tn_call(m, x);
    tn_backward(tn_sum(tn_mul(y, by)));
    fine();
    net                *plain = net_new(TN_F64);
    tn_tensor         **at[4][2] = {{&m->attention->in_proj_weight, &plain->attention->in_proj_weight},
                                    {&m->attention->out_proj->weight, &plain->attention->out_proj->weight},
                                    {&m->up->weight, &plain->up->weight},
                                    {&m->down->weight, &plain->down->weight}};
    const tn_lora_pair *pair[4] = {m->attention->lora, m->attention->out_proj->lora, m->up->lora, m->down->lora};
    tn_tensor          *a[4], *b[4], *kept[4];
    tn_freeze(plain, true);
    tn_copy_from(plain->attention->in_proj_bias, m->attention->in_proj_bias);
    tn_copy_from(plain->attention->out_proj->bias, m->attention->out_proj->bias);
    tn_copy_from(plain->up->bias, m->up->bias);
    for (int i = 0; i < 4; i++) {
        a[i] = tn_requires_grad(tn_clone(tn_detach(pair[i]->a[0])));
        b[i] = tn_requires_grad(tn_clone(tn_detach(pair[i]->b[0])));
        kept[i] = *at[i][1];
        *at[i][1] = tn_add(*at[i][0], tn_mul_scalar(tn_matmul(b[i], a[i]), 5.0 / 3));
    }
    tn_tensor *want = tn_call(plain, x);
    tn_backward(tn_sum(tn_mul(want, by)));
    for (int i = 0; i < 4; i++) *at[i][1] = kept[i];
    fine();
    ck_assert(tn_allclose(y, want, 1e-12, 1e-12));
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(tn_allclose(tn_grad(pair[i]->a[0]), tn_grad(a[i]), 1e-10, 1e-12), "A of %d", i);
        ck_assert_msg(tn_allclose(tn_grad(pair[i]->b[0]), tn_grad(b[i]), 1e-10, 1e-12), "B of %d", i);
        ck_assert(!tn_needs_grad(*at[i][0]));
    }
    tn_free(plain);
    net *copy = tn_copy(m);
    tn_free(m);
    ck_assert(tn_same_bits(tn_call(copy, x), y));
    ck_assert_int_eq(tn_lora_merge(copy), TN_OK);
    ck_assert(tn_allclose(tn_call(copy, x), want, 1e-12, 1e-12) && !tn_has_lora(copy));
    ck_assert_int_eq(tn_count(copy), tn_count_trainable(copy));
    tn_free(copy);
}

/* Over packed weights the loss and the gradients of the adapters are those over the unpacked ones (int8 also rounds the
 * activations). */
TEST_EACH(packed, 3 * MODELS)
{
    static const struct {
        tn_tensor *(*pack)(const tn_tensor *);
        double near;
    } kinds[] = {{tn_q8_pack, 1e-4}, {tn_f16_pack, 1e-4}, {tn_int8_pack, 0.2}};
    const struct model *of = &models[_i % MODELS];
    const int           k = _i / MODELS;
    if (k == 2 && of->make == a_t5) return; /* its scores are not scaled: rounded inputs saturate the softmax */
    tn_seed(1);
    void *m = of->make();
    if (k == 0) tn_module_quantize(m);
    else if (k == 1) tn_module_halve(m);
    else tn_quantize_run((tn_quantize_args){.module = m, .activations = true});
    fine();
    tn_seed(1);
    void *plain = of->make(); /* the same weights, rounded */
    tn_module_freeze(plain, true);
    for (tn_each p = tn_module_each(plain, TN_EACH_PARAMETER); tn_next(&p);) {
        tn_tensor *w = tn_module_find_tensor(m, p.name);
        if (tn_is_packed(w)) tn_copy_from(p.tensor, tn_unpack(w));
    }
    void *const both[] = {m, plain};
    tn_tensor  *loss[2];
    for (int i = 0; i < 2; i++) {
        tn_seed(2);
        ck_assert_int_eq(tn_lora_run((tn_lora_args){TN_LORA_ARGS_DEFAULTS, .module = both[i]}), TN_OK);
        shake(both[i]);
        tn_backward(loss[i] = loss_of(both[i]));
        fine();
    }
    ck_assert(tn_allclose(loss[0], loss[1], kinds[k].near / 10, 0));
    for (tn_lora_layer x = tn_module_lora_layers(m), y = tn_module_lora_layers(plain);
         tn_lora_next(&x) && tn_lora_next(&y);) {
        tn_tensor *gx = tn_grad(x.lora->a[x.part]), *gy = tn_grad(y.lora->a[y.part]);
        if (!gx && !gy) continue; /* BERT's pooler and head, which the loss does not read */
        const double apart = tn_item(tn_norm(tn_sub(gx, gy))), size = tn_item(tn_norm(gy));
        ck_assert_msg(apart <= kinds[k].near * size, "%s: %g of %g", x.name, apart, size);
    }
    fine();
    ck_fails_has(tn_module_lora_merge(m), TN_EUNSUPPORTED,
                 "is packed (8 bits or f16), which would round the adapters away");
    ck_assert(tn_module_has_lora(m));
    tn_module_free(m), tn_module_free(plain);
}

/* ---- names, files ------------------------------------------------------------------------------------------------ */

/* New adapters change no bit; chosen by name; saved, loaded into another copy, packed or not, and merged. */
TEST_EACH(files, MODELS)
{
    const struct model *of = &models[_i];
    const char         *dir = tn_test_folder("adapter");
    tn_seed(3);
    void *m = of->make();
    tn_seed(3);
    void      *again = of->make();
    tn_tensor *before = loss_of(m);
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = of->names}), TN_OK);
    ck_assert(tn_same_bits(loss_of(m), before));
    int pairs = 0;
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);) {
        const bool has = l.lora && l.lora->a[l.part];
        pairs += has;
        ck_assert_msg(!has || !strstr(l.name, of->other), "%s", l.name);
        ck_assert(strcmp(l.name, of->first) != 0 || has || l.pieces);
    }
    ck_assert_int_eq(pairs, of->pairs);
    shake(m);
    tn_tensor *loss = loss_of(m);
    ck_assert(!tn_same_bits(loss, before));
    ck_assert_int_eq(tn_peft_save_run(m, dir, (tn_peft_save_args){.base = "base"}), TN_OK);
    ck_assert_int_eq(tn_module_peft_load(again, dir), TN_OK);
    ck_assert(tn_same_bits(loss_of(again), loss));
    ck_assert_int_eq(tn_module_peft_load(again, dir), TN_OK); /* once more, into its adapters */
    ck_assert(tn_same_bits(loss_of(again), loss));
    ck_assert_int_eq(tn_module_lora_merge(again), TN_OK);
    ck_assert(tn_allclose(loss_of(again), loss, 1e-4, 1e-5) && !tn_module_has_lora(again));
    ck_assert_int_eq(tn_module_halve(again), TN_OK);
    ck_assert_int_eq(tn_module_peft_load(again, dir), TN_OK); /* added a second time, over packed weights */
    fine();
    for (int i = 0; i < MODELS; i++) { /* another model's: nothing changes */
        void *other = models[i].make();
        if (i != _i) ck_assert_int_ne(tn_module_peft_load(other, dir), TN_OK);
        if (i != _i) ck_error_has(TN_EFORMAT, "; is it an adapter of another model?");
        ck_assert(!tn_module_has_lora(other));
        tn_module_free(other);
    }
    tn_llama *wide =
        tn_llama_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 16, .ff = 64);
    if (of->make == a_llama) {
        ck_fails_has(tn_peft_load(wide, dir), TN_ESHAPE, "expected [2, 64]; is it an adapter of another model?");
    }
    ck_assert(!tn_has_lora(wide));
    tn_free(wide), tn_module_free(m), tn_module_free(again);
}

/* The state dict of a module with adapters, training, and a second choice of layers. */
TEST(own_module)
{
    const char *path = tn_test_file("net");
    tn_seed(1);
    net       *m = net_new(TN_F32);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 4, 32), 0, 1), *before = tn_call(m, x);
    ck_assert_int_eq(tn_lora(m, .names = "up", .trained = "down attention.in_proj_bias"), TN_OK);
    ck_assert_int_eq(tn_count_trainable(m), 8 * (32 + 64) + 64 * 32 + 96);
    ck_assert(tn_same_bits(tn_call(m, x), before));
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    for (int i = 0; i < 3; i++) tn_backward(tn_mean(tn_square(tn_call(m, x)))), tn_step(o);
    tn_optimizer_free(o);
    tn_tensor *after = tn_call(m, x);
    ck_assert(tn_item(tn_mean(tn_square(after))) < tn_item(tn_mean(tn_square(before))));
    ck_assert_int_eq(tn_save(m, path), TN_OK);
    net *again = net_new(TN_F32);
    ck_assert_int_eq(tn_lora(again, .names = "up"), TN_OK);
    ck_assert_int_eq(tn_load(again, path), TN_OK);
    ck_assert(tn_same_bits(tn_call(again, x), after));
    const char *dir = tn_test_folder("own");
    ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
    tn_seed(1);
    net *third = net_new(TN_F32);
    ck_assert_int_eq(tn_peft_load(third, dir), TN_OK); /* adapters and .trained */
    ck_assert(tn_same_bits(tn_call(third, x), after));
    tn_free(m), tn_free(again), tn_free(third);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static tn_tensor *squares(void *m, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mean(tn_square(tn_module_call(m, b->x)));
}

/* tn_fit's files of a module with adapters hold what is trained, and the checksums of the rest. A resumed run has the
 * same bits; another base model is an error, and nothing changes. A checkpoint with all weights restores, too. */
TEST(checkpoints)
{
    const char *dir = tn_test_folder("run"), *all = tn_test_file("all.ckpt");
    void       *m[3];
    tn_seed(5);
    tn_tensor  *x = tn_normal(TN_SHAPE(6, 4, 32), 0, 1);
    tn_dataset *data = tn_dataset_new(.x = x, .y = x, .batch = 2);
    for (int i = 0; i < 3; i++) { /* an uninterrupted run; one with an interruption; another base model */
        tn_seed(i < 2 ? 1 : 2);
        net *n = net_new(TN_F32);
        tn_seed(3);
        ck_assert_int_eq(tn_lora(n, .rank = 2, .names = "up down"), TN_OK);
        m[i] = n;
    }
#define FIT(i, n, ...)                                                                              \
    tn_fit((net *)m[i], .train = tn_dataset_source(data), .loss = squares, .lr = 1e-2, .warmup = 0, \
           .decay = TN_DECAY_NONE, .steps = (n), __VA_ARGS__)
    FIT(0, 5, .folder = NULL);
    FIT(1, 3, .folder = dir);
    fine();
    tn_safetensors *f = tn_safetensors_open(tn_test_in(dir, "step-000000000003.ckpt"));
    ck_assert_ptr_nonnull(f);
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        ck_assert_msg(strstr(tn_safetensors_at(f, i).name, "lora.") != NULL, "%s", tn_safetensors_at(f, i).name);
    tn_safetensors_close(f);
    shake(m[2]);
    tn_tensor *before = tn_module_call(m[2], x);
    FIT(2, 5, .folder = dir, .resume = true);
    ck_error_has(TN_EFORMAT, "is from a run that trained another base model: the CRC-32 of the frozen ");
    ck_assert(tn_same_bits(tn_module_call(m[2], x), before));
    FIT(1, 5, .folder = dir, .resume = true);
    fine();
    ck_assert(tn_same_bits(tn_module_call(m[1], x), tn_module_call(m[0], x)));
    ck_assert_int_eq(tn_checkpoint_save(all, .module = m[0]), TN_OK);
    tn_checkpoint_file *c = tn_checkpoint_open(all);
    ck_assert_int_eq(tn_checkpoint_restore(c, .module = m[2]), TN_OK);
    ck_assert(tn_same_bits(tn_module_call(m[2], x), tn_module_call(m[0], x)));
    tn_checkpoint_close(c), tn_dataset_free(data);
    for (int i = 0; i < 3; i++) tn_module_free(m[i]);
}

/* A merge under autocast has the bits of one without. */
TEST(merged_under_autocast)
{
    tn_linear *m = tn_linear_new(.in = 32, .out = 32);
    tn_lora(m, .rank = 4);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_from(p.tensor, tn_normal(tn_shape_of(p.tensor), 0, 1));
        tn_scope_end(s);
    }
    tn_linear *same = tn_copy(m);
    ck_assert_int_eq(tn_lora_merge(m), TN_OK);
    const tn_scope s = tn_autocast_begin(true);
    ck_assert_int_eq(tn_lora_merge(same), TN_OK);
    tn_scope_end(s);
    ck_assert(!memcmp(tn_data(m->weight), tn_data(same->weight), 32 * 32 * sizeof(float)));
    tn_free(m), tn_free(same);
}

TEST(mistakes)
{
    net *m = net_new(TN_F32);
    tn_lora(m, .names = "upp");
    ck_error(TN_EINVAL, "tn_lora: .names has 'upp', which is in the name of no linear layer; the first layer is "
                        "'attention.in_proj_weight'");
    tn_lora(m, .trained = "attention,head");
    ck_error(TN_EINVAL, "tn_lora: .trained has 'head', which is in the name of no parameter");
    tn_lora(m, .rank = -1);
    ck_error(TN_EINVAL, "tn_lora: .rank is -1, but must be from 1 to 65536");
    tn_lora(m, .alpha = -1);
    ck_error(TN_EINVAL, "tn_lora: .alpha is -1, but must be from 0 to 1000000; 0 is 2 · rank");
    tn_lora(m, .names = "up", .trained = "up");
    ck_error(TN_EINVAL, "tn_lora: the module has no linear layer to adapt");
    ck_assert(!tn_has_lora(m) && tn_count_trainable(m) == tn_count(m));
    ck_assert_int_ne(tn_peft_save(m, tn_test_folder("no")), TN_OK);
    ck_error(TN_ESTATE, "tn_peft_save: the module has no adapters; tn_lora adds them");
    ck_assert_int_eq(tn_lora_merge(m), TN_OK); /* nothing to merge */
    ck_assert_int_eq(tn_lora(m, .rank = 1), TN_OK);
    tn_lora(m, .rank = 1);
    ck_error(TN_ESTATE, "tn_lora: the module already has adapters; tn_lora_merge merges them");
    ck_fails(tn_mha_prune(m->attention, 1, (int64_t[]){0}), TN_EUNSUPPORTED,
             "tn_mha_prune: the weights have adapters; call tn_lora_merge before");
    tn_free(m);
}

/* Merged, the adapters of both layers would be added to their one weight; an A of rank 1 would be broadcast. */
TEST(tied_weights_and_other_ranks)
{
    const char *dir = tn_test_folder("ranks");
    net        *m = net_new(TN_F32), *other = net_new(TN_F32);
    tn_linear  *extra = tn_child(m, "extra", tn_linear_new(.in = 32, .out = 64));
    tn_tie_to(m, "extra.weight", "up.weight");
    ck_assert_int_eq(tn_lora(m, .rank = 1), TN_OK);
    ck_assert_ptr_eq(extra->weight, m->up->weight);
    tn_lora_merge(m);
    ck_error(TN_EUNSUPPORTED,
             "tn_lora_merge: the weight of 'up' is tied: it is also 'extra.weight', which merging would change; keep "
             "the adapters, or give the layer its own weight");
    ck_assert(tn_has_lora(m));
    tn_free(m);
    m = net_new(TN_F32);
    tn_lora(m, .rank = 1);
    shake(m);
    ck_assert_int_ne(tn_peft_save(m, dir, .task = "SEQ_CLS"), TN_OK);
    ck_error(TN_EINVAL, "tn_peft_save: .task is 'SEQ_CLS', for which PEFT reads a trained head, but the model has "
                        "none; omit .task");
    ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
    tn_bert *b = a_bert();
    tn_lora(b, .rank = 1);
    ck_assert_int_ne(tn_peft_save(b, dir, .task = "CAUSAL_LM"), TN_OK);
    ck_error_has(TN_EINVAL,
                 "tn_peft_save: .task is 'CAUSAL_LM', but this model, Bert, does not generate texts; omit .task");
    tn_free(b);
    tn_lora(other, .rank = 2);
    ck_assert_int_ne(tn_peft_load(other, dir), TN_OK);
    ck_error_has(TN_ESHAPE, "the adapters of 'attention.in_proj_weight' have rank 1, those of the model 2");
    tn_free(other);
    tn_free(m);
}
