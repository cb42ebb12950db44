/* hf.h — reads and writes a model's directory in Hugging Face's format, config.json and model.safetensors, from two
 * tables: rows for the members of config.json, with their offsets in the model's config struct, and rules for the names
 * of weights. Part of models.h: include that.
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
 *         {"attention_bias", TN_HF_MUST, .otherwise = false}, // another value is an error that names the member
 *     };
 *     static const tn_rename   my_rules[] = {TN_RENAME("model.norm", "blocks.norm")};
 *     static const tn_hf_files my_files = TN_HF_FILES(my_rows, my_rules);
 *
 *     my_config c;
 *     if (tn_hf_config_read("dir", &my_files, &c)) net = tn_hf_weights_read(net, "dir", &my_files);
 *     if (tn_hf_write(net, "other", &my_files, &c) != TN_OK) puts(tn_error_message());
 *
 * Members of config.json without a row are ignored. The table must list every member that affects results, and also
 * those that do not (TN_HF_ANY), so that tests/outside/config_members.py can report missing ones. */
#ifndef TENON_MODELS_HF_H
#define TENON_MODELS_HF_H

#include "decoding.h"

TN_C_BEGIN_

typedef enum {
    TN_HF_I64, /* int64_t and double: default .otherwise, also for null; values outside low … high are errors */
    TN_HF_REAL,
    TN_HF_BOOL,
    TN_HF_ACTIVATION, /* const char *, a name that tn_hf_activation accepts; default .text */
    TN_HF_CHOICE,     /* const char *, one of .choices (NULL-terminated); default: the first */
    TN_HF_TYPE,       /* model_type, one of .choices; read before other rows; with .text instead nothing is stored */
    TN_HF_NAME,       /* written only: const char *, or .text; architectures is written as an array */
    TN_HF_PUT,        /* written only, by .put: the member, and others that belong to it */
    TN_HF_LAYERS,     /* tn_hf_layers: an array, per layer a string of .choices, or a number or bool that counts them */
    TN_HF_PAIR,       /* int64_t[2]: an array of at most two numbers, or one number; missing ones are 0 */
    TN_HF_IDS,        /* tn_token_ids: a number, an array of at most 16 numbers, or null; not written if absent */
    TN_HF_LETTERS,    /* char[TN_HF_LETTERS_MOST]: an array of strings of .choices, one letter of .text for each */
    TN_HF_MUST,       /* a number or bool that must be .otherwise, or a string that must be .text */
    TN_HF_EMPTY,      /* must be null, {} or [] */
    TN_HF_PRUNED,     /* the model's pruned heads (not in the config struct), by layer index; with .text by path */
    TN_HF_ANY         /* does not affect results: any value, neither read nor written */
} tn_hf_kind;
enum { TN_HF_LETTERS_MOST = 65, TN_HF_LAYERS_MOST = 1025 };
typedef struct {
    char kind[TN_HF_LAYERS_MOST]; /* per layer a letter of .text, as TN_HF_LETTERS; absent: "" */
} tn_hf_layers;

typedef struct {
    /* "rope_scaling.factor": factor in an object; rows of one object must be adjacent. Members of a row that is not
     * written may be several, separated by spaces: those of TN_HF_MUST, TN_HF_EMPTY and TN_HF_ANY. */
    const char        *key;
    tn_hf_kind         kind;
    size_t             at; /* byte offset of the member in the config struct */
    double             low, high, otherwise;
    const char        *text;
    const char *const *choices;
    bool               below;    /* .high itself is an error, too */
    bool               needed;   /* required: absent is an error */
    bool               nullable; /* null means .low, not .otherwise; .low is written as null */
    bool               silent;   /* not written */
    bool               omitted;  /* not written if the value is the default (.otherwise, or the first choice) */
    bool               opposite; /* bool: the file has the negated value */
    const char        *says;     /* error message for a wrong value, after the path */
    const char        *also; /* alternative keys, separated by spaces, read before .key; those in objects must agree */
    const char        *name; /* the member's name in the config struct; NULL: none */
    void (*put)(tn_json_writer *w, const void *config);
} tn_hf_row;

