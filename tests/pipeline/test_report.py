"""The page of a run: its numbers are those of the records, it stands alone, it trusts no text."""

import base64
import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import pytest
from small_runs import small_config
from test_figures import match, record

from pipeline import figures, report
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.train import train

VOID = {"br", "img", "input", "link", "meta", "rect", "path"}
NASTY = "</script><img src=x onerror=alert(1)>\"'&"


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order. Keeps tables, images and scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.scripts: list[str] = []
        self.text = ""
        self._rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._rows = []
        elif tag == "caption":
            self.tables[""] = self._rows
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        within = self.open[-1] if self.open else ""
        if within == "script":
            self.scripts[-1] += data
        elif within == "caption":
            self.tables[data] = self.tables.pop("")
        elif {"td", "th"} & set(self.open):
            self._rows[-1][-1] += data
        if within not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]

    def frames(self) -> dict:
        return json.loads(self.scripts[0])


@dataclasses.dataclass
class Made:
    """A run that was made up."""

    config: object
    lines: list
    name: str = "made"

    def records(self):
        return self.lines

    def manifest(self, generation):
        return {"code": "1.0"}

    def table(self, generation, name):
        return []


def page_of(config, lines) -> Page:
    """The page of a made-up run, without figures: drawing them takes long."""
    return Page(report.build(Made(config, lines), {}))


@pytest.fixture
def config(tmp_path):
    return small_config(tmp_path, "made", game__target=100, game__max_step=10)


@pytest.fixture(scope="module")
def text(trained):
    """The page of the trained run."""
    return report.build(trained)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    train(small_config(root, "small", generations=3, evaluation__every=2, evaluation__ancestors=2))
    return Run.open(str(root), "small")


def test_the_page_of_a_run_has_its_numbers(trained, text):
    records = trained.records()
    page = Page(text)
    head, *rows = page.tables["Every generation in numbers"]
    assert head[:3] == ["generation", "solved", "random"] and head[-2:] == ["games/s", "seconds"]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    for line, row in zip(records, rows, strict=True):
        cells = dict(zip(head, row, strict=True))
        opponents = figures.by_opponent(line)
        assert cells.keys() >= opponents.keys()
        for opponent, match_ in opponents.items():
            assert cells[opponent] == (
                f"{100 * match_['score']:.1f}% "
                f"{100 * match_['low']:.1f} to {100 * match_['high']:.1f}%"
                f"{match_['wins']}/{match_['draws']}/{match_['losses']}, n = {match_['n']}, "
                f"{match_['distinct_games']} distinct"
            )
        loss = line["learner"].get("loss_held_out")
        assert cells["loss, held out"] == ("–" if loss is None else f"{loss:.4f}")
        assert cells["seconds"] == f"{sum(line['seconds'].values()):,.2f}"
        answers = line["solution"]
        if answers:
            assert cells["solved"].startswith(f"{answers['optimal']}/{answers['of']}sign ")
        if line["selfplay"]:
            assert cells["games/s"] == f"{line['selfplay']['games_per_second']:,.0f}"
    assert rows[1][1:3] == ["–", "–"]  # generation 1 was not evaluated
    games = sum(line["selfplay"]["games"] for line in records[1:])
    assert f"3 generations of self-play with {games} games" in page.text


def test_every_match_is_listed_with_the_wins_of_each_seat(trained, text):
    page = Page(text)
    _, *rows = page.tables["Every match"]
    matches = [row for line in trained.records() for row in line["evaluation"]]
    assert len(rows) == len(matches)
    for row, match_ in zip(rows, matches, strict=True):
        half = match_["n"] // 2
        seats = [round(share * half) for share in match_["by_seat"]]
        assert sum(seats) == match_["wins"]
        assert row[8] == f"{seats[0]}/{half} {seats[1]}/{half}"
        assert row[2] == match_["policy"]


def test_the_slider_has_the_values_of_the_records(trained, text):
    data = Page(text).frames()
    valued = [line for line in trained.records() if line["solution"]]
    assert len(data["frames"]) == len(valued) == 3
    assert data["labels"] == [str(total) for total in range(21)]
    assert [i for i, value in enumerate(data["exact"]) if value == 1] == [0, 5, 10, 15, 20]
    for line, frame in zip(valued, data["frames"], strict=True):
        assert frame["v"] == [round(1000 * value) for value in line["solution"]["values"]]
        assert frame["text"].startswith(f"Generation {line['generation']}: ")


