"""Ranges of numbers that parameters of systems and recipes share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Length = Annotated[float, Field(ge=1e-6, le=1e6)]
"""m"""
Fraction = Annotated[float, Field(ge=0, le=1)]
"""1"""
LiquidDensity = Annotated[float, Field(ge=1e-3, le=1e6)]
"""kg/m^3"""
LiquidViscosity = Annotated[float, Field(ge=0, le=1e3)]
"""m^2/s"""
