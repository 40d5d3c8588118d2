"""Graph algorithms over a branch or a commit, on executors.

Nodes are numbered once and edges become arrays of node numbers, hash partitioned into blocks of
nodes. An algorithm is a sequence of sweeps (iterations): every task reads the whole vector of the
previous sweep, processes the edges of its block and writes its block of the next vector. Vectors
are kept in objects between sweeps, so the Spark plan does not grow, and tasks are idempotent. Sums
are taken in an order that depends on the content of the graph alone: results are bitwise
reproducible on any cluster. A graph of one block runs without Spark.
"""
