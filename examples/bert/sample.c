/* sample.c — bert sample-corpus: writes the small world's text to standard output. */
#include "bert.h"
#include "../common/world.h"

static int64_t documents = 10000, seed = 1;

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!world_write(stdout, (uint64_t)seed, 0, documents)) tn_raise(TN_EIO, "standard output cannot be written");
    return program_end();
}

static const option options[] = {
    OPTION_INT("documents", 'n', "N", &documents, "how many documents of about nine sentences", .least = 1,
               .most = 1e9),
    OPTION_INT("seed", 0, "N", &seed, "another seed, another text"),
    {0},
};
const command sample_command = COMMAND(
    "sample-corpus", "write the text of a small world of English", options,
    .text = "Sentences of a grammar, on standard output: agreement across a distance, pronouns, words with two senses. "
            "Documents are separated by an empty line, sentences stand on lines of their own.");
