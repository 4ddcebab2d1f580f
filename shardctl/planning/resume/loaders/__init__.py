"""How do other loaders than TFDS's go on where they stopped?"""
