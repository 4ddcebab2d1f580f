"""Two pipelines side by side, as a page and as a document."""
