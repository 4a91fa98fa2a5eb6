"""Comparison of this cache with the released classes of Apache Pulsar, trace by trace."""
