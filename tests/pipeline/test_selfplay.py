"""The driver: every game is its own, whatever runs beside it, and every decision is recorded."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import CHANCE, TERMINAL, make_game
from games.check import check_game
from pipeline.policies.base import Decisions, Exploring, greedy
from pipeline.policies.scripted import UniformRandom, WinOrRandom
from pipeline.selfplay import IllegalAction, draw_outcomes, play_games
from pipeline.streams import Streams, game_keys, mix


@pytest.fixture(params=["sumto12", "connect three", "dice"])
def game(request, sumto12, dice):
    three = {"width": 4, "height": 4, "k": 3}
    return {"sumto12": sumto12, "dice": dice}.get(request.param) or make_game("k_in_a_row", **three)


class Hashed:
    """A learned policy whose q(s, a) is a hash of the position: exact, and alike in every batch."""

    kind = "hashed"

    def action_values(self, game, states, legal):
        q = np.empty(legal.shape, np.float32)
        for row, state in enumerate(states):
            at = mix(np.uint64(int.from_bytes(state.tobytes()[:16], "little") % 2**64))
            q[row] = [int(mix(at + np.uint64(action))) % 8 for action in range(game.num_actions)]
        return np.where(legal, q / 8, -np.inf).astype(np.float32)

    def act(self, game, states, legal, rng):
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self):
        return {}, {}


class Watched:
    """Passes on what another policy decides; remembers what it was asked."""

    def __init__(self, policy):
        self.policy = policy
        self.states = []

    def act(self, game, states, legal, rng):
        assert (legal == game.legal_of(states)).all()
        self.states.append(states.copy())
        return self.policy.act(game, states, legal, rng)

    def asked(self) -> np.ndarray:
        return np.concatenate(self.states)


def keys_of(games: int, generation: int = 1) -> np.ndarray:
    return game_keys(9, "selfplay", generation, np.arange(games))


def all_seats(game, games: int, policies: int) -> np.ndarray:
    """Seatings in which every policy sits everywhere."""
    return (np.arange(games)[:, None] + np.arange(game.num_players) * 2) % policies


def column(traces, name: str, rows=slice(None)) -> np.ndarray:
    return getattr(traces, name)[rows]


def assert_same(left, right, but=()) -> None:
    """Results or Traces, entry by entry; NaN equals NaN."""
    for each in fields(left):
        if each.name not in but:
            a, b = getattr(left, each.name), getattr(right, each.name)
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), each.name


def test_the_game_of_dice_keeps_the_contract(dice):
    check_game(dice, games=60, largest_return=4.0)


# Independence.

SCHEDULES = {"some epsilon": [0.5, 0.2], "random first moves": [1.0, 1.0, 0.2], "greedy": [0.0]}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_games_do_not_depend_on_the_batch_size(game, schedule):
    exploring = Exploring(Hashed(), np.array(SCHEDULES[schedule]), np.array([0.3]))
    policies = [exploring, UniformRandom(), WinOrRandom()]
    seatings = all_seats(game, 50, 3)
    results, traces = play_games(game, policies, seatings, keys_of(50), batch=1024)
    for batch in (1, 7):
        again, same = play_games(game, policies, seatings, keys_of(50), batch=batch)
        assert_same(again, results)
        assert_same(same, traces)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_games_do_not_depend_on_which_others_are_played(game, schedule):
    exploring = Exploring(Hashed(), np.array(SCHEDULES[schedule]), np.array([0.3]))
    policies = [exploring, UniformRandom()]
    seatings = all_seats(game, 40, 2)
    results, traces = play_games(game, policies, seatings, keys_of(40), batch=16)
    for some in (np.arange(10, 20), np.array([39, 3, 17]), np.array([5])):
        fewer, rows = play_games(game, policies, seatings[some], keys_of(40)[some], batch=16)
        for name in ("returns", "plies", "decisions", "hashes"):
            assert (getattr(fewer, name) == getattr(results, name)[some]).all()
        for place, number in enumerate(some):
            mine, theirs = rows.game == place, traces.game == number
            for name in ("ply", "player", "policy", "state", "action", "explored", "reward"):
                assert (column(rows, name, mine) == column(traces, name, theirs)).all()


def test_the_policies_that_nobody_meets_change_nothing(game):
    zeros = np.zeros((30, game.num_players), int)
    one = play_games(game, [UniformRandom()], zeros, keys_of(30))
    two = play_games(game, [WinOrRandom(), UniformRandom()], zeros + 1, keys_of(30))
    assert_same(one[0], two[0])
    assert_same(one[1], two[1], but=("policy",))


def test_equal_keys_play_equal_games_and_others_do_not(game):
    zeros = np.zeros((40, game.num_players), int)
    keys = np.repeat(keys_of(20), 2)
    results, _ = play_games(game, [UniformRandom()], zeros, keys, record=False)
    assert (results.hashes[::2] == results.hashes[1::2]).all()
    assert len(np.unique(results.hashes)) > 10  # a short game of sumto12 may well be repeated


# What is recorded.


def plain_games(game, keys):
    """Random games, one ply at a time, in plain Python.

    Returns the rows (game, ply, player, state, action, probability, returns so far), the actions of
    each game and the states at the ends.
    """
    rows, played, ends = [], [], []
    for number, key in enumerate(keys):
        one = np.array([key])
        state, actions = game.initial_states(one), []
        while state["player"][0] != TERMINAL:
            uniform = Streams(one, state["ply"].copy()).uniform()[0, 0]
            legal = np.flatnonzero(game.legal_of(state)[0])
            if state["player"][0] == CHANCE:
                reached = np.cumsum(game.chance_of(state)[0].astype(np.float64))
                action = int(np.argmax(uniform < reached))
            elif len(legal) == 1:
                action = int(legal[0])
            else:
                action = int(legal[int(uniform * len(legal))])
                so_far = game.returns_of(state)[0]
                probability = np.float32(1 / len(legal))
                player = int(state["player"][0])
                rows.append(
                    (number, int(state["ply"][0]), player, state[0], action, probability, so_far)
                )
            actions.append(action)
            state = game.after(state, [action])
        played.append(actions)
        ends.append(state[0])
    return rows, played, np.array(ends, game.state_dtype)


def test_every_decision_of_a_random_game_is_recorded_as_it_was(game):
    keys = keys_of(60)
    zeros = np.zeros((60, game.num_players), int)
    results, traces = play_games(game, [UniformRandom()], zeros, keys, batch=13)
    rows, played, ends = plain_games(game, keys)
    final = game.returns_of(ends)

    assert results.returns.tolist() == final.tolist()
    assert results.plies.tolist() == [len(actions) for actions in played]
    decisions = [sum(row[0] == number for row in rows) for number in range(60)]
    assert results.decisions.tolist() == decisions

    assert len(traces) == len(rows) > 60
    for index, (number, ply, player, state, action, probability, _) in enumerate(rows):
        found = (traces.game[index], traces.ply[index], traces.player[index], traces.action[index])
        assert found == (number, ply, player, action)
        assert traces.state[index] == state
        assert traces.probability[index] == probability
    assert np.isnan(traces.value).all()
    assert not traces.explored.any() and (traces.policy == 0).all()

    # Rewards: from a decision to the same player's next recorded one, or to the end.
    for index, (number, _, player, _, _, _, so_far) in enumerate(rows):
        later = [row for row in rows[index + 1 :] if row[0] == number and row[2] == player]
        until = later[0][6] if later else final[number]
        assert traces.reward[index] == until[player] - so_far[player]
        assert traces.return_[index] == final[number][player] - so_far[player]


def test_rewards_of_dice_come_in_between_and_add_up_to_the_return(dice):
    zeros = np.zeros((100, 3), int)
    results, traces = play_games(dice, [UniformRandom()], zeros, keys_of(100))
    assert (traces.reward < 0).any() and (traces.reward > 0).any()
    assert results.returns.any(1).all()
    for number in range(100):
        for player in range(3):
            mine = (traces.game == number) & (traces.player == player)
            if mine.any():
                assert traces.reward[mine].sum() == traces.return_[mine][0]
                later = np.append(traces.return_[mine][1:], 0)
                assert (traces.reward[mine] == traces.return_[mine] - later).all()


def test_dtypes_of_traces_are_those_of_the_schema(game):
    zeros = np.zeros((5, game.num_players), int)
    _, traces = play_games(game, [UniformRandom()], zeros, keys_of(5))
    kinds = {name: getattr(traces, name).dtype for name in ("game", "ply", "player", "policy")}
    assert kinds == {"game": np.int32, "ply": np.int32, "player": np.int8, "policy": np.int8}
    assert traces.state.dtype == game.state_dtype and traces.action.dtype == np.int32
    for name in ("probability", "value", "reward", "return_"):
        assert getattr(traces, name).dtype == np.float32
    assert traces.explored.dtype == np.bool_


def test_more_rows_than_expected_are_all_kept():
    game = make_game("sumto", target=200, max_step=2)  # more than 100 decisions a game
    results, traces = play_games(game, [UniformRandom()], np.zeros((30, 2), int), keys_of(30))
    assert len(traces) == results.decisions.sum() > 3000
    assert (np.diff(traces.game) >= 0).all()
    assert (np.diff(traces.ply)[np.diff(traces.game) == 0] > 0).all()
    replayed = game.after(traces.state[:-1], traces.action[:-1])
    following = np.diff(traces.game) == 0
    assert (replayed[following] == traces.state[1:][following]).all()


def test_hashes_are_of_all_actions():
    game = make_game("sumto", target=6, max_step=2)
    keys = keys_of(300)
    zeros = np.zeros((300, 2), int)
    results, _ = play_games(game, [UniformRandom()], zeros, keys, record=False)
    _, played, _ = plain_games(game, keys)
    by_hash = {}
    for actions, found in zip(played, results.hashes.tolist(), strict=True):
        assert by_hash.setdefault(found, actions) == actions
    different = {tuple(actions) for actions in played}
    assert len(by_hash) == len(different)
    assert len(different) <= 13  # compositions of 6 into 1 and 2


def test_outcomes_are_drawn_with_their_probabilities(dice):
    games = 2000
    results, traces = play_games(dice, [UniformRandom()], np.zeros((games, 3), int), keys_of(games))
    # A drawn 3 is kept without asking; every other number is a decision unless it was forced.
    assert (results.plies == 18).all()
    ones, twos = ((traces.state["drawn"] == number).sum() for number in (1, 2))
    counts = np.array([ones, twos, 9 * games - ones - twos])
    expected = np.array([1 / 2, 1 / 3, 1 / 6]) * 9 * games
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 27.6  # chi-square of 2 degrees of freedom: exceeded once in a million


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.one_of(st.sampled_from([0.0, 1 - 2**-53]), st.floats(0, 1, exclude_max=True)),
)
def test_an_outcome_of_probability_0_is_never_drawn(weights, uniform):
    probabilities = (np.array([weights]) / sum(weights)).astype(np.float32)
    actions = np.full(3, -7, np.int32)
    draw_outcomes(probabilities, np.array([[uniform]]), np.array([1]), actions)
    assert actions[0] == actions[2] == -7
    chosen = actions[1]
    assert weights[chosen] > 0
    below = probabilities[0, :chosen].astype(np.float64).sum()
    assert below <= uniform + 1e-6
    # The end of the last one is 1, whatever rounding says.
    last = max(index for index, weight in enumerate(weights) if weight)
    assert chosen == last or uniform < below + probabilities[0, chosen] + 1e-6


# Who decides.


def test_every_seat_is_its_policys(game):
    policies = [Watched(UniformRandom()), Watched(WinOrRandom()), Watched(UniformRandom())]
    seatings = all_seats(game, 60, 3)
    _, traces = play_games(game, policies, seatings, keys_of(60), batch=17)
    assert (traces.policy == seatings[traces.game, traces.player]).all()
    for number, policy in enumerate(policies):
        rows = traces.state[traces.policy == number]
        assert len(rows) == len(policy.asked())
        assert sorted(map(bytes, rows)) == sorted(map(bytes, policy.asked()))


def test_a_single_legal_action_is_neither_asked_nor_recorded(game):
    watched = Watched(UniformRandom())
    zeros = np.zeros((80, game.num_players), int)
    results, traces = play_games(game, [watched], zeros, keys_of(80))
    assert (game.legal_of(watched.asked()).sum(1) > 1).all()
    assert (game.legal_of(traces.state).sum(1) > 1).all()
    assert len(traces) == results.decisions.sum() < results.plies.sum()
    # In each of the games here something is forced: the last steps of sumto12, a drawn 3, the last
    # free cell. So there is more to play than to decide.
    _, played, _ = plain_games(game, keys_of(80))
    assert results.plies.tolist() == list(map(len, played))


def test_openings_are_random_and_equal_for_equal_keys(game):
    opening = 6 if game.num_players == 3 else 3
    keys = np.repeat(keys_of(40), game.num_players)
    seatings = all_seats(game, len(keys), 2)
    policies = [Watched(Hashed()), Watched(UniformRandom())]
    results, traces = play_games(game, policies, seatings, keys, opening_plies=opening, batch=31)
    for policy in policies:
        assert (policy.asked()["ply"] >= opening).all()
    early = traces.ply < opening
    assert (traces.policy[early] == -1).all() and traces.explored[early].all()
    assert np.isnan(traces.value[early]).all()
    choices = game.legal_of(traces.state[early]).sum(1)
    assert traces.probability[early].tolist() == (1 / choices).astype(np.float32).tolist()
    assert (traces.policy[~early] == seatings[traces.game, traces.player][~early]).all()
    openings = {}
    for number, key in enumerate(keys.tolist()):
        mine = early & (traces.game == number)
        opened = traces.state[mine].tobytes() + traces.action[mine].tobytes()
        assert openings.setdefault(key, opened) == opened
    assert len(set(openings.values())) > 10
    assert len(results.plies) == len(keys)


def test_an_opening_beyond_the_end_is_a_random_game(game):
    zeros = np.zeros((20, game.num_players), int)
    watched = Watched(UniformRandom())
    opened = play_games(game, [watched], zeros, keys_of(20), opening_plies=1000)
    random = play_games(game, [UniformRandom()], zeros, keys_of(20))
    assert not watched.states
    assert_same(opened[0], random[0])
    assert_same(opened[1], random[1], but=("policy", "explored"))


def test_what_a_policy_says_of_itself_is_recorded(sumto12):
    class Talking:
        def act(self, game, states, legal, rng):
            rows = len(states)
            plies = states["ply"].astype(np.float32)
            probabilities = np.where(plies > 1, np.nan, 0.25).astype(np.float32)
            return Decisions(np.zeros(rows, np.int32), probabilities, plies / 64, plies % 3 == 0)

    _, traces = play_games(sumto12, [Talking()], np.zeros((9, 2), int), keys_of(9), batch=4)
    assert traces.action.tolist() == [0] * len(traces)
    assert traces.value.tolist() == (traces.ply / 64).tolist()
    assert (np.isnan(traces.probability) == (traces.ply > 1)).all()
    assert (traces.explored == (traces.ply % 3 == 0)).all()


# Faults.


class Choosing:
    """Always the same action."""

    def __init__(self, action):
        self.action = action

    def act(self, game, states, legal, rng):
        rows = len(states)
        nothing = np.full(rows, np.nan, np.float32)
        return Decisions(
            np.full(rows, self.action, np.int32), nothing, nothing, np.zeros(rows, np.bool_)
        )


@pytest.mark.parametrize("action", [-1, 3, 10**6])
def test_an_action_that_does_not_exist_is_refused(sumto12, action):
    with pytest.raises(IllegalAction, match=f"chose action {action} in the position"):
        play_games(sumto12, [Choosing(action)], np.array([[0, 0]]), keys_of(1))


def test_an_illegal_action_is_named_with_its_position():
    game = make_game("sumto", target=10, max_step=3)
    with pytest.raises(IllegalAction) as caught:  # 3 4 7 8
        play_games(game, [Choosing(0), Choosing(2)], np.array([[1, 0]]), keys_of(1))
    assert str(caught.value) == (
        "policy Choosing chose action 2 in the position\nsum 8 of 10, player 0 to move, ply 4\n"
        "where only these are legal: +1, +2"
    )


def test_no_games_at_all(game):
    empty = np.empty((0, game.num_players), int)
    results, traces = play_games(game, [UniformRandom()], empty, keys_of(0))
    assert results.returns.shape == (0, game.num_players)
    assert len(results.plies) == len(results.decisions) == len(results.hashes) == 0
    assert len(traces) == 0 and traces.state.dtype == game.state_dtype


def test_traces_are_made_only_when_asked_for(game):
    zeros = np.zeros((12, game.num_players), int)
    results, traces = play_games(game, [UniformRandom()], zeros, keys_of(12))
    alone, nothing = play_games(game, [UniformRandom()], zeros, keys_of(12), record=False)
    assert nothing is None and traces is not None
    assert_same(alone, results)
