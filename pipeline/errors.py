"""Errors that people meet. Each carries one sentence: what is wrong, what was expected, the remedy.

The command line prints the sentence alone; every other exception is a fault of ours and keeps its
traceback. One argument each, so that they survive the way from an actor to the driver.
"""


class UserError(Exception):
    """The base of all: something that the user, not the code, can put right."""


class ConfigError(UserError):
    """A key, type, range or combination of the configuration is wrong."""


class StorageError(UserError):
    """A file of a run cannot be read or written."""


class ShardError(UserError):
    """A shard of traces is missing, damaged or belongs to something else.

    The first argument is the sentence; `path` names the shard.
    """

    def __init__(self, sentence: str, path: str = ""):
        super().__init__(sentence, path)
        self.path = path

    def __str__(self) -> str:
        return self.args[0]


class PolicyError(UserError):
    """A saved policy is missing, damaged or does not fit the game."""


class RunError(UserError):
    """A run is missing, locked by another process or was made with another configuration."""


class LearningError(UserError):
    """Learning diverged."""


class SessionError(UserError):
    """A game that people play cannot be set up, played on or read as asked."""


class ClusterError(UserError):
    """Ray or its actors cannot do what the configuration asks for."""
