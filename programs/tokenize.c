/* tokenize.c — a shell filter for tokenizers: trains one on files, encodes lines as token ids, and decodes them. */
#include "common/messages.h"
#include "common/options.h"

#include "common/files.h"
#include "common/progress.h"
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 64 << 20 }; /* bytes */

static const char *type, *out, *model;
static int64_t     size, min_count = 2, alphabet = 1000;
static bool        cased, force, trace, lowercase, slow, pieces, special, literal, strict;

static int kind_of(const char *name)
{
    static const char *const kinds[] = {"wordpiece", "bpe", "byte-bpe", "", "unigram", "subword"};
    for (int i = 0; i < 6; i++)
        if (name && !strcmp(name, kinds[i])) return i;
    return -1;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static progress bar;
static void     show(const char *what, double part, void *user)
{
    (void)user;
    progress_at(&bar, (int64_t)(part * 100), what);
}

/* --trace: prints a merge. */
static void show_merge(const char *left, const char *right, int64_t count, void *number)
{
    printf("%lld\t%s %s\t%lld\n", (long long)++*(int64_t *)number, left, right, (long long)count);
}

static void said(int64_t n, const char *what)
{
    if (!settings.quiet) tell("%s: %lld %s\n", out, (long long)n, what);
}

static void train_tokenizer(int n, char **files)
{
    static const char *const files_of[] = {"tokenizer.json", "vocab.txt", "vocab.json", "config.json"};
    char                     path[1024];
    const bool               subword = kind_of(type) == TN_SUBWORD;
    if (subword && file_exists(out) && !force)
        tn_raise(TN_EINVAL, "'%s' already exists; choose another --out, or use --force", out);
    for (size_t i = 0; !subword && i < sizeof files_of / sizeof *files_of && !force; i++)
        if (file_exists(in_folder(out, files_of[i], path)))
            tn_raise(TN_EINVAL,
                     "'%s' already contains a tokenizer or a model: '%s'; choose another --out, or use --force", out,
                     files_of[i]);
    if (tn_error() != TN_OK || (!subword && !make_folder(out))) return;
    int64_t merges = 0;
    bar = progress_begin("train", 100, "%");
    if (!size) size = subword ? 10000 : 30000;
    tn_tokenizer *t =
        tn_tokenizer_train(n, (const char *const *)files, .kind = (tn_tokenizer_kind)kind_of(type), .vocab_size = size,
                           .min_count = min_count, .alphabet = alphabet, .cased = cased, .progress = show,
                           .merged = trace ? show_merge : NULL, .user = &merges);
    progress_end(&bar);
    if (t && tn_tokenizer_save(t, out) == TN_OK)
        said(subword ? tn_tokenizer_parts(t, NULL, NULL, NULL) : tn_tokenizer_size(t), subword ? "merges" : "tokens");
    tn_tokenizer_free(t);
}

static int train(int n, char **files)
{
    if (!type) return program_usage("--type TYPE is required: wordpiece, bpe, byte-bpe, unigram or subword");
    const int  kind = kind_of(type);
    const bool letters = kind == TN_WORDPIECE || kind == TN_BPE;
    const int  code = letters ? 0 : program_stray("alphabet", "--type wordpiece and bpe");
    if (code) return code;
    if (kind == TN_UNIGRAM && trace) return program_usage("--trace prints merges, which --type unigram does not have");
    train_tokenizer(n, files);
    return program_end();
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tokenizer *t;
    tn_encoding  *e;
    tn_string     text;
    tn_ids        ids;
    int64_t       replaced;
} tools;

/* Writes the tokens of --type subword as subword-nmt does: "@@ " within a word, one space between words. */
static void put_subwords(const tn_encoding *e, tn_text line)
{
    size_t at = 0;
    for (int64_t i = 0; i < e->n; at = (size_t)e->end[i++]) {
        for (; at < (size_t)e->start[i]; at++)
            if (!i || line.at[at] != ' ' || line.at[at - 1] != ' ') putchar(line.at[at]);
        fwrite(line.at + at, 1, (size_t)e->end[i] - at, stdout);
        if (i + 1 < e->n && e->word[i + 1] == e->word[i]) fputs("@@ ", stdout);
    }
    fwrite(line.at + at, 1, line.bytes - at, stdout);
}

static void encode(tools *x, tn_text line)
{
    tn_encoding *e = x->e;
    if (tn_tokenizer_encode(x->t, e, line.at, line.bytes, .bare = !special, .literal = literal, .strict = strict))
        return;
    if (kind_of(type) == TN_SUBWORD) {
        put_subwords(e, line);
        return;
    }
    x->replaced += e->invalid;
    for (int64_t i = 0; i < e->n; i++)
        if (pieces) printf(i ? " %s" : "%s", tn_tokenizer_token(x->t, e->id[i]));
        else printf(i ? " %d" : "%d", e->id[i]);
}

static void decode(tools *x, tn_text line)
{
    x->text.bytes = 0, x->ids.n = 0;
    if (kind_of(type) == TN_SUBWORD) {
        for (size_t at = 0; at < line.bytes; at++)
            if (line.bytes - at < 2 || memcmp(line.at + at, "@@", 2) || (line.bytes - at > 2 && line.at[at + 2] != ' '))
                putchar(line.at[at]);
            else at += 2;
        return;
    }
    for (size_t at = 0; at < line.bytes; at++) {
        const size_t from = at;
        int32_t      id = 0;
        for (; at < line.bytes && line.at[at] >= '0' && line.at[at] <= '9' && id < 100000000; at++)
            id = 10 * id + (line.at[at] - '0');
        if (at == from || (at < line.bytes && line.at[at] != ' ')) {
            tn_raise(TN_EFORMAT, "expected token ids separated by spaces, but byte %zu is neither", at + 1);
            return;
        }
        if (tn_ids_add(&x->ids, id) != TN_OK) return;
    }
    for (int64_t i = 0; pieces && i < x->ids.n; i++) printf(i ? " %s" : "%s", tn_tokenizer_token(x->t, x->ids.at[i]));
    if (!pieces && tn_tokenizer_decode(x->t, x->ids.at, x->ids.n, &x->text, .keep_special = special) == TN_OK)
        fwrite(x->text.at, 1, x->text.bytes, stdout);
}

/* Options without effect for --type subword, which always writes subwords, not ids. */
static const char *const        of_numbers[] = {"lowercase", "slow", "literal", "strict-utf8", "special", NULL},
                         *const of_words[] = {"special", "pieces", NULL};

/* Checks that t is of --type. False: raised. */
static bool is_of_type(const tn_tokenizer *t)
{
    static const char *const names[] = {"wordpiece", "bpe", "byte-bpe", "SentencePiece's bpe", "unigram", "subword"};
    const int                is = t ? (int)tn_tokenizer_kind_of(t) : 0, said = kind_of(type);
    if (!t || !type || said == is || (said == TN_BPE && is == TN_SENTENCE_BPE)) return t != NULL;
    return tn_raise_false(TN_EINVAL, "'%s' is of type %s, not --type %s; omit --type", model, names[is], type);
}

static void prepare_thai(tools *x, tn_text line)
{
    x->text.bytes = 0;
    if (tn_string_add_thai(&x->text, line) == TN_OK) fwrite(x->text.at, 1, x->text.bytes, stdout);
}

/* Calls one for each line of the input, with x. */
static void each_line(tools *x, void (*one)(tools *, tn_text))
{
    char   *line = NULL, where[32];
    size_t  room = 0, n = 0;
    int64_t number = 0;
    while (tn_error() == TN_OK && !ferror(stdout)) {
        snprintf(where, sizeof where, "line %lld", (long long)++number);
        tn_path_push(where);
        const bool there = next_line(&line, &room, &n, LINE_MOST);
        if (there) one(x, (tn_text){line, n});
        tn_path_pop();
        if (!there || tn_error() != TN_OK) break;
        putchar('\n');
    }
    free(line);
}

static int filter(void (*one)(tools *, tn_text), const char *const *stray)
{
    tools               x = {0};
    tn_tokenizer_config how = {.slow = slow, .lowercase = lowercase ? TN_YES : TN_FROM_FILE};
    const size_t        length = strlen(model);
    const int code = kind_of(type) == TN_SUBWORD ? program_strays(stray, "tokenizers other than --type subword") : 0;
    if (code) return code;
    if (!lowercase && length > 4 && !strcmp(model + length - 4, ".txt")) how.lowercase = TN_NO;
    if (is_of_type(x.t = tn_tokenizer_load_run(model, how))) x.e = tn_encoding_new();
    each_line(&x, one);
    if (x.replaced) warn("%lld invalid byte sequences of UTF-8 were replaced\n", (long long)x.replaced);
    tn_string_free(&x.text), tn_ids_free(&x.ids);
    tn_encoding_free(x.e), tn_tokenizer_free(x.t);
    return program_end();
}

static int run_encode(int n, char **operands) { return (void)n, (void)operands, filter(encode, of_numbers); }
static int run_decode(int n, char **operands) { return (void)n, (void)operands, filter(decode, of_words); }
static int run_thai(int n, char **operands)
{
    tools x = {0};
    (void)n, (void)operands, each_line(&x, prepare_thai);
    tn_string_free(&x.text);
    return program_end();
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

#define TYPES "wordpiece|bpe|byte-bpe|unigram|subword"
#define MODEL                                                                                             \
    OPTION_TEXT("model", 'm', "MODEL", &model,                                                            \
                "tokenizer: a folder, a tokenizer.json, a .model, a vocab.txt, or codes of subword-nmt",  \
                .required = true),                                                                        \
        OPTION_TEXT("type", 0, "TYPE", &type, "set subword for codes of subword-nmt (default: detected)", \
                    .choices = TYPES)

static const option train_options[] = {
    OPTION_TEXT("type", 0, "TYPE", &type,
                "wordpiece (BERT), bpe, byte-bpe (GPT-2), unigram (SentencePiece) or subword (subword-nmt); required",
                .choices = TYPES),
    OPTION_TEXT("kind", 0, "TYPE", &type, "alias of --type; one of them is required", .choices = TYPES),
    OPTION_TEXT("out", 'o', "DIR", &out, "folder to write, in the format of Hugging Face; for subword a file of codes",
                .required = true),
    OPTION_INT("size", 's', "N", &size,
               "vocabulary size (default: 30000); for subword, number of merges (default: 10000)", .least = 1,
               .most = 1e8),
    OPTION_INT("min-count", 0, "N", &min_count, "minimum count of a pair to become a token", .least = 1, .most = 1e9),
    OPTION_INT("alphabet", 0, "N", &alphabet, "for wordpiece and bpe: maximum number of distinct characters",
               .least = 1, .most = 1e7),
    OPTION_FLAG("cased", 0, &cased, "keep capital letters and accents"),
    OPTION_FLAG("trace", 0, &trace, "print each merge: its number, its two parts, and their count"),
    OPTION_FLAG("force", 0, &force, "overwrite an existing tokenizer"),
    {0}};
static const option encode_options[] = {
    MODEL,
    OPTION_FLAG("lowercase", 0, &lowercase,
                "convert to lower case, for an uncased model whose vocab.txt does not specify it"),
    OPTION_FLAG("slow", 0, &slow, "use the rules of BERT's older tokenizer in Python"),
    OPTION_FLAG("pieces", 0, &pieces, "print tokens, not ids"),
    OPTION_FLAG("special", 0, &special, "add the special tokens around a text: [CLS] ... [SEP]"),
    OPTION_FLAG("literal", 0, &literal, "read \"[SEP]\" in the text as text, not as the special token"),
    OPTION_FLAG("strict-utf8", 0, &strict, "stop at bytes that are not UTF-8, instead of replacing them"),
    {0}};
static const option  decode_options[] = {MODEL,
                                         OPTION_FLAG("pieces", 0, &pieces, "print tokens, separated by spaces"),
                                         OPTION_FLAG("special", 0, &special, "print special tokens such as [CLS]"),
                                         {0}};
static const option  no_options[] = {{0}};
static const command commands[] = {
    {.name = "train",
     .summary = "train a tokenizer on text files",
     .options = train_options,
     .run = train,
     .operands = "FILE...",
     .least = 1,
     .most = -1,
     .text = "    tokenize train --type wordpiece --size 8000 --out pieces book.txt\n"
             "    tokenize train --type unigram --size 8000 --out pieces book.txt\n"
             "    tokenize train --type subword --size 10000 --out codes train.en train.de\n"},
    {.name = "encode",
     .summary = "encode lines of text as lines of token ids",
     .options = encode_options,
     .run = run_encode,
     .text = "    tokenize encode --model pieces < book.txt > numbers\n"
             "    tokenize encode --model vocab.txt --lowercase --pieces <<< 'Unaffordable!'\n"
             "    tokenize encode --type subword --model codes < train.en > train.bpe.en\n"},
    {.name = "decode",
     .summary = "decode lines of token ids to text",
     .options = decode_options,
     .run = run_decode,
     .text = "    tokenize decode --model pieces < numbers\n"},
    {.name = "thai",
     .summary = "prepare lines of Thai text for WangchanBERTa",
     .options = no_options,
     .run = run_thai,
     .text = "    tokenize thai < reviews.txt | bert fill --model wangchanberta\n"},
    {0}};
static const program tokenize = {
    .name = "tokenize", .summary = "train tokenizers, encode and decode text", .commands = commands};

int main(int argc, char **argv) { return program_main(&tokenize, argc, argv); }
