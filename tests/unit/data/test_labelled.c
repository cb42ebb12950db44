/* test_labelled.c — labelled texts from tables, columns and JSON, errors of bad lines, and features and batches. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"

static tn_labelled *read_text(const char *text, tn_labelled_config c)
{
    return tn_labelled_parse_run(text, strlen(text), c);
}
#define READ(text, ...) read_text(text, TN_WITH(tn_labelled_config, TN_NO_DEFAULTS_, __VA_ARGS__))

/* "text|text=label,label;" for each example. */
static const char *shown(const tn_labelled *l)
{
    static char to[4096];
    size_t      at = 0;
    to[0] = 0;
    for (int64_t i = 0; i < tn_labelled_count(l); i++) {
        const tn_example x = tn_labelled_at(l, i);
        for (int64_t k = 0; k < x.texts; k++)
            at += (size_t)snprintf(to + at, sizeof to - at, "%s%s", k ? "|" : "", x.text[k]);
        for (int64_t k = 0; k < x.labels; k++)
            at += (size_t)snprintf(to + at, sizeof to - at, "%s%s", k ? "," : "=", x.label[k]);
        at += (size_t)snprintf(to + at, sizeof to - at, ";");
    }
    return to;
}

static const char *const words_to_add[] = {"the", "longer one", "x"};

/* ---- valid texts ------------------------------------------------------------------------------------------------- */

static const struct {
    const char        *text;
    tn_labelled_config how;
    const char        *shown;
} good[] = {
    {"a b\tpos\nc\tneg\n", {.form = "tsv"}, "a b=pos;c=neg;"},
    {"\xef\xbb\xbf"
     "a b\tpos\r\nc\tneg\r\n\r\n",
     {.form = "tsv"},
     "a b=pos;c=neg;"},
    {"text\tlabel\na\t1", {.form = "tsv"}, "a=1;"},
    {"label,text\nx,a\n", {.form = "csv", .text = "text", .label = "label"}, "a=x;"},
    {"text,label\n\"a \"\"b\"\", c\",1\n\"two\nlines\",0\n", {.form = "csv"}, "a \"b\", c=1;two\nlines=0;"},
    {"a\tb\tx\n", {.form = "tsv", .pairs = true}, "a|b=x;"},
    {"a\tlabel\nb\ty\n", {.form = "tsv", .no_header = true}, "a=label;b=y;"},
    {"7\ta\tb\tx\n", {.form = "tsv", .text = "2", .pair = "3", .label = "1"}, "a|b=7;"},
    {"a\tx, ,y,,\nb\t ,\n", {.form = "tsv", .problem = TN_MULTI_LABEL}, "a=x,y;b;"},
    {"a\t-1.5\n", {.form = "tsv", .problem = TN_REGRESSION}, "a=-1.5;"},
    {"a\nb\n", {.form = "tsv", .no_label = true}, "a;b;"},
    {"{\"text\": \"a\", \"label\": 1}\n\n{\"label\": true, \"text\": \"b\"}", {.form = "jsonl"}, "a=1;b=1;"},
    {"{\"q\": \"a\", \"l\": [\"x\", \"y, z\"]}",
     {.form = "jsonl", .text = "q", .label = "l", .problem = TN_MULTI_LABEL},
     "a=x,y, z;"},
    {"sentence\tlabel\nfine\t1\n", {.form = "SST-2"}, "fine=1;"},
    {"gj04\t1\t\tOur friends.\ngj04\t0\t*\tThey.\n", {.form = "cola"}, "Our friends.=1;They.=0;"},
    {"index\tsentence1\tsentence2\tscore\n0\ta\tb\t4.5\n", {.form = "sts-b"}, "a|b=4.5;"},
    {"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t\"a\tb\n", {.form = "mrpc"}, "\"a|b=1;"},
    {"A\tB-X\n# no comment\n\nb\tO\n", {.kind = TN_LABELLED_WORDS, .skip = 1}, "b=O;"},
    {"EU NNP B-ORG\nrejects VBZ O\n\nx NN O\n", {.kind = TN_LABELLED_WORDS}, "EU|rejects=B-ORG,O;x=O;"},
    {"-DOCSTART- O\n\nx O\n\t\ny O", {.kind = TN_LABELLED_WORDS}, "x=O;y=O;"},
    {"a I-X\nb I-X\nc I-Y\nd O\ne B-Y\n", {.kind = TN_LABELLED_WORDS, .bio = true}, "a|b|c|d|e=B-X,I-X,B-Y,O,B-Y;"},
    {"a B-X\nb E-X\nc S-X\nd S-X\n", {.kind = TN_LABELLED_WORDS, .bio = true}, "a|b|c|d=B-X,I-X,B-X,B-X;"},
    {"# text\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
     "2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n"
     "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
     {.kind = TN_LABELLED_WORDS, .form = "conllu"},
     "The|cat=DET,NOUN;"},
    {"1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n",
     {.kind = TN_LABELLED_WORDS, .form = "conllu", .label = "xpos"},
     "The=DT;"},
    {"{\"data\":[{\"paragraphs\":[{\"context\":\"\xc3\xa4 cat\",\"qas\":[{\"id\":\"1\",\"question\":\"who\","
     "\"answers\":[{\"text\":\"cat\",\"answer_start\":2}]},"
     "{\"question\":\"why\",\"is_impossible\":true,\"answers\":[]}]}]}]}",
     {.kind = TN_LABELLED_ANSWERS},
     "who|\xc3\xa4 cat=cat;why|\xc3\xa4 cat;"},
    {"id,sent1,sent2,ending0,ending1,label\n1,She sat,He,ran,slept,1\n",
     {.kind = TN_LABELLED_CHOICES},
     "She sat|He ran|He slept=1;"},
    /* a quote inside a cell is an ordinary byte */
    {"5'11\" tall,1\n6' tall,0\n\"a\"\"\",1\n3\"\" pipe,\"0\"\nb,in\"ch\n",
     {.form = "csv"},
     "5'11\" tall=1;6' tall=0;a\"=1;3\"\" pipe=0;b=in\"ch;"},
};

