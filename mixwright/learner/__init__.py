"""The model being taught enters here: load it, build a tiny one, sample from it, read its probabilities.

Importing this folder imports torch and transformers; core commands do not.
"""

from mixwright.learner.learner import Completion, Learner
from mixwright.learner.load import load_learner
from mixwright.learner.settings import cheap_settings
from mixwright.learner.tiny import build_tiny
from mixwright.learner.warmup import warm_up

__all__ = ["Completion", "Learner", "build_tiny", "cheap_settings", "load_learner", "warm_up"]
