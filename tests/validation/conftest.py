"""Lets the tests of this folder import their shared flows and reference formulas by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
