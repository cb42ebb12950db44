/* head_kinds.c — the head of each task and encoder kind, as in Hugging Face's classes. */
#include "models/heads/heads_private.h"

const char *tn__task_class(const tn_bert_config *e, tn_task task)
{
    if (e->kind == TN_XLNET && task == TN_TASK_QUESTION_ANSWERING) return "ForQuestionAnsweringSimple";
    return tn__task_name(task);
}

const char *tn__task_name(tn_task task)
{
    static const char *const names[] = {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
                                        "ForMultipleChoice"};
    return names[task];
}

tn__head tn__head_for(const tn_bert_config *e, tn_task task)
{
    const tn__head pooled = {.pooled = true, .drop_out = true, .out = "classifier"};
    const tn__head own = {
        .first = true, .drop = true, .dense = "classifier.dense", .drop_out = true, .out = "classifier.out_proj"};
    tn__head h = pooled;
    if (e->kind == TN_XLNET) {
        if (task == TN_TASK_QUESTION_ANSWERING) return (tn__head){.out = "qa_outputs"};
        if (task == TN_TASK_TOKEN_CLASSIFICATION) return (tn__head){.out = "classifier"};
        return (tn__head){.last = true,
                          .dense = "sequence_summary.summary",
                          .active = tn_tanh,
                          .drop_out = true,
                          .out = "logits_proj"};
    }
    if (e->kind == TN_MODERNBERT) {
        const bool whole = task == TN_TASK_CLASSIFICATION || task == TN_TASK_MULTIPLE_CHOICE;
        return (tn__head){.first = whole && !e->mean_heads,
                          .mean = whole && e->mean_heads,
                          .dense = "head.dense",
                          .active = tn_gelu,
                          .norm = "head.norm",
                          .drop_out = true,
                          .out = "classifier"};
    }
    if (task == TN_TASK_TOKEN_CLASSIFICATION) return (tn__head){.drop_out = true, .out = "classifier"};
    if (task == TN_TASK_QUESTION_ANSWERING)
        return (tn__head){.drop_out = e->kind == TN_DISTILBERT, .out = "qa_outputs"};
    switch (e->kind) {
    case TN_DEBERTA:
        return (tn__head){
            .first = true, .dense = "pooler.dense", .active = tn_gelu, .drop_out = true, .out = "classifier"};
    case TN_DISTILBERT:
        return (tn__head){
            .first = true, .dense = "pre_classifier", .active = tn_relu, .drop_out = true, .out = "classifier"};
    case TN_ELECTRA:
        if (task == TN_TASK_CLASSIFICATION) h = own;
        else h = (tn__head){.first = true, .dense = "sequence_summary.summary", .drop_out = true, .out = "classifier"};
        h.active = tn_gelu;
        return h;
    case TN_ROBERTA:
    case TN_XLM_ROBERTA:
    case TN_CAMEMBERT: h = own; break;
    default:
        if (e->norm_first) h = own; /* RobertaPreLayerNorm */
    }
    if (task == TN_TASK_MULTIPLE_CHOICE || h.pooled) return pooled;
    h.active = tn_tanh;
    return h;
}
