# The operations of _native.pyx once more, compiled for the engine.
include "_native.pyx"
