"""Risk on a graph in plain Python, written from R1-R12 of docs/games/risk.md for comparison.

Choices are the texts of the game's actions, players 0 and 1, `owner` and `armies` lists by node.
"""

import math


class PlainRisk:
    def __init__(
        self, board, owner, armies, base="none", connected=False, max_turns=200, quiet_turns=60
    ):
        self.board, self.beside = board, board.neighbours()
        self.owner, self.armies = list(owner), list(armies)
        self.base, self.connected = base, connected
        self.max_turns, self.quiet_turns = max_turns, quiet_turns
        self.player, self.turn, self.quiet = 0, 0, 0
        self.phase, self.way = "place", None
        self.paid = [False, False]  # whether 2 armies for a conquest are due
        self.winner, self.over = None, False
        self.past = []
        self._begin()
        self._go_on()

    def mine(self):
        return [node for node, owner in enumerate(self.owner) if owner == self.player]

    def reinforcements(self):
        held = self.mine()
        armies = {"none": 0, "classic": max(3, len(held) // 3)}.get(self.base)
        armies = int(self.base) if armies is None else armies
        for each in self.board.continents:
            if all(self.owner[node] == self.player for node in each.nodes):
                armies += each.bonus
        return armies + (2 if self.paid[self.player] else 0)

    def region(self, start):
        reached = [start]
        for node in reached:
            reached += [
                n
                for n in self.beside[node]
                if self.owner[n] == self.owner[start] and n not in reached
            ]
        return reached

    def legal(self):
        """The texts of all legal choices, counted out."""
        if self.over:
            return set()
        mine = self.mine()
        if self.phase == "place":
            return {f"place on {node}" for node in mine}
        if self.phase == "move":
            pairs = [
                (u, v)
                for u in mine
                if self.armies[u] > 1
                for v in (self.region(u) if self.connected else self.beside[u])
                if v != u and self.owner[v] == self.player
            ]
            return {"no move"} | {f"move {u}>{v}" for u, v in pairs}
        if self.phase == "attack":
            pairs = [
                (v, u)
                for v in mine
                for u in self.beside[v]
                if self.owner[u] != self.player and self.armies[v] - self.armies[u] > 1
            ]
            return {"no attack"} | {f"attack {v}>{u}" for v, u in pairs}
        verb = "move" if self.phase == "amount" else "move in"
        most = self.armies[self.way[0]]
        offered = {}
        for words, armies in (("1", 1), ("1/2", math.ceil(most / 2)), ("all", most)):
            if armies not in offered.values():
                offered[f"{verb} {words}"] = armies
        return set(offered)

    def play(self, choice):
        assert choice in self.legal()
        self._do(choice)
        self._go_on()

    def _do(self, choice):
        words = choice.split()
        if choice.startswith("place"):
            node = int(words[-1])
            self.armies[node] += self.reinforcements()
            self.paid[self.player] = False
            self.phase = "move"
        elif choice == "no move":
            self.phase = "attack"
        elif choice == "no attack":
            self._end_turn()
        elif ">" in choice and words[0] == "move":
            u, v = map(int, words[1].split(">"))
            self.armies[u] -= 1
            self.armies[v] += 1
            self.way, self.phase = (u, v), "amount"
        elif words[0] == "attack":
            v, u = map(int, words[1].split(">"))
            left = self.armies[v] - self.armies[u]
            self.owner[u] = self.player
            self.armies[v], self.armies[u] = left - 1, 1
            self.paid[self.player], self.quiet = True, -1
            if all(owner == self.player for owner in self.owner):
                self.over, self.winner = True, self.player
                self.turn, self.quiet = self.turn + 1, 0
            else:
                self.way, self.phase = (v, u), "move in"
        else:
            u, v = self.way
            most = self.armies[u]
            armies = {"1": 1, "1/2": math.ceil(most / 2), "all": most}[words[-1]]
            self.armies[u] -= armies - 1
            self.armies[v] += armies - 1
            if self.phase == "amount":
                self.way, self.phase = None, "attack"
            else:
                self._end_turn()

    def _end_turn(self):
        self.way, self.phase = None, "place"
        self.turn += 1
        self.quiet += 1
        if self.turn >= self.max_turns or self.quiet >= self.quiet_turns:
            self.over = True
            return
        self.player = 1 - self.player
        self._begin()

    def _begin(self):
        now = (tuple(self.owner), tuple(self.armies), tuple(self.paid), self.player)
        self.past.append(now)
        if self.past[-17:].count(now) >= 3:
            self.over = True

    def _go_on(self):
        while not self.over:
            legal = self.legal()
            if self.phase == "place" and self.reinforcements() == 0:
                self.phase = "move"
            elif len(legal) == 1:
                self._do(next(iter(legal)))
            else:
                return

    def returns(self):
        return [0, 0] if self.winner is None else [1, -1] if self.winner == 0 else [-1, 1]
