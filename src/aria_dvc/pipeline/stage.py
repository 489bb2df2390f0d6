"""How every stage script starts: own code, checked params, one clear line on failure."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path

from aria_dvc.errors import AriaError
from aria_dvc.memory import is_out_of_memory
from aria_dvc.models.quiet import quiet_libraries
from aria_dvc.params import Params, load_params

Main = Callable[[Params, str], None]


def run_stage(main: Main) -> None:
    """Run `main(params, item)`; `item` is the game or category named on the command line, or "".

    Every AriaError, a full disk and a lack of memory end in one line on standard error and exit
    status 1.
    """
    quiet_libraries()
    try:
        _assert_own_code()
        main(load_params(), sys.argv[1] if len(sys.argv) > 1 else "")
    except AriaError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted: run again to go on from what is finished")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail("out of memory: lower the sizes in params.yaml or use a larger machine")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _fail(f"{error.filename or 'output'}: disk full: free some space and run again")


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def _assert_own_code() -> None:
    """A queued experiment must run its own snapshot, never an installed or another copy."""
    import aria_dvc

    own = Path.cwd() / "src"
    if not Path(aria_dvc.__file__).resolve().is_relative_to(own.resolve()):
        raise AriaError(
            f"aria_dvc was imported from {Path(aria_dvc.__file__).parent}, not from {own}: "
            "run stages from the repository's root with PYTHONPATH=src"
        )
