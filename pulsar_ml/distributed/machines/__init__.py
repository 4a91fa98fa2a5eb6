"""The machines of a cluster: checked, packed for, and started here."""
