"""Simulated subscriptions: how they read, acknowledge, and wait for delayed entries."""
