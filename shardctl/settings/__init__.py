"""The settings of a reading: besides dataset and spec, all that an order depends on."""
