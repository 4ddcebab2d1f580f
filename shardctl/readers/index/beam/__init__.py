"""Files counted by a Beam pipeline, where one machine is not enough."""
