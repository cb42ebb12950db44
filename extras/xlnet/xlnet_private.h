/* xlnet_private.h — shared by the files of extras/xlnet. */
#ifndef TENON_EXTRAS_XLNET_XLNET_PRIVATE_H
#define TENON_EXTRAS_XLNET_XLNET_PRIVATE_H

#include "extras/xlnet.h"
#include "models/bert/bert_private.h"

void                         tn__xlnet_register(void);
tn_tensor                   *tn__xlnet_states(tn_bert *m, tn_bert_loss_args *b);
extern const tn__bert_format tn__xlnet_format;
bool                         tn__xlnet_check(const char *who, const tn_bert_config *c);
void                         tn__xlnet_read(tn__bert_stored *s, const char *name);
void                         tn__xlnet_store(tn__bert_stored *s);

#endif
