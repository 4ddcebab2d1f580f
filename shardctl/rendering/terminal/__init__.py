"""Pictures in a terminal: braille dots, sparks, bars and strips, as lines of text."""
