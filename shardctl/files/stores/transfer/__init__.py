"""Bytes over a network: requests, retries, ranges, time-outs; what errors may say."""
