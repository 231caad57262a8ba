"""Parts of the SphSystem and the InflowSystem: the liquid, its steps, its start, and what is measured."""
