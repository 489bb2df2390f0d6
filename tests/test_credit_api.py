"""`aria_dvc.credit` on logs of every shape, and what of the package is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

import aria_dvc
from aria_dvc.__main__ import main
from aria_dvc.credit.logs import log_of
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, METHOD, CreditSettings
from aria_dvc.credit.table import COLUMNS
from aria_dvc.errors import AriaError
from aria_dvc.records.readers import read_entries

ROOT = Path(__file__).parent.parent


def entries(count: int = 12, seed: int = 0) -> list[dict]:
    """Two-party dialogues with vectors; who says "yes" first gets 1."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words = rng.choice(["yes", "no", "well"], 4)
        messages = [
            {
                "role": ("alice", "bob")[i % 2],
                "content": word,
                "embedding": np.eye(3)[["yes", "no", "well"].index(word)].tolist(),
            }
            for i, word in enumerate(words)
        ]
        rewards = {"alice": float(words[0] == "yes"), "bob": 0.25}
        made.append({"episode_id": f"e{number}", "messages": messages, "rewards": rewards})
    return made


def frame_of(log: list[dict]) -> pd.DataFrame:
    rows = [
        {
            "episode_id": entry["episode_id"],
            "role": message["role"],
            "text": message["content"],
            "reward": entry["rewards"][message["role"]],
            "position": 10 * place,
            "embedding": np.array(message["embedding"]),
        }
        for entry in log
        for place, message in enumerate(entry["messages"])
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("method", ["aria", "regression", "constant"])
def test_every_shape_of_a_log_and_the_command_give_the_same_credit(tmp_path, capsys, method):
    log, path = entries(), tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in log))
    expected = aria_dvc.credit(log, method=method)
    assert list(expected.columns) == list(COLUMNS)
    for same in (path, str(path), [path]):
        pd.testing.assert_frame_equal(aria_dvc.credit(same, method=method), expected)
    found = aria_dvc.credit(frame_of(log), method=method)
    assert found["position"].tolist() == (10 * expected["position"]).tolist()
    columns = [name for name in COLUMNS if name != "position"]
    pd.testing.assert_frame_equal(found[columns], expected[columns])
    assert capsys.readouterr() == ("", "")
    out = tmp_path / "credit.parquet"
    assert main(["credit", str(path), "--method", method, "--out", str(out)]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)


def test_command_and_functions_take_the_same_method_where_none_is_named(tmp_path):
    log, path = entries(), tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in log))
    expected, out = aria_dvc.credit(log, method=METHOD), tmp_path / "credit.parquet"
    assert main(["credit", str(path), "--out", str(out)]) == 0
    for found in (aria_dvc.credit(log), pd.read_parquet(out)):
        pd.testing.assert_frame_equal(found, expected)
    named = aria_dvc.intention_table(log, k=3, method=METHOD)
    pd.testing.assert_frame_equal(aria_dvc.intention_table(log, k=3), named)


@pytest.mark.parametrize("count", [1, 2])
def test_the_default_needs_no_more_than_one_outcome(count):
    found = aria_dvc.credit(entries(count))
    assert np.isfinite(found[["credit", "baseline"]]).all(axis=None)


