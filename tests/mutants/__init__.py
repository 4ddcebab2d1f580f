"""Small faults put into the package one by one, to see that a test fails for each."""
