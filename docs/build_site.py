"""Builds the documentation as a site: `make site`, or `python docs/build_site.py [--serve]`.

    README.md, docs/, and every file they link to    ->  build/pages/     the same tree, so that relative links hold
    the command line, the settings, the docstrings   ->  build/pages/docs/reference/{commands,settings,objects}.md
    build/pages/                                     ->  build/site/      by Zensical, with zensical.toml

Nothing is fetched. A link or an anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
STARTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
OBJECTS = (
    "truegold.verifiers",
    "truegold.verifiers.verdict",
    "truegold.verifiers.reward",
    "truegold.pipeline.curation.api",
    "truegold.pipeline.rules",
    "truegold.train.turns.environment",
)
"""Modules whose docstrings are pages of the reference."""


def prose(text: str) -> str:
    """Return a page without its blocks of code, in which nothing is a link."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def local_links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the anchor of every link of a page that stays in the repository."""
    for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def linked_files() -> set[Path]:
    """Return the pages of the site and all files that they link to, from link to link."""
    waiting = [ROOT / name for name in STARTS]
    waiting += [path for path in (ROOT / "docs").rglob("*") if path.is_file() and path.suffix != ".py"]
    linked: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in linked and path.is_file():
            linked.add(path)
            if path.suffix == ".md":
                waiting += [target for target, _ in local_links(path)]
    return linked


def nav_pages(entries: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield title and path of every page of the navigation, in its order."""
    for entry in entries:
        for title, target in entry.items():
            if isinstance(target, str):
                yield title, target
            else:
                yield from nav_pages(target)


def commands_page() -> str:
    """Return the reference of the command line, as Typer writes it."""
    PAGES.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-P", "-m", "typer", "truegold.flows.cli.app", "utils", "docs", "--name", "truegold"]
    text = subprocess.run(command, cwd=ROOT / "build", capture_output=True, text=True, check=True).stdout
    return text.replace("# `truegold`\n", "# Commands\n", 1).replace("&#x27;", "'").replace("&quot;", '"')


def settings_page() -> str:
    """Return the reference of the settings: a table for each section of a configuration, from the models."""
    from truegold.flows.config import RunConfig

    schema = RunConfig.model_json_schema()
    places = section_places(schema)
    headings = {name: found[0] for name, found in places.items()}
    parts = [
        "# Settings",
        "A configuration is a YAML file. `truegold init DATA` writes a commented one, `--set FIELD=VALUE` "
        "overrides a setting, and `truegold run run.yaml --dry-run --json` prints the value of each.",
        "## A run",
        settings_table(schema, headings),
    ]
    for name, (heading, *others) in places.items():
        section = schema["$defs"][name]
        parts += [f"## {heading}", section.get("description", "")]
        parts += [f"Also as {', '.join(f'`{other}`' for other in others)}."] if others else []
        parts += [settings_table(section, headings)]
    return "\n\n".join(parts) + "\n"


def section_places(schema: dict[str, Any]) -> dict[str, list[str]]:
    """Return where each model of a section may stand: `train.optimizer`; of several in one place also its type."""
    places: dict[str, list[str]] = {}
    waiting = [("", schema)]
    while waiting:
        path, section = waiting.pop(0)
        for field, value in section.get("properties", {}).items():
            for name in dict.fromkeys(re.findall(r"#/\$defs/(\w+)", json.dumps(value))):
                model = schema["$defs"][name]
                if "properties" in model:
                    kind = model["properties"].get("type", {}).get("const")
                    place = f"{path}{field}" + (f" of the type {kind}" if kind else "")
                    if name not in places:
                        waiting.append((f"{path}{field}.", model))
                        place += " in a list" if [place] in places.values() else ""
                    if place not in places.setdefault(name, []):
                        places[name].append(place)
    return places


def settings_table(section: dict[str, Any], headings: dict[str, str]) -> str:
    """Return the settings of one model as a table."""
    lines = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in section["properties"].items():
        default = json.dumps(field.get("default"), ensure_ascii=False)
        shown = f"`{default}`" if "default" in field and len(default) < 40 else ""
        cells = (f"`{name}`", type_of(field, headings), shown, " ".join(field.get("description", "").split()))
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |")
    return "\n".join(lines)


def type_of(field: dict[str, Any], headings: dict[str, str]) -> str:
    """Return the type of a setting in words, with links to the sections that it may hold."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        heading = headings.get(name, name)
        return f"[{heading}](#{heading.lower().replace('.', '').replace(' ', '-')})" if name in headings else name
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(type_of(option, headings) for option in options))
    if field.get("type") == "array":
        return f"list of {type_of(field['items'], headings)}" if "items" in field else "list"
    return str({"object": "mapping", "null": "none"}.get(field.get("type", ""), field.get("type", "any")))


def objects_page() -> str:
    """Return the page that mkdocstrings fills with the docstrings of the Python interface."""
    intro = "# Docstrings\n\nThe public modules in their own words. [Python interface](python.md) has examples.\n"
    return intro + "".join(f"\n::: {module}\n" for module in OBJECTS)


def write_pages() -> None:
    """Fill build/pages with everything that the site is made of."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in linked_files():
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    shutil.copytree(ROOT / "pipeline" / "third_party" / "katex", PAGES / "katex")
    reference = PAGES / "docs" / "reference"
    made = {"commands": commands_page, "settings": settings_page, "objects": objects_page}
    for name, make in made.items():
        (reference / f"{name}.md").write_text(make(), encoding="utf-8")
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    lines = [f"# {config['project']['site_name']}", f"> {config['project']['site_description']}", "## Docs"]
    lines += [f"- [{title}]({path})" for title, path in nav_pages(config["project"]["nav"])]
    (PAGES / "llms.txt").write_text("\n\n".join(lines[:3]) + "\n\n" + "\n".join(lines[3:]) + "\n", encoding="utf-8")


def main() -> int:
    """Write the pages and build the site; with `--serve` show it, too."""
    write_pages()
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=ROOT, check=False)
    for page in PAGES.rglob("*.md"):  # llms.txt lists the pages as they were written
        if built.returncode == 0:
            shutil.copyfile(page, ROOT / "build" / "site" / page.relative_to(PAGES))
    if built.returncode == 0 and "--serve" in sys.argv:
        subprocess.run([sys.executable, "-m", "http.server", "--directory", ROOT / "build" / "site"], check=False)
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
