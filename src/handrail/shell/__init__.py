"""Commands in bash: a session that keeps its directory from call to call, and its outputs. It words nothing."""
