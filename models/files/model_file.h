/* model_file.h — presents a single-file model as a config.json and tensors with Hugging Face's names, so that models do
 * not depend on the format. Private to models/. */
#ifndef TENON_MODELS_FILES_MODEL_FILE_H
#define TENON_MODELS_FILES_MODEL_FILE_H

#include "models/models.h"

/* True if the path exists; true if it exists and is not a directory. */
bool tn__path_exists(const char *path);
bool tn__is_file(const char *path);
/* The format, config.json and tensors of a model file. NULL: raised; the message names a known unsupported format. */
const char     *tn__file_format(const char *path); /* "gguf" or "llama2.c" */
tn_json        *tn__file_config(const char *path);
tn_safetensors *tn__file_tensors(const char *path);

/* ---- GGUF (gguf_names.c, gguf_read.c, gguf_model.c) -------------------------------------------------------------- */

/* Options of writing. */
typedef struct {
    const char *packed;                               /* "F32", "BF16", "Q8_0"; NULL: the weights' own dtype */
    tn_status (*more)(tn_gguf_writer *w, void *user); /* writes more values; may be NULL */
    void *user;
} tn__gguf_options;
tn_json        *tn__gguf_config(const char *path);
tn_safetensors *tn__gguf_tensors(const char *path);
/* config: the model's config.json. */
tn_status tn__gguf_write(void *m, const char *path, const tn_hf_files *f, const tn_json *config,
                         const tn__gguf_options *gguf);

/* An architecture of GGUF: its names and Hugging Face's. */
typedef struct {
    const char *gguf, *hf;
    bool        real, needed;
} tn__gguf_member;
/* QUERIES, KEYS: the rows of heads are in pairs; TRANSPOSED: a [in, out] matrix in transformers; PLUS_ONE: 1 + weight;
 * ALTERNATING: queries, keys and values, which in transformers alternate by heads; STACKED: the matrices of all
 * experts, one tensor each in transformers, with the expert's number for the * in its name. */
typedef enum {
    TN__PLAIN,
    TN__QUERIES,
    TN__KEYS,
    TN__TRANSPOSED,
    TN__PLUS_ONE,
    TN__ALTERNATING,
    TN__STACKED
} tn__gguf_layout;
typedef struct {
    const char     *gguf, *hf; /* without ".weight" or ".bias"; in a layer: the part after its number */
    tn__gguf_layout layout;
} tn__gguf_name;
typedef struct {
    const char            *name, *type, *layers; /* "gptneox", the model_type "gpt_neox", "gpt_neox.layers" */
    const tn__gguf_member *members;
    const tn__gguf_name   *top, *layer;   /* a NULL name ends each */
    bool                   pairs;         /* queries and keys are in pairs; false: TN__QUERIES and TN__KEYS are plain */
    const char            *activation[3]; /* the member and the values that mean the one that llama.cpp computes */
    const char            *part;          /* the member that is the rotated part of a head; NULL: all of it is */
    int                    period;        /* the last of this number of layers sees all keys, others have a window */
} tn__gguf_arch;
#define TN__GGUF_BERT "bert" /* the only architecture that is an encoder */
/* By its name or, with `type`, its model_type. NULL: raised, not supported. */
const tn__gguf_arch *tn__gguf_arch_of(const char *path, const char *name, bool type);
/* Gemma's factor of scores is 1/√x, where llama.cpp computes x from the sizes. */
static inline int64_t tn__gguf_query_scale(const tn__gguf_arch *a, int64_t layers, int64_t dim, int64_t heads,
                                           int64_t head)
{
    return layers == (a->period == 2 ? 46 : 62) && heads > 0 ? dim / heads : head; /* the models with 27 billion */
}
/* Writes a tensor's Hugging Face name, or with to_hf false its GGUF name, into `to`; NULL: unknown name. The Hugging
 * Face name of STACKED has a * for the expert's number. */
const tn__gguf_name *tn__gguf_rename(const tn__gguf_arch *a, const char *name, bool to_hf, char *to, size_t size);
/* Base of the rotary angles, and llama.cpp's value if a file has none; config.json's depend on the family. */
#define TN__GGUF_THETA "rope.freq_base"
#define TN__GGUF_THETA_DEFAULT 10000
/* LLaMA 3's scaling as factors of the angles: rope_freqs.weight, one for each pair of a head. llama.cpp reads only this
 * table; Tenon also writes the parameters, to restore config.json exactly. */
#define TN__GGUF_FACTOR "rope.llama3.factor"
#define TN__GGUF_LOW "rope.llama3.low_freq_factor"
#define TN__GGUF_HIGH "rope.llama3.high_freq_factor"
#define TN__GGUF_TRAINED "rope.scaling.original_context_length"
void tn__gguf_factors(double theta, double factor, double low, double high, double trained, int64_t n, float *to);

/* ---- llama2.c (llama2c.c) ---------------------------------------------------------------------------------------- */

bool            tn__is_llama2c(const char *path); /* true if the header and the file size match; raises nothing */
tn_json        *tn__llama2c_config(const char *path);
tn_safetensors *tn__llama2c_tensors(const char *path);

#endif
