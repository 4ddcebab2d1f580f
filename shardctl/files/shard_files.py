"""The names of a split's files as a field of a document: a template, or a list of its parts."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.dataset.shard_files import ShardFiles
from shardctl.files import fields


def files_field(parts: tuple[ShardFiles, ...], folder: str | None = None) -> object:
    """Return a template of file names; where one is not enough, the names, or several of both.

    A part that does not lie in `folder` says where.
    """
    if not parts:
        return None
    if len(parts) == 1 and parts[0].names is None and parts[0].data_dir == folder:
        return _template(parts[0])
    return [
        {
            **(
                {"template": _template(part), "num_shards": part.num_shards}
                if part.names is None
                else {"names": list(part.names)}
            ),
            **({} if part.data_dir == folder else {"data_dir": part.data_dir}),
        }
        for part in parts
    ]


def _template(part: ShardFiles) -> str:
    escaped = part.pattern.replace("{", "{{").replace("}", "}}")
    return escaped.replace("\0", "{SHARD_INDEX}")


def files_of_field(
    value: object, num_shards: int, folder: str | None = None
) -> Iterator[ShardFiles]:
    """Yield the parts that a field holds, or raise DatasetError."""
    if value is None:
        return
    if isinstance(value, str):
        yield _templated(value, num_shards, folder)
        return
    for item in fields.items(value, "files"):
        part = fields.mapping(item, "a part of files")
        lies_in = part.get("data_dir", folder)
        if lies_in is not None:
            lies_in = fields.text(lies_in, "data_dir of a part of files")
        if "names" in part:
            names = tuple(
                fields.text(name, "a file name") for name in fields.items(part["names"], "names")
            )
            yield ShardFiles(data_dir=lies_in, num_shards=len(names), names=names)
        else:
            size = fields.count(part.get("num_shards"), "num_shards of a part of files")
            template = fields.text(part.get("template"), "template")
            yield _templated(template, min(size, num_shards), lies_in)


def _templated(template: str, num_shards: int, folder: str | None) -> ShardFiles:
    return ShardFiles.from_template(
        template, dataset="", split="", file_format="", num_shards=num_shards, data_dir=folder
    )
