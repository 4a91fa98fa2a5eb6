"""Tests of explanations: cores, orders, their words, and the page."""
