"""A plug-in package for Mixwright: one check and one selector."""
