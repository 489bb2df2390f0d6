"""A stage's fingerprint follows its imports, and changes with what the code does alone."""

import importlib

import pytest

from aria_dvc import fingerprints


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A little package in place of ours: a (lazily) needs b, b names c for type checkers only."""
    folder = tmp_path / "aria_dvc"
    (folder / "games" / "data").mkdir(parents=True)
    (folder / "settings").mkdir()
    (folder / "known" / "cities" / "data").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "a.py": '"""A."""\ndef f():\n    "Doc."\n    from aria_dvc.b import x\n    return x\n',
        "b.py": "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import aria_dvc.c\nx = 1\n",
        "c.py": "y = 2\n",
        "errors.py": "z = 3\n",
        "settings/training.py": "Kind = Literal['a', 'b']\n"
        "class Lora(Block):\n"
        "    rank: int = Field(ge=1, description='its size')\n"
        "    layers: int | None = Field(None, description='how many')\n"
        "    clip: Clip\n"
        "    @field_validator('rank')\n    def _checked(cls, rank):\n        return rank\n"
        "    def doubled(self):\n        return 2 * self.rank\n",
        "games/__init__.py": "",
        "games/registry.py": "from importlib import import_module\n"
        'def get(name):\n    return import_module(f"aria_dvc.games.{name}")\n',
        "games/chess.py": "import aria_dvc.c\n",
        "games/data/openings.csv": "e4\n",
        "oracles.py": "from importlib import import_module\n"
        'def get(kind):\n    return import_module(f"aria_dvc.known.{kind}.oracle")\n',
        "known/__init__.py": "",
        "known/cities/__init__.py": "",
        "known/cities/oracle.py": "import aria_dvc.c\n",
        "known/cities/data/cities.csv": "Paris\n",
        "known/cities/aside.py": "w = 4\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (tmp_path / "stage.py").write_text("import aria_dvc.a\nimport aria_dvc.errors\n")
    (tmp_path / "play.py").write_text("from aria_dvc.games.registry import get\n")
    (tmp_path / "ask.py").write_text("from aria_dvc.oracles import get\n")
    (tmp_path / "learn.py").write_text("import aria_dvc.settings.training\n")
    importlib.reload(fingerprints)
    monkeypatch.setattr(fingerprints, "SOURCE", tmp_path)
    yield tmp_path
    importlib.reload(fingerprints)


def rewritten(path, old, new):
    """The change, seen by a fresh process."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    for cached in (fingerprints._tree, fingerprints._meaning, fingerprints._imports):
        cached.cache_clear()


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not(package):
    found = fingerprints.stage_fingerprint(package / "stage.py")
    assert list(found) == ["stage.py", "aria_dvc.a", "aria_dvc.b"]


def test_modules_imported_by_name_and_their_data_count(package):
    found = fingerprints.stage_fingerprint(package / "play.py")
    assert {"aria_dvc.games.chess", "aria_dvc.c", "aria_dvc/games/data/openings.csv"} <= set(found)
    (package / "aria_dvc/games/data/openings.csv").write_text("d4\n")
    changed = fingerprints.stage_fingerprint(package / "play.py")
    assert {name for name in found if found[name] != changed[name]} == {
        "aria_dvc/games/data/openings.csv"
    }


def test_a_name_in_the_middle_stands_for_every_package(package):
    found = fingerprints.stage_fingerprint(package / "ask.py")
    assert {"aria_dvc.known.cities.oracle", "aria_dvc.c"} <= set(found)
    assert "aria_dvc/known/cities/data/cities.csv" in found
    assert "aria_dvc.known.cities.aside" not in found


def test_credit_by_answers_depends_on_the_oracles():
    found = fingerprints.stage_fingerprint("stages/aggregate.py")
    assert {"aria_dvc.oracles.city.oracle", "aria_dvc.oracles.objects.oracle"} <= set(found)
    assert "aria_dvc/oracles/objects/data/looks.yaml" in found


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("a.py", '"""A."""', '"""Another."""', False),
        ("a.py", '"Doc."', '"More."', False),
        ("a.py", "return x", "return x  # why", False),
        ("a.py", "return x", "return (x)", False),
        ("a.py", "return x", "return x + 0", True),
        ("b.py", "x = 1", "x = 2", True),
        ("b.py", "import aria_dvc.c", "import aria_dvc.d", False),
        ("c.py", "y = 2", "y = 3", False),
        ("errors.py", "z = 3", "z = 4", False),
    ],
)
def test_what_the_code_does_decides(package, file, old, new, changes):
    before = fingerprints.stage_fingerprint(package / "stage.py")
    rewritten(package / "aria_dvc" / file, old, new)
    assert (fingerprints.stage_fingerprint(package / "stage.py") != before) == changes


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("its size", "how large", False),
        ("ge=1", "ge=2", False),
        ("    clip: Clip\n", "    clip: Clip\n    alpha: float = Field(gt=0)\n", False),
        ("return rank", "return int(rank)", False),
        ("'a', 'b'", "'a', 'b', 'c'", False),
        ("Field(None", "Field(3", True),
        ("2 * self", "3 * self", True),
    ],
)
def test_of_the_knobs_what_computes_and_what_stands_for_a_missing_one_decide(
    package, old, new, changes
):
    before = fingerprints.stage_fingerprint(package / "learn.py")
    assert "aria_dvc.settings.training" in before
    rewritten(package / "aria_dvc/settings/training.py", old, new)
    assert (fingerprints.stage_fingerprint(package / "learn.py") != before) == changes


def test_every_plumbing_module_exists():
    for module in (*fingerprints.PLUMBING, *fingerprints.BLOCKS):
        assert fingerprints._file_of(module), module
    settings = (fingerprints.SOURCE / "aria_dvc" / "settings").glob("[!_]*.py")
    assert {f"aria_dvc.settings.{file.stem}" for file in settings} < set(fingerprints.BLOCKS)
