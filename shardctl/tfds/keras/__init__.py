"""Keras `fit`: what it trains on when it is stopped and started again."""
