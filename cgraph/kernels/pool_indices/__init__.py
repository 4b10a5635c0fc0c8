"""The gradient of max pooling: indices of each window's largest element, and sums at these indices."""
