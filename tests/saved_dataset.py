"""A folder in the format of the library datasets, as written by `save_to_disk`."""

import json

import pytest


def save_dataset(folder, n_rows):
    """Save this number of rows in two files.

    folder (Path): The folder, which is made.
    """
    arrow = pytest.importorskip("pyarrow")
    names = [f"data-0000{number}-of-00002.arrow" for number in range(2)]
    info = {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}
    folder.mkdir(parents=True)
    for number, name in enumerate(names):
        rows = range(n_rows)[number::2]
        columns = {"text": [f"text {row}" for row in rows], "label": [row % 3 % 2 for row in rows]}
        table = arrow.table(columns).replace_schema_metadata(
            {"huggingface": json.dumps({"info": info})}
        )
        with arrow.ipc.new_stream(folder / name, table.schema) as writer:
            writer.write_table(table)
    state = {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": "0",
        "_split": None,
    }
    (folder / "state.json").write_text(json.dumps(state, indent=2))
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
