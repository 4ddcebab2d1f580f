"""Arrow files, as Hugging Face Datasets writes them: rows counted by the headers of messages."""
