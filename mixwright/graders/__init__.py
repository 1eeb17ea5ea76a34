"""Graders: one file per way of judging an answer; `load_grader` finds one by the name a user writes.

A name is a grader of the catalogue, with options after `?` as in `numeric?tolerance=0.01`, or `package.module:function`.
"""

from mixwright.graders._function import load_grader

__all__ = ["load_grader"]
