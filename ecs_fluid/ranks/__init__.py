"""One world on many processes (MPI ranks): who holds which rows, and what travels between them.

Every rank runs the same systems in the same order. A rank holds one block of the rows of each population, and
all of tables without rows and of bodies. A system says by `distribution` what it needs: its own rows, all
rows, or ranks that share its work. Every sum is taken in the same order as in one process, so the bits are
the same.
"""
