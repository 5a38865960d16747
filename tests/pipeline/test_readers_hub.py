"""Hugging Face datasets from local folders, and one clear line for whatever cannot be opened."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from truegold.pipeline.config.sources import HubSource
from truegold.pipeline.sources.hub import open_hub
from truegold.pipeline.sources.records import Record
from truegold.verifiers import InputError, SetupError

ROWS = {"question": ["1+1?", "2+2?"], "answer": ["2", "4"]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    datasets = pytest.importorskip("datasets", reason="needs the extra `hub`")
    datasets.disable_progress_bars()
    root = tmp_path_factory.mktemp("hub")
    data = datasets.Dataset.from_dict(ROWS)
    data.save_to_disk(str(root / "one"))
    datasets.DatasetDict({"train": data, "test": data.select([0])}).save_to_disk(str(root / "several"))
    (root / "files").mkdir()
    (root / "files" / "train.jsonl").write_text('{"question": "3+3?", "answer": "6"}\n')
    (root / "files" / "test.jsonl").write_text('{"question": "4+4?", "answer": "8"}\n')
    (root / "empty").mkdir()
    return root


def questions(**config: str) -> list[str]:
    records = list(open_hub(HubSource(**config)).records)
    assert all(isinstance(record, Record) for record in records)
    return [record.values["question"] for record in records]  # type: ignore[union-attr]


def test_folders_written_by_save_to_disk_are_read(folders):
    assert questions(name=str(folders / "one")) == ["1+1?", "2+2?"]
    assert questions(name=str(folders / "several"), split="test") == ["1+1?"]


def test_folders_of_data_files_are_read(folders):
    assert questions(name=str(folders / "files"), split="test") == ["4+4?"]


def test_a_folder_names_itself_in_the_rows(folders):
    assert open_hub(HubSource(name=str(folders / "one"))).name == "one"


@pytest.mark.parametrize("folder", ["several", "files"])
def test_a_wrong_split_is_an_error_that_lists_the_splits(folders, folder):
    with pytest.raises(InputError, match=r"validation.*train.*test"):
        open_hub(HubSource(name=str(folders / folder), split="validation"))


def test_what_cannot_be_opened_is_one_line(folders):
    with pytest.raises(InputError, match="no folder"):
        open_hub(HubSource(name="./nowhere"))
    with pytest.raises(InputError, match="type: file"):
        open_hub(HubSource(name=str(folders / "files" / "train.jsonl")))
    with pytest.raises(InputError, match="doesn't contain any data files"):
        open_hub(HubSource(name=str(folders / "empty")))


def test_without_the_package_the_error_names_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(SetupError, match=r"pip install 'truegold\[hub\]'"):
        open_hub(HubSource(name="openai/gsm8k"))


def test_without_a_network_the_error_says_so(folders):
    with pytest.raises(SetupError, match=r"openai/gsm8k.*network"):
        open_hub(HubSource(name="openai/gsm8k", subset="main"))
