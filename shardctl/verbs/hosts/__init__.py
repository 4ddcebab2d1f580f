"""What every host reads under each way to share."""
