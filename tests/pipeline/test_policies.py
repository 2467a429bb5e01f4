"""What policies choose: exact probabilities, legal actions alone, rules before values."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import TERMINAL, make_game
from pipeline.policies.afterstates import (
    AfterstatePolicy,
    expand,
    unique_rows,
    unique_states,
)
from pipeline.policies.base import Exploring, LearnedPolicy, draw, greedy, uniform_decisions
from pipeline.policies.mlp import MLP
from pipeline.policies.q_network import QNetworkPolicy
from pipeline.policies.scripted import Scripted, UniformRandom, WinOrRandom, baseline
from pipeline.streams import Streams, game_keys


def streams(rows: int, plies=0) -> Streams:
    plies = np.broadcast_to(np.asarray(plies, np.int32), rows).copy()
    return Streams(game_keys(11, "test", 0, np.arange(rows)), plies)


def formula(q, legal, epsilon, temperature) -> np.ndarray:
    """Probability of every action of one row, from the definition, in plain Python."""
    actions = [action for action in range(len(q)) if legal[action]]
    best = max(q[action] for action in actions)
    if temperature > 0:
        weights = {action: math.exp((q[action] - best) / temperature) for action in actions}
    else:
        weights = {action: float(q[action] == best) for action in actions}
    total = sum(weights.values())
    probabilities = np.zeros(len(q))
    for action in actions:
        share = weights[action] / total
        probabilities[action] = epsilon / len(actions) + (1 - epsilon) * share
    return probabilities


def chi_square_deviations(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """How far counts are above what their probabilities explain, in deviations of the statistic."""
    expected = probabilities[probabilities > 0] * counts.sum()
    statistic = ((counts[probabilities > 0] - expected) ** 2 / expected).sum()
    freedom = max(len(expected) - 1, 1)
    return (statistic - freedom) / math.sqrt(2 * freedom)


# Drawing.

NAN = np.nan
ROWS = {  # q, legal, epsilon, temperature
    "greedy": ([0.1, 0.7, -0.2], [1, 1, 1], 0.0, 0.0),
    "greedy, the best is illegal": ([0.1, 0.7, -0.2], [1, 0, 1], 0.0, 0.0),
    "a tie of three": ([0.5, 0.5, -1.0, 0.5], [1, 1, 1, 1], 0.0, 0.0),
    "a tie of two and an illegal one": ([0.5, 0.5, -1.0, 0.5], [0, 1, 1, 1], 0.0, 0.0),
    "epsilon": ([0.1, 0.7, -0.2, 0.0], [1, 1, 0, 1], 0.3, 0.0),
    "epsilon and a tie": ([0.7, 0.7, -0.2, 0.0], [1, 1, 0, 1], 0.5, 0.0),
    "epsilon 1": ([0.1, 0.7, -0.2], [1, 1, 1], 1.0, 0.0),
    "softmax": ([0.1, 0.7, -0.2], [1, 1, 1], 0.0, 0.5),
    "softmax, masked": ([0.1, NAN, -0.2, 0.4], [1, 0, 1, 1], 0.0, 0.25),
    "epsilon and softmax": ([0.1, 0.7, -0.2], [1, 1, 1], 0.2, 1.0),
    "a cold softmax": ([0.1, 0.7, -0.2], [1, 1, 1], 0.0, 1e-9),
    "a hot softmax": ([0.1, 0.7, -0.2], [1, 1, 1], 0.0, 1e9),
    "large values": ([1e30, 9e29, -1e30], [1, 1, 1], 0.1, 1e29),
    "one action": ([-3.0, NAN], [1, 0], 0.4, 0.7),
}


@pytest.mark.parametrize("name", ROWS)
def test_probabilities_are_those_of_the_formula_and_so_are_frequencies(name):
    q, legal, epsilon, temperature = ROWS[name]
    size = 20_000
    probabilities = formula(np.array(q, np.float32).tolist(), legal, epsilon, temperature)
    decisions = draw(
        np.tile(np.array(q, np.float32), (size, 1)),
        np.tile(np.array(legal, np.bool_), (size, 1)),
        np.full(size, epsilon),
        np.full(size, temperature),
        streams(size),
    )
    assert decisions.probabilities == pytest.approx(probabilities[decisions.actions], rel=1e-6)
    best = max(value for value, allowed in zip(q, legal, strict=True) if allowed)
    assert (decisions.values == np.float32(best)).all()

    def frequencies(rows, of):
        counts = np.bincount(decisions.actions[rows], minlength=len(q))
        assert counts[of == 0].sum() == 0
        assert chi_square_deviations(counts, of) < 5

    frequencies(np.ones(size, np.bool_), probabilities)
    # Explored rows are even over the legal actions, the others know no epsilon.
    explored = decisions.explored
    assert abs(explored.mean() - epsilon) < 5 * math.sqrt(epsilon * (1 - epsilon) / size) + 1e-12
    if explored.any():
        frequencies(explored, np.array(legal) / sum(legal))
    if not explored.all():
        frequencies(~explored, formula(q, legal, 0.0, temperature))


@st.composite
def decisions_to_draw(draw_from):
    """q, legal, epsilon, temperature of some rows; what stands at illegal actions is no number."""
    rows, actions = draw_from(st.integers(1, 6)), draw_from(st.integers(1, 7))
    values = st.one_of(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-30]), st.floats(-1e6, 1e6, width=32)
    )
    q = np.array(
        draw_from(st.lists(values, min_size=rows * actions, max_size=rows * actions)), np.float32
    ).reshape(rows, actions)
    legal = np.array(
        [
            draw_from(st.lists(st.booleans(), min_size=actions, max_size=actions).filter(any))
            for _ in range(rows)
        ]
    )
    q[~legal] = draw_from(st.sampled_from([np.nan, np.inf, -np.inf]))
    share = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    heat = st.one_of(st.sampled_from([0.0, 1e-300, 1e300]), st.floats(0, 1e3))
    epsilon = np.array([draw_from(share) for _ in range(rows)])
    temperature = np.array([draw_from(heat) for _ in range(rows)])
    return q, legal, epsilon, temperature


@given(decisions_to_draw(), st.integers(0, 2**64 - 1))
def test_what_is_drawn_is_legal_and_tells_its_own_probability(case, key):
    q, legal, epsilon, temperature = case
    rows = np.arange(len(q))
    keys = np.full(len(q), key, np.uint64)
    decisions = draw(q, legal, epsilon, temperature, Streams(keys, rows.astype(np.int32)))
    assert legal[rows, decisions.actions].all()
    for row in rows:
        expected = formula(
            q[row].tolist(), legal[row], float(epsilon[row]), float(temperature[row])
        )
        action = decisions.actions[row]
        assert decisions.probabilities[row] == pytest.approx(expected[action], rel=1e-5)
        # Without epsilon nothing is drawn that the softmax gives no weight.
        assert decisions.explored[row] or expected[action] > 0
        assert decisions.values[row] == q[row][legal[row]].max()
    assert not decisions.explored[epsilon == 0].any()
    assert decisions.explored[epsilon == 1].all()


@given(decisions_to_draw(), st.data())
def test_a_row_is_drawn_alike_alone_and_in_any_batch(case, data):
    q, legal, epsilon, temperature = case
    rng = streams(len(q), np.arange(len(q)))
    together = draw(q, legal, epsilon, temperature, rng.rows(np.arange(len(q))))
    some = np.array(data.draw(st.lists(st.integers(0, len(q) - 1), max_size=8)), np.int64)
    apart = draw(q[some], legal[some], epsilon[some], temperature[some], rng.rows(some))
    for left, right in zip(together[:4], apart[:4], strict=True):
        assert left[some].tolist() == right.tolist()


def test_greedy_takes_the_best_and_breaks_ties_evenly():
    q = np.tile(np.array([[2.0, 3.0, 3.0]], np.float32), (9000, 1))
    decisions = greedy(q, np.ones(q.shape, np.bool_), streams(9000))
    counts = np.bincount(decisions.actions, minlength=3)
    assert counts[0] == 0 and abs(counts[1] - 4500) < 5 * math.sqrt(9000 / 4)
    assert (decisions.probabilities == 0.5).all() and not decisions.explored.any()


@given(st.lists(st.booleans(), min_size=1, max_size=9).filter(any), st.integers(0, 2**64 - 1))
def test_uniform_decisions_are_legal(legal, key):
    mask = np.array([legal])
    rng = Streams(np.array([key], np.uint64), np.zeros(1, np.int32))
    decisions = uniform_decisions(mask, rng, explored=True)
    assert mask[0, decisions.actions[0]]
    assert decisions.probabilities[0] == np.float32(1 / sum(legal))
    assert np.isnan(decisions.values[0]) and decisions.explored[0]


def test_uniform_decisions_are_uniform():
    legal = np.tile(np.array([[True, False, True, True, False]]), (30_000, 1))
    decisions = uniform_decisions(legal, streams(30_000), explored=False)
    counts = np.bincount(decisions.actions, minlength=5)
    assert chi_square_deviations(counts, np.array([1, 0, 1, 1, 0]) / 3) < 5
    assert not decisions.explored.any()


# Exploring.


class Table:
    """A learned policy whose q(s, a) is a fixed function of the sum; counts what it was asked."""

    kind = "table"

    def __init__(self):
        self.asked = 0

    def action_values(self, game, states, legal):
        self.asked += len(states)
        q = (states["sum"][:, None] * 7 + np.arange(game.num_actions) * 5) % 11
        return np.where(legal, q, -np.inf).astype(np.float32)

    def act(self, game, states, legal, rng):
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self):
        return {}, {}


def at_plies(game, plies) -> tuple[np.ndarray, np.ndarray]:
    """Positions at the given plies, and their legal actions."""
    states = np.zeros(len(plies), game.state_dtype)
    states["ply"], states["sum"] = plies, np.minimum(plies, 8)
    states["player"] = np.asarray(plies) % 2
    return states, game.legal_of(states)


def test_epsilon_and_temperature_hold_by_ply_and_the_last_ones_from_there_on(sumto12):
    plies = np.repeat([0, 1, 2, 3, 9], 4000)
    states, legal = at_plies(sumto12, plies)
    exploring = Exploring(Table(), np.array([0.8, 0.4, 0.1]), np.array([0.0, 2.0]))
    decisions = exploring.act(sumto12, states, legal, streams(len(plies), plies))
    for ply, epsilon, temperature in (
        (0, 0.8, 0.0),
        (1, 0.4, 2.0),
        (2, 0.1, 2.0),
        (3, 0.1, 2.0),
        (9, 0.1, 2.0),
    ):
        rows = plies == ply
        some = states[rows][:1]
        q = Table().action_values(sumto12, some, legal[rows][:1])[0].tolist()
        expected = formula(q, legal[rows][0], epsilon, temperature)
        counts = np.bincount(decisions.actions[rows], minlength=3)
        assert chi_square_deviations(counts, expected) < 5
        actual = decisions.probabilities[rows]
        assert actual == pytest.approx(expected[decisions.actions[rows]], rel=1e-5)
        assert (decisions.values[rows] == np.float32(max(q))).all()


def test_nobody_is_asked_for_values_where_all_explore(sumto12):
    states, legal = at_plies(sumto12, np.arange(6))
    table = Table()
    decisions = Exploring(table, np.ones(1), np.zeros(1)).act(sumto12, states, legal, streams(6))
    assert table.asked == 0 and decisions.explored.all() and np.isnan(decisions.values).all()
    assert decisions.probabilities.tolist() == np.float32(1 / legal.sum(1)).tolist()


@pytest.mark.parametrize("schedule", [[0.5], [1.0], [1.0, 0.0], [1.0, 0.5, 1.0], [0.0, 1.0]])
def test_a_decision_does_not_depend_on_the_plies_of_the_rest_of_the_batch(sumto12, schedule):
    plies = np.tile(np.arange(5), 20)
    states, legal = at_plies(sumto12, plies)
    exploring = Exploring(Table(), np.array(schedule), np.array([0.0]))
    rng = streams(len(plies), plies)
    together = exploring.act(sumto12, states, legal, rng.rows(np.arange(len(plies))))
    for row in range(len(plies)):
        one = np.array([row])
        alone = exploring.act(sumto12, states[one], legal[one], rng.rows(one))
        for left, right in zip(together[:4], alone[:4], strict=True):
            assert np.array_equal(left[one], right, equal_nan=left.dtype.kind == "f")


def test_exploring_is_no_learned_policy_itself_but_wraps_one():
    assert isinstance(Table(), LearnedPolicy)
    assert isinstance(AfterstatePolicy(lambda rows: rows[:, 0]), LearnedPolicy)
    for other in (UniformRandom(), WinOrRandom(), Exploring(Table(), np.ones(1), np.ones(1))):
        assert not isinstance(other, LearnedPolicy)


# Scripted.


def test_win_or_random_takes_the_win(sumto12):
    for total, expected in ((11, [1, 0, 0]), (10, [0, 1, 0]), (9, [0, 0, 1]), (5, [1, 1, 1])):
        state = np.repeat(sumto12.state_from_text(sumto12.rules, str(total)), 900)
        decisions = WinOrRandom().act(sumto12, state, sumto12.legal_of(state), streams(900))
        counts = np.bincount(decisions.actions, minlength=3)
        expected = np.array(expected) / sum(expected)
        assert chi_square_deviations(counts, expected) < 5 and counts[expected == 0].sum() == 0
        assert (decisions.probabilities == np.float32(expected.max())).all()
        assert np.isnan(decisions.values).all() and not decisions.explored.any()


@pytest.mark.parametrize(
    ("columns", "wins"),
    [
        ("0102", [0, 1, 2, 3, 4, 5, 6]),  # nothing to win yet
        ("010101", [0]),  # X has three in column 0
        ("0616062", [6]),  # O has three in column 6
        ("223344", [1, 5]),  # X has 2 3 4 on the bottom row, open at both ends
    ],
)
def test_win_or_random_finds_rows(columns, wins):
    game = make_game("k_in_a_row")
    state = np.repeat(game.state_from_text(game.rules, columns), 500)
    decisions = WinOrRandom().act(game, state, game.legal_of(state), streams(500))
    assert sorted(set(decisions.actions.tolist())) == wins


@pytest.mark.parametrize(
    ("points", "best"),
    [
        ([3, 3, 0], [0, 2]),  # keep: 4 3 0; the pot's point goes to player 2: 3 3 1; take: 4 2 0
        ([1, 3, 3], [0, 1, 2]),  # nothing puts player 0 above both others
        ([2, 0, 3], [0, 1]),  # keep: 3 0 3, no win, and nor is 2 1 3: even over what is legal
    ],
)
def test_a_win_of_three_is_a_return_above_both_others(dice, points, best):
    state = np.zeros(600, dice.state_dtype)
    state["ply"], state["drawn"], state["points"] = 17, 1, points
    decisions = WinOrRandom().act(dice, state, dice.legal_of(state), streams(600))
    assert sorted(set(decisions.actions.tolist())) == best
    assert decisions.probabilities == pytest.approx(1 / len(best))


def test_a_script_plays_without_knowing_probability_or_value(sumto12):
    states = np.concatenate([sumto12.state_from_text(sumto12.rules, str(s)) for s in range(10)])
    policy = baseline("perfect", sumto12)
    assert isinstance(policy, Scripted)
    decisions = policy.act(sumto12, states, sumto12.legal_of(states), streams(10))
    after = states["sum"] + decisions.actions + 1
    lost = states["sum"] % 4 == 0
    assert (after[~lost] % 4 == 0).all()
    assert np.isnan(decisions.probabilities).all() and np.isnan(decisions.values).all()


# Afterstates.


class Weighing:
    """V of observations as a fixed weighted sum; remembers how many it was given."""

    def __init__(self, size):
        self.weights = np.random.default_rng(5).integers(-9, 10, size).astype(np.float32)
        self.given = 0

    def __call__(self, observations):
        self.given += len(observations)
        return (observations @ self.weights)[:, None]

    def to_parts(self):
        return {}, {}


def random_positions(game, games: int) -> np.ndarray:
    """Positions in which a player decides, of all plies."""
    rng = np.random.default_rng(3)
    states = game.initial_states(np.arange(games))
    met = []
    while len(states):
        met.append(states[states["player"] >= 0])
        legal = game.legal_of(states)
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(1)
        if game.num_outcomes:
            by_chance = states["player"] == -1
            actions[by_chance] = rng.integers(0, game.num_outcomes, by_chance.sum())
        states = game.after(states, actions)
        states = states[states["player"] != TERMINAL]
    return np.concatenate(met)


@pytest.fixture(params=["sumto12", "connect three", "dice"])
def game(request, sumto12, dice):
    three = {"width": 4, "height": 4, "k": 3}
    return {"sumto12": sumto12, "dice": dice}.get(request.param) or make_game("k_in_a_row", **three)


def test_action_values_are_rules_at_the_end_and_v_of_afterstates_before(game):
    states = random_positions(game, 40)
    legal = game.legal_of(states)
    value = Weighing(game.observation_size)
    q = AfterstatePolicy(value).action_values(game, states, legal)
    ends = 0
    for row, state in enumerate(states):
        for action in range(game.num_actions):
            if not legal[row, action]:
                assert q[row, action] == -np.inf
                continue
            before = states[row : row + 1]
            after = game.after(before, [action])
            mover = state["player"]
            if after["player"][0] == TERMINAL:
                ends += 1
                expected = game.returns_of(after)[0, mover] - game.returns_of(before)[0, mover]
            else:
                expected = game.observations_of(after, [mover])[0] @ value.weights
            assert q[row, action] == pytest.approx(expected, abs=1e-5)
    assert ends > 20


def test_values_of_positions_just_before_the_end_of_sumto12(sumto12):
    # V(sum) = sum / 10; the last step is worth 1 by the rules.
    value = MLP([np.arange(13)[:, None] / 10], [np.zeros(1)], "linear")
    states = np.concatenate([sumto12.state_from_text(sumto12.rules, s) for s in ("9", "10", "11")])
    legal = sumto12.legal_of(states)
    q = AfterstatePolicy(value).action_values(sumto12, states, legal)
    none = -np.inf
    assert q == pytest.approx(np.array([[1.0, 1.1, 1.0], [1.1, 1.0, none], [1.0, none, none]]))


def test_equal_observations_are_evaluated_once(sumto12):
    states = random_positions(sumto12, 60)
    value = Weighing(13)
    policy = AfterstatePolicy(value)
    q = policy.action_values(sumto12, states, sumto12.legal_of(states))
    assert value.given == 11  # the sums 1 to 11 after a step; 12 is an end
    assert q.shape == (len(states), 3)


def test_an_afterstate_policy_acts_greedily(sumto12):
    states = random_positions(sumto12, 60)
    legal = sumto12.legal_of(states)
    policy = AfterstatePolicy(Weighing(13))
    decisions = policy.act(sumto12, states, legal, streams(len(states)))
    q = policy.action_values(sumto12, states, legal)
    assert (q[np.arange(len(q)), decisions.actions] == q.max(1)).all()
    assert decisions.values.tolist() == q.max(1).tolist()


def test_expand_steps_every_legal_action_and_leaves_the_batch_alone(game):
    states = random_positions(game, 5)
    before = states.copy()
    after = expand(game, states, game.legal_of(states))
    assert (states == before).all()
    assert list(zip(after.rows, after.actions, strict=True)) == [
        (row, action) for row, action in np.argwhere(game.legal_of(states))
    ]
    assert (after.movers == states["player"][after.rows]).all()
    assert (after.states == game.after(states[after.rows], after.actions)).all()
    assert (after.over == (after.states["player"] == TERMINAL)).all()


# Equal rows.

BITS = st.sampled_from(
    [0, 0x80000000, 0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001, 0x3F800000, 1, 2, 3]
)


@given(st.integers(0, 60), st.integers(1, 5), st.data())
def test_unique_rows_puts_rows_back_together_bit_for_bit(size, width, data):
    kind = data.draw(st.sampled_from([np.uint32, np.float32]))
    words = data.draw(st.lists(BITS, min_size=size * width, max_size=size * width))
    rows = np.array(words, np.uint32).reshape(size, width).view(kind)
    firsts, inverse = unique_rows(rows)
    assert rows[firsts][inverse].tobytes() == rows.tobytes()
    # One for each different row, -0.0 and 0.0 and all patterns of NaN apart, as they first appear.
    seen: dict[bytes, int] = {}
    for index, row in enumerate(rows):
        seen.setdefault(row.tobytes(), index)
    assert firsts.tolist() == list(seen.values())


def test_unique_rows_of_many_rows():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (30_000, 12)).astype(np.float32)
    firsts, inverse = unique_rows(rows)
    assert len(firsts) == len(np.unique(rows, axis=0))
    assert (rows[firsts][inverse] == rows).all()
    columns = np.asfortranarray(rows)
    assert unique_rows(columns)[0].tolist() == firsts.tolist()
    assert unique_rows(rows[::2])[0].tolist() == unique_rows(rows[::2].copy())[0].tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_unique_states_reads_every_byte(size):
    dtype = np.dtype([("player", np.int8, size)])
    states = np.zeros(2 * size + 1, dtype)
    for byte in range(size):
        states["player"][1 + byte, byte] = states["player"][1 + size + byte, byte] = 1
    firsts, inverse = unique_states(states)
    assert firsts.tolist() == list(range(size + 1))
    assert inverse.tolist() == [0, *range(1, size + 1), *range(1, size + 1)]


# The network.


def plain_mlp(mlp, row) -> list[float]:
    """One row, one number at a time."""
    values = [float(x) for x in row]
    for layer, (weight, bias) in enumerate(zip(mlp.weights, mlp.biases, strict=True)):
        values = [
            sum(x * float(w) for x, w in zip(values, weight[:, unit], strict=True)) + float(b)
            for unit, b in enumerate(bias)
        ]
        if layer < len(mlp.weights) - 1:
            values = [max(x, 0.0) for x in values]
    return [math.tanh(x) for x in values] if mlp.output == "tanh" else values


@pytest.mark.parametrize("output", ["linear", "tanh"])
@pytest.mark.parametrize("hidden", [[], [4], [5, 3]])
@pytest.mark.parametrize("outputs", [1, 7])
def test_a_network_is_its_formula(outputs, hidden, output):
    rng = np.random.default_rng(1)
    sizes = [6, *hidden, outputs]
    weights = [rng.normal(size=(a, b)) for a, b in pairwise(sizes)]
    mlp = MLP(weights, [rng.normal(size=b) for b in sizes[1:]], output)
    rows = rng.normal(size=(7, 6)).astype(np.float32)
    values = mlp(rows)
    assert values.dtype == np.float32
    assert values == pytest.approx(np.array([plain_mlp(mlp, row) for row in rows]), abs=1e-5)
    spec, arrays = mlp.to_parts()
    again = MLP.from_parts(spec, arrays)
    assert again(rows).tolist() == values.tolist()


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049, 4097])
def test_a_network_takes_batches_of_any_size(size):
    # Weights and inputs for which every sum is exact, whatever its order.
    rng = np.random.default_rng(2)
    weights = [rng.integers(-3, 4, (5, 4)), rng.integers(-3, 4, (4, 1))]
    mlp = MLP(weights, [np.ones(4), np.zeros(1)], "linear")
    rows = rng.integers(-3, 4, (size, 5)).astype(np.float32)
    expected = np.maximum(rows @ weights[0] + 1, 0) @ weights[1]
    assert mlp(rows).tolist() == expected.tolist()


def test_a_network_has_one_of_two_outputs():
    with pytest.raises(ValueError, match=r"one of .*linear.*tanh.*got 'relu'"):
        MLP([np.ones((2, 1))], [np.zeros(1)], "relu")


def test_a_q_network_chooses_among_legal_actions_only_however_bad(sumto12):
    """The Connect Four notebook gave illegal moves the value 0, above any that loses."""
    policy = QNetworkPolicy(MLP([np.full((13, 3), -0.5)], [np.zeros(3)], "linear"))
    states = sumto12.state_from_text(sumto12.rules, "11")
    legal = sumto12.legal_of(states)
    assert policy.action_values(sumto12, states, legal).tolist() == [[-0.5, -np.inf, -np.inf]]
    decisions = policy.act(sumto12, states.repeat(20), legal.repeat(20, 0), streams(20))
    assert (decisions.actions == 0).all() and (decisions.values == -0.5).all()
