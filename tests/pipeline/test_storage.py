"""Files appear whole or not at all, on a disk and in a bucket."""

import errno
import os
import subprocess
import threading
from itertools import cycle, islice

import pyarrow.fs as pafs
import pytest
from small_runs import content, small_config

from pipeline.errors import StorageError
from pipeline.run import Run, run_names
from pipeline.storage import Storage
from pipeline.train import train


@pytest.fixture(scope="module")
def bucket():
    """URI of an empty bucket on a server of our own in this process."""
    from moto.server import ThreadedMotoServer

    keys = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = dict(os.environ)
    os.environ.update(keys)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    files = pafs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
    )
    files.create_dir("bucket")
    yield (
        f"s3://bucket/prefix?endpoint_override={host}:{port}&scheme=http&allow_bucket_creation=true"
    )
    server.stop()
    for key in keys:
        os.environ.pop(key)
        if key in before:
            os.environ[key] = before[key]


@pytest.fixture(params=["local", "file URI", "S3"])
def storage(request, tmp_path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path / "root"))
    if request.param == "file URI":
        return Storage(f"file://{tmp_path}/root")
    root = request.getfixturevalue("bucket").replace("/prefix", f"/{tmp_path.name}")
    return Storage(root)


# What every storage does.


@pytest.mark.parametrize("data", [b"", b"x", b"\0\xff\n\r\n", b"0123456789" * 10**5])
def test_what_is_read_is_what_was_written(storage, data):
    storage.write("a/b/file", data)
    assert storage.read("a/b/file") == data
    assert storage.exists("a/b/file") and not storage.exists("a/b/other")


def test_text_is_utf8(storage):
    storage.write("text", "Zähler ²\n")
    assert storage.read("text") == "Zähler ²\n".encode()


def test_a_file_is_replaced(storage):
    storage.write("file", b"a long first version")
    storage.write("file", b"short")
    assert storage.read("file") == b"short"
    assert storage.names() == ["file"]


def test_appending(storage):
    storage.append("run/lines", "one\n")
    storage.append("run/lines", "zwei ²\n")
    storage.append("run/lines", "three\n")
    assert storage.read("run/lines").decode() == "one\nzwei ²\nthree\n"


def test_a_missing_file_is_no_storage_error(storage):
    with pytest.raises(FileNotFoundError):
        storage.read("nowhere/nothing")
    assert not storage.exists("nowhere/nothing") and not storage.exists("nowhere")
    storage.delete("nowhere/nothing")


def test_names_are_sorted_and_without_hidden_ones(storage):
    for name in ("b", "a10", "a9", ".hidden", "_temporary", "folder/file", "folder/.lock"):
        storage.write(name, b"x")
    assert storage.names() == ["a10", "a9", "b", "folder"]
    assert storage.names("folder") == ["file"]
    assert storage.names("nowhere") == []


def test_deleting(storage):
    storage.write("a/b", b"x")
    storage.write("a/c", b"x")
    storage.delete("a/b")
    assert not storage.exists("a/b")
    assert storage.names("a") == ["c"]
    storage.delete("a/b")  # twice is no error


def test_a_new_root_is_empty(storage):
    assert storage.names() == [] and run_names(storage) == []


def test_where_names_the_file(storage):
    assert "/run/config.yaml" in storage.where("run/config.yaml")
    assert "config" not in storage.where()


# A disk.


