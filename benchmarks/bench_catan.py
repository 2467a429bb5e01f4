"""Catan on one core: mask, step and random choice; whole games; features; beside its peers.

    python benchmarks/bench_catan.py [folder]

`folder` is where catanatron and fastcatan were installed (pip install --target <folder> catanatron
fastcatan); without it they are looked for in the environment and left out where they are not.
fastcatan needs Python 3.12. All figures are CPU time of one thread. Ours counts decisions of
players; the rolls and draws of chance are made in the same time and are not counted.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numba import njit

from games import CHANCE, make_game
from pipeline.backend import one_thread
from pipeline.policies.base import first_legal
from pipeline.policies.scripted import UniformRandom, baseline
from pipeline.selfplay import play_games
from pipeline.streams import game_keys, mix

BATCH, ROUNDS = 1024, 5


@njit(cache=True)
def choose(players, legal, chances, keys, actions):
    """A legal action of each row, or an outcome of chance; returns how many actions."""
    decisions = 0
    for i in range(len(players)):
        keys[i] += np.uint64(0x9E3779B97F4A7C15)
        uniform = np.float64(mix(keys[i]) >> np.uint64(11)) * 2.0**-53
        if players[i] == CHANCE:
            for outcome in range(chances.shape[1]):
                if chances[i, outcome] > 0.0:
                    actions[i] = outcome
                    uniform -= chances[i, outcome]
                    if uniform < 0.0:
                        break
            continue
        row = legal[i]
        count = 0
        for action in range(len(row)):
            count += row[action]
        action = first_legal(row, 0)
        for _ in range(int(uniform * count)):
            action = first_legal(row, action + 1)
        actions[i] = action
        decisions += 1
    return decisions


def engine_speed(game, plies: int) -> tuple[float, float]:
    """(decisions, plies) per second of mask + step + random choice."""
    states = game.initial_states(np.arange(BATCH))
    legal = np.empty((BATCH, game.num_actions), np.bool_)
    chances = np.empty((BATCH, game.num_outcomes), np.float32)
    actions = np.empty(BATCH, np.int32)
    keys = np.arange(BATCH, dtype=np.uint64) * np.uint64(7919)
    decisions = 0
    start = time.process_time()
    for _ in range(plies):
        game.legal_actions(game.rules, states, legal)
        game.chance_probabilities(game.rules, states, chances)
        decisions += choose(states["player"], legal, chances, keys, actions)
        game.step(game.rules, states, actions)
        over = np.flatnonzero(states["player"] < CHANCE)
        if len(over):
            # Rows without fields move at once.
            plain = np.dtype((np.void, states.dtype.itemsize))
            states.view(plain)[over] = game.initial_states(keys[over]).view(plain)
    spent = time.process_time() - start
    return decisions / spent, plies * BATCH / spent


def games_per_second(game, policy, games: int) -> float:
    keys = game_keys(1, "benchmark", 0, np.arange(games))
    seatings = np.zeros((games, game.num_players), np.int8)
    start = time.process_time()
    play_games(game, [policy], seatings, keys, batch=BATCH, record=False)
    return games / (time.process_time() - start)


def observe_microseconds(game) -> float:
    """Per player and state, over positions from all of random games."""
    states = game.initial_states(np.arange(BATCH))
    legal = np.empty((BATCH, game.num_actions), np.bool_)
    actions = np.empty(BATCH, np.int32)
    keys = np.arange(BATCH, dtype=np.uint64)
    for _ in range(500):
        game.legal_actions(game.rules, states, legal)
        choose(states["player"], legal, game.chance_of(states), keys, actions)
        game.step(game.rules, states, actions)
    players = np.arange(BATCH, dtype=np.int32) % game.num_players
    out = np.empty((BATCH, game.observation_size), np.float32)
    start = time.process_time()
    for _ in range(20):
        game.observe(game.rules, states, players, out)
    return (time.process_time() - start) / 20 / BATCH * 1e6


_COMPILE = """
import time
start = time.process_time()
import numpy as np
from games import make_game
game = make_game("catan", trading="bank")
states = game.initial_states(np.arange(4))
legal = game.legal_of(states)
game.observations_of(states, np.zeros(4))
game.chance_of(states)
game.returns_of(states)
game.after(states, legal.argmax(1))
print(time.process_time() - start)
"""


def compile_seconds() -> tuple[float, float]:
    """(cold, warm): importing and calling every kernel once, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(
            float(
                subprocess.run(
                    [sys.executable, "-c", _COMPILE],
                    env={"SELFPLAY_CACHE": folder, "PYTHONPATH": str(Path(__file__).parents[1])},
                    capture_output=True,
                    check=True,
                    text=True,
                ).stdout
            )
            for _ in range(2)
        )


