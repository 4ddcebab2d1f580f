"""A store a kind of remote place: web servers, S3, Google Cloud Storage, the hub, fsspec's."""
