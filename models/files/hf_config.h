/* hf_config.h — what the models share in reading and writing their config.json. Private to models/. */
#ifndef TENON_MODELS_FILES_HF_CONFIG_H
#define TENON_MODELS_FILES_HF_CONFIG_H

#include "models/models.h"

/* A config.json that is being read: an object of at most 1 MiB. What is wrong with it raises TN_EFORMAT, what is right
 * but not known here TN_EUNSUPPORTED; the message begins with the path. */
typedef struct {
    tn_json *doc;
    char     path[1024];
} tn__settings;
bool tn__settings_open(tn__settings *s, const char *dir);
void tn__settings_close(tn__settings *s);

/* A member: absent or null gives `otherwise`, but TN__NEEDED raises; outside low … high raises. */
#define TN__NEEDED (-9e15)
int64_t     tn__setting_i64(const tn__settings *s, const char *key, double otherwise, int64_t low, int64_t high);
double      tn__setting_double(const tn__settings *s, const char *key, double otherwise, double low, double high);
bool        tn__setting_bool(const tn__settings *s, const char *key, bool otherwise);
const char *tn__setting_text(const tn__settings *s, const char *key, const char *otherwise); /* lives as long as s */

/* dir's model.safetensors or, if that is not there, the files that its model.safetensors.index.json names; path: which
 * of the two it is. NULL: raised. */
tn_safetensors *tn__weights_open(const char *dir, char path[1024]);

/* Does the file hold as many numbers as the config says, at least? So that a config that was not made for these weights
 * takes no memory. Raises. */
bool tn__enough(const tn_safetensors *f, const char *path, int64_t want);

/* The end of loading: the weights into m (NULL: nothing), f (of the path) closed, m in eval mode; m freed and NULL if
 * an error stands. And of saving: the finished config as dir/config.json, then the weights; w is freed. */
void     *tn__model_read(void *m, tn_safetensors *f, const char *path, const tn_rename *rules, int n);
tn_status tn__model_write(void *m, tn_json_writer *w, const char *dir, const tn_rename *rules, int n);

/* dir/name into a path; false and raised if it is too long. */
bool tn__path_in(const char *dir, const char *name, char *path, size_t size);

/* Activations by Hugging Face's names. The function and the name as a string that stays; NULL if there is none. */
typedef tn_tensor *(*tn__activation)(tn_tensor *x);
tn__activation tn__activation_of(const char *name);
const char    *tn__activation_name(const char *name);
#define TN__ACTIVATIONS "gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu, swish or tanh"

/* Is v from low to high? If not: "who: .what is 0, but must be from 1 to 65536". */
bool tn__within(const char *who, const char *what, int64_t v, int64_t low, int64_t high);
bool tn__chance(const char *who, const char *what, double p); /* from 0 to less than 1 */

#endif
