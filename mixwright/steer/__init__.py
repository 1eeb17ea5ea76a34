"""Steering of a run while it trains, composed by `engine.py`. Pure numpy: no torch, no IO outside run/."""
