#!/usr/bin/env python3
"""Shows or edits a room's data: what its owner wants every member to know."""

from _workroom import main, text_script

if __name__ == "__main__":
    main(lambda: text_script(__doc__, "data"))
