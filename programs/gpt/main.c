/* main.c — gpt: trains language models on text files, and uses these or published ones. One file per command. */
#include "gpt.h"

int main(int argc, char **argv)
{
    const command commands[] = {train_command,  verify_command,  debug_command, tune_command,
                                write_command,  eval_command,    info_command,  convert_command,
                                export_command, experts_command, demo_command,  {0}};
    const program gpt = {
        .name = "gpt",
        .summary = "train GPT-style language models and generate text",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "Train a model on your own text, or use a published one:\n\n"
                "  gpt train --text book.txt --out book --minutes 20\n"
                "  gpt write --model book --prompt \"The old man\"\n"
                "  gpt tune --model book --text letters.txt --out letters\n"
                "  gpt eval --model book other.txt\n\n"
                "gpt demo does all of this in three minutes, on a text that it generates. A model's folder can be "
                "opened with Hugging Face's libraries. Every command also reads a .gguf file or a .bin file of "
                "llama2.c instead of a folder.",
    };
    return program_main(&gpt, argc, argv);
}
