"""make_game: what it builds, and that it refuses everything else in words."""

import json
import re

import numpy as np
import pytest

from games import GAMES, make_game


@pytest.mark.parametrize("name", GAMES)
def test_a_game_is_built_again_from_its_name_and_params(name):
    game = make_game(name)
    assert game.name == name
    params = json.loads(json.dumps(dict(game.params)))
    again = make_game(name, **params)
    assert again.params == game.params
    for one, other in zip(again.rules, game.rules, strict=True):  # ints and arrays
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("chess", {}, "there is no game named 'chess'; the games are catan, k_in_a_row"),
        ("", {}, "there is no game named ''"),
        ("../sumto", {}, "there is no game named '../sumto'"),
        (
            "sumto",
            {"step": 1},
            "game sumto has no parameter 'step'; its parameters are target, max",
        ),
        ("k_in_a_row", {"rows": 6}, "no parameter 'rows'; its parameters are width, height, k"),
        (
            "sumto",
            {"target": 100.0},
            "parameter target of game sumto must be of type int, got 100.0",
        ),
        ("sumto", {"target": "100"}, "must be of type int, got '100'"),
        ("k_in_a_row", {"k": True}, "parameter k of game k_in_a_row must be of type int, got True"),
        ("k_in_a_row", {"k": None}, "must be of type int, got None"),
        ("sumto", {"max_step": 0}, "max_step of game sumto must lie in 1..1000, got 0"),
        ("sumto", {"max_step": 1001, "target": 5000}, "must lie in 1..1000, got 1001"),
        ("sumto", {"target": 10}, "must be larger than max_step (10) and at most 100000, got 10"),
        ("sumto", {"target": -1}, "must be larger than max_step (10) and at most 100000, got -1"),
        ("sumto", {"target": 100_001}, "target of game sumto must be"),
        ("k_in_a_row", {"width": 0}, "a board of width 0 and height 6 does not fit"),
        ("k_in_a_row", {"height": -3}, "a board of width 7 and height -3 does not fit"),
        (
            "k_in_a_row",
            {"width": -7, "height": -7},
            "a board of width -7 and height -7 does not fit",
        ),
        ("k_in_a_row", {"width": 8, "height": 8}, "width * (height + 1) at most 64, got 72"),
        ("k_in_a_row", {"width": 33, "height": 1}, "width * (height + 1) at most 64, got 66"),
        ("k_in_a_row", {"width": 1, "height": 1, "k": 2}, "one of them at least 2"),
        ("k_in_a_row", {"k": 1}, "k of game k_in_a_row must lie in 2..7 on a 7 x 6 board, got 1"),
        ("k_in_a_row", {"k": 8}, "k of game k_in_a_row must lie in 2..7 on a 7 x 6 board, got 8"),
        ("k_in_a_row", {"width": 3, "height": 3}, "must lie in 2..3 on a 3 x 3 board, got 4"),
    ],
)
def test_what_it_refuses(name, params, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_game(name, **params)


def test_a_number_is_the_text_of_it_where_a_text_is_due():
    # As Hydra reads game.base=3.
    assert make_game("risk", base=3).params["base"] == "3"
    with pytest.raises(ValueError, match="parameter base of game risk must be of type str, got Tr"):
        make_game("risk", base=True)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("sumto", {"target": 2, "max_step": 1}),
        ("sumto", {"target": 100_000, "max_step": 1000}),
        ("k_in_a_row", {"width": 1, "height": 2, "k": 2}),
        ("k_in_a_row", {"width": 32, "height": 1, "k": 32}),
        ("k_in_a_row", {"width": 1, "height": 63, "k": 63}),
        ("k_in_a_row", {"width": 8, "height": 7, "k": 8}),
    ],
)
def test_the_ends_of_the_ranges(name, params):
    assert make_game(name, **params).params == params
