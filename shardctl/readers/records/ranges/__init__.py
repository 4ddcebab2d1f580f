"""Parts of files, as counting needs them: forwards, as a file, unpacked, as a copy with holes."""