def test_where_the_default_cannot_be_fitted_the_remedy_is_told(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    unpaid = [{**entry, "rewards": {}} for entry in entries(4)]
    with pytest.raises(AriaError, match="give a final reward for at least one role"):
        aria_dvc.credit(unpaid)
    with pytest.raises(AriaError, match="name a sentence-transformers model, a folder, or"):
        aria_dvc.credit(entries(4), embed="nowhere")


def test_rows_of_a_frame_may_come_in_any_order():
    frame = frame_of(entries())
    mixed = pd.concat([frame[2::3], frame[0::3], frame[1::3]])
    by = ["episode_id", "position"]
    found = [aria_dvc.credit(f, method="aria").sort_values(by) for f in (frame, mixed)]
    pd.testing.assert_frame_equal(*(f.reset_index(drop=True) for f in found))


def test_other_dialogues_are_scored_without_their_outcomes():
    fitted, new = frame_of(entries()), frame_of(entries(3, seed=1))
    found = aria_dvc.credit(fitted, method="aria", score=new.drop(columns="reward"))
    assert found["position"].tolist() == new["position"].tolist()
    assert found["credit"].notna().all()
    assert found["return"].isna().all()


def buttons(entry: dict) -> dict:
    """The last utterance is a button, the system says what is to be done."""
    told = {"role": "system", "content": "Trade."}
    return {**entry, "messages": [told, *entry["messages"]], "info": {"moves": [3]}}


@pytest.mark.parametrize(
    ("options", "log"),
    [
        (["--no-moves"], [buttons(entry) for entry in entries()]),
        (["--agent", "assistant"], [
            {
                "episode_id": f"e{number}", "reward": number % 2,
                "messages": [
                    {"role": "assistant", "name": "ann", "content": "yes"},
                    {"role": "user", "content": f"{number}?"},
                    {"role": "assistant", "name": "bea", "content": "no"},
                ],
            }
            for number in range(8)
        ]),
        ([], [
            {"input": f"user\n{number}?\nassistant\n", "output": "Well.", "score": number - 3.5}
            for number in range(8)
        ]),
    ],
)  # fmt: skip
def test_the_table_of_aria_read_is_the_same_log_as_a_file_and_as_a_frame(tmp_path, options, log):
    path, table = tmp_path / "log.jsonl", tmp_path / "read.parquet"
    path.write_text("\n".join(json.dumps(entry) for entry in log))
    assert main(["read", str(path), "--out", str(table), *options]) == 0
    reading = {"agent": "assistant"} if "--agent" in options else {}
    expected = aria_dvc.credit(table, method="prefix", **reading)
    found = aria_dvc.credit(pd.read_parquet(table), method="prefix", **reading)
    pd.testing.assert_frame_equal(found, expected)
    reading |= {"moves": False} if "--no-moves" in options else {}
    own = aria_dvc.credit(path, method="prefix", **reading)
    pd.testing.assert_frame_equal(found, own)


@pytest.mark.parametrize("rewarded", [True, False])
@pytest.mark.parametrize("options", [["--no-moves"], []])
def test_a_scored_table_is_the_same_log_as_a_file_and_as_a_frame(tmp_path, options, rewarded):
    """Buttons get no credit where the table or the caller says so."""
    path, table = tmp_path / "log.jsonl", tmp_path / "read.parquet"
    path.write_text("\n".join(json.dumps(buttons(entry)) for entry in entries()))
    assert main(["read", str(path), "--out", str(table), *options]) == 0
    frame = pd.read_parquet(table)
    if not rewarded:
        frame = frame.drop(columns="reward")
        frame.to_parquet(table)
    for moves in (True, False):
        reading = {"method": "prefix", "moves": moves}
        expected = aria_dvc.credit(path, score=table, **reading)
        found = aria_dvc.credit(path, score=frame, **reading)
        pd.testing.assert_frame_equal(found, expected)
        assert len(found) == (36 if options or not moves else 48)
        assert found["return"].notna().all() == rewarded


def test_numbers_of_numpy_are_numbers_and_half_a_character_is_named():
    log = entries()
    for entry in log:
        entry["rewards"] = {r: np.float32(value) for r, value in entry["rewards"].items()}
    assert len(aria_dvc.credit(log, method="prefix")) == 48
    log[3]["messages"][1]["content"] = "half \ud800"
    with pytest.raises(AriaError, match=r"entry 4: utterance 1 \(bob\) has half of a character"):
        aria_dvc.credit(log, method="prefix")


def test_mistakes_in_a_frame_are_named():
    frame = frame_of(entries())
    with pytest.raises(AriaError, match="no column text, reward: a frame needs episode_id"):
        aria_dvc.credit(frame.drop(columns=["text", "reward"]))
    frame.loc[0, "reward"] = 0.125
    with pytest.raises(AriaError, match="log: episode e0: several rewards of alice: the final rew"):
        aria_dvc.credit(frame)
    with pytest.raises(AriaError, match="gamma is 2"):
        aria_dvc.credit(entries(), gamma=2)
    with pytest.raises(AriaError, match="k = 0 is outside"):
        aria_dvc.credit(entries(), method="aria", k=0)
    with pytest.raises(AriaError, match="log: the column text stands twice: keep one of them"):
        aria_dvc.credit(pd.concat([frame, frame[["text"]]], axis=1))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"folds": 2.5}, "folds is 2.5: give a whole number"),
        ({"folds": True}, "folds is True: give a whole number"),
        ({"seed": None}, "seed is None: give a whole number"),
        ({"k": "3"}, "k is '3': give a whole number"),
        ({"gamma": "0.9"}, "gamma is '0.9': give a number"),
        ({"gamma": None}, "gamma is None: give a number"),
        ({"outcome": "wintest"}, r"unknown outcome 'wintest' \(did you mean win_test\?\)"),
        ({"outcome": None}, r"unknown outcome None \(known: recorded, win_test\)"),
        ({"game": "bargain"}, r"unknown game 'bargain' \(did you mean bargaining\?\)"),
        ({"game": ["chess"]}, r"unknown game \['chess'\] \(known: "),
        ({"group_by": ["a"]}, r"group_by is \['a'\]: give the name of one field"),
        ({"method": None}, r"unknown credit method None \(known: "),
        ({"agent": None}, "agent is None: give a role or name, or a list of them"),
        ({"agent": [3]}, r"agent is \[3\]: give a role or name"),
        ({"moves": "no"}, "moves is 'no': give True or False"),
        ({"embed": 3}, "embed is 3: name an embedder"),
    ],
)
def test_an_argument_that_cannot_be_is_named(argument, message):
    with pytest.raises(AriaError, match=message):
        aria_dvc.credit(entries(), **{"method": "constant", **argument})


