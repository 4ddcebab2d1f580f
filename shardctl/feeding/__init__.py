"""tf.data's order by the keys of a data source, for loaders that are fed it: what they share."""
