"""Repeats the tables and figures of Wang, Kifer & Lee (2019), section 7. Never private."""

__all__: list[str] = []
