/* tune.c — vit tune: trains an image classifier further on labelled images: a model of vit train, or one that was
 * trained elsewhere, with a new classifier if the images have other classes. train.c has the images and the loss,
 * common/train.c the rest of a training. */
#include "programs/common/messages.h"
#include "programs/common/weights.h"
#include "vit.h"

#include <string.h>

typedef struct {
    vit_training v;
    const char  *model, *layers, *type;
    int64_t      rank, classes; /* rank 0: all weights are trained */
    bool         new_head;      /* the model gets a new classifier */
    model        from;          /* what --model opens; `make` takes .net */
} tuning;

static tuning *of(training *t) { return (tuning *)t; }

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* The last layers, by their names in the module. */
static const char *head_of(const model *m)
{
    if (!m->vit) return "10"; /* convolutions_new */
    return m->vit->config.teacher ? "cls_classifier distillation_classifier" : "classifier";
}

static bool is_head(const model *m, const char *name)
{
    const char *head = head_of(m);
    for (size_t n; *head; head += n + (head[n] != 0)) {
        n = strcspn(head, " ");
        if (!strncmp(name, head, n) && name[n] == '.') return true;
    }
    return false;
}

/* Replaces the network by one with a new classifier of n classes; the other weights are the same. */
static bool renew(model *m, int64_t n)
{
    const tn_scope s = tn_no_grad_begin();
    void          *net;
    if (m->vit) {
        tn_vit_config c = m->vit->config;
        c.classes = n, c.pooler = 0; /* the classifier reads the encoder */
        net = tn_vit_create(c);
    } else net = convolutions_new(m->side, m->processor.channels, m->filters, n, 0);
    for (tn_each e = tn_module_each(net, TN_EACH_PARAMETER); net && tn_next(&e);)
        if (!is_head(m, e.name)) tn_copy_from(e.tensor, tn_module_find_tensor(m->net, e.name));
    tn_scope_end(s);
    tn_module_free(m->net);
    m->net = net, m->vit = m->vit ? net : NULL;
    return tn_error() == TN_OK;
}

static bool is_packed(const tuning *t) { return weights_packer(t->type) != NULL; }

/* The model that `look` opened; if it has been taken, a new one. The seed decides the new weights of both. */
static bool take_model(tuning *t, model *m)
{
    *m = t->from;
    t->from.net = t->from.vit = NULL;
    if (!m->net && !model_open_any(t->model, m)) return false;
    tn_seed((uint64_t)t->v.base.asked.seed);
    return !t->new_head || renew(m, t->v.made.classes);
}

