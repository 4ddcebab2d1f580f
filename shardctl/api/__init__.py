"""The Python API above the verbs: references and files as arguments, answers as tables."""