def catanatron_games(games: int) -> float:
    from catanatron import Color, Game, RandomPlayer

    start = time.process_time()
    for seed in range(games):
        Game([RandomPlayer(color) for color in Color], seed=seed).play()
    return games / (time.process_time() - start)


@njit(cache=True)
def choose_bits(masks, kept, keys, actions):
    """A set bit of each row of uint64 [B, W] among those `kept`, uint64 [W]."""
    for i in range(len(masks)):
        keys[i] += np.uint64(0x9E3779B97F4A7C15)
        count = 0
        for word in range(masks.shape[1]):
            bits = masks[i, word] & kept[word]
            while bits:
                bits &= bits - np.uint64(1)
                count += 1
        skip = np.int64(mix(keys[i]) % np.uint64(count))
        for word in range(masks.shape[1]):
            bits = masks[i, word] & kept[word]
            while bits:
                if skip == 0:
                    place = 0
                    while not bits >> np.uint64(place) & np.uint64(1):
                        place += 1
                    actions[i] = 64 * word + place
                skip -= 1
                bits &= bits - np.uint64(1)


def fastcatan_speed(plies: int) -> float:
    """M decisions per second of fastcatan's batch, one thread, without trades between players. Its
    rolls are decisions, and its chance is drawn inside of them."""
    import fastcatan

    envs = fastcatan.BatchedEnv(BATCH, seed=1)
    envs.reset()
    masks = np.zeros((BATCH, fastcatan.MASK_WORDS), np.uint64)
    actions, dones = np.zeros(BATCH, np.uint32), np.zeros(BATCH, np.uint8)
    keys = np.arange(BATCH, dtype=np.uint64)
    first, last = fastcatan.action.TRADE_ADD_GIVE_BASE, fastcatan.action.TRADE_OPEN
    bits = sum(1 << a for a in range(fastcatan.NUM_ACTIONS) if not first <= a <= last)
    kept = np.array([bits >> 64 * w & (2**64 - 1) for w in range(masks.shape[1])], np.uint64)
    envs.write_masks(masks)
    choose_bits(masks, kept, keys, actions)  # compiles
    start = time.process_time()
    for _ in range(plies):
        envs.write_masks(masks)
        choose_bits(masks, kept, keys, actions)
        envs.step_autoreset(actions, dones)
    return plies * BATCH / (time.process_time() - start) / 1e6


def show(name: str, values: list[float], unit: str) -> None:
    print(
        f"{name:<44} {statistics.median(values):>12,.2f} {min(values):>12,.2f} "
        f"{max(values):>12,.2f} {unit}"
    )


def main() -> None:
    one_thread()
    if len(sys.argv) > 1:
        sys.path.append(sys.argv[1])  # behind our own packages
    bank, full = make_game("catan", trading="bank"), make_game("catan")
    engine_speed(bank, 50), games_per_second(bank, UniformRandom(), 50)  # compiles
    scripts = {name: baseline(name, full) for name in full.scripted}
    raw = make_game("catan", observation="raw")
    for policy in scripts.values():
        games_per_second(full, policy, 4)
    observe_microseconds(full), observe_microseconds(raw)
    print(f"{'Catan, four players, one core':<44} {'median':>12} {'least':>12} {'most':>12}")
    speeds = [engine_speed(bank, 3000) for _ in range(ROUNDS)]
    show("mask + step + random choice, B = 1,024", [x / 1e6 for x, _ in speeds], "M decisions/s")
    show("  the same, rolls and draws counted", [x / 1e6 for _, x in speeds], "M plies/s")
    rounds = range(ROUNDS)
    for name, game in (("bank trades only", bank), ("players trade", full)):
        values = [games_per_second(game, UniformRandom(), 10_000) for _ in rounds]
        show(f"random games, {name}", values, "games/s")
    for name, policy in scripts.items():
        show(f"{name} games", [games_per_second(full, policy, 300) for _ in rounds], "games/s")
    show("features", [observe_microseconds(full) for _ in rounds], "us per player and state")
    show("raw observation", [observe_microseconds(raw) for _ in rounds], "us per player and state")
    cold, warm = compile_seconds()
    print(f"first call of all kernels: {cold:.1f} s with an empty cache, {warm:.1f} s after that")
    print(f"state: {bank.state_dtype.itemsize} bytes")
    try:
        show("catanatron, random games", [catanatron_games(10) for _ in rounds], "games/s")
    except ImportError:
        print("catanatron is not installed: no comparison")
    try:
        values = [fastcatan_speed(1000) for _ in rounds]
        show("fastcatan, mask + step + random choice", values, "M decisions/s")
    except ImportError:
        print("fastcatan is not installed: no comparison")


if __name__ == "__main__":
    main()
