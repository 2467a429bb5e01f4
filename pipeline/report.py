"""One page about a run: what was trained, every generation in numbers, every figure.

The page stands alone: style, script and images are inside, nothing is fetched or stored, so it may
be mailed, kept as an artifact or shown in a sandboxed frame that allows scripts alone.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from games import Game
from pipeline import figures, ratings
from pipeline.config import flatten, make_game_from, to_dict
from pipeline.run import Run

# Where a run is kept and reported to: not what was trained, and an address may hold a password.
_NOT_SHOWN = ("root", "tracking.", "cluster.")
_MAX_FRAMES = 200  # generations on the slider; of more, an even choice

_FIGURES = {  # file stem -> what it shows, for readers and for those who cannot see it
    "win_rates": "Score against each opponent over the generations, with its 95% interval.",
    "solved": "Share of the solved positions that were answered right, over the generations.",
    "ratings": "Rating of the policy of each generation with its 95% interval, and of the "
    "baselines as lines, in Elo, from all evaluation matches of the run.",
    "oracle": "Share of decisions that are as good as perfect play, on solved positions and in "
    "evaluation games, over the generations and by ply.",
    "generations": "Score of each generation against every other that it met in evaluation; blank "
    "where two did not meet.",
    "seats": "Score by seat over the generations, with its 95% interval.",
    "loss": "Loss over the epochs, a line per generation, and loss of the policy of each "
    "generation, on training and on held-out games.",
    "calibration": "Mean predicted value against the mean discounted return that followed, in "
    "bins, for the newest generation. The mean gap is how far the two lie apart, averaged over the "
    "decisions, in returns (a win is 1): 0 if predictions come true on average. Returns are those "
    "of self-play, exploration included: who values best play predicts more than comes true.",
    "trees": "Leaves and depth of each action's trees, and their error on held-out games and on "
    "held-out rows of games that taught, over the generations.",
    "fitted": "Bellman residual of the newest Q on held-out games, change of Q and of the labels "
    "since the generation before, and share of the trees asked that were clipped, over the "
    "generations.",
    "openings": "Share of every first action of the champion when it does not explore, and their "
    "entropy, over the generations.",
    "game_lengths": "Plies per game over the generations, in self-play with the middle half and "
    "nine tenths of games, and in evaluation.",
    "exploration": "Share of decisions that explored, of states seen before and of distinct games.",
    "throughput": "Self-play games per second, and wall time of each generation by phase.",
}


def build(run: Run, pngs: Mapping[str, bytes] | None = None) -> str:
    """The page of a run as it stands: HTML, without any reference to outside.

    Rates come with their n and 95% Wilson interval; "seconds" are wall time.

    Args:
        pngs: `run_figures` of the run, if they are at hand; drawing them is nine tenths
            of the work.
    """
    game = make_game_from(run.config.game)
    records = run.records()
    title = f"{game.title}: run {run.name}"
    parts = [f"<h1>{escape(title)}</h1>", _about(run, records)]
    if records:
        parts += [_values(game, records), _generations(records), _ratings(records)]
        parts.append(_matches(game, records))
        drawn = run_figures(run, game, records) if pngs is None else pngs
        parts.append(_figures(drawn))
    parts.append(_configuration(run))
    return _PAGE.format(title=escape(title), style=_STYLE, body="\n".join(parts), script=_SCRIPT)


def run_figures(run: Run, game: Game, records: Sequence[figures.Record]) -> dict[str, bytes]:
    """`figures.run_figures` of a run as it stands."""
    trees = {each["generation"]: run.table(each["generation"], "trees") for each in records}
    return figures.run_figures(game, records, trees)


# Words.


def _about(run: Run, records: Sequence[figures.Record]) -> str:
    if not records:
        return "<p>No generation is complete yet.</p>"
    newest = records[-1]
    when = datetime.fromtimestamp(newest["time"], UTC)
    code = run.manifest(newest["generation"]).get("code", "unknown")
    made = f"Numbers of {when:%Y-%m-%d %H:%M} UTC, code version {code}, seed {run.config.seed}."
    return (
        f"<p>{escape(_summary(records))}</p>\n{_warnings(records)}{_scores(records)}"
        f"<p class=small>{escape(made)}</p>"
    )


def _warnings(records: Sequence[figures.Record]) -> str:
    """What the learner warned of."""
    lines = [
        f"Generation {record['generation']}: {sentence}."
        for record in records
        for sentence in record["learner"].get("warnings", ())
    ]
    if not lines:
        return ""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<p>The learner warned:</p>\n<ul>{listed}</ul>\n"


def _summary(records: Sequence[figures.Record]) -> str:
    """The run in a few sentences."""
    newest = records[-1]
    games = sum((record["selfplay"] or {}).get("games", 0) for record in records)
    seconds = sum(sum(record["seconds"].values()) for record in records)
    count = newest["generation"]
    text = (
        f"{count:,} generation{'s' * (count != 1)} of self-play with {games:,} games in "
        f"{_duration(seconds)} of wall time."
    )
    asked = [record for record in records if "optimal" in (record["solution"] or {})]
    if asked:
        answers = asked[-1]["solution"]
        text += (
            f" The policy of generation {asked[-1]['generation']} answers "
            f"{answers['optimal']:,} of {answers['of']:,} solved positions right."
        )
    if newest["champion"] != newest["policy"]:
        text += f" The champion is still {newest['champion']}."
    illegal = sum((record["selfplay"] or {}).get("illegal", 0) for record in records)
    if illegal:
        text += f" Warning: {illegal:,} actions in self-play were illegal."
    return text


def _scores(records: Sequence[figures.Record]) -> str:
    """The newest scores in words."""
    measured = [record for record in records if record["evaluation"]]
    if not measured:
        return ""
    lines = [
        f"{percent(row['score'])} against {opponent} (95% interval {_interval(row)}, "
        f"n = {row['n']:,} games, {row['distinct_games']:,} distinct)"
        for opponent, row in figures.by_opponent(measured[-1]).items()
    ]
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    generation = measured[-1]["generation"]
    return f"<p>Generation {generation} scores, a draw counting half:</p>\n<ul>{listed}</ul>\n"


def percent(share: float) -> str:
    """0.985 as "98.5%"."""
    return f"{100 * share:.1f}%"


def _interval(row: Mapping) -> str:
    return f"{100 * row['low']:.1f} to {percent(row['high'])}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None or not math.isfinite(value) else format(value, form)


# Tables.


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """`head` and `rows` are HTML. The first cell of a row is its header."""
    lines = [
        f'<div class=scroll role=region tabindex=0 aria-label="{escape(caption)}">',
        f'<table class="{kind}"><caption>{escape(caption)}</caption>',
        "<thead><tr>" + "".join(f"<th scope=col>{cell}</th>" for cell in head) + "</tr></thead>",
        "<tbody>",
    ]
    for first, *rest in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        lines.append(f"<tr><th scope=row>{first}</th>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _generations(records: Sequence[figures.Record]) -> str:
    rows = [figures.by_opponent(record) for record in records]
    opponents = list(dict.fromkeys(opponent for row in rows for opponent in row))
    opponents.sort(key=lambda name: (name == figures.ANCESTORS, name == "predecessor"))
    solved = any(record["solution"] for record in records)
    gated = any(record["champion"] != record["policy"] for record in records)
    tested = any(record.get("gate") for record in records)
    head = ["generation", *["solved"] * solved, *map(escape, opponents)]
    head += ["loss, held out", "loss, train", *["gate"] * tested, *["champion"] * gated]
    head += ["games/s", "seconds"]
    lines = []
    for record, row in zip(records, rows, strict=True):
        learner, play = record["learner"], record["selfplay"] or {}
        line = [str(record["generation"])]
        line += [_solved(record["solution"] or {})] * solved
        line += [_score(row.get(opponent)) for opponent in opponents]
        line += [_number(learner.get(key), ".4f") for key in ("loss_held_out", "loss_train")]
        line += [_gate(record.get("gate"))] * tested
        line += [escape(record["champion"])] * gated
        line.append(_number(play.get("games_per_second") or None, ",.0f"))
        line.append(_number(sum(record["seconds"].values()), ",.2f"))
        lines.append(line)
    notes = (
        "Under an opponent: the score, a draw counting half, and its 95% interval; below, "
        "wins/draws/losses, n = games, and how many of them are distinct. The interval takes as "
        "many games as are distinct. Seconds are wall time."
    )
    table = _table("Every generation in numbers", head, lines)
    return f"<h2>Generations</h2>\n{table}\n<p class=small>{notes}</p>"


def _score(row: Mapping | None) -> str:
    if row is None:
        return "–"
    counts = f"{row['wins']}/{row['draws']}/{row['losses']}"
    return (
        f"<b>{percent(row['score'])}</b> {_interval(row)}<br><span class=small>{counts}, "
        f"n = {row['n']}, {row['distinct_games']} distinct</span>"
    )


def _gate(gate: Mapping | None) -> str:
    """The decision of a gate and what it stands on."""
    if not gate:
        return "–"
    evidence = f"{percent(gate['score'])}, n = {gate['games']:,}"
    if "llr" in gate:
        bounds = f"{gate['lower']:.2f} to {gate['upper']:.2f}"
        evidence = f"LLR {gate['llr']:.2f} of {bounds}, {gate['pairs']:,} pairs, {evidence}"
    words = f"{gate['reason']}; {evidence}"
    return f"<b>{escape(gate['decision'])}</b><br><span class=small>{escape(words)}</span>"


def _ratings(records: Sequence[figures.Record]) -> str:
    """The players as the newest fit rates them."""
    rated = [record["ratings"] for record in records if record.get("ratings")]
    if not rated:
        return ""
    lines = []
    for each in rated[-1]["players"]:
        interval = f"{_number(each['low'], '+,.0f')} to {_number(each['high'], '+,.0f')}"
        if each["player"] == rated[-1]["anchor"]:
            interval = "anchor"
        elif each["rating"] is None:
            interval = "not linked"
        rating = _number(each["rating"], "+,.0f")
        lines.append([escape(each["player"]), rating, interval, f"{each['games']:,}"])
    table = _table("Ratings", ["player", "Elo", "95% interval", "games"], lines, "ratings")
    return (
        f"<h2>Ratings</h2>\n<p>From all evaluation matches of the run, none of the gate's. "
        f"{escape(ratings.notes(rated[-1]))}</p>\n{table}"
    )


def _solved(answers: Mapping) -> str:
    text = f"{answers['optimal']}/{answers['of']}" if "optimal" in answers else "–"
    if "sign_accuracy" in answers:
        count = len(answers["values"])
        right = round(answers["sign_accuracy"] * count)
        text += f"<br><span class=small>sign {right}/{count}</span>"
    return text


def _matches(game: Game, records: Sequence[figures.Record]) -> str:
    """Every match by itself, the ancestors too, with the wins of each seat."""
    lines = []
    for record in records:
        for row in record["evaluation"]:
            seats = row["n"] / game.num_players
            won = " ".join(f"{round(share * seats)}/{seats:.0f}" for share in row["by_seat"])
            lines.append(
                [
                    str(record["generation"]),
                    escape(row["opponent"]),
                    escape(row["policy"]),
                    percent(row["score"]),
                    _interval(row),
                    f"{row['wins']}/{row['draws']}/{row['losses']}",
                    str(row["n"]),
                    str(row["distinct_games"]),
                    won,
                    f"{row['mean_plies']:.1f}",
                ]
            )
    if not lines:
        return ""
    head = ["generation", "opponent", "its policy", "score", "95% interval", "wins/draws/losses"]
    head += ["n", "distinct", "won by seat", "mean plies"]
    table = _table("Every match", head, lines, "matches")
    return f"<details><summary>Every match ({len(lines):,})</summary>\n{table}</details>"


def _configuration(run: Run) -> str:
    flat = flatten(to_dict(run.config))
    lines = [
        [escape(key), escape(value if isinstance(value, str) else json.dumps(value))]
        for key, value in flat.items()
        if not key.startswith(_NOT_SHOWN)
    ]
    table = _table("Configuration", ["key", "value"], lines, "config")
    return (
        f"<h2>Configuration</h2>\n<details><summary>What was trained</summary>\n{table}</details>"
    )


def _figures(pngs: Mapping[str, bytes]) -> str:
    lines = ["<h2>Figures</h2>"]
    for stem, words in _FIGURES.items():
        if stem in pngs:
            data = base64.b64encode(pngs[stem]).decode()
            lines.append(
                f'<figure><div class=scroll role=region tabindex=0 aria-label="{escape(stem)}">'
                f'<img alt="{escape(words)}" src="data:image/png;base64,{data}"></div>'
                f"<figcaption>{escape(words)}</figcaption></figure>"
            )
    return "\n".join(lines)


# Values, generation by generation (figure 8 of the SumTo100 document).


def _values(game: Game, records: Sequence[figures.Record]) -> str:
    """Bars of V as SVG, with a slider over the generations; without scripts the newest one."""
    valued = [record for record in records if (record["solution"] or {}).get("values")]
    if game.solution is None or not valued:
        return ""
    solution = game.solution()
    labels = solution.labels[-figures.MAX_BARS :]
    exact = [float(value) for value in solution.values[-len(labels) :]]
    frames = [_frame(record, len(labels)) for record in _thin(valued, _MAX_FRAMES)]
    data = json.dumps({"labels": labels, "exact": exact, "frames": frames})
    rest = len(solution.labels) - len(labels)
    last = f", the last {len(labels):,} of {len(solution.labels):,}" if rest else ""
    step = figures.label_step(labels)
    x_axis = "".join(
        f'<span style="left:{100 * (i + 0.5) / len(labels):.3f}%">{escape(labels[i])}</span>'
        for i in range(0, len(labels), step)
    )
    y_axis = "".join(
        f'<span style="top:{100 * (1.05 - value) / 2.1:.2f}%">{word}</span>'
        for value, word in ((1, "1"), (0.5, "0.5"), (0, "0"), (-0.5, "−0.5"), (-1, "−1"))
    )
    newest = frames[-1]
    return _CHART.format(
        svg=_svg(exact, newest["v"], newest["text"]),
        text=escape(newest["text"]),
        x_axis=x_axis,
        y_axis=y_axis,
        words=escape(f"position right after an own action{last}"),
        top=len(frames) - 1,
        data=data.replace("<", "\\u003c"),
    )


def _frame(record: figures.Record, count: int) -> dict[str, Any]:
    """One stop of the slider: its words, and V in thousandths, None where V is no number."""
    answers = record["solution"]
    text = f"Generation {record['generation']}"
    if "optimal" in answers:
        text += f": {answers['optimal']} of {answers['of']} solved positions answered right"
    values = answers["values"][-count:]
    return {
        "text": text,
        "v": [round(1000 * value) if math.isfinite(value) else None for value in values],
    }


def _svg(exact: Sequence[float], thousandths: Sequence[int | None], text: str) -> str:
    """One unit wide per position, 105 units for V = 1.05; the page stretches it."""
    bars = []
    for i, value in enumerate(thousandths):
        height = min(abs(value or 0), 1050) / 10
        down = value is not None and value < 0
        y = 105.0 if down else 105 - height
        bars.append(
            f'<rect x="{i + 0.05:.2f}" width="0.9" y="{y:.1f}" height="{height:.1f}" '
            f'class="{"down" if down else "up"}"/>'
        )
    outline = "".join(
        f"{'V' if i else 'M0 '}{105 - 100 * value:.1f}H{i + 1}" for i, value in enumerate(exact)
    )
    grid = "".join(f'<path class=grid d="M0 {y}H{len(exact)}"/>' for y in (5, 55, 155, 205))
    return (
        f'<svg id=bars role=img aria-label="{escape(text)}" preserveAspectRatio=none '
        f'viewBox="0 0 {len(exact)} 210">{grid}<path class=exact d="{outline}"/>{"".join(bars)}'
        f'<path class=zero d="M0 105H{len(exact)}"/></svg>'
    )


def _thin(records: list, limit: int) -> list:
    """At most `limit` of them, evenly, the last one always."""
    step = math.ceil(len(records) / limit)
    return records[::-1][::step][::-1]


_CHART = """<h2>Values learned</h2>
<section id=values>
<p id=caption role=status>{text}</p>
<div id=controls hidden>
<button type=button id=play>Play</button>
<button type=button id=back aria-label="previous generation">◀</button>
<input type=range id=slider min=0 max={top} value={top} step=1 aria-label=generation>
<button type=button id=next aria-label="next generation">▶</button>
</div>
<div class=chart><div class=y>{y_axis}</div>
<div class=plot>{svg}<div class=x>{x_axis}</div></div></div>
<p class=small>{words}. <span class=key style="background:var(--up)"></span> V ≥ 0,
<span class=key style="background:var(--down)"></span> V &lt; 0, thin line: exact value.
The sign counts: where the learner discounts, values shrink with the distance to the end.
<span id=bar aria-live=off></span></p>
</section>
<script type="application/json" id=data>{data}</script>"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #58626c; --page: #fff; --line: #d5dae0;
  --band: #f3f5f7; --up: #0072B2; --down: #E69F00; --exact: #6b7580; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --soft: #a3adb7; --page: #14181c;
  --line: #363e47; --band: #1e242a; --up: #3d9fdc; --down: #E69F00; --exact: #98a3ae; } }
