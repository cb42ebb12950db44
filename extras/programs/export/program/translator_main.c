/* translator_main.c — part of an exported program: main of a translator. */

#ifdef MODEL_MAIN
/* ---- the program: translates the lines of standard input, like translate run --beam 1 ---------------------------- */
static char decoded[MODEL_TEXT];
static int  id[MODEL_TOKENS], said[LENGTH];

static int best_token(void)
{
    const float *logit = model_logits();
    int          best = 0;
    for (int i = 1; i < VOCAB; i++) best = logit[i] > logit[best] ? i : best;
    return best;
}

/* Translates the n tokens of id, which has room for END after them. Returns the number of tokens of `said`. */
static int translate(int n)
{
    int made = 0, most, token = BEGIN;
    if (n > LENGTH - 1) n = LENGTH - 1;
    id[n++] = END;
    most = 2 * n + 20 < LENGTH ? 2 * n + 20 : LENGTH;
    model_run(id, n);
    for (model_read(token); made < most - 1 && (token = best_token()) != END; model_read(token)) said[made++] = token;
    return made;
}

int main(void)
{
    for (int bytes; (bytes = read_line(1)) != -1;) {
        int blank = 1;
        if (bytes < 0) return 1;
        for (int i = 0; i < bytes; i++) blank = blank && (line[i] == ' ' || line[i] == '\t');
        const int n = blank ? 0 : model_decode(said, translate(model_encode(line, bytes, id)), decoded);
        for (int i = 0; i < n; i++) putchar(decoded[i] == '\n' || decoded[i] == '\r' || !decoded[i] ? ' ' : decoded[i]);
        putchar('\n');
    }
    return 0;
}
#endif
