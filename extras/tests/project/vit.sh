#!/usr/bin/env bash
# The program vit on generated images: training of both kinds of model, evaluation, classification, runs that are
# stopped and resumed to the same bits, images of every format and size, and error messages.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh vit
vit=$build/bin/vit
[ -x "$vit" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

byte() { printf "\\x$(printf %02x "$1")"; }
# An IDX file of 60 images of 8 x 8 pixels with a bright half; the label is its side: top, bottom, left or right.
{
    printf '\0\0\x08\3\0\0\0\x3c\0\0\0\x08\0\0\0\x08'
    for i in $(seq 0 59); do
        for y in 0 1 2 3 4 5 6 7; do
            for x in 0 1 2 3 4 5 6 7; do
                case $((i % 4)) in 0) on=$((y < 4)) ;; 1) on=$((y > 3)) ;; 2) on=$((x < 4)) ;; *) on=$((x > 3)) ;; esac
                [ $on = 1 ] && printf '\xd0' || printf '\x10'
            done
        done
    done
} >images
{
    printf '\0\0\x08\1\0\0\0\x3c'
    for i in $(seq 0 59); do byte $((i % 4)); done
} >labels
gzip -kn images
data=(--images images --labels labels)
small=(--size tiny --layers 1 --dim 16 --heads 2 --batch 16 --quiet)

"$vit" train "${data[@]}" --out patches "${small[@]}" --steps 80 --shift 1 >out || wrong "vit train failed"
tail -n 1 out | grep -qE '^accuracy 100\.00 % \(0 of 12 wrong\)$' || wrong "vit train ends with: $(tail -n 1 out)"
"$vit" train "${data[@]}" --out plain --model convolutions --size tiny --batch 16 --quiet --steps 60 >out ||
    wrong "vit train --model convolutions failed"
tail -n 1 out | grep -qE '^accuracy 100\.00 % ' || wrong "convolutions end with: $(tail -n 1 out)"
for page in patches plain; do grep -q '<svg' $page/report.html || wrong "$page/report.html has no pictures"; done
grep -q 'data:image/bmp' patches/report.html || wrong "the report shows no image"
"$vit" info patches | grep -q '^patches     2 x 2 of 4 pixels$' || wrong "vit info: $("$vit" info patches)"
"$vit" info plain | grep -q '^kind        convolutional network$' ||
    wrong "vit info of convolutions: $("$vit" info plain)"

"$vit" eval --model patches "${data[@]}" --first 48 --json >out || wrong "vit eval failed"
grep -q '^{"accuracy": 100.0000, .*"images": 12, "wrong": 0}$' out || wrong "vit eval says: $(cat out)"
# For a model with NaN weights it prints only the error.
astray patches nan
printf 'P5 8 8 255\n%064d' 0 >zeros.pgm
for json in "" --json; do
    for command in "eval|--images|images|--labels|labels" "classify|zeros.pgm"; do
        IFS='|' read -ra command <<<"$command"
        says 6 "is NaN: look for NaN" "$vit" "${command[0]}" --quiet --model nan $json "${command[@]:1}"
        [ ! -s out.txt ] || wrong "vit ${command[0]} $json of a model of NaN says: $(cat out.txt)"
    done
done
"$vit" eval --model plain "${data[@]}" --html page.html -q | grep -q '^accuracy ' || wrong "vit eval --html failed"
[ -s page.html ] || wrong "vit eval --html wrote nothing"

# Each row of the confusion matrix has its class's label, with more classes than tn_name keeps texts.
{
    printf '\0\0\x08\1\0\0\0\x3c'
    for i in $(seq 0 59); do byte $((i % 12)); done
} >twelve
for model in vit convolutions; do
    "$vit" train --images images --labels twelve --out many-$model --size tiny --batch 16 --quiet --steps 2 \
        --model $model >out ||
        wrong "vit train with 12 classes failed"
    rows=$(sed -n '/Confusion matrix/,/<\/figure>/p' many-$model/report.html |
        sed -nE 's/^<text class="e"[^>]*>([^<]*)<.*/\1/p' | xargs)
    [ "$rows" = "0 1 2 3 4 5 6 7 8 9 10 11" ] || wrong "rows of the confusion matrix of 12 classes: $rows"
