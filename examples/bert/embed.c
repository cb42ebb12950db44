/* embed.c — bert embed: a vector for each line of standard input. */
#include "bert.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 16 << 20 }; /* bytes */

static const char *dir, *pool = "mean";

static bool print_vector(model *m, const char *text)
{
    static const char *const names[] = {"mean", "cls", "max"};
    tn_bert_pooling          pooling = TN_POOL_MEAN;
    for (int i = 0; i < 3; i++)
        if (!strcmp(pool, names[i])) pooling = (tn_bert_pooling)i;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *v = tn_bert_embed(m->bert, m->tokens, 1, &text, pooling);
    char           number[32];
    for (int64_t i = 0; v && i < tn_numel(v); i++) {
        tn_format_float((float)tn_get(v, i), number);
        printf("%s%s", i ? " " : "", number);
    }
    if (v && printf("\n") < 0) tn_raise(TN_EIO, "standard output cannot be written");
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static int run(int count, char **operands)
{
    model m;
    if (model_open(dir, &m)) {
        for (int i = 0; i < count && print_vector(&m, operands[i]); i++) {}
        char   *line = NULL, where[32];
        size_t  room = 0, n = 0;
        int64_t number = 0;
        for (bool more = !count; more && tn_error() == TN_OK;) {
            snprintf(where, sizeof where, "line %lld", (long long)++number);
            tn_path_push(where);
            more = next_line(&line, &room, &n, LINE_MOST);
            if (more && memchr(line, 0, n)) tn_raise(TN_EFORMAT, "a NUL byte: this is no text");
            if (more && tn_error() == TN_OK) print_vector(&m, line);
            tn_path_pop();
        }
        free(line);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_TEXT("pool", 'p', "HOW", &pool, "of the pieces' vectors", .choices = "mean|cls|max"),
    {0},
};
const command embed_command = COMMAND(
    "embed", "vectors of sentences", options, .operands = "[TEXT...]", .least = 0, .most = -1,
    .text = "One line of numbers for each text, or for each line of standard input: a vector of length 1, so that the "
            "product of two is the cosine of their angle.");
