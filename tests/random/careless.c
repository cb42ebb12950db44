/* careless.c — calls every public function with careless arguments: none, one valid argument, numbers that are zero,
 * negative, too large or NaN, names of missing files, and while an error is set.
 *
 *     careless [FUNCTION]
 *
 * Checks that the program continues, that an error that was set is unchanged, and that the state of the process is
 * unchanged. calls.awk writes calls.inc from the headers, so that no function is missing; results of calls are kept,
 * not freed. */
#define _GNU_SOURCE
#include "core/system/system.h"
#include "extras.h"
#include "tests/common/process.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- kinds of careless calls ------------------------------------------------------------------------------------- */

enum { ALL = -1, MANY = 100, ERRNO = 4711 };
typedef struct {
    const char *what;
    int         right; /* number of the valid argument; 0: none; ALL: all */
    int64_t     whole;
    double      real;
    bool        flag, stands; /* stands: true if an error is set before the call */
} manner;
static const manner  manners[] = {{"nothing", 0, 0, 0, false, false},
                                  {"nothing, while an error is set", 0, 0, 0, false, true},
                                  {"only the first argument", 1, 0, 0, false, false},
                                  {"only the second argument", 2, 0, 0, false, false},
                                  {"numbers that are zero", ALL, 0, 0, false, false},
                                  {"numbers below zero, and NaN", ALL, -1, NAN, true, false},
                                  {"numbers that are too large", ALL, (int64_t)1 << 40, 1e300, true, false},
                                  {"all arguments", ALL, 3, 0.5, true, false},
                                  {"all arguments, while an error is set", ALL, 3, 0.5, true, true}};
static const manner *how;
static bool          right(int i) { return how->right == ALL || how->right == i; }

/* Results of calls are not freed: all live blocks are linked in a ring, so that leak checkers find them. */
typedef struct held {
    struct held *next, *before;
} held;
enum { LINE = 64 };
static held            ring = {&ring, &ring};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *get(void *user, size_t bytes)
{
    (void)user;
    held *h = tn__sys_alloc(LINE, LINE + (bytes + LINE - 1) / LINE * LINE);
    if (!h) return NULL;
    pthread_mutex_lock(&lock);
    *h = (held){ring.next, &ring};
    ring.next = ring.next->before = h;
    pthread_mutex_unlock(&lock);
    return (char *)h + LINE;
}
static void put(void *user, void *p, size_t bytes)
{
    (void)user, (void)bytes;
    held *h = (held *)(void *)((char *)p - LINE);
    pthread_mutex_lock(&lock);
    h->before->next = h->next, h->next->before = h->before;
    pthread_mutex_unlock(&lock);
    tn__sys_free(h);
}

/* Returns p. Exits if p is NULL although no error was set before: then this file makes a wrong argument. */
static void *made(void *p)
{
    if (!p && !how->stands) {
        fprintf(stderr, "careless: an argument could not be made: %s\n", tn_error_message());
        exit(2);
    }
    return p;
}

/* ---- valid arguments: new ones for each call, because some functions take ownership ------------------------------ */

static const char text[] = "the old man and the sea\nthe old man sat in the boat\n";

