/* checkpoint.h — one file with everything that a training run needs to go on exactly: weights, optimizer and schedules,
 * averages, random generators, the user's place in the data, the config. Part of optim.h: include that.
 *
 *     tn_checkpoint_save("run/last.ckpt", .module = net, .optimizer = opt, .step = step, .data = "{\"epoch\": 3}");
 *
 *     tn_checkpoint_file *f = tn_checkpoint_open("run/last.ckpt");
 *     step = tn_checkpoint_step(f);
 *     tn_checkpoint_restore(f, .module = net, .optimizer = opt);
 *     tn_checkpoint_close(f);
 *
 * A resumed run gives the same bits as one that was never interrupted. Saving is atomic and durable: whatever happens
 * meanwhile, the file is the old one or the new one, whole. Each tensor has a CRC-32 (zlib's), and so has the rest:
 * damage is found before it is used. Restoring changes nothing unless everything fits, and else says what does not.
 *
 * The file is a safetensors file: model.<name>, optim.<name>.<state>, ema.<name>, data.<name>; what is no tensor is
 * JSON in its metadata, under tenon.checkpoint. PyTorch can read it. */
#ifndef TENON_OPTIM_CHECKPOINT_H
#define TENON_OPTIM_CHECKPOINT_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tn_optimizer;
struct tn_ema;

typedef struct {
    const char *name;
    tn_tensor  *tensor;
} tn_named;

typedef struct tn_checkpoint_save_args {
    int                        zero_;
    const char                *path;
    void                      *module;    /* its parameters and saved buffers */
    const struct tn_optimizer *optimizer; /* and its schedules */
    const struct tn_ema       *ema;
    int64_t                    step;    /* yours to count */
    const char                *config;  /* JSON: what the model is made from */
    const char                *data;    /* JSON: where in the data you are, and whatever else you need */
    const tn_named            *tensors; /* the same as tensors */
    int                        tensor_count;
    tn_generator *const       *generators; /* besides the current one */
    int                        generator_count;
    int                        end_;
} TN_KEYWORDS_ONLY tn_checkpoint_save_args;
/* Between two steps: gradients are not saved, so that none may be waiting for a step. */
TN_API tn_status tn_checkpoint_save_run(tn_checkpoint_save_args c) TN_CHECKED;

typedef struct tn_checkpoint_file tn_checkpoint_file;
TN_API tn_checkpoint_file        *tn_checkpoint_open(const char *path); /* checks all but the tensors' bytes */
TN_API void                       tn_checkpoint_close(tn_checkpoint_file *f);
TN_API tn_status      tn_checkpoint_verify(const tn_checkpoint_file *f) TN_CHECKED; /* the tensors' bytes, too */
TN_API int64_t        tn_checkpoint_step(const tn_checkpoint_file *f);
TN_API const tn_json *tn_checkpoint_config(const tn_checkpoint_file *f); /* the file's, as is what they are in; */
TN_API const tn_json *tn_checkpoint_data(const tn_checkpoint_file *f);   /* NULL if there is none */
TN_API tn_tensor     *tn_checkpoint_tensor(const tn_checkpoint_file *f, const char *name); /* of .tensors */

/* What is asked for is restored, and must be there; the rest of the file is left alone. How gradients are clipped, and
 * in how many parts (tn_accumulate), is the program's. */
typedef struct tn_checkpoint_restore_args {
    int                       zero_;
    const tn_checkpoint_file *file;
    void                     *module;
    struct tn_optimizer      *optimizer;
    struct tn_ema            *ema;
    tn_generator *const      *generators;
    int                       generator_count;
    bool                      keep_options; /* the options of groups, schedules and averages stay as in this program */
    bool                      keep_generator; /* the current generator stays as it is */
    int                       end_;
} TN_KEYWORDS_ONLY tn_checkpoint_restore_args;
TN_API tn_status   tn_checkpoint_restore_run(tn_checkpoint_restore_args c) TN_CHECKED;

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
#define tn_checkpoint_save(...) \
    TN_CALL_(tn_checkpoint_save_run(TN_ARGS1_(tn_checkpoint_save_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, .zero_ = 0)))
#define tn_checkpoint_restore(...)      \
    TN_CALL_(tn_checkpoint_restore_run( \
        TN_ARGS1_(tn_checkpoint_restore_args, TN_NO_DEFAULTS_, file, __VA_ARGS__, .zero_ = 0)))
#endif

#endif
