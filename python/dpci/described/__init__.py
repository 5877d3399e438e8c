"""Descriptions of tables that are released: bounds that nobody knew beforehand."""
