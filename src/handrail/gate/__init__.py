"""What every call passes on its way in and out. It never starts a process."""
