"""Text made safe to print: without control characters, secrets of URLs, commands of CI runners."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterable

from shardctl.errors import UsageError

# What a CI runner would act on: `::name ..::` at the start of a line, blanks before it left out
# (actions/runner, ActionCommand.TryParseV2), `##[name]` and `##vso[..]` anywhere in a line
# (ActionCommand.TryParse; Command.TryParse of azure-pipelines-agent).
_COMMAND = re.compile(r"^(?P<blanks>\s*):(?=:)|#(?=#[\w-]*\[)", re.MULTILINE)


def printable(text: str, limit: int = 200) -> str:
    r"""Return `text` on one line without control characters, cut to `limit` characters.

    Everything that `str.isprintable` refuses is written as an escape, so neither a terminal
    sequence nor a bidirectional override in a file reaches the screen. The limit counts what is
    shown, escapes included.

    >>> printable("a\x1b[31mred\n")
    'a\\x1b[31mred\\n'
    >>> printable("x" * 300, limit=10)
    'xxxxxxxxx…'
    """
    if len(text) <= limit and text.isprintable():
        return str(text)
    shown = text[: limit + 1]  # no escape is shorter than what it stands for
    if not shown.isprintable():
        shown = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
            for char in shown
        )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, which takes an s, or is `plural`, where it is not one.

    >>> counted(1, "shard"), counted(1024, "shard"), counted(0, "shard")
    ('1 shard', '1,024 shards', '0 shards')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def shell_line(*words: str) -> str:
    r"""Return a command as one line to paste into bash or zsh, whatever its words hold.

    >>> print(shell_line("shardctl", "diff", "my order.yaml", "a\nb"))
    shardctl diff 'my order.yaml' $'a\x0ab'
    """
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    # What `printable` or `inert` would change on the way to a terminal is written as bytes.
    if word.isprintable() and inert(word) == word:
        return shlex.quote(word)
    data = word.encode("utf-8", "surrogateescape")
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\#:" else f"\\x{byte:02x}"
        for byte in data
    )
    return f"$'{''.join(plain)}'"


def path_word(path: str) -> str:
    """Return a path as a word of a command, where it would be an option otherwise with `./`.

    >>> path_word("-rf.yaml"), path_word("-"), path_word("a.yaml")
    ('./-rf.yaml', '-', 'a.yaml')
    """
    return f"./{path}" if path.startswith("-") and path != "-" else path


def run_in(folder: str, *words: str) -> str:
    """Return a command that is run in a folder, as one line to paste.

    >>> run_in("my data", "shardctl", "lint"), run_in("-", "shardctl", "lint"), run_in("", "ls")
    ("cd 'my data' && shardctl lint", 'cd ./- && shardctl lint', 'ls')
    """
    if folder in ("", "."):
        return shell_line(*words)
    there = "./-" if folder == "-" else path_word(folder)  # `cd -` would go back
    return f"{shell_line('cd', there)} && {shell_line(*words)}"


def first_upper(text: str) -> str:
    """Return a sentence with a capital, unless it begins with a name: of code, or before a colon.

    >>> first_upper("as good as uniform")
    'As good as uniform'
    >>> first_upper("as_dataset does not read"), first_upper("train: 3 hosts")
    ('as_dataset does not read', 'train: 3 hosts')
    """
    first = text.partition(" ")[0]
    if "_" in first or first.endswith(":"):
        return text
    return text[:1].upper() + text[1:]


def dataset_title(name: str, config: str | None, version: str | None) -> str:
    """Return name, config and version as TFDS writes them.

    >>> dataset_title("coco", "2017", "1.1.0"), dataset_title("mnist", None, None)
    ('coco/2017:1.1.0', 'mnist')
    """
    title = name if config is None else f"{name}/{config}"
    return title if version is None else f"{title}:{version}"


def in_short(value: object, subject: str, *facts: str) -> str:
    """Return the repr of an answer: its class, what it is about, and the figures that tell most.

    >>> in_short(Exception(), "mnist train", counted(3, "host"), "")
    '<Exception mnist train: 3 hosts>'
    """
    said = ", ".join(fact for fact in facts if fact)
    about = f"{type(value).__name__} {printable(subject, 100)}".rstrip()
    return f"<{about}{': ' if said else ''}{printable(said, 300)}>"


def inert(text: str) -> str:
    r"""Return lines of text without what a CI runner reads as a command in its log.

    As where `printable` writes an escape, the first character is written as one.

    >>> inert("::error title=x::no"), inert("a ##[error]b"), inert("a::b # c")
    ('\\x3a:error title=x::no', 'a \\x23#[error]b', 'a::b # c')
    """
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(
        lambda found: "\\x23" if found["blanks"] is None else rf"{found['blanks']}\x3a", text
    )


def utf8(text: str) -> bytes:
    r"""Return text as the bytes that are written; bytes of names that are no UTF-8 as escapes.

    >>> utf8("ä\udcff")
    b'\xc3\xa4\\udcff'
    """
    return text.encode("utf-8", "backslashreplace")


def quoted(value: object, limit: int = 80) -> str:
    """Return `value` in quotes, safe to print and cut to `limit` characters.

    >>> quoted("trian")
    "'trian'"
    """
    return f"'{printable(str(value), limit)}'"


def either(names: Iterable[str]) -> str:
    """Return names of which one is meant, as part of a sentence.

    >>> either(["json", "yaml", "csv"]), either(["json"])
    ('json, yaml or csv', 'json')
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def choices(values: Iterable[object], limit: int = 12) -> str:
    """Return the values a user may choose from, comma separated, the rest counted.

    >>> choices(["train", "test"])
    'train, test'
    >>> choices([], limit=3)
    'none'
    >>> choices("abcde", limit=3)
    'a, b, c and 2 more'
    """
    names = [printable(str(value), 60) for value in values]
    if not names:
        return "none"
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return ", ".join(names)


