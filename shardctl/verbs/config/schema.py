"""A JSON schema of shardctl.yaml, from the table of settings: what editors complete and check."""

from __future__ import annotations

import json
import re
from typing import Any

from shardctl.base.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.loaders.loader import READERS, calls_of
from shardctl.settings import table
from shardctl.settings.names import SETTING_BY_ALIAS
from shardctl.spec.host import FORM
from shardctl.verbs.lint.answer import LINT_KEYS
from shardctl.verbs.lint.rule import SEVERITIES

SCHEMA_FILENAME = "shardctl.schema.json"

Schema = dict[str, Any]

_COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": INT64_MAX}
_SWITCH: Schema = {"type": "boolean"}
_TEXT: Schema = {"type": "string", "minLength": 1}


def _or_list(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "array", "items": one}]}


_LINT: dict[str, Schema] = {
    **dict.fromkeys(("specs", "eval", "select", "ignore"), _or_list(_TEXT)),
    **dict.fromkeys(("hosts", "take", "open_files"), _COUNT),
    **dict.fromkeys(("as_data_source", "assert_cardinality", "autocache"), _SWITCH),
    # Seeds may be one text with commas.
    "seeds": {"anyOf": [{"type": "string"}, *_or_list({"type": "integer"})["anyOf"]]},
    "fail_on": {"enum": list(SEVERITIES)},
}


def project_schema() -> Schema:
    """Return the schema, of draft 2020-12.

    >>> project_schema()["properties"]["read"]["properties"]["epochs"]["anyOf"][0]["minimum"]
    1
    """
    read = _section({setting.field: _of_setting(setting) for setting in table.SETTINGS})
    named = {**SETTING_BY_ALIAS, **table.SETTING_BY_NAME}
    others = {name: _of_setting(setting) for name, setting in named.items()}
    for name in ("num_epochs", "repeat"):
        del others[name]["anyOf"][1]  # for tf.data it would be a repeat without end
    read["patternProperties"] |= {_either_dash(name): one for name, one in others.items()}
    # These two may stand beside `read:` as well as under it.
    beside = {name: _of_setting(table.SETTING_BY_NAME[name]) for name in ("loader", "stages")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "shardctl.yaml",
        "description": "What the commands of shardctl read in a folder and in those below it.",
        "type": ["object", "null"],
        "properties": {
            "dataset": _said(_or_list(_TEXT), "The dataset, or several that are read as one."),
            "data_dir": _said(_TEXT, "Where names of datasets are looked up."),
            **beside,
            "read": read,
            "lint": _section({name: _said(_LINT[name], "") for name in LINT_KEYS}),
        },
        "additionalProperties": False,
    }


def schema_text() -> str:
    """Return the schema as a file has it."""
    return f"{json.dumps(project_schema(), indent=1)}\n"


def _section(properties: dict[str, Schema]) -> Schema:
    """Return a mapping whose keys may be written with `-` for `_`."""
    return {
        "type": ["object", "null"],
        "properties": properties,
        "patternProperties": {
            _either_dash(name): one for name, one in properties.items() if "_" in name
        },
        "additionalProperties": False,
    }


def _either_dash(name: str) -> str:
    return f"^{name.replace('_', '[-_]')}$"


def _of_setting(setting: table.Setting) -> Schema:
    said = f"{setting.help} ({setting.stands_for})"
    return _said(_of_kind(setting.kind), said, setting.default)


def _said(schema: Schema, description: str, default: str = "") -> Schema:
    """Return a schema that takes null as well, which leaves a setting as it is."""
    about = f"{description} Default: {default}." if default else description
    found: Schema = {"anyOf": [schema, {"type": "null"}]}
    return {"description": about, **found} if about else found


def _of_kind(kind: table.SettingKind) -> Schema:
    if isinstance(kind, table.BufferSize):
        return {"anyOf": [_COUNT, {"const": WHOLE_DATASET}]}
    if isinstance(kind, table.WholeNumber):
        limits = {} if kind.least is None else {"minimum": kind.least, "maximum": INT64_MAX}
        number: Schema = {"type": "integer", **limits}
        return {"anyOf": [number, {"enum": list(kind.words)}]} if kind.words else number
    if isinstance(kind, table.Switch):
        return _SWITCH
    if isinstance(kind, table.VersionNumber):
        return {"type": "string", "pattern": f"^({table.VERSION.pattern})([+].*)?$"}
    if isinstance(kind, table.WhichHost):
        return {"type": "string", "pattern": f"^({FORM.pattern})$"}
    if isinstance(kind, table.FileNames):
        return {"type": "array", "items": {"type": "string"}}
    if isinstance(kind, table.StageList):
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": _stage()}]}
    return {"enum": list(kind.words)}


def _stage() -> Schema:
    """Return a stage in a list: a text, or a call by its name with its arguments."""
    # Those of every loader: which of them reads may be said elsewhere.
    calls = dict.fromkeys(name for loader in READERS for name in calls_of(loader))
    names = "|".join(re.escape(name).replace("_", "[-_]") for name in calls)
    call = {"type": "object", "minProperties": 1, "maxProperties": 1}
    return {"anyOf": [{"type": "string"}, {**call, "propertyNames": {"pattern": f"^({names})$"}}]}
