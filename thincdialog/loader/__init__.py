"""Workers that read ahead: what is read comes in the order of the data, however many read."""
