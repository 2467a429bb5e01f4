"""The configuration as dataclasses: what Hydra composes is checked against these, once, here.

An unknown key, a wrong type, a value out of range or a contradiction raises ConfigError with one
sentence before anything starts. `conf/` has the defaults and explains every key.
"""

from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from games import Game, make_game
from pipeline.errors import ConfigError
from pipeline.policies.hierarchical import APPROACHES
from pipeline.policies.scripted import baseline_names, default_baselines

CONF = str(Path(__file__).resolve().parent / "conf")  # where Hydra finds the YAML files


def _within(name: str, value: float, low: float, high: float = float("inf")) -> None:
    if not low <= value <= high:
        bound = f"in {low}..{high}" if high < float("inf") else f"at least {low}"
        raise ConfigError(f"{name} must be {bound}, got {value}")


def _one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ConfigError(f"{name} must be one of {', '.join(options)}, got {value!r}")


@dataclass
class Stage:
    """A schedule's values from some generation on, until the next stage."""

    from_generation: int = MISSING
    by_ply: list[float] = MISSING  # entry i at ply i; the last one from there on


def stage_for(stages: list[Stage], generation: int) -> list[float]:
    """The values that hold in a generation (from 1)."""
    return [stage for stage in stages if stage.from_generation <= generation][-1].by_ply


@dataclass
class PolicyConfig:
    """How the learned policies explore in self-play."""

    epsilon: list[Stage] = MISSING
    temperature: list[Stage] = MISSING
    # Of the choice of behaviours, learner hierarchical. Runs from before there were any have none.
    high_epsilon: list[Stage] = field(default_factory=lambda: [Stage(1, [1.0]), Stage(2, [0.1])])

    def __post_init__(self) -> None:
        for name, stages, high in (
            ("policy.epsilon", self.epsilon, 1.0),
            ("policy.high_epsilon", self.high_epsilon, 1.0),
            ("policy.temperature", self.temperature, float("inf")),
        ):
            starts = [stage.from_generation for stage in stages]
            if not starts or starts[0] != 1 or starts != sorted(set(starts)):
                raise ConfigError(
                    f"{name} must be a list of stages with rising from_generation, the first 1, "
                    f"got from_generation {starts}"
                )
            for stage in stages:
                if not stage.by_ply:
                    raise ConfigError(f"{name}: by_ply needs at least one value, got []")
                for value in stage.by_ply:
                    _within(f"{name}.by_ply", value, 0.0, high)


@dataclass
class OpponentsConfig:
    """Who sits in the other seats during self-play, by weight."""

    weights: dict[str, float] = MISSING  # "self", "past", or the name of a baseline
    past: int = 4  # how many past generations to draw from when "past" has a weight
    first: str | None = None  # a baseline that is the only opponent in generation 1
    past_by: str = "uniform"  # uniform | recency | prioritised
    half_life: float = 5.0  # recency: generations after which a policy comes half as often
    power: float = 2.0  # prioritised: p of (1 - score of the champion against it)^p

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            _within(f"opponents.weights.{name}", weight, 0.0, 1e9)
        if sum(self.weights.values()) <= 0:
            raise ConfigError("opponents.weights must have a positive sum")
        _within("opponents.past", self.past, 1, 100)
        _one_of("opponents.past_by", self.past_by, ("uniform", "recency", "prioritised"))
        _within("opponents.half_life", self.half_life, 0.01, 1e9)
        _within("opponents.power", self.power, 0.0, 100.0)


@dataclass
class SelfplayConfig:
    games: int = MISSING  # per generation
    games_per_shard: int = MISSING
    batch: int = MISSING  # games in lockstep
    # Who sits in one seat of every game, in turn. champion: the newest champion; all learned
    # policies explore. untrained: the policy the run started from; it explores, and its opponents,
    # such as the champion ("self"), do not.
    player: str = "champion"

    def __post_init__(self) -> None:
        _one_of("selfplay.player", self.player, ("champion", "untrained"))
        _within("selfplay.games", self.games, 1, 2**31 - 1)
        _within("selfplay.games_per_shard", self.games_per_shard, 1, 10**6)
        _within("selfplay.batch", self.batch, 1, 2**20)


