/* hf_config.h — what the models share in reading and writing their directories. Private to models/. */
#ifndef TENON_MODELS_FILES_HF_CONFIG_H
#define TENON_MODELS_FILES_HF_CONFIG_H

#include "core/base/toolbox.h"
#include "models/files/model_file.h"
#include "models/models.h"

/* dir's model.safetensors; or, if that is not there, the files that its model.safetensors.index.json names; or else its
 * pytorch_model.bin; or, if dir is a file, its own tensors. path: which of them it is. NULL: raised. */
tn_safetensors *tn__weights_open(const char *dir, char path[1024]);

/* The names of a file whose first part is one of these, NULL ends them: "classifier.weight, classifier.bias". */
void tn__names_under(const tn_safetensors *f, const char *const *first, char *to, size_t size);

/* Does the file hold as many numbers as the config says, at least? So that a config that was not made for these weights
 * takes no memory. Raises. */
bool tn__enough(const tn_safetensors *f, const char *path, int64_t want);

/* config.json of a directory, or what a file has instead; path: which. NULL: raised. */
tn_json *tn__config_open(const char *dir, char path[1024]);

/* Heads that were taken out (pruned.c). A model's loading opens, asks for enough numbers (want: of the whole model;
 * head: of one of its heads), applies it to the model as it was made, and closes. */
typedef struct {
    tn_json       *doc;
    const tn_json *heads; /* the object in it; NULL: none */
    int64_t        count;
} tn__pruned;
bool tn__pruned_open(const char *dir, tn__pruned *p); /* false: raised */
void tn__pruned_close(tn__pruned *p);
bool tn__enough_pruned(const tn_safetensors *f, const char *path, int64_t want, const tn__pruned *p, int64_t head);
void tn__pruned_apply(const tn__pruned *p, void *m);
void tn__pruned_as(void *m, void *other); /* takes out of m the heads that a model of its shape has not any more */
bool tn__is_pruned(void *m);
/* Or else raises: a directory of Hugging Face's form holds no packed weights. (folder.c) */
bool tn__none_is_packed(void *m, const char *dir);
void tn__pruned_write(tn_json_writer *w, const char *key, void *m, bool paths);

/* The end of loading: the weights into m (NULL: nothing), f (of the path) closed, m in eval mode; m freed and NULL if
 * an error stands. */
void *tn__model_read(void *m, tn_safetensors *f, const char *path, const tn_hf_files *files);

/* Names of classes (labels.c). read: id2label's into names[n], NULLs before; each of them once, or it raises. put: as
 * id2label and label2id. */
bool tn__labels_read(const tn_json *map, const char *path, int64_t n, const char **names);
void tn__labels_put(tn_json_writer *w, int64_t n, const char *const *names);

/* What a tuned model's directory has besides its encoder's: what is behind the encoder's name in architectures, further
 * members of config.json, and modules whose weights stand under their names. */
typedef struct {
    const char *architecture;
    void (*members)(tn_json_writer *w, const void *user);
    const void *user;
    struct {
        void       *module; /* NULL: there is none */
        const char *name;
    } part[3];
} tn__hf_more;
tn_status tn__hf_write_more(void *m, const char *dir, const tn_hf_files *f, const void *config,
                            const tn__hf_more *more);

/* A config as the file `name` of the folder, with its line in SHA256SUMS there; false: raised. */
bool tn__config_save(tn_json_writer *w, const char *dir, const char *name);

/* tn_hf_write; or, how is not NULL, to a GGUF file of that path. */
tn_status tn__hf_write_as(void *m, const char *dir, const tn_hf_files *f, const void *config, const tn__gguf_how *how);

/* dir/name into a path; false and raised if dir is NULL or the path too long. */
bool tn__path_in(const char *dir, const char *name, char *path, size_t size);

/* Has a directory one of the files that tn_tokenizer_load looks for? */
bool tn__holds_tokenizer(const char *dir);

/* The name of an activation as a string that stays. */
const char *tn__activation_name(const char *name);
#define TN__ACTIVATIONS "gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu, swish or tanh"

/* Is a config's .init from 0 to 1, and its .activation one of those? Puts the name that stays in its place. Raises. */
bool tn__init_and_activation(const char *who, double init, const char **activation);

#endif