static tn_tensor *tensor(void) { return tn_ones(TN_SHAPE(2, 3)); }
static void      *linear(void) { return made(tn_linear_new(.in = 3, .out = 2)); }
static void      *mha(void) { return made(tn_mha_new(.dim = 4, .heads = 2)); }
static void      *optimizer(void) { return made(tn_sgd_new((tn_module *)linear(), .lr = 0.1)); }
static void      *schedule(void) { return made(tn_step_lr_new(optimizer(), .size = 2)); }
static void      *world(void) { return made(tn_world_single()); }
static void      *json(void) { return made(tn_json_parse("{\"a\": [1]}", 10)); }
static void      *json_writer(void) { return made(tn_json_writer_new(1)); }
static void      *report(void) { return made(tn_report_new("a title")); }
static void      *vocab(void)
{
    tn_vocab *v = made(tn_vocab_new());
    tn_vocab_add(v, "sea", 3);
    return v;
}
static void *tokenizer(void)
{
    return made(tn_tokenizer_train_text(text, sizeof text - 1, .kind = TN_WORDPIECE, .vocab_size = 40));
}
static void *labelled(void) { return made(tn_labelled_parse("sea\ta\nboat\tb\n", 13, .form = "tsv")); }
static void *labels(void) { return made(tn_labels_new(2, (const char *const[]){"a", "b"})); }
static void *features(void) { return made(tn_features_new(labelled(), tokenizer(), labels(), .length = 8)); }
static void *vectors(void) { return made(tn_vectors_from(tn_text_of("sea\nboat\n"), tensor())); }
static void *bert(void)
{
    return made(tn_bert_new(.vocab = 40, .dim = 4, .layers = 1, .heads = 2, .ff = 4, .positions = 8));
}
static void *tuned(void) { return made(tn_tuned_new(bert(), .n = 2)); }
static void *look(void) { return made(tn_look_new()); }
static void *heads(void) { return made(tn_heads_new(bert())); }
static void *gpt(void) { return made(tn_gpt_new(.vocab = 40, .dim = 4, .layers = 1, .heads = 2, .positions = 8)); }
static void *seq2seq(void)
{
    return made(tn_seq2seq_new(.source_words = 9, .target_words = 9, .dim = 4, .heads = 2, .ff = 4, .layers = 1));
}
static void *kv_cache(void) { return made(tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = 2)); }
static void *gguf_writer(void) { return made(tn_gguf_writer_new()); }
static void *gguf(void)
{
    tn_tensor *bytes = tn_gguf_write(gguf_writer(), NULL);
    return bytes ? made(tn_gguf_read(tn_data(bytes), (size_t)tn_numel(bytes))) : NULL;
}
static void *safetensors_writer(void)
{
    tn_safetensors_writer *w = made(tn_safetensors_writer_new());
    tn_safetensors_put(w, "a", tensor());
    return w;
}
static void *safetensors(void)
{
    tn_tensor *bytes = tn_safetensors_write(safetensors_writer());
    return bytes ? made(tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes))) : NULL;
}
static void *llama(void) { return made(tn_llama_new(.vocab = 9, .dim = 4, .layers = 1, .heads = 2, .ff = 4)); }
static void *reformer(void)
{
    return made(tn_reformer_new(.vocab = 9, .dim = 4, .layers = 2, .heads = 1, .head_dim = 4, .ff = 4, .positions = 64,
                                .chunk = 4, .local_chunk = 4));
}
static void *rnn_lm(void) { return made(tn_rnn_lm_new(.vocab = 9, .dim = 4, .hidden = 4, .layers = 1)); }
static void *elmo(void) { return made(tn_elmo_new(.vocab = 9, .letters = 2, .filters = 2, .dim = 4, .hidden = 6)); }
static void *skip_thought(void) { return made(tn_skip_thought_new(.vocab = 9, .dim = 4, .hidden = 4)); }
static void *vit(void)
{
    return made(tn_vit_new(.image = 8, .patch = 4, .dim = 4, .layers = 1, .heads = 2, .classes = 2));
}
static void *decoding(void) { return made(tn_gpt_decoding(gpt(), 1, 4)); }
static void *ema(void) { return made(tn_ema_new((tn_module *)linear())); }
static void *replica(void) { return made(tn_replica_new(world(), (tn_module *)linear(), .shards = 1)); }
static void *dataset(void) { return made(tn_dataset_new(.x = tensor(), .batch = 1)); }

static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4};
static void         *columns(void) { return made(tn_columns_new(ids, 12, .batch = 2, .length = 3)); }
static void         *windows(void) { return made(tn_windows_new(ids, 12, .batch = 2, .length = 3)); }
static void *spans(void) { return made(tn_spans_new(ids, 12, .batch = 2, .length = 6, .noise = 0.4, .sentinel = 120)); }

