"""Clients of serve, for serve.sh: well-formed requests, wrong ones, slow and vanishing ones, 200 at once. Prints
findings.

serve_clients.py PORT LM ENCODER TEXT LOG          TEXT: what gpt write continues PROMPT with; LOG: serve's messages
serve_clients.py PORT LM ENCODER TEXT LOG PROCESS  only slow readers; PROCESS: serve's number
"""
import base64
import http.client
import json
import socket
import struct
import sys
import threading
import time

PORT, LM, ENCODER, TEXT, LOG = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5]
HOST, KEY, PROMPT = "127.0.0.1", "secret", "the old man"


def ask(path, body=None, method=None, key=KEY, kind="application/json", raw=None):
    c = http.client.HTTPConnection(HOST, PORT, timeout=60)
    head = {"Content-Type": kind} if kind else {}
    if key:
        head["Authorization"] = "Bearer " + key
    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    c.request(method or ("GET" if data is None else "POST"), path, data, head)
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, text


def answer(path, body):
    status, text = ask(path, body)
    if status != 200:
        print(f"{path} {body}: {status} {text}")
        return {}
    return json.loads(text)


def events(path, body):
    status, text = ask(path, dict(body, stream=True))
    lines = [x for x in text.decode().split("\n\n") if x]
    if status != 200 or not all(x.startswith("data: ") for x in lines) or lines[-1] != "data: [DONE]":
        print(f"{path} {body}: {status}, events {lines[:1]} … {lines[-1:]}")
        return []
    return [json.loads(x[6:]) for x in lines[:-1]]


def expect(what, found, expected):
    if found != expected:
        print(f"{what}: {found!r}, expected {expected!r}")


