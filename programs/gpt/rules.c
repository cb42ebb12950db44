/* rules.c — see gpt.h. The rules are those of examples/constrain, whose files are part of this program. */
#include "examples/constrain/constrain.h"

#include "gpt.h"

#include <stdlib.h>
#include <string.h>

/* The tokens of each choice, and the text of each token. */
static void prepare(rules *r, const tn_lines *choices, const tn_tokenizer *t)
{
    r->known = tn_tokenizer_size(t), r->end = tn_tokenizer_special(t).last;
    r->ids = calloc((size_t)r->count + 1, sizeof *r->ids), r->text = calloc((size_t)r->known + 1, sizeof *r->text);
    if (!r->ids || !r->text) tn_raise(TN_ENOMEM, "no memory for the tokens");
    for (int i = 0; i < r->count && tn_error() == TN_OK; i++)
        texts_encode(t, tn_lines_at(choices, i), false, &r->ids[i]);
    for (int64_t w = 0; w < r->known && tn_error() == TN_OK; w++)
        tn_tokenizer_decode_next(t, &(tn_text_stream){.begun = true}, (int32_t)w, &r->text[w]);
}

void rules_open(const char *choices, const char *schema, const model *m, writer_options *how)
{
    rules    *r = how->rules = calloc(1, sizeof *r);
    tn_lines *lines = r && choices ? tn_lines_load(choices) : NULL;
    if (!r) tn_raise(TN_ENOMEM, "no memory for the rules");
    if (!r) return;
    r->count = (int)tn_lines_count(lines);
    if (choices && tn_error() == TN_OK && !r->count)
        tn_raise(TN_EFORMAT, "'%s' has no line; expected one choice per line", choices);
    if (schema && tn_error() == TN_OK) r->schema = tn_json_load(schema);
    if (tn_error() == TN_OK) prepare(r, lines, m->tokens);
    how->rule = schema ? json : answers;
    tn_lines_free(lines);
}

void rules_close(writer_options *how)
{
    rules *r = how->rules;
    how->rule = NULL, how->rules = NULL;
    if (!r) return;
    for (int i = 0; r->ids && i < r->count; i++) tn_ids_free(&r->ids[i]);
    for (int64_t w = 0; r->text && w < r->known; w++) tn_string_free(&r->text[w]);
    free(r->ids), free(r->text), tn_json_free(r->schema), free(r);
}
