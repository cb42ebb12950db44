/* main.c — serve: answers the requests of clients of OpenAI's interface with a model.
 *
 *     serve --model DIR --port 8080
 *     curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' -d '{"prompt": "Once"}' */
#include "core/system/system.h"

#include "serve.h"

#include "../../../programs/common/files.h"
#include "../../../programs/common/messages.h"
#include "../../../programs/common/stop.h"

static server      s = {.host = "127.0.0.1",
                        .port = 8080,
                        .rows = 8,
                        .chunk = 16,
                        .tokens = 1024,
                        .body = 1 << 20,
                        .connections = 256,
                        .seconds = 300,
                        .patience = 30};
static const char *tokenizer, *type, *cache;
static int64_t     seed = -1;

/* The last part of a path, as a model's name. */
static const char *name_of(const char *path, char *to, size_t room)
{
    snprintf(to, room, "%s", path);
    for (size_t n = strlen(to); n > 1 && to[n - 1] == '/'; n--) to[n - 1] = 0;
    const char *slash = tn__sys_last_slash(to);
    return slash ? slash + 1 : to;
}

static void open_lm(void)
{
    static char name[1024];
    if (!model_open_to_infer(s.model, tokenizer, false, type, &s.lm) || !model_set_cache(&s.lm, cache)) return;
    s.lm_name = s.name ? s.name : name_of(s.model, name, sizeof name);
    s.first = model_first(&s.lm), s.answer_end = -1;
    if (!s.length) s.length = s.lm.about.positions;
    if (model_has_chat(&s.lm) && model_chat_ready(&s.lm)) s.answer_end = model_answer_end(&s.lm);
    else if (tn_error() != TN_OK) {
        warn("%s; /v1/chat/completions is not available\n", tn_error_message());
        tn_clear_error();
    }
    if (tn_error() != TN_OK) return;
    s.live = jobs_live(&s);
    const double each = (double)tn_live_need(s.live, s.length) / (1 << 20);
    if (s.live && !settings.quiet && each > 0)
        tell("at most %lld texts at once, each with at most %lld tokens; their caches take at most %.0f MiB\n",
             (long long)s.rows, (long long)s.length, each * (double)s.rows);
}

/* The pooling that the folder of a sentence-transformers model states; mean without one. */
static void choose_pooling(void)
{
    char        path[1024], folder[1024];
    const char *pool = s.pool ? s.pool : "mean";
    tn_json    *c = NULL;
    if (!s.pool && file_exists(in_folder(in_folder(s.embeddings, "1_Pooling", folder), "config.json", path)))
        c = tn_json_load(path);
    if (tn_json_bool_or(tn_json_get(c, "pooling_mode_cls_token"), false)) pool = "first";
    if (tn_json_bool_or(tn_json_get(c, "pooling_mode_max_tokens"), false)) pool = "max";
    if (c && !strcmp(pool, "mean") && !tn_json_bool_or(tn_json_get(c, "pooling_mode_mean_tokens"), false))
        tn_raise(TN_EUNSUPPORTED, "'%s': expected the pooling mean, cls or max; choose one with --pool", path);
    s.pooling = !strcmp(pool, "first") ? TN_POOL_FIRST : !strcmp(pool, "max") ? TN_POOL_MAX : TN_POOL_MEAN;
    tn_json_free(c);
}

static void open_encoder(void)
{
    static char name[1024];
    s.encoder = tn_model_open(s.embeddings, .family = TN_MODEL_ENCODER, .needs_tokenizer = true);
    if (tn_error() != TN_OK) return;
    s.encoder_name = name_of(s.embeddings, name, sizeof name);
    choose_pooling();
}

