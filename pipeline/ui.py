"""`selfplay ui`: the MLflow dashboard on the runs of a folder."""

import argparse
import os
import socket
import sys

from pipeline.errors import UserError
from pipeline.storage import Storage
from pipeline.tracking import tracking_uri


def main(arguments: list[str]) -> None:
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(prog="selfplay ui", description=__doc__)
    parser.add_argument("--root", default="runs", help="folder of the runs (default: runs)")
    parser.add_argument("--port", type=int, default=5000)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    options = parser.parse_args(arguments)
    storage = Storage(options.root)
    if storage.local is None or not (storage.local / "mlflow.db").exists():
        raise UserError(
            f"there is no MLflow database under {storage.where()}; train something first, or name "
            "the folder with --root"
        )
    _check_free(options.host, options.port)
    print(f"MLflow on http://{options.host}:{options.port}, up in 10 to 60 seconds", flush=True)
    # One worker and no job runner: a fifth of the memory and start-up time of the default.
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
    command += ["--host", options.host, "--port", str(options.port)]
    command += ["--backend-store-uri", tracking_uri(storage, None)]
    command += ["--default-artifact-root", (storage.local / "mlartifacts").as_uri()]
    os.execve(sys.executable, command, environment)  # signals reach the server itself


def _check_free(host: str, port: int) -> None:
    """Refuses an address on which the server could not listen: it would say so in the middle of its
    log, and end as if all were well.

    Raises:
        UserError: the port is out of range or taken, or the host is no address of this machine.
    """
    if not 1 <= port <= 65535:
        raise UserError(f"--port must be in 1..65535, got {port}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another port with --port, "
            "or end what uses this one"
        ) from error
