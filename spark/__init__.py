"""Entry points for ``spark-submit`` and ``python -m``; the commands are those of ``pulsar-ml``."""
