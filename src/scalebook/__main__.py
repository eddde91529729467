"""`python -m scalebook …`, the same as `scalebook …`."""

import sys

from scalebook.cli import main

sys.exit(main())
