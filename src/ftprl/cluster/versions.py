"""Versions of a file on a shared path, such as s3://bucket/run: one counts once its manifest, written last, is whole.

    00000012-5d1f0a9c.run           version 12
    00000012-5d1f0a9c.manifest      JSON: its size and SHA-256, and the SHA-256 of that

No file is ever written twice, so nothing depends on a file system that renames or replaces. A writer that is killed
leaves files without a manifest, which nobody reads and a later version removes; two writers at once, a process that was
taken for dead and the one in its place, do not touch each other's files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, final

from ftprl.data.files import shown
from ftprl.data.uris import resolved, unreachable
from ftprl.errors import BadModel, InvalidInput

Writer = Callable[[Any], object]  # writes a file to a stream

_FORMAT, _FORMAT_VERSION = "ftprl-versions", 2
_FILE, _MANIFEST = "run", "manifest"
_NAME = re.compile(r"(\d{8,})-([0-9a-f]{8})\.([a-z0-9-]+)")
_WITH_FOLDERS = ("local", "hdfs")  # file systems on which a folder that is missing is a mistake; buckets have none
_KEPT = 2  # versions: the last one, and one to go back to


@final
class _Entry(NamedTuple):
    """The size and the SHA-256 of a file."""

    size: int
    sha256: str


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

    def entry(self) -> _Entry:
        return _Entry(self.size, self._digest.hexdigest())


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

    def write(self, write: Writer) -> int:
        """Write the next version, its manifest last, and remove those before the last two; returns its number."""
        number = 1 + max((int(match[1]) for match in self._listed()), default=0)
        stem = f"{number:08d}-{os.urandom(4).hex()}"
        try:
            entry = self._put(f"{stem}.{_FILE}", write)
            content = {"format": _FORMAT, "version": _FORMAT_VERSION, **entry._asdict()}
            body = json.dumps(content, sort_keys=True)
            digest = hashlib.sha256(body.encode()).hexdigest()
            self._put(f"{stem}.{_MANIFEST}", lambda out: out.write(f"{digest}\n{body}\n".encode()))
        except Exception as error:
            raise unreachable(self.uri, error) from None
        self._remove_before(number)
        return number

    def latest(self) -> bytes | None:
        """The newest version that is complete; None if there is none."""
        manifests = [match for match in self._listed() if match[3] == _MANIFEST]
        for match in sorted(manifests, key=lambda match: (int(match[1]), match[2]), reverse=True):
            stem = f"{match[1]}-{match[2]}"
            entry = self._entry(stem)
            if entry is None:
                continue
            body = self._get(f"{stem}.{_FILE}")
            if hashlib.sha256(body).hexdigest() != entry.sha256:
                raise BadModel(
                    f"{shown(self.uri)}: expected version {int(match[1])} as it was written, got other bytes; start"
                    " anew."
                )
            return body
        return None

    def _entry(self, stem: str) -> _Entry | None:
        """What a manifest says of its version; None if it was cut off, or if the file has another size."""
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
        entry = _Entry(int(content["size"]), str(content["sha256"]))
        return entry if self._system.get_file_info(f"{self._path}/{stem}.{_FILE}").size == entry.size else None

    def _listed(self) -> list[re.Match[str]]:
        """The files of all versions, complete or not."""
        from pyarrow import fs

        try:
            selector = fs.FileSelector(self._path, allow_not_found=True)
            names = [info.base_name for info in self._system.get_file_info(selector)]
        except Exception as error:
            raise unreachable(self.uri, error) from None
        return [match for name in names if (match := _NAME.fullmatch(name))]

    def _put(self, name: str, write: Writer) -> _Entry:
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
