/* demo.c — vit demo: trains a ViT and a convolutional network on the same images and compares them. */
#include "programs/common/messages.h"
#include "programs/common/numbers.h"
#include "vit.h"

static const char *out = "build/vit", *images, *labels;
static double      minutes, held = 0.2;
static int64_t     steps;
static bool        resume, json;

enum { DEFAULT_MINUTES = 4 };

static const char *const mnist_folders[] = {"mnist-t10k", "../shared/data/mnist-t10k"};

/* Without --images and --labels: finds the ten thousand test images of MNIST. Returns false if an error is set. */
static bool find_mnist(char image[1024], char label[1024])
{
    if (images && labels) return true;
    for (size_t i = 0; i < sizeof mnist_folders / sizeof *mnist_folders; i++) {
        in_folder(mnist_folders[i], "t10k-images-idx3-ubyte.gz", image),
            in_folder(mnist_folders[i], "t10k-labels-idx1-ubyte.gz", label);
        if (!file_exists(image) || !file_exists(label)) continue;
        images = image, labels = label;
        return true;
    }
    return tn_raise_false(
        TN_EIO,
        "MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz are neither in '%s' nor in '%s'; put "
        "them there, or name other files with --images and --labels",
        mnist_folders[0], mnist_folders[1]);
}

/* Trains one model and adds its evaluation to the report. Returns false if it was stopped or an error is set. */
static bool train_one(const char *shape, tn_report *r, double *accuracy)
{
    char         folder[1024];
    vit_training t = VIT_TRAINING;
    train_asked *a = &t.base.asked;
    image_set    p = {.x = NULL};
    evaluation   j = {.n = 0};
    const bool   vit = shape[0] == 'v';
    t.images = images, t.labels = labels, t.shape = shape, t.held = held;
    a->out = in_folder(out, shape, folder), a->steps = steps,
    a->minutes = steps ? 0 : (vit ? 0.85 : 0.15) * (minutes > 0 ? minutes : DEFAULT_MINUTES);
    t.base.no_duration = !steps && !(minutes > 0);
    a->resume = resume && file_exists(folder);
    if (!settings.quiet) tell("%s\n", vit ? "-- vision transformer" : "-- convolutional network");
    const tn_fit_result got = train_run(&t.base);
    bool                fine = got.why != TN_FIT_FAILED && got.why != TN_FIT_STOPPED;
    if (got.why == TN_FIT_STOPPED) train_stopped(&got, "vit demo --resume");
    if (fine && (fine = image_set_open(images, labels, &p))) {
        const int64_t n = training_count(&t, p.n);
        if ((fine = evaluate(&t.made, &p, n, p.n - n, &j))) {
            *accuracy = (double)j.correct / (double)j.n;
            tn_report_heading(r, vit ? "Vision transformer" : "Convolutional network");
            report_evaluation(r, &t.made, &p, &j, "held-out images");
            report_attention(r, &t.made, &p, n, p.n - n);
            run_curves(r, &(run_page){.folder = folder});
        }
    }
    evaluation_free(&j);
    image_set_close(&p);
    train_free(&t.base);
    return fine && tn_error() == TN_OK;
}

static void print_end(double patches, double convolutions, double took)
{
    if (json) {
        numbers_json("{\"accuracy\":", 100 * patches, 2), numbers_json(",\"convolution\":", 100 * convolutions, 2);
        numbers_json(",\"minutes\":", took, 2), printf("}\n");
    } else
        printf("After %.2f minutes the vision transformer classifies %.2f %% of unseen images correctly, the "
               "convolutional network %.2f %%.\n",
               took, 100 * patches, 100 * convolutions);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char         path[1024], image[1024], label[1024];
    const double began = seconds_now();
    double       patches = 0, convolutions = 0;
    const int    code = program_either("steps", "minutes");
    if (code) return code;
    if (!images != !labels)
        return program_usage("--%s needs --%s", images ? "images" : "labels", images ? "labels" : "images");
    if (find_mnist(image, label) && make_folder(out)) {
        tn_report *r = tn_report_new("Vision transformer and convolutional network");
        if (train_one("vit", r, &patches) && train_one("convolutions", r, &convolutions)) {
            if (record_report(r, in_folder(out, "report.html", path))) {
                if (!settings.quiet) tell("report   %s\n", path);
                print_end(patches, convolutions, (seconds_now() - began) / 60);
            }
        } else tn_report_free(r);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for the models and the report"),
    OPTION_TEXT("images", 'i', "FILE", &images, IMAGES_HELP),
    OPTION_TEXT("labels", 0, "FILE", &labels, LABELS_HELP),
    OPTION_REAL("held", 0, "P", &held, "fraction of the images held out for evaluation, taken from the end",
                .least = 0.001, .most = 0.9),
    OPTION_REAL("minutes", 0, "N", &minutes, "minutes of training for both models together (default: 4)", .least = 0.01,
                .most = 1e4),
    OPTION_INT("steps", 'n', "N", &steps, "training steps of each model, instead of --minutes", .least = 1,
               .most = 1e9),
    OPTION_FLAG("resume", 'r', &resume, "resume an interrupted run"),
    OPTION_FLAG("json", 0, &json, "print the last line as JSON"),
    {0},
};
const command demo_command = COMMAND(
    "demo", "train a ViT and a convolutional network on MNIST and compare them", options,
    .text =
        "Trains both models on the first 8,000 of MNIST's 10,000 test images and evaluates them on the other 2,000. "
        "The last line shows the accuracy of each in percent; DIR/report.html shows the misclassified images.");
