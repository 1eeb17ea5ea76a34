"""What changes a run while it trains, composed by `_engine.py`. Pure numpy: no torch, no IO."""
