"""The command line, one command per file: `bismut --help`."""

__all__ = ["main"]


def main() -> None:
    """Run the command that was typed. Reading the commands is part of it; Ctrl-C, SIGTERM and SIGHUP end all of it without a traceback."""
    import signal
    import sys

    try:
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:  # nohup ignores SIGHUP, and that stays so
                signal.signal(getattr(signal, name), signal.default_int_handler)
        from bismut.cli.main import main as command

        command()
    except KeyboardInterrupt:
        print("bismut: interrupted.", file=sys.stderr)
        sys.exit(130)