TEST_ROWS(forms, good)
{
    tn_labelled *l = read_text(good[_i].text, good[_i].how);
    fine();
    ck_assert_str_eq(shown(l), good[_i].shown);
    tn_labelled_free(l);
}

TEST(an_answer_knows_its_byte)
{
    tn_labelled *l = read_text(good[24].text, good[24].how);
    ck_assert_int_eq(tn_labelled_at(l, 0).start[0], 3);
    ck_assert_str_eq(tn_labelled_at(l, 0).id, "1");
    ck_assert_str_eq(tn_labelled_at(l, 7).id, "");
    tn_labelled_free(l);
}

/* ---- rejected texts ---------------------------------------------------------------------------------------------- */

static const struct {
    const char        *text;
    tn_labelled_config how;
    const char        *says;
} bad[] = {
    {"a\tx\n \ty\n", {.form = "tsv"}, "line 2: the text is empty"},
    {"a\tx\nb\n", {.form = "tsv"}, "line 2: no tab found, expected 2 columns"},
    {"a\tx\nb\tc\ty\n", {.form = "tsv"}, "line 2: 3 columns, but the first line has 2; remove tabs inside texts"},
    {"a\tx\nb\t \n", {.form = "tsv"}, "line 2: the label is empty"},
    {"a\tx\n",
     {.form = "tsv", .problem = TN_REGRESSION},
     "line 1: the label is not a number, which a regression needs"},
    {"a,x\n\"b,y\n", {.form = "csv"}, "line 2: an opening quote is never closed"},
    {"a,x\n\"b\"c,y\n",
     {.form = "csv"},
     "line 2: text between a closing quote and the next comma; double the quotes inside a cell"},
    {"a,x\n\"b\n\n\",y\nc\n", {.form = "csv"}, "line 5: 1 columns, but the first line has 2"},
    {"{\"text\":\"a\",\"label\":1}\n{\n", {.form = "jsonl"}, NULL},
    {"[1]\n", {.form = "jsonl"}, "line 1: not a JSON object"},
    {"{\"text\":\"a\"}\n",
     {.form = "jsonl"},
     "line 1: no label found: add a member \"label\", or name another one "
     "with --label"},
    {"a\tx\nb\tn\xe9g\n",
     {.form = "tsv"},
     "line 2: the label is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"},
    {"a B-\xe9\n",
     {.kind = TN_LABELLED_WORDS},
     "line 1: the label is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"},
    {"{\"text\":\"a\",\"label\":\"b\\u0000c\"}\n", {.form = "jsonl"}, "line 1: the label holds a NUL"},
    {"{\"text\":\"a\",\"label\":[\"\"]}\n",
     {.form = "jsonl", .problem = TN_MULTI_LABEL},
     "line 1: a label is empty; use [] for no labels"},
    {"a O\nb\n",
     {.kind = TN_LABELLED_WORDS},
     "line 2: 1 columns, expected 2; add the missing tag or remove blanks inside words"},
#define BAD_ID(id)                                                                \
    {                                                                             \
        "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n" id "\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n", \
            {.kind = TN_LABELLED_WORDS, .form = "conllu"},                        \
            "line 2: the id is not a number, a range or an empty node's"          \
    }
    BAD_ID("x"),
    BAD_ID("2a"),
    BAD_ID("2-"),
    BAD_ID(".1"),
    BAD_ID("1-2-3"),
    {"a\n", {.kind = TN_LABELLED_WORDS}, "line 1: one column, expected two: the word first, the tag last"},
    {"{\"data\":[{\"paragraphs\":[{\"context\":\"a cat\",\"qas\":[{\"question\":\"who\",\"answers\":[{\"text\":\"cat\","
     "\"answer_start\":3}]}]}]}]}",
     {.kind = TN_LABELLED_ANSWERS},
     "data[0].paragraphs[0].qas[0]: 'cat' is not found at character 3 of its text"},
    {"{\"data\":[{\"paragraphs\":[{\"context\":\"a cat\",\"qas\":[{\"question\":\" \"}]}]}]}",
     {.kind = TN_LABELLED_ANSWERS},
     "data[0].paragraphs[0].qas[0] has no question or an empty one"},
    {"{\"data\":[{\"paragraphs\":[{\"context\":\"\",\"qas\":[]}]}]}",
     {.kind = TN_LABELLED_ANSWERS},
     "data[0].paragraphs[0] has no context or an empty one"},
#define NO_ENDING(label)                                                                 \
    {                                                                                    \
        "sent1,ending0,ending1,label\na,b,c," label "\n", {.kind = TN_LABELLED_CHOICES}, \
            "line 2: the label '" label "' is not the number of an ending, 0 to 1"       \
    }
    NO_ENDING("2"),
    NO_ENDING("2e30"),
    NO_ENDING("-2e30"),
    NO_ENDING("-1"),
    NO_ENDING("0.5"),
    NO_ENDING("inf"),
};