# Names that are near a name nobody knows: what its writer may have meant.

# Of difflib's ratio, 1 for equal names: of names that begin alike, and of others. Words that share
# a few letters somewhere, as "digits" and "iris" do, are no slip of a hand.
_LEAST, _LEAST_OTHERWISE = 0.6, 0.7
_PART = 4  # characters of a name that is near to all that have it in them
_LONGEST = 200  # characters that are compared; difflib's time grows with their square


def nearest(name: object, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that are near a name, the nearest first, at most `limit`.

    Case and what divides words (`-`, `_`, blanks) make no difference. Of two that are as near, the
    one that begins alike for longer comes first. Names that continue a name, or have a longer one
    in them, come after those that are about as long.

    >>> nearest("trian", ["test", "train"]), nearest("digits", ["iris", "mnist"])
    (['train'], [])
    >>> nearest("ImageNet2021", ["imagenet_a", "imagenet2012", "mnist"])
    ['imagenet2012', 'imagenet_a']
    >>> nearest("--drop", ["--drop-remainder", "--help"]), nearest("--hosts", ["--host"])
    (['--drop-remainder'], ['--host'])
    """
    import difflib  # 4 ms

    wanted = _bare(str(name))
    if not wanted:
        return []
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    found: dict[str, tuple[float, int]] = {}
    for other in names:
        bare = _bare(other)
        matcher.set_seq1(bare)
        least = _LEAST if bare[:1] == wanted[0] else _LEAST_OTHERWISE
        if matcher.quick_ratio() >= least and (ratio := matcher.ratio()) >= least:
            found[other] = (-ratio, -_alike(bare, wanted))
        elif bare.startswith(wanted) or (len(wanted) >= _PART and wanted in bare):
            found[other] = (0.0, 0)
    return sorted(found, key=lambda other: found[other])[:limit]


def nearest_first(name: object, names: Iterable[str]) -> list[str]:
    """Return all names, each once, the nearest to a name before the others.

    >>> nearest_first("trian", ["test", "train"]), nearest_first("x", ["test", "train"])
    (['train', 'test'], ['test', 'train'])
    """
    names = list(dict.fromkeys(names))
    near = nearest(name, names)
    return [*near, *(other for other in names if other not in near)]


def near_or_all(name: object, names: Iterable[str]) -> str:
    """Return the way out for a name that is not there: what is nearest, else what there is.

    >>> near_or_all("shufle_seed", ["cycle", "shuffle_seed"]), near_or_all("x", ["cycle", "block"])
    ('did you mean shuffle_seed?', 'there are: cycle, block')
    """
    names = list(names)
    near = nearest(name, names, 1)
    return f"did you mean {near[0]}?" if near else f"there are: {choices(names)}"


def _alike(name: str, other: str) -> int:
    """Return how many characters two names begin with alike."""
    pairs = zip(name, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(name), len(other)))


def _bare(name: str) -> str:
    return "".join(char for char in name[:_LONGEST].casefold() if char not in "-_ ")


# What of a URL is nobody's business: passwords and signatures, kept apart from the paths.
#
# A path in an answer, a message or a file never has them. They stay in this process, by the
# address that they were given with, for whoever asks the place itself.

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_PLACE = re.compile(r"(?P<user>[^/@]*@)?[\w.~%-]*(\[[0-9a-fA-F:.]*\])?(:[0-9]*)?(?=[/?#]|$)")
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_SIGNED = re.compile(r"[?&](x-(amz|goog)-signature|sig|signature|token|access_token)=", re.I)
_WEB = ("http", "https")
# Where what stands before the `@` is a container, or a user that alone opens nothing.
_NAMED = ("abfs", "abfss", "wasb", "wasbs", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs")
_KEPT: dict[str, tuple[str, str]] = {}  # what is public -> the same with secrets, and the query
_IMPLIED: dict[str, tuple[str, str]] = {}  # the same, of what lies beside and above


def public_url(url: str) -> str:
    """Return a URL without user, password and, of a web address, its query; they are remembered.

    Of a password with a slash in it all up to the last `@` is taken for one. Other texts stay.

    >>> public_url("https://me:pw@host/data?signature=x"), public_url("gs://bucket/a?b")
    ('https://host/data', 'gs://bucket/a?b')
    >>> public_url("s3://KEY:SEC/RET@my-data/a"), public_url("hf://datasets/me/toy@main")
    ('s3://my-data/a', 'hf://datasets/me/toy@main')
    >>> public_url("sftp://me:pw@host/a"), public_url("abfss://container@account/a")
    ('sftp://me@host/a', 'abfss://container@account/a')

    Raises:
        UsageError: another query was given with this address that is no signature, so that what is
            public does not tell which file is meant.
    """
    public, full, query = _parted(url)
    if public != full or query:
        address = public.rstrip("/")
        _, known = _KEPT.get(address, ("", query))
        if _choosing(known) != _choosing(query):
            raise UsageError(
                f"{public[:200]!r} was given with two queries, so the files cannot be told"
                " apart by their paths; name them one at a time, or copy them to a disk"
            )
        _KEPT[address] = (full.rstrip("/"), query)
        _imply(address, full.rstrip("/"), query)
    return public


def _imply(public: str, full: str, query: str) -> None:
    """Remember what else the secrets of a URL open: what lies beside a file, all of its place.

    A signature is of a folder or of one file; a user logs in to a whole place.
    """
    scheme, _, path = public.partition("://")
    place, _, below = path.partition("/")
    folder, _, name = below.rpartition("/")
    if folder and "." in name and not _choosing(query):
        _IMPLIED[public.rpartition("/")[0]] = (full.rpartition("/")[0], query)
    if public != full:
        _IMPLIED[f"{scheme}://{place}"] = (full.removesuffix(f"/{below}"), "")


def _choosing(query: str) -> str:
    """Return the query that chooses a file, "" where it is a signature."""
    return "" if _SIGNED.search(query) else query


def query_mark(url: str) -> str:
    """Return what tells apart files at one address by the query that chooses them, "" for none.

    Nobody can read the query from it.

    >>> query_mark("https://host/get?file=b"), query_mark("https://host/a?signature=x")
    (' of query 7f70fa04', '')
    """
    query = _choosing(_parted(url)[2])
    return f" of query {zlib.crc32(query.encode('utf-8', 'replace')):08x}" if query else ""


def full_url(url: str) -> str:
    """Return a URL as its place is to be asked: with what was given with it, or with one above it.

    >>> _ = public_url("https://me:pw@host/data?signature=x")
    >>> full_url("https://host/data/a.json"), full_url("https://host/other")
    ('https://me:pw@host/data/a.json?signature=x', 'https://me:pw@host/other')
    """
    address = url.rstrip("/") if _KEPT else ""
    while address:
        found = _KEPT.get(address) or _IMPLIED.get(address)
        if found is not None:
            return found[0] + url[len(address) :] + found[1]
        address = address.rpartition("/")[0]
    return url


def without_secrets(text: str) -> str:
    """Return a line with what is public of each URL in it.

    >>> without_secrets("no split 'https://me:pw@host/a?sig=1' in toy")
    "no split 'https://host/a' in toy"
    """
    return _IN_TEXT.sub(lambda found: _parted(found[0])[0], text) if "://" in text else text


def _parted(url: str) -> tuple[str, str, str]:
    """Return what is public of a URL, all of it but its query, and that."""
    match = _URL.fullmatch(url)
    if match is None:
        return url, url, ""
    scheme, rest, query = match["scheme"].lower(), match["rest"], ""
    if scheme in _WEB:
        rest, _, query = rest.partition("?")
    place = _PLACE.match(rest)
    cut = rest.rfind("@") + 1 if place is None else len(place["user"] or "")
    name = f"{rest[:cut].rpartition('@')[0].partition(':')[0]}@" if cut and scheme in _NAMED else ""
    return f"{scheme}://{name}{rest[cut:]}", f"{scheme}://{rest}", f"?{query}" if query else ""
