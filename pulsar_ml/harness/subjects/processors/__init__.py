"""Where the threads of a run stand."""