def test_a_reward_beyond_every_float_is_named():
    log = entries()
    log[0]["rewards"] = dict.fromkeys(log[0]["rewards"], 10**400)
    with pytest.raises(AriaError, match="beyond"):
        aria_dvc.credit(log, method="constant")


def test_numbers_of_numpy_are_taken_as_arguments():
    given = {"folds": np.int64(3), "seed": np.int32(1), "gamma": np.float64(0.5)}
    found = aria_dvc.credit(entries(), method="turn_index", **given)
    expected = aria_dvc.credit(entries(), method="turn_index", folds=3, seed=1, gamma=0.5)
    pd.testing.assert_frame_equal(found, expected)


def test_positions_are_whole_numbers_whatever_their_column():
    frame = frame_of(entries())
    for column in (frame["position"] + 5.0, (frame["position"] + 5).astype(object)):
        found = aria_dvc.credit(frame.assign(position=column), method="constant")["position"]
        assert found.dtype == np.int64
        assert found.tolist() == (frame["position"] + 5).tolist()


def test_an_episode_without_an_action_gets_no_credit_and_a_log_without_any_is_refused():
    """Its outcome is known, though others act there."""
    frame = frame_of(entries(4)).assign(is_action=True)
    frame.loc[frame["role"] == "bob", "reward"] = np.nan
    silent = frame["episode_id"].eq("e1") & frame["role"].eq("alice")
    found = aria_dvc.credit(frame.assign(is_action=~silent), method="constant")
    assert set(found["role"]) == {"alice"}
    assert sorted(set(found["episode_id"])) == ["e0", "e2", "e3"]
    with pytest.raises(AriaError, match="the log has no action: all that a role with a reward"):
        aria_dvc.credit(frame.assign(is_action=False))


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("episode_id", None, r"row 5 \(episode .*\) has no episode_id"),
        ("position", "first", "row 5 .* has a position that is no number"),
        ("position", True, "row 5 .* has a position that is no number"),
        ("position", np.nan, "row 5 .* has a position that is no number"),
        ("position", 0.5, "row 5 .* has a position that is no whole number"),
        ("position", np.inf, "row 5 .* has a position that is no whole number"),
        ("position", 0, "row 5 .* has a position that its episode had before"),
        ("reward", "high", "row 5 .* has a reward that is no number"),
        ("reward", True, "row 5 .* has a reward that is no number"),
        ("role", None, "log: entry 2: messages.1. has the role"),
        ("role", "Alice", "log: entry 2: role 'Alice' beside 'alice'"),
        ("role", 4, "log: entry 2: messages.1. has the role 4"),
        ("text", "\u200b", "log: entry 2: utterance 1 .* has no text"),
        ("text", 3, "log: entry 2: utterance 1 .* is 3, no text"),
        ("embedding", "1, 2", "log: entry 2: embedding of messages.1. must be a list"),
        ("embedding", [True, "1"], "log: entry 2: embedding of messages.1. must be a list"),
        ("game", 4, "log: entry 2: game is 4"),
    ],
)
def test_odd_cells_of_a_frame_are_named(column, value, expected):
    frame = frame_of(entries()).assign(game="bargaining").astype(object)
    frame.at[5, column] = value
    if column == "game":
        frame.loc[4:7, "game"] = pd.Series([value] * 4, index=range(4, 8), dtype=object)
    with pytest.raises(AriaError, match=expected):
        aria_dvc.credit(frame, method="constant")


