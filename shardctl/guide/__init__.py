"""The guides: a Markdown file a subject, shipped with the package."""
