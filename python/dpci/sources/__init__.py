"""Where rows come from: files of tables, and chunks that are read anew in every pass."""
