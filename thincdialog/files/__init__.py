"""Files and folders on disk, which are written completely or not at all, and checked when read."""
