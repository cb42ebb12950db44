/* main.c — bert: trains and uses masked language models. One file per command. */
#include "bert.h"

int main(int argc, char **argv)
{
    const command commands[] = {train_command,    verify_command, debug_command,  distil_command, contrast_command,
                                fill_command,     eval_command,   embed_command,  search_command, info_command,
                                export_command,   demo_command,   sample_command, score_command,  tune_command,
                                classify_command, tag_command,    answer_command, choose_command, {0}};
    const program bert = {
        .name = "bert",
        .summary = "train, fine-tune and use masked language models",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "Train a model, and fill in masked words:\n\n"
                "  bert train --text book.txt --out book --minutes 20\n"
                "  bert fill --model book \"The old [MASK] went to the sea.\"\n\n"
                "bert tune fine-tunes it on labelled texts, to classify, tag or answer. bert demo trains and tests a "
                "model in three minutes, on a text that it generates. look attend shows what each "
                "token attends to. A model's folder can be opened with Hugging Face's libraries.",
    };
    return program_main(&bert, argc, argv);
}
