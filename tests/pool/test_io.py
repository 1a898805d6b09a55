# ruff: noqa: E501
"""Reading every known kind of file, refusing and skipping what is bad, never touching a user's file."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.errors import PoolError
from autosft.pool import Pool, made_row, new_row, read_pool, write_pool
from autosft.pool.formats import row_of
from autosft.types import Requirement

MESSAGES = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}],
    "source": "m",
}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yo"}],
    "system": "Be good",
}
ALPACA = {"instruction": "Say", "input": "Hi", "output": "Yo"}
PAIR = {"prompt": "Hi", "response": "Yo"}


def lines(*records: object) -> bytes:
    return b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records)


def test_known_shapes():
    def turns(record: dict) -> list[tuple[str, str]]:
        return [(m.role, m.content) for m in row_of(record, "file").messages]

    assert turns(MESSAGES) == turns(PAIR) == [("user", "Hi"), ("assistant", "Yo")]
    assert turns(SHAREGPT) == [("system", "Be good"), ("user", "Hi"), ("assistant", "Yo")]
    assert turns(ALPACA) == [("user", "Say\n\nHi"), ("assistant", "Yo")]
    assert turns({**ALPACA, "input": ""}) == [("user", "Say"), ("assistant", "Yo")]
    parts = [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]
    assert turns({"messages": [{"role": "user", "content": parts}, *MESSAGES["messages"][1:]]})[0] == (
        "user",
        "Hi",
    )
    assert row_of(MESSAGES, "file").source == "m" and row_of(PAIR, "file").source == "file"


def test_requirements_come_along():
    given_list = [{"id": "a:b", "kwargs": {"n": 3, "unused": None}}]
    expected = (Requirement("a:b", {"n": 3}),)
    assert row_of({**PAIR, "requirements": given_list}, "f").requirements == expected
    assert row_of({**PAIR, "requirements": json.dumps(given_list)}, "f").requirements == expected
    ifeval = {**PAIR, "instruction_id_list": ["a:b", "c:d"], "kwargs": [{"n": 3, "x": None}]}
    assert row_of(ifeval, "f").requirements == (*expected, Requirement("c:d", {}))


BAD = [
    b"not json\n",
    b"\xff\xfe\n",
    [1, 2],
    {"text": "a corpus"},
    {"messages": []},
    {"messages": "Hi"},
    {"messages": ["Hi"]},
    {"messages": [{"role": "narrator", "content": "x"}]},
    {"messages": [{"role": "user", "content": "only a prompt"}]},
    {"messages": [{"role": "user", "content": None}, {"role": "assistant", "content": "x"}]},
    {
        "messages": [
            {"role": "user", "content": [{"type": "image", "url": "u"}]},
            {"role": "assistant", "content": "x"},
        ]
    },
    {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "", "tool_calls": [{}]},
        ]
    },
    {"instruction": "x", "output": 3},
    {**PAIR, "source": 3},
    {**PAIR, "requirements": "nope"},
    {**PAIR, "requirements": [{"kwargs": {}}]},
]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson"])
def test_bad_rows_are_named_by_file_and_line(tmp_path: Path, suffix):
    content = lines(MESSAGES, *[line for bad in BAD for line in (bad, b"\n")], SHAREGPT, ALPACA)
    packed = {".jsonl.gz": gzip.compress, ".jsonl.zst": zstandard.ZstdCompressor().compress}.get(
        suffix, bytes
    )
    file = tmp_path / f"rows{suffix}"
    file.write_bytes(packed(content))
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(PoolError, match=rf"{len(BAD)} rows.*rows{suffix}:2: not JSON.*skip"):
        read_pool(file)
    pool, bad = read_pool(file, bad_rows="skip")
    assert len(pool) == 3 and pool.sources == ["m", "rows", "rows"]
    assert [b.line for b in bad] == list(range(2, 2 + 2 * len(BAD), 2))
    assert all(b.file == str(file) and b.reason for b in bad)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before


def test_parquet_of_any_shape(tmp_path: Path):
    pq.write_table(pa.Table.from_pylist([MESSAGES, MESSAGES]), tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist([ALPACA, {**ALPACA, "output": None}]), tmp_path / "b.parquet")
    assert len(read_pool(tmp_path / "a.parquet")[0]) == 2
    pool, bad = read_pool(tmp_path / "b.parquet", bad_rows="skip")
    assert len(pool) == 1 and bad[0].line == 2


def test_json_list_and_folder_of_files(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.json").write_text(json.dumps([PAIR, ALPACA]))
    (tmp_path / "one.jsonl").write_bytes(b"\xef\xbb\xbf" + lines(MESSAGES))
    (tmp_path / "README.md").write_text("not rows")
    write_pool(Pool.from_rows([new_row("n", [("user", "a"), ("assistant", "b")])]), tmp_path / "z.parquet")
    pool, _ = read_pool(tmp_path)
    assert sorted(pool.sources) == ["m", "n", "two", "two"]


def test_saved_datasets(tmp_path: Path):
    import datasets

    data = datasets.Dataset.from_list([MESSAGES, MESSAGES | {"source": "n"}])
    data.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(str(tmp_path / "dict"))
    datasets.DatasetDict({"test": data}).save_to_disk(str(tmp_path / "test_only"))
    assert read_pool(tmp_path / "one")[0].sources == ["m", "n"]
    assert len(read_pool(tmp_path / "dict")[0]) == 2
    with pytest.raises(PoolError, match="train split"):
        read_pool(tmp_path / "test_only")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "no such file"),
        ("a.csv", b"x", "unknown kind"),
        ("a.jsonl", b"", "no usable row"),
        ("a.jsonl", lines({"text": 1}), "no usable row.*a.jsonl:1"),
        ("a.parquet", b"PAR1 rubbish", "damaged"),
        ("a.jsonl.gz", b"rubbish", "damaged"),
        ("a.jsonl.gz", gzip.compress(lines(PAIR) * 99, mtime=0)[:-20], "damaged"),
        ("a.jsonl.zst", b"rubbish", "damaged"),
        ("a.json", b'{"prompt": 1}', "not a list"),
        ("a.json", b"{", "not JSON"),
    ],
)
def test_unusable_files_are_named(tmp_path: Path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PoolError, match=message) as caught:
        read_pool(file, bad_rows="skip")
    assert name in str(caught.value)


def test_empty_folder(tmp_path: Path):
    with pytest.raises(PoolError, match="no file of rows"):
        read_pool(tmp_path)


def test_written_pools_come_back_identically(tmp_path: Path):
    first = new_row(
        "s", [("user", "a"), ("assistant", "b")], requirements=[Requirement("x:y", {"n": 1})], leaf="l"
    )
    made = made_row(first, response="c", made_by="repair/x", method="edit", verdicts={"x:y": True})
    pool = (
        Pool.from_rows([first, first, made])
        .with_order([0.1, float("nan"), 1.0], 0.2)
        .with_weights([1, 0.5, 3])
    )
    pool = pool.keep([False, True, True])
    write_pool(pool, tmp_path / "p.parquet")
    back, bad = read_pool(tmp_path / "p.parquet")
    assert not bad and back.fingerprint == pool.fingerprint and back.rows() == pool.rows()
    assert back.table.equals(pool.table)


def test_an_edited_native_file_is_noticed(tmp_path: Path):
    pool = Pool.from_rows([new_row("s", [("user", t), ("assistant", "b")]) for t in "xyz"])
    ids = ["0" * 16, pool.ids[1], pool.ids[1]]
    pq.write_table(
        pool.table.set_column(0, pool.table.schema.field(0), pa.array(ids)), tmp_path / "p.parquet"
    )
    with pytest.raises(PoolError, match="does not match the messages"):
        read_pool(tmp_path / "p.parquet")
    kept, bad = read_pool(tmp_path / "p.parquet", bad_rows="skip")
    assert kept.ids == [pool.ids[1]] and [b.line for b in bad] == [1, 3]


KEYS = ["messages", "conversations", "role", "from", "content", "value", "instruction", "output", "prompt", "response",
        "source", "requirements", "id", "kwargs", "instruction_id_list", "system", "input", "type", "text"]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6))
def test_any_record_is_a_row_or_a_named_refusal(record):
    try:
        row = row_of(record, "f")
    except PoolError as error:
        assert error.what
    else:
        assert row.messages and Pool.from_rows([row]).ids


SHARED = Path(os.environ.get("AUTOSFT_SHARED", Path(__file__).parents[2] / ".." / "shared"))


@pytest.mark.skipif(not (SHARED / "data/pool").is_dir(), reason="shared data is not here (AUTOSFT_SHARED)")
def test_the_real_pool_reads_and_encodes_quickly(make_encoder, benchmark_seconds):
    from tests.pool.tokenizers_for_tests import CHATML

    with benchmark_seconds(10):
        pool, bad = read_pool(SHARED / "data/pool")
    assert len(pool) == 24_189 and not bad
    encoder = make_encoder(CHATML, sequence_tokens=512)
    with benchmark_seconds(40):
        tokens, loss = encoder.counts(pool)
    assert (loss > 0).mean() > 0.99 and (loss < tokens).all()
