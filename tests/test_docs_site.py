"""The docs as a site: stages' pages are the code's, links work there and in the repository."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from scripts.docs_site import ABOVE, NOTEBOOK, as_markdown, slug

from aria_dvc.errors import AriaError
from aria_dvc.params import load_params
from aria_dvc.pipeline.stage_pages import (
    FOLDER,
    MARK,
    Pipeline,
    anchor,
    index_part,
    knobs,
    pages,
    stage_part,
)
from aria_dvc.records.schemas import SCHEMAS

ROOT = Path(__file__).parents[1]
PIPELINE = Pipeline.of(ROOT)
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
BELOW = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
ON_SITE = BELOW | set(ABOVE)
PAGES = sorted(path for path in ON_SITE if path.endswith((".md", NOTEBOOK)))
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    """The text of a page without its blocks of code."""
    text = (ROOT / page).read_text("utf-8")
    text = as_markdown(text) if page.endswith(NOTEBOOK) else text
    return re.sub(r"\]\(data:[^)]*\)", "]()", FENCED.sub("", text))


def section(text: str, head: str) -> str:
    return text.partition(f"## {head}\n")[2].partition("\n## ")[0]


# Pages of stages


def test_the_pages_of_stages_are_those_of_the_code():
    found = pages(ROOT)
    assert {path.stem for path in found} == {*PIPELINE.stages, "README"}
    assert {path.name for path in (ROOT / FOLDER).iterdir()} == {path.name for path in found}
    for path, text in found.items():
        assert (ROOT / path).read_text("utf-8") == text, "run `make knobs`"


def test_a_page_says_who_writes_what_a_stage_reads():
    reads = section(stage_part(PIPELINE, "cluster"), "Reads")
    assert "`data/embeddings/<category>/<log>.parquet` | [embed](embed.md)" in reads
    assert "`data/turns/<category>/<log>.parquet` | [prepare](prepare.md)" in reads
    reads = section(stage_part(PIPELINE, "evaluate"), "Reads")
    assert "`data/policy/<category>/<variant>` | [policy](policy.md), [online](online.md)" in reads
    assert "| the code |" in section(stage_part(PIPELINE, "code"), "Reads")


def test_a_page_lists_all_outputs_and_what_their_rows_are():
    writes = section(stage_part(PIPELINE, "prepare"), "Writes")
    assert "`data/episodes/<category>/<log>.parquet` | one acting role of an episode" in writes
    writes = section(stage_part(PIPELINE, "report"), "Writes")
    for path in ("data/report", "metrics/intentions", "metrics/evaluation.json"):
        assert f"- `{path}`" in writes


def test_every_knob_is_in_one_table_and_shows_what_is_shipped():
    tables = [section(stage_part(PIPELINE, stage), "Knobs") for stage in PIPELINE.stages]
    told = "\n".join([index_part(PIPELINE), *tables])
    for name, block in load_params(ROOT / "params.yaml").model_dump().items():
        assert f"| `{name}" in told
        for knob in block if isinstance(block, dict) and name in PIPELINE.stages else ():
            assert re.search(rf"\| `{name}\.{knob}[.`]", told), f"{name}.{knob}"
    assert "| `aggregate.gamma` | `0.95` | discount per own turn" in told
    assert "| `policy.lora.layers` | `null` |" in told
    assert "| `logs.<log>.episodes` | |" in told
    assert "| `endpoints.<name>.model` | |" in told
    assert "| `evaluate.games.<game>.episodes` | |" in told


def test_what_a_variant_changes_is_described_once():
    assert [knob.name for knob in knobs(PIPELINE.params, ("variants",))] == ["variants"]


def test_other_knobs_lead_to_where_they_are_described():
    others = section(stage_part(PIPELINE, "truth"), "What else of params.yaml reruns it")
    assert "- [`seed`](README.md#knobs-of-no-one-stage)" in others
    assert "- [`aggregate.gamma`](aggregate.md#knobs)" in others
    assert "- [`logs.<log>`](README.md#knobs-of-no-one-stage)" in others


def test_a_stage_without_a_page_or_a_page_without_its_mark_is_named(tmp_path):
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    with pytest.raises(AriaError, match=r"docs/stages/code\.md is missing: say there"):
        pages(tmp_path)
    (tmp_path / FOLDER).mkdir(parents=True)
    for name in (*PIPELINE.stages, "README"):
        (tmp_path / FOLDER / f"{name}.md").write_text(f"# By hand\n\n{MARK}\nold\n")
    assert pages(tmp_path)[FOLDER / "code.md"].startswith(f"# By hand\n\n{MARK}\n\n## Runs\n")
    (tmp_path / FOLDER / "code.md").write_text("# By hand\n")
    with pytest.raises(AriaError, match=r"docs/stages/code\.md: has no line to write below"):
        pages(tmp_path)


def test_a_schemas_anchor_is_that_of_its_heading():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/data.md").read_text("utf-8"), re.MULTILINE)
    assert [anchor(schema) for schema in SCHEMAS] == [slug(head, "-") for head in headings]
    assert anchor(SCHEMAS[-1]) == "evaluation-dataevalcategoryvariantparquet"


# The site


def listed(entries: list) -> list[str]:
    """The pages of a nav, in its order."""
    found = []
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found += listed(value) if isinstance(value, list) else [value]
    return found


def test_the_menu_has_every_page_once():
    assert sorted(listed(CONFIG["nav"])) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_links_work_on_the_site_as_in_the_repository(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose(page)):
        path = (ROOT / page).parent.joinpath(target).resolve().relative_to(ROOT.resolve())
        assert path.as_posix() in ON_SITE, f"{page}: {target}: see ABOVE in scripts/docs_site.py"


@pytest.mark.parametrize("page", PAGES)
def test_a_link_into_a_page_leads_to_a_heading_of_it(page):
    for target, place in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", prose(page)):
        path = (ROOT / page).parent / target if target else ROOT / page
        heads = re.findall(r"^#+ (.+)$", prose(path.resolve().relative_to(ROOT).as_posix()), re.M)
        assert place in {slug(head, "-") for head in heads}, f"{page}: {target}#{place}"


@pytest.mark.parametrize("page", PAGES)
def test_lists_and_tables_stand_apart_from_text(page):
    """The repository's host shows them without a blank line before, the site does not."""
    lines = prose(page).splitlines()
    for before, line in pairwise(lines):
        for start in (r"\|", r"([-*]|\d+\.) "):
            begins = re.match(start, line) and not re.match(start, before)
            assert not begins or not before or before.startswith("  "), f"{page}: {line}"


def test_only_a_diagram_asks_for_the_network():
    assert [page for page in PAGES if "```mermaid" in (ROOT / page).read_text("utf-8")] == [
        "README.md"
    ]
    assert CONFIG["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css", "repo_url"} & set(CONFIG)
    assert CONFIG["plugins"] == ["search"]
