"""A store a kind of remote place: web servers, S3, Google Cloud Storage, the Hugging Face hub, fsspec."""
