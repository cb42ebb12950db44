"""A sentence for each public name: from summaries.txt, from its comment in the header, or by the rules of names in
docs/adr/0023. And a meaning for each option: from its comment, or from meanings.txt."""
import os
import re

import contract

LONGEST = 170
VERBS = ("adds allocates appends asks begins borrows builds calls checks clears closes collects compares "
         "completes computes continues converts copies counts creates cuts decodes deletes describes divides "
         "does draws drops encodes ends exchanges extends fills finds follows formats frees freezes generates "
         "gets gives increases invalidates joins keeps leaves loads makes maps marks masks merges moves "
         "multiplies names needs opens orders overwrites packs parses prepares prints puts raises reads "
         "rebuilds receives records reduces registers releases removes renames repeats replaces replays "
         "reports reserves resets restarts restores returns reverses reverts rounds runs samples saves scales "
         "searches selects sends sets shares shifts shows shuffles skips solves sorts splits starts stops "
         "stores subtracts sums swaps switches takes tells tests tokenizes trains turns undoes unpacks updates "
         "uses waits walks wraps writes zeros").split()


def by_name(s):
    """What a function does, if its name says it."""
    m = re.match(r"tn_(\w+?)_(new|create|free|close|forward|run)$", s.name)
    if not m:
        return ""
    result = re.match(r"(?:const )?(?:struct )?tn_(\w+) \*", s.result)
    of = result[1] if result and m[2] in ("new", "create") else m[1]
    return {"new": "Makes a tn_%s" % of, "create": "Is the function that the macro tn_%s_new() calls" % m[1],
            "free": "Frees a tn_%s and what it owns; NULL is ignored" % m[1],
            "close": "Closes and frees a tn_%s; NULL is ignored" % m[1], "forward": "Runs a tn_%s" % m[1],
            "run": "Is the function that the macro tn_%s() calls" % m[1]}[m[2]]


def balanced(text):
    text = re.sub(r"[\[(][^\[\]()]*[\])]", "", text)  # also [0, 1)
    return text.count("(") == text.count(")") and text.count("[") == text.count("]") and text.count('"') % 2 == 0


def shortened(text):
    """The first sentence; of a long one the first clauses."""
    text = " ".join(text.split())
    ends = (m.start() for m in re.finditer(r"(?<=[a-z0-9)\]])\. (?=[A-Z])", text))
    end = next((at for at in ends if balanced(text[:at])), None)
    text = text[:end].rstrip(" .:;")
    if len(text) <= LONGEST:
        return text
    cuts = [m.start() for m in re.finditer(r"[;:,.] ", text) if 30 < m.start() <= LONGEST]
    cuts = [at for at in cuts if balanced(text[:at])]
    return text[:cuts[-1]] if cuts else text


def first_upper(text):
    return text if re.match(r"(tn_|TN_|torch)", text) else text[0].upper() + text[1:]


def joined(items):
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def of_function(s, text, named):
    words = text.split()
    if named:  # the comment adds to what the name tells
        return named + (": " + text if text and not s.name.endswith(("_run", "_create")) else "")
    if not text:
        return ""
    if words[0].rstrip(":,;") in VERBS or len(words) > 3 and text[0].isupper() and balanced(text):
        return first_upper(text)
    if s.op:
        return "Computes " + text + (" in place" if s.name.endswith("_") else "")
    return "Returns " + (text[0].lower() + text[1:] if len(words[0]) > 1 and words[0][1:].islower() else text)


def of_type(s, text, api):
    base = re.sub(r"_(config|args)$", "", s.name)
    if s.name.endswith("_config"):
        return "Has the options of %s()" % next(
            (n for n in (base + "_new", base + "_open", base + "_load", base) if n in api.symbols), base + "_new")
    if s.name.endswith("_args"):
        return "Has the options of %s()" % base
    if text and len(text.split()) > 3 and balanced(text):
        return first_upper(text) if text[0].isupper() else "Is " + text
    if s.kind == "callback":
        return "Is a function that the caller supplies" + (": " + text if text else "")
    if s.kind == "enum":
        names = [m["names"][0] for m in s.members]
        return "Is one of %s" % joined(names[:3] + (["others"] if len(names) > 3 else []))
    maker = next((n for n in (base + "_new", base + "_open", base + "_load") if n in api.symbols), "") or next(
        (x.name for x in api.symbols.values() if x.result == s.name + " *"), "")
    if maker:
        return "Is what %s() returns%s" % (maker, ": " + text if text else "")
    names = [n for m in s.members for n in m["names"]]
    return "Holds %s" % joined([n for n in names][:6]) if names else "Is " + text


