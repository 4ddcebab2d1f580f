"""The edge of the Python API: what each argument takes, checked and made plain once."""
