"""What all rooms use: checked arguments, text, arrays, columns, messages. No I/O."""
