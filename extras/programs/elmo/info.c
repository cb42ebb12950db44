/* info.c — elmo info: prints the configuration of an ELMo or skip-thought model. */
#include "elmo.h"

#include <string.h>

static void show_elmo(const tn_elmo *m)
{
    const tn_elmo_config *c = &m->config;
    printf(
        "kind        ELMo\nlayers      characters and 2 LSTMs, hidden size %lld, projected to %lld in each direction\n",
        (long long)c->hidden, (long long)c->dim);
    printf("characters  width %lld, convolutions over 1 to %lld of them, at most %lld bytes of a word\n",
           (long long)c->letters, (long long)c->widths, (long long)c->longest);
    printf("vectors     %lld values for each word and layer\nparameters  %lld\nvocabulary  %lld words of the output\n",
           (long long)(2 * c->dim), (long long)tn_count(m), (long long)c->vocab);
}

static void show_thoughts(const tn_skip_thought *m)
{
    const tn_skip_thought_config *c = &m->config;
    printf("kind        skip-thought\nlayers      1 encoder and 2 decoders, hidden size %lld, embedding size %lld\n",
           (long long)c->hidden, (long long)c->dim);
    printf("vectors     %lld values for each sentence\nparameters  %lld\nvocabulary  %lld words\n",
           (long long)c->hidden, (long long)tn_count(m), (long long)c->vocab);
}

static int run(int count, char **operands)
{
    char       path[1024];
    tn_json   *config = tn_json_load(in_folder(operands[0], "config.json", path));
    const bool thoughts = !strcmp(tn_json_string_or(tn_json_get(config, "model_type"), ""), "tenon_skip_thought");
    void      *m = NULL;
    (void)count;
    if (tn_error() == TN_OK && thoughts && (m = tn_skip_thought_load(operands[0]))) show_thoughts(m);
    else if (tn_error() == TN_OK && (m = tn_elmo_load(operands[0]))) show_elmo(m);
    if (m && settings.verbose) tn_module_summary(stdout, m);
    tn_module_free(m);
    tn_json_free(config);
    return program_end();
}

const command info_command = COMMAND("info", "show a model's configuration", NULL, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, also lists all parameters.");
