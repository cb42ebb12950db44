/* model_file.h — a model that is one file, as its directory would have it: config.json and tensors by Hugging Face's
 * names. So the models need not know of it. Private to models/. */
#ifndef TENON_MODELS_FILES_MODEL_FILE_H
#define TENON_MODELS_FILES_MODEL_FILE_H

#include "models/models.h"

/* Is something there? Is it a file, rather than a directory? */
bool tn__is_path(const char *path);
bool tn__is_file(const char *path);
/* Is it GGUF, llama2.c's …? Of each; NULL: raised, by the name of what it is. */
const char     *tn__file_form(const char *path); /* "gguf" or "llama2.c" */
tn_json        *tn__file_config(const char *path);
tn_safetensors *tn__file_tensors(const char *path);

/* ---- GGUF (gguf_names.c, gguf_read.c, gguf_model.c) -------------------------------------------------------------- */

/* What else a file is to have. */
typedef struct {
    const char *packed; /* "F32", "BF16", "Q8_0"; NULL: as the model has its weights */
    tn_status (*more)(tn_gguf_writer *w, void *user);
    void *user;
} tn__gguf_how;
tn_json        *tn__gguf_config(const char *path);
tn_safetensors *tn__gguf_tensors(const char *path);
/* config: as it would be written to config.json. */
tn_status tn__gguf_write(void *m, const char *path, const tn_hf_files *f, const tn_json *config,
                         const tn__gguf_how *how);

/* An architecture of GGUF: its names, and those of Hugging Face. */
typedef struct {
    const char *gguf, *hf;
    bool        real, needed;
} tn__gguf_member;
typedef enum { TN__PLAIN, TN__QUERIES, TN__KEYS, TN__TURNED } tn__gguf_layout; /* rows of heads in pairs; [in, out] */
typedef struct {
    const char     *gguf, *hf; /* up to ".weight" or ".bias"; of a layer: behind its number */
    tn__gguf_layout layout;
} tn__gguf_name;
typedef struct {
    const char            *name, *layers; /* "llama", "model.layers" */
    const tn__gguf_member *members;
    const tn__gguf_name   *top, *layer; /* NULL ends each */
    bool                   pairs;       /* queries and keys are in pairs; or else TN__QUERIES and TN__KEYS are plain */
} tn__gguf_arch;
/* NULL and raised: there is none. */
const tn__gguf_arch *tn__gguf_arch_of(const char *path, const char *name);
/* The other name of a tensor, to hugging face's or from it; NULL: it has none. */
const tn__gguf_name *tn__gguf_rename(const tn__gguf_arch *a, const char *name, bool to_hf, char *to, size_t size);
/* LLaMA 3's scaling as factors of the angles: rope_freqs.weight, one for each pair of a head. llama.cpp reads those
 * alone; of which numbers they were made stands beside them, for whoever wants a config.json again. */
#define TN__GGUF_FACTOR "rope.llama3.factor"
#define TN__GGUF_LOW "rope.llama3.low_freq_factor"
#define TN__GGUF_HIGH "rope.llama3.high_freq_factor"
#define TN__GGUF_TRAINED "rope.scaling.original_context_length"
void tn__gguf_factors(double theta, double factor, double low, double high, double trained, int64_t n, float *to);

/* ---- llama2.c (llama2c.c) ---------------------------------------------------------------------------------------- */

bool            tn__llama2c_is(const char *path); /* do the header and the file's size fit? Raises nothing */
tn_json        *tn__llama2c_config(const char *path);
tn_safetensors *tn__llama2c_tensors(const char *path);

#endif