TEST_ROWS(bad_lines, bad)
{
    tn_labelled_config how = bad[_i].how;
    const char        *first;
    ck_assert_ptr_null(read_text(bad[_i].text, how));
    if (bad[_i].says) ck_error(TN_EFORMAT, bad[_i].says);
    tn_clear_error();
    how.skip = 9; /* and skipped if requested */
    tn_labelled *l = read_text(bad[_i].text, how);
    fine();
    ck_assert_int_eq(tn_labelled_skipped(l, &first), 1);
    if (bad[_i].says) ck_assert_str_eq(first, bad[_i].says);
    tn_labelled_free(l);
}

TEST(refused)
{
    ck_assert_ptr_null(READ("a\tx\n", .form = "xml"));
    tn_clear_error();
    ck_refused(READ("a\tx\n", .form = "tsv", .label = "gold"), TN_EINVAL,
               " has no column 'gold'; its first line has 2");
    static const char *const one = ": column 1 would be both the text and the label; name two columns";
    ck_refused_has(READ("good film\nbad\n", .form = "csv"), TN_EINVAL, one);
    ck_refused_has(READ("a\tb\tx\n", .form = "tsv", .label = "1"), TN_EINVAL, one);
    ck_refused_has(READ("a,x\n", .form = "csv", .pairs = true), TN_EINVAL,
                   ": column 2 would be both the second text and the label; name two columns");
    ck_refused_has(READ("a\tb\tx\n", .form = "tsv", .pair = "1"), TN_EINVAL,
                   ": column 1 would be both the text and the second text; name two columns");
    ck_refused_has(READ("{\"l\": \"a\"}\n", .form = "jsonl", .text = "l", .label = "l"), TN_EINVAL,
                   ": the member \"l\" would be both the text and the label; name two members");
    ck_refused(READ("a x\n", .kind = TN_LABELLED_WORDS, .text = "2"), TN_EINVAL,
               "tn_labelled_parse: .text, .pair and .pairs have no effect for this .kind; remove it");
    ck_refused(READ("a x\n", .kind = TN_LABELLED_WORDS, .problem = TN_MULTI_LABEL), TN_EINVAL,
               "tn_labelled_parse: .problem has no effect for this .kind; remove it");
    ck_refused(READ("{}", .kind = TN_LABELLED_ANSWERS, .label = "x"), TN_EINVAL,
               "tn_labelled_parse: .label has no effect for this .kind; remove it");
    ck_refused(READ("a\tx\n", .bio = true), TN_EINVAL,
               "tn_labelled_parse: .bio has no effect for this .kind; remove it");
    ck_refused(READ("a\tx\n", .label = "2", .no_label = true), TN_EINVAL,
               "tn_labelled_parse: .label with .no_label has no effect for this .kind; remove it");
    ck_assert_ptr_null(READ("{\"data\":", .kind = TN_LABELLED_ANSWERS));
    tn_clear_error();
    ck_assert_ptr_null(READ("a,b\n", .kind = TN_LABELLED_CHOICES));
    tn_clear_error();
    ck_refused(tn_labelled_parse("a\0b", 3, .form = "tsv"), TN_EFORMAT, "byte 1 is NUL; expected text in UTF-8");
    ck_refused_code(tn_labelled_load("not there"), TN_EIO);
    const char *path = tn_test_file("empty.tsv");
    ck_assert_int_eq(tn_file_write(path, "a\tx\rb\ty\r", 8), TN_OK);
    ck_assert_ptr_null(tn_labelled_load(path));
    ck_assert(strstr(tn_error_message(), ": lines end in \\r alone; convert them to \\n"));
    tn_clear_error();
    ck_assert_int_eq(tn_file_write(path, "\n", 1), TN_OK);
    ck_assert_ptr_null(tn_labelled_load(path));
    ck_assert(strstr(tn_error_message(), "contains no examples"));
    tn_clear_error();
}

