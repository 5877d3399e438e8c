"""The tables, figures and experiments of four papers, repeated. Never private."""

__all__: list[str] = []
