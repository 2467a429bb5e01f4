"""The observation `lines`, by hand and by plain counting over cells."""

import numpy as np
import pytest

from games import make_game
from games.check import check_game


def features(text: str, **params) -> dict[str, float]:
    """What the player to move sees, by name."""
    game = make_game("k_in_a_row", observation="lines", **params)
    state = game.state_from_text(game.rules, text)
    seen = game.observations_of(state, state["player"])[0]
    return dict(zip(game.observation_names, seen.tolist(), strict=True))


THREE = {"width": 4, "height": 4, "k": 3}


def plain(cells: np.ndarray, k: int) -> dict[str, float]:
    """The same numbers by going through all lines cell by cell; cells [height, width]: 0, 1, 2."""
    height, width = cells.shape
    lines = []
    for row in range(height):
        for column in range(width):
            for up, right in ((1, 0), (0, 1), (1, 1), (-1, 1)):
                line = [(row + up * j, column + right * j) for j in range(k)]
                if all(0 <= r < height and 0 <= c < width for r, c in line):
                    lines.append(line)
    landing = {}
    for column in range(width):
        free = [row for row in range(height) if cells[row, column] == 0]
        if free:
            landing[column] = (free[0], column)

    def wins_of(board, who):
        """Empty cells that complete a line of `who`."""
        found = set()
        for line in lines:
            held = [board[cell] for cell in line]
            if held.count(who) == k - 1 and held.count(0) == 1:
                found.add(line[held.index(0)])
        return found

    out = {}
    for name, who, other in (("mine", 1, 2), ("theirs", 2, 1)):
        open_lines = [line for line in lines if all(cells[cell] != other for cell in line)]
        counts = [sum(cells[cell] == who for cell in line) for line in open_lines]
        for n in range(1, k):
            out[f"{name}: open lines with {n}"] = counts.count(n)
        wins = wins_of(cells, who)
        out[f"{name}: columns that win"] = len(wins & set(landing.values()))
        for first in (0, 1):
            rows = [row for row, column in wins - set(landing.values()) if row % 2 == first]
            out[f"{name}: threats on rows {first + 1}, {first + 3}, .."] = len(rows)
        for column in range(width):
            here = f"{name}, column {column}"
            cell = landing.get(column)
            for n in range(1, k):
                out[f"{here}: open lines with {n}"] = sum(
                    cell in line and count == n
                    for line, count in zip(open_lines, counts, strict=True)
                )
            above, reachable, both = None, set(), set()
            if cell is not None:
                board = cells.copy()
                board[cell] = who
                both = wins | wins_of(board, who)
                above = (cell[0] + 1, column) if cell[0] + 1 < height else None
                reachable = {other for c, other in landing.items() if c != column} | {above}
            else:
                both, reachable = wins, set(landing.values())
            out[f"{here}: cell above would win"] = float(above in both)
            out[f"{here}: columns that win next"] = len(both & reachable)
    return out


@pytest.mark.parametrize(
    "params", [THREE, {"width": 7, "height": 6, "k": 4}, {"width": 5, "height": 3, "k": 2}]
)
def test_every_number_is_what_plain_counting_gives(params):
    game = make_game("k_in_a_row", observation="lines", **params)
    planes = make_game("k_in_a_row", **params)
    size = planes.observation_size
    r = np.random.default_rng(2)
    states = game.initial_states(np.arange(25))
    checked = 0
    while len(states):
        players = states["player"]
        seen = game.observations_of(states, players)
        assert np.array_equal(seen[:, :size], planes.observations_of(states, players))
        for row in seen:
            mine, theirs = row[:size].reshape(2, params["height"], params["width"]).astype(int)
            expected = plain(mine + 2 * theirs, params["k"])
            found = dict(zip(game.observation_names[size:], row[size:].tolist(), strict=True))
            assert found == expected
            checked += 1
        legal = game.legal_of(states)
        states = game.after(states, (legal * r.random(legal.shape)).argmax(1))
        states = states[states["player"] >= 0]
    assert checked > 100 or params["k"] == 2


def test_a_threat_by_hand():
    """X at 0 and 1 of the bottom row wins in column 2; it is O's turn, with a disc in column 3."""
    seen = features("031", **THREE)
    assert seen["theirs: columns that win"] == 1
    assert seen["mine: columns that win"] == 0
    assert seen["theirs, column 2: open lines with 2"] == 1


def test_the_observation_keeps_the_contract_and_its_mirror():
    for params in (THREE, {"width": 1, "height": 9, "k": 3}, {"width": 16, "height": 3, "k": 4}):
        check_game(make_game("k_in_a_row", observation="lines", **params))


def test_planes_are_the_default_and_others_are_refused():
    assert "observation" not in make_game("k_in_a_row", **THREE).params
    message = "observation of game k_in_a_row must be one of planes, lines, got 'cells'"
    with pytest.raises(ValueError, match=message):
        make_game("k_in_a_row", observation="cells")
