#!/usr/bin/env bash
# Limits the lines of headers, including comments, that a user reads for each task. Headers of the tier "look up" are
# for reference only. A new public header must be added to a tier.
. "$(dirname "$0")/common.sh"

# tier | maximum lines | headers. The first tier is what a user reads to build and train a model: tensors, the tape,
# ops, modules, optimizers.
tiers='
build a model  | 1500 | core/core.h autograd/autograd.h autograd/ops.h nn/nn.h nn/module.h nn/modules.h optim/optim.h
               |      | optim/groups.h
larger modules |  760 | nn/attention.h nn/transformer.h nn/rnn.h nn/language.h
before BERT    |  220 | extras/rnn_lm.h extras/elmo.h extras/skip_thought.h
read texts     |  800 | data/data.h data/text.h data/vocab.h data/tokenizer.h data/lines.h data/source.h
               |      | data/corpus.h data/pairs.h
language models | 120 | data/sequences.h
judge, report  |  300 | data/metrics.h extras/report.h extras/runlog.h
words, vectors |  200 | extras/vectors.h
several ranks  |  200 | parallel/parallel.h
use the models |  650 | models/models.h models/fit.h models/generate.h models/gpt.h models/llama.h
               |      | models/lm.h models/seq2seq.h
encoders, heads, images | 640 | models/bert.h models/model.h models/heads.h data/labelled.h extras/vit.h extras/images.h
look inside    |  155 | nn/look.h extras/look.h
long texts     |  100 | extras/reformer.h extras/lsh_attention.h
look up        |    - | tenon.h core/files.h core/gguf.h core/keywords.h core/q8.h core/system.h autograd/op.h
               |      | data/loading.h data/table.h
               |      | autograd/experts.h autograd/fused.h autograd/long_texts.h autograd/more_ops.h autograd/rope.h
               |      | autograd/recompute.h autograd/replay.h autograd/steps.h autograd/tools.h
               |      | nn/experts.h nn/module_tools.h nn/convolution.h nn/crf.h nn/losses.h nn/init.h nn/lora.h
               |      | nn/disentangled.h nn/state.h
               |      | optim/optimizers.h optim/schedule.h optim/checkpoint.h
               |      | models/decoding.h models/hf.h models/live.h models/seq2seq_kinds.h
               |      | extras.h extras/extras.h extras/families.h extras/surface.h extras/lbfgs.h extras/thai.h
               |      | extras/torch.h extras/xlnet.h extras/chat.h extras/peft.h
'

counted() # ROOT: a line "tier|lines|maximum" for each tier, and a line "none|header" for each header without a tier
{
    local name most headers header pattern tier='' all=' '
    local -A lines=() limit=()
    while IFS='|' read -r name most headers; do
        [ "$headers" ] || continue
        name=$(sed 's/ *$//' <<<"$name")
        [ -z "$name" ] || tier=$name
        [ -z "$name" ] || limit[$tier]=${most// /}
        for pattern in $headers; do
            for header in $TENON_HEADERS; do
                # shellcheck disable=SC2053 # a pattern
                [[ $header == $pattern ]] || continue
                all+="$header "
                lines[$tier]=$((${lines[$tier]:-0} + $(wc -l <"$1/$header")))
            done
        done
    done <<<"$tiers"
    for tier in "${!limit[@]}"; do
        [ "${limit[$tier]}" = - ] || echo "$tier|${lines[$tier]:-0}|${limit[$tier]}"
    done | sort
    for header in $TENON_HEADERS; do [[ $all == *" $header "* ]] || echo "none|$header"; done
}

judged() # reads the output of counted and prints findings
{
    local name lines most
    while IFS='|' read -r name lines most; do
        if [ "$name" = none ]; then echo "$lines is a public header in no tier of tiers.sh"
        elif [ "$lines" -gt "$most" ]; then echo "to $name takes $lines lines of header, and may take $most"; fi
    done
}

counted "$root" | sed 's/|/: /; s/|/ lines of header, of at most /' | grep -v '^none'
findings < <(counted "$root" | judged)

# Test of the check: a header that is too long and one without a tier must be found.
fresh tiers
mkdir -p data models nn
TENON_HEADERS='data/data.h models/models.h nn/other.h'
yes '/* */' | head -n 801 >data/data.h || true
touch models/models.h nn/other.h
[ "$(counted "$PWD" | judged | wc -l)" = 2 ] || wrong "tiers.sh does not see the faults planted for it"
exit $wrong
