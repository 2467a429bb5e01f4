"""The rules once more in the plainest Python, to compare the engines with. No arrays, no bits."""

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # column, level, rising, falling


def lines_of(width, height, k):
    """Every set of k cells (column, row) in a straight line on the board, walked cell by cell."""
    lines = []
    for column in range(width):
        for row in range(height):
            for right, up in DIRECTIONS:
                line = [(column + i * right, row + i * up) for i in range(k)]
                if all(0 <= c < width and 0 <= r < height for c, r in line):
                    lines.append(frozenset(line))
    return lines


class PlainRow:
    """k in a row: a list of columns, each a list of the players whose discs lie in it."""

    def __init__(self, width, height, k):
        self.width, self.height, self.k = width, height, k
        self.columns = [[] for _ in range(width)]
        self.played = 0
        self.winner = None

    def copy(self):
        twin = PlainRow(self.width, self.height, self.k)
        twin.columns = [list(column) for column in self.columns]
        twin.played, twin.winner = self.played, self.winner
        return twin

    def position(self):
        return tuple(map(tuple, self.columns))

    def cell(self, column, row):
        """Who has a disc there; None = empty or outside."""
        if not 0 <= column < self.width or not 0 <= row < len(self.columns[column]):
            return None
        return self.columns[column][row]

    def over(self):
        return self.winner is not None or self.played == self.width * self.height

    def legal(self):
        if self.over():
            return []
        return [c for c in range(self.width) if len(self.columns[c]) < self.height]

    def returns(self):
        if self.winner is None:
            return [0, 0]
        return [1, -1] if self.winner == 0 else [-1, 1]

    def play(self, column):
        player, row = self.played % 2, len(self.columns[column])
        self.columns[column].append(player)
        self.played += 1
        for right, up in DIRECTIONS:
            length = 1
            for way in (1, -1):
                distance = way
                while self.cell(column + distance * right, row + distance * up) == player:
                    length += 1
                    distance += way
            if length >= self.k:
                self.winner = player


def walk(start, plies):
    """Counts by ply: distinct positions, and sequences of actions that lead there.

    `start` has position(), legal(), copy() and play(); a finished game is not played on.
    """
    layer = {start.position(): (start, 1)}
    positions, sequences = [1], [1]
    for _ in range(plies):
        following = {}
        for game, count in layer.values():
            for action in game.legal():
                child = game.copy()
                child.play(action)
                known, so_far = following.get(child.position(), (child, 0))
                following[child.position()] = (known, so_far + count)
        layer = following
        positions.append(len(layer))
        sequences.append(sum(count for _, count in layer.values()))
    return positions, sequences


class PlainSum:
    """SumTo: one number, and how many have added to it."""

    def __init__(self, target, max_step):
        self.target, self.max_step = target, max_step
        self.sum = self.played = 0

    def copy(self):
        twin = PlainSum(self.target, self.max_step)
        twin.sum, twin.played = self.sum, self.played
        return twin

    def position(self):
        return self.sum, self.played % 2

    def legal(self):
        return [a for a in range(self.max_step) if self.sum + a + 1 <= self.target]

    def over(self):
        return self.sum == self.target

    def returns(self):
        if not self.over():
            return [0, 0]
        return [1, -1] if self.played % 2 == 1 else [-1, 1]

    def play(self, action):
        self.sum += action + 1
        self.played += 1
