/* main.c — elmo: contextual word vectors from a bidirectional language model. One file per command. */
#include "elmo.h"

#include <stdlib.h>

bool lines_add(text_lines *l, tn_text line)
{
    if (l->count == l->room) {
        const int64_t room = 2 * l->room + 64;
        tn_text      *more = realloc(l->line, (size_t)room * sizeof *more);
        if (!more) return tn_raise_false(TN_ENOMEM, "no memory for %lld lines", (long long)room);
        l->line = more, l->room = room;
    }
    l->line[l->count++] = line;
    return true;
}

void lines_free(text_lines *l)
{
    free(l->line);
    *l = (text_lines){.line = NULL};
}

int main(int argc, char **argv)
{
    const command commands[] = {train_command, embed_command, tag_command, info_command, {0}};
    const program elmo = {
        .name = "elmo",
        .summary = "train contextual word vectors (ELMo) and sentence vectors (skip-thought)",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text = "ELMo is a bidirectional language model that reads words as characters. Its layers give each word a "
                "vector that depends on the sentence:\n\n"
                "  elmo train --text sentences.txt --out model --minutes 30\n"
                "  elmo tag --model model --train train.conllu --test test.conllu",
    };
    return program_main(&elmo, argc, argv);
}
