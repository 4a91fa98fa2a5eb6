"""Known bugs of this product as mutants, built apart from it, to prove that the suites see them.

They are made from the sources of the native core, so everything here needs a checkout of the
project; ``pulsar-ml mutants`` makes automatic mutants of any suites from an installed wheel.
"""
