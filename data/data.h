/* data.h — from text to tensors and back: vocabularies, tokenizers, corpora, batches, metrics. */
#ifndef TENON_DATA_DATA_H
#define TENON_DATA_DATA_H

#include "corpus.h"
#include "labelled.h"
#include "lines.h"
#include "loading.h"
#include "metrics.h"
#include "pairs.h"
#include "sequences.h"
#include "source.h"
#include "table.h"
#include "text.h"
#include "tokenizer.h"
#include "vocab.h"

#endif
