/* sample.c — translate sample-pairs: writes two parallel files of generated lines. */
#include "tasks.h"
#include "translate.h"

static const char *name = "dates", *source_path, *target_path;
static int64_t     count_ = 1000, length = 1, seed = 1;
static bool        held;

static bool put(FILE *to, const char *line) { return fprintf(to, "%s\n", line) >= 0; }

bool sample_pairs(task t, uint64_t from, int64_t n, int64_t each_length, bool is_held, const char *source,
                  const char *target)
{
    static char text[2][TASK_TEXT];
    FILE       *f[2] = {fopen(source, "wb"), fopen(target, "wb")};
    bool        fine = f[0] && f[1];
    for (int64_t i = 0; fine && i < n; i++) {
        task_pair(t, from, (uint64_t)i, each_length, is_held, text[0], text[1]);
        fine = put(f[0], text[0]) && put(f[1], text[1]);
    }
    for (int i = 0; i < 2; i++)
        if (f[i] && fclose(f[i])) fine = false;
    if (!fine) tn_raise(TN_EIO, "'%s' and '%s' cannot be written", source, target);
    return fine;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    const int code = task_of(name) == TASK_DATES ? 0 : program_stray("held", "--task dates");
    if (code) return code;
    if (same_file(source_path, target_path))
        return program_usage("--src and --tgt are both '%s': name two files", source_path);
    sample_pairs(task_of(name), (uint64_t)seed, count_, length, held, source_path, target_path);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("src", 's', "FILE", &source_path, "where the lines go", .required = true),
    OPTION_TEXT("tgt", 't', "FILE", &target_path, "where what they should become goes", .required = true),
    OPTION_TEXT("task", 0, "NAME", &name, "which pairs", .choices = TASKS),
    OPTION_INT("lines", 'n', "N", &count_, "how many", .least = 1, .most = 1e9),
    OPTION_INT("length", 'l', "N", &length, "dates or letters in a line", .least = 1, .most = TASK_LONGEST),
    OPTION_FLAG("held", 0, &held, "dates on days that are in no file without this option"),
    OPTION_INT("seed", 0, "N", &seed, "of what is drawn: another one, other lines"),
    {0},
};
const command sample_command =
    COMMAND("sample-pairs", "write two files to try things with", options,
            .text = "Line i of one file belongs to line i of the other: dates as people write them in\n"
                    "five languages and in ISO 8601, or letters and the same letters, copied or\n"
                    "reversed.");
