/* main.c — vectors: trains, queries, evaluates and converts word vectors. */
#include "vectors.h"

#include "programs/common/files.h"

#include <string.h>

const char *vectors_file, *format_name;

tn_vectors_format format_of(const char *name)
{
    static const char *const names[] = {"text", "glove", "binary", "fasttext", "safetensors"};
    for (int i = 0; name && i < 5; i++)
        if (!strcmp(name, names[i])) return (tn_vectors_format)(i + 1);
    return TN_VECTORS_ANY;
}

tn_status save_vectors(const tn_vectors *v, const char *path, const char *format)
{
    const char *dot = strrchr(path, '.');
    return tn_vectors_save(v, path,
                           format                                ? format_of(format)
                           : dot && !strcmp(dot, ".bin")         ? TN_VECTORS_BINARY
                           : dot && !strcmp(dot, ".safetensors") ? TN_VECTORS_SAFETENSORS
                                                                 : TN_VECTORS_TEXT);
}

bool may_create(const char *path, bool force)
{
    if (force || !file_exists(path)) return true;
    return tn_raise_false(TN_EINVAL, "'%s' already exists; name another file or use --force", path);
}

tn_vectors *load_vectors(void) { return tn_vectors_load(vectors_file, format_of(format_name)); }

int check_not_text(const char *name, const char *path, const option_list *text)
{
    for (int i = 0; path && i < text->count; i++)
        if (same_file(text->value[i], path))
            return program_usage("--%s '%s' is one of the texts, '%s'; name another file", name, path, text->value[i]);
    return 0;
}

int64_t find_word(const tn_vectors *v, const char *word)
{
    const int64_t i = tn_vectors_find(v, tn_text_of(word));
    if (i < 0) tn_raise(TN_EINDEX, "'%s' has no word '%s'", vectors_file, word);
    return i;
}

static const command commands[] = {
    {.name = "train",
     .summary = "train word vectors on texts",
     .options = train_options,
     .run = run_train,
     .text = "    vectors train --text corpus.txt --out corpus.vec --kind skipgram --dim 100 --epochs 5\n\n"
             "The same texts, options and kind of CPU give the same bits for any number of threads. Standard output "
             "gets one line: words read, seconds of training, and words per second; for glove, the seconds do not "
             "include counting. With --checkpoint, Ctrl-C saves and ends, and --resume continues to the same "
             "bits.\n"},
    {.name = "phrases",
     .summary = "join frequent word pairs: new york becomes new_york",
     .options = phrases_options,
     .run = run_phrases,
     .text = "    vectors phrases --text corpus.txt --out phrases.txt --passes 2\n"
             "    vectors train --text phrases.txt --out phrases.vec\n\n"
             "As in word2phrase, two words a and b are joined if (count(ab) - min-count) / (count(a) count(b)) times "
             "the number of words exceeds the threshold. Standard output gets one line about the last pass: words "
             "read, different phrases found, and joins.\n"},
    {.name = "neighbours",
     .summary = "print the nearest neighbours of words",
     .options = near_options,
     .run = run_neighbours,
     .operands = "WORD...",
     .least = 1,
     .most = -1,
     .text = "    vectors neighbours --vectors corpus.vec river\n"},
    {.name = "analogy",
     .summary = "solve analogies: three words, or a file of questions with answers",
     .options = analogy_options,
     .run = run_analogy,
     .operands = "A B C | QUESTIONS",
     .least = 1,
     .most = 3,
     .text = "    vectors analogy --vectors corpus.vec man king woman\n"
             "    vectors analogy --vectors corpus.vec questions-words.txt\n\n"
             "With A B C, prints the words that are to C as B is to A. With a file of questions (four words a line, "
             "the last one the answer), prints the accuracy in percent and the number of questions whose words are all "
             "known.\n"},
    {.name = "similarity",
     .summary = "rank correlation of cosines with human similarity ratings",
     .options = similarity_options,
     .run = run_similarity,
     .operands = "PAIRS",
     .least = 1,
     .most = 1,
     .text = "    vectors similarity --vectors corpus.vec wordsim353.txt\n\n"
             "PAIRS is a file with two words and a rating per line. Prints Spearman's rank correlation, the number of "
             "pairs used, and the number of pairs with an unknown word.\n"},
    {.name = "sentence",
     .summary = "print a sentence vector for each line of standard input",
     .options = sentence_options,
     .run = run_sentence,
     .text = "    vectors sentence --vectors corpus.vec --sif 0.001 < lines.txt\n"
             "    vectors sentence --model thoughts --vectors corpus.vec < lines.txt\n\n"
             "The vector of a line is the mean of the vectors of its words or, with --model, the output of a "
             "skip-thought model trained with 'elmo train --kind skip-thought'. Give --vectors, --model, or both.\n"},
    {.name = "paraphrases",
     .summary = "evaluate sentence vectors on pairs of paraphrases",
     .options = paraphrases_options,
     .run = run_paraphrases,
     .operands = "LINES SAME",
     .least = 2,
     .most = 2,
     .text = "    vectors paraphrases --model thoughts one.txt other.txt\n\n"
             "Line k of SAME is a paraphrase of line k of LINES. \"nearer\" is the probability that a line is nearer "
             "to its paraphrase than to another line of SAME (random vectors: 0.5); \"first\" is the fraction of "
             "lines whose nearest line of SAME is the paraphrase.\n"},
    {.name = "plot",
     .summary = "plot words in two dimensions, by PCA or t-SNE",
     .options = plot_options,
     .run = run_plot,
     .operands = "[WORD...]",
     .most = -1,
     .text = "    vectors plot --vectors corpus.vec --out words.svg --way tsne --top 300\n"},
    {.name = "project",
     .summary = "write files for TensorBoard's embedding projector",
     .options = project_options,
     .run = run_project,
     .text = "    vectors project --vectors corpus.vec --out projector --top 10000\n"},
    {.name = "info",
     .summary = "show the number of words and the dimension of a file",
     .options = info_options,
     .run = run_info,
     .operands = "FILE",
     .least = 1,
     .most = 1,
     .text = "    vectors info corpus.vec\n\n"
             "Also prints the first words, in most files the most frequent ones.\n"},
    {.name = "convert",
     .summary = "convert word vectors to another file format",
     .options = convert_options,
     .run = run_convert,
     .operands = "OUT",
     .least = 1,
     .most = 1,
     .text = "    vectors convert --vectors corpus.vec corpus.bin\n"},
    {0}};

static const program vectors = {.name = "vectors", .summary = "train and use word vectors", .commands = commands};

int main(int argc, char **argv) { return program_main(&vectors, argc, argv); }
