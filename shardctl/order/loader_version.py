"""Of which version of its library the order of a loader is to be, and whether that is proven."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.base.hooks import provided
from shardctl.base.phrase import refused
from shardctl.base.text import choices
from shardctl.loaders.loader import LOADERS, Loader, VerifiedVersion, proven_as
from shardctl.settings.read_settings import ReadSettings


@dataclass(frozen=True, kw_only=True)
class LoaderVersion:
    """The version in force, and what surprises about it.

    is_proven: whether the rule agreed with it where shardctl is made; else it was verified here.
    assumptions: what is taken for granted where nothing says which version it is, in sentences.
    """

    version: str
    is_proven: bool = True
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


def loader_version(settings: ReadSettings) -> LoaderVersion:
    """Return the version that is named, else the installed one, else the newest that is proven.

    Nothing is imported for it. A version is proven as `loaders/loader.py` says; another one
    is taken where `verify` has found it equal on this machine. The packages beside a library, as
    torch beside torchdata, count where the installed version is taken.

    Raises:
        UsageError: the version is neither proven nor verified.
    """
    loader, named = LOADERS[settings.loader], settings.loader_version
    if named is not None:
        return _proven(loader, named) or _verified(loader, named) or _refuse_named(loader, named)
    installed = provided("installed_version")(loader.library)
    if installed is None:
        newest = loader.proven[-1]
        said = (
            f"{loader.library} {newest}, since none is installed here; --loader-version {newest} "
            "leaves this out"
        )
        return LoaderVersion(version=newest, assumptions=(said,))
    return installed_loader_version(loader, installed) or _refuse_installed(loader, installed)


def with_version(settings: ReadSettings) -> ReadSettings:
    """Return settings that name the version in force; TFDS's reader has none to name.

    Raises:
        UsageError: the version is neither proven nor verified.
    """
    if not settings.reader.proven:
        return settings
    return replace(settings, loader_version=loader_version(settings).version)


def installed_loader_version(loader: Loader, installed: str) -> LoaderVersion | None:
    """Return the installed version where it and what is beside it are proven or verified here."""
    found = _proven(loader, installed)
    if found is not None and not unproven_beside(loader):
        return found
    return _verified(loader, installed)


def unproven_beside(loader: Loader) -> dict[str, str]:
    """Return the installed packages beside a library that are not of a proven version."""
    installed = {package: provided("installed_version")(package) for package in loader.beside}
    return {
        package: version
        for package, version in installed.items()
        if version is not None and not proven_as(loader.beside[package], version)
    }


def _proven(loader: Loader, version: str) -> LoaderVersion | None:
    found = proven_as(loader.proven, version)
    return None if found is None else LoaderVersion(version=found)


def _verified(loader: Loader, version: str) -> LoaderVersion | None:
    found: VerifiedVersion | None = provided("verified_version")(loader.name, version)
    if found is None:
        return None
    said = (
        f"{loader.library} {found.version} is none of the versions that shardctl was made "
        f"for; shardctl verify found it equal here in {found.num_settings} settings, on "
        f"{found.date}"
    )
    return LoaderVersion(version=found.version, is_proven=False, warnings=(said,))


def _refuse_named(loader: Loader, version: str) -> LoaderVersion:
    there = f"{loader.library} {version}"
    raise refused(
        "{loader_version=}: of {} the order is known for {}; choose one of these, or install {} "
        "and run shardctl verify with {loader=}, which compares it with the order that is known",
        *(loader.library, choices(loader.proven), there),
        loader_version=version,
        loader=loader.name,
    )


def _refuse_installed(loader: Loader, version: str) -> LoaderVersion:
    there, known = f"{loader.library} {version} is installed", choices(loader.proven)
    for package, other in unproven_beside(loader).items() if _proven(loader, version) else ():
        there += f" with {package} {other}"
        known = f"{package} {choices(loader.beside[package])}"
        break
    raise refused(
        "{}, and its order is known for {}: {loader_version=} predicts that one; shardctl verify "
        "with {loader=} compares the installed one with it",
        *(there, known),
        loader_version=proven_as(loader.proven, version) or loader.proven[-1],
        loader=loader.name,
    )
