"""Hypothesis draws the same examples in every run, so that a commit is judged by what it changed. HYPOTHESIS_PROFILE=new
looks for new ones."""
import os

from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.register_profile("new", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
