"""Solutions, inverses, determinants and Cholesky factors of small matrices."""
