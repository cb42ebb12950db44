/* info.c — vit info: prints the architecture of a model. */
#include "vit.h"

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (model_open(operands[0], &m)) {
        const tn_vit_config *c = m.vit ? &m.vit->config : NULL;
        printf("kind        %s\n", !c             ? "convolutional network"
                                   : c->teacher   ? "DeiT with distillation head"
                                   : c->distilled ? "DeiT"
                                                  : "ViT");
        if (c)
            printf("layers      %lld, %lld heads, width %lld\npatches     %lld x %lld of %lld pixels\n",
                   (long long)c->layers, (long long)c->heads, (long long)c->dim, (long long)(c->image / c->patch),
                   (long long)(c->image / c->patch), (long long)c->patch);
        else printf("filters     %lld and %lld\n", (long long)m.filters, (long long)(2 * m.filters));
        printf("images      %lld x %lld, %lld %s\nclasses     %lld\nparameters  %lld\n", (long long)m.side,
               (long long)m.side, (long long)m.processor.channels, m.processor.channels == 1 ? "channel" : "channels",
               (long long)m.classes, (long long)tn_module_count(m.net, false));
        if (settings.verbose) tn_module_summary(stdout, m.net);
        model_close(&m);
    }
    return program_end();
}

const command info_command = COMMAND("info", "print the architecture of a model", NULL, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, also lists every parameter.");
