/* sample.c — translate sample-pairs: writes two parallel files of generated lines. */
#include "core/system/system.h"

#include "tasks.h"
#include "translate.h"

static const char *task_name = "dates", *source_path, *target_path;
static int64_t     line_count = 1000, length = 1, seed = 1;
static bool        held_out;

static bool write_line(FILE *to, const char *line) { return fprintf(to, "%s\n", line) >= 0; }

bool sample_pairs(task t, uint64_t from, int64_t n, int64_t each_length, bool is_held, const char *source,
                  const char *target)
{
    static char text[2][TASK_TEXT];
    FILE       *f[2] = {fopen(source, "wb"), fopen(target, "wb")};
    bool        fine = f[0] && f[1];
    for (int64_t i = 0; fine && i < n; i++) {
        task_pair(t, from, (uint64_t)i, each_length, is_held, text[0], text[1]);
        fine = write_line(f[0], text[0]) && write_line(f[1], text[1]);
    }
    for (int i = 0; i < 2; i++)
        if (f[i] && fclose(f[i])) fine = false;
    if (!fine) tn_raise(TN_EIO, "'%s' and '%s' cannot be written", source, target);
    return fine;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    const int code = task_of(task_name) == TASK_DATES ? 0 : program_stray("held", "--task dates");
    if (code) return code;
    if (same_file(source_path, target_path))
        return program_usage("--src and --tgt are both '%s'; name two different files", source_path);
    sample_pairs(task_of(task_name), (uint64_t)seed, line_count, length, held_out, source_path, target_path);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("src", 0, "FILE", &source_path, "file for the source lines", .required = true),
    OPTION_TEXT("tgt", 0, "FILE", &target_path, "file for the target lines", .required = true),
    OPTION_TEXT("task", 0, "NAME", &task_name, "kind of pairs", .choices = TASKS),
    OPTION_INT("lines", 'n', "N", &line_count, "number of lines", .least = 1, .most = 1e9),
    OPTION_INT("length", 'l', "N", &length, "dates or letters per line", .least = 1, .most = TASK_LONGEST),
    OPTION_FLAG("held", 0, &held_out, "use held-out days, which occur in no file written without --held"),
    OPTION_SEED(0, &seed, ""),
    {0},
};
const command sample_command =
    COMMAND("sample-pairs", "write two parallel files of generated lines", options,
            .text = "Line i of --tgt is the translation of line i of --src: dates in five languages and the same dates "
                    "in ISO 8601, or random letters and the same letters copied or reversed.");