done

# The same bits with another number of threads, from a compressed file, and after an interruption.
if "$vit" train --images images.gz --labels labels --out again "${small[@]}" --steps 80 --shift 1 --threads 1 >out 2>err
then cmp -s patches/model.safetensors again/model.safetensors || wrong "one thread makes another model than all"
else grep -q 'built without libpng' err || wrong "images.gz: $(cat err)"; fi
"$vit" train "${data[@]}" --out broken "${small[@]}" --steps 80 --shift 1 --no-progress >out 2>err &
run=$!
for i in $(seq 200); do [ -e broken/checkpoints/step-000000000020.ckpt ] && break || sleep 0.02; done
kill -TERM $run 2>/dev/null || true
wait $run || true
if [ ! -e broken/model.safetensors ] || ! cmp -s patches/model.safetensors broken/model.safetensors; then
    "$vit" train --out broken --resume >out 2>err ||
        wrong "--resume: $(cat err)"
fi
same_folder patches broken || wrong "a run that was resumed makes another model"

cp labels others && printf '\1' | dd of=others bs=1 seek=20 conv=notrunc status=none
cmp -s labels others && printf '\0' | dd of=others bs=1 seek=20 conv=notrunc status=none
says 1 "--labels is 'labels' in the run, 'others' here" \
    "$vit" train --images images --labels others --out patches "${small[@]}" --steps 80 --shift 1 --resume

# Several processes: the same bits, and only one prints.
if [ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]]; then
    for ranks in 1 3; do
        "$vit" train "${data[@]}" --out ranks$ranks "${small[@]}" --steps 20 --shift 1 --ranks $ranks \
            >out$ranks 2>err ||
            wrong "--ranks $ranks: $(cat err)"
        [ "$(grep -c accuracy out$ranks)" = 1 ] || wrong "--ranks $ranks says: $(cat out$ranks)"
    done
    cmp -s ranks1/model.safetensors ranks3/model.safetensors || wrong "three ranks make another model than one"
fi

# An image of one pixel, one of 10,000 x 10,000, and one in PPM.
{ printf 'P5 8 8 255\n' && head -c 80 images | tail -c 64; } >above.pgm
printf 'P2 1 1 255 7\n' >one.pgm
{ printf 'P5 10000 10000 255\n' && head -c 100000000 /dev/zero; } >large.pgm
{ printf 'P6 3 2 255\n' && head -c 18 /dev/zero; } >colour.ppm
"$vit" classify --model patches above.pgm one.pgm large.pgm colour.ppm >out 2>err || wrong "vit classify: $(cat err)"
rm large.pgm
[ "$(wc -l <out)" = 4 ] && sed -n 1p out | grep -q '^above.pgm	0 0\.' || wrong "vit classify says: $(cat out)"
"$vit" classify --model patches -k 1 --negative above.pgm | grep -q '^above.pgm	1 0\.' ||
    wrong "vit classify --negative: $("$vit" classify --model patches -k 1 --negative above.pgm)"
"$vit" classify --model patches --dtype int8 above.pgm | grep -q '^above.pgm	0 0\.' || wrong "vit classify --dtype int8"
"$vit" classify --model plain -k 1 --json above.pgm |
    grep -qE '^\{"file": "above.pgm", "classes": \[\{"label": "0", "probability": 0\.[0-9]+\}\]\}$' ||
    wrong "vit classify --json: $("$vit" classify --model plain -k 1 --json above.pgm)"
cp above.pgm $'k\xffey.pgm' # a name that is not UTF-8, which JSON cannot contain
"$vit" classify --model plain -k 1 --json $'k\xffey.pgm' >out 2>err && grep -q '^{"file": "k�ey.pgm"' out ||
    wrong "vit classify --json of a name that is no UTF-8: $(cat out err)"

# A small demonstration.
"$vit" demo "${data[@]}" --out demo --steps 12 --quiet >out 2>err || wrong "vit demo: $(cat err)"
tail -n 1 out | grep -qE '^After [0-9.]+ minutes .* [0-9.]+ % of unseen .*, the convolutional network [0-9.]+ %\.$' ||
    wrong "vit demo ends with: $(tail -n 1 out)"
