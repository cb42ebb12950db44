/* encoder_main.c — part of an exported program: main of a masked language model. */

#ifdef MODEL_MAIN
/* ---- the program: predicts the masked tokens of each line of standard input, like bert fill --------------------- */
enum { TOP = 5 }; /* tokens that are printed for each mask */
static int id[LENGTH];

/* Prints the most likely tokens at token t. */
static void print_best(int t)
{
    const float *p = model_fill(t);
    int          best[TOP], n = 0;
    for (int i = 0; i < VOCAB; i++) {
        if (n == TOP && !(p[i] > p[best[n - 1]])) continue;
        int at = n < TOP ? n++ : n - 1;
        for (; at > 0 && p[i] > p[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = i;
    }
    for (int i = 0; i < n; i++) {
        printf("%6.2f %%  ", 100 * (double)p[best[i]]);
        if (best[i] < TOKENS) fwrite(piece[best[i]].text, 1, (size_t)piece[best[i]].bytes, stdout);
        putchar('\n');
    }
}

int main(void)
{
    for (int first = 1, bytes; (bytes = read_line(0)) != -1; first = 0) {
        int masks = 0, mask = 0;
        if (bytes < 0) return 1;
        const int n = model_encode(line, bytes, id);
        for (int t = 0; t < n; t++) masks += id[t] == MASK;
        if (masks == 0) return fprintf(stderr, "no %s in '%.*s'\n", piece[MASK].text, bytes, line), 1;
        printf("%s%.*s\n", first ? "" : "\n", bytes, line);
        model_run(id, n);
        for (int t = 0; t < n; t++) {
            if (id[t] != MASK) continue;
            if (masks > 1) printf("%s%s %d\n", mask ? "\n" : "", piece[MASK].text, mask + 1);
            print_best(t);
            mask++;
        }
    }
    return 0;
}
#endif
