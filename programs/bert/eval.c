/* eval.c — bert eval: loss and accuracy of a model on the masked tokens of text files. */
#include "core/system/system.h"

#include "bert.h"

#include "../common/numbers.h"
#include "../common/sentence_pairs.h"
#include "../common/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char  *dir, *cache, *pairs;
static texts_config asked = {.length = 128, .batch = 16, .seed = 7, .fixed = true};
static bool         json;

/* Operands, with standard input as a file in a temporary folder, because a corpus reads its files twice. Sets *index to
 * the operand "-", or -1. False: raised. */
static bool spool_input(int count, char **operands, char path[1024], int *index)
{
    const char *in[] = {"-"};
    tn_string   text = {0};
    *index = -1;
    for (int i = 0; i < count; i++)
        if (!strcmp(operands[i], "-") && *index >= 0)
            return tn_raise_false(TN_EINVAL, "'-' is given twice, but standard input can be read only once");
        else if (!strcmp(operands[i], "-")) *index = i;
    if (*index < 0) return true;
    snprintf(path, 1024, "%.900s/standard-input-XXXXXX", tn__sys_temporary());
    if (!texts_read(&(option_list){1, in}, &text)) return tn_string_free(&text), *index = -1, false;
    const int fd = mkstemp(path);
    if (fd < 0) tn_raise(TN_EIO, "'%s': %s; set TMPDIR to a folder with space", path, strerror(errno)), *index = -1;
    else tn__sys_close(fd);
    if (fd >= 0 && tn_file_write(path, text.at, text.bytes) == TN_OK) operands[*index] = path;
    tn_string_free(&text);
    return tn_error() == TN_OK;
}

static int run_pairs(void)
{
    model m;
    if (model_open(dir, &m)) {
        sentence_pairs_eval(pairs, score_pairs, m.bert, m.tokens, json);
        model_close(&m);
    }
    return program_end();
}

static int run(int count, char **operands)
{
    const int code = sentence_pairs_check(pairs, count, operands);
    if (code) return code;
    if (pairs) return run_pairs();
    model m;
    char  path[1024], input[1024], input_cache[1100] = "";
    int   from_input;
    if (!spool_input(count, operands, input, &from_input)) return program_end();
    if (from_input >= 0 && !cache) snprintf(input_cache, sizeof input_cache, "%s.tokens", input), cache = input_cache;
    asked.files = (option_list){count, (const char **)(uintptr_t)operands};
    if (model_open(dir, &m)) {
        evaluation e;
        asked.cache = cache ? cache : in_folder(dir, "eval.tokens", path);
        asked.kind = m.bert->config.kind, asked.pairs = m.bert->next != NULL;
        if (asked.length > m.bert->config.positions) asked.length = m.bert->config.positions;
        if (!m.bert->head) tn_raise(TN_EUNSUPPORTED, "'%s' has no head for masked tokens", dir);
        else if (evaluate(&m, &asked, &e) && json) {
            numbers_json("{\"loss\":", e.loss, 6), numbers_json(",\"unigram\":", e.unigram, 6);
            numbers_json(",\"perplexity\":", e.perplexity, 4), numbers_json(",\"accuracy\":", 100 * e.right, 4);
            printf(",\"words\":%lld", (long long)e.words), numbers_json(",\"next\":", 100 * e.next, 4);
            printf(",\"pairs\":%lld}\n", (long long)e.pairs);
        } else if (tn_error() == TN_OK) {
            printf("masked tokens  %lld\nloss           %.4f nats; %.4f by the tokens' frequencies alone\n",
                   (long long)e.words, e.loss, e.unigram);
            printf("perplexity     %.2f\naccuracy       %.2f %%\n", e.perplexity, 100 * e.right);
            texts_explain_loss(e.loss, e.unigram, e.words);
            if (e.pairs) printf("next sentences %.2f %% of %lld\n", 100 * e.next, (long long)e.pairs);
        }
        model_close(&m);
    }
    if (from_input >= 0) tn__sys_unlink(input);
    if (*input_cache) tn__sys_unlink(input_cache);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("length", 'l', "N", &asked.length, "tokens per example", .least = 8, .most = 16384),
    OPTION_INT("batch", 'b', "N", &asked.batch, "examples per batch", .least = 1, .most = 65536),
    OPTION_FLAG("by-rule", 0, &asked.by_rule, "end sentences at . ! ? instead of at the end of a line"),
    OPTION_TEXT("cache", 0, "FILE", &cache,
                "file for the texts' token ids (default: eval.tokens in the model's folder)"),
    OPTION_PAIRS(&pairs),
    OPTION_FLAG("json", 0, &json, "print one line of JSON"),
    {0},
};
const command eval_command =
    COMMAND("eval", "measure a model on text files", options, .operands = "[FILE...]", .most = -1,
            .text = "Masks tokens as in training, the same ones in each run, and prints the mean cross-entropy and the "
                    "accuracy of the model's predictions in percent. With --pairs, prints the percentage of pairs in "
                    "which the acceptable sentence has the higher pseudo-log-likelihood: each token is masked in turn, "
                    "and the log probabilities are summed. Equal scores count as wrong.");
