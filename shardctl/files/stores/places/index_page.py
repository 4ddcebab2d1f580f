"""The page on which a web server lists a folder: the names of what is right in it."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit


def links_of(page: str, url: str) -> tuple[list[str], list[str]]:
    """Return the URLs of the files and of the folders that a page at `url` lists, each once.

    Only links to what is right in the folder count: none that leave it, none with a query (these
    sort the page), none to a name that hides another folder (`%2F`, `..`).

    >>> links_of('<a href="../">..</a><a href="?C=N">Name</a><a href="a.txt">a.txt</a>', "http://h/d/")
    (['http://h/d/a.txt'], [])
    """
    parser = _Links()
    parser.feed(page)
    base = urlsplit(url)
    folder = base.path if base.path.endswith("/") else f"{base.path}/"
    files: dict[str, None] = {}
    folders: dict[str, None] = {}
    for reference in parser.references:
        name = _name(reference, base.scheme, base.netloc, folder)
        if name is None:
            continue
        whole = f"{base.scheme}://{base.netloc}{folder}{name}"
        (folders if name.endswith("/") else files)[whole] = None
    return list(files), list(folders)


def _name(reference: str, scheme: str, host: str, folder: str) -> str | None:
    """Return what a link calls right in a folder, None where it leads elsewhere."""
    try:
        target = urlsplit(urldefrag(urljoin(f"{scheme}://{host}{folder}", reference.strip()))[0])
    except ValueError:
        return None
    if (target.scheme, target.netloc) != (scheme, host) or target.query or "?" in reference:
        return None
    path = target.path
    # A server may write in a link what it need not, `%2D`, so the folders are compared as names.
    parent, _, last = path.rstrip("/").rpartition("/")
    if unquote(f"{parent}/") != unquote(folder) or not last:
        return None
    plain = unquote(last)
    if plain in (".", "..") or "/" in plain or "\\" in plain or "\0" in plain:
        return None
    return last + ("/" if path.endswith("/") else "")


class _Links(HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.references += [value for name, value in attrs if name == "href" and value]
