"""Causes of failures of the engine: changes of the code under which a failure is gone."""
