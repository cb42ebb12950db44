/* training.c — examples of optimizers, schedules, averages, checkpoints, sources of batches and the training loop. */
#include "show.h"

static tn_linear *small_net(void) { return tn_linear_new(.in = 2, .out = 1); }

static tn_tensor *small_loss(tn_linear *m) { return tn_mean(tn_square(tn_call(m, tn_ones(TN_SHAPE(4, 2))))); }

EXAMPLE(optimizer)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_adamw_new(m, .lr = 0.1, .clip.norm = 1);
    double        first = tn_item(small_loss(m));
    for (int step = 0; step < 20; step++) {
        tn_scope s = tn_scope_begin();
        tn_backward(small_loss(m));
        tn_step(opt); /* also zeroes the gradients */
        tn_scope_end(s);
    }
    printf("%s, %d steps, smaller %d\n", tn_optimizer_name(opt), (int)tn_steps(opt), tn_item(small_loss(m)) < first);
    printf("%d %d\n", tn_grad_norm(opt) > 0, tn_optimizer_state(opt, m->weight, "exp_avg") != NULL);
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(optimizers)
{
    tn_linear    *m = small_net();
    tn_optimizer *all[] = {tn_sgd_new(m, .lr = 0.1, .momentum = 0.9),
                           tn_adam_new(m),
                           tn_adagrad_new(m),
                           tn_rmsprop_new(m),
                           tn_adafactor_new(m),
                           tn_lamb_new(m)};
    for (int i = 0; i < 6; i++) {
        tn_backward(small_loss(m));
        tn_step(all[i]);
        printf("%s: by element %d\n", tn_optimizer_name(all[i]), tn_optimizer_by_element(all[i]));
        tn_optimizer_free(all[i]);
    }
    tn_free(m);
}

static bool is_bias(const char *name, const tn_tensor *t, void *user)
{
    (void)t, (void)user;
    return strcmp(name, "bias") == 0;
}

EXAMPLE(parameter_groups)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_adamw_new(m, .lr = 0.1);
    int           group = tn_group_new(opt, .match = is_bias, .lr = 0.01);
    printf("group %d of %d, lr %g\n", group, tn_group_count(opt), tn_lr(opt, group));
    printf("%d\n", tn_group_of(opt, m->bias));
    tn_no_decay(opt); /* no weight decay of biases and norms */
    printf("%g %g\n", tn_option(opt, group, TN_OPT_WEIGHT_DECAY), tn_option(opt, 0, TN_OPT_BETA1));
    tn_set_option(opt, -1, TN_OPT_EPS, 1e-6);
    tn_set_lr(opt, 0, 0.5);
    printf("%g %g\n", tn_lr(opt, 0), tn_option(opt, 0, TN_OPT_BASE_LR));
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(accumulation)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_sgd_new(m, .lr = 0.1);
    tn_accumulate(opt, 2); /* every second tn_step updates, with the mean of two gradients */
    for (int i = 0; i < 4; i++) {
        tn_backward(small_loss(m));
        tn_step(opt);
    }
    printf("%d updates, %d parts\n", (int)tn_steps(opt), (int)tn_optimizer_parts(opt));
    tn_backward(small_loss(m));
    printf("%d\n", tn_clip_grads(m, .clip.norm = 1e-3) > 1e-3); /* the norm before */
    tn_zero_grads(m);
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(parts_of_an_optimizer)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_sgd_new(m, .lr = 0.1, .momentum = 0.9, .clip.norm = 2);
    printf("clip %g, %d bytes missing\n", tn_optimizer_clip(opt).norm, (int)tn_optimizer_missing(opt));
    uint64_t before = tn_optimizer_sum(opt);
    tn_set_lr(opt, -1, 0.2);
    printf("%d\n", tn_optimizer_sum(opt) != before);
    tn_optimizer_shard(opt, m->weight, 0, 1); /* updates only the first element of the weight */
    tn_backward(small_loss(m));
    tn_step(opt);
    int64_t bytes = tn_optimizer_pack(opt, m->bias, NULL);
    void   *room = tn_mem_get((size_t)bytes);
    tn_optimizer_pack(opt, m->bias, room);
    tn_optimizer_forget(opt, m->bias);
    printf("%s\n", tn_status_name(tn_optimizer_unpack(opt, m->bias, room, bytes)));
    tn_mem_put(room, (size_t)bytes);
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(schedules)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_sgd_new(m, .lr = 1);
    tn_schedule  *s = tn_warmup_lr_new(opt, .warmup = 2, .steps = 10, .decay = TN_DECAY_COSINE);
    for (int64_t t = 0; t <= 10; t += 2) printf("%.4f ", tn_schedule_lr(s, t, 0));
    printf("\n");
    tn_schedule_step(s);
    printf("%d %g\n", (int)tn_schedule_now(s), tn_lr(opt, 0));
    tn_schedule_goto(s, 2);
    tn_schedule_follow(s); /* from now on tn_step steps it */
    printf("%g %d %d\n", tn_lr(opt, 0), tn_schedule_optimizer(s) == opt, tn_schedule_by_values(s));
    tn_optimizer_free(opt); /* frees its schedules */
    tn_free(m);
}

