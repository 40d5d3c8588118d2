"""Search: texts and vectors of one version of a type.

Everything here is computed from the stored values, so an answer does not depend on whether an index
exists or is up to date, unless somebody asks for the candidates of one (``indexed``).
"""
