"""Where rows come from: files and chunks."""
