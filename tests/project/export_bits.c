/* export_bits.c — compares an exported model, compiled as a shared library, with the library on random inputs: token
 * ids, texts and results must have the same bits.
 *
 *     export_bits MODEL TOKENIZER LIBRARY COUNT [int8]      TOKENIZER -: the model's own */
#include <tenon/tenon.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int          encode_fn(const char *text, int bytes, int *id);
typedef int          decode_fn(const int *id, int n, char *to);
typedef void         read_fn(int token), forget_fn(void);
typedef void         hear_fn(const int *id, int n);
typedef const float *logits_fn(void), *run_fn(const int *id, int n), *fill_fn(int t);
typedef const float *see_fn(const unsigned char *pixels);
#define FUNCTION(type, name) ((type *)(uintptr_t)function(library, name))

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

/* The maximum tokens of a text of an encoder; of a tuned one, as bert tune's. */
static int64_t length_of(const tn_model *m)
{
    const int64_t most = (m->family == TN_MODEL_TUNED ? m->tuned->encoder : m->bert)->config.positions;
    return m->family == TN_MODEL_TUNED && most > 128 ? 128 : most;
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

static void compare_texts(const tn_model *m, tn_encoding *e, void *library, int64_t input)
{
    const tn_tokenizer *t = m->tokenizer;
    const bool          plain = m->family == TN_MODEL_SEQ2SEQ, bare = plain || m->family == TN_MODEL_DECODER;
    const int64_t       length = bare ? 0 : length_of(m);
    static char         text[TEXT + 64];
    const size_t        bytes = random_text(t, text);
    encode_fn          *encode = FUNCTION(encode_fn, "model_encode");
    tn_tokenizer_encode(t, e, text, bytes, .bare = bare, .literal = plain, .max_length = length);
    const int n = encode(text, (int)bytes, id);
    bool      same = n == e->n;
    for (int i = 0; same && i < n; i++) same = id[i] == e->id[i];
    if (!same) differ("token ids", input), printf("  '%s'\n", text);
}

static void compare_decoding(const tn_tokenizer *t, void *library, int64_t input)
{
    int32_t    ids[64];
    decode_fn *decode = FUNCTION(decode_fn, "model_decode");
    const int  n = (int)draw(64) + 1;
    tn_string  want = {0};
    for (int i = 0; i < n; i++) id[i] = ids[i] = (int32_t)draw(tn_tokenizer_size(t));
    tn_tokenizer_decode(t, ids, n, &want, .keep_spaces = true);
    if ((size_t)decode(id, n, decoded) != want.bytes || memcmp(decoded, want.at, want.bytes)) differ("texts", input);
    tn_string_free(&want);
}

static tn_tensor *random_ids(int64_t n, int64_t first, int64_t vocab)
{
    tn_tensor *t = tn_empty_of(TN_I64, TN_SHAPE(1, n));
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < n; i++) id[i] = (int)(to[i] = first + draw(vocab - first));
    return t;
}

/* Most inputs are short. */
static int64_t random_length(int64_t input, int64_t length)
{
    const int64_t most = input % 50 ? 40 : 300;
    return draw(most < length ? most : length) + 1;
}

static void compare_logits(void *lm, void *library, int64_t input)
{
    const tn_lm_info about = tn_lm_info_of(lm);
    const int64_t    n = random_length(input, about.positions);
    read_fn         *read = FUNCTION(read_fn, "model_read");
    logits_fn       *logits = FUNCTION(logits_fn, "model_logits");
    const tn_scope   s = tn_no_grad_begin();
    const float     *want = tn_data(tn_lm_forward(lm, random_ids(n, 0, about.vocab)));
    FUNCTION(forget_fn, "model_forget")();
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
    const int64_t  n = random_length(input, m->config.positions);
    run_fn        *run = FUNCTION(run_fn, "model_run");
    const bool     fills = dlsym(library, "model_fill") != NULL; /* else: its vectors are compared by export.sh */
    const tn_scope s = tn_no_grad_begin();
    const int64_t  last = n - 1;
    tn_tensor     *y = tn_bert_forward(m, random_ids(n, 0, vocab));
    tn_tensor     *at = fills ? tn_from_data(TN_I64, TN_SHAPE(1), &last) : NULL;
    const float   *words = fills ? tn_data(tn_softmax(tn_bert_mlm_logits(m, y, at), -1)) : NULL, *want = tn_data(y);
    const float   *got = tn_error() == TN_OK ? run(id, (int)n) : NULL;
    bool           same = true;
    for (int64_t t = 0; got && t < n; t++)
        same = same && !memcmp(got + t * wide, want + t * dim, (size_t)dim * sizeof *want);
    if (!same) differ("hidden states", input);
    else if (words && memcmp(FUNCTION(fill_fn, "model_fill")((int)last), words, (size_t)vocab * sizeof *words))
        differ("probabilities", input);
    tn_scope_end(s);
}

