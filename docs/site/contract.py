"""The contract of each public name: fixed fields, each from the facts about an op (ops.txt, measured by a test), from
the declaration, or from the rules below. The rules are those of core/core.h, nn/module.h and docs/adr; a rule is
written here once, and the first one that matches a name applies.
"""
import re

FIELDS = ("Result", "Tape", "Dtypes", "Strides", "In place", "Threads", "Errors", "Determinism", "Formula",
          "Differences from PyTorch")

STATUS = "A tn_status, which owns nothing: TN_OK, or the error that is set."
VALUE = "A value that owns nothing."
NOT_RECORDED = "Nothing is recorded."
RANDOM = re.compile(r"tn_(uniform|normal|randint|bernoulli|permutation|random|dropout|init|add_dropout_norm|locked)")

# (test of a function, text). s: the symbol, api: all symbols.
OWNER = (
    (lambda s, api: re.search(r"\bowned by\b|\bowns\b|\bborrows?\b|\bfree with\b|\bcaller frees\b|\bvalid until\b|"
                              r"\bbelongs to\b|\bvalid as long\b|\bowners?\b", s.comment), "As the description says."),
    (lambda s, api: re.search(r"_(free|close)$|^tn_drop$", s.name),
     "Frees its argument and what that owns. NULL is ignored."),
    (lambda s, api: s.op and api.ops[s.op]["flags"].find("view") >= 0,
     "The open scope owns the result, a view: it shares the memory of its first argument, which lives as long as the "
     "view."),
    (lambda s, api: s.name.endswith("_") and s.result == "tn_tensor *",
     "Returns its first argument; the owner does not change."),
    (lambda s, api: s.header.startswith("nn/") and s.result == "tn_tensor *" and re.match(
        r"tn_module_(param|weight|buffer)$", s.name), "The module owns the tensor, and the call returns it."),
    (lambda s, api: s.result in ("tn_tensor *", "tn_pair", "tn_tensor*"),
     "The open scope owns the result and frees it when it ends; tn_scope_return, tn_keep and tn_take make it live "
     "longer."),
    (lambda s, api: module_type(s, api),
     "The caller owns the module: it frees it with tn_free, or passes it to tn_child or tn_append, whose module then "
     "owns it."),
    (lambda s, api: freed_by(s, api), "The caller owns the result and frees it with %s."),
    (lambda s, api: s.result == "tn_status", STATUS),
    (lambda s, api: s.result == "void", "No result."),
    (lambda s, api: re.match(r"(int|int64_t|int32_t|bool|double|float|size_t|uint\d+_t|unsigned)$", s.result), VALUE),
    (lambda s, api: s.result.startswith("const "),
     "Borrowed: the object that was passed, or the library, owns it. Do not free it."),
    (lambda s, api: s.result.endswith("*"), "A pointer to the argument or to a part of it, which keeps its owner."),
    (lambda s, api: has_tensors(s, api), "A struct, returned by value; its tensors belong to the open scope."),
    (lambda s, api: True, "A struct, returned by value; it owns nothing."),
)
IN_PLACE = (
    (lambda s, api: s.name.endswith("_") and s.params and "tensor" in s.params[0],
     "Yes: the result overwrites the first argument. An error if the tape saved that argument, if it is a leaf outside "
     "no-grad, or if several of its elements share memory."),
    (lambda s, api: s.name + "_" in api.symbols, "No; %s_ overwrites its first argument."),
    (lambda s, api: re.match(r"tn_(set|set_at|set_i64|fill|copy_in|copy_from|data_mut|adopt)$|tn_init_", s.name),
     "Yes: it writes to its first argument and increments the version that the tape checks."),
    (lambda s, api: s.op or s.result in ("tn_tensor *", "tn_pair"), "No: its arguments do not change."),
    (lambda s, api: s.params and re.match(r"(const |tn_shape|tn_dtype|tn_dims|int|double|bool|size_t|uint)",
                                          s.params[0]),
     "No: its arguments do not change."),
    (lambda s, api: not s.params, "It has no arguments."),
    (lambda s, api: s.name.endswith("_create"), "No: it makes a new object."),
    (lambda s, api: True, "It may change the object that its first argument points to, and what that object owns."),
)
THREADS = (
    (lambda s, api: re.match(r"tn_(set_allocator|set_io|set_memory_limit|world_mpi|reset_peak)", s.name),
     "Changes the whole process: call it while no other thread uses the library."),
    (lambda s, api: re.match(r"tn_(scope|no_grad|error|clear_error|raise|path|seed|current_generator|use_generator|"
                             r"autocast|on_error|keep|take|set_threads|detect_anomaly|span)", s.name),
     "Concerns the calling thread only."),
    (lambda s, api: s.op or s.result in ("tn_tensor *", "tn_pair") and not s.header.startswith("parallel"),
     "Any thread, several at a time; parameters may be read by many threads or changed by one. The work is divided "
     "among the threads of tn_set_threads."),
    (lambda s, api: s.params and s.params[0].startswith("const "),
     "Any thread; several threads may read one object at the same time."),
    (lambda s, api: True, "Any thread; an object may be used by one thread at a time."),
)
SAME_BITS = "The same bits for any number of threads and any strides"
DETERMINISM = (
    (lambda s, api: RANDOM.match(s.name),
     "Random numbers depend only on the seed and the position of the current generator, not on threads."),
    (lambda s, api: s.op,
     SAME_BITS + "; f32 also on every CPU with fused multiply-add."),
    (lambda s, api: s.result == "tn_tensor *", SAME_BITS + "."),
    (lambda s, api: re.match(r"tn_(build_info|threads|has_bf16|memory_now|clock)", s.name), "Depends on the machine."),
    (lambda s, api: True, "The same result for the same arguments and state, for any number of threads."),
)


