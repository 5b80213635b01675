"""What heads do to answers: turned off, amplified, or alone."""
