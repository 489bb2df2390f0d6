"""What the pipeline survives: kills, faults of a server, full disks (`make chaos`)."""