def module_type(s, api):
    t = api.symbols.get(re.sub(r"[ *]+$", "", s.result))
    for one in [t] + t.also if t else []:
        if any("base" in m["names"] and m["type"].startswith("tn_module") for m in one.members):
            return True
    return False


def has_tensors(s, api):
    t = api.symbols.get(s.result)
    return t and t.kind == "struct" and any("tn_tensor" in m["type"] for m in t.members)


def freed_by(s, api):
    base = re.sub(r"[ *]+$", "", s.result)
    return s.result.endswith("*") and not s.result.startswith("const") and next(
        (f for f in (base + "_free", base + "_close") if f in api.symbols), "")


def first_match(table, s, api):
    for test, text in table:
        found = test(s, api)
        if found:
            return text % (found if isinstance(found, str) else s.name) if "%s" in text else text
    raise LookupError(s.name)


def tape(s, api):
    if not s.op:
        if re.match(r"tn_(backward|grad_of|grad_wrt)", s.name):
            return "Reads the tape: see the description."
        if not has_tensors(s, api) and s.result != "tn_tensor *":
            return "It returns no tensor, so there is nothing to differentiate."
        if s.records or s.name in ("tn_module_call", "tn_recomputable", "tn_checkpoint"):
            return "The ops that it calls are recorded, unless the description says otherwise; first and second " \
                "order are theirs."
        return NOT_RECORDED
    op = api.ops[s.op]
    text = {"first and second": "First and second order: the derivative is made of ops, which can be differentiated.",
            "first": "First order; create_graph through it is an error.",
            "as its ops": "It is made of ops, which are recorded: first and second order are theirs.",
            "none": "No derivative: a result that is bool or integer is a constant; recording another one is an "
                    "error."}[op["orders"]]
    cast = {"narrow": " Under autocast: bf16.", "wide": " Under autocast: f32.",
            "join": " Under autocast: f32 if one argument is f32.", "as is": ""}
    return text + cast.get(op["autocast"], "")


def dtypes(s, api):
    if not s.op:
        if any("tn_dtype" in p for p in s.params):
            return "The dtype that is passed."
        given = [api.symbols.get(p.split(" ")[0]) for p in s.params]
        if any("dtype" in m["names"] for t in given if t and t.kind == "struct" for m in t.members):
            return "That of the option .dtype, by default f32."
        if any("tensor" in p for p in s.params) and s.header.startswith("core/") and "core/q8.h" != s.header:
            return "All, unless the description or an error says otherwise."
        if any("tensor" in p for p in s.params) or s.records:
            return "Those of the ops that it calls; see the errors."
        return "f32, if the result is a tensor." if s.result == "tn_tensor *" else "No tensor is read or returned."
    pairs = [p.split(">") for p in api.ops[s.op]["dtypes"].split()]
    if not pairs:
        return "Those that the description names; see the errors."
    same = [a for a, b in pairs if a == b]
    other = ["%s (result %s)" % (a, b) for a, b in pairs if a != b]
    return ", ".join(same + other) + ". Other dtypes are rejected." * (len(pairs) < 7)


