/* main.c — look: inspects models. Each command has its own file. */
#include "look.h"

int main(int argc, char **argv)
{
    const command commands[] = {heads_command,     prune_command, attend_command, walk_command,
                                positions_command, draw_command,  align_command,  attribute_command,
                                surface_command,   probe_command, guide_command,  {0}};
    const program look = {
        .name = "look",
        .summary = "inspect and prune Transformer models",
        .commands = commands,
        .text = "Measures and prunes attention heads, plots attention and loss surfaces, attributes predictions to "
                "tokens, and probes layers:\n\n"
                "  look heads --model book --text test.txt\n"
                "  look prune --model book --text train.txt --valid test.txt --share 0.5 --out smaller\n"
                "  look attend --model book \"The old man went to the sea.\" --html look.html\n"
                "  look attribute --model book \"The old [MASK] went to the sea.\"\n\n"
                "A model is a folder written by bert, gpt, translate, or Hugging Face's libraries.",
    };
    return program_main(&look, argc, argv);
}
