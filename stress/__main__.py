"""``python -m stress``."""

from __future__ import annotations

import faulthandler
import sys

from stress.cli import main

if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