/* Every prefix of every valid text, and each text with one byte changed, is read or rejected. */
TEST(pieces_of_files)
{
    char text[1024];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const size_t n = strlen(good[i].text);
        for (size_t k = 0; k < 2 * n; k++) {
            memcpy(text, good[i].text, n);
            if (k >= n) text[k - n] = (char)(text[k - n] ^ (1 << (k % 7)));
            tn_labelled_config how = good[i].how;
            how.skip = (int64_t)(k % 3);
            tn_labelled_free(tn_labelled_parse_run(text, k < n ? k : n, how));
            tn_clear_error();
        }
    }
}

TEST(labels)
{
    tn_labelled *l = READ("a\t10\nb\t9\nc\tx\nd\t-1\ne\t9\n", .form = "tsv"), *other;
    tn_labels   *s = tn_labels_of(l);
    fine();
    ck_assert_int_eq(tn_labels_count(s), 4);
    static const char *const want[] = {"-1", "9", "10", "x"};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(tn_labels_names(s)[i], want[i]);
        ck_assert_int_eq(tn_labels_find(s, want[i]), i);
    }
    ck_assert_int_eq(tn_labels_find(s, "y"), -1);
    other = READ("a\tx\nb\ty\n", .form = "tsv");
    ck_fails(tn_labelled_only(other, s), TN_EFORMAT, "line 2: the label 'y' is not among the 4 of the training set");
    tn_labelled_free(other);
    other = READ("a\tx\nb\ty\nc\tx\nd\tz\n", .form = "tsv", .skip = 1);
    ck_fails_has(tn_labelled_only(other, s), TN_EFORMAT, "line 4: the label 'z' is not among");
    ck_assert_str_eq(shown(other), "a=x;c=x;d=z;");
    tn_labelled_free(other);
    other = READ("a\tx\nb\ty\n", .form = "tsv", .skip = 1);
    ck_assert_int_eq(tn_labelled_only(other, s), TN_OK);
    const int64_t all = tn_labelled_count(other);
    ck_assert(tn_labelled_first(other, all + 1) == TN_OK && tn_labelled_count(other) == all);
    ck_assert(tn_labelled_first(other, -1) == TN_EINVAL);
    ck_error(TN_EINVAL, "tn_labelled_first: most is negative");
    ck_assert_str_eq(shown(other), "a=x;");
    ck_assert_int_eq(tn_labelled_skipped(other, NULL), 1);
    tn_labelled_free(l), tn_labelled_free(other), tn_labels_free(s);
    static const char *const twice[] = {"a", "a"};
    ck_refused(tn_labels_new(2, twice), TN_EINVAL, "tn_labels_new: 'a' is given twice");
}

/* ---- examples from memory ---------------------------------------------------------------------------------------- */