def test_without_scripts_the_bars_are_those_of_the_newest_generation(text):
    page = Page(text)
    values = page.frames()["frames"][-1]["v"]
    bars = page.all("rect")
    assert [bar["class"] for bar in bars] == ["down" if value < 0 else "up" for value in values]
    for bar, value in zip(bars, values, strict=True):
        top, height = float(bar["y"]), float(bar["height"])
        assert height == pytest.approx(min(abs(value), 1050) / 10, abs=0.06)
        assert (top if value < 0 else top + height) == pytest.approx(105, abs=0.06)


def test_the_page_stands_alone(trained, text):
    page = Page(text)
    assert "http:" not in text and "https:" not in text and "@import" not in text
    assert not re.search(r"fetch\(|XMLHttpRequest|localStorage|sessionStorage|cookie", text)
    for tag in ("link", "iframe", "object", "a", "base", "form"):
        assert not page.all(tag)
    assert all("src" not in attributes for attributes in page.all("script"))
    [policy] = [m["content"] for m in page.all("meta") if "content" in m and "http-equiv" in m]
    assert policy.startswith("default-src 'none'; img-src data:")
    drawn = figures.run_figures(report.make_game_from(trained.config.game), trained.records())
    shown = [base64.b64decode(image["src"].split(",")[1]) for image in page.all("img")]
    assert len(shown) == len(drawn.keys() - {"optimal", "values"}) >= 9
    assert all(image in drawn.values() for image in shown)


def test_readers_who_cannot_see_are_told_what_there_is(text):
    page = Page(text)
    assert page.all("html")[0]["lang"] == "en"
    assert all(len(image["alt"]) > 20 for image in page.all("img"))
    assert (
        page.all("svg")[0]["role"] == "img" and "Generation 3" in page.all("svg")[0]["aria-label"]
    )
    for control in (*page.all("input"), *page.all("button")):
        assert control.get("aria-label") or control["id"] == "play"  # which has a word on it
    for region in page.all("div"):
        if region.get("role") == "region":
            assert region["aria-label"] and region["tabindex"] == "0"
    assert {"col", "row"} == {cell["scope"] for cell in page.all("th")}


def test_figures_at_hand_are_not_drawn_again(trained, text, monkeypatch):
    drawn = figures.run_figures(report.make_game_from(trained.config.game), trained.records())
    monkeypatch.setattr(figures, "run_figures", None)
    assert report.build(trained, drawn) == text


def test_a_game_without_a_solution_has_no_bars(tmp_path):
    config = small_config(tmp_path, "four", game={"name": "k_in_a_row"})
    page = page_of(config, [record(g, solution=None) for g in range(3)])
    assert not page.all("svg") and len(page.scripts) == 1
    assert "solved" not in page.tables["Every generation in numbers"][0]
    assert "solved positions" not in page.text


def test_a_run_that_has_just_begun(config):
    assert "No generation is complete yet." in page_of(config, []).text
    page = page_of(config, [record(0, evaluation=[], solution=None)])
    assert "0 generations of self-play with 0 games" in page.text
    assert len(page.tables["Every generation in numbers"]) == 2


def test_records_with_missing_parts(config):
    broken = record(2, [math.nan, -math.inf, *[0.5] * 99], evaluation=[])
    broken["learner"] |= {"loss_train": math.nan, "loss_held_out": None}
    page = page_of(config, [record(0), record(1), broken])
    last = page.tables["Every generation in numbers"][-1]
    assert last.count("–") == 5  # three opponents and two losses
    assert page.frames()["frames"][-1]["v"][:3] == [None, None, 500]
    assert "NaN" not in page.scripts[0]
    assert "Generation 1 scores" in page.text


def test_what_the_learner_warned_of_is_told(config):
    lines = [record(1), record(2)]
    assert "warned" not in page_of(config, lines).text
    lines[1]["learner"]["warnings"] = ["values diverge"]
    text = page_of(config, lines).text
    assert "The learner warned" in text and "Generation 2: values diverge." in text


