"""The kill table: which technique finds which mutant."""
