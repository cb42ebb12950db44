/* tune_classifier.c — fine-tunes a model to a classifier, in thirty lines: tune_classifier MODEL TRAIN.tsv OUT. Lines
 * are text <tab> label; `bert classify --model OUT` uses the result.
 * Build: cc -O2 tune_classifier.c -o tune_classifier $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

static void told(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_STEP) fprintf(stderr, "step %lld: %.4f\n", (long long)e->step, e->loss);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "Usage: tune_classifier MODEL TRAIN.tsv OUT\n"), 2;
    tn_seed(1);
    tn_model     model = tn_model_open(argv[1], .family = TN_MODEL_ENCODER, .needs_tokenizer = true);
    tn_labelled *texts = tn_labelled_load(argv[2]);
    tn_labels   *names = tn_labels_of(texts);
    tn_features *batches = tn_features_new(texts, model.tokenizer, names, .batch = 32, .seed = 1);
    tn_tuned    *tuned = tn_tuned_new(model.bert, .n = tn_labels_count(names), .labels = tn_labels_names(names));
    model.bert = NULL; /* owned by the tuned model now */
    tn_fit(tuned, .train = tn_features_source(batches), .loss = tn_tuned_fit_loss, .lr = 5e-5, .epochs = 2, .on = told);
    if (!tn_error() && tn_tuned_save(tuned, argv[3]) == TN_OK && tn_tokenizer_save(model.tokenizer, argv[3]) == TN_OK)
        printf("%s: tuned for %lld labels\n", argv[3], (long long)tn_labels_count(names));
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(tuned), tn_features_free(batches), tn_labels_free(names), tn_labelled_free(texts), tn_model_close(&model);
    return tn_error() != TN_OK;
}
