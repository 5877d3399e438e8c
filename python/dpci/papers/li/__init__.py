"""Li et al.: utility against epsilon."""
