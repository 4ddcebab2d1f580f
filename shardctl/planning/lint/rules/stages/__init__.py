"""The rules about stages: what comes before what, a file a subject."""
