"""The command line: options written once, a command reads, plans, renders and writes."""
