"""Files: written atomically, read without executing anything."""
