"""Positions of Risk as text, JSON and pictures. Formats: docs/games/risk.md."""

import base64
import re
from collections.abc import Sequence
from html import escape

import numpy as np

from games.game import TERMINAL
from games.risk.boards import Board
from games.risk.rules import (
    AMOUNT,
    ATTACK,
    HISTORY,
    MOVE,
    MOVE_IN,
    PHASES,
    PLACE,
    STATE,
    Rules,
    adjudged,
    begin_turn,
    bit,
    has,
    income,
    nodes_of,
    reset,
    result,
    settle,
)

MARKS = "XO"  # of player 0 and player 1
# On the whole board: more than MAX_ARMIES everywhere and a game's reinforcements, and as much again
# fits into int32.
_MAX_ARMIES = 10**9
_COLOURS = ("#4477aa", "#ee7733")  # told apart by those who see no red or green, too
_TINTS = ("#e8e8e8", "#d8e4d8", "#e4dcd2", "#dcd8e6", "#e6dada", "#d6e2e6")


class Words:
    """The words of a set of boards. State and action numbers are those of its `Rules`."""

    def __init__(self, boards: Sequence[Board]):
        self._boards = list(boards)
        self._beside = [board.neighbours() for board in boards]

    def action_to_text(self, rules: Rules, action: int) -> str:
        if action < rules.nodes:
            return f"place on {action}"
        if action == rules.no_move:
            return "no move"
        if action == rules.no_attack:
            return "no attack"
        if rules.first_amount <= action < rules.no_attack:
            return f"move {self._share(rules, action - rules.first_amount)}"
        if action >= rules.first_move_in:
            return f"move in {self._share(rules, action - rules.first_move_in)}"
        verb = "move" if action < rules.first_amount else "attack"
        source, target = rules.pairs[action]
        return f"{verb} {source}>{target}"

    def _share(self, rules: Rules, index: int) -> str:
        part, parts = rules.amounts[index]
        return str(part) if parts == 0 else "all" if parts == 1 else f"{part}/{parts}"

    def state_to_text(self, rules: Rules, state) -> str:
        """A line per node with its owner, armies and neighbours, then what is to be decided."""
        board = self._boards[state["board"]]
        beside = self._beside[state["board"]]
        lines = [
            f"board {board.name}, turn {state['turn']}, {state['quiet']} since a conquest, "
            f"ply {state['ply']}"
        ]
        most = int(state["armies"].max())
        digits = max(len(str(most)), 2)
        across = max(len(" ".join(map(str, each))) for each in beside)
        for node in range(rules.nodes):
            mark = MARKS[0] if has(state["owned"], node) else MARKS[1]
            near = " ".join(map(str, beside[node]))
            label = board.labels[node]
            line = f"{node:>2} {mark} {state['armies'][node]:>{digits}}   beside {near:<{across}}"
            lines.append(f"{line}  {label}".rstrip() if label != str(node) else line.rstrip())
        for each in board.continents:
            held = sum(bool(has(state["owned"], node)) for node in each.nodes)
            lines.append(
                f"continent {each.name}, bonus {each.bonus}: X {held}, O {len(each.nodes) - held} "
                f"of {' '.join(map(str, each.nodes))}"
            )
        paid = [MARKS[p] for p in (0, 1) if (state["conquered"] >> p) & 1]
        lines.append(f"2 armies for a conquest next turn: {' '.join(paid) or 'nobody'}")
        seen = base64.b64encode(state["history"][: _used(state)].astype("<u4").tobytes()).decode()
        lines.append(f"seen {seen}")
        lines.append(self._question(rules, state))
        return "\n".join(lines)

    def _question(self, rules: Rules, state) -> str:
        player = int(state["player"])
        if player == TERMINAL:
            ended = result(rules, state)
            if ended == 0:
                return "a draw"
            how = "" if state["owned"] in (0, rules.everything) else ", being ahead"
            return f"{MARKS[0] if ended > 0 else MARKS[1]} has won{how}"
        phase = int(state["phase"])
        if phase == PLACE:
            mine = np.uint64(nodes_of(rules, state["owned"], player))
            paid = bool((state["conquered"] >> player) & 1)
            what = f"places {income(rules, int(state['board']), mine, paid)} armies"
        elif phase == MOVE:
            what = "moves or not"
        elif phase == ATTACK:
            what = "attacks or not"
        else:
            verb = "moves" if phase == AMOUNT else "moves in"
            most = state["armies"][state["source"]]
            what = f"{verb} {state['source']}>{state['target']}: 1 to {most} armies"
        return f"{MARKS[player]} {what}"

    def state_from_text(self, rules: Rules, text: str) -> np.ndarray:
        """Reads `state_to_text`, or a mark and armies for each node such as "X4 O1 X2 O2": player 0
        begins on the first board."""
        state = self._from_short(rules, text)
        if state is None:
            state = self._from_lines(rules, text.strip().splitlines())
        if state is None:
            raise ValueError(
                f"{text!r} is no position of this game; expected a mark and armies for each of the "
                f"{rules.nodes} nodes, such as 'X4 O1 X2 ..', or the lines that a position is "
                "printed as"
            )
        return state

    def _from_short(self, rules: Rules, text: str) -> np.ndarray | None:
        words = [re.fullmatch(r"([XO])(\d{1,7})", word) for word in text.split()]
        if len(words) != rules.nodes or not all(words):
            return None
        pairs = [(word[1], int(word[2])) for word in words if word]
        if not _fill(state := _blank(), rules, pairs) or state["owned"][0] in (
            0,
            rules.everything,
        ):
            return None
        begin_turn(rules, state[0])
        settle(rules, state[0])
        return state

    def _from_lines(self, rules: Rules, lines: list[str]) -> np.ndarray | None:
        head = re.fullmatch(
            r"board (.+), turn (\d{1,9}), (\d{1,9}) since a conquest, ply (\d{1,9})",
            lines[0] if lines else "",
        )
        if not head or len(lines) < rules.nodes + 4:
            return None
        names = [board.name for board in self._boards]
        nodes = [re.match(r" ?(\d+) ([XO]) +(\d{1,10}) ", line) for line in lines[1:]]
        rows = [row for row in nodes[: rules.nodes] if row]
        if head[1] not in names or [int(row[1]) for row in rows] != list(range(rules.nodes)):
            return None
        state = _blank()
        row = state[0]
        row["board"] = names.index(head[1])
        row["turn"], row["quiet"], row["ply"] = (int(head[at]) for at in (2, 3, 4))
        if row["quiet"] > row["turn"] or row["ply"] >= 5 * (row["turn"] + 1):
            return None
        if not _fill(state, rules, [(each[2], int(each[3])) for each in rows]):
            return None
        paid, seen, question = lines[-3:]
        for player, mark in enumerate(MARKS):
            if mark in paid.rpartition(":")[2].split():
                row["conquered"] |= 1 << player
        if not self._read_question(rules, row, question):
            return None
        try:
            raw = base64.b64decode(seen.removeprefix("seen "), validate=True)
        except ValueError:
            return None
        if len(raw) % 4 or len(raw) > 4 * HISTORY:
            return None
        row["history"][: len(raw) // 4] = np.frombuffer(raw, "<u4")
        if _used(row) != len(raw) // 4:
            return None
        if not _may_stand(rules, row):
            return None
        # Whatever was changed by hand contradicts one of the lines, or leaves no choice.
        again = state.copy()
        settle(rules, again[0])
        if again != state or self.state_to_text(rules, row).splitlines() != lines:
            return None
        return state

    def _read_question(self, rules: Rules, state, question: str) -> bool:
        if question == "a draw" or "has won" in question:
            state["player"] = TERMINAL
            return True
        asked = re.fullmatch(
            r"([XO]) (places \d+ armies|moves or not|attacks or not|"
            r"(moves|moves in) (\d+)>(\d+): 1 to \d+ armies)",
            question,
        )
        if not asked:
            return False
        state["player"] = MARKS.index(asked[1])
        if asked[3]:
            state["source"], state["target"] = int(asked[4]) % 64, int(asked[5]) % 64
            state["phase"] = AMOUNT if asked[3] == "moves" else MOVE_IN
            mine = np.uint64(nodes_of(rules, state["owned"], int(state["player"])))
            both = (int(state["source"]), int(state["target"]))
            return max(both) < rules.nodes and all(has(mine, node) for node in both)
        state["phase"] = {"p": PLACE, "m": MOVE, "a": ATTACK}[asked[2][0]]
        return True

    def state_to_json(self, rules: Rules, state) -> dict:
        """Plain values. `adjudged`: who is ahead, 0, 1 or null (R8), whether or not it counts."""
        board = self._boards[state["board"]]
        ahead = adjudged(rules, state)
        owner = [0 if has(state["owned"], node) else 1 for node in range(rules.nodes)]
        player = int(state["player"])
        reinforcements = [
            int(
                income(
                    rules,
                    int(state["board"]),
                    np.uint64(nodes_of(rules, state["owned"], each)),
                    bool((state["conquered"] >> each) & 1),
                )
            )
            for each in (0, 1)
        ]
        ended = result(rules, state)
        return {
            "player": player,
            "ply": int(state["ply"]),
            "turn": int(state["turn"]),
            "quiet": int(state["quiet"]),
            "phase": PHASES[state["phase"]],
            "source": int(state["source"]),
            "target": int(state["target"]),
            "owner": owner,
            "armies": state["armies"][: rules.nodes].tolist(),
            "reinforcements": reinforcements,
            "winner": None if ended == 0 else (0 if ended > 0 else 1),
            "adjudged": None if ahead == 0 else (0 if ahead > 0 else 1),
            "history": state["history"][: _used(state)].tolist(),
            "board": board.to_json(),
        }

    def state_to_svg(self, rules: Rules, state, width: int = 960) -> str:
        """The board with owners and armies, `width` pixels wide; stands alone in a page or a file.

        Players are told apart by colour and by shape, continents by the tint behind their nodes.
        """
        board = self._boards[state["board"]]
        height = round(width * 0.64)
        radius = max(9, round(min(0.03, 0.115 / np.sqrt(rules.nodes)) * width))
        margin = radius + 20
        at = [
            (
                round(margin + x * (width - 2 * margin), 1),
                round(margin + y * (height - 2 * margin), 1),
            )
            for x, y in board.places
        ]
        tint = {
            node: _TINTS[number % len(_TINTS)]
            for number, each in enumerate(board.continents)
            for node in each.nodes
        }
        home = {node: n for n, each in enumerate(board.continents) for node in each.nodes}
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" role="img">',
            f"<title>{escape(self._headline(rules, state))}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]
        parts += [
            f'<circle cx="{x}" cy="{y}" r="{radius * 1.9:.0f}" fill="{tint[node]}"/>'
            for node, (x, y) in enumerate(at)
        ]
        for u, v in board.edges:
            (ux, uy), (vx, vy) = at[u], at[v]
            dash = "" if home[u] == home[v] else ' stroke-dasharray="5 4"'
            if abs(board.places[u][0] - board.places[v][0]) > 0.7:  # round the back of the map
                (lx, ly), (rx, ry) = sorted(((ux, uy), (vx, vy)))
                ends = [((lx, ly), (0, ly)), ((rx, ry), (width, ry))]
            else:
                ends = [((ux, uy), (vx, vy))]
            parts += [
                f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="#999999" '
                f'stroke-width="1.5"{dash}/>'
                for (a, b), (c, d) in ends
            ]
        size = max(8, round(radius * 0.58))
        for node, (x, y) in enumerate(at):  # below the nodes, so that no number is covered
            label = board.labels[node]
            name = label if label == str(node) else f"{node} {label}"
            parts.append(
                f'<text x="{x}" y="{y + radius + size}" text-anchor="middle" font-size="{size}" '
                'fill="#333333" stroke="#ffffff" stroke-width="2.5" paint-order="stroke">'
                f"{escape(name)}</text>"
            )
        for node, (x, y) in enumerate(at):
            owner = 0 if has(state["owned"], node) else 1
            ring = "#000000" if node in (state["source"], state["target"]) else "#ffffff"
            style = f'fill="{_COLOURS[owner]}" stroke="{ring}" stroke-width="2"'
            side = round(radius * 1.75, 1)
            if owner == 0:
                parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}" {style}/>')
            else:
                parts.append(
                    f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side}" '
                    f'height="{side}" rx="3" {style}/>'
                )
            parts.append(
                f'<text x="{x}" y="{y}" text-anchor="middle" dominant-baseline="central" '
                f'font-size="{radius * 0.95:.0f}" font-weight="bold" fill="#ffffff">'
                f"{state['armies'][node]}</text>"
            )
        return "\n".join([*parts, "</svg>"])

    def _headline(self, rules: Rules, state) -> str:
        name = self._boards[state["board"]].name
        return f"{name}, turn {state['turn']}: {self._question(rules, state)}"