/* Objects that read files; a line has one id per word. */
static const char *file, *cache;
static tn_status   encoded(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (!i || line.at[i - 1] == ' ') tn_ids_add(to, (int32_t)(5 + i % 4));
    return tn_error();
}
static const tn_encoder encoder = {.encode = encoded};
static void            *sentences(void)
{
    static const tn_text two[] = {{"the sea", 7}, {"a boat", 6}};
    return made(tn_sentences_new(2, two, encoder));
}
static void *lines(void) { return made(tn_lines_load(file)); }
static void *pairs(void)
{
    return made(tn_pairs_load(file, file, .source = encoder, .target = encoder, .begin = 1, .end = 2));
}
static void *pairs_batches(void) { return made(tn_pairs_batches_new(pairs(), .tokens = 64)); }
static void *corpus(void)
{
    return made(tn_corpus_open(.files = &file, .n = 1, .cache = cache, .encoder = encoder, .vocabulary = 12));
}
static void *mlm(void) { return made(tn_mlm_new(corpus(), .cls = 2, .sep = 3, .mask = 4, .max_tokens = 16)); }

/* A buffer for results, or a zeroed struct; NULL with numbers that are negative or too large for a buffer. */
static void *room(void) { return how->whole < 0 || how->whole > MANY ? NULL : memset(get(NULL, 4096), 0, 4096); }

/* Arguments of types that are not in the list are zero. */
static const _Alignas(64) char zeros[8192];
#define NONE(type) (*(const __typeof__(type) *)(const void *)zeros)
#define MADE(type, i, make) type * : right(i) ? make() : NULL, const type * : right(i) ? make() : NULL
#define ARG(type, name, i) \
    _Generic(NONE(type), \
        const char *: right(i) ? "no/such" : NULL, \
        int64_t: how->whole, \
        size_t: (size_t)(how->whole == 3 ? 3 : 0), \
        int: (int)(how->whole > MANY ? 1 << 30 : how->whole), \
        unsigned: (unsigned)how->whole, \
        double: how->real, \
        float: (float)how->real, \
        bool: how->flag, \
        void *: right(i) && name[0] == 'm' ? linear() : NULL, \
        MADE(tn_tensor, i, tensor), MADE(tn_linear, i, linear), MADE(tn_mha, i, mha), \
        MADE(tn_optimizer, i, optimizer), MADE(tn_schedule, i, schedule), MADE(tn_world, i, world), \
        MADE(tn_json, i, json), MADE(tn_json_writer, i, json_writer), MADE(tn_report, i, report), \
        MADE(tn_vocab, i, vocab), MADE(tn_tokenizer, i, tokenizer), \
        MADE(tn_labelled, i, labelled), MADE(tn_labels, i, labels), MADE(tn_features, i, features), \
        MADE(tn_vectors, i, vectors), MADE(tn_bert, i, bert), MADE(tn_tuned, i, tuned), MADE(tn_look, i, look), \
        MADE(tn_heads, i, heads), MADE(tn_gpt, i, gpt), MADE(tn_seq2seq, i, seq2seq), MADE(tn_kv_cache, i, kv_cache), \
        MADE(tn_gguf, i, gguf), MADE(tn_gguf_writer, i, gguf_writer), MADE(tn_safetensors, i, safetensors), \
        MADE(tn_safetensors_writer, i, safetensors_writer), MADE(tn_llama, i, llama), MADE(tn_reformer, i, reformer), \
        MADE(tn_rnn_lm, i, rnn_lm), MADE(tn_elmo, i, elmo), MADE(tn_skip_thought, i, skip_thought), \
        MADE(tn_vit, i, vit), MADE(tn_decoding, i, decoding), MADE(tn_ema, i, ema), MADE(tn_replica, i, replica), \
        MADE(tn_dataset, i, dataset), MADE(tn_columns, i, columns), \
        MADE(tn_windows, i, windows), MADE(tn_spans, i, spans), MADE(tn_sentences, i, sentences), \
        MADE(tn_lines, i, lines), MADE(tn_pairs, i, pairs), MADE(tn_pairs_batches, i, pairs_batches), \
        MADE(tn_corpus, i, corpus), MADE(tn_mlm, i, mlm), char *: right(i) ? room() : NULL, \
        MADE(double, i, room), MADE(float, i, room), MADE(int64_t, i, room), MADE(int, i, room), \
        MADE(size_t, i, room), MADE(bool, i, room), MADE(tn_batch, i, room), MADE(tn_shard, i, room), \
        MADE(tn_part, i, room), \
        MADE(tn_text, i, room), MADE(tn_string, i, room), MADE(tn_ids, i, room), \
        MADE(tn_each, i, room), MADE(tn_source, i, room), MADE(tn_bleu, i, room), MADE(tn_chrf, i, room), \
        MADE(tn_ter, i, room), MADE(tn_squad, i, room), MADE(tn_accuracy, i, room), MADE(tn_perplexity, i, room), \
        MADE(tn_gguf_strings, i, room), MADE(tn_answer, i, room), MADE(tn_elmo_batch, i, room), \
        default: NONE(type))

