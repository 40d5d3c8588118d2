"""Graph algorithms over a branch or a commit, on executors.

Nodes are numbered once and edges become arrays of numbers, divided into blocks of nodes. An
algorithm is a sequence of sweeps: every task reads the whole vector of the sweep before, goes over
the edges of its block and leaves its share of the next vector. Between sweeps everything lies in
objects, so nothing grows with the number of sweeps, and a task that is repeated writes the same.
Sums are taken in an order that depends on the content of the graph alone: the same content gives
the same numbers, to the last bit, on any cluster. A graph of one block needs no Spark at all.
"""