@dataclass
class EvaluationConfig:
    games: int = MISSING  # per opponent, spread evenly over the seatings
    every: int = 1  # evaluate each so many generations, and the last
    opening_plies: int = MISSING  # random, the same for every seating of a pair
    baselines: list[str] | None = None  # None: all that are fast
    predecessor: bool = True
    ancestors: int = 2  # sampled past generations

    def __post_init__(self) -> None:
        _within("evaluation.games", self.games, 1, 10**7)
        _within("evaluation.every", self.every, 1)
        _within("evaluation.opening_plies", self.opening_plies, 0, 10**6)
        _within("evaluation.ancestors", self.ancestors, 0, 100)
        if self.baselines and len(set(self.baselines)) < len(self.baselines):
            raise ConfigError(f"evaluation.baselines names one twice: {self.baselines}")


@dataclass
class GateConfig:
    """What makes the newest policy the champion."""

    rule: str = MISSING  # always | threshold | sprt
    threshold: float = 0.5  # threshold: least score against the champion, a draw counting half
    games: int = 400  # threshold: how many
    opening_plies: int = 2
    min_distinct: int = 0  # with fewer different games the champion stays
    elo0: float = 0.0  # sprt: how much stronger than the champion is not enough, ..
    elo1: float = 50.0  # .. and how much is
    alpha: float = 0.05  # sprt: how often elo0 may be taken for elo1, ..
    beta: float = 0.05  # .. and elo1 for elo0
    pairs: int = 400  # sprt: after so many without a decision the champion stays

    def __post_init__(self) -> None:
        _within("gate.opening_plies", self.opening_plies, 0, 10**6)
        _one_of("gate.rule", self.rule, ("always", "threshold", "sprt"))
        _within("gate.threshold", self.threshold, 0.0, 1.0)
        _within("gate.games", self.games, 1, 10**7)
        _within("gate.min_distinct", self.min_distinct, 0, 10**7)
        _within("gate.elo0", self.elo0, -2000.0, 2000.0)
        _within("gate.elo1", self.elo1, -2000.0, 2000.0)
        _within("gate.alpha", self.alpha, 1e-6, 0.49)
        _within("gate.beta", self.beta, 1e-6, 0.49)
        _within("gate.pairs", self.pairs, 1, 10**6)
        if self.elo1 <= self.elo0:
            raise ConfigError(
                f"gate.elo1 must be larger than gate.elo0, got elo0={self.elo0} elo1={self.elo1}"
            )


@dataclass
class TrackingConfig:
    enabled: bool = True
    uri: str | None = None  # None: SQLite under the run root
    experiment: str = "selfplay"
    register_every: int = 10  # generations between registrations of the champion; the end always
    patience: float = 20.0  # seconds to wait at the end for a server that is away

    def __post_init__(self) -> None:
        _within("tracking.register_every", self.register_every, 1)
        _within("tracking.patience", self.patience, 0.0)


@dataclass
class ClusterConfig:
    kind: str = MISSING  # ray | serial
    address: str = "local"  # of Ray: "local" starts one here, "auto" joins the one around
    actors: int | None = None  # self-play actors; None: one per CPU
    learner_cpus: int = 0  # what the learner reserves; it works while self-play rests
    helpers: bool = False  # do self-play actors, at rest then, grow trees for the learner?
    patience: float = 120.0  # seconds without any actor before giving up

    def __post_init__(self) -> None:
        _one_of("cluster.kind", self.kind, ("ray", "serial"))
        if self.actors is not None:
            _within("cluster.actors", self.actors, 1, 100_000)
            if self.kind == "serial" and self.actors != 1:
                raise ConfigError(
                    f"cluster.actors={self.actors} contradicts cluster.kind=serial, which plays in "
                    "one process; leave cluster.actors out or choose cluster=local"
                )
        _within("cluster.learner_cpus", self.learner_cpus, 0)
        _within("cluster.patience", self.patience, 1.0, 1e9)


