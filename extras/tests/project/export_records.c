/* export_records.c — writes random inputs of a model, and hashes of the library's results: token ids, texts, logits,
 * hidden states. export_replay.c compares them with those of the exported model.
 *
 *     export_records MODEL TOKENIZER RECORDS COUNT [int8|embed]      TOKENIZER -: the model's own */
#include "export_record.h"

#include <tenon/extras.h>

#include <stdlib.h>

enum { TEXT = 1 << 12 };
static uint64_t seed = 1;
static int32_t  item[ITEMS], input; /* of the next call; its number */
static bool     embeds;             /* the exported model embeds texts */
static FILE    *out;

static int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

/* A call with n items. */
static void put(int call, int64_t n, int64_t last, int64_t width, uint64_t hash)
{
    const struct record r = {input, call, (int32_t)n, (int32_t)last, (int32_t)width, 0, hash};
    fwrite(&r, sizeof r, 1, out);
    fwrite(item, sizeof *item, (size_t)n, out);
}

/* A call whose results are rows of y. */
static void put_rows(int call, int64_t n, int64_t last, const tn_tensor *y)
{
    const int64_t width = y ? tn_size(y, -1) : 1, rows = y ? tn_numel(y) / width : 0;
    if (y) put(call, n, last, width, hash_rows(HASH_START, tn_data(y), rows, width, width));
}

/* The maximum tokens of a text of an encoder; of a tuned one, as bert tune's. */
static int64_t length_of(const tn_model *m)
{
    const int64_t most = (m->family == TN_MODEL_TUNED ? m->tuned->encoder : m->bert)->config.positions;
    return m->family == TN_MODEL_TUNED && most > 128 ? 128 : most;
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

static void put_text(const tn_model *m, tn_encoding *e)
{
    const tn_tokenizer *t = m->tokenizer;
    const bool          plain = m->family == TN_MODEL_SEQ2SEQ, bare = plain || m->family == TN_MODEL_DECODER;
    const int64_t       length = bare ? 0 : length_of(m);
    static char         text[TEXT + 64];
    const size_t        bytes = random_text(t, text);
    tn_tokenizer_encode(t, e, text, bytes, .bare = bare, .literal = plain, .max_length = length);
    uint64_t h = hash_word(HASH_START, (uint32_t)e->n);
    for (int64_t i = 0; i < e->n; i++) h = hash_word(h, (uint32_t)e->id[i]);
    for (size_t i = 0; i < bytes; i++) item[i] = (unsigned char)text[i];
    put(ENCODE, (int64_t)bytes, 0, 0, h);
}

static void put_decoding(const tn_tokenizer *t)
{
    const int64_t n = draw(64) + 1;
    tn_string     text = {0};
    for (int64_t i = 0; i < n; i++) item[i] = (int32_t)draw(tn_tokenizer_size(t));
    tn_tokenizer_decode(t, item, n, &text, .keep_spaces = true);
    put(DECODE, n, 0, 0, hash_bytes(HASH_START, text.at, (int64_t)text.bytes));
    tn_string_free(&text);
}

/* n tokens, also in item. */
static tn_tensor *random_ids(int64_t n, int64_t first, int64_t vocab)
{
    tn_tensor *t = tn_empty_of(TN_I64, TN_SHAPE(1, n));
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < n; i++) item[i] = (int32_t)(to[i] = first + draw(vocab - first));
    return t;
}

/* Most inputs are short: emulators are slow. Some have more than the 128 keys of a block. */
static int64_t random_length(int64_t length)
{
    const int64_t most = input % 100 ? 12 : 300;
    return draw(most < length ? most : length) + 1;
}

static void put_logits(void *lm)
{
    const tn_lm_info about = tn_lm_info_of(lm);
    const int64_t    n = random_length(about.positions);
    put_rows(READ, n, 0, tn_lm_forward(lm, random_ids(n, 0, about.vocab)));
}

