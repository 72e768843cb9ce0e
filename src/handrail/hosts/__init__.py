"""Where commands run. `base` is the protocol; `local` is this machine."""
