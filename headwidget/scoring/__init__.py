"""From tasks to scores: tokens, batches, forwards, and the engine that lets a method score."""
