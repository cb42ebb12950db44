/* model.c — opening a model's folder, and a text's pieces for pictures. */
#define _POSIX_C_SOURCE 200809L
#include "bert.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

bool model_open(const char *dir, model *m)
{
    *m = (model){.bert = tn_bert_load(dir)};
    if (m->bert) m->tokens = tn_tokenizer_load(dir);
    if (m->tokens) return true;
    model_close(m);
    return false;
}
void model_close(model *m)
{
    tn_free(m->bert);
    tn_tokenizer_free(m->tokens);
    *m = (model){.bert = NULL};
}

bool words_of(const model *m, const char *text, words *w)
{
    tn_token_batch b;
    *w = (words){.n = 0};
    if (tn_tokenizer_batch(m->tokens, 1, &text, NULL, (tn_encode_options){.max_length = m->bert->config.positions},
                           &b) != TN_OK)
        return false;
    w->n = tn_numel(b.ids), w->ids = b.ids, w->segments = b.segments;
    w->word = tn_mem_get((size_t)w->n * sizeof *w->word);
    for (int64_t i = 0; w->word && i < w->n; i++) w->word[i] = tn_tokenizer_piece(m->tokens, tn_get_i64(b.ids, i));
    return w->word != NULL;
}
void words_free(words *w)
{
    if (w->word) tn_mem_put(w->word, (size_t)w->n * sizeof *w->word);
    w->word = NULL;
}

bool make_folder(const char *path)
{
    char s[1024];
    if (!*path) return tn_raise(TN_EINVAL, "a folder needs a name"), false;
    if (snprintf(s, sizeof s, "%s", path) >= (int)sizeof s)
        return tn_raise(TN_EINVAL, "the name '%.40s...' is too long", path), false;
    for (char *at = s + 1;; at++) {
        if (*at && *at != '/') continue;
        const char was = *at;
        *at = 0;
        if (mkdir(s, 0777) && errno != EEXIST)
            return tn_raise(TN_EIO, "'%s' cannot be made: %s", s, strerror(errno)), false;
        if (!was) return true;
        *at = was;
    }
}

const char *in_folder(const char *folder, const char *name, char path[1024])
{
    if (snprintf(path, 1024, "%s/%s", folder, name) >= 1024)
        tn_raise(TN_EINVAL, "the name '%.40s...' is too long", folder);
    return path;
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