/* Examples copied one by one are those of the file, however often the memory of all strings moves. */
TEST(added_from_memory)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tn_labelled_config c = TN_WITH(tn_labelled_config, TN_NO_DEFAULTS_, .kind = good[i].how.kind,
                                       .problem = good[i].how.problem, .no_label = good[i].how.no_label);
        tn_labelled       *l = read_text(good[i].text, good[i].how), *to;
        if (good[i].how.form && !strcmp(good[i].how.form, "sts-b")) c.problem = TN_REGRESSION;
        to = tn_labelled_create(c);
        for (int64_t k = 0; k < tn_labelled_count(l); k++)
            ck_assert_msg(tn_labelled_add(to, tn_labelled_at(l, k)) == TN_OK, "%s", tn_error_message());
        ck_assert_str_eq(shown(to), good[i].shown);
        for (int64_t k = 0; k < tn_labelled_count(l); k++)
            for (int64_t n = 0; n < tn_labelled_at(l, k).labels; n++)
                ck_assert_int_eq(tn_labelled_at(l, k).start[n], tn_labelled_at(to, k).start[n]);
        tn_labelled_free(l), tn_labelled_free(to);
    }
    tn_labelled *l = READ("a\tx\n", .form = "tsv"); /* and added to those of a file */
    for (int64_t k = 0; k < 300; k++)
        tn_labelled_add(l,
                        (tn_example){.texts = 1, .text = &words_to_add[k % 3], .labels = 1, .label = &words_to_add[2]});
    fine();
    ck_assert_int_eq(tn_labelled_count(l), 301);
    ck_assert_str_eq(tn_labelled_at(l, 0).text[0], "a");
    for (int64_t k = 0; k < 300; k++) ck_assert_str_eq(tn_labelled_at(l, k + 1).text[0], words_to_add[k % 3]);
    tn_labelled_free(l);
}

