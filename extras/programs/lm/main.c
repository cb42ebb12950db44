/* main.c — lm: recurrent language models (Elman, LSTM, GRU). One file per command. */
#include "lm.h"

#include <string.h>

bool recurrent_open(const char *path, model *m, tn_rnn_lm **lm)
{
    *lm = NULL;
    if (!model_open(path, NULL, false, m)) return false;
    if (!strcmp(m->about.type ? m->about.type : "", "tenon_rnn_lm")) *lm = (tn_rnn_lm *)m->net;
    else {
        tn_raise(TN_EUNSUPPORTED, "'%s' contains a %s model, not a recurrent one; use gpt", path,
                 m->about.type ? m->about.type : "custom");
        model_close(m);
    }
    return *lm != NULL;
}

bool numbers_of(const tn_tokenizer *t, tn_text text, tn_ids *to)
{
    tn_string  lines = {0};
    const bool words = texts_are_words(t);
    if (words && texts_lines(text, &lines)) text = (tn_text){lines.at, lines.bytes};
    if (tn_error() == TN_OK) texts_encode(t, text, !words, to);
    tn_string_free(&lines);
    return tn_error() == TN_OK;
}

int main(int argc, char **argv)
{
    const command commands[] = {train_command, verify_command, debug_command,  eval_command,
                                write_command, info_command,   export_command, {0}};
    const program lm = {
        .name = "lm",
        .summary = "train recurrent language models and generate text (for Transformers, see gpt)",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "LSTM, GRU or Elman networks that read words, BPE tokens, characters or bytes, and carry their states "
                "through the text:\n\n"
                "  lm train --text book.txt --out book --size small --epochs 10\n"
                "  lm eval --model book other.txt --json\n"
                "  lm write --model book --prompt \"The old man\"",
    };
    return program_main(&lm, argc, argv);
}
