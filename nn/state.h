/* state.h — state dicts: the parameters and saved buffers of a module by their dotted names, to and from safetensors
 * files, PyTorch's and Hugging Face's among them. Part of nn.h: include that.
 *
 *     tn_save(net, "net.safetensors");
 *     tn_load(net, "net.safetensors");                             // all names and shapes must fit ...
 *     tn_load(net, "other.safetensors", .allow_missing = true);    // ... except the mismatches that are allowed
 *
 * Loading is all or nothing: all names and shapes are checked and all values are read before the first one changes.
 * Values are converted to the module's dtypes. A tensor with several names is saved once, under its first name; the
 * other names are in the file's metadata, as with PyTorch's safetensors.torch.save_model. Loading accepts any of
 * them. */
#ifndef TENON_NN_STATE_H
#define TENON_NN_STATE_H

#include "attention.h"

TN_C_BEGIN_

/* A rule that rewrites a name in a file to a name in the module, and back when saving. Rules are applied one after the
 * other, in reverse order when saving. A rule matches a whole name, or its start up to a dot; the rest is kept. In a
 * pattern, the part * matches any one part and ** (at most once) any number of parts; `module` has the same stars.
 *
 *     tn_rename rules[] = {
 *         TN_RENAME("bert", ""),
 *         TN_RENAME("encoder.layer.*.output.dense", "layers.*.linear2"),
 *         TN_RENAME("**.gamma", "**.weight", .load_only = true),
 *         TN_RENAME("pooler", NULL),                                                 // in the file, but not loaded
 *         TN_RENAME("h.*.attn.c_attn.weight", "layers.*.qkv.weight", .transpose = true), // [in, out] in the file
 *         TN_RENAME("**.query.weight", "**.in_proj_weight", .part = 0, .parts = 3),  // the first third of its rows
 *         TN_RENAME("**.gate_up", "**.gate", .piece = 0, .pieces = 2), // two matrices of the module, joined in the
 *         TN_RENAME("**.gate_up", "**.up", .piece = 1, .pieces = 2),   // file: first the rows of gate, then of up
 *     };
 *     tn_load(net, path, .rename = rules, .renames = sizeof rules / sizeof *rules); */
typedef struct tn_rename {
    const char *file, *module;
    bool        transpose;
    int         part, parts; /* parts 0: the whole tensor; else part number `part` (0 … parts - 1) of its first dim */
    bool        load_only;   /* not used when saving; rules with a NULL module are not used when saving either */
    /* pieces 0: a whole tensor; else `module` is tensor number `piece` of the `pieces` that the file joins along the
     * first dim. groups: the rows alternate, a group of each piece at a time: GPT-NeoX's [heads, 3, head_dim]; 0: 1 */
    int     piece, pieces;
    int64_t groups;
} tn_rename;

#define TN_RENAME(file_, ...)                \
    {                                        \
        .file = file_, .module = __VA_ARGS__ \
    }

typedef enum { TN_MISSING, TN_UNEXPECTED, TN_SHAPE_MISMATCH } tn_mismatch;
typedef struct {
    int64_t loaded, missing, unexpected, mismatched;
} tn_load_report;

typedef struct tn_load_args {
    int              zero_;
    const char      *path;
    tn_safetensors  *file;    /* an open file to read instead of path; path is then only its name in messages */
    const char      *prefix;  /* "model.": load only names with this prefix, which is removed first */
    const tn_rename *rename;  /* rules, in order */
    int              renames; /* number of rules */
    bool             allow_missing, allow_unexpected, allow_shape_mismatch; /* tensors that do not fit stay unchanged */
    /* Weights (tn_weight) that are matrices of Q4_0, Q4_K, Q5_K, Q6_K, Q8_0 or F16 in the file stay in that type, as
     * tn_quantize packs them: in the memory of the file. They do not change in training. */
    bool packed;
    /* tn_q8_pack, tn_int8_pack, tn_q4_pack or tn_f16_pack: packs the weights as tn_quantize does, each one when it is
     * read, so that memory never holds all of them unpacked. NULL: none. */
    tn_tensor *(*pack)(const tn_tensor *weight);
    tn_load_report *report; /* output, also after a failure; may be NULL */
    /* Called for each name that does not fit, allowed or not; may be NULL. name: as in the module, or as in the file
     * if it is unexpected. */
    void (*mismatch)(tn_mismatch what, const char *name, const char *text, void *user);
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY tn_load_args;
TN_API tn_status   tn_load_run(void *m, tn_load_args c);

/* Sets m to the mean of n files, for example the last checkpoints of a run. Each file is loaded with its own args and
 * must fit completely. Tensors that are not floating (counters) come from the last file. All or nothing. */
TN_API tn_status tn_load_mean(void *m, int n, const tn_load_args *from);

typedef struct tn_save_args {
    int                    zero_;
    const char            *path;
    tn_safetensors_writer *writer; /* instead of path: add the tensors to this writer, which the caller then saves */
    const char            *prefix; /* prepended to every name */
    const tn_rename       *rename;
    int                    renames;
    bool                   every_name; /* store tied tensors under each of their names, for PyTorch's load_state_dict */
    bool                   trained_only; /* only buffers and parameters that require grad, under their first names */
    int                    end_;
} TN_KEYWORDS_ONLY tn_save_args;
TN_API tn_status   tn_save_run(void *m, tn_save_args c);

/* Converts the weights to f16 as tn_quantize (module_tools.h) converts them to 8 bits: half the size of f32. Values
 * that were loaded from F16 stay exact. */
TN_API tn_status tn_module_halve(void *m);

/* The first `length` positions of a key/value cache with one row, as tensors "keys" and "values" of a file, and from a
 * file of `stored` positions into an empty cache; length 0 only checks the file. models/decoding.h has whole files. */
TN_API tn_status tn_kv_cache_put(const tn_kv_cache *c, int64_t length, tn_safetensors_writer *w);
TN_API tn_status tn_kv_cache_take(tn_kv_cache *c, const tn_safetensors *f, int64_t stored, int64_t length);

/* Copies all parameters and saved buffers from another module with the same names and shapes. */
TN_API tn_status tn_module_assign(void *m, void *from);

TN_C_END_
#define tn_load(m, ...) \
    TN_CALL_(tn_load_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_load_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#define tn_save(m, ...) \
    TN_CALL_(tn_save_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_save_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#define tn_load(m, ...) \
    TN_CALL_(tn_load_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_load_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#define tn_save(m, ...) \
    TN_CALL_(tn_save_run(TN_ANY_MODULE_(m), TN_ARGS1_(tn_save_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#define tn_halve(m) tn_module_halve(TN_ANY_MODULE_(m))
#define tn_assign(m, from) tn_module_assign(TN_ANY_MODULE_(m), TN_ANY_MODULE_(from))

#endif
