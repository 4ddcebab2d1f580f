"""How the examples of a spec are split among hosts."""
