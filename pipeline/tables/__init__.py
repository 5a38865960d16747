"""The tables of a run: their rows, files, reasons and the measured precision of flags."""
