/* site_examples.c — runs the examples of docs/site/examples and prints what each prints, or writes the facts about each
 * op of the registry: derivatives, dtypes, strides, errors. project/site.sh compares both with docs/site.
 *
 *     site_examples          the examples: "==== file name", then the output
 *     site_examples ops      a line for each op, and a line for each error of its samples */
#include "core/tensor/tensor.h"
#include "docs/site/examples/show.h"
#include "tests/common/samples.h"

static struct example {
    const char *file, *name;
    int         line;
    void (*run)(void);
} examples[1000];
static int count;

void add_example(const char *file, int line, const char *name, void (*run)(void))
{
    const char *slash = strrchr(file, '/');
    if (count == 1000) abort();
    examples[count++] = (struct example){slash ? slash + 1 : file, name, line, run};
}

static int by_place(const void *a, const void *b)
{
    const struct example *x = a, *y = b;
    int                   files = strcmp(x->file, y->file);
    return files ? files : x->line - y->line;
}

static int run_examples(void)
{
    qsort(examples, (size_t)count, sizeof *examples, by_place);
    for (int i = 0; i < count; i++) {
        printf("==== %.*s %s\n", (int)strcspn(examples[i].file, "."), examples[i].file, examples[i].name);
        tn_scope s = tn_scope_begin();
        tn_seed(1);
        examples[i].run();
        if (tn_error()) printf("error that the example does not show: %s\n", tn_error_message());
        tn_clear_error();
        tn_scope_end(s);
        fflush(stdout);
    }
    return 0;
}

/* ---- facts about the ops ----------------------------------------------------------------------------------------- */

static bool is_number(int kind) { return kind != TN__ARG_INDEX && kind != TN__ARG_MASK && kind != TN__ARG_ABSENT; }

static int inputs_of(const tn_op *op, const tn__sample *s)
{
    return op->inputs == TN_ANY || s->nin ? s->nin : op->inputs;
}

/* Input i of a sample, in f64. */
static tn_tensor *input(const tn__sample *s, int i)
{
    tn_shape shape = {.n = s->in[i].n};
    for (int k = 0; k < shape.n; k++) shape.d[k] = s->in[i].d[k];
    double low = s->low[i], high = s->high[i];
    bool   whole = s->kind[i] == TN__ARG_INDEX || s->kind[i] == TN__ARG_INT;
    if (low == 0 && high == 0) low = whole ? 0 : -2, high = 2;
    if (s->kind[i] == TN__ARG_MASK) return tn_bernoulli_of(TN_BOOL, shape, 0.5);
    tn_tensor *x = tn_uniform_of(TN_F64, shape, low, high);
    if (s->kind[i] == TN__ARG_DISTINCT) x = tn_reshape(tn_to(tn_permutation(tn_shape_numel(shape)), TN_F64), shape);
    if (s->kind[i] == TN__ARG_ROWSUM1) x = tn_softmax(x, -1);
    return whole ? tn_to(tn_floor(x), TN_I64) : x;
}

/* The same elements, every second one of a larger tensor. */
static tn_tensor *stepped(tn_tensor *x)
{
    int n = tn_ndim(x);
    return n ? tn_slice(tn_repeat_interleave(x, 2, -1), -1, 0, 2 * tn_size(x, -1), 2) : x;
}

/* Calls an op on a sample whose numbers have dtype dt. Returns false if the op rejects it. */
static bool call(const tn_op *op, const tn__sample *s, int dt, bool steps, tn_tensor **out)
{
    int            nin = inputs_of(op, s), nout = op->outputs == TN_ANY ? s->nout : op->outputs ? op->outputs : 1;
    tn_tensor     *in[TN__SAMPLE_INPUTS] = {NULL};
    tn_error_state aside;
    tn_error_push(&aside);
    tn_seed(1);
    for (int i = 0; i < nin; i++) {
        if (s->kind[i] == TN__ARG_ABSENT) continue;
        in[i] = input(s, i);
        if (is_number(s->kind[i]) && dt >= 0) in[i] = tn_to(in[i], (tn_dtype)dt);
        if (steps) in[i] = stepped(in[i]);
    }
    tn_seed(2);
    bool good = tn_error() == TN_OK && tn_op_call(op, nin, in, nout, out, s->args) == TN_OK;
    tn_error_pop(&aside);
    return good;
}

static bool has_number(const tn_op *op, const tn__sample *s)
{
    for (int i = 0; i < inputs_of(op, s); i++)
        if (is_number(s->kind[i])) return true;
    return false;
}

static void print_dtypes(const tn_op *op, const tn__samples *samples)
{
    tn_tensor  *out[64] = {NULL};
    const char *blank = "";
    for (int dt = TN_F32; dt <= TN_BOOL; dt++)
        for (int r = 0; r < samples->n; r++) {
            const tn__sample *s = &samples->rows[r];
            if (s->fails || !has_number(op, s) || !call(op, s, dt, false, out)) continue;
            printf("%s%s>%s", blank, tn_dtype_name((tn_dtype)dt), tn_dtype_name(tn_dtype_of(out[0])));
            blank = " ";
            break;
        }
}

/* "equal": a tensor with steps gives the bits of a dense one, in each good sample. */
static const char *strides_of(const tn_op *op, const tn__samples *samples)
{
    tn_tensor *a[64] = {NULL}, *b[64] = {NULL};
    for (int r = 0; r < samples->n; r++) {
        const tn__sample *s = &samples->rows[r];
        if (s->fails || !call(op, s, TN_F32, false, a) || tn_numel(a[0]) == 0) continue;
        if (!call(op, s, TN_F32, true, b)) return "rejected";
        tn_tensor *x = tn_contiguous(a[0]), *y = tn_contiguous(b[0]);
        size_t     bytes = (size_t)tn_numel(x) * tn_dtype_size(tn_dtype_of(x));
        if (!tn_shape_equal(tn_shape_of(x), tn_shape_of(y)) || memcmp(tn_data(x), tn_data(y), bytes) != 0)
            return "other";
    }
    return "equal";
}

static int print_ops(void)
{
    static const char *const casts[] = {"?", "as is", "join", "wide"};
    for (int i = 0; i < tn_sampled_count(); i++) {
        const tn_op       *op = tn_sampled(i);
        const tn__samples *samples = tn_samples_of(i);
        tn_scope           s = tn_scope_begin();
        bool               first = op->backward || op->backward_ops;
        printf("%s | %d | %d | %s | %s%s%s | %s | ", op->name, op->inputs, op->outputs ? op->outputs : 1,
               op->compose        ? "as its ops"
               : op->backward_ops ? "first and second"
               : first            ? "first"
                                  : "none",
               op->inplace ? "in-place " : "", op->view ? "view " : "", op->compose ? "composed" : "",
               op->autocast >= TN_NARROW(0) ? "narrow" : casts[op->autocast]);
        print_dtypes(op, samples);
        printf(" | %s\n", strides_of(op, samples));
        for (int r = 0; r < samples->n; r++)
            if (samples->rows[r].fails)
                printf("%s ! %s ! %s\n", op->name, tn_status_name(samples->rows[r].status), samples->rows[r].fails);
        tn_scope_end(s);
    }
    return tn_error() != TN_OK;
}

int main(int n, char **args) { return n > 1 && strcmp(args[1], "ops") == 0 ? print_ops() : run_examples(); }
