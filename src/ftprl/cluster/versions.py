"""Versions of files on a shared path, such as s3://bucket/run: one counts once its manifest, written last, is whole.

    00000012-5d1f0a9c.run           the files of version 12
    00000012-5d1f0a9c.manifest      JSON: their names, sizes and SHA-256, and the SHA-256 of that

No file is ever written twice, so nothing depends on a file system that renames or replaces. A writer that is killed
leaves files without a manifest, which nobody reads and a later version removes; two writers at once, a process that was
taken for dead and the one in its place, do not touch each other's files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from ftprl.data.files import shown
from ftprl.data.uris import resolved, unreachable
from ftprl.errors import BadModel, InvalidInput

Writer = Callable[[Any], object]  # writes one file to a stream

_FORMAT, _FORMAT_VERSION = "ftprl-versions", 1
_MANIFEST = "manifest"
_NAME = re.compile(r"(\d{8,})-([0-9a-f]{8})\.([a-z0-9-]+)")
_WITH_FOLDERS = ("local", "hdfs")  # file systems on which a folder that is missing is a mistake; buckets have none
_KEPT = 2  # versions: the last one, and one to go back to


@final
class Version(NamedTuple):
    """A complete version: its number, the stem of its files, and the size and SHA-256 of each."""

    number: int
    stem: str
    files: dict[str, tuple[int, str]]


@final
class _Counted:
    """A stream that counts and digests what is written to it."""

    def __init__(self, out: Any) -> None:
        self._out, self.size, self._digest = out, 0, hashlib.sha256()

    def seekable(self) -> bool:
        return False

    def write(self, part: Any) -> int:
        self._out.write(part)
        self._digest.update(part)
        count = memoryview(part).nbytes
        self.size += count
        return count

    def entry(self) -> list[Any]:
        return [self.size, self._digest.hexdigest()]


@final
class VersionedFolder:
    """A folder of versions at a URI; `option` is the one that named it, for messages."""

    def __init__(self, uri: str, option: str) -> None:
        self.uri, self._option = uri, option
        self._system, path = resolved(uri)
        self._path = path.rstrip("/")

    def check(self) -> None:
        """Raise before any work is done if no version could be written afterwards."""
        from pyarrow import fs

        try:
            parent = self._path.rpartition("/")[0]
            has_folders = self._system.type_name in _WITH_FOLDERS and parent
            is_known = not has_folders or self._system.get_file_info(parent).type == fs.FileType.Directory
            if is_known:
                self._system.create_dir(self._path, recursive=True)
                probe = f"{self._path}/.{os.urandom(4).hex()}.probe"
                self._system.open_output_stream(probe, compression=None).close()
                self._system.delete_file(probe)
        except Exception as error:  # whatever a file system of others raises
            raise unreachable(self.uri, error) from None
        if not is_known:
            raise InvalidInput(
                f"{self._option}= needs a shared path that exists, got {shown(self.uri)!r}; create the folder above it"
                " first, or check its name.",
                option=self._option,
            )

    def write(self, files: Mapping[str, Writer]) -> Version:
        """Write the next version, its manifest last, and remove those before the last two."""
        stem = self.next_stem()
        return self.commit(stem, {name: self.put(stem, name, write) for name, write in files.items()})

    def next_stem(self) -> str:
        """How the names of the files of the next version begin."""
        number = 1 + max((int(match[1]) for match in self._listed()), default=0)
        return f"{number:08d}-{os.urandom(4).hex()}"

    def put(self, stem: str, name: str, write: Writer) -> list[Any]:
        """Write one file of a version that is not complete yet; its size and SHA-256."""
        try:
            return self._put(f"{stem}.{name}", write)
        except Exception as error:
            raise unreachable(self.uri, error) from None

    def commit(self, stem: str, entries: Mapping[str, list[Any]]) -> Version:
        """Write the manifest of a version whose files are all there, and remove those before the last two."""
        number = int(stem.partition("-")[0])
        try:
            body = json.dumps({"format": _FORMAT, "version": _FORMAT_VERSION, "files": dict(entries)}, sort_keys=True)
            digest = hashlib.sha256(body.encode()).hexdigest()
            self._put(f"{stem}.{_MANIFEST}", lambda out: out.write(f"{digest}\n{body}\n".encode()))
        except Exception as error:
            raise unreachable(self.uri, error) from None
        self._remove_before(number)
        return Version(number, stem, {name: (size, sha) for name, (size, sha) in entries.items()})

    def latest(self) -> Version | None:
        """The newest version that is complete; None if there is none."""
        manifests = [match for match in self._listed() if match[3] == _MANIFEST]
        for match in sorted(manifests, key=lambda match: (int(match[1]), match[2]), reverse=True):
            version = self._parsed(int(match[1]), f"{match[1]}-{match[2]}")
            if version is not None:
                return version
        return None

    def read(self, version: Version, name: str) -> bytes:
        """The bytes of one file of a version."""
        body = self._get(f"{version.stem}.{name}")
        if (len(body), hashlib.sha256(body).hexdigest()) != version.files[name]:
            raise BadModel(
                f"{shown(self.uri)}: expected version {version.number} as it was written, got other bytes of {name};"
                " start anew."
            )
        return body

    def _parsed(self, number: int, stem: str) -> Version | None:
        """A version by its manifest; None if that was cut off or if a file is not there as it should be."""
        digest, _, rest = self._get(f"{stem}.{_MANIFEST}").partition(b"\n")
        body = rest.removesuffix(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        content = json.loads(body)
        if content.get("version") != _FORMAT_VERSION:
            raise BadModel(
                f"{shown(self.uri)}: expected versions of format {_FORMAT_VERSION}, got {content.get('version')!r:.40};"
                " use the ftprl that wrote them."
            )
        files = {name: (int(size), str(sha)) for name, (size, sha) in content["files"].items()}
        infos = self._system.get_file_info([f"{self._path}/{stem}.{name}" for name in files])
        are_whole = all(info.size == size for info, (size, _) in zip(infos, files.values(), strict=True))
        return Version(number, stem, files) if are_whole else None

    def _listed(self) -> list[re.Match[str]]:
        """The files of all versions, complete or not."""
        from pyarrow import fs

        try:
            selector = fs.FileSelector(self._path, allow_not_found=True)
            names = [info.base_name for info in self._system.get_file_info(selector)]
        except Exception as error:
            raise unreachable(self.uri, error) from None
        return [match for name in names if (match := _NAME.fullmatch(name))]

    def _put(self, name: str, write: Writer) -> list[Any]:
        with self._system.open_output_stream(f"{self._path}/{name}", compression=None) as out:
            counted = _Counted(out)
            write(counted)
        return counted.entry()

    def _get(self, name: str) -> bytes:
        try:
            with self._system.open_input_stream(f"{self._path}/{name}", compression=None) as file:
                return bytes(file.read())
        except Exception as error:
            raise unreachable(f"{self.uri}/{name}", error) from None

    def _remove_before(self, number: int) -> None:
        """Remove what is older than the versions that are kept; the manifests first, so that none lacks its files."""
        listed = self._listed()
        complete = sorted({int(match[1]) for match in listed if match[3] == _MANIFEST and int(match[1]) <= number})
        oldest = complete[-_KEPT:][0]
        old = [match for match in listed if int(match[1]) < oldest]
        for match in sorted(old, key=lambda match: match[3] != _MANIFEST):
            try:
                self._system.delete_file(f"{self._path}/{match[0]}")
            except Exception:  # a file too many does no harm, and another writer may have removed it
                continue