@dataclass
class ValueNetworkConfig:
    """Learner `value_network`: V of afterstates by a network. docs/learners/value_network.md."""

    name: str = "value_network"
    targets: str = MISSING  # monte_carlo | one_step
    opponent: str = "negamax"  # one_step: negamax | environment
    discount: float = MISSING
    sweeps: int = 1  # one_step: how often rows are relabelled and fitted in a generation
    hidden: list[int] = MISSING
    output: str = "linear"  # linear | tanh
    loss: str = "mse"  # mse | mae | huber
    learning_rate: float = MISSING
    weight_decay: float = MISSING
    batch: int = MISSING
    epochs: int = MISSING
    held_out: float = 0.2  # share of games, chosen by game
    warm_start: bool = True
    window_generations: int = MISSING
    window_rows: int = MISSING
    symmetries: bool = True
    device: str = "auto"  # auto | jit | cpu | cuda
    threads: int = 1

    def __post_init__(self) -> None:
        _one_of("learner.targets", self.targets, ("monte_carlo", "one_step"))
        _one_of("learner.opponent", self.opponent, ("negamax", "environment"))
        _within("learner.discount", self.discount, 0.0, 1.0)
        _within("learner.sweeps", self.sweeps, 1, 1000)
        _within("learner.learning_rate", self.learning_rate, 1e-9, 100.0)
        _check_network(self)
        if self.targets == "monte_carlo" and self.sweeps > 1:
            raise ConfigError(
                f"learner.sweeps={self.sweeps} contradicts learner.targets=monte_carlo, whose "
                "labels do not change between sweeps; raise learner.epochs instead"
            )


@dataclass
class QNetworkConfig:
    """Learner `q_network`: Q(s, .) by a network. docs/learners/q_network.md."""

    name: str = "q_network"
    targets: str = MISSING  # monte_carlo | q_learning
    discount: list[float] = MISSING  # entry i holds in generation i + 1, the last from there on
    trace_decay: float = 0.0  # q_learning: lambda
    sweeps: int = 1  # q_learning: how often rows are relabelled and fitted in a generation
    shaping: str = "none"  # none | block | potential
    shaping_reward: float = 0.0
    hidden: list[int] = MISSING
    output: str = "linear"  # linear | tanh
    loss: str = "mse"  # mse | mae | huber
    optimizer: str = "adam"  # adam | adadelta
    learning_rate: list[float] = MISSING  # by generation, as discount
    weight_decay: float = 0.0
    batch: int = MISSING
    epochs: int = MISSING
    held_out: float = 0.1  # share of games, chosen by game
    warm_start: bool = True
    window_generations: int = MISSING
    window_rows: int = MISSING
    symmetries: bool = True
    device: str = "auto"  # auto | jit | cpu | cuda
    threads: int = 1

    def __post_init__(self) -> None:
        _one_of("learner.targets", self.targets, ("monte_carlo", "q_learning"))
        _one_of("learner.shaping", self.shaping, ("none", "block", "potential"))
        _one_of("learner.optimizer", self.optimizer, ("adam", "adadelta"))
        for name, values, low, high in (
            ("learner.discount", self.discount, 0.0, 1.0),
            ("learner.learning_rate", self.learning_rate, 1e-9, 100.0),
        ):
            if not values:
                raise ConfigError(f"{name} needs at least one value, got []")
            for value in values:
                _within(name, value, low, high)
        _within("learner.trace_decay", self.trace_decay, 0.0, 1.0)
        _within("learner.sweeps", self.sweeps, 1, 1000)
        _within("learner.shaping_reward", self.shaping_reward, 0.0, 1.0)
        _check_network(self)
        if self.targets == "monte_carlo" and (self.sweeps > 1 or self.trace_decay > 0.0):
            raise ConfigError(
                f"learner.sweeps={self.sweeps} and learner.trace_decay={self.trace_decay} "
                "contradict learner.targets=monte_carlo, whose labels are what was played; choose "
                "q_learning, or sweeps=1 and trace_decay=0"
            )
        if (self.shaping == "none") != (self.shaping_reward == 0.0):
            raise ConfigError(
                f"learner.shaping={self.shaping} contradicts learner.shaping_reward="
                f"{self.shaping_reward}; give both or neither"
            )


