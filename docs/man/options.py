#!/usr/bin/env python3
"""Writes the option lists of a manual page from --help: options.py PROGRAM PAGE...

An option of the page keeps its prose; its letter and value are those of --help. A new one gets the words of --help, a
removed one goes. PROGRAM is the path of the program; `tests/project/man.sh --fix` calls this for all pages."""
import re
import subprocess
import sys

OPTION = re.compile(r"^  (?:-(.),|   ) --([a-z0-9-]+)(?: (\S+))?(?:  +(.*))?$")


def shown(program, command):
    """The options of --help, of the command and of every command: [(name, item, sentence)]."""
    text = subprocess.run([program] + command + ["--help"], check=True, capture_output=True, text=True).stdout
    lists, common = ([], []), 0
    for line in text.splitlines():
        common = common or line.startswith("Options of every command:")
        match = OPTION.match(line)
        if match:
            letter, name, value, sentence = match.groups()
            item = ".It %sFl -%s%s" % ("Fl %s , " % letter if letter else "", name, " Ar " + value if value else "")
            lists[common].append([name, item, sentence or ""])
        elif line.startswith(" " * 26) and lists[common]:
            lists[common][-1][2] += " " + line.strip()
    return lists


def prose(sentence):
    """A sentence of --help as mdoc."""
    sentence = sentence.strip().replace("\\", "\\e")
    return [re.sub(r"^([.'])", r"\\&\1", sentence[:1].upper() + sentence[1:] + ".")]


def listed(section, options):
    """The section with one list of these options."""
    starts = [i for i, line in enumerate(section) if line.startswith(".Bl -tag")
              and any(re.match(r"\.It Fl .*", after) for after in section[i + 1:i + 2])]
    begin = end = len(section)
    items = {}
    if starts:
        begin, depth, name = starts[0], 0, None
        for end in range(begin, len(section)):
            line = section[end]
            depth += line.startswith(".Bl ") - (line == ".El")
            if not depth:
                break
            match = re.match(r"\.It Fl (?:\S , Fl )?-([a-z0-9-]+)", line) if depth == 1 else None
            if match:
                name = match[1]
                items[name] = []
            elif name:
                items[name].append(line)
        end += 1
    if not options:
        return section[:begin] + section[end:]
    names = [o[0] for o in options]
    order = [n for n in items if n in names]
    for k, name in enumerate(names):
        if name not in order:
            order.insert(order.index(names[k - 1]) + 1 if k else 0, name)
    made = [".Bl -tag -width Ds"]
    for name in order:
        _, item, sentence = options[names.index(name)]
        made += [item] + (items[name] if name in items else prose(sentence))
    return section[:begin] + made + [".El"] + section[end:]


def main(program, *pages):
    for page in pages:
        with open(page, encoding="utf8") as f:
            lines = f.read().splitlines()
        sections, out, common = [[]], [], None
        for line in lines:
            if line.startswith((".Sh ", ".Ss ")):
                sections.append([])
            sections[-1].append(line)
        commands = any(s and s[0].startswith(".Ss ") for s in sections)
        for section in sections:
            title = section[0][4:] if section else ""
            if section and section[0].startswith(".Ss "):
                own, common = shown(program, [title])
                section = listed(section, own)
            elif title == "OPTIONS":
                own, every = shown(program, []) if not commands else ([], common)
                section = listed(section, own + every)
            out += section
        if out != lines:
            with open(page, "w", encoding="utf8") as f:
                f.write("\n".join(out) + "\n")
            print("written: " + page)


if __name__ == "__main__":
    main(*sys.argv[1:])
