#!/usr/bin/env python3
"""Makes HTML and PDF of the generated texts: render.py GENERATED OUTPUT. Called by scripts/paper-render."""

import sys
from pathlib import Path

import pypandoc
import typst

TEXTS = ["paper", "appendix"]

# No date in the file, or two of the same text would differ.
SETUP = """#set document(date: none)
#set page(paper: "a4", margin: (x: 1.6cm, y: 1.5cm), numbering: "1")
#set text(size: 8.5pt)
#set par(leading: 0.5em, spacing: 0.75em)
#show heading: set block(above: 1em, below: 0.6em)
#set table(inset: (x: 3pt, y: 1.8pt), stroke: 0.3pt + luma(70%))
#show table: set text(size: 6.8pt)
#show raw: set text(size: 7.5pt)
#set image(width: 72%)
#show figure: set block(above: 0.7em, below: 0.7em)
#show figure.where(kind: table): set block(breakable: true)
#show figure.caption: set text(size: 7pt)
#let horizontalrule = line(length: 100%)
"""

STYLE = """<style>
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font-family: sans-serif; line-height: 1.45; color: #111; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #bbb; padding: 0.2rem 0.5rem; }
img { max-width: 100%; }
</style>
"""


def render(name, generated, out):
    text = (generated / f"{name}.md").read_text()
    head = out / "style.html"
    head.write_text(STYLE)
    # Lines are never too long for a table's columns to be as wide as what is in them.
    where = ["--resource-path", str(generated), "--columns=10000"]
    options = ["--standalone", "--embed-resources", "--toc", "--include-in-header", str(head), *where]
    pypandoc.convert_text(text, "html5", format="markdown", outputfile=str(out / f"{name}.html"), extra_args=options)
    head.unlink()
    title = next(line for line in text.splitlines() if line.startswith("title:")).split(":", 1)[1].strip().strip('"')
    body = pypandoc.convert_text(text, "typst", format="markdown", extra_args=where)
    # Pictures are named relative to the text, so the source stands beside them for a moment.
    source = out / f"{name}.typ"
    source.write_text(f"{SETUP}= {title}\n{body}")
    for picture in generated.glob("*.svg"):
        (out / picture.name).write_bytes(picture.read_bytes())
    (out / f"{name}.pdf").write_bytes(typst.compile(str(source), root=str(out), format="pdf"))
    for picture in generated.glob("*.svg"):
        (out / picture.name).unlink()
    source.unlink()
    print(f"{out / name}.html and .pdf")


def main():
    generated, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in TEXTS:
        render(name, generated, out)


if __name__ == "__main__":
    main()
