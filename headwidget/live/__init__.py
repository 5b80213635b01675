"""The explorer with a model behind it."""
