"""The orders of Hugging Face Datasets: map-style, and streaming in each era of its versions."""
