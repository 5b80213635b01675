"""Settings of the tests of what is shown."""

from __future__ import annotations

import hypothesis

# How long one example takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")