grep -q '<svg' demo/report.html || wrong "the report of vit demo has no pictures"

# ---- tune: the classifier stays or is a new one, adapters, models and images of other sizes, the same bits ----

{
    printf '\0\0\x08\1\0\0\0\x3c'
    for i in $(seq 0 59); do byte $((i % 4 / 2)); done
} >halves
tune=("$vit" tune --quiet --images images --batch 16 --shift 0)
tuned() # OUT CLASSES ARGUMENT...: tunes to an accuracy of 100 %
{
    "${tune[@]}" --out "$1" "${@:3}" >out 2>err || wrong "vit tune --out $1: $(cat err)"
    tail -n 1 out | grep -qE '^accuracy 100\.00 % \(0 of 12 wrong\)$' || wrong "vit tune --out $1: $(tail -n 1 out)"
    "$vit" info "$1" | grep -q "^classes     $2\$" || wrong "vit tune --out $1: $("$vit" info "$1")"
}
tuned kept 4 --model patches --labels labels --steps 2 --lr 1e-5
"$vit" eval --model kept "${data[@]}" -q | grep -q '^accuracy  100' || wrong "vit tune loses the classifier"
tuned fresh 2 --model patches --labels halves --lr 0.003 --steps 120
tuned lora 2 --model patches --labels halves --lr 0.01 --steps 80 --lora 4
grep -q '"classifier"' lora/adapter/adapter_config.json && [ -s lora/adapter/adapter_model.safetensors ] ||
    wrong "vit tune --lora leaves no adapter: $(ls lora lora/adapter)"
tuned two 2 --model patches --labels halves --lr 0.01 --steps 80 --lora 4 --threads 2
cmp lora/model.safetensors two/model.safetensors || wrong "vit tune: another number of threads, other weights"
tuned packed 2 --model patches --labels halves --lr 0.01 --steps 80 --lora 4 --type int8
grep -q '"classifier"' packed/adapter/adapter_config.json || wrong "vit tune --type int8 leaves no adapter"
tuned plain2 2 --model plain --labels halves --steps 60
tuned plain3 2 --model plain --labels halves --steps 60 --lora 2
"${tune[@]}" --out killed --model patches --labels halves --lr 0.01 --steps 80 --lora 4 >out 2>err &
run=$!
for i in $(seq 200); do [ -e killed/checkpoints/step-000000000020.ckpt ] && break || sleep 0.02; done
kill -KILL $run 2>/dev/null || true
{ wait $run; } 2>/dev/null || true
[ -e killed/model.safetensors ] || "$vit" tune --out killed --resume --quiet >out 2>err || wrong "vit tune: $(cat err)"
same_folder lora killed || wrong "vit tune: a run that was killed and resumed makes another model"
for model in classifier deit teacher model; do
    "${tune[@]}" --out hf-$model --model "$root/tests/golden/vit/$model" --labels labels --steps 2 --lora 2 \
        >out 2>err || wrong "vit tune of $model: $(cat err)"
    "$vit" info hf-$model | grep -q '^classes     4$' || wrong "vit tune of $model: $("$vit" info hf-$model)"
done

# ---- errors: the exit code and the message ----

says() # CODE WORDS COMMAND...
{
    local code=$1 words=$2 got=0
    shift 2
    "$vit" "$@" </dev/null >out 2>err || got=$?
    [ $got = "$code" ] && grep -q -- "$words" err || wrong "'vit $*' ends with $got, not $code, and says: $(cat err)"
    [ $code = 0 ] || [ ! -s out ] || wrong "'vit $*' prints in spite of its mistake: $(cat out)"
}
head -c 300 images >cut
printf '\0\0\x08\1\0\0\0\2\0\1' >few
printf '\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2abcd' >wide
printf 'P5 9999 9999 255\nabc' >torn.pgm
printf '\x89PNG\r\n\x1a\nabc' >torn.png
printf 'GIF89a' >some.gif
says 2 '--labels FILE is required, unless --images is a folder' train --images images --out x
says 2 'for --model vit' train "${data[@]}" --out x --model convolutions --layers 3
says 2 'patch is for --model vit' train "${data[@]}" --out x --model convolutions --patch 2
says 2 'exclude each other' demo "${data[@]}" --out x --steps 2 --minutes 1
says 3 'must have 3856 bytes, this one has 300' train --images cut --labels labels --out x
says 3 'one for each image' train --images images --labels few --out x
says 3 'images must be u8' train --images labels --labels labels --out x
says 3 'training needs square images' train --images wide --labels few --out x
says 1 'fewer than --patch 9' train "${data[@]}" --out x --patch 9
says 1 'already contains a model' train "${data[@]}" --out patches
says 1 'classes is 2, but the largest label is 3; expected at least 4' \
    tune --model patches "${data[@]}" --out x --classes 2
