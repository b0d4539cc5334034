# fagen: the tree of pages that MkDocs makes the documentation site of: the repository's own, with what they link to.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site_pages.py OUT [--bin DIR]: writes OUT/pages and OUT/mkdocs.yml.

Pages keep their places, README.md and docs/ and all, so that links between them hold as they are. Files that they link to are copied; of a folder
that they link to a page lists the files. --bin: the manual pages of its fagen and fagen-run become pages, too.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
TOP = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
CONFIGURATION = """site_name: fagen
site_description: a compiler for attention kernels
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: readthedocs
  highlightjs: false
plugins: [search]
markdown_extensions: [tables, fenced_code, toc, sane_lists]
validation:
  nav: {{omitted_files: ignore, not_found: warn, absolute_links: warn}}
  links: {{not_found: warn, absolute_links: warn, unrecognized_links: warn, anchors: warn}}
nav:
  - fagen: README.md
{nav}"""


def pages_below(folder):
    for directory, _, names in os.walk(os.path.join(ROOT, folder)):
        yield from (os.path.relpath(os.path.join(directory, name), ROOT) for name in sorted(names) if name.endswith(".md"))


def linked(text, page):
    """Paths in the repository that a page links to."""
    for match in LINK.finditer(FENCE.sub("", text)):
        if "://" not in match[1]:
            yield os.path.normpath(os.path.join(os.path.dirname(page), match[1]))


def listing(folder):
    """A page of a folder's files, which lie next to it."""
    names = sorted(name for name in os.listdir(os.path.join(ROOT, folder)) if os.path.isfile(os.path.join(ROOT, folder, name)))
    return f"# {folder}\n\n" + "".join(f"- [{name}]({name})\n" for name in names), names


def copy(path, out):
    target = os.path.join(out, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(ROOT, path), target)


def write(path, out, text):
    target = os.path.join(out, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def to_page(text, page, folder, index):
    """Links to a folder lead to its page."""
    here = re.escape(os.path.relpath(folder, os.path.dirname(page) or "."))
    return re.sub(rf"\]\({here}/?\)", lambda match: f"]({match[0][2:-1].rstrip('/')}/{index})", text)


def add_page(page, out, done):
    """The page, and what it links to, each once."""
    if page in done:
        return
    done.add(page)
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    for path in linked(text, page):
        if os.path.isfile(os.path.join(ROOT, path, "README.md")):
            add_page(os.path.join(path, "README.md"), out, done)
            text = to_page(text, page, path, "README.md")
        elif os.path.isdir(os.path.join(ROOT, path)):
            index, names = listing(path)
            write(os.path.join(path, "index.md"), out, index)
            for name in names:
                copy(os.path.join(path, name), out)
            text = to_page(text, page, path, "index.md")
        elif path.endswith(".md") and os.path.exists(os.path.join(ROOT, path)):
            add_page(path, out, done)
        elif os.path.exists(os.path.join(ROOT, path)):
            copy(path, out)
    write(page, out, text)


def plain(text):
    """A line of troff in Markdown: bold, italics, signs."""
    text = re.sub(r"([*_`<>|])", r"\\\1", text)
    text = re.sub(r"\\fB(.*?)\\fR", r"**\1**", text)
    text = re.sub(r"\\fI(.*?)\\fR", r"*\1*", text)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'").replace("\\e", "\\\\")


def manual(tool):
    """The tool's manual page as Markdown: the few macros that --generate=man writes."""
    source = subprocess.run([tool, "--generate=man"], capture_output=True, text=True, check=True).stdout
    lines, depth, is_term, is_code = [f"# {os.path.basename(tool)}(1)", ""], 0, False, False
    for line in source.splitlines():
        macro, _, rest = line.partition(" ")
        if macro == ".nf" or macro == ".fi":
            is_code = macro == ".nf"
            lines += ["```" if is_code else "```", *([] if is_code else [""])]
        elif is_code:
            lines.append(line.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\"))
        elif macro == ".SH":
            lines += ["", f"## {rest.capitalize()}", ""]
            depth = 0
        elif macro == ".TP":
            is_term = True
        elif macro in (".RS", ".RE"):
            depth += 1 if macro == ".RS" else -1
        elif macro in (".PP", ".br"):
            lines.append("")
        elif not macro.startswith("."):
            lines.append(f"{'    ' * depth}- {plain(line)}: " if is_term else ("    " * depth + "  " if lines[-1].lstrip().startswith("-") else "") + plain(line))
            is_term = False
    return "\n".join(lines) + "\n"


def navigation(manuals):
    """The sections of docs/README.md, in its order."""
    with open(os.path.join(ROOT, "docs", "README.md"), encoding="utf-8") as file:
        parts = re.split(r"^## (.*)$", file.read(), flags=re.M)
    lines = []
    for name, text in zip(parts[1::2], parts[2::2]):
        lines.append(f"  - {name}:\n")
        rows = [row for row in text.splitlines() if row.startswith("|")]
        for title, path in [found for row in rows for found in re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)\)", row.split("|")[1])]:
            lines.append(f"    - {title}: docs/{path}\n")
    if manuals:
        lines.append("  - Manual pages:\n" + "".join(f"    - {name}(1): man/{name}.md\n" for name in manuals))
    return "".join(lines + ["  - Changelog: CHANGELOG.md\n", "  - Contributing: CONTRIBUTING.md\n", "  - Evidence: evidence/README.md\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--bin")
    options = parser.parse_args()
    pages, done = os.path.join(options.out, "pages"), set()
    shutil.rmtree(pages, ignore_errors=True)
    for page in [*TOP, *pages_below("docs"), "evidence/README.md"]:
        add_page(page, pages, done)
    manuals = [name for name in ("fagen", "fagen-run") if options.bin and os.path.exists(os.path.join(options.bin, name))]
    for name in manuals:
        write(f"man/{name}.md", pages, manual(os.path.join(options.bin, name)))
    write("mkdocs.yml", options.out, CONFIGURATION.format(nav=navigation(manuals)))
    print(f"{len(done)} pages, {len(manuals)} manual pages", file=sys.stderr)


if __name__ == "__main__":
    main()
