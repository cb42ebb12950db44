/* decoder_main.c — part of an exported program: main of a language model. */

#ifdef MODEL_MAIN
/* ---- the program: continues the text on standard input, like gpt write --temperature 0 --file - ------------------ */
#include <stdio.h>
#include <stdlib.h>

#if WINDOW
static int text[LENGTH + 1], length; /* tokens of the text */
#endif
static int  recent[RECENT], recents; /* the last of them, which are decoded together */
static char decoded[MODEL_TEXT];
static int  known; /* bytes of recent's text that have been written */
static char input[TEXT_MOST + 2];

static int ends_within_character(int bytes) { return bytes >= 3 && equal(decoded + bytes - 3, "\357\277\275", 3); }

/* Adds a token's text to the output. */
static void show(int token, int shown)
{
    recent[recents++] = token;
    const int bytes = model_decode(recent, recents, decoded);
    if (recents < RECENT && ends_within_character(bytes)) return;
    if (shown && bytes > known) fwrite(decoded + known, 1, (size_t)(bytes - known), stdout);
    known = bytes;
    if (recents < 64) return; /* from here on, the last 8 are enough */
    for (int i = 0; i < 8; i++) recent[i] = recent[recents - 8 + i];
    recents = 8, known = model_decode(recent, recents, decoded);
}

/* Writes the text of the last tokens, without half a character. */
static void show_end(void)
{
    int bytes = model_decode(recent, recents, decoded);
    for (int i = 0; i < 3 && bytes >= known + 3 && ends_within_character(bytes); i++) bytes -= 3;
    if (bytes > known) fwrite(decoded + known, 1, (size_t)(bytes - known), stdout);
}

static int is_end(int token)
{
    for (int i = 0; i < ENDS; i++)
        if (end[i] == token) return 1;
    return 0;
}

/* The most likely next token. */
static int best_token(void)
{
    const float *logit = model_logits();
    int          best = 0;
    for (int i = 1; i < VOCAB; i++) best = logit[i] > logit[best] ? i : best;
    return best;
}

#if WINDOW
/* Generates up to `left` tokens. A text that is too long is cut to its last half. */
static void generate(int left)
{
    int read = 0;
    for (; left > 0; left--) {
        if (length >= LENGTH) {
            for (int i = 0; i < LENGTH / 2; i++) text[i] = text[length - LENGTH / 2 + i];
            length = LENGTH / 2, read = 0;
            model_forget();
        }
        while (read < length) model_read(text[read++]);
        const int best = best_token();
        if (is_end(best)) return;
        text[length++] = best;
        show(best, 1);
    }
}

int main(int argc, char **argv)
{
    static int id[MODEL_TOKENS];
    int        bytes = (int)fread(input, 1, sizeof input, stdin);
    if (bytes > 0 && input[bytes - 1] == '\n') bytes--;
    if (FIRST >= 0) text[length++] = FIRST;
    const int n = bytes <= TEXT_MOST ? model_encode(input, bytes, id) : LENGTH;
    if (n >= LENGTH || n + length == 0) {
        fprintf(stderr, n ? "the text is too long; the model reads at most %d tokens\n" : "the text is empty\n",
                LENGTH);
        return 1;
    }
    for (int i = 0; i < n; i++) text[length++] = id[i], show(id[i], 0);
    fwrite(input, 1, (size_t)bytes, stdout);
    generate(argc > 1 ? atoi(argv[1]) : 200);
    show_end();
    return 0;
}
#else
/* Generates up to `left` tokens. */
static void generate(int left)
{
    for (; left > 0; left--) {
        const int best = best_token();
        if (is_end(best)) return;
        show(best, 1);
        model_read(best);
    }
}

int main(int argc, char **argv)
{
    static int id[MODEL_TOKENS];
    int        bytes = (int)fread(input, 1, sizeof input, stdin);
    if (bytes > 0 && input[bytes - 1] == '\n') bytes--;
    if (bytes > TEXT_MOST) return fprintf(stderr, "the text has more than %d bytes\n", TEXT_MOST), 1;
#if WORDS
    const char *from = bytes ? input : "<eos>";
    const int   n = model_encode(from, bytes ? bytes : 5, id);
#else
    const char *from = bytes ? input : "\n";
    const int   n = model_encode(from, bytes ? bytes : 1, id);
#endif
    if (n == 0) return fprintf(stderr, "the text is empty\n"), 1;
    for (int i = 0; i < n; i++) model_read(id[i]), show(id[i], 0);
#if WORDS
    fwrite(input, 1, (size_t)bytes, stdout);
#else
    fwrite(from, 1, (size_t)(bytes ? bytes : 1), stdout);
#endif
    generate(argc > 1 ? atoi(argv[1]) : 200);
    show_end();
#if WORDS
    putchar('\n');
#endif
    return 0;
}
#endif
#endif