def test_rows_in_no_order_are_refused_where_no_position_tells_it():
    frame = frame_of(entries(4))
    mixed = pd.concat([frame[frame["role"] == role] for role in ("bob", "alice")])
    with pytest.raises(AriaError, match=r"row \d+ \(episode e0\) comes back: sort the rows"):
        aria_dvc.credit(mixed.drop(columns="position", errors="ignore"), method="prefix")
    position = frame.groupby("episode_id").cumcount()
    expected = aria_dvc.credit(frame.assign(position=position), method="prefix")
    found = aria_dvc.credit(mixed.assign(position=position), method="prefix")
    keys = ["episode_id", "position"]
    pd.testing.assert_frame_equal(
        *(table.sort_values(keys).reset_index(drop=True) for table in (found, expected))
    )


def test_k_is_refused_where_it_says_nothing():
    with pytest.raises(AriaError, match="k is for methods that look at intentions"):
        aria_dvc.credit(entries(4), method="gae", k=4)
    with pytest.raises(AriaError, match="k is 101: intentions are 2 to 100"):
        aria_dvc.credit(entries(4), method="aria", k=101)


def test_info_that_cannot_be_written_is_refused():
    log = entries()
    deep: list = []
    for _ in range(400):
        deep = [deep]
    for info in ({"deep": deep}, {"when": object()}):
        with pytest.raises(AriaError, match="log: entry 1: info is no JSON"):
            aria_dvc.credit([{**log[0], "info": info}, *log[1:]], method="constant")


def test_the_packaged_defaults_are_those_of_the_shipped_params():
    shipped = YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text())
    shipped["aggregate"]["further"] = tuple(shipped["aggregate"]["further"])
    for name, value in asdict(CreditSettings()).items():
        assert value == shipped[name], name
    assert shipped["embed"]["source"] == EMBEDDER
    assert shipped["embed"]["normalize"] is True  # as the command and the library always do
    assert shipped["pace"]["embed_batch"] == EMBED_BATCH


@pytest.mark.parametrize(
    "code",
    [
        "import sys, aria_dvc; print(*{'numpy', 'pandas', 'torch', 'pydantic'} & set(sys.modules))",
        "import aria_dvc.credit.methods.registry; assert callable(aria_dvc.credit)",
    ],
    ids=["light", "the name stays a function"],
)
def test_import(code):
    options = {"capture_output": True, "text": True, "cwd": ROOT, "env": {"PYTHONPATH": "src"}}
    found = subprocess.run([sys.executable, "-c", code], **options)
    assert (found.stdout.strip(), found.stderr) == ("", "")


def test_version_help_and_completion(capsys):
    for arguments, shown in (
        (["--version"], f"aria {aria_dvc.__version__}"),
        (["credit", "--help"], "--method"),
    ):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        assert shown in capsys.readouterr().out
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "serve-reward-model" in capsys.readouterr().out


@pytest.mark.slow
def test_the_wheel_carries_the_packaged_data(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "-w", str(tmp_path), str(source)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    src = ROOT / "src"
    packaged = [p for p in src.rglob("*") if p.is_file() and p.parent.name == "data"]
    assert packaged
    for path in (*packaged, src / "aria_dvc" / "py.typed"):
        assert str(path.relative_to(src)) in names
    (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
    assert b"aria = aria_dvc.__main__:run" in zipfile.ZipFile(wheel).read(entry_points)


def test_a_log_in_memory_has_every_text_once():
    messages = [{"role": "assistant", "content": f"a text of some length {i}"} for i in range(3)]
    episodes = read_entries([{"messages": messages, "reward": 1.0}])
    log = log_of(iter(episodes), 0.95, own_vectors=False)
    said = episodes[0].utterances
    assert all(found is own.text for found, own in zip(log.text, said, strict=True))


@pytest.mark.parametrize("log", [{"messages": []}, None, 3])
def test_what_is_no_log_is_named_by_its_type(log):
    with pytest.raises(AriaError, match=f"log is a {type(log).__name__}: give a path"):
        aria_dvc.credit(log)
