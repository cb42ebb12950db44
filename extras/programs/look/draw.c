/* draw.c — look draw: the modules of a model, box by box. */
#include "look.h"

static const char *dir, *html;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (reject_png(html)) return EXIT_USAGE;
    if (model_open(dir, &m)) {
        tn_report *r = report_new("box by box", dir);
        tn_report_module(r, "Modules and their parameters", m.net);
        if (write_report(r, html)) printf("%s\n", html);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),
    OPTION_TEXT("html", 'o', "FILE", &html, "HTML page to write, or .svg file", .required = true),
    {0},
};
const command draw_command = {
    .name = "draw",
    .summary = "draw the modules of a model box by box",
    .options = options,
    .run = run,
    .text = "Draws each module in the box of its owner, with its number of parameters; equal layers are one box.\n\n"
            "    look draw --model book --html book.svg\n",
};
