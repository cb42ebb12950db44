/* hf_config.h — shared by the models: reading and writing their directories. Private to models/. */
#ifndef TENON_MODELS_FILES_HF_CONFIG_H
#define TENON_MODELS_FILES_HF_CONFIG_H

#include "core/base/toolbox.h"
#include "models/files/model_file.h"
#include "models/models.h"

#include <math.h>

/* ---- a model's directory or file (hf_source.c) ------------------------------------------------------------------- */

struct tn_hf_source {
    const char *path;                            /* the directory or file */
    char        name[1024];                      /* path of config.json or of the file, for messages */
    tn_json    *config;                          /* the object in config.json, or the equivalent of a file; owned */
    bool        packed;                          /* see tn_load; initially false */
    tn_tensor *(*pack)(const tn_tensor *weight); /* see tn_load; initially NULL */
};
bool tn__hf_open(tn_hf_source *s, const char *path); /* false: raised; close it all the same */
void tn__hf_close(tn_hf_source *s);
/* Opens another config of s's directory. Without that file, *to is *s, which owns the config then. */
bool tn__hf_open_beside(const tn_hf_source *s, const char *name, tn_hf_source *to);
/* A row of token ids that do not change results; written back. null is stored as n -1. */
#define TN__IDS(key, type, member) TN_HF(key, type, member, .low = -1e7, .high = 1e7, .nullable = true, .omitted = true)
void tn__hf_put_ids(tn_json_writer *w, const char *key, const tn_token_ids *ids);

/* Opens dir's model.safetensors; if it is missing, the files that model.safetensors.index.json names, or else
 * pytorch_model.bin; if dir is a file, its own tensors. path: the file that was opened. NULL: raised. */
tn_safetensors *tn__weights_file(const char *dir, char path[1024]);

/* Lists the file's tensors whose name starts with one of `first` (NULL-terminated): "classifier.weight,
 * classifier.bias". */
void tn__list_weights(const tn_safetensors *f, const char *const *first, char *to, size_t size);

/* Pruned heads (pruned_read.c, pruned.c). check: the format of config.json's pruned_heads. False: raised. */
bool tn__pruned_check(const tn_hf_source *s);
bool tn__has_elements(const tn_hf_weights *w, int64_t want);
void tn__pruned_apply(const tn_hf_source *s, void *m);
void tn__prune_like(void *m, void *other); /* prunes the heads of m that are pruned in other, a model of its shape */
bool tn__is_pruned(void *m);
/* True if no weight is packed; else raises: Hugging Face's format has no packed weights. (directory.c) */
bool tn__has_no_packed(void *m, const char *dir);
bool tn__has_no_adapters(void *m, const char *dir); /* else raises, for the same reason */
void tn__pruned_write(tn_json_writer *w, const char *key, void *m, bool paths);

/* The additional parts of a tuned model's directory: the suffix of the encoder's name in architectures, more members of
 * config.json, and modules whose weights are written with their names as prefix. */
typedef struct {
    const char *architecture;
    void (*members)(tn_json_writer *w, const void *user);
    const void *user;
    struct {
        void       *module; /* NULL: none */
        const char *name;
    } part[4];
} tn__hf_extra;
tn_status tn__hf_write_extra(void *m, const char *dir, const tn_hf_files *f, const void *config,
                             const tn__hf_extra *more);

/* Writes a config as the file `name` of the directory, and its line in SHA256SUMS; false: raised. */
bool tn__config_save(tn_json_writer *w, const char *dir, const char *name);

/* tn_hf_write; if how is not NULL, writes a GGUF file at that path instead. */
tn_status tn__hf_write_as(void *m, const char *dir, const tn_hf_files *f, const void *config,
                          const tn__gguf_options *gguf);

/* A row for members that do not change results: their names, separated by spaces. */
#define TN__UNUSED(keys)                  \
    {                                     \
        (keys), TN_HF_ANY, .silent = true \
    }

/* The tables of one of several related models (hf_tables.c). begin: without rows and rules. add_rows: adds those rows
 * whose members have none yet; all rows are in the order of their keys. add_rules: appends rules. */
enum { TN__HF_ROWS = 80, TN__HF_RULES = 64 };
typedef struct {
    tn_hf_row   rows[TN__HF_ROWS];
    tn_rename   rules[TN__HF_RULES];
    tn_hf_files files;
} tn__hf_tables;
static inline void tn__hf_begin(tn__hf_tables *to) { to->files = (tn_hf_files){to->rows, 0, to->rules, 0}; }
void               tn__hf_add_rows(tn__hf_tables *to, const tn_hf_row *rows, int n);
void               tn__hf_add_rules(tn__hf_tables *to, const tn_rename *rules, int n);

/* dim / head, such that dim is (int64_t)(head · it), as readers of a config.json compute it. */
static inline double tn__part_of_head(int64_t dim, int64_t head)
{
    const double part = (double)dim / (double)head;
    return (int64_t)((double)head * part) == dim ? part : nextafter(part, 2);
}

/* For tn_class.names: copies at most `room` rules; returns their number. */
int tn__hf_names(const tn_hf_files *f, tn_rename *to, int room);

/* Sets path to dir/name; false: raised, dir is NULL or the path too long. */
bool tn__path_in(const char *dir, const char *name, char *path, size_t size);

/* True if the directory has one of the files that tn_tokenizer_load reads. */
bool tn__has_tokenizer(const char *dir);

/* The name of an activation as a static string; NULL: unknown. */
const char *tn__activation_name(const char *name);
#define TN__ACTIVATIONS "gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu, swish or tanh"

#endif
