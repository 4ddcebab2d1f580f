"""How well is an order shuffled?"""
