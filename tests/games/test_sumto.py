"""SumTo against a solution by brute force, a plain implementation, and bad texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rules import PlainSum, walk

from games import TERMINAL, make_game

SIZES = [(100, 10), (200, 7), (13, 12), (7, 2), (50, 1), (3, 2)]


def at_sums(game, sums):
    """One state per sum, player 0 to move."""
    states = game.initial_states(np.zeros(len(sums)))
    states["sum"] = sums
    return states


def value_to_move(game):
    """Minimax over the rules: [target] value of each running sum for the player to move."""
    target = game.params["target"]
    values = np.empty(target)
    for total in range(target - 1, -1, -1):
        state = at_sums(game, [total])
        actions = np.nonzero(game.legal_of(state)[0])[0]
        after = game.after(np.repeat(state, len(actions)), actions)
        over = after["player"] == TERMINAL
        assert ((after["player"] == 1) | over).all()
        later = np.append(values, 0.0)[after["sum"]]
        values[total] = np.where(over, game.returns_of(after)[:, 0], -later).max()
    return values


def test_losing_sums_of_sumto_100_are_1_mod_11():
    # Source: the SumTo100 document ("reach a sum of 11n + 1").
    losing = np.nonzero(value_to_move(make_game("sumto")) == -1)[0]
    assert losing.tolist() == [1, 12, 23, 34, 45, 56, 67, 78, 89]


def test_losing_sums_of_sumto_200_with_steps_to_7_are_multiples_of_8():
    losing = np.nonzero(value_to_move(make_game("sumto", target=200, max_step=7)) == -1)[0]
    assert losing.tolist() == list(range(0, 200, 8))


@pytest.mark.parametrize(("target", "max_step"), SIZES)
def test_the_solution_is_what_brute_force_finds(target, max_step):
    game = make_game("sumto", target=target, max_step=max_step)
    values = value_to_move(game)
    if max_step == 1:
        assert game.solution is None  # nobody ever has a choice
        return
    solution = game.solution()

    # An afterstate is worth to the one who moved what it costs the next; the target is won.
    assert solution.afterstates["sum"].tolist() == list(range(target + 1))
    assert solution.labels == tuple(map(str, range(target + 1)))
    assert solution.values.tolist() == [*(-values), 1.0]
    assert (solution.players == 0).all()

    sums = [total for total in range(target) if values[total] == 1]
    assert solution.states["sum"].tolist() == sums
    for total, scores in zip(sums, solution.scores, strict=True):
        steps = range(1, min(max_step, target - total) + 1)
        best = [s for s in steps if total + s == target or values[total + s] == -1]
        assert (np.nonzero(scores > 0)[0] + 1).tolist() == best
        assert (np.nonzero(scores != ILLEGAL)[0] + 1).tolist() == list(steps)


@pytest.mark.parametrize(("target", "max_step"), [(23, 4), (13, 12), (30, 2)])
def test_scores_say_how_soon_the_winner_wins(target, max_step):
    game = make_game("sumto", target=target, max_step=max_step)
    most = target // (max_step + 1) + 1
    best = np.zeros(target + 1, int)  # of the player to move, by brute force from the target back
    best[target] = -(most + 1)  # the winner's last step, one step ago, was worth `most`
    for total in range(target - 1, -1, -1):
        state = game.state_from_text(game.rules, str(total))
        scores = game.solver.scores(game.rules, state)[0].astype(int)
        for step in range(1, min(max_step, target - total) + 1):
            later = best[total + step]
            # Only the winner's own steps count: a win is a step further off, a loss is not.
            assert scores[step - 1] == (-later - 1 if later < 0 else -later)
        best[total] = scores.max()
    assert game.solver.solvable(game.rules, state).tolist() == [True]
    assert (np.diff([best[t] for t in range(target) if best[t] > 0][::max_step]) >= 0).all()


def test_a_game_that_is_too_long_for_its_scores_has_no_solver():
    assert make_game("sumto", target=100_000, max_step=2).solver is None
    assert make_game("sumto", target=98_300, max_step=2).solver is not None


def test_a_perfect_player_never_loses_from_a_won_sum():
    game = make_game("sumto")
    states = game.initial_states(np.arange(500))
    rng = np.random.default_rng(3)
    while (states["player"] != TERMINAL).any():
        legal = game.legal_of(states)
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        chosen = np.empty(len(states), np.int32)
        game.scripted["perfect"](game.rules, states, legal, rng.random(len(states)), chosen)
        first = states["player"] == 0
        actions[first] = chosen[first]
        states = game.after(states, actions)
    assert (game.returns_of(states)[:, 0] == 1).all()  # 0 is no losing sum: the first player wins


@pytest.mark.parametrize(("target", "max_step"), [(13, 12), (23, 4), (9, 1)])
def test_counts_by_ply_agree_with_plain_rules(target, max_step):
    game = make_game("sumto", target=target, max_step=max_step)
    positions, sequences = walk(PlainSum(target, max_step), 6)
    states, counts = game.initial_states([0]), np.ones(1, np.int64)
    for ply in range(7):
        assert (len(states), counts.sum()) == (positions[ply], sequences[ply])
        rows, actions = np.nonzero(game.legal_of(states))
        after = game.after(states[rows], actions)
        _, first, where = np.unique(after["sum"], return_index=True, return_inverse=True)
        counts = np.bincount(where, counts[rows]).astype(np.int64)
        states = after[first]


def test_sequences_to_the_target_follow_the_recurrence():
    # Compositions of n into parts of at most 10: 2**(n - 1) as long as n <= 10, so SumTo with
    # target 11 and steps to 10 has 2**10 - 1 games (all compositions of 11 but the single part 11).
    _, sequences = walk(PlainSum(11, 10), 11)
    game = make_game("sumto", target=11)
    states, counts, games = game.initial_states([0]), np.ones(1), 0
    while len(states):
        rows, actions = np.nonzero(game.legal_of(states))
        states, counts = game.after(states[rows], actions), counts[rows]
        games += counts[states["player"] == TERMINAL].sum()
    assert games == 2**10 - 1
    assert sequences[11] == 1  # eleven ones


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 60)), st.lists(st.integers(0, 999), max_size=80)
)
def test_random_games_equal_those_of_plain_rules(size, choices):
    max_step, target = size[0], size[0] + size[1]
    game = make_game("sumto", target=target, max_step=max_step)
    plain, state = PlainSum(target, max_step), game.initial_states([0])
    for choice in [*choices, 0]:
        legal = plain.legal()
        assert np.nonzero(game.legal_of(state)[0])[0].tolist() == legal
        assert state["player"][0] == (TERMINAL if plain.over() else plain.played % 2)
        assert state["ply"][0] == plain.played
        assert game.returns_of(state)[0].tolist() == plain.returns()
        for player in (0, 1):
            seen = game.observations_of(state, [player])[0]
            assert np.nonzero(seen)[0].tolist() == [plain.sum] and seen.sum() == 1
            assert game.observation_names[plain.sum] == f"sum is {plain.sum}"
        if not legal:
            break
        action = legal[choice % len(legal)]
        assert game.action_to_text(game.rules, action) == f"+{action + 1}"
        plain.play(action)
        state = game.after(state, [action])


def test_texts():
    game = make_game("sumto")
    start = game.initial_states([0])[0]
    assert game.state_to_text(game.rules, start) == "sum 0 of 100, player 0 to move, ply 0"
    state = game.after(game.initial_states([0]), [6])
    assert game.state_to_text(game.rules, state[0]) == "sum 7 of 100, player 1 to move, ply 1"
    assert game.state_to_json(game.rules, state[0]) == {
        "player": 1,
        "ply": 1,
        "sum": 7,
        "target": 100,
        "max_step": 10,
    }


@pytest.mark.parametrize("total", [0, 1, 57, 99, 100])
def test_a_bare_sum_is_read_and_can_be_written_and_read_again(total):
    game = make_game("sumto")
    state = game.state_from_text(game.rules, f" {total}\n")
    assert state["sum"][0] == total
    assert state["player"][0] == (TERMINAL if total == 100 else 0)
    if total == 100:
        assert game.returns_of(state)[0].tolist() == [1, -1]
    assert game.state_from_text(game.rules, game.state_to_text(game.rules, state[0])) == state


@pytest.mark.parametrize(
    "text",
    [
        "101",
        "-1",
        "57.0",
        "٥٧",  # digits, but not ASCII ones
        "99999999999999999999",
        "sum 57 of 200, player 0 to move, ply 10",  # another target
        "sum 57 of 100, player 1 to move, ply 10",  # player 1 moves at odd plies
        "sum 57 of 100, player 0 has won, ply 11",  # not at the target
        "sum 100 of 100, player 0 to move, ply 12",  # at the target
        "sum 100 of 100, player 0 has won, ply 12",  # the last step was player 1's
        "sum 5 of 100, player 0 to move, ply 6",  # each ply adds at least 1
        "sum 57 of 100, player 2 to move, ply 10",
    ],
)
def test_bad_texts_are_refused_with_what_was_expected(text):
    game = make_game("sumto")
    with pytest.raises(ValueError, match=r"expected a sum from 0 to 100 such as '57', or 'sum 57"):
        game.state_from_text(game.rules, text)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(
    st.one_of(
        st.text(max_size=40),
        st.from_regex(r"sum \d{1,12} of (100|\d{1,3}), player \d (to move|has won), ply \d{1,12}"),
        st.integers(-5, 10**12).map(str),
    )
)
def test_any_text_is_a_position_or_a_value_error(text):
    game = make_game("sumto")
    try:
        state = game.state_from_text(game.rules, text)
    except ValueError:
        return
    assert 0 <= state["sum"][0] <= 100 and state["player"][0] in (0, 1, TERMINAL)
    assert game.state_from_text(game.rules, game.state_to_text(game.rules, state[0])) == state
