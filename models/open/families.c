/* families.c — the families of models that tn_model_open knows: the framework's, and those that programs register. */
#include "core/system/system.h"

#include "models/bert/bert_private.h"
#include "models/gpt/gpt_private.h"
#include "models/llama/llama_private.h"
#include "models/open/open_private.h"
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

static const char *const gpt2[] = {"gpt2", NULL};
static const tn_family   own[] = {
      {TN_MODEL_ENCODER, tn__bert_types, tn__bert_load, NULL},
      {TN_MODEL_DECODER, gpt2, tn__gpt_load, NULL},
      {TN_MODEL_DECODER, tn__llama_types, tn__llama_load, NULL},
      {TN_MODEL_SEQ2SEQ, tn__seq2seq_types, tn__seq2seq_load, NULL},
};
enum { OWN = sizeof own / sizeof *own, MORE = 32, TYPES = 128 };
static const tn_family *more[MORE]; /* in the order of registering; entries below `count` do not change */
static int              count;
static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;

static const tn_family *at(int i) { return i < OWN ? &own[i] : more[i - OWN]; }
static int              families(void)
{
    pthread_mutex_lock(&lock);
    const int n = OWN + count;
    pthread_mutex_unlock(&lock);
    return n;
}

static const tn_family *find(const char *type, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; at(i)->types[k]; k++)
            if (!strcmp(at(i)->types[k], type)) return at(i);
    return NULL;
}
const tn_family *tn__family_find(const char *type) { return type ? find(type, families()) : NULL; }

const tn_family *tn__family_of_source(const tn_hf_source *s, tn_model_family kind, const char **type)
{
    const char *all[TYPES + 1] = {NULL};
    int         n = 0;
    const int   known = families();
    if (kind == TN_MODEL_TUNED) kind = TN_MODEL_ENCODER;
    for (int i = 0; i < known; i++)
        for (int k = 0; (!kind || kind == at(i)->family) && at(i)->types[k]; k++) {
            if (n == TYPES) return tn_raise_null(TN_EUNSUPPORTED, "more than %d model types", (int)TYPES);
            all[n++] = at(i)->types[k];
        }
    const tn_hf_row   row = {"model_type", TN_HF_TYPE, .choices = all, .needed = true};
    const tn_hf_files files = {&row, 1, NULL, 0};
    return tn_hf_source_read(s, &files, type) ? find(*type, known) : NULL;
}

static bool complete(const tn_family *f)
{
    if (!f) return tn_raise_false(TN_EINVAL, "tn_family_register: the family is NULL");
    if (!f->types || !f->types[0] || !f->load)
        return tn_raise_false(TN_EINVAL, "tn_family_register: a family must have .types and .load");
    if (f->family < TN_MODEL_ENCODER || f->family > TN_MODEL_OTHER || f->family == TN_MODEL_TUNED)
        return tn_raise_false(TN_EINVAL,
                              "tn_family_register: '%s': .family is %d, but must be TN_MODEL_ENCODER, "
                              "DECODER, SEQ2SEQ, IMAGES or OTHER",
                              f->types[0], (int)f->family);
    return true;
}

tn_status tn_family_register(const tn_family *f)
{
    if (tn_error() != TN_OK || !complete(f)) return tn_error();
    const char *taken = NULL;
    pthread_mutex_lock(&lock);
    bool there = false;
    for (int i = 0; i < count; i++) there = there || more[i] == f;
    for (int k = 0; !there && !taken && f->types[k]; k++) taken = find(f->types[k], OWN + count) ? f->types[k] : NULL;
    const bool full = !there && !taken && count == MORE;
    if (!there && !taken && !full) more[count++] = f;
    pthread_mutex_unlock(&lock);
    if (taken) return tn_raise(TN_EINVAL, "tn_family_register: another family has the model_type '%s'", taken);
    if (full) return tn_raise(TN_EUNSUPPORTED, "tn_family_register: more than %d families", (int)MORE);
    return TN_OK;
}