/* The scores of a text, or of each token. */
static void compare_scores(tn_tuned *m, void *library, int64_t input)
{
    const bool     tags = m->config.task == TN_TASK_TOKEN_CLASSIFICATION;
    const int64_t  n = random_length(input, 128), classes = m->config.n, wide = (classes + 15) / 16 * 16;
    const tn_scope s = tn_no_grad_begin();
    const float   *want = tn_data(tn_tuned_forward(m, random_ids(n, 0, m->encoder->config.vocab)));
    bool           same = true;
    FUNCTION(run_fn, "model_run")(id, (int)n);
    const float *got = tags ? FUNCTION(fill_fn, "model_tag")((int)n) : FUNCTION(logits_fn, "model_classify")();
    for (int64_t t = 0; want && t < (tags ? n : 1); t++)
        same = same && !memcmp(got + t * wide, want + t * classes, (size_t)classes * sizeof *want);
    if (!same) differ("scores", input);
    tn_scope_end(s);
}

/* The logits after each token of a translation of a text. Token 0 is padding. */
static void compare_translation(tn_seq2seq *m, void *library, int64_t input)
{
    const int64_t  vocab = m->config.target_words, first = m->config.end + 1;
    const int64_t  n = random_length(input, m->config.positions), k = random_length(input, m->config.positions);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *source = random_ids(n, first, vocab);
    FUNCTION(hear_fn, "model_run")(id, (int)n);
    const float *want = tn_data(tn_seq2seq_forward(m, source, random_ids(k, first, vocab)));
    for (int64_t i = 0; want && i < k; i++) {
        FUNCTION(read_fn, "model_read")(id[i]);
        if (!memcmp(FUNCTION(logits_fn, "model_logits")(), want + i * vocab, (size_t)vocab * sizeof *want)) continue;
        differ("logits", input);
        break;
    }
    tn_scope_end(s);
}

static void compare_classes(tn_vit *m, const tn_image_processor *p, void *library, int64_t input)
{
    const int64_t  side = m->config.image;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *image = tn_empty_of(TN_U8, TN_SHAPE(m->config.channels, side, side));
    uint8_t       *pixel = image ? tn_data_mut(image) : NULL;
    for (int64_t i = 0; pixel && i < tn_numel(image); i++) pixel[i] = (uint8_t)(draw(3) ? draw(256) : 0);
    tn_tensor   *y = image ? tn_call(m, tn_unsqueeze(tn_image_ready(image, p), 0)) : NULL;
    const float *want = y ? tn_data(y) : NULL, *likely = y ? tn_data(tn_softmax(y, -1)) : NULL;
    const size_t bytes = (size_t)m->config.classes * sizeof *want;
    if (want && memcmp(FUNCTION(see_fn, "model_classify")(pixel), want, bytes)) differ("scores", input);
    if (likely && memcmp(FUNCTION(logits_fn, "model_probabilities")(), likely, bytes)) differ("probabilities", input);
    tn_scope_end(s);
}

static void compare(const tn_model *m, const tn_image_processor *p, tn_encoding *e, void *library, int64_t input)
{
    if (m->family != TN_MODEL_IMAGES) compare_texts(m, e, library, input);
    if (m->family == TN_MODEL_DECODER || m->family == TN_MODEL_SEQ2SEQ) compare_decoding(m->tokenizer, library, input);
    if (m->family == TN_MODEL_DECODER) compare_logits(m->lm, library, input);
    if (m->family == TN_MODEL_ENCODER) compare_states(m->bert, library, input);
    if (m->family == TN_MODEL_TUNED) compare_scores(m->tuned, library, input);
    if (m->family == TN_MODEL_SEQ2SEQ) compare_translation(m->seq2seq, library, input);
    if (m->family == TN_MODEL_IMAGES) compare_classes(m->vit, p, library, input);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) return fprintf(stderr, "usage: export_bits MODEL TOKENIZER LIBRARY COUNT [int8]\n"), 2;
    void              *library = dlopen(argv[3], RTLD_NOW);
    const int64_t      count = atoll(argv[4]);
    tn_model           m = tn_model_open(argv[1], .tokenizer = strcmp(argv[2], "-") ? argv[2] : NULL);
    tn_encoding       *e = tn_encoding_new();
    tn_image_processor p = {.channels = 0};
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    if (m.family == TN_MODEL_IMAGES) (void)!tn_image_processor_load(argv[1], &p); /* the error is seen below */
    if (argc == 6) (void)!tn_quantize_run((tn_quantize_args){.module = m.module, .activations = true});
    for (int64_t i = 0; i < count && tn_error() == TN_OK && differences < 10; i++) compare(&m, &p, e, library, i);
    tn_encoding_free(e);
    tn_model_close(&m);
    if (tn_error() != TN_OK) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    printf("%lld inputs, %d differences\n", (long long)count, differences);
    return differences != 0;
}
