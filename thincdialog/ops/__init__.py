"""Array operations: Thinc's ops with seeded dropout, and functions over sequences and bags of
ids."""