static double halves(int64_t t, int group, void *user)
{
    (void)group, (void)user;
    return pow(0.5, (double)t);
}

EXAMPLE(more_schedules)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_sgd_new(m, .lr = 1);
    for (int kind = 0; kind < 12; kind++) {
        tn_schedule *s = NULL;
        switch (kind) {
        case 0: s = tn_constant_lr_new(opt, .factor = 0.5, .steps = 2); break;
        case 1: s = tn_linear_lr_new(opt, .start = 0.25, .steps = 3); break;
        case 2: s = tn_step_lr_new(opt, .size = 2); break;
        case 3: s = tn_multi_step_lr_new(opt, .milestones = {1, 3}); break;
        case 4: s = tn_exponential_lr_new(opt, .gamma = 0.5); break;
        case 5: s = tn_polynomial_lr_new(opt, .steps = 4, .power = 2); break;
        case 6: s = tn_cosine_lr_new(opt, .steps = 4); break;
        case 7: s = tn_cosine_restarts_lr_new(opt, .steps = 2); break;
        case 8: s = tn_one_cycle_lr_new(opt, .max_lr = 1, .steps = 4); break;
        case 9: s = tn_noam_lr_new(opt, .dim = 4, .warmup = 2); break;
        case 10: s = tn_inverse_sqrt_lr_new(opt, .warmup = 2); break;
        case 11: s = tn_lambda_lr_new(opt, .factor = halves); break;
        }
        for (int64_t t = 0; t < 4; t++) printf("%.4f ", tn_schedule_lr(s, t, 0));
        printf("\n");
        tn_schedule_free(s);
    }
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(joined_schedules)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_sgd_new(m, .lr = 1);
    tn_schedule  *a = tn_linear_lr_new(opt, .start = 0.5, .steps = 2), *b = tn_exponential_lr_new(opt, .gamma = 0.5);
    tn_schedule  *s = tn_sequential_lr_new(opt, .parts = {a, b}, .milestones = {2});
    for (int64_t t = 0; t < 5; t++) printf("%.4f ", tn_schedule_lr(s, t, 0));
    printf("\n");
    tn_optimizer_free(opt);
    opt = tn_sgd_new(m, .lr = 1);
    a = tn_constant_lr_new(opt, .factor = 0.5, .steps = 2), b = tn_exponential_lr_new(opt, .gamma = 0.5);
    s = tn_chained_lr_new(opt, .parts = {a, b}); /* the factors multiply */
    for (int64_t t = 0; t < 3; t++) printf("%.4f ", tn_schedule_lr(s, t, 0));
    printf("\n");
    tn_optimizer_free(opt);
    opt = tn_sgd_new(m, .lr = 1);
    s = tn_plateau_lr_new(opt, .patience = 0, .factor = 0.1);
    tn_plateau_step(s, 1.0);
    tn_plateau_step(s, 1.5); /* worse */
    printf("%g\n", tn_lr(opt, 0));
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(averages_of_weights)
{
    tn_linear *m = small_net();
    tn_ema    *ema = tn_ema_new(m, .decay = 0.9);
    double     before = tn_item(m->bias);
    tn_scope   s = tn_no_grad_begin();
    tn_add_scalar_(m->bias, 10);
    tn_scope_end(s);
    tn_ema_update(ema); /* average += 0.1 (weight - average) */
    tn_ema_swap(ema);
    printf("%.4f %d %d\n", tn_item(m->bias) - before, tn_ema_swapped(ema), tn_ema_has(ema, m->bias));
    tn_ema_swap(ema);
    tn_ema_free(ema);
    ema = tn_ema_new(m, .mean = true);
    tn_ema_start(ema);
    printf("%d\n", tn_ema_started(ema));
    tn_ema_free(ema);
    tn_free(m);
}

EXAMPLE(training_checkpoint)
{
    tn_linear    *m = small_net();
    tn_optimizer *opt = tn_adam_new(m);
    tn_named      more[] = {{"best", tn_ones(TN_SHAPE(1))}};
    if (tn_checkpoint_save("example.ckpt", .module = m, .optimizer = opt, .step = 7, .config = "{\"dim\": 2}",
                           .data = "{\"epoch\": 3}", .tensors = more, .tensor_count = 1) != TN_OK)
        puts(tn_error_message());
    tn_checkpoint_file *f = tn_checkpoint_open("example.ckpt");
    printf("step %d, epoch %d, dim %d\n", (int)tn_checkpoint_step(f),
           (int)tn_json_i64(tn_json_get(tn_checkpoint_data(f), "epoch")),
           (int)tn_json_i64(tn_json_get(tn_checkpoint_config(f), "dim")));
    printf("%s %g %d\n", tn_status_name(tn_checkpoint_verify(f)), tn_item(tn_checkpoint_tensor(f, "best")),
           tn_checkpoint_record(f) != NULL);
    printf("%s\n", tn_status_name(tn_checkpoint_restore(f, .module = m, .optimizer = opt)));
    tn_checkpoint_close(f);
    tn_json *state = tn_checkpoint_state(.module = m);
    printf("%d\n", tn_json_get(state, "crc32") != NULL);
    tn_json_free(state);
    tn_optimizer_free(opt);
    tn_free(m);
}

