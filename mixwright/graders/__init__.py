"""Graders: one file per way of judging an answer; `load_grader` finds one by the name a user writes.

A name is a grader of the catalogue, with options after `?` as in `numeric?tolerance=0.01`, or `package.module:function`.
"""

from mixwright.graders._grader import Grader
from mixwright.graders._loader import code_digest, import_function, load_grader

__all__ = ["Grader", "code_digest", "import_function", "load_grader"]