def test_roots_are_folders_or_uris(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Storage("runs").local == tmp_path / "runs"
    assert Storage("./x/../runs").root == str(tmp_path / "runs")
    assert Storage("~/runs").local == tmp_path / "home" / "runs"
    assert Storage(f"file://{tmp_path}/runs").local == tmp_path / "runs"
    assert Storage(str(tmp_path)).where("a/b") == f"{tmp_path}/a/b"
    assert Storage(f"file://{tmp_path}/runs").where("a") == f"{tmp_path}/runs/a"


@pytest.mark.parametrize("root", ["nosuch://x", "s3://bucket?nosuch=1", "file://relative"])
def test_a_root_that_cannot_be_opened_is_named(root):
    with pytest.raises(StorageError) as caught:
        Storage(root)
    message = str(caught.value)
    assert message.startswith(f"the root {root!r} cannot be opened: ") and "\n" not in message
    assert "expected a local folder or a URI such as s3://bucket/prefix" in message


def everything_under(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, code):
    storage = Storage(str(tmp_path))
    storage.write("run/file", b"old")

    def fail(*_):
        raise OSError(code, os.strerror(code))

    class Full:
        def __init__(self, *args):
            self.file = open(*args)  # noqa: SIM115

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        write = fail

    if step == "write":
        monkeypatch.setattr("pipeline.storage.open", Full, raising=False)
    else:
        monkeypatch.setattr(os, step, fail)
    for path in ("run/file", "run/new"):
        with pytest.raises(StorageError) as caught:
            storage.write(path, b"new")
        message = str(caught.value)
        assert message.startswith(f"cannot write {tmp_path}/{path}: ")
        assert os.strerror(code) in message and "\n" not in message
    monkeypatch.undo()
    assert everything_under(tmp_path) == ["file"]
    assert storage.read("run/file") == b"old"
    storage.write("run/new", b"new")


def test_a_failed_append_is_told(tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"cannot write .*/lines: .*No space left"):
        storage.append("lines", "one\n")


def test_a_disk_that_is_full_for_real(tmp_path):
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mount.returncode:
        pytest.skip("mounting a file system needs more rights")
    try:
        storage = Storage(str(tmp_path))
        storage.write("run/file", b"old")
        with pytest.raises(StorageError, match=r"cannot write .*/run/file: .*No space left"):
            storage.write("run/file", b"x" * 2**20)
        assert everything_under(tmp_path) == ["file"]
        assert storage.read("run/file") == b"old"
        storage.write("run/file", b"y" * 2**16)  # the space is free again
        assert storage.read("run/file") == b"y" * 2**16
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_path_that_cannot_be_is_told(tmp_path):
    storage = Storage(str(tmp_path))
    storage.write("file", b"x")
    with pytest.raises(StorageError, match=r"cannot write .*/file/below: "):
        storage.write("file/below", b"x")
    with pytest.raises(StorageError, match=r"cannot write .*/file/below: "):
        storage.append("file/below", "x")
    storage.write("folder/file", b"x")
    with pytest.raises(StorageError, match=r"cannot write .*/folder: "):
        storage.write("folder", b"x")
    with pytest.raises(StorageError, match=r"cannot read .*/folder: "):
        storage.read("folder")
    # In the system's words alone, whether Python or pyarrow says it.
    with pytest.raises(StorageError, match=r"cannot read .*/file/below: Not a directory$"):
        storage.read("file/below")
    with pytest.raises(StorageError, match=r"cannot write .*/folder: Is a directory; free or"):
        storage.write("folder", b"x")
    assert everything_under(tmp_path) == ["file", "file"]


def test_a_reader_never_sees_half_a_file(tmp_path):
    storage = Storage(str(tmp_path))
    versions = [bytes([letter]) * size for letter, size in ((65, 300_000), (66, 700_000))]
    storage.write("file", versions[0])
    done = threading.Event()

    def write():
        for version in islice(cycle(versions), 30):
            storage.write("file", version)
        done.set()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    reads = 0
    while not done.is_set():
        assert storage.read("file") in versions
        assert storage.names() == ["file"]
        reads += 1
    for writer in writers:
        writer.join()
    assert reads > 3
    assert everything_under(tmp_path) == ["file"]


def test_a_written_file_and_its_folder_are_flushed_to_the_disk(tmp_path, monkeypatch):
    flushed = []
    flush = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (flushed.append(os.readlink(f"/proc/self/fd/{fd}")), flush(fd))
    )
    Storage(str(tmp_path)).write("run/file", b"x")
    assert len(flushed) == 2
    assert flushed[0].startswith(f"{tmp_path}/run/.file.") and flushed[1] == f"{tmp_path}/run"


# A bucket.


def test_a_bucket_is_no_local_folder(bucket):
    assert Storage(bucket).local is None


def test_a_bucket_that_is_not_there_is_told(bucket):
    elsewhere = Storage(bucket.replace("//bucket/", "//nobucket/"))
    with pytest.raises(StorageError) as caught:
        elsewhere.write("file", b"x")
    message = str(caught.value)
    assert "cannot write s3://nobucket/prefix" in message and "NO_SUCH_BUCKET" in message
    assert "\n" not in message


def test_where_is_the_address_of_the_object(bucket):
    """The options of the URI are no part of the object's name."""
    assert (
        Storage(bucket).where("run/config.yaml").split("?")[0]
        == "s3://bucket/prefix/run/config.yaml"
    )


def test_a_run_in_a_bucket_is_the_run_on_the_disk_and_goes_on(bucket, tmp_path):
    root = bucket.replace("/prefix", "/runs")
    sizes = {"selfplay__games": 60, "selfplay__games_per_shard": 20, "evaluation__games": 10}
    train(small_config(tmp_path, "run", **sizes))
    local = content(Run.open(str(tmp_path), "run"))

    train(small_config(root, "run", generations=1, **sizes))
    assert len(content(Run.open(root, "run"))) == 2
    train(small_config(root, "run", **sizes))
    run = Run.open(root, "run")
    assert content(run) == local

    # A crash in generation 2 with one shard lost and one damaged: made again, and nothing else.
    storage = run.storage
    storage.delete(f"{run.folder(2)}/manifest.json")
    storage.delete(run.shard_path(2, 0))
    storage.write(run.shard_path(2, 1), storage.read(run.shard_path(2, 1))[:-20])
    train(small_config(root, "run", **sizes))
    assert content(Run.open(root, "run")) == local
    lines = storage.read("run/metrics.jsonl").decode().splitlines()
    assert len(lines) == 3
    assert run_names(storage) == ["run"]
