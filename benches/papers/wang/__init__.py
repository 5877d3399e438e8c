"""The tables and figures of Wang, Kifer & Lee (2019): confidence intervals."""
