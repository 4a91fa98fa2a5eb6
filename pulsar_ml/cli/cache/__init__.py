"""Commands about the cache: its settings and simulations."""