def check_texts():
    plain = {"model": LM, "prompt": PROMPT, "max_tokens": 20, "temperature": 0}
    a = answer("/v1/completions", plain)
    expect("a completion", a["choices"][0]["text"], TEXT)
    expect("its end", a["choices"][0]["finish_reason"], "length")
    expect("its tokens", a["usage"]["completion_tokens"], 20)
    made = events("/v1/completions", dict(plain, stream_options={"include_usage": True}))
    expect("a stream", "".join(x["choices"][0]["text"] for x in made if x["choices"]), TEXT)
    expect("usage of a stream", made[-1]["usage"]["total_tokens"], a["usage"]["total_tokens"])
    two = answer("/v1/completions", dict(plain, prompt=[PROMPT, "a"], n=2))
    expect("texts of two prompts", [c["text"] == TEXT for c in two["choices"]][:2], [True, True])
    expect("their indices", [c["index"] for c in two["choices"]], [0, 1, 2, 3])
    stop = TEXT[4:6]
    a = answer("/v1/completions", dict(plain, stop=[stop]))["choices"][0]
    expect("a text with a stop word", (a["text"], a["finish_reason"]), (TEXT[: TEXT.index(stop)], "stop"))
    drawn = dict(plain, temperature=1, seed=7, top_p=0.9)
    first, second = (answer("/v1/completions", drawn)["choices"][0]["text"] for _ in range(2))
    expect("a text with the same seed", second, first)
    other = answer("/v1/completions", dict(drawn, seed=8))["choices"][0]["text"]
    if other == first:
        print("another seed gives the same text")
    for key in "presence_penalty", "frequency_penalty":
        if answer("/v1/completions", dict(plain, max_tokens=40, **{key: 2}))["choices"][0]["text"].startswith(TEXT):
            print(f"{key} changes nothing")
    said = [{"role": "system", "content": "be kind"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    chat = {"model": LM, "messages": said, "max_completion_tokens": 12, "temperature": 0}
    a = answer("/v1/chat/completions", chat)
    same = "system: be kind\nuser: hello\nassistant: "
    expect("an answer", a["choices"][0]["message"]["content"],
           answer("/v1/completions", dict(plain, prompt=same, max_tokens=12))["choices"][0]["text"])
    made = events("/v1/chat/completions", chat)
    expect("the role of a stream", made[0]["choices"][0]["delta"]["role"], "assistant")
    expect("an answer as a stream", "".join(x["choices"][0]["delta"].get("content", "") for x in made),
           a["choices"][0]["message"]["content"])
    expect("the end of a stream", made[-1]["choices"][0]["finish_reason"], a["choices"][0]["finish_reason"])


def check_vectors():
    texts = ["the old man", "a ship", "the old man"]
    a = answer("/v1/embeddings", {"model": ENCODER, "input": texts})["data"]
    b = answer("/v1/embeddings", {"input": texts, "encoding_format": "base64"})["data"]
    for x, y in zip(a, b):
        raw = base64.b64decode(y["embedding"])
        floats = struct.unpack(f"<{len(raw) // 4}f", raw)
        expect("a vector in base64", [struct.pack("<f", v) for v in x["embedding"]],
               [struct.pack("<f", v) for v in floats])
        expect("the norm of a vector", abs(sum(v * v for v in floats) - 1) < 1e-4, True)
    expect("the vectors of equal texts", a[0]["embedding"], a[2]["embedding"])
    many = answer("/v1/embeddings", {"input": ["the ship"] * 300})["data"]
    expect("300 vectors", [x["index"] for x in many], list(range(300)))


def check_errors():
    ok = {"prompt": "a", "max_tokens": 2}
    rows = [  # path, body or bytes, status, what the message has, the member of the request
        ("/v1/completions", dict(ok, model="gpt-4o"), 404, f"use '{LM}'", "model"),
        ("/v1/completions", dict(ok, temperature=3), 400, "temperature is 3, expected 0 to 2", "temperature"),
        ("/v1/completions", dict(ok, temperature="hot"), 400, "must be a number from 0 to 2", "temperature"),
        ("/v1/completions", dict(ok, max_tokens=1.5), 400, "expected an integer", "max_tokens"),
        ("/v1/completions", dict(ok, max_tokens=100000), 400, "makes at most", "max_tokens"),
        ("/v1/completions", dict(ok, prompt="a" * 3000), 400, "are more than the", "prompt"),
        ("/v1/completions", dict(ok, prompt=[1, 2]), 400, "token ids are not supported", "prompt"),
        ("/v1/completions", dict(ok, prompt="a\0b"), 400, "NUL", "prompt"),
        ("/v1/completions", dict(ok, n=17), 400, "n is 17, expected 1 to 16", "n"),
        ("/v1/completions", dict(ok, stop=""), 400, "empty text", "stop"),
        ("/v1/completions", dict(ok, logprobs=3), 400, "logprobs is not supported", "logprobs"),
        ("/v1/completions", dict(ok, stream="yes"), 400, "true or false", "stream"),
        ("/v1/completions", b'{"prompt": "a"', 400, "", None),
        ("/v1/completions", b"[1]", 400, "must be an object", None),
        ("/v1/completions", b"[" * 5000, 400, "", None),
        ("/v1/chat/completions", {"messages": []}, 400, "at least one message", "messages"),
        ("/v1/chat/completions", {"messages": ["hi"]}, 400, "must have a role", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 7}]}, 400, "must be text", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400,
         "object of type text", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "tools": [{}]}, 400,
         "tools is not supported", "tools"),
        ("/v1/embeddings", {"model": LM, "input": "a"}, 404, f"use '{ENCODER}'", "model"),
        ("/v1/embeddings", {"input": []}, 400, "must be a text or an array", "input"),
        ("/v1/embeddings", {"input": "a " * 900}, 400, "expected at most", "input"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 400, "float or base64", "encoding_format"),
        ("/v1/embeddings", {"input": "a", "dimensions": 3}, 400, "the model's vectors have", "dimensions"),
        ("/v2/models", {}, 404, "does not exist; this server has", None),
    ]
    for path, body, status, message, member in rows:
        raw = body if isinstance(body, bytes) else None
        got, text = ask(path, None if raw else body, raw=raw)
        e = json.loads(text)["error"]
        if got != status or message not in e["message"] or e["param"] != member or e["type"] != "invalid_request_error":
            print(f"{path} {str(body)[:80]}: {got} {e}, expected {status}, '{message}', {member}")
    expect("GET of a POST", ask("/v1/completions", method="GET")[0], 405)
    expect("a form instead of JSON", ask("/v1/completions", ok, kind="text/plain")[0], 415)
    expect("a body of 70,000 bytes", ask("/v1/completions", {"prompt": "a" * 70000})[0], 413)
    for key in None, "", "secre", "secret ", "secretsecret":
        expect(f"the key {key}", ask("/v1/completions", ok, key=key)[0], 401)
    expect("/health without a key", ask("/health", key=None), (200, b'{"status":"ok"}\n'))
    expect("the models", [m["id"] for m in json.loads(ask("/v1/models")[1])["data"]], [LM, ENCODER])


