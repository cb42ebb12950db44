/* inputs.c — see inputs.h. */
#include "core/system/system.h"

#include "inputs.h"

#include "command_line.h"
#include "files.h"
#include "messages.h"
#include <stdlib.h>
#include <string.h>

enum { HEAD = 16, MOST_FOUND = 3 };

/* ---- files that are no text -------------------------------------------------------------------------------------- */

static const struct {
    const char *head;
    size_t      bytes;
    const char *what, *advice;
} kinds[] = {
    {"%PDF-", 5, "a PDF", "extract its text, for example with pdftotext"},
    {"\x1f\x8b", 2, "compressed by gzip", "unpack it with gunzip -k"},
    {"BZh", 3, "compressed by bzip2", "unpack it with bunzip2 -k"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz", "unpack it with unxz -k"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd", "unpack it with unzstd"},
    {"PK\x03\x04", 4, "a ZIP archive, as .docx, .odt and .epub are", "save it as plain text, or unpack it with unzip"},
    {"\xd0\xcf\x11\xe0", 4, "a document of an office program", "save it as plain text"},
    {"\x89PNG", 4, "a PNG image", "the program vit reads images"},
    {"\xff\xd8\xff", 3, "a JPEG image", "the program vit reads images, as PNG"},
    {"GGUF", 4, "a model", "name it with --model"},
};

static size_t read_head(const char *path, char head[HEAD])
{
    struct stat  st;
    FILE        *f = tn__sys_stat(path, &st) || !S_ISREG(st.st_mode) ? NULL : fopen(path, "rb");
    const size_t n = f ? fread(head, 1, HEAD, f) : 0;
    if (f) fclose(f);
    return n;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !tn__sys_stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool text_fits(const char *path)
{
    char         head[HEAD];
    const size_t n = read_head(path, head);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].bytes && !memcmp(head, kinds[i].head, kinds[i].bytes))
            return tn_raise_false(TN_EFORMAT, "'%s' is %s, not a text; %s", path, kinds[i].what, kinds[i].advice);
    return true;
}

/* The names in a folder, sorted, without hidden ones; freed with free_names. */
static int names_in(const char *folder, struct dirent ***e)
{
    const int n = scandir(folder, e, NULL, alphasort);
    return n < 0 ? 0 : n;
}

static void free_names(struct dirent **e, int n)
{
    for (int i = 0; i < n; i++) free(e[i]);
    if (n) free(e);
}

/* A text file, or the files of a folder. */
static bool check_text(const char *path)
{
    struct dirent **e;
    char            inner[1024];
    if (!is_folder(path)) return text_fits(path);
    const int n = names_in(path, &e);
    for (int i = 0; i < n && tn_error() == TN_OK; i++)
        if (e[i]->d_name[0] != '.') text_fits(in_folder(path, e[i]->d_name, inner));
    free_names(e, n);
    return tn_error() == TN_OK;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* True for "owner/name", as models are named on the Hub. */
static bool names_hub(const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    char              owner[128];
    const size_t      n = strspn(path, plain), m = path[n] == '/' ? strspn(path + n + 1, plain) : 0;
    snprintf(owner, sizeof owner, "%.*s", (int)n, path);
    return n && m && !path[n + 1 + m] && *path != '.' && !file_exists(owner);
}

static bool not_here(const char *path)
{
    static const char get[] = "get it with git clone (it needs git-lfs) and name the folder; the page 'Getting models' "
                              "of the guide has other ways";
    if (!strncmp(path, "http://", 7) || !strncmp(path, "https://", 8))
        return tn_raise_false(TN_EIO, "'%s' is a web address, but a model is a folder or a file here: %s", path, get);
    if (names_hub(path))
        return tn_raise_false(TN_EIO,
                              "'%s': no such folder; a model of this name on the Hugging Face Hub is at "
                              "https://huggingface.co/%s: %s",
                              path, path, get);
    return true;
}

/* A folder without a model, whose folders or files are models: names them. */
static bool check_parent(const char *path)
{
    struct dirent **e;
    char            inner[1024], config[1024], found[400] = "";
    int             count = 0;
    const int       n = names_in(path, &e);
    for (int i = 0; i < n && count < MOST_FOUND && tn_error() == TN_OK; i++) {
        const char  *name = e[i]->d_name;
        const size_t length = strlen(name), at = strlen(found);
        if (*name == '.') continue;
        const bool file = length > 5 && !strcmp(name + length - 5, ".gguf");
        if (!file && !file_exists(in_folder(in_folder(path, name, inner), "config.json", config))) continue;
        snprintf(found + at, sizeof found - at, "%s'%s'", count++ ? ", " : "", in_folder(path, name, inner));
    }
    free_names(e, n);
    if (count) tn_raise(TN_EINVAL, "'%s' contains no model itself; name one of those in it: %s", path, found);
    return tn_error() == TN_OK;
}

static bool check_model(const char *path)
{
    static const char *const own[] = {"config.json", "adapter_config.json", "modules.json", "model.json"};
    static const char        pointer[] = "version https://";
    char                     at[1024], head[HEAD];
    bool                     has = false;
    if (!file_exists(path)) return not_here(path);
    const char *weights = is_folder(path) ? in_folder(path, "model.safetensors", at) : path;
    if (read_head(weights, head) == HEAD && !memcmp(head, pointer, HEAD))
        return tn_raise_false(TN_EFORMAT,
                              "'%s' is a pointer of git-lfs, not the weights; run git lfs install and git lfs pull in "
                              "its folder",
                              weights);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) has |= file_exists(in_folder(path, own[i], at));
    return !is_folder(path) || has || check_parent(path);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names)) return true;
    return false;
}

bool inputs_check(void)
{
    static const char *const texts[] = {"text", "valid", "src",     "tgt",   "valid-src", "valid-tgt", "pairs",
                                        "chat", "file",  "prompts", "train", "test",      NULL};
    static const char *const models[] = {"model", "draft", NULL};
    const char *const       *value, *operands = now.command->operands ? now.command->operands : "";
    const bool               images = !strcmp(now.name, "vit"); /* its files may be compressed, and folders of images */
    for (const option *o = now.command->options; o && o->name; o++) {
        const bool is_text = is_among(o->name, texts) && !images && o->value && !strcmp(o->value, "FILE");
        const bool model = is_among(o->name, models) && is_path(o);
        const int  n = is_text || model ? option_values(o, &value) : 0;
        for (int i = 0; i < n; i++)
            if (model ? !check_model(value[i]) : !check_text(value[i])) return false;
    }
    const bool  takes = !strcmp(operands, "[TEXT...]") || !strcmp(operands, "[LINE...]");
    const char *text = takes && now.operand_count == 1 ? now.operands[0] : NULL;
    if (text && strchr(text, '.') && file_exists(text))
        warn("'%s' is taken as a text, but is also a file; to read the file, write < %s\n", text, text);
    for (int i = 0; i < now.operand_count; i++) {
        if (!strcmp(operands, "PATH") && !check_model(now.operands[i])) return false;
        if (strstr(operands, "FILE") && !images && !check_text(now.operands[i])) return false;
    }
    return tn_error() == TN_OK;
}
