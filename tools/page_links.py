"""Finds dead links in Markdown pages: what they name beside the page, and headings of pages.

Links to elsewhere (https:) are not followed. For tidy.py (the source) and the tests of what is installed.
"""

import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")
HEADING = re.compile(r"#{1,6} +(.*?)[ #]*$")


def prose_lines(text):
    """(line number, line) of `text` without its blocks of code, and without code within lines."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, re.sub(r"`[^`]*`(?!\])", "", line)


def anchors_of(text):
    """What `#...` may name in a page, as GitHub makes it of headings."""
    anchors = set()
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        heading = None if is_code else HEADING.match(line)
        if not heading:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = 0
        while anchor + (f"-{count}" if count else "") in anchors:
            count += 1
        anchors.add(anchor + (f"-{count}" if count else ""))
    return anchors


def dead_links(page):
    """(line number, link, what is wrong) of the file `page`."""
    text = page.read_text()
    for number, line in prose_lines(text):
        for link in LINK.findall(line):
            if ELSEWHERE.match(link):
                continue
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if name.startswith("/"):
                yield number, link, "a link of a page is relative to it"
            elif not target.exists():
                yield number, link, "there is no such file"
            elif anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text()):
                yield number, link, f"{target.name} has no such heading"