static void *make(training *b)
{
    tuning    *t = of(b);
    model      m;
    const bool all = !t->layers || !strcmp(t->layers, "all"), taken = take_model(t, &m);
    if (taken && is_packed(t)) weights_pack(m.vit->encoder, t->type); /* the classifier is trained */
    if (taken && t->rank)
        tn_lora_run(
            (tn_lora_args){.module = m.net, .rank = t->rank, .names = all ? NULL : t->layers, .trained = head_of(&m)});
    if (m.net) tn_module_train(m.net, true);
    if (tn_error() == TN_OK) return m.net;
    return tn_module_free(m.net), NULL;
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static int check(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    const int    wrong = image_labels_check(t->v.images, t->v.labels);
    if (wrong) return wrong;
    if (t->layers && !t->rank) return program_stray("lora-layers", "--lora");
    if (is_packed(t) && !t->rank)
        return program_usage("--type %s packs the weights, which then cannot change; set --lora, too", t->type);
    if (!a->steps && !a->epochs && !(a->minutes > 0)) a->epochs = 3;
    a->size = "custom";
    return 0;
}

/* The classes of the tuned model: those of the labels, or of --classes; the classifier stays if it has as many. */
static bool set_classes(tuning *t)
{
    const int64_t least = t->v.all.classes, n = t->classes ? t->classes : least;
    if (n < least)
        return tn_raise_false(TN_EINVAL, "--classes is %lld, but the largest label is %lld; expected at least %lld",
                              (long long)n, (long long)least - 1, (long long)least);
    t->new_head = t->new_head || n != t->from.classes;
    t->v.made = (model){.side = t->from.side, .classes = n, .filters = t->from.filters, .processor = t->from.processor};
    return true;
}

static bool look(training *b)
{
    tuning       *t = of(b);
    train_asked  *a = &b->asked;
    vit_training *v = &t->v;
    if (!model_open_any(t->model, &t->from) || !image_set_open(v->images, v->labels, &v->all) || !set_classes(t) ||
        !image_set_fit(&v->all, &t->from))
        return false;
    if (is_packed(t) && !t->from.vit)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "--type %s packs the layers of a ViT, but '%s' has convolutions; omit it", t->type,
                              t->model);
    if (training_count(v, v->all.n) < 1)
        return tn_raise_false(TN_EFORMAT, "--held leaves no training image out of %lld", (long long)v->all.n);
    const tn_vit_config *c = t->from.vit ? &t->from.vit->config : NULL;
    v->shape = c ? "vit" : "convolutions", v->patch = c ? c->patch : 1;
    a->layers = c ? c->layers : 2, a->heads = c ? c->heads : 1, a->dim = c ? c->dim : t->from.filters;
    /* adapters learn best at ten times the rate for all weights */
    if (isnan(a->lr)) a->lr = fmin((t->rank ? 1 : 0.1) / (double)a->dim, t->rank ? 4e-3 : 1e-3);
    b->fit.lr = a->lr;
    return true;
}

static bool open_images(training *b)
{
    if (!vit_open(b)) return false;
    b->fit.restore_best = b->fit.valid.next != NULL;
    return true;
}

static void print_info(training *b)
{
    const tuning *t = of(b);
    vit_print_info(b);
    if (t->new_head)
        tell("classes  %lld, with a new classifier instead of one for %lld\n", (long long)t->v.made.classes,
             (long long)t->from.classes);
    tell("trains   %.2f million of %.2f million parameters\n", (double)tn_module_count(b->net, true) / 1e6,
         (double)tn_module_count(b->net, false) / 1e6);
}

static void describe(const training *b, tn_json_writer *w)
{
    const tuning *t = (const tuning *)b;
    vit_describe(b, w);
    train_put_path(b, w, "model", t->model);
    tn_json_put_i64(w, "classes", t->v.made.classes);
    tn_json_put_bool(w, "new_classifier", t->new_head);
    if (is_packed(t)) tn_json_put_string(w, "type", t->type);
    tn_json_put_i64(w, "lora", t->rank);
    tn_json_put_string(w, "lora_layers", t->layers ? t->layers : "all");
}

/* The adapters in DIR/adapter, then merged into the weights: those of the file, if the tuned ones are packed. */
static bool save_adapters(tuning *t)
{
    training *b = &t->v.base;
    char      path[1024];
    model     m;
    in_folder(b->asked.out, "adapter", path);
    if (tn_error() != TN_OK || !make_folder(path) ||
        tn_peft_save_run(b->net, path, (tn_peft_save_args){.base = t->model}) != TN_OK)
        return false;
    if (is_packed(t)) {
        tn_module_free(b->net);
        tn_trim(); /* the memory of the training, before that of the unpacked weights */
        const bool taken = take_model(t, &m);
        b->net = m.net;
        if (!taken || tn_module_peft_load(b->net, path) != TN_OK) return false;
    }
    return tn_module_lora_merge(b->net) == TN_OK;
}

static bool save(training *b, tn_fit_why why)
{
    tuning *t = of(b);
    (void)why;
    if (t->rank && !save_adapters(t)) return false;
    t->v.made.net = b->net, t->v.made.vit = t->v.shape[0] == 'v' ? b->net : NULL;
    return image_set_name(&t->v.all, t->v.made.vit) && model_save(&t->v.made, b->asked.out);
}