says 2 'lora-layers is for --lora' tune --model patches "${data[@]}" --out x --lora-layers q_proj
says 2 'packs the weights, which then cannot change' tune --model patches "${data[@]}" --out x --type int8
says 7 'but .plain. has convolutions; omit it' tune --model plain "${data[@]}" --out x --lora 2 --type int8
says 1 ".names has 'qq'" tune --model patches "${data[@]}" --out x --lora 2 --lora-layers qq
says 1 'is another run: --lora is 4 in the run, 5 here' tune --out lora --lora 5 --resume
says 7 'or vit tune, which adds a classifier' classify --model "$root/tests/golden/vit/model" above.pgm
says 5 'no such file' train --images nothing --labels labels --out x
says 5 'no such file' classify --model patches nothing.png
says 3 'has 3 bytes of samples' classify --model patches torn.pgm
says 7 'the file is GIF' classify --model patches some.gif
says 1 '--first 60 is out of range: there are 60 images' eval --model patches "${data[@]}" --first 60
"$vit" classify --model patches torn.png >out 2>err && wrong "a torn PNG is classified"
grep -qE 'damaged|built without libpng' err || wrong "a torn PNG: $(cat err)"
mkdir odd && echo '{"model_type": "swin"}' >odd/config.json
says 7 "supported: 'vit' and 'deit'" info odd
! [ -e x/run.json ] || wrong "a run that could not begin left run.json"
# A folder with a folder for each class: named classes, images of several sizes, files that are no images.
mkdir -p sides/left sides/right
for i in 1 2 3 4 5 6 7 8 9 10; do
    for side in left right; do
        {
            printf 'P2 8 8 255\n'
            for y in 1 2 3 4 5 6 7 8; do
                [ $side = left ] && echo "20$i 200 200 200 9 9 9 $i" || echo "$i 9 9 9 200 200 200 20$((i % 10))"
            done
        } | sed 's/2010/210/' >sides/$side/$i.pgm
    done
done
printf 'P2 16 12 255\n%s\n' "$(for i in $(seq 96); do echo 200 200 200 200 200 200 200 200 | cut -d' ' -f1-2; done)" \
    >sides/left/large.pgm
echo note >sides/left/notes.txt
folder=(--images sides --out pets "${small[@]}" --batch 8)
"$vit" train "${folder[@]}" --steps 60 --shift 0 >out 2>err || wrong "vit train with a folder: $(cat err)"
grep -q "^warning: skipped 1 file of 'sides' without the ending .png, .pgm or .ppm, such as 'sides/left/notes" err ||
    wrong "no warning of a file that is no image: $(cat err)"
grep -q '"0": "left"' pets/config.json || wrong "the classes have no names: $(cat pets/config.json)"
"$vit" classify --model pets -k 1 sides/right/3.pgm | grep -q right ||
    wrong "vit classify of a folder's class: $("$vit" classify --model pets sides/right/3.pgm)"
"$vit" eval --model pets --images sides --json 2>err | grep -q '"images": 21' || wrong "vit eval with a folder"
mkdir -p lone/cats void/cats void/dogs && cp sides/left/1.pgm lone/cats && cp sides/left/1.pgm void/cats
says 3 "'lone' has 1 folder of images; expected one for each class, at least two" train --images lone --out x
says 3 "'void/dogs' has no image; expected files that end in .png, .pgm or .ppm" train --images void --out x
says 2 '--labels is for a file of images' train --images sides --labels labels --out x
exit $wrong
