"""Where rows come from: files of tables, and chunks that are read again in every pass."""