def _used(state) -> int:
    """Entries of the history that are filled: one for each turn that has begun."""
    begun = int(state["turn"]) + 1
    if state["player"] == TERMINAL and state["history"][int(state["turn"]) % HISTORY] == 0:
        begun -= 1  # the game ended with a turn and before the next began
    return min(begun, HISTORY)


def _may_stand(rules: Rules, state) -> bool:
    """Is the game over if and only if something has ended it (R7, R8)?"""
    turn = int(state["turn"])
    won = state["owned"] in (0, rules.everything)
    limit = turn >= rules.max_turns or state["quiet"] >= rules.quiet_turns
    if state["player"] != TERMINAL:
        return not won and not limit
    newest = state["history"][turn % HISTORY]
    seen = np.count_nonzero(state["history"] == newest) if newest else 0
    # The newest digest takes the place of one of `HISTORY` turns before, which may be its like.
    return bool(won or limit or seen >= (3 if turn < HISTORY else 2))


def _blank() -> np.ndarray:
    state = np.zeros(1, STATE)
    reset(state[0])
    return state


def _fill(state: np.ndarray, rules: Rules, pairs: list[tuple[str, int]]) -> bool:
    """Sets owners and armies; False if a node is empty or armies are more than in any game."""
    if not all(armies >= 1 for _, armies in pairs) or sum(n for _, n in pairs) > _MAX_ARMIES:
        return False
    for node, (mark, armies) in enumerate(pairs):
        state["armies"][0, node] = armies
        if mark == MARKS[0]:
            state["owned"] |= bit(node)
    return True


def start_of(board: Board) -> tuple[list[int], list[int]]:
    """Owner and armies of each node of a board's own start; armies 0 where it has none."""
    if board.start is None:
        return [0] * board.num_nodes, [0] * board.num_nodes
    return list(board.start.owner), list(board.start.armies)
