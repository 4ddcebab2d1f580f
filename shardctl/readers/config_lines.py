"""On which lines of a shardctl.yaml its settings are, for messages that point at them."""

from __future__ import annotations

from pathlib import Path

from shardctl.files.file_text import decode, read_file

_SECTIONS = ("read", "lint")


def setting_lines(path: Path) -> dict[str, int]:
    """Return the line, from 1, of each setting under `read:` and `lint:`, by its name with `_`.

    The file has been read by `read_config`, so it is YAML that parses.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    root = yaml.compose(decode(read_file(path), source=str(path)), Loader=loader)
    if not isinstance(root, yaml.MappingNode):
        return {}
    return {
        str(name.value).replace("-", "_"): name.start_mark.line + 1
        for key, section in root.value
        if key.value in _SECTIONS and isinstance(section, yaml.MappingNode)
        for name, _ in section.value
    }
