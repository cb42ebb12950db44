/* tokenize.c — tokenizers as a filter for the shell: trains one from files, turns lines into numbers and back. */
#define _POSIX_C_SOURCE 200809L
#include <tenon/tenon.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "Usage: tokenize train --type TYPE --out DIR [options] FILE...\n"
    "       tokenize encode --model MODEL [options] < text > numbers\n"
    "       tokenize decode --model MODEL [options] < numbers > text\n"
    "\n"
    "train   makes a vocabulary from the files and writes it to DIR, as Hugging Face's libraries read it\n"
    "  --type TYPE     wordpiece (BERT), bpe (letters), byte-bpe (GPT-2)\n"
    "  --size N        so many pieces (30000)\n"
    "  --out DIR       is made if it is not there; one that holds a tokenizer is kept, unless --force\n"
    "  --min-count N   a pair becomes a piece if the text has it so often (2)\n"
    "  --alphabet N    so many different letters at most (1000)\n"
    "  --cased         keep capitals and accents\n"
    "  --threads N     the result is the same for any number\n"
    "encode  one line in, one line of numbers out\n"
    "  --model MODEL   a folder, a tokenizer.json or a vocab.txt\n"
    "  --lowercase     with a vocab.txt: for an uncased model\n"
    "  --slow          the rules of BERT's older tokenizer in Python\n"
    "  --pieces        pieces, not numbers\n"
    "  --special       with what goes around a text: [CLS] ... [SEP]\n"
    "  --literal       \"[SEP]\" in the text is text\n"
    "  --strict-utf8   stop at bytes that are not UTF-8; otherwise they are replaced, and counted\n"
    "decode  one line of numbers in, one line of text out\n"
    "  --special       show [CLS] and the like\n"
    "  --pieces        as pieces, with spaces between them\n"
    "\n"
    "Ends with 0; 1 it failed, 2 wrong use, 3 bad input, 4 out of memory, 5 reading or writing, 7 not supported.\n";

typedef struct {
    const char           *command, *model, *out;
    tn_tokenizer_training training;
    int                   threads;
    bool                  typed, lower, slow, pieces, special, literal, strict, force, help;
    int                   files; /* argv[files] … */
} options;

enum { WRONG_USE = 2, BAD_INPUT = 3, CANNOT_WRITE = 5 };

static bool wrong(const char *what, const char *value)
{
    fprintf(stderr, "tokenize: %s%s\nSee tokenize --help.\n", what, value ? value : "");
    return false;
}

static bool number(const char *text, int64_t *to)
{
    double v;
    if (!tn_parse_double(text, strlen(text), &v) || v < 1 || v > 1e9 || v != (double)(int64_t)v)
        return wrong("expected a whole number from 1 on, got ", text);
    *to = (int64_t)v;
    return true;
}

static bool read_type(const char *text, options *o)
{
    static const char *const name[] = {"wordpiece", "bpe", "byte-bpe"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, name[i])) return o->training.kind = (tn_tokenizer_kind)i, o->typed = true;
    return wrong("--type is wordpiece, bpe or byte-bpe, not ", text);
}