TEST(added_wrongly)
{
    static const char *const none[] = {"a", " "}, *const cat[] = {"who", "a cat", "b"};
    static const char *const bad_labels[] = {"", "2"};
    static const int64_t     start[] = {1};
    static const struct {
        tn_labelled_kind kind;
        tn_problem_type  problem;
        tn_example       x;
        const char      *error;
    } wrong[] = {
        {0, 0, {.line = 7, .texts = 3, .text = cat}, "line 7: expected one text or two"},
        {0, 0, {.texts = 2, .text = none}, "the text is empty"},
        {0, 0, {.texts = 1, .text = cat}, "expected one label"},
        {0, 0, {.texts = 1, .text = cat, .labels = 1, .label = &bad_labels[0]}, "the label is empty"},
        {0,
         TN_REGRESSION,
         {.texts = 1, .text = cat, .labels = 1, .label = cat},
         "the label is not a number, which a regression needs"},
        {TN_LABELLED_WORDS, 0, {.texts = 3, .text = cat, .labels = 2, .label = cat}, "expected a tag for each word"},
        {TN_LABELLED_WORDS, 0, {.texts = 2, .text = none, .labels = 2, .label = cat}, "the word is empty"},
        {TN_LABELLED_ANSWERS, 0, {.texts = 1, .text = cat}, "expected a question and a text"},
        {TN_LABELLED_ANSWERS, 0, {.texts = 2, .text = cat, .labels = 1, .label = cat}, "answers need .start"},
        {TN_LABELLED_ANSWERS,
         0,
         {.texts = 2, .text = cat, .labels = 1, .label = &cat[1], .start = start},
         "an answer is empty or is not found at its .start"},
        {TN_LABELLED_CHOICES, 0, {.texts = 2, .text = cat}, "expected a context and 2 to 64 endings"},
        {TN_LABELLED_CHOICES,
         0,
         {.texts = 3, .text = cat, .labels = 1, .label = &bad_labels[1]},
         "the label is not the number of an ending"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_labelled *l = tn_labelled_new(.kind = wrong[i].kind, .problem = wrong[i].problem, .skip = 1);
        const char  *skipped;
        tn_labelled_add(l, wrong[i].x);
        fine(); /* skipped */
        ck_assert(tn_labelled_skipped(l, &skipped) == 1 && !tn_labelled_count(l));
        ck_assert_str_eq(skipped, wrong[i].error);
        tn_labelled_add(l, wrong[i].x);
        ck_error(TN_EFORMAT, wrong[i].error);
        tn_labelled_free(l);
    }
    tn_labelled *l = tn_labelled_new(.no_label = true);
    tn_labelled_add(l, (tn_example){.texts = 1});
    ck_error(TN_EINVAL, "tn_labelled_add: .text is NULL");
    tn_labelled_add(NULL, (tn_example){.texts = 0});
    ck_error(TN_EINVAL, "tn_labelled_add: l is NULL");
    ck_refused(tn_labelled_new(.form = "tsv"), TN_EINVAL,
               "tn_labelled_new: .form, .text, .pair, .label, .pairs and .bio describe files; remove them");
    tn_labelled_free(l);
}

static double add_some(int n)
{
    tn_labelled *l = tn_labelled_new(.no_label = true);
    double       sum = 0;
    for (int k = 0; l && k < n; k++) {
        if (tn_labelled_add(l, (tn_example){.texts = 1, .text = &words_to_add[k % 3]}) != TN_OK) break;
        sum += tn_labelled_at(l, k).text[0][0];
    }
    for (int64_t k = 0; k < tn_labelled_count(l); k++) /* those before an error are whole */
        ck_assert_str_eq(tn_labelled_at(l, k).text[0], words_to_add[k % 3]);
    tn_labelled_free(l);
    return sum;
}
TEST(no_memory_to_add) { tn_each_allocation_fails(add_some, 200, 1, 1, 10); }

/* ---- features ---------------------------------------------------------------------------------------------------- */

static tn_tokenizer *tokens;
static void          make_tokens(void)
{
    static const char text[] = "the cat sat on the mat the dogs ran to a hat and who is the cat";
    tokens = tn_tokenizer_train_text(text, strlen(text), .vocab_size = 60, .min_count = 1);
}
static void free_tokens(void) { tn_tokenizer_free(tokens); }
AROUND_TESTS(make_tokens, free_tokens);

/* Batches of one epoch; each example once. */
static void whole_epoch(tn_features *f, int64_t n)
{
    const tn_source s = tn_features_source(f);
    bool            seen[64] = {false};
    int64_t         rows = 0;
    for (bool more = true; more;) {
        const tn_scope scope = tn_scope_begin();
        tn_batch       b;
        if ((more = tn_source_next(&s, &b))) {
            tn_tensor *row = tn_batch_get(&b, "row"), *padding = tn_batch_get(&b, "padding");
            ck_assert(tn_shape_equal(tn_shape_of(b.x), tn_shape_of(padding)));
            for (int64_t i = 0; i < b.rows; i++, rows++) {
                ck_assert(!seen[tn_get_i64(row, i)]);
                seen[tn_get_i64(row, i)] = true;
            }
        }
        tn_scope_end(scope);
    }
    fine();
    ck_assert_int_eq(rows, n);
}

TEST(texts_as_features)
{
    tn_labelled *l = READ("the cat\tx\nthe dogs ran to a hat\ty\na\tx\n", .form = "tsv");
    tn_labels   *s = tn_labels_of(l);
    tn_features *f = tn_features_new(l, tokens, s, .batch = 2, .length = 8, .fixed = true);
    fine();
    ck_assert_int_eq(tn_features_count(f), 3);
    ck_assert_int_ge(tn_features_cut(f), 0);
    const tn_feature x = tn_features_at(f, 0);
    ck_assert(x.example == 0 && x.pieces == 4 && x.id[0] == tn_tokenizer_special(tokens).first);
    ck_assert_int_eq(tn_features_source(f).batches, 2);
    whole_epoch(f, 3), whole_epoch(f, 3);
    tn_features_free(f);
    ck_refused(tn_features_new(l, tokens, NULL), TN_EINVAL,
               "tn_features_new: the labels are NULL; tn_labels_of returns them");
    ck_refused(tn_features_new(l, tokens, s, .length = 3), TN_EINVAL,
               "tn_features_new: .length is 3, but must be from 8 to 1048576");
    ck_refused(tn_features_new(l, tokens, s, .problem = (tn_problem_type)9), TN_EINVAL,
               "tn_features_new: .problem 9 does not exist");
    ck_refused_has(tn_features_new(l, tokens, s, .problem = TN_REGRESSION), TN_EINVAL,
                   ".problem is TN_REGRESSION, but the labelled texts have TN_SINGLE_LABEL; set both to the same");
    tn_labelled_free(l), tn_labels_free(s);
}

/* A word's first token has its tag; a word without tokens is unknown; a long sentence continues in another feature. */
TEST(words_as_features)
{
    tn_labelled *l =
        READ("the A\ndogs B\n\xe2\x80\x8b C\nmat A\nsat A\nhat A\nran A\nwho A\n", .kind = TN_LABELLED_WORDS);
    tn_labels   *s = tn_labels_of(l);
    tn_features *f = tn_features_new(l, tokens, s, .batch = 1, .length = 8, .fixed = true);
    int64_t      words = 0;
    fine();
    ck_assert_int_gt(tn_features_count(f), 1);
    for (int64_t i = 0; i < tn_features_count(f); i++) {
        const tn_feature x = tn_features_at(f, i);
        ck_assert(x.example == 0 && x.pieces <= 8 && x.word[0] == -1 && x.word[x.pieces - 1] == -1);
        for (int64_t k = 0; k < x.pieces; k++)
            if (x.word[k] >= 0) ck_assert_int_eq(x.word[k], words++);
    }
    ck_assert_int_eq(words, 8);
    const tn_source src = tn_features_source(f);
    int64_t         tags = 0;
    tn_batch        b;
    while (tn_source_next(&src, &b))
        for (int64_t k = 0; k < tn_numel(b.y); k++) tags += tn_get_i64(b.y, k) >= 0;
    fine();
    ck_assert_int_eq(tags, 8);
    tn_features_free(f), tn_labelled_free(l), tn_labels_free(s);
}

/* A batch of sentences has as many tokens as .batch average ones, so that a word has the same weight in each. */
TEST(sentences_by_their_pieces)
{
    char text[1024] = "";
    for (int i = 0; i < 12; i++) strcat(text, "the A\n\n");
    for (int i = 0; i < 4; i++) strcat(text, "the A\ncat B\nsat A\non B\nthe A\nmat B\nthe A\nhat B\ncat A\nsat B\n\n");
    tn_labelled *l = READ(text, .kind = TN_LABELLED_WORDS);
    tn_labels   *s = tn_labels_of(l);
    tn_features *f = tn_features_new(l, tokens, s, .batch = 4, .length = 64);
    int64_t      all = 0;
    fine();
    ck_assert_int_eq(tn_features_count(f), 16);
    for (int64_t i = 0; i < 16; i++) all += tn_features_at(f, i).pieces;
    const tn_source src = tn_features_source(f);
    int64_t         rows = 0;
    tn_batch        b;
    ck_assert_int_eq(src.batches, 4);
    for (; tn_source_next(&src, &b); rows += b.rows)
        ck_assert_msg(tn_numel(b.x) <= all / 2, "%lld pieces, of %lld in 16 sentences", (long long)tn_numel(b.x),
                      (long long)all);
    ck_assert_int_eq(rows, 16);
    tn_features_free(f), tn_labelled_free(l), tn_labels_free(s);
}

/* The sentences of a step are drawn together, of any lengths; its batches have similar lengths and give the number of
 * words that their loss averages. No sentence is omitted, and each step has the same number of batches. */
TEST(steps_in_parts)
{
    char   text[8192];
    size_t at = 0;
    for (int i = 0; i < 37; i++) {
        for (int k = 0; k < 1 + i % 9; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "cat %c\n", 'A' + k % 2);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    for (int n = 1; n <= 37; n++) {
        tn_labelled *all = read_text(text, (tn_labelled_config){.kind = TN_LABELLED_WORDS});
        const char  *end = text;
        for (int i = 0; i < n; i++) end = strstr(end, "\n\n") + 2;
        tn_labelled *l =
            tn_labelled_parse_run(text, (size_t)(end - text), (tn_labelled_config){.kind = TN_LABELLED_WORDS});
        tn_labels   *s = tn_labels_of(all);
        tn_features *f = tn_features_new(l, tokens, s, .batch = 8, .parts = 3, .length = 64, .seed = (uint64_t)n);
        fine();
        const tn_source src = tn_features_source(f);
        const int64_t   parts = n < 3 ? n : 3, steps = n / 8 + (n % 8 >= 3 || n < 8);
        ck_assert_int_eq(src.batches, parts * steps);
        whole_epoch(f, n);
        int64_t longest = 0, rows = 0;
        for (int64_t i = 0; i < src.batches; i++) {
            const tn_scope scope = tn_scope_begin();
            tn_batch       b;
            int64_t        words = 0;
            ck_assert(tn_source_next(&src, &b) && b.rows > 0);
            if (i % parts == 0) longest = rows = 0;
            for (int64_t r = 0; r < b.rows; r++) {
                const int64_t of = tn_get_i64(tn_batch_get(&b, "row"), r) % 9 + 1;
                ck_assert_int_ge(of, longest);
                longest = of, words += of, rows++;
            }
            ck_assert_double_eq(b.weight, (double)words);
            if (i % parts == parts - 1 && i < src.batches - 1) ck_assert_int_eq(rows, 8);
            tn_scope_end(scope);
        }
        tn_features_free(f), tn_labelled_free(l), tn_labelled_free(all), tn_labels_free(s);
    }
}

/* A budget of tokens instead of a number of texts: full batches, a longer text alone. */
TEST(budget_of_tokens)
{
    char   text[8192];
    size_t at = 0;
    for (int i = 0; i < 37; i++) {
        for (int k = 0; k < 1 + i % 9; k++) at += (size_t)snprintf(text + at, sizeof text - at, "cat ");
        at += (size_t)snprintf(text + at, sizeof text - at, "\t%c\n", 'A' + i % 2);
    }
    tn_labelled *l = READ(text, .kind = TN_LABELLED_TEXTS);
    tn_labels   *s = tn_labels_of(l);
    for (int64_t budget = 1; budget < 60; budget += 7) {
        tn_features    *f = tn_features_new(l, tokens, s, .batch = 2, .tokens = budget, .fixed = true);
        const tn_source src = tn_features_source(f);
        fine();
        whole_epoch(f, 37);
        tn_batch b;
        int64_t  rows = 0, batches = 0;
        for (tn_scope scope = tn_scope_begin(); tn_source_next(&src, &b); tn_scope_end(scope), scope = tn_scope_begin())
            ck_assert(b.rows == 1 || tn_numel(b.x) <= budget), rows += b.rows, batches++;
        ck_assert_int_eq(rows, 37);
        ck_assert(batches <= 37 && (budget < 50 || batches < 10));
        tn_features_free(f);
    }
    ck_refused(tn_features_new(l, tokens, s, .tokens = -1), TN_EINVAL,
               "tn_features_new: .tokens is -1, but must be from 0 to 1073741824");
    ck_refused(tn_features_new(l, tokens, s, .tokens = 8, .batch = 8, .parts = 2), TN_EINVAL,
               "tn_features_new: .tokens has no effect with .parts; unset one of them");
    tn_labelled_free(l), tn_labels_free(s);
}

/* Windows overlap, and each that contains the answer gives its position, without the spaces at its ends. */
TEST_EACH(answers_as_features, 2)
{
    static const char *const said[] = {"\"the dogs\",\"answer_start\":23", "\" the dogs \",\"answer_start\":22"};
    char                     text[300];
    snprintf(text, sizeof text,
             "{\"data\":[{\"paragraphs\":[{\"context\":\"the cat sat on the mat the dogs ran to a hat\","
             "\"qas\":[{\"question\":\"who ran\",\"answers\":[{\"text\":%s}]}]}]}]}",
             said[_i]);
    tn_labelled *l = tn_labelled_parse(text, strlen(text), .kind = TN_LABELLED_ANSWERS);
    fine();
    tn_features *f = tn_features_new(l, tokens, NULL, .batch = 4, .length = 12, .stride = 3, .fixed = true);
    fine();
    ck_assert_int_gt(tn_features_count(f), 1);
    const tn_source src = tn_features_source(f);
    int64_t         shown_in = 0;
    tn_batch        b;
    while (tn_source_next(&src, &b)) {
        tn_tensor *row = tn_batch_get(&b, "row");
        for (int64_t i = 0; i < b.rows; i++) {
            const int64_t    from = tn_get_i64(b.y, 2 * i), to = tn_get_i64(b.y, 2 * i + 1);
            const tn_feature x = tn_features_at(f, tn_get_i64(row, i));
            if (!from) continue;
            ck_assert(x.start[from] == 23 && x.end[to] == 31);
            shown_in++;
        }
    }
    fine();
    ck_assert_int_gt(shown_in, 0);
    tn_features_free(f), tn_labelled_free(l);
}

TEST(choices_as_features)
{
    tn_labelled *l =
        READ("sent1,sent2,ending0,ending1,ending2,label\nthe cat,the,sat,ran,dogs,2\na hat,who,is,to,on,0\n",
             .kind = TN_LABELLED_CHOICES);
    tn_features    *f = tn_features_new(l, tokens, NULL, .batch = 2, .length = 16, .fixed = true);
    const tn_source src = tn_features_source(f);
    tn_batch        b;
    fine();
    ck_assert(tn_source_next(&src, &b));
    ck_assert(tn_ndim(b.x) == 3 && tn_size(b.x, 0) == 2 && tn_size(b.x, 1) == 3 && tn_numel(b.y) == 2);
    ck_assert_int_eq(tn_get_i64(b.y, 0) + tn_get_i64(b.y, 1), 2);
    tn_features_free(f), tn_labelled_free(l);
}

/* A run resumes at its position. */
TEST(a_position_is_found_again)
{
    tn_labelled *l = READ("the\tx\ncat\ty\na\tx\nhat\ty\nto\tx\n", .form = "tsv");
    tn_labels   *s = tn_labels_of(l);
    tn_features *a = tn_features_new(l, tokens, s, .batch = 2, .seed = 3),
                *c = tn_features_new(l, tokens, s, .batch = 2, .seed = 3);
    const tn_source x = tn_features_source(a), y = tn_features_source(c);
    tn_batch        b, d;
    for (int i = 0; i < 5; i++) tn_source_next(&x, &b);
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL), x.save(x.user, w), tn_json_close(w);
    size_t      bytes;
    const char *text = tn_json_text(w, &bytes);
    tn_json    *at = tn_json_parse(text, bytes);
    y.begin(y.user, at);
    for (int i = 0; i < 4; i++) {
        const bool more = tn_source_next(&x, &b);
        ck_assert(more == tn_source_next(&y, &d));
        if (more) ck_assert(tn_same_bits(b.x, d.x));
    }
    tn_json_free(at), tn_json_writer_free(w);
    tn_features_free(a), tn_features_free(c), tn_labelled_free(l), tn_labels_free(s);
}
