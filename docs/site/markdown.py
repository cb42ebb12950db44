"""Markdown as the pages of docs/ use it, to HTML: headings, paragraphs, lists, tables, code, links, images, bold.
`link` converts the target of a link, and returns None for a target that is not part of the site."""
import html
import re


def inline(text, link):
    spans = []  # code, which the rules below must not change

    def keep(m):
        spans.append(link.code(m[1]))
        return "\1%d\1" % (len(spans) - 1)
    text = html.escape(re.sub(r"`([^`]+)`", keep, text), quote=False)
    text = re.sub(r"!\[([^]]*)\]\(([^)\s]+)\)", lambda m: '<img src="%s" alt="%s" loading="lazy">' % (
        link.target(m[2]) or m[2], html.escape(m[1])), text)

    def linked(m):
        target = link.target(html.unescape(m[2]))
        return '<a href="%s">%s</a>' % (html.escape(target), m[1]) if target else m[1]
    text = re.sub(r"\[((?:[^][]|\[[^]]*\])+)\]\(([^)\s]+)\)", linked, text)
    text = re.sub(r"(?<!\w)\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", r"<em>\1</em>", text)
    text = re.sub(r"&lt;(https?://[^\s&]+)&gt;", r'<a href="\1">\1</a>', text)
    return re.sub("\1(\\d+)\1", lambda m: spans[int(m[1])], text)


def anchor(text):
    return re.sub(r"[^\w -]", "", re.sub(r"`", "", text)).strip().lower().replace(" ", "-")


def cells(line):
    line = line.strip().strip("|")
    return [c.strip().replace("\0", "|") for c in
            re.sub(r"`[^`]*`", lambda m: m[0].replace("|", "\0"), line.replace("\\|", "\0")).split("|")]


def convert(text, link):
    """Returns (title, html)."""
    lines, out, i, title, ids = text.split("\n"), [], 0, "", {}

    def paragraph(block):
        return inline(" ".join(x.strip() for x in block), link)

    def listed(start, indent):
        """A list whose markers are at the column indent. Returns (html, next line)."""
        ordered = bool(re.match(r"\s*\d+[.]", lines[start]))
        items, k = [], start
        while k < len(lines):
            m = re.match(r"(\s*)([-*]|\d+[.])\s+(.*)", lines[k])
            if not m or len(m[1]) != indent:
                break
            block, inner, k = [m[3]], "", k + 1
            content = len(m[1]) + len(m[2]) + 1
            while k < len(lines):
                if not lines[k].strip():
                    after = lines[k + 1] if k + 1 < len(lines) else ""
                    if after.startswith(" " * content) and after.strip():
                        k += 1
                        continue
                    break
                m = re.match(r"(\s*)([-*]|\d+[.])\s+", lines[k])
                if m and len(m[1]) <= indent:
                    break
                if m:
                    more, k = listed(k, len(m[1]))
                    inner += more
                    continue
                if not lines[k].startswith(" "):
                    break
                block.append(lines[k])
                k += 1
            items.append("<li>%s%s</li>" % (paragraph(block), inner))
            if k < len(lines) and not lines[k].strip() and k + 1 < len(lines) and \
                    re.match(r" {%d}([-*]|\d+[.])\s" % indent, lines[k + 1]):
                k += 1
        tag = "ol" if ordered else "ul"
        return "<%s>%s</%s>" % (tag, "".join(items), tag), k

    while i < len(lines):
        line = lines[i]
        m = re.match(r"(#{1,4}) (.*)", line)
        if not line.strip():
            i += 1
        elif line.startswith("<!--"):
            while "-->" not in lines[i]:
                i += 1
            i += 1
        elif m:
            level = len(m[1])
            if level == 1 and not title:
                title = re.sub(r"[`*]", "", m[2])
            place = anchor(m[2])
            ids[place] = ids.get(place, -1) + 1  # a second heading of this name: name-1, as GitHub has it
            place += "-%d" % ids[place] if ids[place] else ""
            out.append('<h%d id="%s">%s</h%d>' % (level, html.escape(place), inline(m[2], link), level))
            i += 1
        elif line.startswith("```"):
            language, block = line[3:].strip(), []
            i += 1
            while i < len(lines) and not lines[i].startswith("```"):
                block.append(lines[i])
                i += 1
            i += 1
            out.append('<pre class="%s">%s</pre>' % (language or "text", link.block("\n".join(block), language)))
        elif line.startswith("    "):
            block = []
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip() and i + 1 < len(lines)
                                      and lines[i + 1].startswith("    ")):
                block.append(lines[i][4:])
                i += 1
            out.append("<pre>%s</pre>" % link.block("\n".join(block), ""))
        elif line.startswith("|"):
            rows = []
            while i < len(lines) and lines[i].startswith("|"):
                rows.append(cells(lines[i]))
                i += 1
            head = "".join("<th>%s</th>" % inline(c, link) for c in rows[0])
            body = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % inline(c, link) for c in row) for row in rows[2:])
            out.append('<div class="wide"><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div>' % (
                head, body))
        elif re.match(r"\s*([-*]|\d+[.])\s+", line):
            text, i = listed(i, len(line) - len(line.lstrip()))
            out.append(text)
        else:
            block = []
            while i < len(lines) and lines[i].strip() and not re.match(r"#|```|\||([-*]|\d+[.])\s", lines[i]):
                block.append(lines[i])
                i += 1
            if not block:
                block, i = [line], i + 1
            out.append("<p>%s</p>" % paragraph(block))
    return title, "\n".join(out)
