/* embed.c — elmo embed: prints a vector for each word of each line. */
#include "programs/common/numbers.h"
#include "elmo.h"

#include <stdlib.h>

enum { LINE_MOST = 1 << 20 };

static const char *dir;
static bool        json;
static int64_t     layer = -1;

static void show(tn_elmo *m, tn_text line)
{
    const tn_scope      s = tn_no_grad_begin();
    const tn_elmo_batch b = tn_elmo_sentences(m, 1, &line);
    tn_tensor          *of[TN_ELMO_LAYERS], *y = NULL;
    if (tn_error() == TN_OK && tn_elmo_vectors(m, &b, of))
        y = layer >= 0 ? of[layer] : tn_mul_scalar(tn_add(of[0], tn_add(of[1], of[2])), 1.0 / TN_ELMO_LAYERS);
    if (y) y = tn_contiguous(y);
    if (y && !numbers_vector(tn_data(y), tn_numel(y))) y = NULL;
    if (y && json) printf("[");
    for (int64_t i = 0; y && i < tn_size(y, 1); i++) {
        if (json && i) printf(",");
        numbers_print((const float *)tn_data(y) + i * tn_size(y, 2), tn_size(y, 2), json);
        if (!json) printf("\n");
    }
    if (y) printf(json ? "]\n" : "\n");
    tn_scope_end(s);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    tn_elmo     *m = tn_elmo_load(dir);
    char        *line = NULL;
    size_t       room = 0, n = 0;
    broken_lines broken = {0, 0};
    for (int64_t i = 1; m && tn_error() == TN_OK && next_line(&line, &room, &n, LINE_MOST); i++)
        texts_line(&broken, i, (tn_text){line, n}), show(m, (tn_text){line, n});
    texts_warn_lines(&broken);
    free(line);
    tn_module_free(m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("layer", 0, "N", &layer,
               "layer to print: 0 for the characters' layer, 1 or 2 for an LSTM (default: the mean of the three)",
               .least = 0, .most = TN_ELMO_LAYERS - 1),
    OPTION_FLAG("json", 0, &json, "print a JSON array of vectors for each sentence"),
    {0},
};
const command embed_command = COMMAND(
    "embed", "print a vector for each word of a sentence", options,
    .text = "Reads sentences from standard input, one per line. Writes a line of numbers for each word, and an empty "
            "line after each sentence.");