static void serve(void)
{
    enum { IDLE = 250 /* milliseconds */ };
    http *h = http_open(&s);
    if (!h) return;
    if (!s.key && strcmp(s.host, "127.0.0.1") != 0)
        warn("everybody who reaches %s may use the model; --api-key KEY requires a key\n", s.host);
    printf("http://%s:%lld/v1\n", s.host, (long long)http_port(h));
    fflush(stdout);
    stop_begin("ending");
    while (!stop_flag) http_run(h, jobs_step(&s) ? 0 : IDLE);
    http_close(h);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!s.model && !s.embeddings) return program_usage("give a model: --model for text, --embeddings for vectors");
    if (!s.model && (tokenizer || type || cache || s.name))
        return program_usage("--tokenizer, --type, --cache and --name "
                             "are of --model; set it");
    if (s.pool && !s.embeddings) return program_stray("pool", "--embeddings");
    if (s.key && !*s.key) return program_usage("--api-key is empty; omit it for no key");
    uint64_t at = (uint64_t)seed;
    if (seed < 0 && !tn__sys_random(&at, sizeof at)) at = (uint64_t)tn__sys_nanoseconds();
    tn_seed(at);
    s.began = (int64_t)time(NULL);
    s.json = tn_json_writer_new(0);
    if (s.model) open_lm();
    if (s.embeddings && tn_error() == TN_OK) open_encoder();
    if (tn_error() == TN_OK) serve();
    tn_live_free(s.live);
    model_close(&s.lm);
    tn_model_close(&s.encoder);
    tn_json_writer_free(s.json);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &s.model, MODEL_HELP),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_TEXT("type", 0, "TYPE", &type, MODEL_TYPE_HELP, .choices = MODEL_TYPES),
    OPTION_CACHE(&cache),
    OPTION_TEXT("name", 0, "NAME", &s.name, "the model's name for clients (default: that of its folder or file)"),
    OPTION_TEXT("embeddings", 0, "PATH", &s.embeddings, "encoder for /v1/embeddings: a folder or a .gguf file"),
    OPTION_TEXT("pool", 0, "KIND", &s.pool,
                "how an encoder's hidden states become one vector (default: as its folder says, or mean)",
                .choices = "mean|first|max"),
    OPTION_TEXT("host", 0, "ADDRESS", &s.host, "IPv4 address to listen on; 0.0.0.0 for all of this machine"),
    OPTION_INT("port", 0, "N", &s.port, "port to listen on; 0: a free one, which is printed", .least = 0,
               .most = 65535),
    OPTION_TEXT("api-key", 0, "KEY", &s.key,
                "clients must send this key; @FILE keeps it out of the list of processes (default: none)"),
    OPTION_INT("rows", 0, "N", &s.rows, "maximum number of texts at once; further ones wait", .least = 1, .most = 4096),
    OPTION_INT("length", 0, "N", &s.length, "maximum tokens of a text, with its prompt; 0: the model's", .least = 0,
               .most = 1e9),
    OPTION_INT("tokens", 'n', "N", &s.tokens, "maximum new tokens of a text", .least = 1, .most = 1e9),
    OPTION_INT("chunk", 0, "N", &s.chunk, "tokens of a prompt to read at once, between which other texts continue",
               .least = 1, .most = 1e6),
    OPTION_INT("body", 0, "N", &s.body, "maximum bytes of a request", .least = 256, .most = 1 << 30),
    OPTION_INT("connections", 0, "N", &s.connections, "maximum number of connections; further ones wait", .least = 1,
               .most = 1 << 20),
    OPTION_REAL("seconds", 0, "S", &s.seconds, "end an answer after this time", .least = 0.1, .most = 1e6),
    OPTION_REAL("patience", 0, "S", &s.patience, "disconnect a client that sends or reads nothing for this time",
                .least = 0.1, .most = 1e6),
    OPTION_INT("seed", 0, "N", &seed, "random seed of requests without one; -1: draw it", .least = -1),
    {0},
};

int main(int argc, char **argv)
{
    const command commands[] = {
        {.options = options,
         .run = run,
         .text = "Serves /v1/chat/completions (with the model's chat template), /v1/completions, /v1/embeddings and "
                 "/v1/models in the form of OpenAI's interface, and /health. The address is printed when the server is "
                 "ready. Ctrl-C ends it.\n\n"
                 "  serve --model book --port 8080\n"
                 "  serve --model stories260K.bin --tokenizer tok512.bin --embeddings minilm --api-key secret"},
        {0}};
    const program serve = {
        .name = "serve", .summary = "answer clients of OpenAI's interface with a model", .commands = commands};
    return program_main(&serve, argc, argv);
}
