"""Trainers, the only folder that knows TRL: each executes what the engine decides, and adds nothing of its own.

Nothing of TRL is copied: subclasses call `super()` and edit what it returns. Names are exported lazily from `mixwright`.
"""
