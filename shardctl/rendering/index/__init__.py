"""The table, the layout file and the changes of `index`."""
