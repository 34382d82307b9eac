"""Array operations: Thinc's ops with seeded dropout, and kernels over bags of ids."""