def send(text):
    c = socket.create_connection((HOST, PORT), timeout=20)
    c.sendall(text.encode())
    return c


def check_broken():
    """Clients that vanish, send nothing, or send something else. The server then answers the next one."""
    body = json.dumps({"prompt": PROMPT, "max_tokens": 900, "temperature": 1, "n": 16, "stream": True})
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
            "Content-Type: application/json\r\nContent-Length: ")
    whole = f"{head}{len(body)}\r\n\r\n{body}"
    gone = open(LOG).read().count("the client has gone")
    for text in whole, whole.replace("true", "null"):
        c = send(text)
        if "null" not in text:
            c.recv(100)
        c.close()
    until = time.monotonic() + 20
    while open(LOG).read().count("the client has gone") < gone + 2 and time.monotonic() < until:
        time.sleep(0.05)
    expect("clients that have gone", open(LOG).read().count("the client has gone") - gone, 2)
    slow = [send("POST /v1/comp"), send(whole[: len(whole) - 5]), send(f"{head}{1 << 62}\r\n\r\n"),
            send("\0\xff\r\n\r\n"),
            send(f"{head.replace('Content-Length', 'Transfer-Encoding')}chunked\r\n\r\n7fffffff\r\nab"), send("")]
    for c in slow:
        try:
            while c.recv(1000):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            print("a client that sends nothing stays connected")
        c.close()
    expect("a text after them", answer("/v1/completions", {"prompt": PROMPT, "max_tokens": 20, "temperature": 0})
           ["choices"][0]["text"], TEXT)


def check_many(n=200):
    """n clients at the same time: each gets the text of one alone."""
    found = [None] * n
    body = {"prompt": PROMPT, "max_tokens": 20, "temperature": 0}

    def one(i):
        if i % 4 == 0:
            found[i] = "".join(x["choices"][0]["text"] for x in events("/v1/completions", body))
        elif i % 4 == 1:
            found[i] = TEXT if len(answer("/v1/embeddings", {"input": "a ship"})["data"]) == 1 else None
        else:
            found[i] = answer("/v1/completions", body)["choices"][0]["text"]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(f"{n} clients", sum(x == TEXT for x in found), n)


def resident(process):
    with open(f"/proc/{process}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))  # KiB


def check_slow_readers(process, n=6):
    """Clients that read a stream at a byte per 100 ms: they neither hold up the others nor lose anything, and what
    waits for them is bounded."""
    body = json.dumps({"prompt": PROMPT, "max_tokens": 400, "temperature": 1, "n": 2, "stream": True})
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    short = {"prompt": PROMPT, "max_tokens": 20, "temperature": 0}
    expect("a text before slow readers", answer("/v1/completions", short)["choices"][0]["text"], TEXT)
    before, over, read, done = resident(process), threading.Event(), [b""] * n, [False] * n

    def slow(i):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.settimeout(60)
        c.connect((HOST, PORT))
        c.sendall((head + body).encode())
        while not over.is_set():
            read[i] += c.recv(1)
            time.sleep(0.1)
        while part := c.recv(65536):
            read[i] += part
        done[i] = b"data: [DONE]" in read[i]
        c.close()

    threads = [threading.Thread(target=slow, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for _ in range(30):
        began = time.monotonic()
        expect("a text beside slow readers", answer("/v1/completions", short)["choices"][0]["text"], TEXT)
        if time.monotonic() - began > 20:
            print("a text beside slow readers takes more than 20 seconds")
        time.sleep(0.05)
    slowest, grown = max(map(len, read)), resident(process) - before
    if slowest > 2000:
        print(f"slow readers have read {slowest} bytes")
    if grown > 32768:
        print(f"slow readers cost {grown} KiB")
    over.set()
    for t in threads:
        t.join()
    expect("streams of slow readers", sum(done), n)


if len(sys.argv) > 6:
    check_slow_readers(int(sys.argv[6]))
    sys.exit()
check_texts()
check_vectors()
check_errors()
check_broken()
check_many()