/* Hidden states, and the probabilities at the last token. */
static void put_words(tn_bert *m)
{
    const int64_t n = random_length(m->config.positions), last = n - 1;
    tn_tensor    *y = tn_bert_forward(m, random_ids(n, 0, m->config.vocab));
    put_rows(RUN, n, 0, y);
    if (embeds) return; /* the vectors are compared by export.sh */
    put_rows(FILL, 0, last, tn_softmax(tn_bert_mlm_logits(m, y, tn_from_data(TN_I64, TN_SHAPE(1), &last)), -1));
}

/* Hidden states, and the scores of the text or of each token. */
static void put_scores(tn_tuned *m)
{
    const int64_t n = random_length(128);
    tn_tensor    *id = random_ids(n, 0, m->encoder->config.vocab);
    put_rows(RUN, n, 0, tn_bert_forward(m->encoder, id));
    put_rows(m->config.task == TN_TASK_TOKEN_CLASSIFICATION ? TAG : CLASSIFY, 0, n, tn_tuned_forward(m, id));
}

/* The logits after each token of a translation of a text. Token 0 is padding. */
static void put_translation(tn_seq2seq *m)
{
    const int64_t vocab = m->config.target_words, first = m->config.end + 1, most = m->config.positions;
    const int64_t n = random_length(most), k = random_length(most);
    tn_tensor    *source = random_ids(n, first, vocab);
    put(LISTEN, n, 0, 0, HASH_START);
    put_rows(READ, k, 0, tn_seq2seq_forward(m, source, random_ids(k, first, vocab)));
}

static void put_image(tn_vit *m, const tn_image_processor *p)
{
    const int64_t side = m->config.image;
    tn_tensor    *image = tn_empty_of(TN_U8, TN_SHAPE(m->config.channels, side, side));
    uint8_t      *pixel = image ? tn_data_mut(image) : NULL;
    for (int64_t i = 0; pixel && i < tn_numel(image); i++) item[i] = pixel[i] = (uint8_t)(draw(3) ? draw(256) : 0);
    tn_tensor *y = image ? tn_call(m, tn_unsqueeze(tn_image_ready(image, p), 0)) : NULL;
    put_rows(SEE, image ? tn_numel(image) : 0, 0, y);
    put_rows(LIKELY, 0, 0, tn_softmax(y, -1));
}

static void put_input(const tn_model *m, const tn_image_processor *p, tn_encoding *e)
{
    const tn_scope s = tn_no_grad_begin();
    if (m->family != TN_MODEL_IMAGES) put_text(m, e);
    if (m->family == TN_MODEL_DECODER || m->family == TN_MODEL_SEQ2SEQ) put_decoding(m->tokenizer);
    if (m->family == TN_MODEL_DECODER) put_logits(m->lm);
    if (m->family == TN_MODEL_ENCODER) put_words(m->bert);
    if (m->family == TN_MODEL_TUNED) put_scores(m->tuned);
    if (m->family == TN_MODEL_SEQ2SEQ) put_translation(m->seq2seq);
    if (m->family == TN_MODEL_IMAGES) put_image((tn_vit *)m->module, p);
    tn_scope_end(s);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        return fprintf(stderr, "usage: export_records MODEL TOKENIZER RECORDS COUNT [int8|embed]\n"), 2;
    const int count = atoi(argv[4]);
    tn_extras_register();
    tn_model           m = tn_model_open(argv[1], .tokenizer = strcmp(argv[2], "-") ? argv[2] : NULL);
    tn_encoding       *e = tn_encoding_new();
    tn_image_processor p = {.channels = 0};
    out = fopen(argv[3], "wb");
    if (!out) return fprintf(stderr, "cannot write '%s'\n", argv[3]), 1;
    if (m.family == TN_MODEL_IMAGES) (void)!tn_image_processor_load(argv[1], &p); /* the error is seen below */
    embeds = argc == 6 && !strcmp(argv[5], "embed");
    if (argc == 6 && !embeds) (void)!tn_quantize_run((tn_quantize_args){.module = m.module, .activations = true});
    for (; input < count && tn_error() == TN_OK; input++) put_input(&m, &p, e);
    tn_encoding_free(e);
    tn_model_close(&m);
    if (tn_error() != TN_OK) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    return fclose(out) != 0;
}
