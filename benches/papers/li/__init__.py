"""The experiments of Li et al.: utility against epsilon."""
