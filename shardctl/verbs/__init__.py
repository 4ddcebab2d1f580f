"""Verbs: one file is one question, one pure function, one frozen plan."""
