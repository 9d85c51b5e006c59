"""One attempt at one pod: its states, the binding cycle, failures and how they are reported."""
