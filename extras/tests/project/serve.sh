#!/usr/bin/env bash
# The program serve with small models: texts, streams, conversations and vectors, errors in OpenAI's form, clients that
# vanish or send nothing, 200 clients at once, and the memory after them. Its clients: serve_clients.py.
. "$(dirname "$0")/../../../tests/project/common.sh"
need python3
serve=$build/bin/serve
[ -x "$serve" ] || { echo "SKIPPED: serve is not built; it needs libmicrohttpd" && exit 77; }
fresh serve

for i in $(seq 60); do echo "the old man and the sea, $i ships and a boy who was kind to them"; done >text
"$build/bin/gpt" train --quiet --text text --shape gpt2 --size tiny --dim 32 --layers 1 --batch 4 --length 1000 \
    --vocab-size 257 --steps 20 --lr 0.01 --out lm >/dev/null || wrong "gpt train failed"
template="{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
template+="{% if add_generation_prompt %}assistant: {% endif %}"
printf '%s' "$template" >lm/chat_template.jinja
"$build/bin/bert" train --quiet --text text --size tiny --length 32 --batch 4 --steps 2 --out encoder >/dev/null ||
    wrong "bert train failed"
expected=$("$build/bin/gpt" write --model lm --prompt "the old man" --tokens 20 --temperature 0 && echo .)
expected=${expected#the old man} expected=${expected%.}

# Starts a server; sets $port.
begin() # LOG ARGUMENT...
{
    "$serve" --port 0 --api-key secret "${@:2}" >address 2>"$1" &
    server=$!
    for i in $(seq 200); do grep -q http address && break || sleep 0.05; done
    port=$(sed -nE 's,^http://127\.0\.0\.1:([0-9]+)/v1$,\1,p' address)
    [ "$port" ] || wrong "serve does not start: $(cat address "$1")"
}
end()
{
    local rc=0
    kill -TERM "$server"
    wait "$server" || rc=$?
    [ $rc = 143 ] || wrong "serve ends with exit code $rc after SIGTERM: $(tail -n 3 "$1")"
}
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; } # KiB

files() { find . ! -name err.txt ! -name out.txt ! -name found ! -name log ! -name address | sort; }
before=$(files)
begin log --model lm --embeddings encoder --verbose --patience 1 --body 60000
clients=(python3 "$root/extras/tests/project/serve_clients.py" "$port" lm encoder "$expected" log)
"${clients[@]}" >found 2>&1 || wrong "the clients failed"
findings <found
small=$(memory)
for i in 1 2; do "${clients[@]}" >found; done
findings <found
[ "$(memory)" -lt $((small + 16384)) ] || wrong "memory grows from $small KiB to $(memory) KiB"
end log
[ "$(files)" = "$before" ] || wrong "serve writes files"

begin log --model lm --embeddings encoder
clients=(python3 "$root/extras/tests/project/serve_clients.py" "$port" lm encoder "$expected" log)
"${clients[@]}" "$server" >found 2>&1 || wrong "the slow readers failed: $(tail -n 2 found)"
findings <found
end log

# A time limit ends a text; more texts than rows wait for each other.
begin log --model lm --rows 1 --seconds 0.2
ask=(curl -s -m 30 -H "Authorization: Bearer secret" -H "Content-Type: application/json")
if command -v curl >/dev/null; then
    "${ask[@]}" "http://127.0.0.1:$port/v1/completions" \
        -d '{"prompt": ["a", "b", "c", "d", "e"], "max_tokens": 900}' >out
    grep -qE '"finish_reason":"length"|"code":"timeout"' out || wrong "a text that takes too long: $(cat out)"
fi
end log

says 2 "give a model: --model for text, --embeddings for vectors" "$serve"
says 2 "--pool is for --embeddings" "$serve" --model lm --pool mean
says 1 "expected an IPv4 address" "$serve" --model lm --host localhost
begin log --model lm
says 5 "cannot listen on 127.0.0.1:$port" "$serve" --model lm --port "$port"
end log
exit $wrong
