"""From tasks to scores: encoding, batches, forwards, the methods' contract and the engine."""