@dataclass
class TreesConfig:
    """What all learners of model trees have."""

    trace_decay: float = MISSING  # lambda
    epsilon: float = MISSING  # exploration of the policy whose values are learned
    sweeps: int = MISSING
    half_life: float = MISSING  # generations in which a row's weight halves
    split: str = "score"  # score | sdr
    bag: int = MISSING  # trees of each kind
    rows_per_game: int | None = MISSING  # that one tree sees; None: all
    min_leaf: float | None = None  # rows; None: by their number
    min_leaf_games: int = MISSING
    min_games: int = MISSING  # with fewer an action shares the trees of others
    ridge: float = 1.0
    split_price: float = 2.0
    multiplier: float = 2.0
    prune: str = "estimate"  # estimate | holdout | none
    group_price: bool = True
    smoothing: float = 15.0
    held_out: float = 0.1  # share of games, chosen by game; and of the other games' rows
    window_generations: int = MISSING
    window_rows: int = MISSING
    threads: int | None = None  # None: one per CPU

    def __post_init__(self) -> None:
        _one_of("learner.split", self.split, ("score", "sdr"))
        _one_of("learner.prune", self.prune, ("estimate", "holdout", "none"))
        _within("learner.trace_decay", self.trace_decay, 0.0, 1.0)
        _within("learner.epsilon", self.epsilon, 0.0, 1.0)
        _within("learner.sweeps", self.sweeps, 1, 1000)
        _within("learner.half_life", self.half_life, 1e-3, 1e9)
        _within("learner.bag", self.bag, 1, 1000)
        if self.rows_per_game is not None:
            _within("learner.rows_per_game", self.rows_per_game, 1, 2**31)
        if self.min_leaf is not None:
            _within("learner.min_leaf", self.min_leaf, 1.0, 2.0**31)
        _within("learner.min_leaf_games", self.min_leaf_games, 1, 2**31)
        _within("learner.min_games", self.min_games, 1, 2**31)
        _within("learner.ridge", self.ridge, 0.0, 1e9)
        _within("learner.split_price", self.split_price, 0.0, 1e9)
        _within("learner.multiplier", self.multiplier, 0.0, 1e9)
        _within("learner.smoothing", self.smoothing, 0.0, 1e9)
        _within("learner.held_out", self.held_out, 0.0, 0.9)
        _within("learner.window_generations", self.window_generations, 1)
        _within("learner.window_rows", self.window_rows, 1)
        if self.threads is not None:
            _within("learner.threads", self.threads, 1, 1024)


@dataclass
class ModelTreesConfig(TreesConfig):
    """Learner `model_trees`: Q(s, a) by model trees. docs/learners/model_trees.md."""

    name: str = "model_trees"
    trees: str = "action"  # action | type
    targets: str = MISSING  # retrace | sarsa
    opponent: str = MISSING  # negamax | environment
    discount: float = MISSING
    symmetries: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("learner.trees", self.trees, ("action", "type"))
        _one_of("learner.targets", self.targets, ("retrace", "sarsa"))
        _one_of("learner.opponent", self.opponent, ("negamax", "environment"))
        _within("learner.discount", self.discount, 0.0, 1.0)


@dataclass
class HierarchicalConfig(TreesConfig):
    """Learner `hierarchical`: behaviours by model trees. docs/learners/hierarchical.md."""

    name: str = "hierarchical"
    approach: str = MISSING  # feudal | module | heuristic | guided
    judge: bool = True  # whether learned values judge what a low-level action is mapped to
    discount: float = MISSING  # of a sub-goal's reward, per own step

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("learner.approach", self.approach, APPROACHES)
        _within("learner.discount", self.discount, 0.0, 1.0)


LEARNERS: dict[str, type] = {
    "value_network": ValueNetworkConfig,
    "q_network": QNetworkConfig,
    "model_trees": ModelTreesConfig,
    "hierarchical": HierarchicalConfig,
}


def _check_network(learner: ValueNetworkConfig | QNetworkConfig) -> None:
    """The ranges of what both networks have."""
    _one_of("learner.output", learner.output, ("linear", "tanh"))
    _one_of("learner.loss", learner.loss, ("mse", "mae", "huber"))
    _one_of("learner.device", learner.device, ("auto", "jit", "cpu", "cuda"))
    for width in learner.hidden:
        _within("learner.hidden", width, 1, 2**16)
    _within("learner.weight_decay", learner.weight_decay, 0.0, 100.0)
    _within("learner.batch", learner.batch, 1, 2**24)
    _within("learner.epochs", learner.epochs, 1, 10**6)
    _within("learner.held_out", learner.held_out, 0.0, 0.9)
    _within("learner.window_generations", learner.window_generations, 1)
    _within("learner.window_rows", learner.window_rows, 1)
    _within("learner.threads", learner.threads, 1, 1024)