static void close_all(training *b)
{
    vit_close(b);
    model_close(&of(b)->from);
}

static const train_kind kind = {
    .title = "A tuned image classifier",
    .max_interval = 500,
    .check = check,
    .read = look,
    .open = open_images,
    .make = make,
    .print_info = print_info,
    .describe = describe,
    .save = save,
    .close = close_all,
    .show = vit_show,
    .next = "vit classify --model %s image.png",
    .tag = "image-classification",
    .row = vit_row,
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static tuning asked = {.v = {.base = {.kind = &kind, .untimed = true, .asked = {TRAIN_DEFAULTS_CHOSEN, .lr = NAN}},
                             .shape = "vit",
                             .batch = 32,
                             .shift = 2,
                             .held = 0.2,
                             .weight_decay = 0.05,
                             .smoothing = 0.05}};

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &asked.model, "folder of the model to train further", .required = true),
    OPTION_TEXT("images", 'i', "FILE", &asked.v.images, IMAGES_HELP, .required = true),
    OPTION_TEXT("labels", 0, "FILE", &asked.v.labels, LABELS_HELP),
    OPTION_TEXT("out", 'o', "DIR", &asked.v.base.asked.out, "folder of the tuned model", .required = true,
                .resume = RESUME_FOLDER),
    OPTION_REAL("held", 0, "P", &asked.v.held,
                "fraction of the images, from the end, to select the best model and to evaluate it", .least = 0,
                .most = 0.9),
    OPTION_INT("classes", 0, "N", &asked.classes, "number of classes (default: the largest label + 1)", .least = 1,
               .most = 10000),
    OPTION_FLAG("new-classifier", 0, &asked.new_head,
                "start with a new classifier, also if the model has one of as many classes"),
    OPTION_INT(
        "lora", 0, "RANK", &asked.rank,
        "keep the weights and train the classifier and adapters of this rank, which are saved in DIR/adapter and "
        "merged",
        .least = 0, .most = 4096),
    OPTION_TEXT("lora-layers", 0, "NAMES", &asked.layers,
                "layers with adapters: parts of their names, separated by commas, or all", .otherwise = "all"),
    OPTION_TEXT("type", 0, "TYPE", &asked.type, "with --lora: " WEIGHT_TYPE_TEXT, .choices = WEIGHT_TYPES,
                .otherwise = "f32"),
    OPTION_INT("batch", 'b', "N", &asked.v.batch, "images per step", .least = 1, .most = 65536),
    OPTION_INT("shift", 0, "N", &asked.v.shift, "shift each image at random by at most N pixels", .least = 0,
               .most = 1024),
    OPTION_FLAG("flip", 0, &asked.v.flip, "mirror each image at random, with probability 0.5"),
    OPTION_REAL("smoothing", 0, "P", &asked.v.smoothing, "label smoothing", .least = 0, .most = 0.9),
    OPTION_REAL("weight-decay", 0, "X", &asked.v.weight_decay, "weight decay of the matrices", .least = 0, .most = 10),
    TRAIN_TUNE(asked.v.base.asked, "3", "0.1 divided by the width; with --lora ten times as much"),
    {0},
};
const command tune_command = TRAIN_COMMAND(
    "tune", "train a model further on labelled images", options, &asked.v.base,
    .text =
        "Opens a ViT or DeiT of Hugging Face's libraries, or a model of vit train, and trains it further. The images "
        "may have any size: they are converted to the size of the model's input, 150 kB each for 224 x 224 pixels in "
        "color. If the labels are of another number of classes than the model's, it gets a new classifier. DIR then "
        "contains the tuned model, which vit classify and Hugging Face's libraries open. With --lora only small "
        "adapters and the classifier are trained; DIR/adapter has them in the files of PEFT. Ctrl-C saves and ends; "
        "--resume continues, with the same bits as without the interruption.\n\n"
        "  vit tune --model deit --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out tuned --lora 8");
