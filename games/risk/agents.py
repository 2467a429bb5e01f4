"""Scripted players."""
SCRIPTED: dict = {}