def raw(s, api, group=False):
    """The comment of a name, or the formula of its op."""
    text = s.tail or s.lead.split("\n\n")[0]
    if not text and s.op and s.source and s.source.startswith("autograd/ops/"):
        text = contract.formula(s, api).split("\n")[0].split(" — ", 1)[-1]
    if re.match(r"clang-format|declared in", text):
        text = ""
    return shortened(text or (s.group.split("\n\n")[0] if group else ""))


def one_line(s, api):
    """What a name is or does, as a sentence."""
    if s.name in api.summaries:
        return api.summaries[s.name]
    text = raw(s, api)
    if s.kind in ("function", "call"):
        named = by_name(s)
        owner = api.symbols.get(s.owner) if s.kind == "call" and s.owner else None
        said = of_function(s, text, named) if text or named else ""
        if owner and (not text or not said):
            said = of_function(owner, raw(owner, api), "") or api.summaries.get(owner.name, "") or named
            said = named if said.startswith("Is the function") and named else said
        said = said or of_function(s, raw(s, api, True), "")
        if s.name.isupper():
            said = said if len(text.split()) > 3 else "Is a macro" + (": " + text if text else "")
    elif s.kind == "constant":
        said = "Is a value of %s%s" % (s.owner, ": " + text if text else "") if s.owner else text
    elif s.kind == "macro":
        if s.name.endswith("_DEFAULTS"):
            said = "Has the defaults of tn_%s_config, for C++ and for macros" % s.name[3:-9].lower()
        else:
            said = first_upper(text) if len(text.split()) > 3 else "Is the value %s%s" % (
                s.body[:40], ": " + text if text else "")
    else:
        said = of_type(s, text, api)
    return said.rstrip(" .:;,") + "." if said else ""


def is_sentence(text):
    """A sentence starts with a capital or a name, has three words or more, balanced brackets, ends with a period."""
    return bool(re.match(r'["A-ZΣ]|tn_|torch', text)) and text.endswith(".") and len(text.split()) >= 3 and \
        balanced(text) and len(text) < 260


def lines_of(folder, name):
    """The lines "name text" of a file, without comments, as a dictionary."""
    with open(os.path.join(folder, name), encoding="utf8") as f:
        return dict(line.rstrip("\n").split(" ", 1) for line in f if line.strip() and not line.startswith("#"))


def options(api):
    """The structs of options."""
    return [s for s in api.symbols.values() if s.kind == "struct" and s.name.endswith(("_config", "_args"))]


def meaning(api, s, member):
    """The meanings of the names of a member without a comment."""
    found = [(n, api.meanings.get("%s.%s" % (s.name, n)) or api.meanings.get(n, "")) for n in member["names"]]
    if not all(text for _, text in found):
        return ""
    return found[0][1] if len(found) == 1 else "; ".join("%s: %s" % pair for pair in found)


def load(api, root, folder=None):
    """Reads summaries.txt and meanings.txt. A name there that does not exist is listed by wrong()."""
    folder = folder or os.path.join(root, "docs/site")
    api.summaries, api.meanings = lines_of(folder, "summaries.txt"), lines_of(folder, "meanings.txt")
    api.unused = set(api.meanings)
    for s in options(api):
        for m in s.members:
            if not m["comment"]:
                api.unused -= {key for n in m["names"] for key in ("%s.%s" % (s.name, n), n)}
                m["comment"] = meaning(api, s, m)


def wrong(api):
    out = ["summaries.txt: %s does not exist" % n for n in api.summaries if n not in api.symbols]
    out += ["meanings.txt: no option needs %s" % n for n in sorted(api.unused)]
    out += ["%s.%s has no meaning; write its comment in the header, or a line in meanings.txt" % (
        s.name, ", ".join(m["names"])) for s in options(api) for m in s.members if not m["comment"]]
    seen = {}
    for s in api.symbols.values():
        if s.kind in ("function", "call"):
            seen.setdefault(one_line(s, api), []).append(s)
    for text, group in seen.items():
        names = [s.name for s in group if not any(s.name == x.owner for x in group)]
        if len(names) > 1 and not all(n.endswith(("_new", "_run", "_create", "_load", "_save")) for n in names):
            out.append("%s have one sentence: '%s'; write one for each in summaries.txt" % (" ".join(names), text))
    return out + ["%s has no sentence, but: '%s'; write its comment in the header, or a line in summaries.txt" % (
        s.name, one_line(s, api)) for s in api.symbols.values() if not is_sentence(one_line(s, api))]
