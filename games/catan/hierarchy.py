"""What a hierarchical policy needs to know of Catan, in one record."""

from games.catan.behaviours import (
    ALLOWED,
    BEHAVIOURS,
    LOW_ACTIONS,
    heuristic,
    mark,
    possible,
    reached,
)
from games.catan.low_actions import is_step, low_legal
from games.catan.mapping import MOST, candidates
from games.game import Hierarchy

HIERARCHY = Hierarchy(
    behaviours=tuple(behaviour.name for behaviour in BEHAVIOURS),
    low_actions=LOW_ACTIONS,
    allowed=ALLOWED,
    max_candidates=MOST,
    is_step=is_step,
    possible=possible,
    heuristic=heuristic,
    low_legal=low_legal,
    mark=mark,
    reached=reached,
    candidates=candidates,
)
