"""The methods that score heads, one file each. :mod:`headwidget.scoring.contract` says what a method is."""
