/* write.c — lm write: continues a text. */
#include "programs/common/messages.h"
#include "lm.h"

static const char    *dir, *prompt = "";
static writer_options how = {.how = {TN_GENERATE_ARGS_DEFAULTS}, .tokens = 200};
static int64_t        seed = 1;
static double         temperature = 0.8;

static int run(int count, char **operands)
{
    model      m;
    tn_rnn_lm *lm;
    writer     w;
    (void)count, (void)operands;
    how.seed = (uint64_t)seed;
    const int code = writer_set_sampling(&how, temperature);
    if (code) return code;
    if (!recurrent_open(dir, &m, &lm)) return program_end();
    if (!*prompt && input_waits()) warn("standard input has text but is not read; --prompt TEXT continues a text\n");
    const bool words = texts_are_words(m.tokens);
    if (!*prompt && !words) prompt = "\n";
    if (writer_open(&w, &m, &how) && writer_read(&w, tn_text_of(*prompt ? prompt : "<eos>"))) {
        fputs(prompt, stdout);
        writer_write(&w);
        if (words) putchar('\n');
    }
    writer_close(&w);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_TEXT("prompt", 'p', "TEXT", &prompt, "text to continue; without it, a new line"),
    OPTION_INT("tokens", 'n', "N", &how.tokens, "maximum number of tokens to generate", .least = 0, .most = 1e9),
    WRITER_SAMPLING(how, temperature),
    OPTION_LIST("stop", 0, "TEXT", &how.stop, "end before this text; may be given several times", .single = true),
    OPTION_SEED(0, &seed, " of the sampling"),
    {0},
};
const command write_command =
    COMMAND("write", "continue a text", options,
            .text = "Writes the prompt and its continuation to standard output, token by token. The model carries its "
                    "state along, so a text may have any length.\n\n"
                    "  lm write --model book --prompt \"The old man\" --tokens 300 --temperature 0.7");
