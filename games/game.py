"""The contract between rules and everything above them.

A state is one record of a NumPy structured dtype, a batch is a plain array of records. Every
game's dtype begins with `HEADER`. Letters for array shapes, used in every docstring:

    B  states in a batch       P  players            F  features of an observation
    A  actions                 K  chance outcomes    N  rows of data

Rules are kernels: module-level functions under `@njit(cache=True)` that take the game's `rules`
(a NamedTuple of ints and arrays) and a whole batch, write into arrays that the caller owns,
allocate nothing, never raise and leave finished rows alone. What each must do:

    init(rules, states, seeds)                 uint64 [B] seeds decide the start, nothing after it
    legal_actions(rules, states, mask)         bool [B, A], True = legal; all False at chance and
                                               terminal rows
    chance_probabilities(rules, states, out)   float32 [B, K]; rows at CHANCE sum to 1, others are 0
    step(rules, states, actions)               int32 [B]; deterministic; at CHANCE the action is the
                                               outcome that was drawn; a legal action is not checked
    observe(rules, states, players, out)       float32 [B, F], what that player may know, also when
                                               it is another's turn
    returns(rules, states, out)                float32 [B, P], what each player has received since
                                               the start; a reward is a difference of two returns

A win is worth +1, a loss -1, a draw 0 unless the game's page says otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import njit

CHANCE = -1  # `player` where chance decides
TERMINAL = -2  # `player` after the end
ONLOOKER = -1  # seat of a `View` that sees what every seat sees
ILLEGAL = np.iinfo(np.int16).min  # score of an action that is not legal

# `player` is 0..P-1, CHANCE or TERMINAL; `ply` counts choices so far, those of chance included.
HEADER = [("player", np.int32), ("ply", np.int32)]


class Symmetry(NamedTuple):
    """A relabelling under which every value stays the same, such as the mirror of a board."""

    observation: np.ndarray  # int64 [F]: feature f of the image is feature observation[f]
    action: np.ndarray  # int64 [A]: action a becomes action[a]


class ActionTypes(NamedTuple):
    """Groups of actions of one kind, such as all attacks, whose value follows alike from the state
    that they lead to. An action and its image under a symmetry are of one type."""

    names: tuple[str, ...]  # [T]
    of: np.ndarray  # int8 [A]: the type of each action


class View(NamedTuple):
    """What a seat sees of a game that hides something from its players, in words for people.

    A seat is 0..P-1 or ONLOOKER. Both functions tell what the seat may know and nothing else,
    whoever's turn it is.
    """

    state_to_text: Callable[[NamedTuple, np.void, int], str]  # (rules, state, seat)
    # (rules, before, action, after, seat): a choice of a player or of chance, and what it did, in
    # a line that names who chose; "" where the seat sees nothing of it. Seat None sees everything.
    event_to_text: Callable[[NamedTuple, np.void, int, np.void, int | None], str]


class Solver(NamedTuple):
    """Exact play, for a game of two players without chance in which one wins what the other loses.

    A score belongs to the player to move. Its sign is the result under perfect play: win, draw
    (0) or loss; among wins a sooner one is larger, among losses a later one. Both functions are
    plain Python over a batch and leave the states as they are.
    """

    # (rules, states [B]) -> int16 [B, A]: of every action; ILLEGAL where not legal, so in every
    # entry after the end. Right for any position, but it may take long.
    scores: Callable[[NamedTuple, np.ndarray], np.ndarray]
    # (rules, states [B]) -> bool [B]: positions that it answers in about 0.1 s each or less. Where
    # the start is among them, agents are compared with exact play in every evaluation.
    solvable: Callable[[NamedTuple, np.ndarray], np.ndarray]


class Solution(NamedTuple):
    """Positions whose right answer is known, for measuring an agent absolutely.

    The afterstates, for learners of values and their figures, may be empty.
    """

    states: np.ndarray  # [N]: decisions worth counting
    scores: np.ndarray  # int16 [N, A]: exact, as from `Solver.scores`; the best ones are right
    afterstates: np.ndarray  # [M]: states right after an own action
    players: np.ndarray  # int32 [M]: whose action it was
    values: np.ndarray  # float32 [M]: that player's exact value
    labels: tuple[str, ...]  # [M]: short names of the afterstates, for the axis of a figure


class Hierarchy(NamedTuple):
    """A decision in three steps: a behaviour, a low-level action of it, a primitive action.

    H behaviours, L low-level actions, C candidates. Behaviours and low-level actions are known by
    their place; int8 arrays of them. Only decisions with a True entry in `low_legal` are steps of
    behaviours; the others (which corner, which card, whose offer) `candidates` maps by themselves,
    by the behaviour in force.
    """

    behaviours: tuple[str, ...]  # [H]
    low_actions: tuple[str, ...]  # [L]
    allowed: np.ndarray  # bool [H, L]: the low-level actions of each behaviour
    max_candidates: int  # C
    # kernel(rules, states, out bool [B]): decisions in which a low-level action is chosen.
    is_step: Callable
    # kernel(rules, states, out bool [B, H]): behaviours whose sub-goal the player to move can still
    # reach; at least one in every row.
    possible: Callable
    # kernel(rules, states, out int8 [B]): the behaviour that a simple rule would choose.
    heuristic: Callable
    # kernel(rules, states, legal bool [B, A], behaviours int8 [B], out bool [B, L]): in a step at
    # least one in every row, elsewhere none.
    low_legal: Callable
    # kernel(rules, states, players int32 [B], behaviours int8 [B], out int16 [B, MARKS]): numbers
    # by which `reached` will know whether the sub-goal has been reached since.
    mark: Callable
    # kernel(rules, states, players, behaviours, marks int16 [B, MARKS], out bool [B])
    reached: Callable
    # kernel(rules, states, legal, behaviours, low int8 [B], found: Candidates): low is -1 where the
    # decision is no step of a behaviour.
    candidates: Callable


MARKS = 3
# What a candidate is judged by beside its score: nothing, the value that it leads to within the
# behaviour, or within the game.
BY_SCORE, BY_GOAL, BY_GAME = range(3)
WIN = 1000.0  # score of a candidate that wins at once


class Candidates(NamedTuple):
    """Primitive actions that a low-level action may be mapped to; the first `count` of each row."""

    count: np.ndarray  # int32 [B], at least 1
    actions: np.ndarray  # int32 [B, C], legal
    scores: np.ndarray  # float32 [B, C], by a simple rule; larger is better
    judged: np.ndarray  # int8 [B], BY_..
    # [B, C] where judged: the position that follows, as if it were the player's own turn. What they
    # may not know in it (what chance will draw, what a rival holds) is as they may expect it.
    states: np.ndarray


def weakly_right(scores: np.ndarray) -> np.ndarray:
    """bool [N, A]: actions that keep the result of the position: win, draw or loss.

    scores: int16 [N, A], as from `Solver.scores`.
    """
    best = np.sign(scores.max(axis=1, keepdims=True))
    return (scores != ILLEGAL) & (np.sign(scores) == best)


def contested(scores: np.ndarray) -> np.ndarray:
    """bool [N]: positions in which some legal action does not keep the result; scores as above."""
    return (weakly_right(scores) != (scores != ILLEGAL)).any(axis=1)


@njit(cache=True)
def no_chance(rules, states, out):
    """`chance_probabilities` of a game without chance."""
    out[:] = 0.0


@dataclass(frozen=True)
class Game:
    """A game's kernels, its constants and its words for people.

    Build one with `games.make_game`. It does not travel between processes (a kernel that was sent
    misses numba's disk cache): send `name` and `params` and build it there.
    """

    name: str
    params: Mapping[str, Any]
    rules: NamedTuple
    num_players: int
    num_actions: int
    state_dtype: np.dtype
    observation_names: tuple[str, ...]
    max_decisions: int  # no game has more choices than this, chance included

    init: Callable
    legal_actions: Callable
    step: Callable
    observe: Callable
    returns: Callable
    # A state in words; `state_from_text` reads what `state_to_text` writes, and any shorthand that
    # the game's page names. It raises ValueError with what it expected.
    state_to_text: Callable[[NamedTuple, np.void], str]
    state_from_text: Callable[[NamedTuple, str], np.ndarray]
    action_to_text: Callable[[NamedTuple, int], str]
    state_to_json: Callable[[NamedTuple, np.void], dict]

    num_outcomes: int = 0
    chance_probabilities: Callable = no_chance
    # (rules, state, outcome) -> text; None: people read "outcome 3".
    outcome_to_text: Callable[[NamedTuple, np.void, int], str] | None = None
    view: View | None = None  # None: everybody sees everything
    # A picture of a position: SVG that stands alone in a file.
    state_to_svg: Callable[[NamedTuple, np.void], str] | None = None
    # Players that come with the game: kernel(rules, states, mask, uniforms, actions), where
    # uniforms is float64 [B] in [0, 1) and actions int32 [B] is written.
    scripted: Mapping[str, Callable] = field(default_factory=dict)
    # Those of them that evaluations play against unless told otherwise: leave slow ones out. None
    # = all.
    baselines: tuple[str, ...] | None = None
    symmetries: tuple[Symmetry, ...] = ()
    action_types: ActionTypes | None = None  # None: all are of one
    # Two players, and what one wins the other loses: lets a learner read a value from either side.
    zero_sum: bool = False
    solver: Solver | None = None
    solution: Callable[[], Solution] | None = None
    # kernel(rules, states, mask): bool [B, A], True where the opponent of the player to move would
    # win at once if it were his turn. For two players; lets a learner reward a block.
    threats: Callable | None = None
    hierarchy: Hierarchy | None = None
    # SHA-256 of what files that `params` names hold; None: it names none. A policy that was learned
    # before they changed is refused.
    files: str | None = None

    @property
    def title(self) -> str:
        """The game and its parameters in words, as in "sumto (target 100, max_step 10)"."""
        params = ", ".join(f"{key} {value}" for key, value in self.params.items())
        return f"{self.name} ({params})" if params else self.name

    @property
    def observation_size(self) -> int:
        return len(self.observation_names)

    def outcome_in_words(self, state, outcome: int) -> str:
        """What chance has drawn at a state [no axis] where it decides."""
        if self.outcome_to_text is None:
            return f"outcome {outcome}"
        return self.outcome_to_text(self.rules, state, outcome)

    # The same kernels for callers that would rather have a fresh array than own one.

    def initial_states(self, seeds) -> np.ndarray:
        """Starts one game per seed (any integers, [B])."""
        seeds = np.asarray(seeds).astype(np.uint64)
        states = np.zeros(len(seeds), self.state_dtype)
        self.init(self.rules, states, seeds)
        return states

    def legal_of(self, states) -> np.ndarray:
        """bool [B, A], True = legal."""
        mask = np.empty((len(states), self.num_actions), np.bool_)
        self.legal_actions(self.rules, states, mask)
        return mask

    def after(self, states, actions) -> np.ndarray:
        """The states that follow; `states` stay as they are."""
        states = states.copy()
        self.step(self.rules, states, np.asarray(actions, np.int32))
        return states

    def observations_of(self, states, players) -> np.ndarray:
        """float32 [B, F]: what `players` (int32 [B]) see."""
        out = np.empty((len(states), self.observation_size), np.float32)
        self.observe(self.rules, states, np.asarray(players, np.int32), out)
        return out

    def returns_of(self, states) -> np.ndarray:
        """float32 [B, P]: what each player has received so far."""
        out = np.empty((len(states), self.num_players), np.float32)
        self.returns(self.rules, states, out)
        return out

    def chance_of(self, states) -> np.ndarray:
        """float32 [B, K]: probability of each outcome where chance decides, else 0."""
        out = np.empty((len(states), self.num_outcomes), np.float32)
        self.chance_probabilities(self.rules, states, out)
        return out
