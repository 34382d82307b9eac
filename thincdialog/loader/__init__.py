"""Workers that read ahead and yield examples in the order of the data, whatever their number."""
