/* sample.c — bert sample-corpus: writes the small world's text to standard output. */
#include "bert.h"
#include "../common/world.h"

static int64_t documents = 10000, seed = 1;

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!world_write(stdout, (uint64_t)seed, 0, documents)) tn_raise(TN_EIO, "cannot write to standard output");
    return program_end();
}

static const option options[] = {
    OPTION_INT("documents", 'n', "N", &documents, "number of documents, of about nine sentences each", .least = 1,
               .most = 1e9),
    OPTION_SEED(0, &seed, ""),
    {0},
};
const command sample_command =
    COMMAND("sample-corpus", "generate English text from a grammar", options,
            .text = "Writes sentences about a small world to standard output, one per line, with an empty line between "
                    "documents. The grammar has agreement across a distance, pronouns, and words with two senses.");
