/* state.h — state dicts: the parameters and saved buffers of a module by their dotted names, to and from safetensors
 * files, PyTorch's and Hugging Face's among them. Part of nn.h: include that.
 *
 *     tn_save(net, "net.safetensors");
 *     tn_load(net, "net.safetensors");                             // all names and shapes must fit ...
 *     tn_load(net, "other.safetensors", .allow_missing = true);    // ... but for what is allowed
 *
 * Loading is all or nothing: every name and shape is checked and every number read before the first one is changed.
 * Number types are converted to the module's. A tensor with several names is saved once, under its first, with the
 * others in the file's metadata, as PyTorch's safetensors.torch.save_model does it; loaded, it is found by any. */
#ifndef TENON_NN_STATE_H
#define TENON_NN_STATE_H

#include "module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a name in a file becomes a name in the module, and when saving the other way round. Rules are applied one
 * after the other. A rule matches a whole name, or its beginning up to a dot; the rest stays. A part of a name may
 * be *, which stands for any one part, or once **, for any number of them; in `module` stand as many.
 *
 *     tn_rename rules[] = {
 *         TN_RENAME("bert", ""),
 *         TN_RENAME("encoder.layer.*.output.dense", "layers.*.linear2"),
 *         TN_RENAME("**.gamma", "**.weight", .load_only = true),
 *         TN_RENAME("pooler", NULL),                                                 // in the file, but not wanted
 *         TN_RENAME("h.*.attn.c_attn.weight", "layers.*.qkv.weight", .transpose = true), // [in, out] in the file
 *         TN_RENAME("**.query.weight", "**.in_proj_weight", .part = 0, .parts = 3),  // its first third of rows
 *     };
 *     tn_load(net, path, .rename = rules, .renames = sizeof rules / sizeof *rules); */
typedef struct {
    const char *file, *module;
    bool        transpose;
    int         part, parts; /* parts 0: the whole tensor; else part 0 … parts - 1 of its first dim */
    bool        load_only;   /* not used when saving; rules whose module is NULL are not, either */
} tn_rename;

#define TN_RENAME(file_, ...)                \
    {                                        \
        .file = file_, .module = __VA_ARGS__ \
    }

typedef enum { TN_MISSING, TN_UNEXPECTED, TN_MISSHAPEN } tn_misfit;
typedef struct {
    int64_t loaded, missing, unexpected, misshapen;
} tn_load_report;

typedef struct tn_load_args {
    int              zero_;
    const char      *path;
    tn_safetensors  *file;    /* instead of path, or with it, which then only names it: an open file       */
    const char      *prefix;  /* "model.": only names that begin so are looked at, and it is taken off    */
    const tn_rename *rename;  /* rules, in order ...                                                      */
    int              renames; /* ... and how many                                                        */
    bool             allow_missing, allow_unexpected, allow_misshapen; /* what does not fit stays as it was */
    tn_load_report  *report; /* out, also after a failure                                                */
    /* Told of each name that does not fit, allowed or not: name as in the module, or in the file if it is
     * unexpected. */
    void (*misfit)(tn_misfit what, const char *name, const char *text, void *user);
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY tn_load_args;
TN_API tn_status   tn_load_run(void *m, tn_load_args c);

/* m becomes the mean of n files, as the last checkpoints of a run are averaged: each is loaded by its own config, and
 * must fit as a whole. What is no floating number (a counter) comes from the last. All or nothing, as with loading. */
TN_API tn_status tn_load_mean(void *m, int n, const tn_load_args *from);

typedef struct tn_save_args {
    int                    zero_;
    const char            *path;
    tn_safetensors_writer *writer; /* instead of path: the tensors are put into it, and it is the caller's to save */
    const char            *prefix; /* put in front of every name */
    const tn_rename       *rename;
    int                    renames;
    bool                   every_name; /* tied tensors are stored under each of their names, for load_state_dict */
    int                    end_;
} TN_KEYWORDS_ONLY tn_save_args;
TN_API tn_status   tn_save_run(void *m, tn_save_args c);

/* As tn_quantize (module.h), with f16 in place of 8 bits: half of f32. What a file held as F16 is the same then. */
TN_API tn_status tn_module_halve(void *m);

/* All parameters and saved buffers of m become those of another module with the same names and shapes. */
TN_API tn_status tn_module_assign(void *m, void *from);

#ifdef __cplusplus
}
#else
#define tn_load(m, ...) \
    TN_CALL_(tn_load_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_load_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, .zero_ = 0)))
#define tn_save(m, ...) \
    TN_CALL_(tn_save_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_save_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, .zero_ = 0)))
#endif
#define tn_halve(m) tn_module_halve(TN_ANY_MODULE_(m))
#define tn_assign(m, from) tn_module_assign(TN_ANY_MODULE_(m), TN_ANY_MODULE_(from))

#endif
