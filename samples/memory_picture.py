"""Turns the demo's memory table into a picture: PSS over the number of processes.

Usage: memory_picture.py OUT.svg < table

Lines of the table: LABEL COUNT LOAD_MS FIRST_RUN_MS PSS_MB PRIVATE_MB; others are skipped.
"""

import re
import sys

LINE = re.compile(r"^(.+?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$")
COLOURS = ("#7fbf7b", "#d8b365", "#1b7837", "#b2182b")
WIDTH, BAR, GAP, LEFT, RIGHT, TOP = 720, 18, 14, 170, 90, 44


def read_table(lines):
    """{label: [(processes, PSS in MB)]} in the order of the table."""
    table = {}
    for line in lines:
        match = LINE.match(line.strip())
        if match:
            table.setdefault(match[1].strip(), []).append((int(match[2]), float(match[5])))
    return table


def picture(table):
    counts = sorted({count for rows in table.values() for count, _ in rows})
    most = max(pss for rows in table.values() for _, pss in rows)
    scale = (WIDTH - LEFT - RIGHT) / most
    out, y = [], TOP
    for count in counts:
        middle = y + BAR * len(table) / 2 + 4
        out.append(f'<text x="12" y="{middle:.0f}">{count} process{"es" if count > 1 else ""}</text>')
        for (label, rows), colour in zip(table.items(), COLOURS):
            pss = dict(rows).get(count)
            if pss is None:
                continue
            out.append(f'<rect x="{LEFT}" y="{y}" width="{pss * scale:.1f}" height="{BAR - 3}" fill="{colour}">'
                       f'<title>{label}: {pss:.0f} MB</title></rect>')
            out.append(f'<text x="{LEFT + pss * scale + 6:.1f}" y="{y + 12}">{pss:.0f} MB</text>')
            y += BAR
        y += GAP
    x = LEFT
    for label, colour in zip(table, COLOURS):
        out.append(f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{x + 18}" y="24">{label}</text>')
        x += 60 + 7 * len(label)
    title = "Memory (sum of PSS) of processes that each run the same 300 MB model"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            f'font-family="sans-serif" font-size="13" role="img" aria-label="{title}">\n<title>{title}</title>\n'
            f'<rect width="{WIDTH}" height="{y}" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")


def main():
    table = read_table(sys.stdin)
    if not table:
        sys.exit("memory_picture: no line of the table was found")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(picture(table))


if __name__ == "__main__":
    main()