EXAMPLE(dataset)
{
    tn_dataset *d = tn_dataset_new(.x = tn_arange_of(TN_F32, 0, 5, 1), .batch = 2, .fields = {{"index", tn_arange(5)}});
    tn_source   s = tn_dataset_source(d);
    tn_batch    b;
    while (tn_source_next(&s, &b)) tn_print(stdout, b.x);
    tn_source_shard(&s, (tn_shard){.rank = 1, .of = 2});
    if (tn_source_next(&s, &b))
        printf("row %d of %d: index %g, other %d\n", (int)b.first, (int)b.whole, tn_item(tn_batch_get(&b, "index")),
               tn_batch_find(&b, "other") != NULL);
    tn_dataset_free(d);
}

EXAMPLE(parts_of_batches)
{
    tn_batch b = {.items = 0};
    tn_batch_cut(&b, (tn_shard){.rank = 1, .of = 3}, 10);
    printf("rows %d to %d\n", (int)b.first, (int)(b.first + b.rows - 1));
    tn_batch_put(&b, "weight", tn_ones(TN_SHAPE(b.rows)));
    tn_shard two = {.rank = 0, .of = 4, .count = 2};
    bool     first = tn_shard_next(&two), last = tn_shard_next(&two);
    printf("%d %d\n", first, last);
    tn_shard_rewind(&two);
}

EXAMPLE(token_sources)
{
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = i;
    tn_windows *w = tn_windows_new(ids, 40, .batch = 2, .length = 4, .in_order = true);
    tn_columns *c = tn_columns_new(ids, 40, .batch = 2, .length = 3);
    tn_spans   *p = tn_spans_new(ids, 40, .batch = 1, .length = 12, .begin = 90, .end = 91, .sentinel = 99,
                                 .in_order = true, .seed = 1);
    tn_source   sources[] = {tn_windows_source(w), tn_columns_source(c), tn_spans_source(p)};
    tn_batch    b;
    for (int i = 0; i < 3; i++)
        if (tn_source_next(&sources[i], &b)) tn_print(stdout, b.x), tn_print(stdout, b.y);
    tn_windows_free(w);
    tn_columns_free(c);
    tn_spans_free(p);
}

static tn_status bytes_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    tn_status s = TN_OK;
    for (size_t i = 0; i < line.bytes && s == TN_OK; i++) s = tn_ids_add(to, (unsigned char)line.at[i]);
    return s;
}

EXAMPLE(sentences)
{
    tn_text       lines[] = {{"ab", 2}, {"c", 1}};
    tn_sentences *s = tn_sentences_new(2, lines, ((tn_encoder){bytes_of, NULL}), .batch = 2, .in_order = true);
    tn_source     source = tn_sentences_source(s);
    tn_batch      b;
    if (tn_source_next(&source, &b)) tn_print(stdout, b.x), tn_print(stdout, tn_batch_get(&b, "lengths"));
    tn_sentences_free(s);
}

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mse_loss(tn_call((tn_linear *)module, b->x), b->y);
}

static void report(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_VALID && e->epoch % 20 == 0) printf("epoch %d: %.3f\n", (int)e->epoch, e->value);
}

static tn_status exchange(void *module, tn_optimizer *o, int64_t step, void *user)
{
    (void)module, (void)o, (void)step, (void)user;
    return TN_OK; /* gradients may be changed here */
}

static double score(void *module, void *user)
{
    (void)user;
    return tn_get(((tn_linear *)module)->weight, 0);
}

EXAMPLE(training_loop)
{
    tn_linear    *m = tn_linear_new(.in = 1, .out = 1);
    tn_tensor    *x = tn_reshape(tn_linspace(-1, 1, 32), TN_SHAPE(32, 1)), *y = tn_mul_scalar(x, 3);
    tn_dataset   *train = tn_dataset_new(.x = x, .y = y, .batch = 8, .shuffle = true);
    tn_dataset   *valid = tn_dataset_new(.x = x, .y = y, .batch = 32);
    tn_fit_result r = tn_fit(m, .train = tn_dataset_source(train), .loss = loss, .lr = 0.1, .epochs = 40,
                             .valid = tn_dataset_source(valid), .on = report, .exchange = exchange);
    printf("%s after %d steps, weight %.1f\n", tn_fit_why_text(r.why), (int)r.steps, tn_item(m->weight));
    r = tn_fit(m, .train = tn_dataset_source(train), .loss = loss, .epochs = 1, .score = score, .rising = true);
    printf("%d\n", r.why == TN_FIT_DONE && r.best > 2);
    tn_dataset_free(train);
    tn_dataset_free(valid);
    tn_free(m);
}
