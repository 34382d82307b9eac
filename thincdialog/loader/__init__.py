"""Workers that read ahead. The order of the examples does not depend on the number of workers."""
