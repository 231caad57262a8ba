"""One world on many processes (MPI ranks): who holds which rows, and what travels between them.

Every rank runs the same systems in the same order. Of each population a rank holds one block of rows; tables
without rows, and bodies, every rank holds. A system says by `distribution` what it needs: its own rows, all
rows, or ranks that share out its work. Since every sum is taken in the same order as in one process, so are
the bits.
"""
