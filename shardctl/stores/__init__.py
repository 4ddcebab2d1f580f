"""Where files lie: disks of this machine, buckets, hubs, web servers; one interface for all."""
