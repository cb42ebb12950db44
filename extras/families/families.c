/* families.c — registers the families and kinds of models of the extras, and the reader of PyTorch's files. */
#include "extras/families.h"
#include "extras/reformer/reformer_private.h"
#include "extras/rnn_lm/rnn_lm_private.h"
#include "extras/torch.h"
#include "extras/translators/translators_private.h"
#include "extras/vit/vit_private.h"
#include "extras/xlnet/xlnet_private.h"

static tn_status save_vit(void *m, const char *dir) { return tn_vit_save((tn_vit *)m, dir); }

static const char *const reformer[] = {"reformer", NULL}, *const rnn_lm[] = {TN__RNN_LM_TYPE, NULL};
static const tn_family families[] = {
    {TN_MODEL_DECODER, reformer, tn__reformer_load, NULL},
    {TN_MODEL_DECODER, rnn_lm, tn__rnn_lm_load, NULL},
    {TN_MODEL_IMAGES, tn__vit_types, tn__vit_load, save_vit},
};

tn_status tn_extras_register(void)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (tn_family_register(&families[i]) != TN_OK) break;
    if (tn_error() != TN_OK) return tn_error();
    tn_seq2seq_register(TN_SEQ2SEQ_CONVS2S, &tn__convs2s);
    tn_seq2seq_register(TN_SEQ2SEQ_BYTENET, &tn__bytenet);
    tn_seq2seq_register(TN_SEQ2SEQ_GNMT, &tn__gnmt);
    tn__xlnet_register();
    tn_hf_torch_register(tn_torch_open);
    return tn_error();
}
