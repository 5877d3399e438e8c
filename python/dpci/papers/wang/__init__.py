"""Wang, Kifer & Lee (2019): confidence intervals."""
