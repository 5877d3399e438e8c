"""Commands that run in the process of a test."""

from dpci.cli.main import main


def ran(capsys, *arguments, code=0):
    """Output and errors of a command that ends with this code, and of what ran before it unheard."""
    assert main([*map(str, arguments)]) == code
    return capsys.readouterr()


def ended(capsys, *arguments):
    """Exit code, output and errors of a command."""
    code = main([*map(str, arguments)])
    return code, *capsys.readouterr()
