/* hf.h — a model's directory as Hugging Face lays it out, config.json and model.safetensors, as two tables: members of
 * config.json, each with its place in the model's own config, and names of weights. Both are read and written from the
 * same rows. Part of models.h: include that.
 *
 *     typedef struct {
 *         int64_t dim;
 *         double  eps;
 *     } my_config;
 *     static const tn_hf_row my_rows[] = {
 *         {"architectures", TN_HF_NAME, .text = "LlamaForCausalLM"},
 *         TN_HF("hidden_size", my_config, dim, .needed = true, .low = 1, .high = 65536),
 *         {"model_type", TN_HF_TYPE, .text = "llama"},
 *         TN_HF("rms_norm_eps", my_config, eps, .otherwise = 1e-6, .high = 0.1),
 *         {"attention_bias", TN_HF_MUST, .otherwise = false}, // another value is refused by name
 *     };
 *     static const tn_rename   my_rules[] = {TN_RENAME("model.norm", "blocks.norm")};
 *     static const tn_hf_files my_files = TN_HF_FILES(my_rows, my_rules);
 *
 *     my_config c;
 *     if (tn_hf_config_read("dir", &my_files, &c)) net = tn_hf_weights_read(net, "dir", &my_files);
 *     if (tn_hf_write(net, "other", &my_files, &c) != TN_OK) puts(tn_error_message());
 *
 * Members that the table does not name are left alone: what would change the numbers has to stand in it, and what
 * would not, too (TN_HF_ANY), so that tests/outside/config_members.py can tell what has been forgotten. */
#ifndef TENON_MODELS_HF_H
#define TENON_MODELS_HF_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TN_HF_I64, /* int64_t and double: absent or null gives .otherwise; outside low … high is refused */
    TN_HF_REAL,
    TN_HF_BOOL,
    TN_HF_ACTIVATION, /* const char *, one that tn_hf_activation knows; absent gives .text */
    TN_HF_CHOICE,     /* const char *, one of .choices, which NULL ends; absent gives the first */
    TN_HF_TYPE,       /* the same for model_type, which is looked at first; with .text alone nothing is stored */
    TN_HF_NAME,       /* written only: const char *, or .text; architectures is written as an array */
    TN_HF_LAYERS,     /* tn_hf_layers: an array, a string of .choices for each layer: first those of choices[0] */
    TN_HF_PAIR,       /* int64_t[2]: an array of at most two numbers, or one number; what is not there is 0 */
    TN_HF_LETTERS,    /* char[TN_HF_LETTERS_MOST]: an array of strings of .choices, a letter of .text for each */
    TN_HF_MUST,       /* a number or bool that must be .otherwise, or a string that must be .text */
    TN_HF_EMPTY,      /* must be null, {} or [] */
    TN_HF_PRUNED,     /* of the model, not of its config: heads taken out; with .text by paths, not layers' numbers */
    TN_HF_ANY         /* has no say in the numbers: any value, which is neither read nor written */
} tn_hf_kind;
enum { TN_HF_LETTERS_MOST = 65 };
typedef struct {
    int64_t first, count; /* of choices[0], of all layers; absent: 0, 0 */
} tn_hf_layers;

typedef struct {
    const char        *key; /* "rope_scaling.factor": in an object; rows of one object stand together */
    tn_hf_kind         kind;
    size_t             at; /* of the member in the config */
    double             low, high, otherwise;
    const char        *text;
    const char *const *choices;
    bool               below;    /* .high itself is refused, too */
    bool               needed;   /* absent is an error */
    bool               nullable; /* null gives .low, not .otherwise; and .low is written as null */
    bool               silent;   /* is not written */
    bool               omitted;  /* is not written where it is .otherwise, or a choice the first */
    bool               opposite; /* of a bool: the member says the opposite */
    const char        *says;     /* what is said when it is refused, behind the path */
    const char        *also; /* other keys, with spaces between, looked at before .key; those in objects must agree */
    const char        *name; /* of the member in the config; NULL: it has none */
} tn_hf_row;

/* The row of a member, by its type. */
#define TN_HF(key_, type, member, ...)           \
    {                                            \
        .key = (key_), .name = #member,        \
        .kind = _Generic(((type *)0)->member,  \
            int64_t: TN_HF_I64,                \
            double: TN_HF_REAL,                \
            bool: TN_HF_BOOL,                  \
            tn_hf_layers: TN_HF_LAYERS,        \
            int64_t *: TN_HF_PAIR,             \
            char *: TN_HF_LETTERS,             \
            const char *: TN_HF_ACTIVATION),   \
        .at = offsetof(type, member), __VA_ARGS__ \
    }

typedef struct {
    const tn_hf_row *rows;
    int              count;
    const tn_rename *rules;
    int              renames;
} tn_hf_files;
#define TN_HF_COUNT_(a) ((int)(sizeof(a) / sizeof *(a)))
#define TN_HF_FILES(rows, rules)                                 \
    {                                                            \
        (rows), TN_HF_COUNT_(rows), (rules), TN_HF_COUNT_(rules) \
    }

/* dir/config.json into a config: members that the table names; the others stay. False: raised, TN_EFORMAT for what is
 * wrong, TN_EUNSUPPORTED for what is right but not done here; the message begins with the path. */
TN_API bool tn_hf_config_read(const char *dir, const tn_hf_files *f, void *config);
/* dir's model.safetensors, or the files that model.safetensors.index.json names, into m, which is in eval mode then. m;
 * or NULL, and m freed: an error stands. */
TN_API void *tn_hf_weights_read(void *m, const char *dir, const tn_hf_files *f);
/* Is each number of a config within its row's low … high? Or raises "who: .dim is 0, but must be …". */
TN_API bool tn_hf_config_within(const char *who, const tn_hf_files *f, const void *config);
/* Both into a directory that is there. */
TN_API tn_status tn_hf_write(void *m, const char *dir, const tn_hf_files *f, const void *config) TN_CHECKED;

/* Activations by Hugging Face's names; NULL if there is none. */
typedef tn_tensor *(*tn_hf_function)(tn_tensor *x);
TN_API tn_hf_function tn_hf_activation(const char *name);

#ifdef __cplusplus
}
#endif
#endif
