"""Functions as tests: a file of C, C++ or Cython whose functions ``test_*`` the engine explores."""
