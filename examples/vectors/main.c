/* main.c — vectors: trains, queries, evaluates and converts word vectors. */
#include "vectors.h"

#include "../common/files.h"

#include <string.h>

const char *vectors_file, *form;

tn_vectors_format form_of(const char *name)
{
    static const char *const names[] = {"text", "glove", "binary", "fasttext", "safetensors"};
    for (int i = 0; name && i < 5; i++)
        if (!strcmp(name, names[i])) return (tn_vectors_format)(i + 1);
    return TN_VECTORS_ANY;
}

tn_vectors_format form_of_path(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && !strcmp(dot, ".bin")) return TN_VECTORS_BINARY;
    if (dot && !strcmp(dot, ".safetensors")) return TN_VECTORS_SAFETENSORS;
    return TN_VECTORS_TEXT;
}

tn_vectors *load_vectors(void) { return tn_vectors_load(vectors_file, form_of(form)); }

int not_of_texts(const char *name, const char *path, const option_list *text)
{
    for (int i = 0; path && i < text->count; i++)
        if (same_file(text->value[i], path))
            return program_usage("--%s '%s' is one of the texts, '%s': name another file", name, path, text->value[i]);
    return 0;
}

int64_t the_word(const tn_vectors *v, const char *word)
{
    const int64_t i = tn_vectors_find(v, tn_text_of(word));
    if (i < 0) tn_raise(TN_EINDEX, "'%s' has no word '%s'", vectors_file, word);
    return i;
}

static const command commands[] = {
    {.name = "train",
     .summary = "make word vectors from texts",
     .options = train_options,
     .run = run_train,
     .text = "    vectors train --text corpus.txt --out corpus.vec --kind skipgram --dim 100 --epochs 5\n\n"
             "The same texts, options and kind of CPU give the same bits for any number of threads. The line on "
             "standard output says how many words were read, in how many seconds, and words a second; for glove, "
             "without the counting. With --checkpoint Ctrl-C saves and ends; --resume goes on with the same bits.\n"},
    {.name = "phrases",
     .summary = "join words that belong together: new york becomes new_york",
     .options = phrases_options,
     .run = run_phrases,
     .text = "    vectors phrases --text corpus.txt --out phrases.txt --passes 2\n"
             "    vectors train --text phrases.txt --out phrases.vec\n\n"
             "Two words are joined if (count(ab) - min-count) / (count(a) count(b)) times the number of words is more "
             "than the threshold, as word2phrase does it. The line on standard output says how many words the last "
             "pass read, how many phrases it found, and how often words were joined.\n"},
    {.name = "neighbours",
     .summary = "the words nearest to some word",
     .options = near_options,
     .run = run_neighbours,
     .operands = "WORD...",
     .least = 1,
     .most = -1,
     .text = "    vectors neighbours --vectors corpus.vec river\n"},
    {.name = "analogy",
     .summary = "a is to b as c is to what? Of three words, or of a file of questions with their answers",
     .options = analogy_options,
     .run = run_analogy,
     .operands = "A B C | QUESTIONS",
     .least = 1,
     .most = 3,
     .text = "    vectors analogy --vectors corpus.vec man king woman\n"
             "    vectors analogy --vectors corpus.vec questions-words.txt\n"},
    {.name = "similarity",
     .summary = "compare cosines with people's judgements, by rank",
     .options = similarity_options,
     .run = run_similarity,
     .operands = "PAIRS",
     .least = 1,
     .most = 1,
     .text = "    vectors similarity --vectors corpus.vec wordsim353.txt\n"},
    {.name = "sentence",
     .summary = "lines of standard input to vectors, a line each",
     .options = sentence_options,
     .run = run_sentence,
     .text = "    vectors sentence --vectors corpus.vec --sif 0.001 < lines.txt\n"
             "    vectors sentence --model thoughts --vectors corpus.vec < lines.txt\n"},
    {.name = "paraphrases",
     .summary = "how well the vectors of lines find those that mean the same",
     .options = paraphrases_options,
     .run = run_paraphrases,
     .operands = "LINES SAME",
     .least = 2,
     .most = 2,
     .text = "    vectors paraphrases --model thoughts one.txt other.txt\n\n"
             "Line k of both files means the same. \"nearer\" is how often a line is nearer to its partner than to "
             "another line of the second file: by chance 0.5. \"first\" is how often no other is as near as the "
             "partner.\n"},
    {.name = "plot",
     .summary = "words drawn in the plane, by PCA or t-SNE",
     .options = plot_options,
     .run = run_plot,
     .operands = "[WORD...]",
     .most = -1,
     .text = "    vectors plot --vectors corpus.vec --out words.svg --way tsne --most 300\n"},
    {.name = "project",
     .summary = "files for TensorBoard's embedding projector",
     .options = project_options,
     .run = run_project,
     .text = "    vectors project --vectors corpus.vec --out projector --most 10000\n"},
    {.name = "convert",
     .summary = "from one form of file to another",
     .options = convert_options,
     .run = run_convert,
     .operands = "OUT",
     .least = 1,
     .most = 1,
     .text = "    vectors convert --vectors corpus.vec corpus.bin\n"},
    {0}};
static const program vectors = {.name = "vectors", .summary = "words as vectors", .commands = commands};

int main(int argc, char **argv) { return program_main(&vectors, argc, argv); }
