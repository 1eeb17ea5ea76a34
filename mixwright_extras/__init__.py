"""Published methods beyond the core of Mixwright: reached by the same commands, tested by the same contracts.

They are registered as those of third parties are, by entry points, and import one module of the core, `mixwright.extend`.
Here is what did not help on a real model, or was not shown to: `mixwright explain NAME` says what is known.
"""
