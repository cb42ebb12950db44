#!/usr/bin/env bash
# A custom type of language model, that of examples/own_family.c: programs that register it open its folder, continue a
# text, measure one, and serve it to clients of OpenAI's interface; a program that does not names the type.
. "$(dirname "$0")/../../../tests/project/common.sh"
own=$build/bin/tests/gpt_own serve=$build/bin/tests/serve_own
[ -x "$own" ] && [ -x "$build/bin/own_family" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
fresh own

"$build/bin/own_family" >/dev/null 2>err || wrong "own_family fails: $(cat err)"
says 7 "model_type is 'ngram'" "$build/bin/gpt" write --model ngram --prompt "the horse eats"
written=$("$own" write --model ngram --prompt "the horse eats" --tokens 5 --temperature 0 2>err) ||
    wrong "gpt write of a custom type: $(cat err)"
[ "$written" = "the horse eats grass and" ] || [ "${written#the horse eats gras}" != "$written" ] ||
    wrong "gpt write of a custom type: '$written'"
for i in $(seq 40); do echo -n "the cat drinks milk and the horse eats grass and the bird sings songs and "; done >text
"$own" eval --model ngram --json text >measured 2>err || wrong "gpt eval of a custom type: $(cat err)"
grep -qE '^\{"loss":0\.' measured || wrong "gpt eval of a custom type: $(cat measured)"
"$own" info ngram >about 2>err && grep -q ngram about || wrong "gpt info of a custom type: $(cat about err)"

if [ -x "$serve" ] && command -v curl >/dev/null; then
    "$serve" --model ngram --port 0 >address 2>log &
    server=$!
    for i in $(seq 200); do grep -q http address && break || sleep 0.05; done
    at=$(head -n 1 address)
    curl -s -m 30 -H "Content-Type: application/json" "$at/completions" \
        -d '{"prompt": "the horse eats", "max_tokens": 5, "temperature": 0}' >answer || wrong "no answer: $(cat log)"
    grep -qF "\"text\":\"${written#the horse eats}\"" answer || wrong "serve with a custom type: $(cat answer log)"
    kill -TERM "$server"
    wait "$server" || true
fi
exit $wrong
