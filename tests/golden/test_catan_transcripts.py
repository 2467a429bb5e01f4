"""The rules of today give the three games of Catan line by line, and in each what it is about."""

import re

import catan_transcripts
import pytest


@pytest.mark.parametrize("name", catan_transcripts.WANTED)
def test_the_rules_give_the_transcript(name):
    text = (catan_transcripts.FOLDER / f"{name}.txt").read_text()
    assert catan_transcripts.replay(text).split("\n") == text.split("\n")
    assert re.search(catan_transcripts.WANTED[name], text)
