/* fill.c — bert fill: predicts the words at the [MASK] tokens of a text. */
#include "bert.h"

#include "../common/numbers.h"
#include "../common/records.h"

#include <string.h>

static const char *dir, *file;
static int64_t     k = 5;
static bool        json, listed; /* listed: several texts, so each is printed before its words */

static void print_plain(const model *m, const tn_bert_fill *found, int64_t masks)
{
    for (int64_t i = 0; i < masks * k; i++) {
        if (masks > 1 && i % k == 0)
            printf("%s%s %lld\n", i ? "\n" : "", tn_tokenizer_token(m->tokens, tn_tokenizer_special(m->tokens).mask),
                   (long long)found[i].mask + 1);
        printf("%6.2f %%  %s\n", 100 * found[i].probability, tn_tokenizer_token(m->tokens, found[i].id));
    }
}
static void print_json(const model *m, const tn_bert_fill *found, int64_t masks)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_array(w, NULL);
    for (int64_t i = 0; i < masks * k; i++) {
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "mask", found[i].mask);
        tn_json_put_string(w, "token", tn_tokenizer_token(m->tokens, found[i].id));
        tn_json_put_i64(w, "id", found[i].id);
        tn_json_put_double(w, "probability", found[i].probability);
        tn_json_close(w);
    }
    tn_json_close(w);
    records_print(w);
    tn_json_writer_free(w);
}

enum { MOST = 65536 };

static void fill_one(const model *m, const char *text, bool first, tn_bert_fill *found)
{
    const int64_t masks = tn_bert_fill_in(m->bert, m->tokens, text, k, MOST, found);
    for (int64_t w = 0; w < masks * k && tn_error() == TN_OK; w++)
        numbers_finite(found[w].probability, "a probability");
    if (tn_error() != TN_OK) return;
    if (json) {
        print_json(m, found, masks);
        return;
    }
    if (listed) printf("%s%s\n", first ? "" : "\n", text);
    print_plain(m, found, masks);
    fflush(stdout);
}

static int run(int count, char **operands)
{
    if (file && count) return program_usage("--file and texts exclude each other; give only one of them");
    model         m;
    tn_bert_fill *found = tn_mem_get(MOST * sizeof *found);
    records       r = {.count = count, .operands = operands, .file = file, .member = "text"};
    const char   *text;
    listed = count != 1 || !strcmp(operands[0], "-");
    if (found && model_open(dir, &m)) {
        if (k > m.bert->config.vocab) k = m.bert->config.vocab;
        for (bool first = true; (text = records_next(&r)); first = false) fill_one(&m, text, first, found);
        model_close(&m);
    }
    records_close(&r);
    if (found) tn_mem_put(found, MOST * sizeof *found);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("top", 'k', "N", &k, "number of words for each [MASK]", .least = 1, .most = 1000),
    OPTION_TEXT("file", 'f', "FILE", &file,
                "texts, one per line, or lines of JSON with \"text\"; -, or no TEXT: standard input"),
    OPTION_FLAG("json", 0, &json, "print a line of JSON for each text"),
    {0},
};
const command fill_command =
    COMMAND("fill", "predict the masked words of a text", options, .operands = "[TEXT...]", .least = 0, .most = -1,
            .text = "Prints the most likely words for each [MASK], with their probabilities. For RoBERTa, write "
                    "<mask>. Without TEXT, reads standard input.\n\n"
                    "  bert fill --model book \"The keys to the cabinet [MASK] on the table.\"");
