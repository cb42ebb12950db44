/* main.c — bert: masked language models from text files. One file for each command. */
#include "bert.h"

static const command commands[] = {SAMPLE_CORPUS, {0}};

static const program bert = {
    .name = "bert",
    .summary = "masked language models from text files",
    .commands = commands,
};

int main(int argc, char **argv) { return program_main(&bert, argc, argv); }
