"""What changes vortons: stretching, exchange, baroclinic generation, relaxation, merging."""
