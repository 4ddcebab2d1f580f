"""Files that shardctl writes and reads back: plans to resume, positions, snapshots."""
