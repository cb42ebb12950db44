#!/usr/bin/env bash
# The Python package: declarations.py makes its declarations from the headers; pip installs it without network and
# compiler; tensors, errors, memory and threads with the standard library alone; values, gradients and shared memory
# against NumPy and PyTorch; models that the programs make; the guide's page, in a Jupyter kernel if there is one.
. "$(dirname "$0")/common.sh"
need python3
check=$root/tests/project/python_view.py
if grep -qE ' __(a|t|m)san_|__ubsan_' < <(nm -D --undefined-only "$TENON_SO"); then
    echo "SKIPPED: python3 cannot load a library with sanitizers" && exit 77
fi
fresh python
export PYTHONDONTWRITEBYTECODE=1 TENON_LIBRARY=$TENON_SO

python3 "$root/python/declarations.py" || wrong "declarations.py fails"

# The wheel: the same bytes twice, at most 4 MB.
for folder in first second; do
    mkdir $folder
    python3 - "$root/python" $folder <<'PY' >log 2>&1 || wrong "no wheel: $(cat log)"
import sys
sys.path.insert(0, sys.argv[1])
import backend
backend.build_wheel(sys.argv[2])
PY
done
diff -r first second >/dev/null || wrong "the wheel has other bytes the second time"
wheel=$(echo first/*.whl)
bytes=$(stat -c %s "$wheel")
[ "$bytes" -le 4000000 ] || wrong "the wheel has $bytes bytes, at most 4000000"
echo "wheel: $bytes bytes"

# pip builds and installs it, offline; without pip the wheel is unpacked, as pip would.
if python3 -m pip --version >/dev/null 2>&1; then
    PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-compile --target site \
        "$root/python" >log 2>&1 || wrong "pip install ./python fails: $(tail -n 5 log)"
else
    python3 -m zipfile -e "$wheel" site
fi
export PYTHONPATH=$PWD/site
for file in __init__.py py.typed ops.pyi libtenon.so.0.2; do
    [ -e site/tenon/$file ] || wrong "the package has no $file"
done
unset TENON_LIBRARY

run() # PART COMMAND...
{
    local part=$1
    shift
    "$@" >"$part.log" 2>&1 || wrong "$part: $(tail -n 30 "$part.log")"
    sed -nE 's/^(Ran .*|OK.*|[0-9]+ comparisons|notebook.*)/'"$part"': \1/p' "$part.log"
}
run alone python3 "$check" alone
! TENON_LIBRARY=none.so python3 -c 'import tenon' 2>err || wrong "TENON_LIBRARY=none.so is ignored"
grep -q 'ImportError: tenon: cannot load none.so' err || wrong "TENON_LIBRARY=none.so: $(tail -n 1 err)"

peers=$root/bench/peers/python
if "$peers" numpy -c '' 2>/dev/null; then
    run arrays "$peers" numpy "$check" arrays
else
    echo "SKIPPED: the comparisons with NumPy, which is not installed"
fi

# Models of a few steps, and what the programs print with them.
programs() { for p; do [ -x "$build/bin/$p" ] || return 1; done; }
for i in $(seq 80); do printf 'the cat sees the dog\na dog and the cat see a %s bird\n' $((i % 7)); done >text
if programs bert gpt translate vit; then
    small=(--quiet --size tiny --steps 6 --batch 4 --length 32)
    "$build/bin/bert" train --text text --vocab-size 120 "${small[@]}" --out bert >/dev/null || wrong "bert train fails"
    printf '%s\n' "the cat sees the dog" "a dog" "the cat sees the cat" | "$build/bin/bert" embed --model bert \
        >bert.embedded
    printf 'sentence\tlabel\nthe cat\tone\na dog\ttwo\nthe dog\ttwo\n' >classes.tsv
    "$build/bin/bert" tune classify --quiet --model bert --train classes.tsv --epochs 1 --out tuned >/dev/null ||
        wrong "bert tune fails"
    "$build/bin/gpt" train --shape gpt2 --text text --vocab-size 280 "${small[@]}" --steps 12 --out gpt >/dev/null ||
        wrong "gpt train fails"
    "$build/bin/gpt" write --model gpt --prompt "the cat" --tokens 20 --temperature 0 >gpt.written ||
        wrong "gpt write fails"
    head -n 60 text >translate.src
    tr a-m n-z <translate.src >translate.tgt
    "$build/bin/translate" train --quiet --src translate.src --tgt translate.tgt --dim 32 --layers 1 --vocab-size 270 \
        --size tiny --steps 60 --lr 0.01 --tokens 400 --out translate >/dev/null || wrong "translate train fails"
    head -n 4 translate.src | "$build/bin/translate" run --model translate --beam 1 --longest 20 >translate.made ||
        wrong "translate run fails"
    python3 -c '
import struct
pixels = [bytes(200 * (2 * y // 8 == k % 2) + k for y in range(8) for x in range(8)) for k in range(40)]
open("images", "wb").write(struct.pack(">4I", 0x803, 40, 8, 8) + b"".join(pixels))
open("labels", "wb").write(struct.pack(">2I", 0x801, 40) + bytes(k % 2 for k in range(40)))'
    "$build/bin/vit" train --images images --labels labels --out vit --size tiny --layers 1 --dim 16 --heads 2 \
        --batch 16 --quiet --steps 4 >/dev/null || wrong "vit train fails"
    run models python3 "$check" models .
else
    echo "SKIPPED: models, which the programs bert, gpt, translate and vit make; build them"
fi

# The guide's page: its blocks, as a script and in a kernel.
if [ -d gpt ]; then
    awk '$0 == "```" { on = 0 } on; $0 == "```python" { on = 1 }' "$root/docs/guide/python.md" >page.py
    awk '$0 == "```" { on = 0 } on; $0 == "```text" { on = 1 }' "$root/docs/guide/python.md" >page.expected
    if "$peers" numpy page.py >page.out 2>&1; then
        diff page.expected page.out || wrong "docs/guide/python.md prints something else"
    elif "$peers" numpy -c '' 2>/dev/null; then
        wrong "docs/guide/python.md: $(tail -n 3 page.out)"
    fi
    if "$peers" nbclient -c 'import ipykernel, numpy' 2>/dev/null; then
        run notebook "$peers" nbclient "$check" notebook .
    else
        echo "SKIPPED: the page in a notebook; nbclient, ipykernel and NumPy are not installed"
    fi
fi
exit $wrong
