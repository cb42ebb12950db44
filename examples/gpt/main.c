/* main.c — gpt: trains language models on text files, and uses these or published ones. One file per command. */
#include "gpt.h"

int main(int argc, char **argv)
{
    const command commands[] = {train_command,   write_command, eval_command, info_command,
                                convert_command, demo_command,  {0}};
    const program gpt = {
        .name = "gpt",
        .summary = "language models that write",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "Train one on a text, or take one that others trained, and let it write:\n\n"
                "  gpt train --text book.txt --out book --minutes 20\n"
                "  gpt write --model book --prompt \"The old man\"\n"
                "  gpt eval --model book other.txt\n\n"
                "gpt demo does all of it in three minutes, with a text of its own. What is in a model's folder is "
                "what Hugging Face's libraries open; a .gguf or llama2.c's .bin may stand for a folder.",
    };
    return program_main(&gpt, argc, argv);
}
