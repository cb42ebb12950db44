/* main.c — bert: trains and uses masked language models. One file per command. */
#include "bert.h"

int main(int argc, char **argv)
{
    const command commands[] = {
        train_command,  distil_command,    contrast_command, fill_command,   eval_command,   embed_command,
        search_command, attention_command, info_command,     demo_command,   sample_command, score_command,
        tune_command,   classify_command,  tag_command,      answer_command, choose_command, {0}};
    const program bert = {
        .name = "bert",
        .summary = "masked language models from text files",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "Train one, let it fill in blanks, look at what it attends to:\n\n"
                "  bert train --text book.txt --out book --minutes 20\n"
                "  bert fill --model book \"The old [MASK] went to the sea.\"\n"
                "  bert attention --model book \"The old man went to the sea.\" --html look.html\n\n"
                "bert tune makes of it one that classifies, tags or answers, with labelled texts. "
                "bert demo does all of it in three minutes, with a text of its own. What is in a model's folder is "
                "what Hugging Face's libraries open.",
    };
    return program_main(&bert, argc, argv);
}
