/* export_bits.c — compares an exported model, compiled as a shared library, with the library on random inputs: token
 * ids, texts and results must have the same bits.
 *
 *     export_bits MODEL TOKENIZER LIBRARY COUNT      TOKENIZER -: the model's own */
#include <tenon/tenon.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int          encode_fn(const char *text, int bytes, int *id);
typedef int          decode_fn(const int *id, int n, char *to);
typedef void         read_fn(int token), forget_fn(void);
typedef const float *logits_fn(void), *run_fn(const int *id, int n), *fill_fn(int t);

enum { TEXT = 1 << 12, ROOM = 1 << 20 };
static uint64_t seed = 1;
static int      id[ROOM], differences;
static char     decoded[16 * ROOM];

static int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

static void *function(void *library, const char *name)
{
    void *f = dlsym(library, name);
    if (!f) fprintf(stderr, "%s is missing\n", name), exit(1);
    return f;
}

static void differ(const char *what, int64_t input)
{
    printf("input %lld: %s differ\n", (long long)input, what);
    differences++;
}

/* Words of tokens, spaces, any characters and any bytes. */
static size_t random_text(const tn_tokenizer *t, char *to)
{
    static const char *const parts[] = {" ",  "\n",       "  ",           "the ", " was", "'s",
                                        "12", "\xc3\xa9", "\xe4\xb8\xad", ".",    "A"};
    size_t                   n = 0;
    for (int64_t left = draw(40) + 1; left > 0 && n < TEXT - 64; left--) {
        const int64_t kind = draw(8);
        char          one[64] = {0};
        if (kind < 3) snprintf(one, sizeof one, "%.60s", tn_tokenizer_token(t, draw(tn_tokenizer_size(t))));
        else if (kind < 6) snprintf(one, sizeof one, "%s", parts[draw(sizeof parts / sizeof *parts)]);
        else if (kind < 7) tn_utf8_put((uint32_t)draw(draw(2) ? 0x3000 : 0x110000), one);
        else one[0] = (char)(draw(255) + 1);
        const size_t bytes = strlen(one);
        memcpy(to + n, one, bytes), n += bytes;
    }
    to[n] = 0;
    return n;
}

static void compare_texts(const tn_tokenizer *t, tn_encoding *e, bool bare, int64_t length, void *library,
                          int64_t input)
{
    static char  text[TEXT + 64];
    const size_t bytes = random_text(t, text);
    encode_fn   *encode = (encode_fn *)(uintptr_t)function(library, "model_encode");
    tn_tokenizer_encode(t, e, text, bytes, .bare = bare, .max_length = length);
    const int n = encode(text, (int)bytes, id);
    bool      same = n == e->n;
    for (int i = 0; same && i < n; i++) same = id[i] == e->id[i];
    if (!same) differ("token ids", input), printf("  '%s'\n", text);
}

static void compare_decoding(const tn_tokenizer *t, void *library, int64_t input)
{
    int32_t    ids[64];
    decode_fn *decode = (decode_fn *)(uintptr_t)function(library, "model_decode");
    const int  n = (int)draw(64) + 1;
    tn_string  want = {0};
    for (int i = 0; i < n; i++) id[i] = ids[i] = (int32_t)draw(tn_tokenizer_size(t));
    tn_tokenizer_decode(t, ids, n, &want, .keep_spaces = true);
    if ((size_t)decode(id, n, decoded) != want.bytes || memcmp(decoded, want.at, want.bytes)) differ("texts", input);
    tn_string_free(&want);
}

static tn_tensor *random_ids(int64_t n, int64_t vocab)
{
    tn_tensor *t = tn_empty_of(TN_I64, TN_SHAPE(1, n));
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < n; i++) id[i] = (int)(to[i] = draw(vocab));
    return t;
}

static void compare_logits(void *lm, void *library, int64_t input)
{
    const tn_lm_info about = tn_lm_info_of(lm);
    const int64_t    most = input % 50 ? 40 : 300, n = draw(most < about.positions ? most : about.positions) + 1;
    read_fn         *read = (read_fn *)(uintptr_t)function(library, "model_read");
    logits_fn       *logits = (logits_fn *)(uintptr_t)function(library, "model_logits");
    const tn_scope   s = tn_no_grad_begin();
    const float     *want = tn_data(tn_lm_forward(lm, random_ids(n, about.vocab)));
    ((forget_fn *)(uintptr_t)function(library, "model_forget"))();
    for (int64_t i = 0; want && i < n; i++) {
        read(id[i]);
        if (!memcmp(logits(), want + i * about.vocab, (size_t)about.vocab * sizeof *want)) continue;
        differ("logits", input);
        break;
    }
    tn_scope_end(s);
}

static void compare_states(tn_bert *m, void *library, int64_t input)
{
    const int64_t  dim = m->config.dim, wide = (dim + 15) / 16 * 16, vocab = m->config.vocab;
    const int64_t  most = input % 50 ? 40 : 300, n = draw(most < m->config.positions ? most : m->config.positions) + 1;
    run_fn        *run = (run_fn *)(uintptr_t)function(library, "model_run");
    fill_fn       *fill = (fill_fn *)(uintptr_t)function(library, "model_fill");
    const tn_scope s = tn_no_grad_begin();
    const int64_t  last = n - 1;
    tn_tensor     *y = tn_bert_forward(m, random_ids(n, vocab));
    tn_tensor     *p = tn_softmax(tn_bert_mlm_logits(m, y, tn_from_data(TN_I64, TN_SHAPE(1), &last)), -1);
    const float   *want = tn_data(y), *words = tn_data(p);
    const float   *got = want && words ? run(id, (int)n) : NULL;
    bool           same = true;
    for (int64_t t = 0; got && t < n; t++)
        same = same && !memcmp(got + t * wide, want + t * dim, (size_t)dim * sizeof *want);
    if (!same) differ("hidden states", input);
    else if (got && memcmp(fill((int)last), words, (size_t)vocab * sizeof *words)) differ("probabilities", input);
    tn_scope_end(s);
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: export_bits MODEL TOKENIZER LIBRARY COUNT\n"), 2;
    void          *library = dlopen(argv[3], RTLD_NOW);
    const int64_t  count = atoll(argv[4]);
    const tn_model m = tn_model_open(argv[1], .tokenizer = strcmp(argv[2], "-") ? argv[2] : NULL);
    tn_encoding   *e = tn_encoding_new();
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    for (int64_t i = 0; i < count && tn_error() == TN_OK && differences < 10; i++) {
        const bool lm = m.family == TN_MODEL_DECODER;
        compare_texts(m.tokenizer, e, lm, lm ? 0 : m.bert->config.positions, library, i);
        if (lm) compare_decoding(m.tokenizer, library, i);
        if (lm) compare_logits(m.lm, library, i);
        else compare_states(m.bert, library, i);
    }
    if (tn_error() != TN_OK) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    printf("%lld inputs, %d differences\n", (long long)count, differences);
    return differences != 0;
}
