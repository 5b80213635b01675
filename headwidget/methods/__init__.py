"""The methods that score heads, one file each: see :mod:`headwidget.scoring.contract`."""