def test_no_text_of_a_run_becomes_markup(config, monkeypatch):
    game = report.make_game_from(config.game)
    labels = (NASTY, *game.solution().labels[1:])
    solution = game.solution()._replace(labels=labels)
    nasty_game = dataclasses.replace(game, name=NASTY, solution=lambda: solution)
    monkeypatch.setattr(report, "make_game_from", lambda section: nasty_game)
    rows = [match(NASTY, 5), match("ancestor", 5)]
    rows[1]["policy"] = NASTY
    config.learner.device = NASTY
    line = record(2, evaluation=rows, policy="g2", champion=NASTY)
    run = Made(config, [line], name=NASTY)
    monkeypatch.setattr(run, "manifest", lambda generation: {"code": NASTY}, raising=False)
    page = Page(report.build(run))
    # All but those of solved afterstates, of trees (two) and of generations that met.
    assert len(page.all("img")) == len(report._FIGURES) - 4
    assert not any("onerror" in each for _, each in page.tags)
    assert len(page.scripts) == 2
    assert page.frames()["labels"][0] == NASTY
    seen = page.text.count(NASTY)
    assert seen >= 8  # title, heading, code, champion, opponent, policies, axis, configuration


def test_addresses_and_folders_are_not_shown(tmp_path):
    config = small_config(tmp_path, "secret", tracking__uri="http://user:pass@tracker")
    text = report.build(Made(config, [record(0), record(1)]), {})
    assert "pass" not in text and str(tmp_path) not in text and "tracker" not in text
    keys = [row[0] for row in Page(text).tables["Configuration"][1:]]
    assert "learner.discount" in keys and "game.target" in keys and "seed" in keys
    assert not [key for key in keys if key.startswith(("root", "tracking", "cluster"))]


def test_a_policy_that_failed_the_gate_is_told_from_the_champion(config):
    page = page_of(config, [record(0), record(1), record(2, champion="g0001")])
    assert "The champion is still g0001." in page.text
    head, *rows = page.tables["Every generation in numbers"]
    assert [row[head.index("champion")] for row in rows] == ["g0000", "g0001", "g0001"]
    page = page_of(config, [record(0), record(1)])
    assert "champion" not in page.tables["Every generation in numbers"][0]


def test_a_gate_is_shown_with_its_evidence(config):
    gate = {"rule": "sprt", "decision": "kept", "reason": "elo0 = 0 accepted", "score": 0.5}
    gate |= {"games": 44, "pairs": 22, "llr": -3.076, "lower": -2.944, "upper": 2.944}
    page = page_of(config, [record(0), record(1, gate=gate)])
    head, *rows = page.tables["Every generation in numbers"]
    assert rows[0][head.index("gate")] == "–"
    assert rows[1][head.index("gate")] == (
        "keptelo0 = 0 accepted; LLR -3.08 of -2.94 to 2.94, 22 pairs, 50.0%, n = 44"
    )


def test_the_newest_ratings_are_shown(config):
    players = [("g0001", 812.4, 700.0, 951.6, 80), ("random", 0.0, 0.0, 0.0, 40)]
    players.append((NASTY, None, None, None, 6))
    keys = ("player", "rating", "low", "high", "games")
    rated = {
        "anchor": "random",
        "players": [dict(zip(keys, each, strict=True)) for each in players],
        "first_player": [30.0, 20.0, 41.0],
        "draw": 0.125,
    }
    lines = [record(0), record(1, ratings=rated), record(2, ratings=None, evaluation=[])]
    page = page_of(config, lines)
    assert page.tables["Ratings"] == [
        ["player", "Elo", "95% interval", "games"],
        ["g0001", "+812", "+700 to +952", "80"],
        ["random", "+0", "anchor", "40"],
        [NASTY, "–", "not linked", "6"],
    ]
    assert "First player: +30 (+20 to +41). Draws between equals: 12%." in page.text
    assert "Ratings" not in page_of(config, [record(0, ratings=None)]).tables


def test_illegal_actions_are_announced(config):
    line = record(1)
    line["selfplay"]["illegal"] = 3
    assert "Warning: 3 actions in self-play were illegal." in report.build(Made(config, [line]), {})
    assert "illegal" not in report.build(Made(config, [record(1)]), {})


def test_a_rate_comes_with_its_interval_and_n(config):
    page = page_of(config, [record(0), record(1)])
    low, high = wilson(32 / 40 * 30, 30)
    assert (
        f"80.0% against random (95% interval {100 * low:.1f} to {100 * high:.1f}%, "
        "n = 40 games, 30 distinct)"
    ) in page.text


def test_a_long_run_has_a_slider_of_bounded_length(config):
    lines = [record(generation) for generation in range(451)]
    frames = page_of(config, lines).frames()["frames"]
    assert len(frames) <= 200
    assert frames[-1]["text"].startswith("Generation 450")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (3599.7, "1 h 0 min")],
)
def test_durations_in_words(seconds, words):
    assert report._duration(seconds) == words
