/* extras.h — what the framework does not need. Include <tenon/extras.h>. */
#ifndef TENON_EXTRAS_EXTRAS_H
#define TENON_EXTRAS_EXTRAS_H
#include "chat.h"
#include "elmo.h"
#include "families.h"
#include "images.h"
#include "lbfgs.h"
#include "look.h"
#include "lsh_attention.h"
#include "peft.h"
#include "reformer.h"
#include "report.h"
#include "rnn_lm.h"
#include "runlog.h"
#include "skip_thought.h"
#include "surface.h"
#include "thai.h"
#include "torch.h"
#include "vectors.h"
#include "vit.h"
#include "xlnet.h"
#endif
