/* attention.c — bert attention: writes the attention weights of every head as an HTML page. */
#include "bert.h"

static const char *dir, *html;
static int64_t     layer = 1, head = 1;

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (model_open(dir, &m)) {
        const tn_bert_config *c = &m.bert->config;
        tn_report            *r = tn_report_new("Attention");
        if (layer > c->layers || head > c->heads)
            tn_raise(TN_EINVAL, "the model has %lld layers of %lld heads; --layer %lld --head %lld does not exist",
                     (long long)c->layers, (long long)c->heads, (long long)layer, (long long)head);
        else report_attention(r, &m, operands[0], layer - 1, head - 1);
        if (record_report(r, html)) printf("%s\n", html);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_TEXT("html", 'o', "FILE", &html, "HTML file to write", .required = true),
    OPTION_INT("layer", 'l', "N", &layer, "layer of the enlarged head", .least = 1, .most = 1024),
    OPTION_INT("head", 0, "N", &head, "head to show enlarged", .least = 1, .most = 1024),
    {0},
};
const command attention_command =
    COMMAND("attention", "show the attention weights of a text", options, .operands = "TEXT", .least = 1, .most = 1,
            .text = "Writes an HTML file with small figures of all heads, and one head enlarged, with the words on "
                    "both sides.");
