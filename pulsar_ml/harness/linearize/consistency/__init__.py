"""Criteria beside linearizability, each with a witness: :func:`check_criterion`."""

from __future__ import annotations