def strides(s, api):
    if s.op:
        return {"equal": "Any strides, 0 included, with the bits of a contiguous tensor.",
                "rejected": "Contiguous only.",
                "other": "Any strides."}[api.ops[s.op]["strides"]]
    if any("tensor" in p for p in s.params):
        return "Any strides."
    return "Contiguous result." if s.result == "tn_tensor *" else "Not applicable: no tensor is read."


def errors(s):
    """What an error does, and the texts."""
    own = "" if s.errors else " It raises none of its own" + (
        "; functions that it calls may raise theirs." if s.guard else ".")
    if not s.guard:
        return "It works while an error is set." + own
    returned = {"tn_status": "its status", "void": "at once", "bool": "false", "double": "NaN or 0"}.get(
        s.result, "NULL" if s.result.endswith("*") else "0 or an empty value")
    if s.guard == "call":
        return "While an error is set the call does nothing and returns %s." % returned + own
    return "While an error is set the calls that it makes do nothing, and it returns %s." % returned + own


def formula(s, api):
    """The first comment of an op's file."""
    if s.op and s.source in api.sources.texts and s.source.startswith("autograd/ops/"):
        text = re.match(r"/\*(.*?)\*/", api.sources.texts[s.source], re.S)[1]
        return "\n".join(re.sub(r"^ \* ?", "", line) for line in text.strip().split("\n"))
    return ""


KINDS = {
    "struct": "A value of the caller: it owns nothing but what a member's comment says. Copy it by assignment, unless "
              "it is a module, which has one owner.",
    "type": "Opaque: only functions of the library make, change and free it.",
    "enum": "A value.", "constant": "A value, fixed at compile time.", "macro": "Text, expanded by the preprocessor.",
    "callback": "The library calls it in the thread of the call that it was passed to, unless the description says "
                "otherwise.",
    "call": "Expanded where it is written; each argument is evaluated once.",
}


def contract(s, api):
    """(field, text) for each field that applies."""
    target = api.symbols[s.owner] if s.kind == "call" and s.owner in api.symbols else s
    if target.kind == "function":
        differences = " ".join(api.departures.get(target.op or target.name[3:], ()))
        return [("Result", first_match(OWNER, target, api)), ("Tape", tape(target, api)),
                ("Dtypes", dtypes(target, api)), ("Strides", strides(target, api)),
                ("In place", first_match(IN_PLACE, target, api)), ("Threads", first_match(THREADS, target, api)),
                ("Errors", errors(target)), ("Determinism", first_match(DETERMINISM, target, api)),
                ("Formula", formula(target, api) or "No formula of its own."),
                ("Differences from PyTorch", differences or (
                    "None known." if target.op else "Names and options: docs/guide/pytorch.md.")
                 if s.torch else "PyTorch has no call of this name.")]
    out = [("Result", KINDS[s.kind])]
    if s.kind == "struct":
        given = api.symbols.get(defaults_of(s.name))
        if s.name.endswith(("_config", "_args")):
            out.append(("Defaults", "%s; members without a default there are 0." % given.name if given else
                        "All members are 0."))
    if s.kind == "constant" and s.owner:
        out.append(("Type", s.owner))
    if s.kind in ("macro", "constant") and s.body:
        out.append(("Value", s.body))
    return out + [("Threads", "No state: any thread."), ("Errors", "None at run time; a wrong use does not compile.")]


def defaults_of(name):
    """The macro with the defaults of a struct: tn_x_config has TN_X_DEFAULTS, tn_x_args TN_X_ARGS_DEFAULTS."""
    return re.sub(r"_CONFIG$", "", name.upper()) + "_DEFAULTS"