/* ---- calls, by their result type --------------------------------------------------------------------------------- */

#define POINTER(call) (void)((const void *)(call) == NULL)
#define NOTHING(call) call
#define STATUS(call) (void)((call) == TN_OK)
#define VALUE(call) (void)(call)
#pragma GCC diagnostic ignored "-Wformat-security" /* a format is an argument like others */
#include "calls.inc"

/* Resets the library to the state of a new program. */
static void begin(void)
{
    tn_clear_error();
    tn_set_threads(1);
    tn_set_cache_limit(SIZE_MAX);
    tn_set_memory_limit((size_t)256 << 20);
}

static int broken(const char *name, const char *what)
{
    fprintf(stderr, "careless: %s: %s: %s; error: %s\n", name, how->what, what, tn_error_message());
    return 1;
}

static int call(size_t i, const tn_process *process)
{
    static const char said[] = "this error stands";
    begin();
    if (how->stands) tn_raise(TN_EIO, "%s", said);
    errno = ERRNO;
    calls[i].run();
    const bool same_errno = errno == ERRNO;
    const bool still = tn_error() == TN_EIO && !strncmp(tn_error_message(), said, sizeof said - 1);
    tn_process after;
    tn_process_now(&after);
    const char *changed = tn_process_differs(process, &after);
    if (changed || !same_errno) return broken(calls[i].name, changed ? changed : "errno is another one");
    if (how->stands && !still && strcmp(calls[i].name, "tn_clear_error") != 0)
        return broken(calls[i].name, "the error that stood is another one");
    return 0;
}

int main(int argc, char **argv)
{
    tn_process process;
    int        bad = 0;
    size_t     n = sizeof calls / sizeof *calls;
    char       folder[] = "/tmp/tenon.careless.XXXXXX", a_file[64], a_cache[64];
    if (tn_set_allocator(&(tn_allocator){get, put, NULL}) != TN_OK) return 1;
    if (!mkdtemp(folder)) return perror(folder), 1;
    snprintf(a_file, sizeof a_file, "%s/text", folder), snprintf(a_cache, sizeof a_cache, "%s/cache", folder);
    file = a_file, cache = a_cache;
    if (tn_file_write(file, text, sizeof text - 1) != TN_OK) return 1;
    tn_process_now(&process);
    for (size_t k = 0; k < sizeof manners / sizeof *manners; k++) {
        how = &manners[k];
        for (size_t i = 0; i < n; i++) {
            if (argc > 1 && strcmp(argv[1], calls[i].name) != 0) continue;
            if (getenv("CARELESS_TELLS")) fprintf(stderr, "%s: %s\n", calls[i].name, how->what);
            const tn_scope s = tn_scope_begin();
            bad += call(i, &process);
            tn_scope_end(s);
        }
    }
    begin();
    unlink(file), unlink(cache), rmdir(folder);
    printf("careless: %zu functions, each called in %zu ways, %d findings\n", n, sizeof manners / sizeof *manners, bad);
    return bad != 0;
}
