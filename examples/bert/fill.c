/* fill.c — bert fill: predicts the words at the [MASK] tokens of a text. */
#include "bert.h"

#include "../common/numbers.h"

static const char *dir;
static int64_t     k = 5;
static bool        json;

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
    size_t      bytes;
    const char *text = tn_json_text(w, &bytes);
    if (text) printf("%s\n", text);
    tn_json_writer_free(w);
}

static int run(int count, char **operands)
{
    enum { MOST = 65536 };
    model         m;
    tn_bert_fill *found = tn_mem_get(MOST * sizeof *found);
    if (found && model_open(dir, &m)) {
        if (k > m.bert->config.vocab) k = m.bert->config.vocab;
        for (int i = 0; i < count && tn_error() == TN_OK; i++) {
            const int64_t masks = tn_bert_fill_in(m.bert, m.tokens, operands[i], k, MOST, found);
            for (int64_t w = 0; w < masks * k && tn_error() == TN_OK; w++)
                numbers_finite(found[w].probability, "a probability");
            if (tn_error() != TN_OK) break;
            if (json) print_json(&m, found, masks);
            else {
                if (count > 1) printf("%s%s\n", i ? "\n" : "", operands[i]);
                print_plain(&m, found, masks);
            }
        }
        model_close(&m);
    }
    if (found) tn_mem_put(found, MOST * sizeof *found);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("top", 'k', "N", &k, "number of words for each [MASK]", .least = 1, .most = 1000),
    OPTION_FLAG("json", 0, &json, "print a line of JSON for each text"),
    {0},
};
const command fill_command =
    COMMAND("fill", "predict the masked words of a text", options, .operands = "TEXT...", .least = 1, .most = -1,
            .text = "Prints the most likely words for each [MASK], with their probabilities. For RoBERTa, write "
                    "<mask>.\n\n"
                    "  bert fill --model book \"The keys to the cabinet [MASK] on the table.\"");
