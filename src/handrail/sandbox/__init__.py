"""What a slot's commands may read, write and reach: facts of this machine, and pure functions from them to a wall."""
