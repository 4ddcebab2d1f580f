"""Completion in shells: scripts, and what they offer."""
