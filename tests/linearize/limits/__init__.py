"""Tests of the limits of steps, memory and time."""
