"""`python -m mporbm` is the command `mporbm`."""

from .cli import main

if __name__ == "__main__":
    main()
