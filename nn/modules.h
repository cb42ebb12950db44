/* modules.h — the simple modules, with PyTorch's names, shapes, defaults and initialisation, so that a state dict moves
 * both ways. Part of nn.h: include that.
 *
 *     tn_linear *fc = tn_linear_new(.in = 256, .out = 1024);
 *
 * Defaults are PyTorch's; an option that PyTorch disables with False is disabled with .no_…; C++ fills the struct and
 * calls the function that ends in _create. Run a module with tn_call(m, x), unless it has a forward function below.
 * .dtype is the dtype of the parameters; the default is f32. */
#ifndef TENON_NN_MODULES_H
#define TENON_NN_MODULES_H

#include "module.h"

TN_C_BEGIN_

/* ---- products ------------------------------------------------------------------------------------------------- */

typedef struct tn_linear_config {
    int      zero_;
    int64_t  in, out;
    bool     no_bias;
    bool     weight_norm; /* learn the length and the direction of each row of the weight: tn_weight_norm, dim 0 */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_linear_config;
typedef struct {
    tn_module            base;
    int64_t              in, out;
    tn_tensor           *weight, *bias;       /* [out, in], [out] */
    tn_tensor           *weight_g, *weight_v; /* with .weight_norm [out, 1] and [out, in], and weight is NULL */
    struct tn_lora_pair *lora;                /* low-rank adapters: see nn/lora.h; NULL: none */
} tn_linear;
TN_API tn_linear *tn_linear_create(tn_linear_config c); /* x Wᵀ + b, over the last dim */

typedef struct tn_bilinear_config {
    int      zero_;
    int64_t  in1, in2, out;
    bool     no_bias;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_bilinear_config;
typedef struct {
    tn_module  base;
    int64_t    in1, in2, out;
    tn_tensor *weight, *bias; /* [out, in1, in2], [out] */
} tn_bilinear;
TN_API tn_bilinear *tn_bilinear_create(tn_bilinear_config c);
TN_API tn_tensor   *tn_bilinear_forward(tn_bilinear *m, tn_tensor *x1, tn_tensor *x2); /* x1ᵀ W x2 + b */

typedef struct {
    tn_module base;
} tn_identity;
TN_API tn_identity *tn_identity_new(void);

/* ---- embeddings ----------------------------------------------------------------------------------------------- */

typedef struct tn_embedding_config {
    int             zero_;
    int64_t         count, dim;
    int64_t padding TN_IS(-1);      /* row without gradient, initially zero (with .from: copied); -1: none */
    tn_tensor      *from;           /* a pretrained table [count, dim] to copy; count and dim may then be omitted */
    bool            frozen, sparse; /* sparse: the gradient has only the rows that were used (tn_grad_rows) */
    double          dropout; /* probability in training of dropping a row of the table for the whole batch; 0: none */
    tn_dtype        dtype;
    int             end_;
} TN_KEYWORDS_ONLY tn_embedding_config;
#define TN_EMBEDDING_DEFAULTS .padding = -1
typedef struct {
    tn_module  base;
    int64_t    count, dim, padding; /* -1: none */
    bool       sparse;
    double     dropout;
    tn_tensor *weight; /* [count, dim] */
} tn_embedding;
TN_API tn_embedding *tn_embedding_create(tn_embedding_config c); /* indices [...] -> [..., dim] */
/* Rows from … from + n - 1: a view of the table, or for a packed table a copy. */
TN_API tn_tensor *tn_embedding_rows(tn_embedding *m, int64_t from, int64_t n);

typedef enum { TN_BAG_MEAN = 0, TN_BAG_SUM, TN_BAG_MAX } tn_bag_mode;
typedef struct tn_embedding_bag_config {
    int     zero_;
    int64_t count, dim, padding TN_IS(-1); /* table [count, dim]; bags ignore index `padding`; -1: none */
    tn_bag_mode mode;
    bool        last_offset; /* the last offset is the number of indices (PyTorch: include_last_offset) */
    tn_tensor  *from;
    bool        frozen, sparse;
    tn_dtype    dtype;
    int         end_;
} TN_KEYWORDS_ONLY tn_embedding_bag_config;
#define TN_EMBEDDING_BAG_DEFAULTS .padding = -1
typedef struct {
    tn_module   base;
    int64_t     count, dim, padding;
    tn_bag_mode mode;
    bool        last_offset, sparse;
    tn_tensor  *weight;
} tn_embedding_bag;
TN_API tn_embedding_bag *tn_embedding_bag_create(tn_embedding_bag_config c);
/* Returns a row per bag, [bags, dim]. Either index is [bags, n] and offsets NULL (as with tn_call), or index is [n] and
 * bag i starts at offsets[i]. weights: the shape of index, or NULL; only for TN_BAG_SUM. An empty bag's row is 0. */
TN_API tn_tensor *tn_embedding_bag_forward(tn_embedding_bag *m, tn_tensor *index, tn_tensor *offsets,
                                           tn_tensor *weights);

/* ---- normalisation -------------------------------------------------------------------------------------------- */

typedef struct tn_layer_norm_config {
    int        zero_;
    int64_t    dim;   /* size of the last dim, to normalise over it; or set .shape */
    tn_shape   shape; /* sizes of several last dims, to normalise over all of them; or set .dim */
    double eps TN_IS(1e-5);
    bool       no_affine, no_bias;
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_layer_norm_config;
#define TN_LAYER_NORM_DEFAULTS .eps = 1e-5
typedef struct {
    tn_module  base;
    tn_shape   shape;
    double     eps;
    bool       no_affine;
    bool       add_one;       /* RMS norm only */
    tn_tensor *weight, *bias; /* NULL with .no_affine; bias also with .no_bias */
} tn_layer_norm;
TN_API tn_layer_norm *tn_layer_norm_create(tn_layer_norm_config c);

typedef struct tn_rms_norm_config {
    int        zero_;
    int64_t    dim;
    tn_shape   shape;
    double eps TN_IS(-1); /* below 0: the machine epsilon of x's dtype; for bf16 that of f32 */
    bool       no_affine;
    bool       add_one; /* the factors are 1 + weight, and the weight is initialised to 0 (Gemma) */
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_rms_norm_config;
#define TN_RMS_NORM_DEFAULTS .eps = -1
typedef tn_layer_norm tn_rms_norm; /* the same struct, since a tn_block may have either */
TN_API tn_rms_norm   *tn_rms_norm_create(tn_rms_norm_config c);

typedef struct tn_batch_norm_config {
    int        zero_;
    int64_t    features;
    double eps TN_IS(1e-5), momentum TN_IS(0.1);
    bool       cumulative; /* running statistics are averages over all batches (PyTorch: momentum=None) */
    bool       no_affine, no_running;
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_batch_norm_config;
#define TN_BATCH_NORM_DEFAULTS .eps = 1e-5, .momentum = 0.1
typedef struct {
    tn_module  base;
    int64_t    features;
    double     eps, momentum;
    bool       cumulative;
    tn_tensor *weight, *bias;
    tn_tensor *running_mean, *running_var, *num_batches_tracked; /* updated by successful calls in training */
} tn_batch_norm;
TN_API tn_batch_norm *tn_batch_norm1d_create(tn_batch_norm_config c); /* [N, C] or [N, C, L] */
TN_API tn_batch_norm *tn_batch_norm2d_create(tn_batch_norm_config c); /* [N, C, H, W] */

typedef struct tn_group_norm_config {
    int        zero_;
    int64_t    groups, channels;
    double eps TN_IS(1e-5);
    bool       no_affine;
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_group_norm_config;
#define TN_GROUP_NORM_DEFAULTS .eps = 1e-5
typedef struct tn_instance_norm_config {
    int        zero_;
    int64_t    features;
    double eps TN_IS(1e-5);
    bool       affine; /* learn weight and bias; off by default, as in PyTorch */
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_instance_norm_config;
#define TN_INSTANCE_NORM_DEFAULTS .eps = 1e-5
typedef struct {
    tn_module  base;
    int64_t    groups, channels;
    double     eps;
    tn_tensor *weight, *bias;
} tn_group_norm;
TN_API tn_group_norm *tn_group_norm_create(tn_group_norm_config c);         /* [N, C, ...] */
TN_API tn_group_norm *tn_instance_norm1d_create(tn_instance_norm_config c); /* [N, C, L]; each channel is a group */
TN_API tn_group_norm *tn_instance_norm2d_create(tn_instance_norm_config c); /* [N, C, H, W] */

typedef struct tn_dropout_config {
    int      zero_;
    double p TN_IS(0.5);
    int      end_;
} TN_KEYWORDS_ONLY tn_dropout_config;
#define TN_DROPOUT_DEFAULTS .p = 0.5
typedef struct {
    tn_module base;
    double    p;
} tn_dropout;
TN_API tn_dropout *tn_dropout_create(tn_dropout_config c); /* tn_dropout in training; else returns x */

/* ---- activations: elementwise, and along a dim ----------------------------------------------------------------- */

typedef struct tn_leaky_relu_config {
    int          zero_;
    double slope TN_IS(0.01);
    int          end_;
} TN_KEYWORDS_ONLY tn_leaky_relu_config;
#define TN_LEAKY_RELU_DEFAULTS .slope = 0.01
typedef struct tn_elu_config {
    int          zero_;
    double alpha TN_IS(1);
    int          end_;
} TN_KEYWORDS_ONLY tn_elu_config;
#define TN_ELU_DEFAULTS .alpha = 1
typedef struct tn_gelu_config {
    int  zero_;
    bool tanh; /* use the tanh approximation (PyTorch: approximate='tanh') */
    int  end_;
} TN_KEYWORDS_ONLY tn_gelu_config;
typedef struct tn_softplus_config {
    int         zero_;
    double beta TN_IS(1);
    int         end_;
} TN_KEYWORDS_ONLY tn_softplus_config;
#define TN_SOFTPLUS_DEFAULTS .beta = 1
typedef struct tn_along_config {
    int     zero_;
    int dim TN_IS(-1);
    int     end_;
} TN_KEYWORDS_ONLY tn_along_config;
#define TN_ALONG_DEFAULTS .dim = -1
typedef struct tn_prelu_config {
    int                zero_;
    int64_t parameters TN_IS(1); /* number of slopes: 1, or one for each channel of x [N, C, ...] */
    double init        TN_IS(0.25);
    tn_dtype           dtype;
    int                end_;
} TN_KEYWORDS_ONLY tn_prelu_config;
#define TN_PRELU_DEFAULTS .parameters = 1, .init = 0.25
typedef struct {
    tn_module  base;
    double     number; /* slope, alpha or beta */
    int        dim;
    bool       tanh;
    tn_tensor *weight; /* of tn_prelu_new, a parameter; else NULL */
} tn_activation;
TN_API tn_activation *tn_relu_new(void);
TN_API tn_activation *tn_selu_new(void);
TN_API tn_activation *tn_silu_new(void);
TN_API tn_activation *tn_mish_new(void);
TN_API tn_activation *tn_tanh_new(void);
TN_API tn_activation *tn_sigmoid_new(void);
TN_API tn_activation *tn_logsigmoid_new(void);
TN_API tn_activation *tn_leaky_relu_create(tn_leaky_relu_config c);
TN_API tn_activation *tn_elu_create(tn_elu_config c);
TN_API tn_activation *tn_prelu_create(tn_prelu_config c);
TN_API tn_activation *tn_gelu_create(tn_gelu_config c);
TN_API tn_activation *tn_softplus_create(tn_softplus_config c);
TN_API tn_activation *tn_softmax_create(tn_along_config c);
TN_API tn_activation *tn_log_softmax_create(tn_along_config c);
TN_API tn_activation *tn_glu_create(tn_along_config c);

/* ---- containers -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module base;
} tn_sequential, tn_module_list, tn_module_dict;
TN_API tn_sequential  *tn_sequential_new(void);  /* tn_call(net, x) calls the children one after the other */
TN_API tn_module_list *tn_module_list_new(void); /* children "0", "1", ..., called by your forward */
TN_API tn_module_dict *tn_module_dict_new(void); /* children by name: tn_child(dict, "en", ...), tn_find(dict, "en") */
TN_API void           *tn_module_append(void *m, void *child); /* registers child under the next number */
TN_API void           *tn_module_at(void *m, int64_t i);       /* child i; a negative i counts from the end */
TN_API int64_t         tn_module_length(void *m);

#define tn_append(m, child) TN_SAME_(child, tn_module_append(TN_ANY_MODULE_(m), TN_ANY_MODULE_(child)))
#define tn_at(m, i) tn_module_at(TN_ANY_MODULE_(m), i) /* block *b = tn_at(m->layers, 3) */
#define tn_length(m) tn_module_length(TN_ANY_MODULE_(m))

TN_C_END_
#define tn_linear_new(...) TN_NEW_(tn_linear_create, tn_linear_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_bilinear_new(...) TN_NEW_(tn_bilinear_create, tn_bilinear_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_embedding_new(...) TN_NEW_(tn_embedding_create, tn_embedding_config, TN_EMBEDDING_DEFAULTS, __VA_ARGS__)
#define tn_embedding_bag_new(...) \
    TN_NEW_(tn_embedding_bag_create, tn_embedding_bag_config, TN_EMBEDDING_BAG_DEFAULTS, __VA_ARGS__)
#define tn_layer_norm_new(...) TN_NEW_(tn_layer_norm_create, tn_layer_norm_config, TN_LAYER_NORM_DEFAULTS, __VA_ARGS__)
#define tn_rms_norm_new(...) TN_NEW_(tn_rms_norm_create, tn_rms_norm_config, TN_RMS_NORM_DEFAULTS, __VA_ARGS__)
#define tn_batch_norm1d_new(...) \
    TN_NEW_(tn_batch_norm1d_create, tn_batch_norm_config, TN_BATCH_NORM_DEFAULTS, __VA_ARGS__)
#define tn_batch_norm2d_new(...) \
    TN_NEW_(tn_batch_norm2d_create, tn_batch_norm_config, TN_BATCH_NORM_DEFAULTS, __VA_ARGS__)
#define tn_group_norm_new(...) TN_NEW_(tn_group_norm_create, tn_group_norm_config, TN_GROUP_NORM_DEFAULTS, __VA_ARGS__)
#define tn_instance_norm1d_new(...) \
    TN_NEW_(tn_instance_norm1d_create, tn_instance_norm_config, TN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__)
#define tn_instance_norm2d_new(...) \
    TN_NEW_(tn_instance_norm2d_create, tn_instance_norm_config, TN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__)
#define tn_dropout_new(...) TN_NEW_(tn_dropout_create, tn_dropout_config, TN_DROPOUT_DEFAULTS, __VA_ARGS__)
#define tn_leaky_relu_new(...) TN_NEW_(tn_leaky_relu_create, tn_leaky_relu_config, TN_LEAKY_RELU_DEFAULTS, __VA_ARGS__)
#define tn_elu_new(...) TN_NEW_(tn_elu_create, tn_elu_config, TN_ELU_DEFAULTS, __VA_ARGS__)
#define tn_prelu_new(...) TN_NEW_(tn_prelu_create, tn_prelu_config, TN_PRELU_DEFAULTS, __VA_ARGS__)
#define tn_gelu_new(...) TN_NEW_(tn_gelu_create, tn_gelu_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_softplus_new(...) TN_NEW_(tn_softplus_create, tn_softplus_config, TN_SOFTPLUS_DEFAULTS, __VA_ARGS__)
#define tn_softmax_new(...) TN_NEW_(tn_softmax_create, tn_along_config, TN_ALONG_DEFAULTS, __VA_ARGS__)
#define tn_log_softmax_new(...) TN_NEW_(tn_log_softmax_create, tn_along_config, TN_ALONG_DEFAULTS, __VA_ARGS__)
#define tn_glu_new(...) TN_NEW_(tn_glu_create, tn_along_config, TN_ALONG_DEFAULTS, __VA_ARGS__)
#endif
