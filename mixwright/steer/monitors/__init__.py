"""Monitors that raise alarms: one file, one monitor."""
