"""Files under a root that may be a local folder or any filesystem URI that pyarrow.fs opens.

A file appears whole or not at all: local files are written under a temporary name, flushed to the
disk and renamed; objects (S3 and the like) are put in one request from memory.
"""

import os
import re
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from pipeline.errors import StorageError

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")  # of `_write_local`
_LEFT = 3600.0  # seconds; no write takes that long


class Storage:
    """Reads and writes bytes by relative path, names separated by "/".

    Args:
        root: a local folder, or a URI such as "s3://bucket/prefix".

    Raises:
        StorageError: the URI cannot be opened.
    """

    def __init__(self, root: str):
        self.root = root
        try:
            if "://" in self.root:
                self._fs, self._base = pafs.FileSystem.from_uri(self.root)
            else:
                self.root = str(Path(root).expanduser().resolve())
                self._fs, self._base = pafs.LocalFileSystem(), self.root
        except (ValueError, OSError, RuntimeError) as error:
            raise StorageError(
                f"the root {root!r} cannot be opened: {reason(error)}; expected a local "
                "folder or a URI such as s3://bucket/prefix"
            ) from error

    @property
    def local(self) -> Path | None:
        """The root as a local folder, or None."""
        return Path(self._base) if isinstance(self._fs, pafs.LocalFileSystem) else None

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base

    def where(self, path: str = "") -> str:
        """What to call a path in a message: a local path or a URI."""
        if self.local:
            return self._full(path)
        address, _, options = self.root.partition("?")
        name = f"{address.rstrip('/')}/{path}"
        return f"{name}?{options}" if options else name

    def read(self, path: str) -> bytes:
        """The whole file.

        Raises:
            FileNotFoundError: there is none.
            StorageError: it cannot be read.
        """
        try:
            with self._fs.open_input_stream(self._full(path)) as stream:
                return stream.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"cannot read {self.where(path)}: {reason(error)}") from error

    def write(self, path: str, data: bytes | str) -> None:
        """Writes a file, replacing it if it is there.

        Raises:
            StorageError: it cannot be written (a full disk, missing rights).
        """
        data = data.encode() if isinstance(data, str) else data
        full = self._full(path)
        try:
            if self.local:
                _write_local(Path(full), data)
            else:
                with self._fs.open_output_stream(full) as stream:
                    stream.write(data)
        except OSError as error:
            raise StorageError(
                f"cannot write {self.where(path)}: {reason(error)}; "
                "free or grant the space, then start the same command again"
            ) from error

    def append(self, path: str, text: str) -> None:
        """Adds text to a small file."""
        if self.local:
            try:
                Path(self._full(path)).parent.mkdir(parents=True, exist_ok=True)
                with open(self._full(path), "a", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise StorageError(f"cannot write {self.where(path)}: {reason(error)}") from error
        else:
            before = self.read(path) if self.exists(path) else b""
            self.write(path, before + text.encode())

    def exists(self, path: str) -> bool:
        return self._info(path).type != pafs.FileType.NotFound

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            return self._fs.get_file_info(self._full(path))
        except OSError as error:
            raise StorageError(f"cannot look up {self.where(path)}: {reason(error)}") from error

    def names(self, folder: str = "") -> list[str]:
        """Names in a folder, sorted, without hidden and temporary ones; [] without a folder."""
        selector = pafs.FileSelector(self._full(folder), allow_not_found=True)
        try:
            infos = self._fs.get_file_info(selector)
        except OSError as error:
            raise StorageError(f"cannot list {self.where(folder)}: {reason(error)}") from error
        return sorted(info.base_name for info in infos if not info.base_name.startswith((".", "_")))

    def drop_leftovers(self, folder: str) -> None:
        """Removes temporary files that killed processes have left under a local folder: those older
        than an hour, since others may be writing there now."""
        if self.local is None:
            return
        for file in Path(self._full(folder)).rglob(".*"):
            if not _TEMPORARY.fullmatch(file.name):
                continue
            with suppress(OSError):  # gone, or not ours to remove: it is in nobody's way
                if time.time() - file.stat().st_mtime > _LEFT:
                    file.unlink()

    def delete(self, path: str) -> None:
        """Removes a file; one that is not there is no error."""
        try:
            self._fs.delete_file(self._full(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageError(f"cannot delete {self.where(path)}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Why a file or a filesystem cannot be used, in the system's words if it has some: pyarrow
    puts the path and the number of the error around them."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error).splitlines() or [type(error).__name__])[0]


def _write_local(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Hidden, so that readers of the folder pass it over; unique, so that two writers of the same
    # file do not share it. Both would write the same bytes.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