@dataclass
class StudyConfig:
    """Several trainings and a tournament of what they learned, as in a paper. `pipeline.study`."""

    approaches: list[str] = MISSING  # of learner hierarchical, a run each
    players: list[str] = MISSING  # baselines in the tournament
    expert: str = MISSING  # the baseline that stands in for a person
    games: int = MISSING  # per pairing

    def __post_init__(self) -> None:
        for approach in self.approaches:
            _one_of("study.approaches", approach, APPROACHES)
        if not self.approaches:
            raise ConfigError(f"study.approaches needs at least one of {', '.join(APPROACHES)}")
        if not self.players:
            raise ConfigError("study.players needs at least one baseline, as in [random]")
        for key, names in (
            ("study.approaches", self.approaches),
            ("study.players and study.expert", [*self.players, self.expert]),
        ):
            if len(set(names)) < len(names):
                raise ConfigError(f"{key} must name everybody once, got {', '.join(names)}")
        _within("study.games", self.games, 1, 10**7)


@dataclass
class Config:
    run: str | None = None  # None: a new name from the game and the time
    root: str = "runs"
    seed: int = 1
    generations: int = MISSING
    game: dict[str, Any] = field(default_factory=dict)
    learner: Any = MISSING
    policy: PolicyConfig = MISSING
    opponents: OpponentsConfig = MISSING
    selfplay: SelfplayConfig = MISSING
    evaluation: EvaluationConfig = MISSING
    gate: GateConfig = MISSING
    tracking: TrackingConfig = MISSING
    cluster: ClusterConfig = MISSING
    study: StudyConfig | None = None

    def __post_init__(self) -> None:
        _within("seed", self.seed, 0, 2**63 - 1)
        _within("generations", self.generations, 1, 9999)
        if not self.root.strip():
            raise ConfigError("root must name a folder or a URI, got an empty text")
        if self.run is not None:
            check_run_name(self.run)
        game = make_game_from(self.game)
        # As the game itself words them: files of a run that name its parameters compare equal.
        self.game = {"name": game.name, **game.params}
        known = baseline_names(game)
        if self.evaluation.baselines is None:
            self.evaluation.baselines = default_baselines(game)
        for name in self.evaluation.baselines:
            _one_of("evaluation.baselines", name, tuple(known))
        for name in self.opponents.weights:
            _one_of("opponents.weights", name, ("self", "past", *known))
        if self.opponents.first is not None:
            _one_of("opponents.first", self.opponents.first, tuple(known))
        if getattr(self.learner, "shaping", "none") != "none" and game.threats is None:
            raise ConfigError(
                f"learner.shaping={self.learner.shaping} needs a game that tells threats, as "
                f"k_in_a_row does; {game.name} does not; choose learner.shaping=none"
            )
        if self.study is not None:
            if self.learner.name != "hierarchical":
                raise ConfigError(
                    f"study trains the approaches of learner=hierarchical, got {self.learner.name}"
                )
            for name in self.study.players:
                _one_of("study.players", name, tuple(known))
            _one_of("study.expert", self.study.expert, tuple(known))
        if self.learner.name == "hierarchical" and game.hierarchy is None:
            raise ConfigError(
                f"learner=hierarchical needs a game with behaviours, as catan; {game.name} has "
                "none; choose another learner"
            )
        check_opening("evaluation.opening_plies", self.evaluation.opening_plies, game)
        check_opening("gate.opening_plies", self.gate.opening_plies, game)
        for key, games in (
            ("evaluation.games", self.evaluation.games),
            ("gate.games", self.gate.games if self.gate.rule == "threshold" else 0),
            ("study.games", 0 if self.study is None else self.study.games),
        ):
            if games % game.num_players:
                raise ConfigError(
                    f"{key} must be a multiple of the {game.num_players} seats of {game.name}, so "
                    f"that every seating is played equally often, got {games}"
                )

    @property
    def game_name(self) -> str:
        return self.game["name"]

    @property
    def game_params(self) -> dict[str, Any]:
        return {key: value for key, value in self.game.items() if key != "name"}


def check_opening(key: str, plies: int, game: Game) -> None:
    """Refuses a random opening that leaves nobody a decision in any game.

    Raises:
        ConfigError: no game is longer than its opening.
    """
    if plies >= game.max_decisions:
        raise ConfigError(
            f"{key} must be less than {game.max_decisions}, which {game.title} lasts at most, "
            f"got {plies}; nobody would decide anything"
        )


_TAKEN = ("sweeps", "mlartifacts", "tournaments")  # what else lies under a root


