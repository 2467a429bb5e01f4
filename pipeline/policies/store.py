"""Saving and loading policies: a folder with `policy.json` and `arrays.npz`. Nothing is unpickled.

A saved policy is known by a digest of its contents, so that nobody plays with another one by
mistake and every trace says exactly who decided.
"""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from games import Game
from pipeline.errors import PolicyError
from pipeline.policies.action_trees import ActionTreesPolicy, TypeTreesPolicy
from pipeline.policies.afterstates import AfterstatePolicy
from pipeline.policies.base import Policy, SavedPolicy
from pipeline.policies.hierarchical import HierarchicalPolicy
from pipeline.policies.mlp import MLP
from pipeline.policies.q_network import QNetworkPolicy
from pipeline.policies.scripted import baseline
from pipeline.storage import Storage

FORMAT = 1

# What json, zipfile and NumPy raise over a damaged file.
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    OSError,
    EOFError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)

# What a saved policy calls itself -> how it is put together again.
KINDS: dict[str, Callable[[dict, dict], SavedPolicy]] = {
    "action_trees": ActionTreesPolicy.from_parts,
    "afterstate_value": lambda spec, arrays: AfterstatePolicy(MLP.from_parts(spec, arrays)),
    "hierarchical": HierarchicalPolicy.from_parts,
    "type_trees": TypeTreesPolicy.from_parts,
    "q_network": lambda spec, arrays: QNetworkPolicy(MLP.from_parts(spec, arrays)),
}


@dataclass(frozen=True)
class PolicySource:
    """Where a policy comes from; small enough to travel with every task."""

    name: str  # what traces and tables call it
    path: str | None = None  # its folder, or None for a baseline
    digest: str | None = None  # SHA-256 of its files

    def to_json(self) -> dict:
        return asdict(self)


def save_policy(
    storage: Storage, path: str, policy: SavedPolicy, game: Game, generation: int
) -> PolicySource:
    """Writes a policy's folder and returns its source."""
    spec, arrays = policy.to_parts()
    facts = {
        "format": FORMAT,
        "kind": policy.kind,
        "game": game.name,
        "params": dict(game.params),
        **({} if game.files is None else {"files": game.files}),
        **spec,
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    text = json.dumps(facts, sort_keys=True, indent=1).encode()
    storage.write(f"{path}/arrays.npz", buffer.getvalue())
    storage.write(f"{path}/policy.json", text)
    digest = _digest(text, buffer.getvalue())
    return PolicySource(f"g{generation:04d}-{digest[:8]}", path, digest)


def _digest(text: bytes, arrays: bytes) -> str:
    return hashlib.sha256(hashlib.sha256(text).digest() + arrays).hexdigest()


def load_policy(storage: Storage, source: PolicySource, game: Game) -> Policy:
    """The policy that a source names.

    Raises:
        PolicyError: missing, damaged, another than the digest says, or made for another game.
        ValueError: an unknown baseline.
    """
    if source.path is None:
        return baseline(source.name, game)
    where = storage.where(source.path)
    try:
        text = storage.read(f"{source.path}/policy.json")
        data = storage.read(f"{source.path}/arrays.npz")
    except FileNotFoundError as error:
        raise PolicyError(
            f"there is no policy in {where}; delete its generation's folder and resume the run, "
            "which learns it again"
        ) from error
    if source.digest is not None and _digest(text, data) != source.digest:
        raise PolicyError(
            f"the policy in {where} is not the one that was saved there (SHA-256 differs); delete "
            "its generation's folder and resume the run, which learns it again"
        )
    try:
        spec = json.loads(text)
        if spec["format"] != FORMAT or spec["kind"] not in KINDS:
            raise PolicyError(
                f"the policy in {where} is of kind {spec['kind']!r}, format {spec['format']}; this "
                f"program reads {', '.join(KINDS)}, format {FORMAT}"
            )
        if spec["game"] != game.name or spec["params"] != dict(game.params):
            raise PolicyError(
                f"the policy in {where} plays {spec['game']} {spec['params']}, expected "
                f"{game.name} {dict(game.params)}"
            )
        # Policies of before this was kept have none.
        if game.files is not None and spec.get("files", game.files) != game.files:
            raise PolicyError(
                f"the policy in {where} was learned before a file changed that {game.title} "
                "names; put the file back, or train a new run"
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return KINDS[spec["kind"]](spec, arrays)
    except _DAMAGE as error:
        raise PolicyError(f"the policy in {where} is damaged ({error})") from error


@lru_cache(maxsize=32)
def _cached(root: str, source: PolicySource, game_name: str, params: tuple) -> Policy:
    return load_policy(Storage(root), source, _game(game_name, params))


@lru_cache(maxsize=4)
def _game(name: str, params: tuple) -> Game:
    from games import make_game

    return make_game(name, **dict(params))


def fits(policy: Policy, learned: Game, game: Game) -> bool:
    """Can a policy that was learned on one game play another of the same name? What values the
    state after an action needs the same features, what values actions by their numbers the same
    actions too."""
    if learned.observation_names != game.observation_names:
        return False
    by_state = isinstance(policy, AfterstatePolicy | TypeTreesPolicy)
    return by_state or _actions(learned) == _actions(game)


def _actions(game: Game) -> list[str]:
    return [game.action_to_text(game.rules, action) for action in range(game.num_actions)]


def cached_game(name: str, params: dict) -> Game:
    """The game, built once per process."""
    return _game(name, tuple(sorted(params.items())))


def cached_policy(root: str, source: PolicySource, game: Game) -> Policy:
    """The policy, read once per process while it is among the 32 used last."""
    return _cached(root, source, game.name, tuple(sorted(game.params.items())))
