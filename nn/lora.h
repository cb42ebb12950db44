/* lora.h — low-rank adapters (LoRA, Hu et al. 2021): train a small addition to the linear layers of any model while its
 * weights stay as they are. Part of nn.h: include that.
 *
 *     tn_lora(net, .rank = 8);                                 // all linear layers; or .names = "q_proj v_proj"
 *     tn_fit(net, .train = data, .loss = gpt_loss, .lr = 2e-4); // trains only the adapters
 *     tn_lora_merge(net);                                      // adds them to the weights
 *
 * Each layer computes x Wᵀ + b + alpha / rank · (x Aᵀ) Bᵀ, with A [rank, in] and B [out, rank]. B starts at 0, so new
 * adapters change no result. W may be packed (tn_quantize, tn_halve): the model then takes a quarter of the memory, and
 * gradients pass through it. tn_save contains the adapters; tn_fit's training checkpoints contain only what is trained
 * (.trained_only in optim/checkpoint.h). extras/peft.h reads and writes PEFT's files. */
#ifndef TENON_NN_LORA_H
#define TENON_NN_LORA_H

#include "state.h"

TN_C_BEGIN_

typedef struct tn_lora_args {
    int          zero_;
    void        *module;
    int64_t rank TN_IS(8);
    double       alpha; /* 0: 2 · rank */
    /* Names of layers, separated by spaces or commas: one or several parts of a path in the module or of a name in
     * files, as "q_proj", "layers.0" or "attention.self.query". NULL: all tn_mha, and all tn_linear without
     * .weight_norm, except .trained. */
    const char *names;
    const char *trained; /* names, as above, of parts that are trained completely: a new head; NULL: none */
    /* Instead of .names: true for the layers to adapt, by their name in files. May be NULL. */
    bool (*wanted)(const char *name, void *user);
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY tn_lora_args;
#define TN_LORA_ARGS_DEFAULTS .rank = 8
/* Freezes the module, except .trained, and adds adapters, all or none, in f32 (f64 if the weights are f64). A name that
 * fits nothing is an error. Create the optimizer afterwards. */
TN_API tn_status tn_lora_run(tn_lora_args a);
/* Adds the adapters to the weights, which must not be packed, removes them, and unfreezes the module. Free the
 * optimizer before. */
TN_API tn_status tn_module_lora_merge(void *m);

/* The adapters of one weight: the child "lora" of its layer. */
enum { TN_LORA_PARTS = 16, TN_LORA_RULES = 128 };
typedef struct tn_lora_pair {
    tn_module   base;
    int64_t     rank, rows; /* rows: of each part */
    double      scale;      /* alpha / rank */
    int         parts;      /* of the weight's rows, of equal size: those with names of their own in files; or 1 */
    tn_tensor **a, **b;     /* [parts]: A [rank, in] and B [rows, rank]; NULL: this part has none */
} tn_lora_pair;

/* A walk over all layers that can have adapters, in parts if files have parts:
 *     for (tn_lora_layer l = tn_lora_layers(net); tn_lora_next(&l);) printf("%s %d\n", l.name, l.lora != NULL); */
typedef struct {
    char          name[TN_PATH_BYTES]; /* in files, without ".weight" */
    char          path[TN_PATH_BYTES]; /* of the layer in the module */
    tn_module    *layer;               /* a tn_linear or tn_mha */
    tn_tensor    *weight;
    tn_lora_pair *lora; /* NULL: this weight has no adapters */
    int           part, parts;
    int64_t       in, out;       /* out: of the part */
    bool          transposed;    /* in files */
    int           piece, pieces; /* files join `pieces` weights under `name`, this is number `piece`; 0: not joined */
    int64_t       groups;        /* of rows in which the joined weights alternate (tn_rename); 0: one after the other */
    tn_each       each_;         /* private, from here on */
    tn_rename     rules_[TN_LORA_RULES];
    int           renames_;
    char          prefix_[TN_PATH_BYTES]; /* of the module that has the rules */
} tn_lora_layer;
TN_API tn_lora_layer tn_module_lora_layers(void *m);
TN_API bool          tn_lora_next(tn_lora_layer *l); /* false: no more, or an error is set */
/* The name in files of the tensor `path` of l's module, or of a part of it: as l->name, but of any tensor. pieces: the
 * number of tensors that files join under this name; 0: not joined. */
TN_API bool tn_lora_name(const tn_lora_layer *l, const char *path, int part, char name[TN_PATH_BYTES], int *parts,
                         bool *transposed, int *pieces);
/* The tn_linear that has piece `piece` of the matrix in which files join l's weight; NULL: raised. */
TN_API tn_module *tn_lora_piece(const tn_lora_layer *l, int piece);
TN_API bool       tn_module_has_lora(void *m);

TN_C_END_
#define tn_lora(...) TN_CALL_(tn_lora_run(TN_OF_MODULE_(tn_lora_args, TN_LORA_ARGS_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_lora_merge(m) tn_module_lora_merge(TN_ANY_MODULE_(m))
#define tn_lora_layers(m) tn_module_lora_layers(TN_ANY_MODULE_(m))
#define tn_has_lora(m) tn_module_has_lora(TN_ANY_MODULE_(m))

#endif