static bool read_options(int argc, char **argv, options *o)
{
    static const struct option known[] = {{"type", 1, 0, 't'},
                                          {"size", 1, 0, 's'},
                                          {"out", 1, 0, 'o'},
                                          {"min-count", 1, 0, 'm'},
                                          {"alphabet", 1, 0, 'a'},
                                          {"cased", 0, 0, 'c'},
                                          {"threads", 1, 0, 'n'},
                                          {"model", 1, 0, 'M'},
                                          {"lowercase", 0, 0, 'l'},
                                          {"slow", 0, 0, 'w'},
                                          {"pieces", 0, 0, 'p'},
                                          {"special", 0, 0, 'x'},
                                          {"literal", 0, 0, 'L'},
                                          {"strict-utf8", 0, 0, 'u'},
                                          {"force", 0, 0, 'f'},
                                          {"help", 0, 0, 'h'},
                                          {0, 0, 0, 0}};
    int64_t                    threads = 0;
    bool                       ok = true;
    for (int c; ok && (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) switch (c) {
        case 't': ok = read_type(optarg, o); break;
        case 's': ok = number(optarg, &o->training.vocab_size); break;
        case 'o': o->out = optarg; break;
        case 'm': ok = number(optarg, &o->training.min_count); break;
        case 'a': ok = number(optarg, &o->training.alphabet); break;
        case 'c': o->training.cased = true; break;
        case 'n': ok = number(optarg, &threads); break;
        case 'M': o->model = optarg; break;
        case 'l': o->lower = true; break;
        case 'w': o->slow = true; break;
        case 'p': o->pieces = true; break;
        case 'x': o->special = true; break;
        case 'L': o->literal = true; break;
        case 'u': o->strict = true; break;
        case 'f': o->force = true; break;
        case 'h': return o->help = true;
        default: return wrong("that was not understood", NULL);
        }
    o->threads = threads > 512 ? 512 : (int)threads;
    o->command = optind < argc ? argv[optind] : "";
    o->files = optind + 1;
    return ok;
}

static int failed(const char *where)
{
    static const int code[] = {[TN_ENOMEM] = 4, [TN_EIO] = 5, [TN_EFORMAT] = 3, [TN_EUNSUPPORTED] = 7};
    const tn_status  s = tn_error();
    fprintf(stderr, "tokenize: %s%s\n", where, tn_error_message());
    return s < sizeof code / sizeof *code && code[s] ? code[s] : 1;
}

static int train(const options *o, int n, const char *const *files)
{
    if (!o->typed || !o->out || n < 1) return wrong("train needs --type, --out and a file", NULL), WRONG_USE;
    char path[4096];
    if (mkdir(o->out, 0777) && errno != EEXIST)
        return fprintf(stderr, "tokenize: cannot make '%s': %s\n", o->out, strerror(errno)), CANNOT_WRITE;
    FILE *old = snprintf(path, sizeof path, "%s/tokenizer.json", o->out) < 4096 ? fopen(path, "rb") : NULL;
    if (old) fclose(old);
    if (old && !o->force)
        return fprintf(stderr, "tokenize: '%s' holds a tokenizer; name another folder, or use --force\n", o->out), 1;
    tn_tokenizer *t = tn_tokenizer_train_files(n, files, o->training);
    if (!t || tn_tokenizer_save(t, o->out) != TN_OK) return tn_tokenizer_free(t), failed("");
    fprintf(stderr, "%s: %lld pieces\n", o->out, (long long)tn_tokenizer_size(t));
    tn_tokenizer_free(t);
    return 0;
}

/* A line without its end; *bytes = -1 if it is longer than any line should be. False: no more. */
static bool read_line(char **line, size_t *room, int64_t *bytes)
{
    const size_t most = (size_t)64 << 20;
    size_t       n = 0;
    int          c = getc_unlocked(stdin);
    if (c == EOF) return false;
    for (; c != EOF && c != '\n'; c = getc_unlocked(stdin)) {
        if (n == *room) {
            char *more = n < most ? realloc(*line, n ? 2 * n : 4096) : NULL;
            if (!more) return *bytes = -1, true;
            *line = more, *room = n ? 2 * n : 4096;
        }
        (*line)[n++] = (char)c;
    }
    return *bytes = (int64_t)n, true;
}

static bool encode_line(const options *o, const tn_tokenizer *t, tn_encoding *e, const char *line, size_t n)
{
    if (tn_tokenizer_encode(t, e, line, n, .bare = !o->special, .literal = o->literal, .strict = o->strict) != TN_OK)
        return false;
    for (int64_t i = 0; i < e->n; i++)
        if (o->pieces) printf(i ? " %s" : "%s", tn_tokenizer_piece(t, e->id[i]));
        else printf(i ? " %d" : "%d", e->id[i]);
    return true;
}

static bool decode_line(const options *o, const tn_tokenizer *t, const char *line, size_t n, tn_ids *to)
{
    to->n = 0;
    for (size_t at = 0; at < n && tn_error() == TN_OK;) {
        int32_t id = 0;
        size_t  from = at;
        for (; at < n && line[at] >= '0' && line[at] <= '9' && id < 100000000; at++) id = 10 * id + (line[at] - '0');
        if (at == from || (at < n && line[at] != ' '))
            return tn_raise(TN_EFORMAT, "expected numbers and spaces, byte %zu is neither", at), false;
        at++;
        if (tn_ids_add(to, id) != TN_OK) return false;
    }
    tn_string text = {0};
    for (int64_t i = 0; o->pieces && i < to->n; i++) printf(i ? " %s" : "%s", tn_tokenizer_piece(t, to->at[i]));
    if (!o->pieces && tn_tokenizer_decode(t, to->at, to->n, &text, .keep_special = o->special) == TN_OK)
        fwrite(text.at, 1, text.bytes, stdout);
    tn_string_free(&text);
    return tn_error() == TN_OK;
}

static int filter(const options *o)
{
    if (!o->model) return wrong(o->command, " needs --model"), WRONG_USE;
    struct stat          st;
    tn_tokenizer_options how = {.slow = o->slow, .lowercase = o->lower ? TN_YES : TN_FROM_FILE};
    const size_t         n = strlen(o->model);
    if (!o->lower && n > 4 && !strcmp(o->model + n - 4, ".txt") && !stat(o->model, &st)) how.lowercase = TN_NO;
    tn_tokenizer *t = tn_tokenizer_open(o->model, how);
    tn_encoding  *e = t ? tn_encoding_new() : NULL;
    tn_ids        buffer = {0};
    char         *line = NULL;
    size_t        room = 0;
    int64_t       bytes, number = 1, replaced = 0;
    int           code = e ? 0 : failed("");
    for (; !code && read_line(&line, &room, &bytes); number++) {
        char where[40];
        snprintf(where, sizeof where, "line %lld: ", (long long)number);
        if (bytes < 0) fprintf(stderr, "tokenize: %slonger than 64 MiB\n", where), code = BAD_INPUT;
        else if (!strcmp(o->command, "encode") ? !encode_line(o, t, e, line ? line : "", (size_t)bytes)
                                               : !decode_line(o, t, line ? line : "", (size_t)bytes, &buffer))
            code = failed(where);
        else if (putchar('\n') == EOF) break;
        if (!code) replaced += e->invalid;
    }
    if (replaced) fprintf(stderr, "tokenize: %lld sequences were not UTF-8\n", (long long)replaced);
    if (!code && ferror(stdin)) perror("tokenize: reading"), code = CANNOT_WRITE;
    if (fflush(stdout) && !code) perror("tokenize: writing"), code = CANNOT_WRITE;
    free(line);
    tn_ids_free(&buffer);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
    return code;
}

int main(int argc, char **argv)
{
    options o = {0};
    if (!read_options(argc, argv, &o)) return WRONG_USE;
    if (o.help) return fputs(help, stdout) == EOF;
    tn_set_threads(o.threads);
    if (!strcmp(o.command, "train")) return train(&o, argc - o.files, (const char *const *)argv + o.files);
    if (!strcmp(o.command, "encode") || !strcmp(o.command, "decode")) return filter(&o);
    return wrong(*o.command ? "the command is train, encode or decode, not "
                            : "name a command: train, encode or decode",
                 *o.command ? o.command : NULL),
           WRONG_USE;
}
