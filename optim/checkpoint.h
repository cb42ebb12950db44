/* checkpoint.h — training checkpoints: one file with everything that a run needs to resume exactly: weights, optimizer,
 * schedules, averages, random generators, the position in the data, the config. Part of optim.h: include that.
 *
 *     tn_checkpoint_save("run/last.ckpt", .module = net, .optimizer = opt, .step = step, .data = "{\"epoch\": 3}");
 *
 *     tn_checkpoint_file *f = tn_checkpoint_open("run/last.ckpt");
 *     step = tn_checkpoint_step(f);
 *     tn_checkpoint_restore(f, .module = net, .optimizer = opt);
 *     tn_checkpoint_close(f);
 *
 * A resumed run computes the same bits as an uninterrupted one. Saving is atomic and durable: after any interruption
 * the path holds the complete old file or the complete new one. Each tensor has a CRC-32 (zlib's), and so has the JSON,
 * so that damage is found before the data are used. Restoring is all or nothing; the error lists everything that
 * differs.
 *
 * The file is a safetensors file with the tensors model.<name>, optim.<name>.<state>, ema.<name>, data.<name>; all
 * other data are JSON in its metadata under tenon.checkpoint. PyTorch can read it. */
#ifndef TENON_OPTIM_CHECKPOINT_H
#define TENON_OPTIM_CHECKPOINT_H

#include "../nn/nn.h"

TN_C_BEGIN_

struct tn_optimizer;
struct tn_ema;

typedef struct {
    const char *name;
    tn_tensor  *tensor;
} tn_named;

typedef struct tn_checkpoint_save_args {
    int                        zero_;
    const char                *path;
    void                      *module;    /* saves its parameters and saved buffers */
    const struct tn_optimizer *optimizer; /* saves its state and schedules */
    const struct tn_ema       *ema;
    int64_t                    step;    /* the program's step count */
    const char                *config;  /* JSON: the configuration of the model */
    const char                *data;    /* JSON: the position in the data and anything else the program needs */
    const tn_named            *tensors; /* further tensors that the program needs */
    int                        tensor_count;
    tn_generator *const       *generators; /* generators to save in addition to the current one */
    int                        generator_count;
    /* Of .module, save only the parameters that require grad and the buffers. Of frozen parameters the file has the
     * checksums: they must have the same values when it is restored. */
    bool trained_only;
    int  end_;
} TN_KEYWORDS_ONLY tn_checkpoint_save_args;
/* Call it between two steps. Gradients are not saved; a gradient that no step has used is an error. */
TN_API tn_status tn_checkpoint_save_run(tn_checkpoint_save_args c) TN_CHECKED;
/* The record that tn_checkpoint_save would write, without a file: JSON with "crc32", the CRC-32 of each tensor by its
 * name, and all data that are not tensors. .path is ignored. The caller frees it with tn_json_free. NULL: raised. */
TN_API tn_json *tn_checkpoint_state_run(tn_checkpoint_save_args c);

typedef struct tn_checkpoint_file tn_checkpoint_file;
TN_API tn_checkpoint_file *tn_checkpoint_open(const char *path); /* checks everything except the tensors' bytes */
TN_API void                tn_checkpoint_close(tn_checkpoint_file *f);
TN_API tn_status           tn_checkpoint_verify(const tn_checkpoint_file *f) TN_CHECKED; /* checks the tensors' bytes */
TN_API int64_t             tn_checkpoint_step(const tn_checkpoint_file *f);
TN_API const tn_json *tn_checkpoint_record(const tn_checkpoint_file *f); /* as of tn_checkpoint_state; it, config and */
TN_API const tn_json *tn_checkpoint_config(const tn_checkpoint_file *f); /* data are valid until the file is closed; */
TN_API const tn_json *tn_checkpoint_data(const tn_checkpoint_file *f);   /* NULL if the file has none */
TN_API tn_tensor     *tn_checkpoint_tensor(const tn_checkpoint_file *f, const char *name); /* one of .tensors */

/* Restores the objects that are passed, which the file must contain; ignores the rest of the file. Clipping and
 * accumulation (tn_accumulate) are not restored: they are set by the program. */
typedef struct tn_checkpoint_restore_args {
    int                       zero_;
    const tn_checkpoint_file *file;
    void                     *module;
    struct tn_optimizer      *optimizer;
    struct tn_ema            *ema;
    tn_generator *const      *generators;
    int                       generator_count;
    bool                      keep_options;   /* keep this program's options of groups, schedules and averages */
    bool                      keep_generator; /* do not restore the current generator */
    int                       end_;
} TN_KEYWORDS_ONLY tn_checkpoint_restore_args;
TN_API tn_status   tn_checkpoint_restore_run(tn_checkpoint_restore_args c) TN_CHECKED;

TN_C_END_

#define tn_checkpoint_save(...) \
    TN_CALL_(tn_checkpoint_save_run(TN_ARGS1_(tn_checkpoint_save_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#define tn_checkpoint_state(...) \
    TN_CALL_(tn_checkpoint_state_run(TN_FILLED_(tn_checkpoint_save_args, TN_NO_DEFAULTS_, __VA_ARGS__)))
#define tn_checkpoint_restore(...) \
    TN_CALL_(                      \
        tn_checkpoint_restore_run(TN_ARGS1_(tn_checkpoint_restore_args, TN_NO_DEFAULTS_, file, __VA_ARGS__, TN_END_)))

#endif
