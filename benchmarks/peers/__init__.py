"""ftprl side by side with other systems: the same rows, whole processes, one table."""
