"""Published tables, figures and experiments of four papers, repeated on the public names of dpci. Never private."""