/* A row for a member of a config struct; the member's type gives the kind. */
#define TN_HF(key_, type, member, ...)           \
    {                                            \
        .key = (key_), .name = #member,        \
        .kind = _Generic(((type *)0)->member,  \
            int64_t: TN_HF_I64,                \
            double: TN_HF_REAL,                \
            bool: TN_HF_BOOL,                  \
            tn_hf_layers: TN_HF_LAYERS,        \
            tn_token_ids: TN_HF_IDS,           \
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

/* Reads dir/config.json into the members of a config that the table lists; others are unchanged. False: raised,
 * TN_EFORMAT for invalid values, TN_EUNSUPPORTED for valid ones that Tenon lacks; the message starts with the path. */
TN_API bool tn_hf_config_read(const char *dir, const tn_hf_files *f, void *config);
/* Loads dir's model.safetensors, or the files that model.safetensors.index.json names, into m and puts it in eval mode.
 * Returns m; on failure frees m and returns NULL. */
TN_API void *tn_hf_weights_read(void *m, const char *dir, const tn_hf_files *f);
/* True if each number of the config is within its row's low … high; else raises "who: .dim is 0, but must be …". */
TN_API bool tn_hf_config_within(const char *who, const tn_hf_files *f, const void *config);
/* Writes config.json and model.safetensors into an existing directory. */
TN_API tn_status tn_hf_write(void *m, const char *dir, const tn_hf_files *f, const void *config) TN_CHECKED;

/* A directory or model file that is open: tn_model_open passes it to the load of a tn_family (model.h); tn_hf_load
 * opens a path, calls load and closes it. Its path, its config.json, and tn_hf_config_read of that. */
typedef struct tn_hf_source tn_hf_source;
TN_API void                *tn_hf_load(const char *path, void *(*load)(const tn_hf_source *s)); /* NULL: raised */
TN_API const char          *tn_hf_source_path(const tn_hf_source *s);
TN_API const tn_json       *tn_hf_source_json(const tn_hf_source *s);
TN_API bool                 tn_hf_source_read(const tn_hf_source *s, const tn_hf_files *f, void *config);

/* The weights of a model that is being loaded: open, then always load, of the new model if open returned true, else of
 * NULL.
 * open: opens them and checks that they have at least `want` elements, less those of pruned heads, of `head` elements
 * each (0: the model cannot be pruned), before a config that does not match them makes the model allocate memory;
 * begins a scope in which new parameters are not initialised. False: raised.
 * load: always follows, also after false: ends the scope, prunes m, which may be NULL, reads the weights into it, sets
 * eval mode, closes the file. Returns m; if an error is set, frees it and returns NULL. */
typedef struct {
    const tn_hf_source *source;
    tn_safetensors     *file;       /* NULL: raised */
    char                path[1024]; /* of the file */
    int64_t             head;
    tn_scope            blank;
} tn_hf_weights;
TN_API bool  tn_hf_weights_open(tn_hf_weights *w, const tn_hf_source *s, int64_t want, int64_t head);
TN_API void *tn_hf_weights_load(tn_hf_weights *w, void *m, const tn_hf_files *files);

/* Names of classes. read: sets names[n], initially NULL, from id2label, valid while s is open; raises unless each class
 * occurs once. put: writes id2label and label2id. */
TN_API bool tn_hf_labels_read(const tn_hf_source *s, int64_t n, const char **names);
TN_API void tn_hf_labels_put(tn_json_writer *w, int64_t n, const char *const *names);

/* Model sizes by name, the table of a function such as tn_gpt_size. A model without a member has 0 there; a row with a
 * NULL name ends the table. */
typedef struct {
    const char *name;
    int64_t     dim, layers, heads, hidden;
    double      dropout;
} tn_model_size;
/* The row of `name`. NULL: raised, with the caller's name and those of all rows. */
TN_API const tn_model_size *tn_model_size_find(const char *caller, const tn_model_size *rows, const char *name);

/* Sets the reader of pytorch_model.bin, for directories without model.safetensors; tn_extras_register sets
 * tn_torch_open. NULL, as at the start: such a directory is an error. */
TN_API void tn_hf_torch_register(tn_safetensors *(*open)(const char *path));

/* The activation of a Hugging Face name; NULL for an unknown name. */
typedef tn_tensor *(*tn_hf_function)(tn_tensor *x);
TN_API tn_hf_function tn_hf_activation(const char *name);
/* Checks that a config's .init is from 0 to 1 and its .activation is known, and replaces the name by a static string.
 * False: raised. */
TN_API bool tn_hf_init_and_activation(const char *who, double init, const char **activation);

TN_C_END_
#endif
