"""Cases for the recorder: random, seeded, and mixed from everything that a scheduler looks at."""