def check_run_name(name: str, key: str = "run") -> None:
    """Refuses names that are not a plain folder name.

    Args:
        key: what the command line calls it.

    Raises:
        ConfigError: a name with anything but letters, digits, ".", "_", "-", or starting with "."
    """
    if name in _TAKEN:
        raise ConfigError(f"{key} must not be one of {', '.join(_TAKEN)}, got {name!r}")
    plain = name.isascii() and all(letter.isalnum() or letter in "._-" for letter in name)
    if not plain or not name or name[0] in "._-" or len(name) > 100:
        raise ConfigError(
            f"{key} must be a name of at most 100 letters, digits, '.', '_' and '-' that starts "
            f"with a letter or digit, got {name!r}"
        )


def make_game_from(section: dict[str, Any]) -> Game:
    """The game that the section `game` of a configuration describes.

    Raises:
        ConfigError: there is no such game or parameter, or a value is out of range.
    """
    if "name" not in section:
        raise ConfigError("game.name is missing; choose a game, as in game=sumto100")
    try:
        return make_game(**section)
    except ValueError as error:
        raise ConfigError(str(error)) from error


_SECTIONS = ("policy", "opponents", "selfplay", "evaluation", "gate", "tracking", "cluster")


def _check_stages(composed: dict[str, Any]) -> None:
    """OmegaConf does not say in which entry of a list something is wrong."""
    for name, stages in composed.get("policy", {}).items():
        for index, stage in enumerate(stages if isinstance(stages, list) else []):
            try:
                if isinstance(stage, dict):
                    OmegaConf.merge(OmegaConf.structured(Stage), stage)
            except OmegaConfBaseException as error:
                raise ConfigError(f"policy.{name}[{index}].{sentence(error)}") from error


def to_config(composed: dict[str, Any]) -> Config:
    """Checks a composed configuration (plain dicts and lists) and makes it a Config.

    Raises:
        ConfigError: with one sentence that names the key.
    """
    if not isinstance(composed, dict):
        raise ConfigError(f"the configuration must be a mapping of keys, got {composed!r}")
    for section in ("game", "learner", *_SECTIONS):
        if not isinstance(composed.get(section, {}), dict):
            raise ConfigError(f"{section} must be a group of keys, got {composed[section]!r}")
    _check_stages(composed)
    name = composed.get("learner", {}).get("name")
    if not isinstance(name, str) or name not in LEARNERS:
        raise ConfigError(f"learner.name must be one of {', '.join(LEARNERS)}, got {name!r}")
    schema = OmegaConf.structured(Config)
    schema.learner = OmegaConf.structured(LEARNERS[name])
    try:
        merged = OmegaConf.merge(schema, composed)
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise ConfigError(f"{missing[0]} is missing; give it a value, as in {missing[0]}=...")
        config = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise ConfigError(sentence(error)) from error
    assert isinstance(config, Config)
    return config


_Schema = TypeVar("_Schema")


def checked(schema: type[_Schema], composed: DictConfig, *lists: str) -> _Schema:
    """A composed configuration as the dataclass `schema`.

    Args:
        lists: keys whose value, if it is no list, is the only entry of one.

    Raises:
        ConfigError: with one sentence that names the key.
    """
    for key in lists:
        if not OmegaConf.is_missing(composed, key) and not OmegaConf.is_list(composed[key]):
            composed[key] = [composed[key]]
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), composed)
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise ConfigError(f"{missing[0]} is missing; give it a value, as in {missing[0]}=...")
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise ConfigError(sentence(error)) from error


def sentence(error: OmegaConfBaseException) -> str:
    """OmegaConf's message in one line, with the full key and a near miss."""
    first = str(error).splitlines()[0]
    if first.endswith("is not a ListConfig, list or tuple."):
        first = "a list is expected, in brackets, as in '[a,b]'"
    key = str(error.full_key or error.key or "")
    near: list[str] = []
    if error.object_type is not None and hasattr(error.object_type, "__dataclass_fields__"):
        near = get_close_matches(key.split(".")[-1], error.object_type.__dataclass_fields__, 1)
    hint = f"; did you mean {near[0]}?" if near and near[0] != key.split(".")[-1] else ""
    return f"{key}: {first}{hint}" if key else f"{first}{hint}"


def to_dict(config: Config) -> dict[str, Any]:
    """The configuration as plain dicts and lists."""
    return asdict(config)


def flatten(section: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dicts as one level with dotted keys; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat
