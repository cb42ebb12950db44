/* main.c — translate: sequence-to-sequence models. Each command has its own file. */
#include "translate.h"

int main(int argc, char **argv)
{
    const command commands[] = {
        train_command,   tune_command,    verify_command, debug_command,   run_command,    score_command, info_command,
        average_command, lexicon_command, export_command, compare_command, sample_command, demo_command,  {0}};
    const program translate = {
        .name = "translate",
        .summary = "train and use sequence-to-sequence models",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "Train on two parallel files (line i of one is the translation of line i of the other), translate, "
                "and score the result:\n\n"
                "  translate train --src a.en --tgt a.de --out ende --minutes 60\n"
                "  translate run --model ende < test.en > test.out\n"
                "  translate score --ref test.de < test.out\n\n"
                "'translate demo' trains on dates in five languages in about two minutes.",
    };
    return program_main(&translate, argc, argv);
}