body { margin: 0 auto; padding: 1rem; max-width: 85rem; color: var(--ink); background: var(--page);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
.small, caption, figcaption { font-size: .82rem; color: var(--soft); }
.scroll { overflow-x: auto; }
:focus-visible { outline: 3px solid var(--up); outline-offset: 2px; }
table { border-collapse: separate; border-spacing: 0; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .3rem 0; }
th, td { padding: .35rem .6rem; text-align: right; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; background: var(--band); }
tbody th { font-weight: 600; position: sticky; left: 0; background: var(--page); }
.config th, .config td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.matches td:nth-child(-n+3) { text-align: left; }
summary { cursor: pointer; padding: .6rem 0; }
figure { margin: 1.2rem 0; }
figure img { display: block; background: #fff; border-radius: 6px; max-width: none; }
@media (min-width: 860px) { figure img { max-width: 100%; } }
#controls { display: flex; gap: .5rem; align-items: center; }
#controls[hidden] { display: none; }
#slider { flex: 1; min-width: 4rem; height: 44px; accent-color: var(--up); }
button { min-width: 44px; height: 44px; font: inherit; color: inherit; background: var(--band);
  border: 1px solid var(--line); border-radius: 6px; }
#caption { font-weight: 600; margin-bottom: .4rem; }
.chart { display: flex; gap: .4rem; margin-top: .6rem; font-size: .75rem; color: var(--soft); }
.y { position: relative; width: 2.2rem; height: 15rem; }
.y span { position: absolute; right: 0; transform: translateY(-50%); }
.plot { flex: 1; min-width: 0; }
.x { position: relative; height: 1.4rem; }
.x span { position: absolute; transform: translateX(-50%); }
svg { display: block; width: 100%; height: 15rem; }
svg path { fill: none; vector-effect: non-scaling-stroke; stroke: var(--line); }
svg .exact { stroke: var(--exact); }
svg .zero { stroke: var(--ink); }
.up { fill: var(--up); }
.down { fill: var(--down); }
.key { display: inline-block; width: .7rem; height: .7rem; }
#bar { display: block; min-height: 1.5em; }
"""

_SCRIPT = """
const byId = (id) => document.getElementById(id);
if (byId("data")) {
  const { labels, exact, frames } = JSON.parse(byId("data").textContent);
  const slider = byId("slider"), svg = byId("bars"), bars = svg.querySelectorAll("rect");
  let timer = null, pointed = null;
  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
  const read = () => {
    if (pointed === null) return;
    const value = frames[slider.value].v[pointed];
    const predicted = value === null ? "no number" : signed(value / 1000);
    byId("bar").textContent =
      `Position ${labels[pointed]}: predicted ${predicted}, exact ${signed(exact[pointed])}`;
  };
  const show = (index) => {
    slider.value = index;
    const { text, v } = frames[slider.value];
    v.forEach((value, i) => {
      const height = Math.min(Math.abs(value ?? 0), 1050) / 10;
      bars[i].setAttribute("y", value < 0 ? 105 : 105 - height);
      bars[i].setAttribute("height", height);
      bars[i].setAttribute("class", value < 0 ? "down" : "up");
    });
    byId("caption").textContent = text;
    svg.setAttribute("aria-label", text);
    slider.setAttribute("aria-valuetext", text);
    read();
  };
  const pause = () => {
    clearInterval(timer);
    timer = null;
    byId("play").textContent = "Play";
  };
  const step = (by) => { pause(); show(Number(slider.value) + by); };
  slider.addEventListener("input", () => { pause(); show(slider.value); });
  byId("back").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("play").addEventListener("click", () => {
    if (timer !== null) return pause();
    if (Number(slider.value) === frames.length - 1) show(0);
    byId("play").textContent = "Pause";
    timer = setInterval(() => {
      show(Number(slider.value) + 1);
      if (Number(slider.value) === frames.length - 1) pause();
    }, 400);
  });
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const elsewhere = event.target.closest?.("input, .scroll");
    if (by && !elsewhere && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      step(by);
    }
  });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * labels.length);
    pointed = Math.max(0, Math.min(labels.length - 1, at));
    read();
  });
  byId("controls").hidden = false;
  show(frames.length - 1);
}
"""

_PAGE = """<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta http-equiv=Content-Security-Policy content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""
